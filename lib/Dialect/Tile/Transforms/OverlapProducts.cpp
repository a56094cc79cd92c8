// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop is software-pipelined by half an iteration: instead of s(j), P(j), acc += P(j) V(j), a step issues s(j) and
// acc += P(j - 1) V(j - 1) together. The prologue computes s of the first tile, the epilogue the last tile's product
// with V.
//
// A step waits for both products; its softmax runs under the products of other warpgroups, and its exponentials do not
// wait for the new row maximum (`tile.softmax_convert`). Where scores rise from tile to tile, `tile.online_softmax`
// first finds the maximum, under the product with V.
//
// A loop in a loop over pieces begins and ends anew for each piece, with the accumulator that the one before left.
//
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {
#define GEN_PASS_DEF_OVERLAPPRODUCTS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// The body as roles leave it: wait for K, s = Q K^T, wait, release, modify, apply mask, softmax, wait for V, acc += P
/// V, wait, release.
struct ProductsBody {
  SmallVector<Operation *> scores; ///< from the wait for K to its release, with the scalars in between
  SmallVector<Operation *> tests;  ///< modify, apply mask
  SmallVector<Operation *> values; ///< from the wait for V to its release
  MmaAbtOp qk;
  MmaAbOp pv;
  OnlineSoftmaxOp softmax;
  DropoutOp drop; ///< may be null
};
} // namespace

static std::optional<ProductsBody> matchProducts(KvLoopOp loop) {
  ProductsBody body;
  Block &block = loop.getBody().front();
  auto only = [&]<typename Op>(Op &found) {
    auto ops = block.getOps<Op>();
    found = llvm::hasSingleElement(ops) ? *ops.begin() : Op();
    return bool(found);
  };
  if (!only(body.qk) || !only(body.pv) || !only(body.softmax) || !loop.getCarried().empty())
    return std::nullopt;
  ConsumerWaitOp waitK = body.qk.getK().getDefiningOp<ConsumerWaitOp>(),
                 waitV = body.pv.getV().getDefiningOp<ConsumerWaitOp>();
  WaitOp waitQk = soleWait(body.qk.getToken()), waitPv = soleWait(body.pv.getToken());
  Operation *order[] = {waitK, body.qk, waitQk, body.softmax, waitV, body.pv, waitPv};
  if (!llvm::all_of(order, [&](Operation *op) { return op && op->getBlock() == &block; }) ||
      !llvm::is_sorted(order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); }) ||
      body.qk.getS() != body.softmax.getS() || body.pv.getP() != body.softmax.getS() ||
      body.pv.getAcc() != body.softmax.getAcc())
    return std::nullopt;
  for (Operation &op : block.without_terminator()) {
    if (isa<ModifyOp, ApplyMaskOp>(op))
      body.tests.push_back(&op);
    else if (auto drop = dyn_cast<DropoutOp>(op))
      body.drop = drop;
    else if (&op == body.softmax || isMemoryEffectFree(&op))
      continue; // scalars are cloned where they are needed
    else if (op.isBeforeInBlock(waitV))
      body.scores.push_back(&op);
    else
      body.values.push_back(&op);
  }
  return body;
}

namespace {
/// Writes the pipelined loop.
class ProductOverlap {
public:
  ProductOverlap(KvLoopOp loop, ProductsBody body) : loop(loop), body(body), loc(loop.getLoc()), b(loop) {}

