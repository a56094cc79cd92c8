// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn::tile {
#define GEN_PASS_DEF_RELOADWORK
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {

/// Reloads mailbox words after a consumer's loop, so that they occupy no registers during the loop.
class Reloaded {
public:
  Reloaded(PersistentLoopOp consumer, Operation *loop) : consumer(consumer), b(loop->getContext()) {
    b.setInsertionPointAfter(loop);
  }

  /// The value recomputed from reloaded words, or `value` itself if it follows from none.
  Value of(Value value) {
    if (Value known = reloaded.lookupOrNull(value))
      return known;
    Value again = value;
    if (auto word = dyn_cast<BlockArgument>(value)) {
      if (word.getOwner() == &consumer.getBody().front()) {
        Location named = NameLoc::get(b.getStringAttr(PersistentLoopOp::nameOf(word)), consumer.getLoc());
        again = ReloadWorkOp::create(b, named, b.getI32Type(), consumer.getMailbox(), word.getArgNumber());
      }
    } else if (Operation *op = value.getDefiningOp(); consumer->isProperAncestor(op) && op->getNumRegions() == 0 &&
                                                      isMemoryEffectFree(op) && !isa<LoadOp>(op)) {
      IRMapping operands;
      auto index = dyn_cast<IndexOp>(op);
      bool follows = index && index.isWarpgroup(); // it occupies a register, too
      for (Value operand : op->getOperands()) {
        operands.map(operand, of(operand));
        follows |= operands.lookup(operand) != operand;
      }
      if (follows)
        again = b.clone(*op, operands)->getResult(cast<OpResult>(value).getResultNumber());
    }
    reloaded.map(value, again);
    return again;
  }

private:
  PersistentLoopOp consumer;
  OpBuilder b;
  IRMapping reloaded;
};

bool isBehind(Value value, Operation *loop) {
  Operation *definition = value.getDefiningOp();
  Operation *around = definition ? loop->getBlock()->findAncestorOpInBlock(*definition) : nullptr;
  return around && loop->isBeforeInBlock(around);
}

/// Reloads or recomputes what ops after the loop use.
void reloadBehind(PersistentLoopOp consumer, Operation *loop) {
  // NOTE: collected first, since reloads are inserted after the loop, too.
  SmallVector<Operation *> behind;
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    behind.push_back(op);
  Reloaded reloaded(consumer, loop);
  for (Operation *op : behind)
    op->walk([&](Operation *user) {
      for (OpOperand &operand : user->getOpOperands())
        if (!isBehind(operand.get(), loop))
          operand.set(reloaded.of(operand.get()));
    });
}

struct ReloadWorkPass : attn::tile::impl::ReloadWorkBase<ReloadWorkPass> {
  using Base::Base;
  void runOnOperation() final {
    getOperation().walk([&](RolesOp roles) {
      constexpr int64_t left = 40; // registers that a loop needs beside fragments
      bool isFull = int64_t(roles.getConsumerRegisters()) - registersOfFragments(getOperation()) < left;
      if (!getOperation().getKeys() && !isFull)
        return;
      auto consumer = *roles.getConsumer().front().getOps<PersistentLoopOp>().begin();
      Operation *loop = nullptr;
      consumer.walk([&](KvLoopOp walk) { loop = walk; });
      if (!loop)
        return;
      if (auto heads = loop->getParentOfType<scf::ForOp>())
        loop = heads;
      reloadBehind(consumer, loop);
      if (!llvm::any_of(consumer.getMailbox().getUsers(), llvm::IsaPred<ReloadWorkOp>))
        return;
      OpBuilder b = OpBuilder::atBlockEnd(&consumer.getBody().front());
      ReleaseWorkOp::create(b, consumer.getLoc(), consumer.getMailbox());
    });
  }
};
} // namespace
