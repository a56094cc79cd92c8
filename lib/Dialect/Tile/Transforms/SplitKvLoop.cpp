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

/// The tile after a run's last one: the first of the next run that has any.
struct Follow {
  Value next, more;
};

static void split(KvLoopOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto runs = loop.getRunList();
  Value one = arith::ConstantIntOp::create(b, loc, 1, 32);
  Value never = arith::ConstantIntOp::create(b, loc, 0, 1);

  SmallVector<Follow> follow(runs.size(), Follow{Value(), never});
  for (size_t i = runs.size() - 1; i-- > 0;) {
    Value begin = runs[i + 1].bounds.front(), end = runs[i + 1].bounds.back();
    Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, begin, end);
    Follow later = follow[i + 1];
    follow[i].next = later.next ? arith::SelectOp::create(b, loc, any, begin, later.next) : begin;
    follow[i].more = arith::OrIOp::create(b, loc, any, later.more);
  }

  SmallVector<Value> carried(loop.getCarried());
  for (auto [run, after] : llvm::zip(runs, follow)) {
    for (auto [begin, end, tests] : llvm::zip(run.bounds.drop_back(), run.bounds.drop_front(), run.tests)) {
      auto segment = scf::ForOp::create(b, loc, begin, end, one, carried);
      if (!segment.getBody()->empty())
        segment.getBody()->getTerminator()->erase();
      OpBuilder body = OpBuilder::atBlockEnd(segment.getBody());
      Value j = segment.getInductionVar();
      Value next = arith::AddIOp::create(body, NameLoc::get(b.getStringAttr("next"), loc), j, one);
      Value more = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::slt, next, run.bounds.back());
      if (after.next) {
        next = arith::SelectOp::create(body, loc, more, next, after.next);
        more = arith::OrIOp::create(body, loc, more, after.more);
      }
      IRMapping map;
      map.map(loop.getTile(), j);
      map.map(loop.getNext(), next);
      map.map(loop.getMore(), more);
      map.map(loop.getBody().getArguments().drop_front(3), segment.getRegionIterArgs());
      for (Operation &op : loop.getBody().front().without_terminator())
        body.clone(op, map);
      SmallVector<Value> yielded;
      for (Value v : cast<YieldOp>(loop.getBody().front().getTerminator()).getValues())
        yielded.push_back(map.lookupOrDefault(v));
      scf::YieldOp::create(body, loc, yielded);
      specialize(segment, tests);
      carried.assign(segment.result_begin(), segment.result_end());
    }
  }
  loop.replaceAllUsesWith(carried);
  loop.erase();
}

namespace {
struct SplitKvLoopPass : attn::tile::impl::SplitKvLoopBase<SplitKvLoopPass> {
  using Base::Base;
  void runOnOperation() final { getOperation().walk([](KvLoopOp loop) { split(loop); }); }
};
} // namespace
