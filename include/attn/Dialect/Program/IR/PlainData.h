// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_DIALECT_PROGRAM_IR_PLAINDATA_H
#define ATTN_DIALECT_PROGRAM_IR_PLAINDATA_H

#include "attn-rt/Program.h"
#include "attn/Dialect/Program/IR/Program.h"

namespace attn {

/// The program as plain data, called `name`; kernels are numbered in the order in which they are first launched, and
/// called by their symbols.
rt::Program toProgram(program::DefOp program, llvm::StringRef name);

/// Of elements of bf16, f16, f32 or i32.
rt::Dtype dtypeOf(mlir::Type element);
mlir::Type elementOf(rt::Dtype dtype, mlir::MLIRContext *context);

/// The ops of plain data.
program::TensorOp createTensor(mlir::OpBuilder &b, mlir::Location loc, const rt::Program::Tensor &tensor);
program::BufferOp createBuffer(mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef name, rt::Dtype dtype,
                               llvm::ArrayRef<rt::Extent> extents);

} // namespace attn

#endif // ATTN_DIALECT_PROGRAM_IR_PLAINDATA_H
