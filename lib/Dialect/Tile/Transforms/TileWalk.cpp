// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileWalk.h"
#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;
using namespace attn::tile;

WaitOp attn::tile::soleWait(Value token) {
  auto wait = token.hasOneUse() ? dyn_cast<WaitOp>(*token.user_begin()) : WaitOp();
  return wait && wait.getTokens().size() == 1 ? wait : WaitOp();
}

bool attn::tile::isForward(KvLoopOp loop) {
  return llvm::none_of(loop.getBody().front(), llvm::IsaPred<ProbabilitiesOp>);
}

SetVector<Operation *> attn::tile::sliceOf(Operation *op) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.filter = [&](Operation *other) { return other->getBlock() == op->getBlock(); };
  options.inclusive = true;
  options.omitUsesFromAbove = false; // the region of a mask uses scalars, too
  (void)getBackwardSlice(op, &slice, options);
  return slice;
}

/// The tile that `ofRun` returns for the first non-empty run of `runs`.
template <typename Runs, typename OfRun> static TileOfWalk select(Location loc, Runs runs, OpBuilder &b, OfRun ofRun) {
  TileOfWalk found;
  for (const KvLoopOp::Run &run : runs) {
    Value begin = run.bounds.front(), end = run.bounds.back(), tile = ofRun(begin, end);
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, begin, end);
    found.tile = found.tile ? arith::SelectOp::create(b, loc, some, tile, found.tile) : tile;
    found.any = found.any ? arith::OrIOp::create(b, loc, some, found.any) : some;
  }
  return found;
}

TileOfWalk attn::tile::firstTile(KvLoopOp loop, OpBuilder &b) {
  auto runs = loop.getRunList();
  return select(loop.getLoc(), llvm::reverse(runs), b, [](Value begin, Value) { return begin; });
}

TileOfWalk attn::tile::lastTile(KvLoopOp loop, OpBuilder &b) {
  Value one = arith::ConstantIntOp::create(b, loop.getLoc(), 1, 32);
  return select(loop.getLoc(), loop.getRunList(), b,
                [&](Value, Value end) { return arith::SubIOp::create(b, loop.getLoc(), end, one).getResult(); });
}

int64_t attn::tile::registersOfFragments(KernelOp kernel) {
  int64_t bits = 0;
  kernel.walk([&](AllocOp place) {
    if (auto frag = dyn_cast<FragType>(place.getType()))
      bits += frag.getRows() * frag.getCols() * 32;
    if (auto operand = dyn_cast<RegisterOperandType>(place.getType()))
      bits += operand.getRows() * operand.getCols() * operand.getElement().getIntOrFloatBitWidth();
  });
  return bits / 32 / (32 * kernel.getSchedule().getWarps());
}
