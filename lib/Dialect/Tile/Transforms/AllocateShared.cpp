// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_ALLOCATESHARED
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// Bytes that tiles share which are never needed at the same time: all that is done to each lies in one block and its
/// conditionals, and to one before the other.
struct Lot {
  int64_t offset, bytes;
  Block *block;
  int64_t last;
};

/// Where a place is used: numbers of ops as they stand in the text.
struct Span {
  int64_t first, last;
};

/// Of the ops that have to do with a place, or with what is in flight into or out of it; none if some may run more than
/// once for one run of the place's block.
std::optional<Span> spanOf(AllocOp place, const DenseMap<Operation *, int64_t> &numbers) {
  std::optional<Span> span;
  SmallVector<Value> values = {place.getResult()};
  while (!values.empty())
    for (Operation *user : values.pop_back_val().getUsers()) {
      Operation *own = user;
      while (own->getBlock() != place->getBlock())
        if (own = own->getParentOp(); !isa<scf::IfOp>(own))
          return std::nullopt;
      int64_t number = numbers.at(user);
      span = span ? Span{std::min(span->first, number), std::max(span->last, number)} : Span{number, number};
      for (Value result : user->getResults())
        if (isa<TokenType>(result.getType()))
          values.push_back(result);
    }
  return span;
}

struct AllocateSharedPass : attn::tile::impl::AllocateSharedBase<AllocateSharedPass> {
  using Base::Base;

  void runOnOperation() final {
    KernelOp kernel = getOperation();
    int64_t bytes = 0;
    // What bulk copies and wide loads want, or what a swizzle of address bits does.
    auto allocate = [&](AllocOp place) {
      auto type = cast<PlaceTypeInterface>(place.getType());
      bytes = llvm::alignTo(bytes, type.getSharedAlignment());
      place.setOffset(bytes);
      bytes += type.getSharedBytes();
    };
    SmallVector<AllocOp> rings;
    kernel.walk([&](AllocOp place) {
      if (isa<RingType>(place.getType()))
        rings.push_back(place);
    });
    for (AllocOp place : rings)
      allocate(place);
    for (AllocOp place : rings) {
      place.setBarriers(bytes);
      bytes += cast<RingType>(place.getType()).getBarrierBytes();
    }
    SmallVector<Lot> lots;
    DenseMap<Operation *, int64_t> numbers;
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { numbers[op] = numbers.size(); });
    kernel.walk([&](AllocOp place) {
      if (auto type = dyn_cast<SharedType>(place.getType())) {
        std::optional<Span> span = spanOf(place, numbers);
        for (Lot &lot : lots)
          if (span && !type.isSwizzled() && lot.bytes >= type.getSharedBytes() && lot.block == place->getBlock() &&
              lot.last < span->first) {
            place.setOffset(lot.offset);
            lot.last = span->last;
            return;
          }
        allocate(place);
        if (span && !type.isSwizzled())
          lots.push_back({int64_t(*place.getOffset()), type.getSharedBytes(), place->getBlock(), span->last});
      } else if (!isa<RingType>(place.getType()) && cast<PlaceTypeInterface>(place.getType()).getSharedBytes() > 0) {
        allocate(place);
      }
    });
    if (rings.empty())
      bytes = llvm::alignTo(bytes, 128);
    kernel.setSharedBytes(bytes);
    if (bytes > limit) {
      kernel.emitError("expected at most ")
          << limit.getValue() << " bytes of shared memory, got: " << bytes << " with " << kernel.getSchedule();
      signalPassFailure();
    }
  }
};
} // namespace
