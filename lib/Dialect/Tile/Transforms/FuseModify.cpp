// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_FUSEMODIFY
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// The modifier that is the last op to change the scores before `tile.softmax_convert`, in the same block.
static ModifyOp lastBefore(SoftmaxConvertOp convert) {
  Operation *op = convert->getPrevNode();
  auto touches = [&](Operation *user) { return op->isAncestor(user); };
  while (op && llvm::none_of(convert.getS().getUsers(), touches))
    op = op->getPrevNode();
  return dyn_cast_or_null<ModifyOp>(op);
}

/// Does the modifier run for few tiles only? Segments with masks are the ends of a loop, and `tile.online_softmax` is
/// used for the first tile only. (With one body for all tiles, the mask is in a branch.)
static bool isRare(ModifyOp modify) {
  return llvm::any_of(*modify->getBlock(), [&](Operation &op) {
    return isa<ApplyMaskOp, OnlineSoftmaxOp>(op) && op.getOperand(0) == modify.getS();
  });
}

/// Is the modifier's limit at least 16 in base 2: 8 for scores above a stale row maximum (`tile.softmax_convert`: 2^8),
/// and 8 for those of most rows below the largest small score?
static bool leavesRoom(ModifyOp modify, SoftmaxConvertOp convert) {
  return modify.getBecomes() && modify.getBecomes()->convertToDouble() / llvm::numbers::ln2 >= 8 + 8;
}

namespace {
struct FuseModifyPass : attn::tile::impl::FuseModifyBase<FuseModifyPass> {
  using Base::Base;
  void runOnOperation() final {
    bool converts = false;
    getOperation().walk([&](SoftmaxConvertOp convert) {
      converts = true;
      ModifyOp modify = lastBefore(convert);
      if (!modify || !convert.getModify().empty())
        return;
      if (!modify.getQ0().getType().isInteger(32)) // no kernel helper supports packed heads
        return;
      convert.getAtMutable().assign({modify.getQ0(), modify.getK0()});
      convert.setWithinAttr(modify.getWithinAttr());
      if (leavesRoom(modify, convert))
        convert.setBecomesAttr(modify.getBecomesAttr());
      convert.getSmall().takeBody(modify.getSmall());
      convert.getModify().takeBody(modify.getBody());
      modify.erase();
    });
    getOperation().walk([&](ModifyOp modify) {
      if (!converts || !modify.getWithin() || !isRare(modify))
        return;
      modify.removeWithinAttr();
      modify.removeBecomesAttr();
      modify.getSmall().getBlocks().clear();
    });
  }
};
} // namespace
