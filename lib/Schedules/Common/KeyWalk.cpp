// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Schedules/KeyWalk.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

// Two more launches take as long as attending to some hundred keys.
bool attn::mayListTiles(ProblemOp problem) {
  return !problem.getQLayout().hasPieces() && problem.expectedKeys().value_or(INT32_MAX) > 1024 &&
         leavesTilesOut(problem.getMask());
}

bool attn::hasTileLists(ProblemOp problem, tile::ScheduleInterface schedule) {
  return schedule.getUnit() != tile::WorkUnit::warp_per_sequence && !schedule.splitsKv() &&
         (schedule.getQueries() % 16 == 0 || boundingLists(problem.getMask())) && mayListTiles(problem);
}

KeyWalk::KeyWalk(MaskInterface mask, MaskScope scope) : mask(mask), scope(scope) {
  // The kind of a row's interval and whether it has a lower bound do not depend on the probed position.
  Index any = Index::position(1);
  MaskScope probe{any, any, any, any, [](unsigned, Index) { return Index::runtime(1); }};
  IndexMath math;
  unsigned first = 0;
  for (MaskInterface conjunct : mask.conjuncts()) {
    auto rows = conjunct.rowIntervals(math, probe.ofChild(first), any);
    bool single = rows && rows->size() == 1;
    (single ? intervals : others).push_back({conjunct, scope.ofChild(first)});
    lower |= single && !rows->front().lo.is(0);
    hides |= !isa<FullMaskAttr>(conjunct);
    first += conjunct.operands().size();
  }
}

Interval KeyWalk::row(IndexMath &math, Index q) {
  Interval row = {testsFirst ? keySpan->lo : Index(0), keySpan ? keySpan->hi : scope.lenK};
  for (Conjunct &c : intervals) {
    // Bounds need no clamping: `hi` starts at lenK, and keys are never negative.
    Interval i = c.mask.rowIntervals(math, c.scope.withoutClamping(), q)->front();
    row = {row.lo.is(0) ? i.lo
           : i.lo.is(0) ? row.lo
                        : math.max(row.lo, i.lo),
           i.hi == scope.lenK ? row.hi : math.min(i.hi, row.hi)};
  }
  return row;
}

static constexpr int64_t probeLength = 1 << 20; // longer than any window

/// A sequence for evaluating masks before any length is known.
static MaskScope probeScope() {
  MaskScope probe;
  probe.lenQ = probe.lenK = Index::position(probeLength);
  probe.load = [](unsigned, Index) { return Index::runtime(1); };
  return probe;
}

bool attn::someEndInFirstTile(MaskInterface mask, bool someAreShort) {
  IndexMath math;
  auto keysOf = [&](int64_t q) {
    return mask.keyRanges(math, probeScope(), {Index::position(q), Index::position(q + 64)}).some;
  };
  IntervalList later = keysOf(probeLength / 2), first = keysOf(0);
  if (later.size() != 1 || first.size() != 1)
    return false;
  return someAreShort || (later.front().lo.is(0) && countOf(first) <= 128 && countOf(first) < countOf(later));
}

unsigned attn::comparesOf(MaskInterface mask) {
  unsigned compares = 0;
  for (MaskInterface child : mask.children())
    compares += comparesOf(child);
  if (compares)
    return compares;
  IndexMath math;
  MaskScope scope = probeScope();
  for (const Interval &keys : mask.rowIntervals(math, scope, Index::position(probeLength / 2)).value_or(IntervalList()))
    compares += (keys.lo.getNumber() > 0) + (keys.hi.getNumber() < probeLength);
  return std::max(compares, 1u);
}

bool attn::dividesRows(MaskInterface mask) {
  auto chunk = llvm::dyn_cast<ChunkMaskAttr>(mask);
  return chunk ? !llvm::isPowerOf2_64(chunk.getLength()) : llvm::any_of(mask.children(), dividesRows);
}

bool attn::showsIntervals(MaskInterface mask) {
  auto children = mask.children();
  if (!children.empty())
    return llvm::all_of(children, showsIntervals);
  IndexMath math;
  return mask.rowIntervals(math, probeScope(), Index::position(0)).has_value();
}

int64_t KeyWalk::keysOf(int64_t q) { return countKeys(mask, probeScope(), q); }

/// The queries that see some of 128 keys.
static IntervalList queriesOf(MaskInterface mask, int64_t firstKey) {
  IndexMath math;
  Interval keys = {Index::position(firstKey), Index::position(firstKey + 128)};
  return mask.queryRanges(math, probeScope(), keys).some;
}

