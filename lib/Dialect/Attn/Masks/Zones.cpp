// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why the list of a zone is exact: let lo be the largest lower bound that its lines and its bounds give,
// lo < hi, and no two bounds of the distance cross. Then the lines that see lo by its distance are an
// interval that begins at or before the last of those asked for and ends at or behind the first: one
// of them sees it. What is between lo and hi is seen likewise.
//
#include "Diagonal.h"

using namespace attn;

static constexpr Diagonal diagonals[] = {Diagonal::top_left, Diagonal::bottom_right};

/// Each zone is an interval of a list, and one with a chunk two.
static std::optional<Zones> ifFew(Zones zones) {
  size_t intervals = 0;
  for (const Zone &zone : zones)
    intervals += size_t(1) << zone.chunks.size();
  return intervals > maxIntervals ? std::nullopt : std::optional(std::move(zones));
}

static bool isKnownEmpty(const Zone::Range &range) {
  return range.hi && range.lo.isConstant() && range.hi->isConstant() && range.hi->getNumber() <= range.lo.getNumber();
}

static bool isKnownEmpty(const Zone::Band &band) { return band.lo && band.hi && *band.hi <= *band.lo; }

static Zone::Range intersect(IndexMath &math, const Zone::Range &a, const Zone::Range &b) {
  return {math.max(a.lo, b.lo), a.hi && b.hi ? math.min(*a.hi, *b.hi) : a.hi ? a.hi : b.hi};
}

static Zone::Band intersect(const Zone::Band &a, const Zone::Band &b) {
  return {a.lo && b.lo ? std::max(a.lo, b.lo)
          : a.lo       ? a.lo
                       : b.lo,
          a.hi && b.hi ? std::min(a.hi, b.hi)
          : a.hi       ? a.hi
                       : b.hi};
}

/// False if a place is asked for beside the same chunks as another.
static bool addChunk(llvm::SmallVectorImpl<Zone::Chunk> &chunks, const Zone::Chunk &chunk) {
  for (const Zone::Chunk &other : chunks)
    if (other.length == chunk.length && other.diagonal == chunk.diagonal)
      return other.place == chunk.place;
  chunks.push_back(chunk);
  return true;
}

/// nullopt if it is known to be empty.
static std::optional<Zone> intersect(IndexMath &math, const Zone &a, const Zone &b) {
  Zone zone = {intersect(math, a.q, b.q), intersect(math, a.k, b.k), {}, a.chunks};
  bool empty = isKnownEmpty(zone.q) || isKnownEmpty(zone.k);
  for (auto [i, band] : llvm::enumerate(zone.bands)) {
    band = intersect(a.bands[i], b.bands[i]);
    empty |= isKnownEmpty(band);
  }
  for (const Zone::Chunk &chunk : b.chunks)
    empty |= !addChunk(zone.chunks, chunk);
  return empty ? std::nullopt : std::optional(zone);
}

std::optional<Zones> attn::intersect(IndexMath &math, llvm::ArrayRef<Zone> a, llvm::ArrayRef<Zone> b) {
  Zones result;
  for (const Zone &x : a)
    for (const Zone &y : b)
      if (std::optional<Zone> zone = ::intersect(math, x, y))
        result.push_back(*zone);
  return ifFew(std::move(result));
}

/// Beyond each of its bounds.
static Zones outside(const Zone &zone) {
  Zones result;
  for (Zone::Range Zone::*axis : {&Zone::q, &Zone::k}) {
    const Zone::Range &range = zone.*axis;
    if (!range.lo.is(0))
      (result.emplace_back().*axis).hi = range.lo;
    if (range.hi)
      (result.emplace_back().*axis).lo = *range.hi;
  }
  for (Diagonal diagonal : diagonals) {
    const Zone::Band &band = zone.band(diagonal);
    if (band.lo)
      result.emplace_back().band(diagonal).hi = band.lo;
    if (band.hi)
      result.emplace_back().band(diagonal).lo = band.hi;
  }
  for (const Zone::Chunk &chunk : zone.chunks)
    for (auto place : {Zone::Chunk::Before, Zone::Chunk::Within, Zone::Chunk::Behind})
      if (place != chunk.place)
        result.emplace_back().chunks.push_back({place, chunk.length, chunk.diagonal});
  return result;
}

