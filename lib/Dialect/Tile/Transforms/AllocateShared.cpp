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
/// Shared memory that tiles reuse if they are never live at the same time: all uses of each are in one block and its
/// conditionals, and those of one precede those of the next.
struct ReusableRange {
  int64_t offset, bytes;
  Block *block;
  int64_t last;
};

/// The first and last use of an allocation, as op numbers in program order.
struct Span {
  int64_t first, last;
};

/// The span of all uses of an allocation and of tokens of copies into or products from it; none if a use may run more
/// than once for each run of the allocation's block.
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
    // Functions that are called use the bytes that the kernel has already.
    bool calls = kernel.walk([](CallOp) { return WalkResult::interrupt(); }).wasInterrupted();
    int64_t bytes = calls ? int64_t(kernel.getSharedBytes().value_or(0)) : 0;
    // Alignment for TMA, vector loads and address swizzles.
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
    SmallVector<ReusableRange> reusable;
    DenseMap<Operation *, int64_t> numbers;
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { numbers[op] = numbers.size(); });
    kernel.walk([&](AllocOp place) {
      if (auto type = dyn_cast<SharedType>(place.getType())) {
        std::optional<Span> span = spanOf(place, numbers);
        for (ReusableRange &range : reusable)
          if (span && !type.isSwizzled() && range.bytes >= type.getSharedBytes() && range.block == place->getBlock() &&
              range.last < span->first) {
            place.setOffset(range.offset);
            range.last = span->last;
            return;
          }
        allocate(place);
        if (span && !type.isSwizzled())
          reusable.push_back({int64_t(*place.getOffset()), type.getSharedBytes(), place->getBlock(), span->last});
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
