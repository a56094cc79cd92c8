// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BackwardBody.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Value BackwardBody::tiledKeys() {
  Value rows = mul(wide(tilesOf(/*keys=*/true, statisticsTile)), wide(statisticsTile));
  return problem.getKLayout().isPacked() ? rows : mul(rows, wide(arg("batch")));
}

Value BackwardBody::firstTiledRow(bool keys, Index first) {
  if (!layoutOf(keys).isPacked()) {
    Value tiles = wide(tilesOf(keys, statisticsTile));
    return mul(mul(wide(batch), tiles), wide(statisticsTile));
  }
  return mul(wide(firstSlot(first, batch, statisticsTile)), wide(statisticsTile));
}

Value BackwardBody::tiledRow(Value firstRow, Index head, Index q) {
  return add(mul(wide(head), tiledRows()), add(firstRow, wide(q)));
}

Value BackwardBody::sumPointer(Value firstRow, Index head, Index q) {
  Location named = NameLoc::get(b.getStringAttr("sum"), loc);
  Value offset = mul(tiledRow(firstRow, head, q), wide(sumColumns(problem.getDimQk())));
  return AdvanceOp::create(b, named, args["dq_sum"], offset);
}

Value BackwardBody::turnPointer(Value firstRow, Index head, Index q) {
  Location named = NameLoc::get(b.getStringAttr("turn"), loc);
  Value offset = arith::DivUIOp::create(b, loc, tiledRow(firstRow, head, q), wide(rowsOfTurn));
  return AdvanceOp::create(b, named, args["dq_turns"], offset);
}

Value BackwardBody::statisticsPointer(Value firstRow, Index head, Index q) {
  Location named = NameLoc::get(b.getStringAttr("row_statistics"), loc);
  return AdvanceOp::create(b, named, args["statistics"], tiledRow(firstRow, head, q));
}

Index BackwardBody::findFirstQuery() {
  if (!problem.getQLayout().isPacked())
    return 0;
  return load(startsOf(/*keys=*/false), batch);
}

BackwardBody::Slot BackwardBody::denseSlot(Index extent, LayoutAttr layout, int64_t tileRows, int64_t heads, Order order) {
  Slot slot;
  Index block = Value(BlockIndexOp::create(b, loc, Value()));
  Index tiles = math.named(math.ceilDiv(extent, tileRows), "tiles");
  Deal dealt = deal(block, tiles, heads, layout, order);
  Index head = math.named(dealt.head, "sequence_head");
  slot.head = rem(head, heads);
  batch = math.named(div(head, heads), "b");
  slot.number = math.add(times(batch, tiles), dealt.tile);
  slot.first = slot.row = math.mul(dealt.tile, tileRows);
  slot.rows = slot.written = math.named(math.min(math.sub(extent, slot.first), tileRows), "rows");
  return slot;
}

BackwardBody::Slot BackwardBody::packedSlot(StringRef side, LayoutAttr layout, int64_t tileRows, int64_t heads, Order order) {
  Slot slot;
  Index total = arg(("total_" + side).str());
  std::optional<Index> listed = listedSlots(total, tileRows);
  Index block = listed ? listedBlock(math.mul(*listed, heads)) : Index(Value(BlockIndexOp::create(b, loc, Value())));
  Index slots = listed ? *listed : math.named(numberOfSlots(total, tileRows), "slots");
  if (listed && order == Order::LastIsLongest)
    order = Order::FirstIsLongest; // as a list has them
  Deal dealt = deal(block, slots, heads, layout, order);
  slot.head = dealt.head;
  Index number = listed ? listedSlot(dealt.tile) : dealt.tile;
  Value lengths = args[("cu_seqlens_" + side).str()];
  slot.number = number;
  Value offsets = layout.getPadded() ? args[("padded_offsets_" + side).str()] : lengths;
  auto find = FindSequenceOp::create(b, loc, math.value(number), lengths, offsets, args["batch"], math.value(total),
                                     tileRows);
  batch = find.getB();
  slot.first = find.getQ0();
  slot.rows = find.getRows();
  slot.written = find.getWriteRows();
  slot.row = math.named(math.add(find.getFirst(), slot.first), "row0");
  return slot;
}

BackwardBody::Slot BackwardBody::querySlot(int64_t tileRows, Order order) {
  LayoutAttr layout = problem.getQLayout();
  return layout.isPacked() ? packedSlot("q", layout, tileRows, problem.getHeads(), order)
                           : denseSlot(arg("seqlen_q"), layout, tileRows, problem.getHeads(), order);
}

BackwardBody::Slot BackwardBody::keySlot(int64_t tileRows, Order order) {
  LayoutAttr layout = problem.getKLayout();
  return layout.isPacked() ? packedSlot("kv", layout, tileRows, problem.getKvHeads(), order)
                           : denseSlot(arg("seqlen_kv"), layout, tileRows, problem.getKvHeads(), order);
}
