// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Releases.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

Operation *attn::tile::endOf(Operation *user) {
  return isProduct(user) && user->hasOneUse() ? *user->user_begin() : user;
}

Operation *attn::tile::lastIn(Block &block, ArrayRef<Operation *> ends) {
  Operation *last = nullptr;
  for (Operation *end : ends)
    if (Operation *here = block.findAncestorOpInBlock(*end); here && (!last || last->isBeforeInBlock(here)))
      last = here;
  return last;
}

/// Releases the ring after its last reader in a block, or within the branches or the scf loop that the last reader is
/// in; a release within loops is conditional on their last iteration. (Nothing is released within KV loops: these are
/// pipelined later by passes that place releases themselves.)
static void releaseIn(Block &block, Value ring, ArrayRef<Operation *> ends, SmallVector<scf::ForOp> loops) {
  Operation *last = lastIn(block, ends);
  if (isa_and_nonnull<scf::IfOp, scf::ForOp>(last)) {
    if (auto loop = dyn_cast<scf::ForOp>(last))
      loops.push_back(loop);
    for (Region &region : last->getRegions())
      if (!region.empty())
        releaseIn(region.front(), ring, ends, loops);
    return;
  }
  if (!last || last->getNumRegions())
    return;
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  Location loc = last->getLoc();
  Value more;
  for (scf::ForOp loop : loops) {
    Value next =
        arith::AddIOp::create(b, NameLoc::get(b.getStringAttr("next"), loc), loop.getInductionVar(), loop.getStep());
    Value turns = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, next, loop.getUpperBound());
    more = more ? arith::OrIOp::create(b, loc, more, turns).getResult() : turns;
  }
  ConsumerReleaseOp::early(b, loc, ring, more ? more : arith::ConstantIntOp::create(b, loc, 0, 1).getResult());
}

void attn::tile::releaseInside(Operation *around, Value ring, ArrayRef<Operation *> ends) {
  if (!isa<scf::ForOp, scf::IfOp>(around) || cast<RingType>(ring.getType()).getStages() != 1)
    return;
  releaseIn(*around->getBlock(), ring, ends, {});
}
