// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conditions in four domains: numbers of one pair, code for one pair, ranges over all there can
// be, and ranges over a tile.
//
#include "ExpressionDomains.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;
using namespace attn::expression;

bool expression::evaluate(Code code, const MaskPoint &point) {
  Numbers numbers{point};
  return run(code, numbers);
}

std::optional<std::string> expression::findOverflow(Code code) {
  Extremes extremes;
  run(code, extremes);
  if (!extremes.overflow)
    return std::nullopt;
  auto text = [](Extremes::Wide number) {
    uint64_t words[] = {uint64_t(number), uint64_t(number >> 64)};
    return llvm::toString(llvm::APInt(128, words), 10, /*Signed=*/true);
  };
  return "from " + text(extremes.overflow->first) + " to " + text(extremes.overflow->second);
}

Cond expression::emit(Code code, IndexMath &math, const MaskScope &scope, Index q, Index k) {
  Emission emission{math, scope, q, k};
  return run(code, emission).truth;
}

//===--------------------------------------------------------------------===//
// A tile
//===--------------------------------------------------------------------===//

namespace {
struct TileDomain {
  struct Value {
    Interval integer = {0, 0}; ///< both ends are among the values, or beyond them
    TileTruth truth = {Cond::of(false), Cond::of(false)};
    Range range = {0, 1};
  };
  IndexMath &math;
  const MaskScope &scope;
  Interval queries, keys;
  Extremes ranges = {};

  static Value one(Index value, Range range) { return {{value, value}, {}, range}; }
  Interval positions(Interval of) { return {of.lo, math.sub(of.hi, 1)}; }

