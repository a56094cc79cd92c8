// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_ALLOCATESHARED
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
struct AllocateSharedPass : attn::tile::impl::AllocateSharedBase<AllocateSharedPass> {
  using Base::Base;

  void runOnOperation() final {
    KernelOp kernel = getOperation();
    int64_t bytes = 0;
    kernel.walk([&](PlaceOp place) {
      auto type = dyn_cast<SharedType>(place.getType());
      if (!type)
        return;
      place.setOffset(bytes);
      bytes = llvm::alignTo(bytes + type.getBytes(), 128); // what bulk copies and wide loads want
    });
    kernel.setSharedBytes(bytes);
    if (bytes > limit) {
      kernel.emitError("expected at most ")
          << limit.getValue() << " bytes of shared memory, got: " << bytes << " with " << kernel.getConfig();
      signalPassFailure();
    }
  }
};
} // namespace
