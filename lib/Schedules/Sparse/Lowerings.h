// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowerings of computations around attention: each writes the kernels of an op and their launches.
//
#ifndef ATTN_LIB_SCHEDULES_SPARSE_LOWERINGS_H
#define ATTN_LIB_SCHEDULES_SPARSE_LOWERINGS_H

#include "Schedules/Common/ProgramBuilder.h"
#include "attn/Dialect/Tile/IR/TargetInfo.h"

namespace attn {

/// The lowering of any of these ops. An error is emitted where there is none for the target.
mlir::LogicalResult writeComputation(ComputationInterface op, ProgramBuilder &program, const TargetInfo &target);

mlir::LogicalResult writeCompress(CompressOp op, ProgramBuilder &program, const TargetInfo &target);
mlir::LogicalResult writeCompressBackward(CompressBackwardOp op, ProgramBuilder &program, const TargetInfo &target);
mlir::LogicalResult writeCombine(CombineOp op, ProgramBuilder &program, const TargetInfo &target);
mlir::LogicalResult writeCombineBackward(CombineBackwardOp op, ProgramBuilder &program, const TargetInfo &target);
mlir::LogicalResult writeAdd(AddOp op, ProgramBuilder &program, const TargetInfo &target);
mlir::LogicalResult writeSelect(SelectOp op, ProgramBuilder &program, const TargetInfo &target);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SPARSE_LOWERINGS_H
