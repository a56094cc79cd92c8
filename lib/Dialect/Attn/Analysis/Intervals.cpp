// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Set operations on sorted interval lists whose endpoints may be unknown until
// run time: the lists have a static length and intervals that turn out not to
// exist are empty. What is known to be empty here is left out.
//
#include "attn/Dialect/Attn/IR/IndexMath.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

/// Is the interval empty whatever the run-time values are?
static bool isKnownEmpty(const Interval &i) {
  return i.lo == i.hi || (i.hi.isConstant() && i.lo.isAtLeast(i.hi.getNumber()));
}

static void append(IntervalList &list, Interval interval) {
  if (!isKnownEmpty(interval))
    list.push_back(interval);
}

static Cond isEmpty(IndexMath &math, const Interval &i) { return math.le(i.hi, i.lo); }

/// Inserts `x`: walks up the list, carrying what has not found its place. An entry with
/// the same beginning or end joins it, empty or not. Where the carried interval meets an
/// entry (overlaps or touches it) the entry becomes empty and their hull is carried on;
/// where it lies before, they swap.
static IntervalList insert(IndexMath &math, llvm::ArrayRef<Interval> list, Interval x) {
  IntervalList result;
  for (Interval entry : list) {
    if (entry.lo == x.lo || entry.hi == x.hi) {
      x = {math.min(entry.lo, x.lo), math.max(entry.hi, x.hi)};
      continue;
    }
    Cond live = math.logicalNot(math.logicalOr(isEmpty(math, entry), isEmpty(math, x)));
    Cond meets = math.logicalAnd(live, math.logicalAnd(math.le(entry.lo, x.hi), math.le(x.lo, entry.hi)));
    Cond before = math.logicalAnd(live, math.lt(x.hi, entry.lo));
    // Three cases for the place at hand: nothing (merged), x (goes before), entry (stays).
    Interval place = {math.select(before, x.lo, entry.lo), math.select(before, x.hi, entry.hi)};
    place.hi = math.select(meets, place.lo, place.hi);
    Interval carry = {math.select(before, entry.lo, x.lo), math.select(before, entry.hi, x.hi)};
    carry.lo = math.select(meets, math.min(entry.lo, x.lo), carry.lo);
    carry.hi = math.select(meets, math.max(entry.hi, x.hi), carry.hi);
    append(result, place);
    x = carry;
  }
  append(result, x);
  return result;
}

IntervalList attn::unite(IndexMath &math, llvm::ArrayRef<Interval> a, llvm::ArrayRef<Interval> b) {
  IntervalList result(a);
  for (Interval x : b)
    result = insert(math, result, x);
  return result;
}

IntervalList attn::intersect(IndexMath &math, llvm::ArrayRef<Interval> a, llvm::ArrayRef<Interval> b) {
  IntervalList result;
  for (const Interval &x : a)
    for (const Interval &y : b)
      append(result, {math.max(x.lo, y.lo), math.min(x.hi, y.hi)});
  return result;
}

IntervalList attn::complement(IndexMath &math, llvm::ArrayRef<Interval> a, Index extent) {
  IntervalList result;
  Index cursor = 0;
  for (const auto &[i, x] : llvm::enumerate(a)) {
    if (i + 1 == a.size() && x.hi == extent) { // behind it lies nothing, empty or not
      append(result, {cursor, x.lo.is(0) ? x.lo : math.min(x.lo, extent)});
      return result;
    }
    if (x.lo.is(0)) { // before it lies nothing
      cursor = cursor.is(0) ? math.max(x.hi, 0) : math.max(cursor, x.hi);
      continue;
    }
    // NOTE: empty intervals stand anywhere, so nothing before one may be taken for free.
    Cond empty = isEmpty(math, x);
    append(result, {cursor, math.select(empty, cursor, math.min(x.lo, extent))});
    cursor = math.select(empty, cursor, math.max(cursor, x.hi));
  }
  append(result, {cursor, extent});
  return result;
}

Cond attn::contains(IndexMath &math, llvm::ArrayRef<Interval> a, Index x) {
  Cond result = Cond::of(false);
  for (const Interval &i : a) {
    Cond above = i.lo.is(0) ? Cond::of(true) : math.le(i.lo, x); // positions are never negative
    result = math.logicalOr(result, math.logicalAnd(above, math.lt(x, i.hi)));
  }
  return result;
}

int64_t attn::countOf(llvm::ArrayRef<Interval> intervals) {
  int64_t count = 0;
  for (const Interval &i : intervals)
    count += std::max<int64_t>(0, i.hi.getNumber() - i.lo.getNumber());
  return count;
}
