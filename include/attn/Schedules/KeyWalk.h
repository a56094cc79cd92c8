// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a mask to the KV loop: its runs of tiles, their segments, and the element tests of each segment.
//
#ifndef ATTN_SCHEDULES_KEYWALK_H
#define ATTN_SCHEDULES_KEYWALK_H

#include "attn/Schedules/Passes.h"

namespace attn {

/// A run of tiles: segment i is bounds[i] <= j < bounds[i + 1] and needs tests[i].
struct KeyRun {
  llvm::SmallVector<Index> bounds;
  llvm::SmallVector<llvm::SmallVector<int64_t>> tests;
};

/// Do preceding kernels list the KV tiles that each query tile visits? Yes for masks that skip tiles
/// (`leavesTilesOut`), except with few keys or split-KV.
bool hasTileLists(ProblemOp problem, tile::ScheduleInterface schedule);

/// May a schedule of this problem have such lists?
bool mayListTiles(ProblemOp problem);

/// How many tiles lists have room for, and what happens beyond, for a reader.
std::string describeRoomOfLists(ProblemOp problem);

/// The number of compares for a mask's element test: the bounds of row intervals that lie within the sequence, one for
/// other leaves.
unsigned comparesOf(MaskInterface mask);
/// Does the element test have more than two compares? Kernels with a stationary Q or dropout have few registers for
/// them.
inline bool hasManyTests(MaskInterface mask) { return comparesOf(mask) > 2; }
/// Does a row's interval need a division, as with chunks of a length that is no power of two? A division takes
/// registers, too.
bool dividesRows(MaskInterface mask);
/// Do all leaves have row intervals of keys? Otherwise a test computes something for each position.
bool showsIntervals(MaskInterface mask);

/// May some query tiles see only keys of the first KV tile, and is this cheap to decide because the loop over keys is a
/// single run? (Evaluated for the first head's mask.) True for short sequences, and for long ones where runs begin at
/// the first key and grow with the row, as in a causal mask.
bool someEndInFirstTile(MaskInterface mask, bool someAreShort);

/// The number of tiles in the runs.
Index countTiles(IndexMath &math, llvm::ArrayRef<KeyRun> runs);

/// Restricts the runs to the tiles `from` to `to`, counted through all of them.
void cutTiles(IndexMath &math, llvm::MutableArrayRef<KeyRun> runs, Index from, Index to);

/// The same tiles from the last to the first: number j of them is tile `tiles` - 1 - j.
llvm::SmallVector<KeyRun> mirrored(IndexMath &math, llvm::ArrayRef<KeyRun> runs, Index tiles);

/// The interval from the first tile of the runs to the end of the last; empty without runs or if a single run is empty.
/// For several empty runs it may be non-empty.
Interval hullOf(IndexMath &math, llvm::ArrayRef<KeyRun> runs);

/// The full tiles, if there is a single run and it has any.
std::optional<Interval> fullOf(llvm::ArrayRef<KeyRun> runs);

/// A problem's mask with the sequence's bounds, as a conjunction. Conjuncts whose rows are single intervals are merged
/// into two compares, with the lower bound (if any) and the upper bound; each other conjunct is a test.
class KeyWalk {
public:
  KeyWalk(MaskInterface mask, MaskScope scope);

  /// The runs for the rows `queries` (not empty) and key tiles of `kvTile` keys.
  llvm::SmallVector<KeyRun> runs(IndexMath &math, Interval queries, int64_t kvTile);

  /// The reverse: the runs of query tiles of `qTile` rows for `keys` (not empty). Rows beyond the sequence's last are
  /// not tested: their probabilities are 0.
  llvm::SmallVector<KeyRun> queryRuns(IndexMath &math, Interval keys, int64_t qTile);

  /// Only keys (or queries) at these positions have rows, in tiles that are numbered from the first of them on: those
  /// of a piece. nullopt: all of the sequence have.
  void restrictKeys(std::optional<Interval> positions) { keySpan = positions; }
  /// Tiles may begin before the first of these keys, too, which is tested then.
  void testFirstKey() { lower = testsFirst = true; }
  void restrictQueries(std::optional<Interval> positions) { querySpan = positions; }

  /// The run over a list of tiles: the first `full` need no test, the others to `behind` do.
  KeyRun listed(Index full, Index behind) { return {{0, full, behind}, {{}, numbers()}}; }

  /// Do rows have a lower bound, as in a window? Then a run has three segments, not two.
  bool hasLowerTest() const { return lower; }

  /// Does the mask hide any key of the sequence from any row?
  bool hidesKeys() const { return hides; }

  /// Do rows see a small part of a long sequence, as in a window? Then a query tile has few KV tiles, and its prologue
  /// and epilogue matter.
  bool isLocal();

  /// Does the last row of a long sequence see at most `most` keys?
  bool hasFewKeys(int64_t most = 2048);

  /// Does a row see at most `most` keys, and is each key seen by one run of rows (a window, no sinks)? Much of a large
  /// tile is then hidden.
  bool hasShortRows(int64_t most = 2048);

  /// Does the last visible key change with each row, as in a window but not within a chunk?
  bool slides();

  /// Are the query tiles of a KV tile one run? Not so where distant rows see some keys, as with sinks.
  bool hasOneRun();

  /// Are the query loops of a long sequence's first keys much longer than those of other keys, as with sinks?
  bool beginsWithLongest();

  /// Are the key loops of a long sequence's first rows much longer than those of other rows, as with global rows?
  bool beginsWithLongestRows();

  /// Do later rows see more keys than earlier ones, as in a causal mask? Then the grid should start at the end.
  bool growsWithRows();

  /// The conditions, in the order the runs' tests number them.
  llvm::SmallVector<Cond> tests(IndexMath &math, Index q, Index k);

  using Tests = llvm::SmallVector<int64_t>;
  /// The numbers of all tests, or of all but the lower bound's.
  Tests numbers(bool withLower = true);

private:
  /// Runs of tiles of `tile` rows or keys. `last`: tests after the full tiles of a single run; `openEnd`: a sequence
  /// end beyond which no test is needed.
  llvm::SmallVector<KeyRun> runsOf(IndexMath &math, const TileRanges &ranges, int64_t tile, const Tests &last,
                                   std::optional<Index> openEnd);

  /// How many keys row `q` sees of a sequence of `probeLength`.
  int64_t keysOf(int64_t q);

  struct Conjunct {
    MaskInterface mask;
    MaskScope scope;
  };
  /// The row interval that the merged conjuncts leave.
  Interval row(IndexMath &math, Index q);
  /// Ranges of positions as those of the rows that have the positions of `span`; `length`: of the sequence.
  TileRanges within(IndexMath &math, TileRanges ranges, const std::optional<Interval> &span, Index length);
  /// How many positions these are.
  static Index spanOf(IndexMath &math, const std::optional<Interval> &span, Index length) {
    return span ? math.sub(span->hi, span->lo) : length;
  }
  MaskInterface mask;
  MaskScope scope;
  llvm::SmallVector<Conjunct> intervals, others;
  std::optional<Interval> keySpan, querySpan;
  bool lower = false, hides = false, testsFirst = false;
};

} // namespace attn

#endif // ATTN_SCHEDULES_KEYWALK_H
