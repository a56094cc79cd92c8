// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves the store of a result after the issue of the next product, so that tensor cores multiply while it is written.
//
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"

namespace attn::tile {
#define GEN_PASS_DEF_OVERLAPSTORES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// Does the op, or one in its regions, access the place, or memory through a pointer?
static bool mayAccess(Operation *op, Value place) {
  return op
      ->walk([&](Operation *inner) {
        auto behavior = dyn_cast<TileOpInterface>(inner);
        bool conflicts = behavior && llvm::any_of(behavior.getAccesses(), [&](const Access &access) {
                           return access.place() == place || isa<PtrType>(access.place().getType());
                         });
        return conflicts ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The ops from the first after the accumulator's product that scales or stores it to `store`, which touch nothing else
/// and compute addresses; empty if other ops are among them.
static SmallVector<Operation *> epilogueOf(StoreOp store) {
  SmallVector<Operation *> epilogue = {store};
  for (Operation *op = store->getPrevNode(); op && !isa<WaitOp>(op); op = op->getPrevNode()) {
    auto scale = dyn_cast<ScaleOp>(op);
    if (scale ? scale.getPlace() != store.getAcc() : !isPure(op))
      return {};
    epilogue.push_back(op);
  }
  std::reverse(epilogue.begin(), epilogue.end());
  return epilogue;
}

/// The next product in the block, if everything up to it leaves the result alone.
static Operation *productAfter(StoreOp store) {
  for (Operation *op = store->getNextNode(); op; op = op->getNextNode()) {
    if (mayAccess(op, store.getAcc()))
      return nullptr;
    if (isProduct(op))
      return op;
  }
  return nullptr;
}

/// Does another op up to `end` use a value that the epilogue computes?
static bool isUsedBefore(ArrayRef<Operation *> epilogue, Operation *end) {
  return llvm::any_of(epilogue, [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *here = end->getBlock()->findAncestorOpInBlock(*user);
      return here && !llvm::is_contained(epilogue, here) && !end->isBeforeInBlock(here);
    });
  });
}

namespace {
struct OverlapStoresPass : attn::tile::impl::OverlapStoresBase<OverlapStoresPass> {
  using Base::Base;

  void runOnOperation() final {
    if (!getOperation().getRoles()) // products of other kernels are not asynchronous
      return;
    SmallVector<StoreOp> stores;
    getOperation().walk([&](StoreOp store) { stores.push_back(store); });
    for (StoreOp store : stores) {
      Operation *product = productAfter(store);
      SmallVector<Operation *> epilogue = epilogueOf(store);
      if (!product || isUsedBefore(epilogue, product))
        continue;
      for (Operation *op : llvm::reverse(epilogue))
        op->moveAfter(product);
    }
  }
};
} // namespace
