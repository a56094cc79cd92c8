// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Lowerings.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

LogicalResult attn::writeComputation(ComputationInterface op, ProgramBuilder &program, const TargetInfo &target) {
  Type dtype = op.getDataType();
  if (!llvm::is_contained(tile::dataTypesOf(target.name, op.getContext()), dtype))
    return op->emitOpError("expected dtype ") << tile::textOfDataTypes(target.name) << " for target `" << target.name
                                              << "` (`cpu`: " << tile::textOfDataTypes("cpu") << "), got: " << dtype;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](CompressOp compress) { return writeCompress(compress, program, target); })
      .Case([&](SelectOp select) { return writeSelect(select, program, target); })
      .Case([&](CompressBackwardOp grads) { return writeCompressBackward(grads, program, target); })
      .Case([&](CombineOp combine) { return writeCombine(combine, program, target); })
      .Case([&](CombineBackwardOp grads) { return writeCombineBackward(grads, program, target); })
      .Case([&](AddOp add) { return writeAdd(add, program, target); })
      .Default([&](Operation *other) { return other->emitOpError("has no kernels yet"); });
}
