// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk of a key tile over query tiles, where a reducer makes dQ. A step as roles leave it begins with the product
// of scores and ends with that of dK, one behind the other, with nothing to do under either. Turned, it ends with both:
// scores of the next query tile are begun first, dK with this one's behind them, and exponentials of the next step run
// under the latter.
//
// dK's product is in flight across the loop's edge, so its token is carried, and its query tile is passed, not
// released: it is given back in the next step. Scores of the first tile come before the loop. Where there is no next
// tile, or none at all, scores of another one are made, and nobody looks at them: a product in a branch would be waited
// for there.
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
/// The body as roles leave it: take Q, s = K Q^T, wait, ..., put dS, publish, ..., dK += dS Q, wait, release Q.
struct Body {
  ConsumerWaitOp take;
  MmaAbtOp scores;
  WaitOp waitScores;
  ProducerCommitOp publish;
  MmaAbOp product;
  WaitOp waitProduct;
  ConsumerReleaseOp release;
  ConvertOp round; ///< the first one, which overwrites what the product reads
};
} // namespace

static std::optional<Body> match(KvLoopOp loop) {
  Body body;
  Block &block = loop.getBody().front();
  if (!loop.getCarried().empty())
    return std::nullopt;
  for (Operation &op : block.without_terminator()) {
    if (auto qk = dyn_cast<MmaAbtOp>(op); qk && !body.scores)
      body.scores = qk;
    if (auto round = dyn_cast<ConvertOp>(op); round && !body.round)
      body.round = round;
    if (auto publish = dyn_cast<ProducerCommitOp>(op))
      body.publish = publish;
    if (auto pv = dyn_cast<MmaAbOp>(op))
      body.product = pv; // the last one
  }
  if (!body.scores || !body.round || !body.publish || !body.product)
    return std::nullopt;
  body.take = body.scores.getK().getDefiningOp<ConsumerWaitOp>();
  body.waitScores = soleWait(body.scores.getToken()), body.waitProduct = soleWait(body.product.getToken());
  if (!body.take || body.product.getV() != body.take.getTile() || body.product.getP() != body.round.getP())
    return std::nullopt;
  for (Operation *user : body.take.getRing().getUsers())
    if (auto release = dyn_cast<ConsumerReleaseOp>(user); release && release->getBlock() == &block)
      body.release = release;
  Operation *order[] = {body.take,    body.scores,  body.waitScores,  body.round,
                        body.publish, body.product, body.waitProduct, body.release};
  if (!llvm::all_of(order, [&](Operation *op) { return op && op->getBlock() == &block; }) ||
      !llvm::is_sorted(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); }))
    return std::nullopt;
  return body;
}

/// The rows of K and V that a warpgroup reads, by an address which it works out once.
static void findWarpgroupRows(KvLoopOp loop) {
  loop.walk([&](MmaAbtOp product) {
    auto take = product.getQ().getDefiningOp<ConsumerWaitOp>();
    if (!take || loop->isProperAncestor(take))
      return;
    OpBuilder b(take->getBlock(), std::next(take->getIterator()));
    auto rows = WarpgroupRowsOp::create(b, take.getLoc(), take.getTile());
    product.getQMutable().assign(rows.getRows());
    product.setRecomputed(false);
  });
}

namespace {
/// Writes the turned loop.
class Overlap {
public:
  Overlap(KvLoopOp loop, Body body) : loop(loop), body(body), loc(loop.getLoc()), b(loop) {
    for (auto product : loop.getBody().getOps<MmaAbtOp>())
      if (product != body.scores)
        grads = product;
    // Of several heads it is not, and where the next tile's keys have to wait for this one's end, its values may, too.
    auto takeOf = [&](MmaAbtOp product) {
      auto take = product ? wholeOf(product.getQ()).getDefiningOp<ConsumerWaitOp>() : ConsumerWaitOp();
      return take && take->getBlock() == loop->getBlock() ? take : ConsumerWaitOp();
    };
    if (ConsumerWaitOp keys = takeOf(body.scores); keys && cast<RingType>(keys.getRing().getType()).getStages() > 1)
      values = takeOf(grads);
  }