  void write() {
    auto roles = loop->getParentOfType<RolesOp>();
    auto s = cast<FragType>(body.qk.getS().getType());
    OpBuilder top(&roles.getConsumer().front(), roles.getConsumer().front().begin());
    Type element = cast<SharedType>(body.pv.getV().getType()).getElement();
    p = AllocOp::create(top, loc,
                        RegisterOperandType::get(b.getContext(), s.getRows(), s.getCols(), element, s.getWarps()), "p");

    constexpr int64_t roomy = 8; // up to 8 warps, a thread has registers for another 16-bit tile
    if (body.drop && !body.softmax.getRising() && body.drop.getRow0().getType().isInteger(32) && s.getWarps() <= roomy)
      dropoutBits = AllocOp::create(top, loc, p.getType(), "dropout_bits");
    TileOfWalk first = firstTile(loop, b), last = lastTile(loop, b);
    Value behindFirst =
        arith::AddIOp::create(b, loc, first.tile, arith::ConstantIntOp::create(b, loc, 1, 32).getResult());
    // The bounds of a non-empty run are not before the first tile, and the bounds of an empty run stay equal.
    auto limited = [&](auto limit) {
      SmallVector<Value> bounds;
      for (Value bound : loop.getBounds())
        bounds.push_back(limit(bound));
      return bounds;
    };
    SmallVector<Value> before =
        limited([&](Value bound) { return arith::MinSIOp::create(b, loc, bound, behindFirst).getResult(); });
    SmallVector<Value> after =
        limited([&](Value bound) { return arith::MaxSIOp::create(b, loc, bound, behindFirst).getResult(); });

    writeLoop(before, /*oneBody=*/true, [&] {
      clone(body.scores);
      clone(body.tests);
      OnlineSoftmaxOp::create(b, loc, body.softmax.getS(), body.softmax.getRow(), body.softmax.getScaleAttr(),
                              body.softmax.getRowsRecomputedAttr());
      if (isRepeated()) // the accumulator has results of the loop before
        RescaleOp::create(b, loc, body.softmax.getAcc(), body.softmax.getRow());
      cloneDrop(body.softmax.getS());
      ConvertOp::create(b, loc, p, body.softmax.getS());
    });
    writeLoop(after, loop.getOneBody(), [&] {
      // Issue both products, then wait for them and process the scores.
      auto afterProduct = [](ArrayRef<Operation *> ops, Operation *product) {
        return llvm::find(ops, product) - ops.begin() + 1;
      };
      size_t qk = afterProduct(body.scores, body.qk), pv = afterProduct(body.values, body.pv);
      bool turns = loop->getParentOfType<KernelOp>().getRoles().getPingpong();
      if (turns)
        PingPongWaitOp::create(b, loc);
      clone(ArrayRef(body.scores).take_front(qk));
      cloneValues(ArrayRef(body.values).take_front(pv));
      if (turns)
        PingPongArriveOp::create(b, loc);
      cloneDraw();
      clone(body.scores[qk]); // the wait
      // A single-stage ring of Q is released before the last softmax, so that the next Q is loaded under it.
      // NOTE: this precedes the release of K: after that, ptxas at 256 columns no longer treats loop values as uniform.
      auto waitQ = body.qk.getQ().getDefiningOp<ConsumerWaitOp>();
      if (waitQ && !isRepeated() && cast<RingType>(waitQ.getRing().getType()).getStages() == 1)
        ConsumerReleaseOp::early(b, loc, waitQ.getRing(), map.lookup(loop.getMore()));
      clone(ArrayRef(body.scores).drop_front(qk + 1));
      Value s = body.softmax.getS(), row = body.softmax.getRow(), acc = body.softmax.getAcc();
      if (body.softmax.getRising()) {
        clone(body.tests);
        OnlineSoftmaxOp::create(b, loc, s, row, body.softmax.getScaleAttr(), body.softmax.getRowsRecomputedAttr());
        clone(ArrayRef(body.values).drop_front(pv));
        RescaleOp::create(b, loc, acc, row);
        cloneDrop(s);
        ConvertOp::create(b, loc, p, s);
      } else {
        clone(ArrayRef(body.values).drop_front(pv));
        clone(body.tests);
        SoftmaxConvertOp::create(b, loc, p, s, row, body.softmax.getScaleAttr(), body.softmax.getRowsRecomputedAttr(),
                                 ValueRange(), FloatAttr(), FloatAttr());
        if (dropoutBits)
          ApplyDropoutBitsOp::create(b, loc, p, dropoutBits);
        else
          cloneDrop(p);
        RescaleOp::create(b, loc, acc, row);
      }
    });

    // Releases of Q already follow the loop; insert after them.
    Operation *behind = loop->getNextNode();
    while (isa_and_nonnull<ConsumerReleaseOp>(behind))
      behind = behind->getNextNode();
    behind ? b.setInsertionPoint(behind) : b.setInsertionPointToEnd(loop->getBlock());
    auto some = scf::IfOp::create(b, loc, last.any, /*withElseRegion=*/false);
    b.setInsertionPointToStart(some.thenBlock());
    map = IRMapping();
    map.map(loop.getTile(), last.tile);
    cloneValues(body.values);
    loop.erase();
  }

private:
  template <typename Write> void writeLoop(ArrayRef<Value> bounds, bool oneBody, Write write) {
    auto pipelined =
        KvLoopOp::create(b, loc, TypeRange(), bounds, /*own=*/ValueRange(), ValueRange(), loop.getTestsAttr(), oneBody);
    Block &block = pipelined.getBody().emplaceBlock();
    block.addArguments(loop.getBody().getArgumentTypes(), SmallVector<Location>(3, loc));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&block);
    map = IRMapping();
    map.map(loop.getBody().getArguments(), block.getArguments());
    write();
    YieldOp::create(b, loc, ValueRange());
  }

