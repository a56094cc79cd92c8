// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Software-pipelines the loop of a KV tile over query tiles where a dQ MMA warpgroup computes dQ. As roles leave it, a
// step begins with s = K Q^T and ends with dK += dS Q, and nothing runs under either product. The pipelined step ends
// with both: s of the next query tile is issued first, dK of this one after it, and the exponentials of the next step
// run under dK.
//
// The product for dK is in flight across the back edge, so its token is carried; the Q tile is advanced, not released,
// and the next step releases it. s of the first tile is issued before the loop. Without a next tile, s of another tile
// is computed and ignored: a product within a branch would have to be waited for there.
//
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {
#define GEN_PASS_DEF_OVERLAPGRADIENTS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// The body as roles leave it: wait for Q, s = K Q^T, wait, ..., store dS, commit, ..., dK += dS Q, wait, release Q.
struct GradientsBody {
  ConsumerWaitOp waitQ;
  MmaAbtOp scores;
  WaitOp waitScores;
  ProducerCommitOp commit;
  MmaAbOp product;
  WaitOp waitProduct;
  ConsumerReleaseOp release;
  ConvertOp convert; ///< the first one; it overwrites the operand of `product`
};
} // namespace

static std::optional<GradientsBody> matchGradients(KvLoopOp loop) {
  GradientsBody body;
  Block &block = loop.getBody().front();
  if (!loop.getCarried().empty())
    return std::nullopt;
  for (Operation &op : block.without_terminator()) {
    if (auto qk = dyn_cast<MmaAbtOp>(op); qk && !body.scores)
      body.scores = qk;
    if (auto convert = dyn_cast<ConvertOp>(op); convert && !body.convert)
      body.convert = convert;
    if (auto commit = dyn_cast<ProducerCommitOp>(op))
      body.commit = commit;
    if (auto pv = dyn_cast<MmaAbOp>(op))
      body.product = pv; // the last one
  }
  if (!body.scores || !body.convert || !body.commit || !body.product)
    return std::nullopt;
  body.waitQ = body.scores.getK().getDefiningOp<ConsumerWaitOp>();
  body.waitScores = soleWait(body.scores.getToken()), body.waitProduct = soleWait(body.product.getToken());
  if (!body.waitQ || body.product.getV() != body.waitQ.getTile() || body.product.getP() != body.convert.getP())
    return std::nullopt;
  for (Operation *user : body.waitQ.getRing().getUsers())
    if (auto release = dyn_cast<ConsumerReleaseOp>(user); release && release->getBlock() == &block)
      body.release = release;
  Operation *order[] = {body.waitQ,  body.scores,  body.waitScores,  body.convert,
                        body.commit, body.product, body.waitProduct, body.release};
  if (!llvm::all_of(order, [&](Operation *op) { return op && op->getBlock() == &block; }) ||
      !llvm::is_sorted(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); }))
    return std::nullopt;
  return body;
}

/// Computes the address of the warpgroup's rows of K and V once, before the loop.
static void findWarpgroupRows(KvLoopOp loop) {
  loop.walk([&](MmaAbtOp product) {
    auto wait = product.getQ().getDefiningOp<ConsumerWaitOp>();
    if (!wait || loop->isProperAncestor(wait))
      return;
    OpBuilder b(wait->getBlock(), std::next(wait->getIterator()));
    auto rows = WarpgroupRowsOp::create(b, wait.getLoc(), wait.getTile());
    product.getQMutable().assign(rows.getRows());
    product.setRecomputed(false);
  });
}

namespace {
/// Writes the pipelined loop.
class GradientOverlap {
public:
  GradientOverlap(KvLoopOp loop, GradientsBody body) : loop(loop), body(body), loc(loop.getLoc()), b(loop) {
    for (auto product : loop.getBody().getOps<MmaAbtOp>())
      if (product != body.scores)
        grads = product;
    // `values` stays null with a loop over heads, outside of which V is waited for, and with a single stage of K, where
    // the next work tile waits for the end of this one anyway.
    auto waitOf = [&](MmaAbtOp product) {
      auto wait = product ? wholeOf(product.getQ()).getDefiningOp<ConsumerWaitOp>() : ConsumerWaitOp();
      return wait && wait->getBlock() == loop->getBlock() ? wait : ConsumerWaitOp();
    };
    if (ConsumerWaitOp keys = waitOf(body.scores); keys && cast<RingType>(keys.getRing().getType()).getStages() > 1)
      values = waitOf(grads);
  }