  void write() {
    TileOfWalk first = firstTile(loop, b);
    map.map(loop.getTile(), first.tile);
    beginScores(first.any, wholeOf(body.scores.getQ()));
    takeLate();
    WaitOp::create(b, loc, map.lookup(body.scores.getToken()));

    Value none = NullProductOp::create(b, loc);
    auto turned = KvLoopOp::create(b, loc, none.getType(), loop.getBounds(), loop.getOwn(), none, loop.getRunsAttr(),
                                   loop.getOneBody());
    writeBody(turned, first.tile);
    WaitOp::create(b, loc, turned.getResults().front());
    ConsumerReleaseOp::create(b, loc, body.take.getRing(), /*passed=*/true, first.any, /*more=*/Value());
    loop.erase();
  }

private:
  void writeBody(KvLoopOp turned, Value first) {
    Block &block = turned.getBody().emplaceBlock();
    Block &old = loop.getBody().front();
    block.addArguments(old.getArgumentTypes(), SmallVector<Location>(3, loc));
    Value before = block.addArgument(body.product.getToken().getType(), loc);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&block);
    map = IRMapping();
    map.map(old.getArguments(), block.getArguments().take_front(3));
    Value ring = body.take.getRing();
    SmallVector<Value> statistics;
    for (Operation &op : old.without_terminator()) {
      if (isa_and_nonnull<ConsumerWaitOp, MmaAbtOp, WaitOp, MmaAbOp, ConsumerReleaseOp, ProducerCommitOp>(&op) &&
          isTransposed(&op))
        continue;
      if (&op == body.round) {
        Value later = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, turned.getTile(), first);
        WaitOp::create(b, loc, before);
        ConsumerReleaseOp::create(b, loc, ring, /*passed=*/true, later, /*more=*/Value());
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
                                 turned.getMore()); // the next tile's come under what is left of this one
    }
    Value passed = ConsumerAdvanceOp::create(b, loc, ring);
    map.map(loop.getTile(), turned.getNext());
    beginScores(turned.getMore(), passed);
    map.map(body.take.getTile(), passed);
    Value product = cast<MmaAbOp>(b.clone(*body.product, map)).getToken();
    b.clone(*body.publish, map);
    for (Value ring : statistics) // its fence does for them, too
      ConsumerReleaseOp::create(b, loc, ring, /*passed=*/false, /*when=*/Value(), /*more=*/Value(), /*fenced=*/true);
    WaitOp::create(b, loc, map.lookup(body.scores.getToken()));
    YieldOp::create(b, loc, product);
  }

  /// The values are looked at when the first scores are under way.
  void takeLate() {
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

  bool isTransposed(Operation *op) {
    return llvm::is_contained(std::initializer_list<Operation *>{body.take, body.scores, body.waitScores, body.publish,
                                                                 body.product, body.waitProduct, body.release},
                              op);
  }

  /// Of the tile that `map` has for the loop's, if there is `more`.
  void beginScores(Value more, Value otherwise) {
    auto take = ConsumerWaitOp::create(b, body.take.getLoc(), body.take.getRing(), more, otherwise);
    map.map(body.take.getTile(), take.getTile());
    map.map(body.scores.getToken(), cast<MmaAbtOp>(b.clone(*body.scores, map)).getToken());
  }

  KvLoopOp loop;
  Body body;
  MmaAbtOp grads; ///< of probabilities; null if there are none
  ConsumerWaitOp
      values; ///< their left operand, if that is this loop's alone and is looked at late and given back early
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
      std::optional<Body> body = match(loop);
      if (!body) {
        loop.emitError("expected scores of a query tile first, and what follows from them stored into a ring and "
                       "multiplied with it last");
        return signalPassFailure();
      }
      findWarpgroupRows(loop);
      Overlap(loop, *body).write();
    }
  }
};
} // namespace