std::optional<Zones> attn::unite(llvm::ArrayRef<Zone> a, llvm::ArrayRef<Zone> b) {
  Zones result(a);
  result.append(b.begin(), b.end());
  return ifFew(std::move(result));
}

std::optional<Zones> attn::complement(IndexMath &math, llvm::ArrayRef<Zone> zones) {
  std::optional<Zones> result = Zones{Zone()};
  for (const Zone &zone : zones)
    if (result)
      result = intersect(math, *result, outside(zone));
  return result;
}

/// Do rows see what their diagonal meets, if anything? Then what they see of one chunk and of the next one touches.
static bool hasDiagonal(const Zone &zone, const Zone::Chunk &chunk) {
  const Zone::Band &own = zone.band(chunk.diagonal), &other = zone.bands[!uint32_t(chunk.diagonal)];
  bool within = own.lo.value_or(0) <= 0 && own.hi.value_or(1) > 0 && !other.lo && !other.hi;
  return chunk.place == Zone::Chunk::Within && within;
}

bool attn::linesAreEnough(llvm::ArrayRef<Zone> zones, Lines lines) {
  return llvm::all_of(zones, [&](const Zone &zone) {
    bool ofRows = lines == Lines::Rows;
    const Zone::Range &own = ofRows ? zone.q : zone.k;
    auto [a, b] = zone.bands;
    // A line's bound moves with it: that of the first line that counts is asked for, and of the last.
    bool moves = !zone.chunks.empty(), firstMatters = moves || (ofRows ? a.lo || b.lo : a.hi || b.hi),
         lastMatters = moves || (ofRows ? a.hi || b.hi : a.lo || b.lo);
    bool ends = own.lo.is(0) ? !own.hi || !lastMatters : !own.hi && !firstMatters;
    bool cross = (a.lo && b.hi) || (b.lo && a.hi);
    bool inOnePiece = zone.chunks.empty() || (zone.chunks.size() == 1 && hasDiagonal(zone, zone.chunks.front()));
    return ends && !cross && inOnePiece;
  });
}

/// Do bounds of the one diagonal and of the other leave a distance?
static Cond leavesDistance(IndexMath &math, const MaskScope &scope, const Zone &zone) {
  const auto &[left, right] = zone.bands;
  Index shift = diagonalShift(math, scope, Diagonal::bottom_right);
  // From above and below, no shift is as large as 2^31.
  auto bound = [](int64_t distance) { return Index(std::clamp<int64_t>(distance, -INT32_MAX, INT32_MAX)); };
  Cond leaves = Cond::of(true);
  if (left.lo && right.hi)
    leaves = math.lt(bound(*left.lo - *right.hi), shift);
  if (right.lo && left.hi)
    leaves = math.logicalAnd(leaves, math.lt(shift, bound(*left.hi - *right.lo)));
  return leaves;
}