  void write() {
    TileOfWalk first = firstTile(loop, b);
    map.map(loop.getTile(), first.tile);
    beginScores(first.any, wholeOf(body.scores.getQ()));
    delayValues();
    WaitOp::create(b, loc, map.lookup(body.scores.getToken()));

    Value none = NullProductOp::create(b, loc);
    auto pipelined = KvLoopOp::create(b, loc, none.getType(), loop.getBounds(), loop.getOwn(), none,
                                      loop.getTestsAttr(), loop.getOneBody());
    writeBody(pipelined, first.tile);
    WaitOp::create(b, loc, pipelined.getResults().front());
    ConsumerReleaseOp::create(b, loc, body.waitQ.getRing(), /*passed=*/true, first.any, /*unless=*/Value());
    loop.erase();
  }

private:
  void writeBody(KvLoopOp pipelined, Value first) {
    Block &block = pipelined.getBody().emplaceBlock();
    Block &old = loop.getBody().front();
    block.addArguments(old.getArgumentTypes(), SmallVector<Location>(3, loc));
    Value before = block.addArgument(body.product.getToken().getType(), loc);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&block);
    map = IRMapping();
    map.map(old.getArguments(), block.getArguments().take_front(3));
    Value ring = body.waitQ.getRing();
    SmallVector<Value> statistics;
    for (Operation &op : old.without_terminator()) {
      if (isa_and_nonnull<ConsumerWaitOp, MmaAbtOp, WaitOp, MmaAbOp, ConsumerReleaseOp, ProducerCommitOp>(&op) &&
          isMoved(&op))
        continue;
      if (&op == body.convert) {
        Value later = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, pipelined.getTile(), first);
        WaitOp::create(b, loc, before);
        ConsumerReleaseOp::create(b, loc, ring, /*passed=*/true, later, /*unless=*/Value());
      }
      if (auto release = dyn_cast<ConsumerReleaseOp>(op);
          release && isa<RowStatisticsType>(release.getRing().getType().getTile())) {
        statistics.push_back(release.getRing());
        continue;
      }
      b.clone(op, map);
      if (values && isa<WaitOp>(op) && soleWait(grads.getToken()) == &op &&
          cast<RingType>(values.getRing().getType()).getStages() == 1)
        ConsumerReleaseOp::early(b, loc, values.getRing(),
                                 pipelined.getMore()); // V of the next work tile is loaded meanwhile
    }
    Value passed = ConsumerAdvanceOp::create(b, loc, ring);
    map.map(loop.getTile(), pipelined.getNext());
    beginScores(pipelined.getMore(), passed);
    map.map(body.waitQ.getTile(), passed);
    Value product = cast<MmaAbOp>(b.clone(*body.product, map)).getToken();
    b.clone(*body.commit, map);
    for (Value ring : statistics) // the fence of the commit covers these, too
      ConsumerReleaseOp::create(b, loc, ring, /*passed=*/false, /*when=*/Value(), /*unless=*/Value(), /*fenced=*/true);
    WaitOp::create(b, loc, map.lookup(body.scores.getToken()));
    YieldOp::create(b, loc, product);
  }

  /// Moves the wait for V and its users after the issue of the first S.
  void delayValues() {
    if (!values)
      return;
    SmallVector<Operation *> ops = {values};
    for (Operation *user : values.getTile().getUsers())
      if (user->getBlock() == loop->getBlock())
        ops.push_back(user);
    llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : ops)
      op->moveBefore(loop);
  }

  bool isMoved(Operation *op) {
    return llvm::is_contained(std::initializer_list<Operation *>{body.waitQ, body.scores, body.waitScores, body.commit,
                                                                 body.product, body.waitProduct, body.release},
                              op);
  }

  /// Issues S of the tile that `map` has for the loop's, if there is `more`.
  void beginScores(Value more, Value otherwise) {
    auto wait = ConsumerWaitOp::create(b, body.waitQ.getLoc(), body.waitQ.getRing(), more, otherwise);
    map.map(body.waitQ.getTile(), wait.getTile());
    map.map(body.scores.getToken(), cast<MmaAbtOp>(b.clone(*body.scores, map)).getToken());
  }

  KvLoopOp loop;
  GradientsBody body;
  MmaAbtOp grads;        ///< the product for dP = V dO^T; null if there is none
  ConsumerWaitOp values; ///< the wait for V, if it is moved after the first S and V is released early; else null
  Location loc;
  OpBuilder b;
  IRMapping map;
};

struct OverlapGradientsPass : attn::tile::impl::OverlapGradientsBase<OverlapGradientsPass> {
  using Base::Base;

  void runOnOperation() final {
    if (auto roles = getOperation().getRoles(); !roles || !roles.getDqColumns())
      return;
    SmallVector<KvLoopOp> loops;
    getOperation().walk(
        [&](RolesOp roles) { roles.getConsumer().walk([&](KvLoopOp loop) { loops.push_back(loop); }); });
    for (KvLoopOp loop : loops) {
      std::optional<GradientsBody> body = matchGradients(loop);
      if (!body) {
        loop.emitError("expected scores of a query tile first, and what follows from them stored into a ring and "
                       "multiplied with it last");
        return signalPassFailure();
      }
      findWarpgroupRows(loop);
      GradientOverlap(loop, *body).write();
    }
  }
};
} // namespace
