// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {
#define GEN_PASS_DEF_SPLITKVLOOP
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// Leaves in `loop`'s keeps only the conjuncts in `tests`, and no keep at all
/// where nothing is tested.
static void specialize(scf::ForOp loop, ArrayRef<int64_t> tests) {
  loop.walk([&](KeepOp keep) {
    if (tests.empty())
      return keep.erase();
    auto yield = cast<YieldOp>(keep.getBody().front().getTerminator());
    SmallVector<Value> kept;
    for (int64_t test : tests)
      kept.push_back(yield.getValues()[test]);
    yield.getValuesMutable().assign(kept);
  });
  if (tests.empty())
    loop.walk([](MmaPvOp product) { product.setGuarded(false); });
}

/// A copy of the walk's body at the end of `into`, for tile `j` and the one after
/// it; yields what it carries.
static void cloneBody(KvLoopOp loop, scf::ForOp into, OpBuilder &b, Value j, Value next, Value more) {
  IRMapping map;
  map.map(loop.getTile(), j);
  map.map(loop.getNext(), next);
  map.map(loop.getMore(), more);
  map.map(loop.getBody().getArguments().drop_front(3), into.getRegionIterArgs());
  for (Operation &op : loop.getBody().front().without_terminator())
    b.clone(op, map);
  SmallVector<Value> yielded;
  for (Value v : loop.getBody().front().getTerminator()->getOperands())
    yielded.push_back(map.lookupOrDefault(v));
  scf::YieldOp::create(b, loop.getLoc(), yielded);
}

static scf::ForOp emptyFor(OpBuilder &b, Location loc, Value begin, Value end, Value step, ValueRange carried) {
  auto loop = scf::ForOp::create(b, loc, begin, end, step, carried);
  if (!loop.getBody()->empty())
    loop.getBody()->getTerminator()->erase();
  return loop;
}

static Value less(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
}

static Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}

static Location named(OpBuilder &b, Location loc, StringRef name) {
  return NameLoc::get(b.getStringAttr(name), loc);
}

/// One run: a loop for each segment.
static SmallVector<Value> splitRun(KvLoopOp loop, const KvLoopOp::Run &run, OpBuilder &b) {
  Location loc = loop.getLoc();
  SmallVector<Value> carried(loop.getCarried());
  Value one = constant(b, loc, 1);
  for (auto [begin, end, tests] : llvm::zip(run.bounds.drop_back(), run.bounds.drop_front(), run.tests)) {
    scf::ForOp segment = emptyFor(b, loc, begin, end, one, carried);
    OpBuilder body = OpBuilder::atBlockEnd(segment.getBody());
    Value next = arith::AddIOp::create(body, named(b, loc, "next"), segment.getInductionVar(), one);
    cloneBody(loop, segment, body, segment.getInductionVar(), next, less(body, loc, next, run.bounds.back()));
    specialize(segment, tests);
    carried.assign(segment.result_begin(), segment.result_end());
  }
  return carried;
}

/// Several runs: one loop over runs around one loop over tiles, with one copy of
/// the body, which asks whether its tile is a full one. Masks with holes are
/// many and varied; a loop for each of their segments would be as many bodies.
static SmallVector<Value> nestRuns(KvLoopOp loop, ArrayRef<KvLoopOp::Run> runs, OpBuilder &b) {
  Location loc = loop.getLoc();
  Value zero = constant(b, loc, 0), one = constant(b, loc, 1);
  scf::ForOp outer = emptyFor(b, loc, zero, constant(b, loc, runs.size()), one, loop.getCarried());
  OpBuilder o = OpBuilder::atBlockEnd(outer.getBody());
  // The value that belongs to the run at hand.
  auto ofRun = [&](StringRef name, llvm::function_ref<Value(size_t)> value) {
    Value chosen = value(runs.size() - 1);
    for (size_t i = runs.size() - 1; i-- > 0;) {
      Value here = arith::CmpIOp::create(o, loc, arith::CmpIPredicate::eq, outer.getInductionVar(), constant(o, loc, i));
      chosen = arith::SelectOp::create(o, named(b, loc, name), here, value(i), chosen);
    }
    return chosen;
  };
  auto fullSegment = [&](size_t i) {
    const auto *full = llvm::find_if(runs[i].tests, [](ArrayRef<int64_t> tests) { return tests.empty(); });
    return size_t(full - runs[i].tests.begin());
  };
  auto bound = [&](size_t i, size_t at) { return runs[i].bounds[std::min(at, runs[i].bounds.size() - 1)]; };

  // The first tile behind each run, if there is one.
  SmallVector<std::pair<Value, Value>> behind(runs.size());
  b.setInsertionPoint(outer);
  behind.back() = {zero, arith::ConstantIntOp::create(b, loc, 0, 1)};
  for (size_t i = runs.size() - 1; i-- > 0;) {
    Value begin = runs[i + 1].bounds.front(), any = less(b, loc, begin, runs[i + 1].bounds.back());
    behind[i] = {arith::SelectOp::create(b, loc, any, begin, behind[i + 1].first),
                 arith::OrIOp::create(b, loc, any, behind[i + 1].second)};
  }
  Value begin = ofRun("run_begin", [&](size_t i) { return runs[i].bounds.front(); });
  Value end = ofRun("run_end", [&](size_t i) { return runs[i].bounds.back(); });
  Value fullBegin = ofRun("run_full_begin", [&](size_t i) { return bound(i, fullSegment(i)); });
  Value fullEnd = ofRun("run_full_end", [&](size_t i) { return bound(i, fullSegment(i) + 1); });
  Value behindTile = ofRun("next_run", [&](size_t i) { return behind[i].first; });
  Value behindAny = ofRun("more_runs", [&](size_t i) { return behind[i].second; });

  scf::ForOp inner = emptyFor(o, loc, begin, end, one, outer.getRegionIterArgs());
  OpBuilder body = OpBuilder::atBlockEnd(inner.getBody());
  Value j = inner.getInductionVar(), follower = arith::AddIOp::create(body, loc, j, one);
  Value within = less(body, named(b, loc, "within"), follower, end);
  Value next = arith::SelectOp::create(body, named(b, loc, "next"), within, follower, behindTile);
  Value more = arith::OrIOp::create(body, loc, within, behindAny);
  Value outside = arith::OrIOp::create(body, named(b, loc, "partial"), less(body, loc, j, fullBegin),
                                       arith::CmpIOp::create(body, loc, arith::CmpIPredicate::sle, fullEnd, j));
  cloneBody(loop, inner, body, j, next, more);
  inner.walk([&](KeepOp keep) {
    OpBuilder at(keep);
    auto guard = scf::IfOp::create(at, loc, outside, /*withElseRegion=*/false);
    keep->moveBefore(guard.thenBlock(), guard.thenBlock()->begin());
  });
  scf::YieldOp::create(o, loc, inner.getResults());
  return SmallVector<Value>(outer.getResults());
}

static void split(KvLoopOp loop) {
  OpBuilder b(loop);
  auto runs = loop.getRunList();
  SmallVector<Value> carried = runs.size() == 1 ? splitRun(loop, runs.front(), b) : nestRuns(loop, runs, b);
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

namespace {
struct SplitKvLoopPass : attn::tile::impl::SplitKvLoopBase<SplitKvLoopPass> {
  using Base::Base;
  void runOnOperation() final { getOperation().walk([](KvLoopOp loop) { split(loop); }); }
};
} // namespace