/// The zone's lines of the first chunk that is asked for, and all others; the places beside chunks are then bounds.
static std::array<Zone, 2> partsByChunk(IndexMath &math, const MaskScope &scope, Zone zone, Lines lines,
                                        Interval which) {
  Zone::Chunk chunk = zone.chunks.pop_back_val();
  bool ofRows = lines == Lines::Rows;
  // Chunks are counted where keys are; q there is q + shift.
  Index shift = diagonalShift(math, scope, chunk.diagonal);
  auto own = ofRows ? &Zone::q : &Zone::k, other = ofRows ? &Zone::k : &Zone::q;
  auto ofOwn = [&](Index x) { return ofRows ? math.sub(x, shift) : x; };
  auto ofOther = [&](Index y) { return ofRows ? y : math.sub(y, shift); };
  auto endOfChunk = [&](Index line) { // what lies before the first chunk has one that ends at 0
    Index x = ofRows ? math.add(line, shift) : line;
    if (ofRows && !shift.is(0))
      x = math.max(x, -1);
    return math.mul(math.floorDiv(math.add(x, chunk.length), chunk.length), chunk.length);
  };
  Index firstLine = math.max(which.lo, (zone.*own).lo);
  Index first = endOfChunk(firstLine), last = endOfChunk(math.sub(which.hi, 1));

  auto before = [&](Zone::Range &range, Index hi) { range.hi = range.hi ? math.min(*range.hi, hi) : hi; };
  auto from = [&](Zone::Range &range, Index lo) { range.lo = math.max(range.lo, lo); };
  // Of the chunks that end at `firstEnd` to `lastEnd`: what lies before or behind some of them, or within.
  auto place = [&](Zone::Range &range, Index firstEnd, Index lastEnd) {
    // Rows are before the chunk of a key that is behind theirs.
    bool ahead = chunk.place == (ofRows ? Zone::Chunk::Before : Zone::Chunk::Behind);
    if (chunk.place == Zone::Chunk::Within)
      from(range, ofOther(math.sub(firstEnd, chunk.length)));
    if (chunk.place == Zone::Chunk::Within || ahead)
      before(range, ofOther(ahead ? math.sub(lastEnd, chunk.length) : lastEnd));
    else
      from(range, ofOther(firstEnd));
  };
  std::array<Zone, 2> parts = {zone, zone};
  before(parts[0].*own, ofOwn(first));
  place(parts[0].*other, first, first);
  from(parts[1].*own, ofOwn(first));
  // Behind all keys any number will do, of 32 bits.
  place(parts[1].*other, math.add(math.min(first, scope.lenK), chunk.length), last);
  return parts;
}

static Interval seenOfPart(IndexMath &math, const MaskScope &scope, const Zone &zone, Lines lines, Interval which) {
  bool ofRows = lines == Lines::Rows;
  const Zone::Range &own = ofRows ? zone.q : zone.k, &other = ofRows ? zone.k : zone.q;
  Index extent = ofRows ? scope.lenK : scope.lenQ;
  auto line = [&](Diagonal diagonal, Bound lo, Bound hi, Index at) {
    Bound left = lo ? Bound(-*lo) : lo, right = hi ? Bound(*hi - 1) : hi;
    return ofRows ? diagonalRow(math, scope, diagonal, left, right, at).front()
                  : diagonalColumn(math, scope, diagonal, left, right, at).front();
  };

  Cond any = leavesDistance(math, scope, zone);
  Index first = math.max(which.lo, own.lo), behind = own.hi ? math.min(which.hi, *own.hi) : which.hi;
  if (!own.lo.is(0) || own.hi)
    any = math.logicalAnd(any, math.lt(first, behind));
  Interval seen = {other.lo, other.hi ? math.min(*other.hi, extent) : extent};
  for (Diagonal diagonal : diagonals) {
    const Zone::Band &band = zone.band(diagonal);
    const Bound &ahead = ofRows ? band.lo : band.hi, &after = ofRows ? band.hi : band.lo;
    if (ahead)
      seen.lo = math.max(seen.lo, line(diagonal, band.lo, band.hi, first).lo);
    if (after)
      seen.hi = math.min(seen.hi, line(diagonal, band.lo, band.hi, math.sub(behind, 1)).hi);
  }
  seen.lo = math.clamp(seen.lo, 0, extent);
  return {seen.lo, math.select(any, seen.hi, seen.lo)};
}

IntervalList attn::seenBySome(IndexMath &math, const MaskScope &scope, llvm::ArrayRef<Zone> zones, Lines lines,
                              Interval which) {
  IntervalList result;
  for (const Zone &zone : zones) {
    IntervalList seen;
    if (zone.chunks.empty())
      seen = {seenOfPart(math, scope, zone, lines, which)};
    else
      seen = seenBySome(math, scope, partsByChunk(math, scope, zone, lines, which), lines, which);
    result = unite(math, result, seen);
  }
  return result;
}
