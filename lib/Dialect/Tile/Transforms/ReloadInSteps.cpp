// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"

namespace attn::tile {
#define GEN_PASS_DEF_RELOADINSTEPS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// Is the operand used? Probabilities use the position of scores only if a modifier does.
static bool isWanted(OpOperand &use) {
  auto probabilities = dyn_cast<ProbabilitiesOp>(use.getOwner());
  if (!probabilities || (use.get() != probabilities.getRow0() && use.get() != probabilities.getCol0()))
    return true;
  auto asks = [](Region &region) {
    return !region.empty() &&
           llvm::any_of(region.getArguments().slice(1, 3), [](BlockArgument at) { return !at.use_empty(); });
  };
  return asks(probabilities.getModify()) || asks(probabilities.getSmall());
}

/// Loop bounds occupy a register anyway.
static bool bounds(Value word, scf::ForOp loop) {
  return llvm::any_of(word.getUses(), [&](OpOperand &use) {
    auto inner = dyn_cast<scf::ForOp>(use.getOwner());
    return inner && loop->isAncestor(inner);
  });
}

/// The enclosing op of `user` directly within a loop or branch: the region of another op is printed as a function, and
/// its captures are computed before it.
static Operation *statementOf(Operation *user) {
  while (!isa<scf::ForOp, scf::IfOp>(user->getParentOp()))
    user = user->getParentOp();
  return user;
}

static void reloadIn(scf::ForOp loop, PersistentLoopOp consumer) {
  for (BlockArgument word : consumer.getBody().getArguments()) {
    if (bounds(word, loop))
      continue;
    DenseMap<Block *, Operation *> first; // the first user in each block of the step
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : word.getUses())
      if (loop->isProperAncestor(use.getOwner()) && isWanted(use)) {
        Operation *user = statementOf(use.getOwner());
        Operation *&earliest = first[user->getBlock()];
        if (!earliest || user->isBeforeInBlock(earliest))
          earliest = user;
        uses.push_back(&use);
      }
    DenseMap<Block *, Value> reloaded;
    for (auto [block, user] : first) {
      OpBuilder b(user);
      Location named = NameLoc::get(b.getStringAttr(PersistentLoopOp::nameOf(word)), consumer.getLoc());
      reloaded[block] = ReloadWorkOp::create(b, named, b.getI32Type(), consumer.getMailbox(), word.getArgNumber());
    }
    for (OpOperand *use : uses)
      use->set(reloaded[statementOf(use->getOwner())->getBlock()]);
  }
}

namespace {
struct ReloadInStepsPass : attn::tile::impl::ReloadInStepsBase<ReloadInStepsPass> {
  using Base::Base;
  void runOnOperation() final {
    if (auto roles = getOperation().getRoles(); !roles || !roles.getDqColumns())
      return;
    getOperation().walk([](RolesOp roles) {
      auto consumer = *roles.getConsumer().front().getOps<PersistentLoopOp>().begin();
      // The message is not yet released at this point only if words are also reloaded after the loop.
      if (consumer.getBody().front().empty() || !isa<ReleaseWorkOp>(consumer.getBody().front().back()))
        return;
      consumer.walk([&](scf::ForOp loop) {
        bool innermost = loop.getBody()->getOps<scf::ForOp>().empty();
        if (innermost)
          reloadIn(loop, consumer);
      });
    });
  }
};
} // namespace
