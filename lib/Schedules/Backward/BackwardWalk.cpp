// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BackwardWalk.h"
#include "Schedules/Metadata/TileListKernels.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

BackwardWalk::BackwardWalk(ProblemOp problem, KernelOp kernel, GradientResults results, StridedMaskAttr strided)
    : BackwardBody(problem, kernel), schedule(kernel.getSchedule()), results(results), ofKeys(kernel.getKeys()),
      hasDqMma(kernel.isPersistent() && kernel.getRoles().getDqColumns()),
      hasTileLists(kernel.getArg(tileLists(kernel.getKeys()).list)) {
  residues = strided;
}

bool BackwardWalk::onlyModifierHasSmall() {
  SmallVector<ScoreModifierInterface> modifiers = problem.getModifiers();
  return modifiers.size() == 1 && modifiers.front().smallBelow(scaleOfProducts(), errorOfScores()) > 0;
}

void BackwardWalk::findWalk() {
  findArrays();
  walk.emplace(problem.getMask(), scope);
  if (hasPieces() && (ofKeys || !loopsOverPieces()))
    walk->restrictKeys(keyPiece.positions(math));
  if (hasPieces() && !loopsOverPieces())
    walk->restrictQueries(queryPiece.positions(math));
  allTests = walk->numbers();
}

SmallVector<KeyRun> BackwardWalk::findRuns(Index first, Index rows, int64_t most) {
  // Tiles of residues have the same loops, those of all their positions.
  Index position = math.add((ofKeys ? keyPiece : queryPiece).position, first);
  Interval own = rowStride == 1 ? Interval{position, math.add(position, rows)}
                                : positionsOf(first, most, ofKeys ? scope.lenK : lenQ);
  SmallVector<KeyRun> runs;
  if (hasTileLists) {
    int64_t tileRows = ofKeys ? schedule.getKvTile() : schedule.getQTile();
    ListedWalk listed =
        listedWalk(*walk, ofKeys, kernelIsPacked() ? workTile.number : math.floorDiv(workTile.first, tileRows),
                   tileRows * rowStride);
    runs = listed.runs, tileAt = listed.tileAt;
  } else {
    runs = ofKeys ? walk->queryRuns(math, own, schedule.getQTile() * rowStride)
                  : walk->runs(math, own, schedule.getKvTile() * rowStride);
  }
  // Query tiles are visited in descending order. With a causal mask or the like, a KV tile then reaches its first query
  // tile when the preceding KV tile is two or more query tiles ahead, and need not wait for it.
  if (results.firstCtaStores()) {
    assert(!hasTileLists && "lists of tiles have an order of their own (BackwardKernelsSchedule)");
    Index rows = hasPieces() ? queryPiece.rows : lenQ;
    Index tiles = math.named(math.ceilDiv(rows, schedule.getQTile() * rowStride), "query_tiles");
    runs = mirrored(math, runs, tiles);
    tileAt = [=, this](Index j) { return math.sub(math.sub(tiles, 1), j); };
  }
  if (workTile.part)
    cutToSplit(runs);
  if (results.accumulatesDq()) // keys beyond the sequence's last must not contribute to dQ
    testAll(runs, math.lt(rows, most));
  return runs;
}

void BackwardWalk::cutToSplit(MutableArrayRef<KeyRun> runs) {
  cutTiles(math, runs, workTile.part->first, workTile.part->end);
  if (runs.size() != 1)
    return;
  if (hasTileLists)
    return;
  // A loop from 0 on takes a register less, which wide heads lack.
  SmallVector<Index> &bounds = runs.front().bounds;
  Index begin = bounds.front();
  for (Index &bound : bounds)
    bound = bound == begin ? Index(0) : math.sub(bound, begin);
  Index first = math.named(tileAt ? tileAt(begin) : begin, "first_tile");
  bool isMirrored = bool(tileAt);
  tileAt = [=, this](Index j) { return isMirrored ? math.sub(first, j) : math.add(first, j); };
}

