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
    // What bulk copies and wide loads want, or what a swizzle of address bits does.
    auto allocate = [&](PlaceOp place, int64_t size, int64_t alignment) {
      bytes = llvm::alignTo(bytes, alignment);
      place.setOffset(bytes);
      bytes += size;
    };
    SmallVector<PlaceOp> rings;
    kernel.walk([&](PlaceOp place) {
      if (isa<RingType>(place.getType()))
        rings.push_back(place);
    });
    for (PlaceOp place : rings)
      allocate(place, cast<RingType>(place.getType()).getBytes(), 1024);
    for (PlaceOp place : rings) {
      place.setBarriers(bytes);
      bytes += cast<RingType>(place.getType()).getBarrierBytes();
    }
    kernel.walk([&](PlaceOp place) {
      if (auto type = dyn_cast<SharedType>(place.getType()))
        allocate(place, type.getBytes(), type.isSwizzled() ? 1024 : 128);
      if (auto type = dyn_cast<StatisticsType>(place.getType()))
        allocate(place, type.getBytes(), 128);
      if (auto type = dyn_cast<StagingType>(place.getType()))
        allocate(place, type.getBytes(), 128);
      if (auto type = dyn_cast<FeedType>(place.getType()))
        allocate(place, type.getBytes(), 16);
      if (auto type = dyn_cast<TableType>(place.getType()))
        allocate(place, type.getBytes(), 16);
    });
    if (rings.empty())
      bytes = llvm::alignTo(bytes, 128);
    kernel.setSharedBytes(bytes);
    if (bytes > limit) {
      kernel.emitError("expected at most ")
          << limit.getValue() << " bytes of shared memory, got: " << bytes << " with " << kernel.getConfig();
      signalPassFailure();
    }
  }
};
} // namespace
