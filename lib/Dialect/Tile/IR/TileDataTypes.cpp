// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;

/// MMA operands of GPUs, and the copies and stores for them, have 16 bits. On a CPU, tiles are float32 for any element
/// type.
static bool hasFloat32(StringRef target) { return target == "cpu"; }

SmallVector<Type> attn::tile::dataTypesOf(StringRef target, MLIRContext *context) {
  SmallVector<Type> types = {BFloat16Type::get(context), Float16Type::get(context)};
  if (hasFloat32(target))
    types.push_back(Float32Type::get(context));
  return types;
}

std::string attn::tile::textOfDataTypes(StringRef target) {
  return hasFloat32(target) ? "bf16, f16 or f32" : "bf16 or f16";
}

static StringRef targetOf(Operation *op) {
  auto kernel = op->getParentOfType<attn::tile::KernelOp>();
  return kernel ? kernel.getTarget() : "";
}

bool attn::tile::isDataType(Operation *op, Type element) {
  return llvm::is_contained(dataTypesOf(targetOf(op), op->getContext()), element);
}

std::string attn::tile::textOfDataTypes(Operation *op) { return textOfDataTypes(targetOf(op)); }
