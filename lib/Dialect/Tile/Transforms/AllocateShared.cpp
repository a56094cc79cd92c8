// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_ALLOCATESHARED
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// Bytes that tiles share which are never needed at the same time: all that is done to each lies in one block, and
/// to one before the other.
struct Lot {
  int64_t offset, bytes;
  Operation *last;
};

/// The first and the last op of the place's own block that have to do with it, or with what is in flight into or out
/// of it; none if others have, too.
std::pair<Operation *, Operation *> spanOf(PlaceOp place) {
  Operation *first = nullptr, *last = nullptr;
  SmallVector<Value> values = {place.getResult()};
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers()) {
      if (user->getBlock() != place->getBlock())
        return {};
      first = !first || user->isBeforeInBlock(first) ? user : first;
      last = !last || last->isBeforeInBlock(user) ? user : last;
      for (Value result : user->getResults())
        if (isa<TokenType>(result.getType()))
          values.push_back(result);
    }
  return {first, last};
}

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
    SmallVector<Lot> lots;
    kernel.walk([&](PlaceOp place) {
      if (auto type = dyn_cast<SharedType>(place.getType())) {
        auto [first, last] = spanOf(place);
        for (Lot &lot : lots)
          if (first && !type.isSwizzled() && lot.bytes >= type.getBytes() && lot.last->getBlock() == first->getBlock() &&
              lot.last->isBeforeInBlock(first)) {
            place.setOffset(lot.offset);
            lot.last = last;
            return;
          }
        allocate(place, type.getBytes(), type.isSwizzled() ? 1024 : 128);
        if (last && !type.isSwizzled())
          lots.push_back({int64_t(*place.getOffset()), type.getBytes(), last});
      }
      if (auto type = dyn_cast<StatisticsType>(place.getType()))
        allocate(place, type.getBytes(), 128);
      if (auto type = dyn_cast<StagingType>(place.getType()))
        allocate(place, type.getAllBytes(), 128);
      llvm::TypeSwitch<Type>(place.getType()).Case<FeedType, TableType, ForestType>([&](auto type) {
        allocate(place, type.getBytes(), 16);
      });
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
