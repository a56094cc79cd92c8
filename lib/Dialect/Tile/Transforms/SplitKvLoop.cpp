// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {
#define GEN_PASS_DEF_SPLITKVLOOP
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// Keeps only the conjuncts `tests` in the masks of `loop`; erases the masks if `tests` is empty.
static void specialize(scf::ForOp loop, ArrayRef<int64_t> tests) {
  loop.walk([&](ApplyMaskOp mask) {
    if (tests.empty())
      return mask.erase();
    auto yield = cast<YieldOp>(mask.getBody().front().getTerminator());
    SmallVector<Value> kept;
    for (int64_t test : tests)
      kept.push_back(yield.getValues()[test]);
    yield.getValuesMutable().assign(kept);
  });
  if (tests.empty())
    loop.walk([](MmaAbOp product) { product.setGuarded(false); });
}

/// Clones the KV loop's body to the end of `into`, for tile `j` and its successor; yields the carried values.
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

static Location named(OpBuilder &b, Location loc, StringRef name) { return NameLoc::get(b.getStringAttr(name), loc); }

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

namespace {
/// The bounds of a run for a loop with a single copy of the body.
struct RunBounds {
  Value begin, fullBegin, fullEnd, end;
  Value next, more; ///< the first tile of the next runs, and whether there is one
};
} // namespace

static RunBounds boundsOf(const KvLoopOp::Run &run) {
  const auto *full = llvm::find_if(run.tests, [](ArrayRef<int64_t> tests) { return tests.empty(); });
  size_t at = full - run.tests.begin(), last = run.bounds.size() - 1;
  return {run.bounds.front(),
          run.bounds[std::min(at, last)],
          run.bounds[std::min(at + 1, last)],
          run.bounds.back(),
          Value(),
          Value()};
}

/// One loop over a run, with a single copy of the body, which applies the mask only if the tile is not full.
static SmallVector<Value> oneBody(KvLoopOp loop, const RunBounds &run, ValueRange carried, OpBuilder &b) {
  Location loc = loop.getLoc();
  Value one = constant(b, loc, 1);
  scf::ForOp tiles = emptyFor(b, loc, run.begin, run.end, one, carried);
  OpBuilder body = OpBuilder::atBlockEnd(tiles.getBody());
  Value j = tiles.getInductionVar();
  Value next = arith::AddIOp::create(body, named(b, loc, "next"), j, one), more = less(body, loc, next, run.end);
  if (run.next) {
    next = arith::SelectOp::create(body, named(b, loc, "next"), more, next, run.next);
    more = arith::OrIOp::create(body, loc, more, run.more);
  }
  Value partial = arith::OrIOp::create(body, named(b, loc, "partial"), less(body, loc, j, run.fullBegin),
                                       arith::CmpIOp::create(body, loc, arith::CmpIPredicate::sle, run.fullEnd, j));
  cloneBody(loop, tiles, body, j, next, more);
  tiles.walk([&](ApplyMaskOp mask) {
    OpBuilder at(mask);
    auto guard = scf::IfOp::create(at, loc, partial, /*withElseRegion=*/false);
    mask->moveBefore(guard.thenBlock(), guard.thenBlock()->begin());
  });
  tiles.walk([&](MmaAbOp product) {
    if (product.getGuarded())
      product.getWhenMutable().assign(partial);
  });
  return SmallVector<Value>(tiles.getResults());
}

/// Several runs: a loop over runs around a loop over tiles, since a copy of the body for each segment would be too much
/// code.
static SmallVector<Value> nestRuns(KvLoopOp loop, ArrayRef<KvLoopOp::Run> runs, OpBuilder &b) {
  Location loc = loop.getLoc();
  SmallVector<RunBounds> bounds;
  for (const KvLoopOp::Run &run : runs)
    bounds.push_back(boundsOf(run));
  Value zero = constant(b, loc, 0);
  bounds.back().next = zero;
  bounds.back().more = arith::ConstantIntOp::create(b, loc, 0, 1);
  for (size_t i = runs.size() - 1; i-- > 0;) {
    Value any = less(b, loc, bounds[i + 1].begin, bounds[i + 1].end);
    bounds[i].next = arith::SelectOp::create(b, loc, any, bounds[i + 1].begin, bounds[i + 1].next);
    bounds[i].more = arith::OrIOp::create(b, loc, any, bounds[i + 1].more);
  }
  scf::ForOp outer = emptyFor(b, loc, zero, constant(b, loc, runs.size()), constant(b, loc, 1), loop.getCarried());
  OpBuilder o = OpBuilder::atBlockEnd(outer.getBody());
  // The value of the current run.
  auto ofRun = [&](StringRef name, Value RunBounds::*member) {
    Value chosen = bounds.back().*member;
    for (size_t i = runs.size() - 1; i-- > 0;) {
      Value here =
          arith::CmpIOp::create(o, loc, arith::CmpIPredicate::eq, outer.getInductionVar(), constant(o, loc, i));
      chosen = arith::SelectOp::create(o, named(b, loc, name), here, bounds[i].*member, chosen);
    }
    return chosen;
  };
  RunBounds run = {ofRun("run_begin", &RunBounds::begin),      ofRun("run_full_begin", &RunBounds::fullBegin),
                   ofRun("run_full_end", &RunBounds::fullEnd), ofRun("run_end", &RunBounds::end),
                   ofRun("next_run", &RunBounds::next),        ofRun("more_runs", &RunBounds::more)};
  scf::YieldOp::create(o, loc, oneBody(loop, run, outer.getRegionIterArgs(), o));
  return SmallVector<Value>(outer.getResults());
}

static void split(KvLoopOp loop) {
  OpBuilder b(loop);
  auto runs = loop.getRunList();
  SmallVector<Value> carried;
  if (runs.size() > 1)
    carried = nestRuns(loop, runs, b);
  else if (loop.getOneBody() || loop->getParentOfType<KernelOp>().getSchedule().getSingleLoop())
    carried = oneBody(loop, boundsOf(runs.front()), loop.getCarried(), b);
  else
    carried = splitRun(loop, runs.front(), b);
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

namespace {
struct SplitKvLoopPass : attn::tile::impl::SplitKvLoopBase<SplitKvLoopPass> {
  using Base::Base;
  void runOnOperation() final {
    getOperation().walk([](KvLoopOp loop) { split(loop); });
  }
};
} // namespace