  Value number(int64_t constant) { return one(constant, ranges.number(constant)); }
  Value load(Array array) {
    if (!array.hasPositions())
      return one(scope.load(array.number, 0), ranges.load(array));
    std::optional<EntryRange> known;
    if (scope.extremes)
      known = scope.extremes(array.number, array.shape == OperandShape::PerQuery ? queries : keys);
    return {known ? Interval{known->least, known->largest} : Interval{INT32_MIN, INT32_MAX}, {}, ranges.load(array)};
  }
  Value variable(Opcode op) {
    if (op == Q || op == K)
      return {positions(op == Q ? queries : keys), {}, ranges.variable(op)};
    const Index values[] = {scope.batch, scope.head, scope.lenQ, scope.lenK};
    return one(values[op - Batch], ranges.variable(op));
  }
  Value byConstant(Opcode op, Value a, int64_t c) {
    Range range = ranges.byConstant(op, a.range, c);
    if (op == Mul) {
      auto times = [&](Index x) { return c == -1 ? math.sub(0, x) : math.mul(x, c); };
      Interval of = operand(a.integer, range), ends = {times(of.lo), times(of.hi)};
      return result(c < 0 ? Interval{ends.hi, ends.lo} : ends, range);
    }
    Divider divider{math};
    Interval quotients = {divider.floorDiv(a.integer.lo, a.range, c), divider.floorDiv(a.integer.hi, a.range, c)};
    if (op == Div)
      return result(quotients, range);
    Cond same = math.eq(quotients.lo, quotients.hi);
    return result({math.select(same, divider.rem(a.integer.lo, a.range, c), 0),
                   math.select(same, divider.rem(a.integer.hi, a.range, c), c - 1)},
                  range);
  }
  Value inverse(Value a) { return {{0, 0}, {math.logicalNot(a.truth.all), math.logicalNot(a.truth.some)}}; }
  Value select(Value condition, Value yes, Value no) {
    auto either = [&](Index ifYes, Index ifNo, Index any) {
      return math.select(condition.truth.all, ifYes, math.select(condition.truth.some, any, ifNo));
    };
    Range range = ranges.select({}, yes.range, no.range);
    Interval a = operand(yes.integer, range), b = operand(no.integer, range);
    return result({either(a.lo, b.lo, math.min(a.lo, b.lo)), either(a.hi, b.hi, math.max(a.hi, b.hi))}, range);
  }
  Interval operand(Interval a, Range range) {
    Widths widths{math};
    return {widths.operand(a.lo, range), widths.operand(a.hi, range)};
  }
  Value result(Interval a, Range range) {
    Widths widths{math};
    return {{widths.result(a.lo, range), widths.result(a.hi, range)}, {}, range};
  }
  /// Exact if both operands are single numbers; else bounds by their signs, as far as these are known.
  Value bits(Opcode op, Value x, Value y) {
    Range range = ranges.binary(op, x.range, y.range);
    if (range.first == range.second)
      return number(range.first);
    if (op == BitAnd && x.range.first == x.range.second)
      std::swap(x, y);
    if (op == BitAnd && y.range.first == y.range.second)
      if (std::optional<Value> value = runOfBits(x, y.range.first, range))
        return *value;
    Interval a = operand(x.integer, range), b = operand(y.integer, range), within = {range.first, range.second};
    auto is = [&](bool always, Cond now) { return always ? Cond::of(true) : now; };
    if (op == BitAnd) {
      Cond positiveA = is(x.range.first >= 0, math.le(0, a.lo)), positiveB = is(y.range.first >= 0, math.le(0, b.lo));
      Index larger = math.max(a.hi, b.hi);
      within.lo = math.select(math.logicalOr(positiveA, positiveB), 0, within.lo);
      within.hi = math.min(math.select(positiveA, a.hi, larger), math.select(positiveB, b.hi, larger));
    } else if (op == BitOr && range.first >= 0) {
      within.lo = math.max(a.lo, b.lo);
    } else if (op == BitOr) { // as with `&` of their opposites
      Cond negativeA = is(x.range.second < 0, math.lt(a.hi, 0)), negativeB = is(y.range.second < 0, math.lt(b.hi, 0));
      Index lesser = math.min(a.lo, b.lo);
      within.hi = math.select(math.logicalOr(negativeA, negativeB), -1, within.hi);
      within.lo = math.max(math.select(negativeA, a.lo, lesser), math.select(negativeB, b.lo, lesser));
    }
    Cond single = math.logicalAnd(math.eq(a.lo, a.hi), math.eq(b.lo, b.hi));
    Index exact = bitsOf(math, op, a.lo, b.lo);
    return result({math.select(single, exact, within.lo), math.select(single, exact, within.hi)}, range);
  }
  /// x & c, where bits of c that follow each other are set: the remainder by what is above them, rounded down.
  std::optional<Value> runOfBits(Value x, int64_t c, Range range) {
    uint64_t lowest = uint64_t(c) & -uint64_t(c), above = uint64_t(c) + lowest;
    if (!llvm::has_single_bit(lowest) || (above && !llvm::has_single_bit(above)) || above > uint64_t(INT64_MAX))
      return std::nullopt;
    Interval inside = x.integer;
    if (above && (x.range.first < 0 || x.range.second >= int64_t(above)))
      inside = byConstant(Mod, x, above).integer;
    inside = operand(inside, range);
    if (lowest > 1)
      inside = {math.bitAnd(inside.lo, c), math.bitAnd(inside.hi, c)};
    return result(inside, range);
  }
  Value binary(Opcode op, Value x, Value y) {
    if (op == BitAnd || op == BitOr || op == BitXor)
      return bits(op, x, y);
    Range range = ranges.binary(op, x.range, y.range);
    Interval a = operand(x.integer, range), b = operand(y.integer, range);
    switch (op) {
    case Add:
      return result({math.add(a.lo, b.lo), math.add(a.hi, b.hi)}, range);
    case Sub:
      return result({math.sub(a.lo, b.hi), math.sub(a.hi, b.lo)}, range);
    case Min:
      return result({math.min(a.lo, b.lo), math.min(a.hi, b.hi)}, range);
    case Max:
      return result({math.max(a.lo, b.lo), math.max(a.hi, b.hi)}, range);
    case Less:
      return {{0, 0}, {math.lt(a.lo, b.hi), math.lt(a.hi, b.lo)}};
    case LessEqual:
      return {{0, 0}, {math.le(a.lo, b.hi), math.le(a.hi, b.lo)}};
    case Equal:
      return {{0, 0},
              {math.logicalAnd(math.le(a.lo, b.hi), math.le(b.lo, a.hi)),
               math.logicalAnd(math.eq(a.lo, b.hi), math.eq(a.hi, b.lo))}};
    case And:
      return {{0, 0}, {math.logicalAnd(x.truth.some, y.truth.some), math.logicalAnd(x.truth.all, y.truth.all)}};
    default:
      return {{0, 0}, {math.logicalOr(x.truth.some, y.truth.some), math.logicalOr(x.truth.all, y.truth.all)}};
    }
  }
};
} // namespace

TileTruth expression::classify(Code code, IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) {
  TileDomain domain{math, scope, queries, keys};
  return run(code, domain).truth;
}
