// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_FUSEMODIFY
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// The modifier that is the last to touch the scores before they are weighed, in the
/// same block.
static ModifyOp lastBefore(SoftmaxConvertOp weigh) {
  Operation *op = weigh->getPrevNode();
  auto touches = [&](Operation *user) { return op->isAncestor(user); };
  while (op && llvm::none_of(weigh.getS().getUsers(), touches))
    op = op->getPrevNode();
  return dyn_cast_or_null<ModifyOp>(op);
}

/// Is the tile one of a few? A segment with tests holds the ends of a walk, and
/// `tile.online_softmax` is left to its first tile. One body for all has its test in a branch.
static bool isRare(ModifyOp modify) {
  return llvm::any_of(*modify->getBlock(), [&](Operation &op) {
    return isa<ApplyMaskOp, OnlineSoftmaxOp>(op) && op.getOperand(0) == modify.getS();
  });
}

/// Have maxima room for scores above them (`tile.softmax_convert`: 2^8) and for those of most rows below the largest
/// small score?
static bool leavesRoom(ModifyOp modify, SoftmaxConvertOp weigh) {
  return modify.getBecomes() && modify.getBecomes()->convertToDouble() / llvm::numbers::ln2 >= 8 + 8;
}

namespace {
struct FuseModifyPass : attn::tile::impl::FuseModifyBase<FuseModifyPass> {
  using Base::Base;
  void runOnOperation() final {
    bool weighs = false;
    getOperation().walk([&](SoftmaxConvertOp weigh) {
      weighs = true;
      ModifyOp modify = lastBefore(weigh);
      if (!modify || !weigh.getModify().empty())
        return;
      if (!modify.getQ0().getType().isInteger(32)) // rows of several heads: there is no such verb
        return;
      weigh.getAtMutable().assign({modify.getQ0(), modify.getK0()});
      weigh.setWithinAttr(modify.getWithinAttr());
      if (leavesRoom(modify, weigh))
        weigh.setBecomesAttr(modify.getBecomesAttr());
      weigh.getSmall().takeBody(modify.getSmall());
      weigh.getModify().takeBody(modify.getBody());
      modify.erase();
    });
    getOperation().walk([&](ModifyOp modify) {
      if (!weighs || !modify.getWithin() || !isRare(modify))
        return;
      modify.removeWithinAttr();
      modify.removeBecomesAttr();
      modify.getSmall().getBlocks().clear();
    });
  }
};
} // namespace
