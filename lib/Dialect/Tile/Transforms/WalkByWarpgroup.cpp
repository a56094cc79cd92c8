// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileWalk.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {
#define GEN_PASS_DEF_WALKBYWARPGROUP
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

static constexpr int64_t warpgroupRows = 64;

/// All rows of the tile.
static void lowerForBlock(QueryRowsOp rows) {
  OpBuilder b(rows);
  Value behind = arith::AddIOp::create(b, rows.getLoc(), rows.getQ0(), rows.getRows());
  rows.replaceAllUsesWith(ValueRange{rows.getQ0(), behind});
  rows.erase();
}

/// The rows of this warpgroup; returns whether there are any.
static Value lowerForWarpgroup(QueryRowsOp rows) {
  OpBuilder b(rows);
  Location loc = rows.getLoc();
  Value extent = arith::ConstantIntOp::create(b, loc, warpgroupRows, 32);
  Value offset = arith::MulIOp::create(b, loc, WarpgroupOp::create(b, loc), extent);
  Value first = arith::AddIOp::create(b, loc, rows.getQ0(), offset);
  Value behind = arith::AddIOp::create(b, loc, rows.getQ0(), rows.getRows());
  behind = arith::MinSIOp::create(b, loc, behind, arith::AddIOp::create(b, loc, first, extent).getResult());
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, first, behind);
  rows.replaceAllUsesWith(ValueRange{first, behind});
  rows.erase();
  return any;
}

/// A copy of what `value` follows from in its block, if `rows` is part of that.
static Value copyOf(Value value, QueryRowsOp rows, IRMapping &map) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != rows->getBlock() || !sliceOf(op).contains(rows))
    return value;
  OpBuilder b(op);
  for (Operation *needed : sliceOf(op))
    if (!map.contains(needed))
      b.clone(*needed, map);
  return map.lookup(value);
}

/// Takes and releases the tiles from `begin` to `end`, which others compute.
static void skip(ArrayRef<Value> rings, Value begin, Value end, OpBuilder &b, Location loc) {
  Value one = arith::ConstantIntOp::create(b, loc, 1, 32);
  auto tiles = scf::ForOp::create(b, loc, begin, end, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(tiles.getBody());
  for (Value ring : rings) {
    TakeOp::create(b, loc, cast<RingType>(ring.getType()).getTile(), ring);
    ReleaseOp::create(b, loc, ring);
  }
}

static void narrow(KvLoopOp loop, QueryRowsOp rows) {
  Location loc = loop.getLoc();
  SmallVector<Value> rings;
  for (auto take : loop.getBody().getOps<TakeOp>())
    rings.push_back(take.getRing());

  // The block's bounds, before the rows become the warpgroup's.
  IRMapping map;
  Value begin = copyOf(loop.getBounds().front(), rows, map), end = copyOf(loop.getBounds().back(), rows, map);
  bool laterBegin = begin != loop.getBounds().front();
  if (auto copy = map.contains(rows) ? cast<QueryRowsOp>(map.lookup(rows.getOperation())) : QueryRowsOp())
    lowerForBlock(copy);
  Value any = lowerForWarpgroup(rows);

  OpBuilder b(loop);
  SmallVector<Value> own;
  for (Value bound : loop.getBounds()) {
    if (bound != begin) {
      bound = arith::MinSIOp::create(b, loc, bound, end);
      bound = arith::MaxSIOp::create(b, loc, bound, begin);
      bound = arith::SelectOp::create(b, loc, any, bound, begin);
    }
    own.push_back(bound);
  }
  if (laterBegin)
    skip(rings, begin, own.front(), b, loc);
  loop.getBoundsMutable().assign(own);
  Block *block = loop->getBlock();
  block->mightHaveTerminator() ? b.setInsertionPoint(block->getTerminator()) : b.setInsertionPointToEnd(block);
  skip(rings, own.back(), end, b, loc);
}

namespace {
struct WalkByWarpgroupPass : attn::tile::impl::WalkByWarpgroupBase<WalkByWarpgroupPass> {
  using Base::Base;

  void runOnOperation() final {
    bool asked = getOperation().getConfig().getNarrow();
    SmallVector<QueryRowsOp> all;
    getOperation().walk([&](QueryRowsOp rows) { all.push_back(rows); });
    for (QueryRowsOp rows : all) {
      auto roles = rows->getParentOfType<RolesOp>();
      auto loops = rows->getBlock()->getOps<KvLoopOp>();
      bool consumer = roles && roles.getConsumer().isAncestor(rows->getParentRegion());
      if (consumer && asked && llvm::hasSingleElement(loops) && (*loops.begin()).getRunList().size() == 1)
        narrow(*loops.begin(), rows);
      else
        lowerForBlock(rows);
    }
  }
};
} // namespace