bool KeyWalk::hasOneRun() { return queriesOf(mask, probeLength / 2).size() == 1; }

bool KeyWalk::beginsWithLongest() {
  return countOf(queriesOf(mask, 0)) > 4 * countOf(queriesOf(mask, probeLength / 2));
}

bool KeyWalk::beginsWithLongestRows() {
  IndexMath math;
  auto keysOfTile = [&](int64_t q) {
    return countOf(mask.keyRanges(math, probeScope(), {Index::position(q), Index::position(q + 128)}).some);
  };
  return keysOfTile(0) > 4 * keysOfTile(probeLength / 2) && keysOfTile(0) > 4 * keysOfTile(probeLength - 128);
}

bool KeyWalk::growsWithRows() { return keysOf(probeLength - 1) > keysOf(probeLength / 2) * 5 / 4; }

bool KeyWalk::hasFewKeys(int64_t most) { return keysOf(probeLength - 1) <= most; }

bool KeyWalk::hasShortRows(int64_t most) { return hasOneRun() && !beginsWithLongest() && hasFewKeys(most); }

bool KeyWalk::slides() {
  IndexMath math;
  auto lastOf = [&](int64_t q) {
    IntervalList keys = mask.keyRanges(math, probeScope(), {Index::position(q), Index::position(q + 1)}).some;
    return keys.empty() ? 0 : keys.back().hi.getNumber();
  };
  return lastOf(probeLength / 2) != lastOf(probeLength / 2 + 1);
}

bool KeyWalk::isLocal() { return keysOf(probeLength - 1) < probeLength / 8; }

llvm::SmallVector<Cond> KeyWalk::tests(IndexMath &math, Index q, Index k) {
  llvm::SmallVector<Cond> tests;
  Interval visible = row(math, q);
  if (lower)
    tests.push_back(math.le(visible.lo, k));
  tests.push_back(math.lt(k, visible.hi));
  for (Conjunct &c : others)
    tests.push_back(c.mask.emitKeep(math, c.scope, q, k));
  return tests;
}

KeyWalk::Tests KeyWalk::numbers(bool withLower) {
  Tests numbers;
  for (int64_t test = lower && !withLower, n = (lower ? 2 : 1) + others.size(); test < n; ++test)
    numbers.push_back(test);
  return numbers;
}

llvm::SmallVector<KeyRun> KeyWalk::runs(IndexMath &math, Interval queries, int64_t kvTile) {
  // After a full tile of a single run, no key lies before the first visible key of any row.
  queries = {queries.lo.atLeast(0), queries.hi.atLeast(0)};
  TileRanges ranges = within(math, mask.keyRanges(math, scope, queries), keySpan, scope.lenK);
  return runsOf(math, ranges, kvTile, numbers(/*withLower=*/false), std::nullopt);
}

llvm::SmallVector<KeyRun> KeyWalk::queryRuns(IndexMath &math, Interval keys, int64_t qTile) {
  keys = {keys.lo.atLeast(0), keys.hi.atLeast(0)};
  TileRanges ranges = within(math, mask.queryRanges(math, scope, keys), querySpan, scope.lenQ);
  return runsOf(math, ranges, qTile, numbers(/*withLower=*/true), spanOf(math, querySpan, scope.lenQ));
}

TileRanges KeyWalk::within(IndexMath &math, TileRanges ranges, const std::optional<Interval> &span, Index length) {
  if (!span)
    return ranges;
  Index count = spanOf(math, span, length);
  for (IntervalList *list : {&ranges.some, &ranges.all})
    for (Interval &interval : *list) {
      auto rowOf = [&](Index position) { return math.clamp(math.sub(position, span->lo), 0, count); };
      interval = {interval.lo.is(0) ? Index(0) : rowOf(interval.lo),
                  interval.hi == length ? count : rowOf(interval.hi)};
    }
  return ranges;
}