  /// Does a query tile run the loop several times, once for each piece of its sequence?
  bool isRepeated() {
    auto waitQ = body.qk.getQ().getDefiningOp<ConsumerWaitOp>();
    return waitQ && waitQ->getBlock() != loop->getBlock();
  }

  /// Clones ops of the body with the scalars they need.
  void clone(ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      for (Operation *scalar : sliceOf(op))
        if (scalar != op && isMemoryEffectFree(scalar) && !map.contains(scalar))
          b.clone(*scalar, map);
      b.clone(*op, map);
    }
  }

  /// Computes dropout bits under both products, where registers suffice.
  void cloneDraw() {
    if (!dropoutBits)
      return;
    clone(body.drop.getOperation());
    auto drop = cast<DropoutOp>(*std::prev(b.getInsertionPoint()));
    DropoutBitsOp::create(b, loc, dropoutBits, drop.getRow0(), drop.getCol0(), drop.getDropout(), drop.getBelow(),
                          drop.getUnaligned());
    drop.erase();
  }

  /// Applies dropout to the probabilities in `place`; row sums are taken before.
  void cloneDrop(Value place) {
    if (!body.drop)
      return;
    clone(body.drop.getOperation());
    cast<DropoutOp>(*std::prev(b.getInsertionPoint())).getPlaceMutable().assign(place);
  }

  /// Clones the product with V with `p` as its left operand.
  void cloneValues(ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      clone(op);
      if (op == body.pv)
        cast<MmaAbOp>(map.lookup(body.pv.getToken()).getDefiningOp()).getPMutable().assign(p);
    }
  }

  KvLoopOp loop;
  ProductsBody body;
  Location loc;
  OpBuilder b;
  IRMapping map;
  Value p;
  Value dropoutBits; ///< precomputed dropout bits; null without dropout or without registers for them
};

struct OverlapProductsPass : attn::tile::impl::OverlapProductsBase<OverlapProductsPass> {
  using Base::Base;

  void runOnOperation() final {
    SmallVector<KvLoopOp> loops;
    getOperation().walk([&](RolesOp roles) {
      roles.getConsumer().walk([&](KvLoopOp loop) {
        if (isForward(loop))
          loops.push_back(loop);
      });
    });
    for (KvLoopOp loop : loops) {
      std::optional<ProductsBody> body = matchProducts(loop);
      if (!body) {
        loop.emitError("expected one product with K and one with V, each behind what takes its tile");
        return signalPassFailure();
      }
      ProductOverlap(loop, *body).write();
    }
  }
};
} // namespace
