// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {
#define GEN_PASS_DEF_PIPELINEKV
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// The body as converted: copy K, wait, s = Q K^T, wait, ..., copy V, wait, acc += P V, wait.
struct CopiesBody {
  CopyAsyncOp copyK, copyV;
  WaitOp waitK, waitV;
  MmaAbtOp qk;
  WaitOp waitQk;
};
} // namespace

static std::optional<CopiesBody> matchCopies(KvLoopOp loop) {
  CopiesBody b;
  MmaAbOp pv;
  for (Operation &op : loop.getBody().front()) {
    if (auto qk = dyn_cast<MmaAbtOp>(op))
      b.qk = qk;
    if (auto product = dyn_cast<MmaAbOp>(op))
      pv = product;
  }
  if (!b.qk || !pv || loop.getNumResults())
    return std::nullopt;
  for (auto copy : loop.getBody().getOps<CopyAsyncOp>()) {
    if (wholeOf(copy.getDst()) == wholeOf(b.qk.getK()))
      b.copyK = copy;
    if (wholeOf(copy.getDst()) == wholeOf(pv.getV()))
      b.copyV = copy;
  }
  if (!b.copyK || !b.copyV)
    return std::nullopt;
  b.waitK = soleWait(b.copyK.getToken());
  b.waitV = soleWait(b.copyV.getToken());
  b.waitQk = soleWait(b.qk.getToken());
  if (!b.waitK || !b.waitV || !b.waitQk)
    return std::nullopt;
  return b;
}

/// Clones `copy` for tile `tile`, conditional on `when`; returns its token.
static Value copyOf(CopyAsyncOp copy, KvLoopOp loop, OpBuilder &b, Value tile, Value when) {
  IRMapping map;
  map.map(loop.getTile(), tile);
  for (Operation *op : sliceOf(copy))
    b.clone(*op, map);
  auto clone = cast<CopyAsyncOp>(map.lookup(copy.getToken()).getDefiningOp());
  clone.getWhenMutable().assign(when);
  return clone.getToken();
}

/// Moves waits for Q after all copies issued before the loop, so that these are in flight together.
static void waitForQueriesLast(KvLoopOp loop) {
  SmallVector<Operation *> waiting;
  for (Operation &op : *loop->getBlock())
    if (isa<WaitOp, ScaleOp, LoadOperandOp>(op) && op.isBeforeInBlock(loop))
      waiting.push_back(&op);
  for (Operation *op : waiting)
    op->moveBefore(loop);
}

/// Rebuilds the loop with carried tokens.
static void carry(KvLoopOp loop, ValueRange tokens) {
  OpBuilder b(loop);
  auto pipelined = KvLoopOp::create(b, loop.getLoc(), tokens.getTypes(), loop.getBounds(), loop.getOwn(), tokens,
                                    loop.getTests(), loop.getOneBody());
  pipelined.getBody().takeBody(loop.getBody());
  // Nothing is in flight after the loop: without a next tile no copy was issued.
  WaitOp::create(b, loop.getLoc(), pipelined.getResults());
  loop.erase();
}

/// For short sequences, which mostly have one KV tile: Q, K and V are in flight together, and co-resident CTAs hide
/// each other's latency.
static void loadTogether(KvLoopOp loop, CopiesBody body) {
  OpBuilder b(loop);
  auto [first, any] = firstTile(loop, b);
  SmallVector<Value> tokens = {copyOf(body.copyK, loop, b, first, any), copyOf(body.copyV, loop, b, first, any)};
  waitForQueriesLast(loop);
  Block &block = loop.getBody().front();
  auto yield = cast<YieldOp>(block.getTerminator());
  b.setInsertionPoint(yield);
  BarrierOp::create(b, loop.getLoc()); // all warps are done with this tile
  for (CopyAsyncOp copy : {body.copyK, body.copyV})
    yield.getValuesMutable().append(copyOf(copy, loop, b, loop.getNext(), loop.getMore()));
  SmallVector<Value> carried;
  for (Value token : tokens)
    carried.push_back(block.addArgument(token.getType(), loop.getLoc()));
  body.waitK->moveBefore(&block, block.begin());
  body.waitK.getTokensMutable().assign(carried);
  body.waitV.erase();
  body.copyK.erase();
  body.copyV.erase();
  carry(loop, tokens);
}

static void pipeline(KvLoopOp loop, CopiesBody body) {
  OpBuilder b(loop);
  auto [first, any] = firstTile(loop, b);
  Value firstToken = copyOf(body.copyK, loop, b, first, any);
  waitForQueriesLast(loop);

  // V(j): its copy and the scalars it needs move up after the wait for K(j).
  Block &block = loop.getBody().front();
  body.waitK->moveBefore(&block, block.begin());
  Operation *after = body.waitK;
  for (Operation *op : sliceOf(body.copyV)) {
    op->moveAfter(after);
    after = op;
  }
  // K(next) is copied after the wait for V(j), which follows the product: the barrier of that wait orders all warps'
  // reads of K(j) before the copy.
  body.waitV->moveAfter(body.waitQk);
  b.setInsertionPointAfter(body.waitV);
  Value nextToken = copyOf(body.copyK, loop, b, loop.getNext(), loop.getMore());

  Value carried = block.addArgument(firstToken.getType(), loop.getLoc());
  body.waitK.getTokensMutable().assign(carried);
  cast<YieldOp>(block.getTerminator()).getValuesMutable().append(nextToken);
  body.copyK.erase();
  carry(loop, firstToken);
}

namespace {
struct PipelineKvPass : attn::tile::impl::PipelineKvBase<PipelineKvPass> {
  using Base::Base;

  void runOnOperation() final {
    KernelOp kernel = getOperation();
    if (kernel.getTarget() != "sm_80" ||
        kernel.getSchedule().getUnit() == WorkUnit::warp_per_sequence) // its loads are asynchronous already
      return;
    WalkResult result = kernel.walk([&](KvLoopOp loop) {
      if (!isForward(loop))
        return WalkResult::advance();
      std::optional<CopiesBody> body = matchCopies(loop);
      if (!body) {
        loop.emitError("expected one product with K and one with V, each behind its copy and waits");
        return WalkResult::interrupt();
      }
      kernel.isPerSequenceWithoutRoles() ? loadTogether(loop, *body) : pipeline(loop, *body);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