llvm::SmallVector<KeyRun> KeyWalk::runsOf(IndexMath &math, const TileRanges &ranges, int64_t tile, const Tests &last,
                                          std::optional<Index> openEnd) {
  const Tests every = numbers(/*withLower=*/true);

  // Each run has at most one segment of full tiles: the interval of `all` at the same position, counted from the end.
  // Further full segments would be correct but rare, and each is one more loop.
  size_t skipped = ranges.some.size() - std::min(ranges.some.size(), ranges.all.size());
  llvm::SmallVector<KeyRun> runs;
  Index cursor = 0; // first unvisited tile
  for (auto [i, some] : llvm::enumerate(ranges.some)) {
    KeyRun run;
    Index begin = math.floorDiv(some.lo, tile), end = math.ceilDiv(some.hi, tile);
    if (!runs.empty())
      begin = math.max(begin, cursor);
    Cond isNonEmpty = some.lo.is(0) ? Cond::of(true) : math.lt(some.lo, some.hi);
    end = math.select(isNonEmpty, end, begin); // an empty interval visits no tile
    if (!runs.empty())
      end = math.max(begin, end);
    begin = math.named(begin, "begin");
    end = math.named(end, "end");

    run.bounds.push_back(begin);
    auto extend = [&](Index to, llvm::ArrayRef<int64_t> tests) {
      if (to == run.bounds.back())
        return;
      run.bounds.push_back(to);
      run.tests.emplace_back(tests);
    };
    bool single = ranges.some.size() == 1;
    bool hasFull = i >= skipped && !ranges.all.empty();
    if (hasFull) {
      const Interval &all = ranges.all[ranges.all.size() - (ranges.some.size() - i)];
      bool open = openEnd && all.hi == *openEnd && some.hi == *openEnd;
      Index from = math.ceilDiv(all.lo, tile), to = open ? end : math.floorDiv(all.hi, tile);
      if (!(from == begin))
        from = math.min(math.max(from, begin), end);
      if (!open)
        to = math.min(from.is(0) ? to : math.max(to, from), end);
      extend(math.named(from, "full_begin"), every);
      extend(open ? end : math.named(to, "full_end"), {});
    }
    extend(end, hasFull && single ? last : every);
    if (run.tests.empty())
      continue;
    // NOTE: empty intervals may be anywhere, so they do not move the cursor.
    if (i + 1 < ranges.some.size())
      cursor = math.select(isNonEmpty, end, cursor);
    runs.push_back(std::move(run));
  }
  return runs;
}

Index attn::countTiles(IndexMath &math, llvm::ArrayRef<KeyRun> runs) {
  Index count = 0;
  for (const KeyRun &run : runs)
    count = math.add(count, math.sub(run.bounds.back(), run.bounds.front()));
  return count;
}

void attn::cutTiles(IndexMath &math, llvm::MutableArrayRef<KeyRun> runs, Index from, Index to) {
  Index before = 0; // tiles of preceding runs
  for (KeyRun &run : runs) {
    Index begin = run.bounds.front(), count = math.sub(run.bounds.back(), begin);
    auto within = [&](Index tile) {
      tile = math.sub(tile, before);
      return math.add(begin, runs.size() == 1 ? tile : math.clamp(tile, 0, count));
    };
    Index first = math.named(within(from), "begin"), behind = math.named(within(to), "end");
    for (Index &bound : llvm::drop_end(llvm::drop_begin(run.bounds)))
      bound = bound == run.bounds.back() ? behind : math.clamp(bound, first, behind);
    run.bounds.front() = first;
    run.bounds.back() = behind;
    before = math.add(before, count);
  }
}

llvm::SmallVector<KeyRun> attn::mirrored(IndexMath &math, llvm::ArrayRef<KeyRun> runs, Index tiles) {
  llvm::SmallVector<KeyRun> reversed;
  for (const KeyRun &run : llvm::reverse(runs)) {
    KeyRun &other = reversed.emplace_back();
    for (Index bound : llvm::reverse(run.bounds))
      other.bounds.push_back(math.sub(tiles, bound));
    other.tests.assign(run.tests.rbegin(), run.tests.rend());
  }
  return reversed;
}

Interval attn::hullOf(IndexMath &math, llvm::ArrayRef<KeyRun> runs) {
  Interval hull = {0, 0};
  if (runs.empty())
    return hull;
  auto any = [&](const KeyRun &run) { return math.lt(run.bounds.front(), run.bounds.back()); };
  hull = {runs.back().bounds.front(), runs.front().bounds.back()};
  for (const KeyRun &run : llvm::reverse(runs.drop_back()))
    hull.lo = math.select(any(run), run.bounds.front(), hull.lo);
  for (const KeyRun &run : runs.drop_front())
    hull.hi = math.select(any(run), run.bounds.back(), hull.hi);
  return hull;
}

std::optional<Interval> attn::fullOf(llvm::ArrayRef<KeyRun> runs) {
  if (runs.size() == 1)
    for (auto [segment, tests] : llvm::enumerate(runs.front().tests))
      if (tests.empty())
        return Interval{runs.front().bounds[segment], runs.front().bounds[segment + 1]};
  return std::nullopt;
}