SmallVector<Value> BackwardWalk::findOwnBounds(ArrayRef<KeyRun> runs) {
  constexpr int64_t rows = 64;
  bool narrow = schedule.getQTile() <= rows; // wider ones see some key of each tile
  // With packed rows or ordered dQ accumulation, no registers are left for the bounds, and modifiers that need
  // positions of scores get slower.
  bool modified = !problem.getModifiers().empty() &&
                  (kernelIsPacked() || results.order == DqAccumulation::ordered || !onlyModifierHasSmall());
  if (!hasDqMma || hasPieces() || workTile.part || !narrow || modified || !sparesRegisters() || hasTileLists ||
      runs.size() != 1 || !walk->hidesKeys() || !walk->hasOneRun())
    return {};
  Index before = math.mul(Index(Value(IndexOp::create(b, loc, IndexKind::warpgroup))), rows),
        count = math.sub(workTile.rows, before);
  SmallVector<KeyRun> own = findRuns(math.add(workTile.first, before), math.min(count, rows), rows);
  const KeyRun &all = runs.front();
  if (own.size() != 1 || own.front().tests != all.tests)
    return {};
  SmallVector<Index> &bounds = own.front().bounds;
  bounds.front() = math.clamp(bounds.front(), all.bounds.front(), all.bounds.back());
  bounds.back() =
      math.select(math.lt(0, count), math.clamp(bounds.back(), bounds.front(), all.bounds.back()), bounds.front());
  return llvm::map_to_vector(bounds, [&](Index bound) { return math.value(bound); });
}

void BackwardWalk::testAll(MutableArrayRef<KeyRun> runs, Cond cond) {
  for (KeyRun &run : runs) {
    size_t i = llvm::find_if(run.tests, [](auto &tests) { return tests.empty(); }) - run.tests.begin();
    if (i == run.tests.size())
      continue;
    if (i + 1 == run.tests.size() && i == 0) { // no segment has tests yet
      run.bounds.insert(run.bounds.begin(), run.bounds.front());
      run.tests.insert(run.tests.begin(), allTests);
      ++i;
    }
    if (i > 0)
      run.bounds[i] = math.select(cond, run.bounds[i + 1], run.bounds[i]);
    else
      run.bounds[i + 1] = math.select(cond, run.bounds[i], run.bounds[i + 1]);
  }
}

Interval BackwardWalk::positionsOfTile(bool keys, Index first) {
  int64_t rows = keys ? schedule.getKvTile() : schedule.getQTile();
  if (!hasPieces())
    return positionsOf(first, rows, keys ? scope.lenK : lenQ);
  const Piece &piece = keys ? keyPiece : queryPiece;
  return {math.add(piece.position, first), math.add(piece.position, math.min(math.add(first, rows), piece.rows))};
}

Cond BackwardWalk::adds(Index other, Index tile) {
  Interval keys = positionsOfTile(/*keys=*/true, math.mul(other, schedule.getKvTile()));
  IntervalList tiles =
      llvm::map_to_vector(walk->queryRuns(math, keys, schedule.getQTile() * rowStride),
                          [](const KeyRun &run) { return Interval{run.bounds.front(), run.bounds.back()}; });
  return contains(math, tiles, tile);
}

Index BackwardWalk::firstVisibleKvTile(Index q0) {
  SmallVector<KeyRun> runs = walk->runs(math, positionsOfTile(/*keys=*/false, q0), schedule.getKvTile() * rowStride);
  return runs.empty() ? Index(0) : runs.front().bounds.front();
}

Cond BackwardWalk::seesFirstKeyTileOnly(Index tile, Index q0) {
  SmallVector<KeyRun> runs = walk->runs(math, positionsOfTile(/*keys=*/false, q0), schedule.getKvTile() * rowStride);
  Cond isOnlyTile = adds(0, tile);
  for (const KeyRun &run : runs)
    isOnlyTile = math.logicalAnd(math.le(run.bounds.back(), 1), isOnlyTile);
  return isOnlyTile;
}
