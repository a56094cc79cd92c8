// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/TileMap.h"

using namespace attn;

/// Pairs that are looked at one by one, at most, and rows that are counted.
constexpr double mostPairs = 1 << 25;

TileCounts &TileCounts::operator+=(const TileCounts &o) {
  empty = empty < 0 || o.empty < 0 ? -1 : empty + o.empty;
  tiles += o.tiles, visited += o.visited, full += o.full, pairs += o.pairs, visible += o.visible;
  exact &= o.exact;
  return *this;
}

TileMap::TileMap(MaskInterface mask, MaskInterface walked, const reference::Sequences &sequences, int64_t sequence,
                 int64_t head, int64_t qTile, int64_t kvTile, int64_t rowStride, bool lists)
    : lenQ(sequences.queriesOf(sequence).length), lenK(sequences.keysOf(sequence).length), qTile(qTile * rowStride),
      kvTile(kvTile * rowStride), mask(mask), walked(walked), tilesOfCell(rowStride),
      point(sequences.point(sequence, head)), scope(sequences.scope(sequence, head)),
      canLook(double(lenQ) * lenK <= mostPairs), lists(lists) {}

bool TileMap::keeps(int64_t q, int64_t k) {
  point.q = q, point.k = k;
  return mask.keeps(point);
}

static Interval numbers(int64_t lo, int64_t hi) { return {Index::position(lo), Index::position(hi)}; }

TileClass TileMap::classOf(Interval queries, Interval keys) {
  TileClass known = classify(mask, scope, queries, keys);
  if (!canLook || known != TileClass::Partial)
    return known;
  bool any = false, all = true;
  for (int64_t q = queries.lo.getNumber(); q < queries.hi.getNumber() && (all || !any); ++q)
    for (int64_t k = keys.lo.getNumber(); k < keys.hi.getNumber() && (all || !any); ++k)
      (keeps(q, k) ? any : all) = keeps(q, k);
  return !any ? TileClass::Empty : all ? TileClass::Full : TileClass::Partial;
}

std::vector<KeyRun> TileMap::runsOf(int64_t q0) {
  IndexMath math;
  Interval queries = numbers(q0, std::min(q0 + qTile, lenQ));
  llvm::SmallVector<KeyRun> runs = KeyWalk(walked, scope).runs(math, queries, kvTile);
  if (!lists)
    return {runs.begin(), runs.end()};
  std::vector<KeyRun> listed;
  for (const KeyRun &run : runs)
    for (int64_t j = run.bounds.front().getNumber(); j < run.bounds.back().getNumber(); ++j) {
      int64_t behind = (j + 1) * kvTile;
      TileTruth truth = walked.tileTruth(math, scope, queries, numbers(j * kvTile, std::min(behind, lenK)));
      if (!truth.some.getNumber())
        continue;
      KeyRun &tile = listed.emplace_back();
      tile.bounds = {j, j + 1};
      tile.tests.resize(1);
      if (!truth.all.getNumber() || behind > lenK)
        tile.tests[0].push_back(0);
    }
  return listed;
}

int64_t TileMap::visibleIn(int64_t q) {
  IndexMath math;
  if (auto row = mask.rowIntervals(math, scope, Index::position(q)))
    return countOf(*row);
  int64_t visible = 0;
  TileRanges ranges = mask.keyRanges(math, scope, numbers(q, q + 1));
  for (const Interval &i : ranges.some)
    for (int64_t k = i.lo.getNumber(), end = i.hi.getNumber(); k < end;) {
      const auto *known = llvm::find_if(
          ranges.all, [&](const Interval &all) { return all.lo.getNumber() <= k && k < all.hi.getNumber(); });
      int64_t next = known == ranges.all.end() ? k + 1 : std::min(end, known->hi.getNumber());
      visible += known == ranges.all.end() ? keeps(q, k) : next - k;
      k = next;
    }
  return visible;
}

TileCounts TileMap::count() {
  TileCounts counts;
  int64_t across = llvm::divideCeil(lenK, kvTile);
  counts.tiles = double(llvm::divideCeil(lenQ, qTile)) * across;
  counts.pairs = double(lenQ) * lenK;
  bool looks = canLook || counts.tiles <= mostPairs / 64;
  if (!looks)
    counts.empty = -1;
  for (int64_t q0 = 0; q0 < lenQ; q0 += qTile)
    for (const KeyRun &run : runsOf(q0))
      for (auto [i, tests] : llvm::enumerate(run.tests)) {
        int64_t begin = run.bounds[i].getNumber(), end = run.bounds[i + 1].getNumber();
        counts.visited += end - begin;
        counts.full += tests.empty() ? end - begin : 0;
        for (int64_t j = begin; looks && j < end; ++j)
          counts.empty += classOf(numbers(q0, std::min(q0 + qTile, lenQ)),
                                  numbers(j * kvTile, std::min((j + 1) * kvTile, lenK))) == TileClass::Empty;
      }
  for (double *cells : {&counts.tiles, &counts.visited, &counts.full})
    *cells *= tilesOfCell;
  if (counts.empty > 0)
    counts.empty *= tilesOfCell;
  // Rows of intervals cost as much as one pair.
  IndexMath math;
  bool cheap = lenQ && mask.rowIntervals(math, scope, Index::position(0));
  int64_t step = std::max<int64_t>(1, int64_t((cheap ? double(lenQ) : counts.pairs) / mostPairs) + 1);
  int64_t looked = 0;
  for (int64_t q = step / 2; q < lenQ; q += step, ++looked)
    counts.visible += visibleIn(q);
  counts.exact = step == 1;
  if (looked)
    counts.visible *= double(lenQ) / looked;
  return counts;
}

TileMap::Cells TileMap::cells(int64_t most) {
  Cells cells;
  int64_t down = llvm::divideCeil(lenQ, qTile), across = llvm::divideCeil(lenK, kvTile);
  cells.tilesDown = std::max<int64_t>(1, llvm::divideCeil(down, most));
  cells.tilesAcross = std::max<int64_t>(1, llvm::divideCeil(across, most));
  int64_t height = cells.tilesDown * qTile, width = cells.tilesAcross * kvTile;
  for (int64_t q = 0; q < lenQ; q += height) {
    int64_t behind = std::min(q + height, lenQ);
    std::vector<int64_t> visited(llvm::divideCeil(across, cells.tilesAcross)), full = visited;
    for (int64_t q0 = q; q0 < behind; q0 += qTile)
      for (const KeyRun &run : runsOf(q0))
        for (auto [i, tests] : llvm::enumerate(run.tests)) {
          int64_t end = run.bounds[i + 1].getNumber();
          for (int64_t j = run.bounds[i].getNumber(), next; j < end; j = next) { // a cell's part of the run
            next = std::min(end, (j / cells.tilesAcross + 1) * cells.tilesAcross);
            visited[j / cells.tilesAcross] += next - j;
            full[j / cells.tilesAcross] += tests.empty() ? next - j : 0;
          }
        }
    auto &row = cells.rows.emplace_back();
    for (auto [i, count] : llvm::enumerate(visited)) {
      int64_t k = i * width,
              tiles = llvm::divideCeil(behind - q, qTile) * llvm::divideCeil(std::min(width, lenK - k), kvTile);
      row.push_back(count == 0         ? Cell::Skipped
                    : full[i] == tiles ? Cell::Full
                    : classOf(numbers(q, behind), numbers(k, std::min(k + width, lenK))) == TileClass::Empty
                        ? Cell::Empty
                        : Cell::Partial);
    }
  }
  return cells;
}
