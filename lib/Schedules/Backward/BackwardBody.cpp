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
  return mul(wide(firstWorkTile(first, batch, statisticsTile)), wide(statisticsTile));
}

Value BackwardBody::tiledRow(Value firstRow, Index head, Index q) {
  return add(mul(wide(head), tiledRows()), add(firstRow, wide(q)));
}

Value BackwardBody::sumPointer(Index sumRow) {
  Location named = NameLoc::get(b.getStringAttr("accumulator"), loc);
  return AdvanceOp::create(b, named, args["dq_accumulator"], mul(wide(sumRow), wide(sumColumns(problem.getDimQk()))));
}

Value BackwardBody::turnPointer(Index sumRow, Index head) {
  Location named = NameLoc::get(b.getStringAttr("semaphore"), loc);
  // A sequence has one semaphore more than multiples of 64 after its first row, so no two sequences share one.
  Index turn = math.add(math.floorDiv(sumRow, rowsOfOrderCounter), math.add(times(head, arg("batch")), batch));
  return AdvanceOp::create(b, named, args["dq_semaphore"], wide(turn));
}

Value BackwardBody::statisticsPointer(Value firstRow, Index head, Index q) {
  Location named = NameLoc::get(b.getStringAttr("tile_statistics"), loc);
  return AdvanceOp::create(b, named, args["row_statistics"], tiledRow(firstRow, head, q));
}

Index BackwardBody::findFirstQuery() {
  if (!problem.getQLayout().isPacked())
    return 0;
  return load(startsOf(/*keys=*/false), batch);
}

BackwardBody::Slot BackwardBody::denseWorkTile(bool keys, int64_t tileRows, Order order) {
  Slot slot;
  Index block = Value(IndexOp::block(b, loc));
  Index tiles = math.named(tilesOf(keys, tileRows), "tiles");
  int64_t heads = headsOf(keys);
  Deal dealt = deal(block, tiles, heads, layoutOf(keys), order);
  Index head = math.named(dealt.head, "sequence_head");
  slot.head = rem(head, heads);
  batch = math.named(div(head, heads), "b");
  slot.number = math.add(times(batch, tiles), dealt.tile);
  slot.first = slot.row = math.mul(dealt.tile, tileRows);
  slot.rows = slot.written = math.named(math.min(math.sub(extentOf(keys), slot.first), tileRows), "rows");
  return slot;
}

BackwardBody::Slot BackwardBody::packedWorkTile(bool keys, int64_t tileRows, Order order) {
  Slot slot;
  Index total = extentOf(keys);
  int64_t heads = headsOf(keys);
  std::optional<Index> listed = listedWorkTiles(total, tileRows);
  Index block = listed ? listedBlock(math.mul(*listed, heads)) : Index(Value(IndexOp::block(b, loc)));
  Index slots = listed ? *listed : math.named(tilesOf(keys, tileRows), "work_tiles");
  Deal dealt = deal(block, slots, heads, layoutOf(keys), order);
  slot.head = dealt.head;
  Index number = listed ? listedWorkTile(dealt.tile) : dealt.tile;
  slot.number = number;
  auto find = FindSequenceOp::create(b, loc, math.value(number), args[keys ? "cu_seqlens_kv" : "cu_seqlens_q"],
                                     startsOf(keys), args["batch"], math.value(total), tileRows);
  batch = find.getB();
  slot.first = find.getQ0();
  slot.rows = find.getRows();
  slot.written = find.getWriteRows();
  slot.row = math.named(math.add(find.getFirst(), slot.first), "row0");
  return slot;
}

BackwardBody::Slot BackwardBody::slotOf(bool keys, int64_t tileRows, Order order) {
  return layoutOf(keys).isPacked() ? packedWorkTile(keys, tileRows, order) : denseWorkTile(keys, tileRows, order);
}
