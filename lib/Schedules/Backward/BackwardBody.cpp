// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BackwardBody.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Value BackwardBody::tiledKeys() {
  Value rows = mul(wide(tilesOf(/*keys=*/true, statisticsTile * rowStride)), wide(statisticsTile));
  return problem.getKLayout().isPacked() ? rows : mul(rows, wide(arg("batch")));
}

Value BackwardBody::firstTiledRow(bool keys, Index first) {
  if (!layoutOf(keys).isPacked()) {
    Value tiles = wide(tilesOf(keys, statisticsTile * rowStride));
    return mul(mul(wide(batch), tiles), wide(statisticsTile));
  }
  Index number = !hasPieces() ? batch : keys ? keyPiece.number : queryPiece.number;
  return mul(wide(firstWorkTile(first, number, statisticsTile * rowStride)), wide(statisticsTile));
}

Value BackwardBody::tiledRow(Value firstRow, Index head, Index q) {
  return add(mul(wide(numberOf(head)), tiledRows()), add(firstRow, wide(q)));
}

// Sequence b of packed rows begins at row offsets[b] / rowStride + b, which leaves room for a partial last row.
Index BackwardBody::rowsOfAccumulator() {
  if (rowStride == 1)
    return rowsInAll();
  if (problem.getQLayout().isPacked())
    return math.add(math.floorDiv(arg("total_q"), rowStride), arg("batch"));
  return mulRuntime(arg("batch"), math.ceilDiv(arg("seqlen_q"), rowStride));
}

Index BackwardBody::dqAccumulatorRow(Index row, Index inResidue, Index head) {
  if (rowStride == 1)
    return math.add(mulRuntime(head, rowsInAll()), rowInAll(row, batch));
  Index first = problem.getQLayout().isPacked() ? math.add(math.floorDiv(findFirstQuery(), rowStride), batch)
                                                : mulRuntime(batch, math.ceilDiv(arg("seqlen_q"), rowStride));
  return math.add(mulRuntime(numberOf(head), rowsOfAccumulator()), math.add(first, inResidue));
}

Value BackwardBody::dqAccumulatorPointer(Index accumulatorRow) {
  Location named = NameLoc::get(b.getStringAttr("accumulator"), loc);
  return AdvanceOp::create(b, named, args["dq_accumulator"],
                           mul(wide(accumulatorRow), wide(accumulatorColumns(problem.getDimQk()))));
}

Value BackwardBody::semaphorePointer(Index accumulatorRow, Index head) {
  Location named = NameLoc::get(b.getStringAttr("semaphore"), loc);
  // One extra semaphore per preceding sequence, or piece, and head: they need not begin at a multiple of 64 rows, and
  // no two of them may share a semaphore.
  Index number = hasPieces() ? queryPiece.number : batch;
  Index semaphore = math.add(math.floorDiv(accumulatorRow, semaphoreRows),
                             math.add(mulRuntime(numberOf(head), sequenceCount(/*keys=*/false)), number));
  return AdvanceOp::create(b, named, args["dq_semaphore"], wide(semaphore));
}

Value BackwardBody::rowStatisticsPointer(Value firstRow, Index head, Index q) {
  Location named = NameLoc::get(b.getStringAttr("tile_statistics"), loc);
  return AdvanceOp::create(b, named, args["row_statistics"], tiledRow(firstRow, head, q));
}

Index BackwardBody::findFirstQuery() {
  if (!problem.getQLayout().isPacked())
    return 0;
  return load(startsOf(/*keys=*/false), batch);
}

BackwardBody::WorkTile BackwardBody::denseWorkTile(bool keys, int64_t tileRows, Order order) {
  WorkTile workTile;
  const LoopSplits *splits = findLoopSplits();
  int64_t heads = headsOf(keys) * rowStride, positions = tileRows * rowStride;
  // With lists of tiles, split tiles are numbered through all heads.
  bool isListed = splits && args.contains(tileLists(keys).list);
  Index tiles =
      math.named(splits ? load(args[splits->counts], 0) : tilesOf(keys, positions), splits ? "ctas" : "tiles");
  if (splits)
    workItems = isListed ? tiles : mulRuntime(math.mul(arg("batch"), heads), tiles);
  Index cta = splits ? listedCta(*workItems) : Index(Value(IndexOp::block(b, loc)));
  TileAndHead assigned = {.tile = cta};
  if (!isListed)
    assigned = assignTile(cta, tiles, heads, layoutOf(keys), order);
  Index head = isListed ? Index(0) : math.named(assigned.head, "sequence_head");
  if (splits) {
    workTile.part = loadTilePart(*splits, assigned.tile, isListed ? std::nullopt : std::optional(head));
    assigned.tile = workTile.part->tile;
    tiles = tilesOf(keys, positions);
  }
  if (isListed) {
    head = math.named(div(assigned.tile, tiles), "sequence_head");
    assigned.tile = math.sub(assigned.tile, mulRuntime(head, tiles));
  }
  workTile.head = headOf(rem(head, heads), keys);
  batch = math.named(div(head, heads), "b");
  workTile.number = math.add(mulRuntime(batch, tiles), assigned.tile);
  workTile.first = workTile.row = math.mul(assigned.tile, positions);
  workTile.rows = workTile.written = math.named(math.min(math.sub(extentOf(keys), workTile.first), positions), "rows");
  return workTile;
}

BackwardBody::WorkTile BackwardBody::packedWorkTile(bool keys, int64_t tileRows, Order order) {
  WorkTile workTile;
  Index total = extentOf(keys);
  int64_t heads = headsOf(keys) * rowStride, positions = tileRows * rowStride;
  std::optional<Index> listed = listedWorkTiles(total, positions);
  Index cta = listed ? listedCta(math.mul(*listed, heads)) : Index(Value(IndexOp::block(b, loc)));
  Index workTiles = listed ? *listed : math.named(tilesOf(keys, positions), "work_tiles");
  TileAndHead assigned = assignTile(cta, workTiles, heads, layoutOf(keys), order);
  workTile.head = headOf(assigned.head, keys);
  Index number = listed ? listedWorkTile(assigned.tile) : assigned.tile;
  workTile.number = number;
  auto find = FindSequenceOp::create(b, loc, math.value(number), lengthsOf(keys), startsOf(keys),
                                     math.value(sequenceCount(keys)), math.value(total), positions);
  takePiece(keys, Value(find.getB()));
  if (hasPieces())
    (keys ? firstKey : firstQuery) = find.getFirst();
  workTile.first = find.getQ0();
  workTile.rows = find.getRows();
  workTile.written = problem.getKeepPadding() ? workTile.rows : find.getWriteRows();
  workTile.row = math.named(math.add(find.getFirst(), workTile.first), "row0");
  return workTile;
}

Index BackwardBody::headOf(Index head, bool keys) {
  if (rowStride == 1)
    return head;
  queryResidue = math.named(div(head, headsOf(keys)), "query_residue");
  return rem(head, headsOf(keys));
}

void BackwardBody::takeRowsOf(Index residue, WorkTile &workTile) {
  if (rowStride == 1)
    return;
  workTile.first = math.floorDiv(workTile.first, rowStride);
  workTile.row = math.add(workTile.row, residue);
  workTile.rows = math.named(rowsOfResidue(workTile.rows, residue), "rows");
  workTile.written = math.named(rowsOfResidue(workTile.written, residue), "written_rows");
}

BackwardBody::WorkTile BackwardBody::findWorkTile(bool keys, int64_t tileRows, Order order) {
  return layoutOf(keys).isPacked() ? packedWorkTile(keys, tileRows, order) : denseWorkTile(keys, tileRows, order);
}
