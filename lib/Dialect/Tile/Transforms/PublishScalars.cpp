// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PublishScalars.h"
#include "TileWalk.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn::tile;

/// Scalars that follow from the number of the work tile and that other ops use.
static SmallVector<Value> scalarsToPublish(PersistentLoopOp program) {
  Block &body = program.getBody().front();
  SetVector<Operation *> known;
  auto isKnown = [&](Value value) { return value == body.getArgument(0) || known.contains(value.getDefiningOp()); };
  DenseSet<Operation *> own; // differs between warpgroups
  for (Operation &op : body) {
    if (op.getNumRegions() || op.getNumResults() == 0 || !isMemoryEffectFree(&op))
      continue;
    auto index = dyn_cast<IndexOp>(op);
    if ((index && index.isWarpgroup()) ||
        llvm::any_of(op.getOperands(), [&](Value operand) { return own.contains(operand.getDefiningOp()); }))
      own.insert(&op);
    else if (llvm::any_of(op.getOperands(), isKnown))
      known.insert(&op);
  }
  // Only 32-bit integers are published; pointers and booleans are recomputed by their users.
  auto isWord = [](Value value) { return value.getType().isInteger(32); };
  DenseSet<Operation *> again;
  auto isUsed = [&](Value value) {
    return llvm::any_of(value.getUsers(),
                        [&](Operation *user) { return !known.contains(user) || again.contains(user); });
  };
  for (Operation *op : llvm::reverse(known))
    if (llvm::any_of(op->getResults(), [&](Value result) { return !isWord(result) && isUsed(result); }))
      again.insert(op);
  SmallVector<Value> published;
  for (Operation *op : known)
    llvm::copy_if(op->getResults(), std::back_inserter(published), [&](Value v) { return isWord(v) && isUsed(v); });
  // A mailbox has 32 words, one of them the number of the work tile. Each role computes the rest itself.
  published.resize(std::min<size_t>(published.size(), 31));
  return published;
}

bool attn::tile::hasManyArithOps(Block &block) {
  constexpr int64_t many = 100;
  return llvm::count_if(block, [](Operation &op) { return isa<arith::ArithDialect>(op.getDialect()); }) > many;
}

void attn::tile::hoistScalars(PersistentLoopOp program, bool scarce) {
  for (auto branch : program.getBody().getOps<scf::IfOp>())
    if (Block *block = branch.thenBlock(); scarce || hasManyArithOps(*block))
      for (Operation &op : llvm::make_early_inc_range(*block))
        if (isa<arith::ArithDialect>(op.getDialect()) && op.getResult(0).getType().getIntOrFloatBitWidth() <= 32 &&
            llvm::none_of(op.getOperands(), [&](Value v) { return v.getParentBlock() == block; }))
          op.moveBefore(branch);
}

void attn::tile::publishScalars(PersistentLoopOp producer, PersistentLoopOp consumer, const IRMapping &inProducer) {
  SmallVector<Value> published = scalarsToPublish(consumer), words = {producer.getBody().getArgument(0)};
  OpBuilder b(producer->getParentOfType<RolesOp>());
  Value mailbox =
      AllocOp::create(b, producer.getLoc(), MailboxType::get(b.getContext(), published.size() + 1), "mailbox");
  // Published before any load: a producer that waits for a free stage before it publishes would wait for consumers that
  // wait for the message.
  Block &program = producer.getBody().front();
  auto work = llvm::find_if(program, [](Operation &op) { return op.getNumRegions() || !isMemoryEffectFree(&op); });
  for (Value value : published) {
    words.push_back(inProducer.lookup(value));
    for (Operation *scalar : sliceOf(words.back().getDefiningOp()))
      if (work != program.end() && !scalar->isBeforeInBlock(&*work))
        scalar->moveBefore(&*work);
    Location named = value.getLoc();
    if (auto find = value.getDefiningOp<FindSequenceOp>())
      named = NameLoc::get(b.getStringAttr(find.nameOf(cast<OpResult>(value))), consumer.getLoc());
    value.replaceAllUsesWith(consumer.getBody().front().addArgument(value.getType(), named));
  }
  b.setInsertionPoint(&program, work);
  PublishWorkOp::create(b, producer.getLoc(), mailbox, words);
  producer.getMailboxMutable().assign(mailbox);
  consumer.getMailboxMutable().assign(mailbox);
  consumer.getQueueMutable().clear();
}
