// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions in four domains: numbers of one pair, code for one pair, ranges over all there can
// be, and ranges over a tile.
//
#include "Expression.h"

using namespace attn;
using namespace attn::expression;

/// Runs the code in a domain, which has a type `Value` (of integers and truth values alike)
/// and a method for each kind of instruction; `after(value)` sees each result.
template <typename Domain, typename After> static typename Domain::Value run(Code code, Domain &domain, After after) {
  llvm::SmallVector<typename Domain::Value> stack;
  for (size_t i = 0; i < code.size(); ++i) {
    int64_t op = code[i], constant = hasConstant(op) ? code[++i] : 0;
    auto pop = [&] { return stack.pop_back_val(); };
    if (op == Number)
      stack.push_back(domain.number(constant));
    else if (op == Load)
      stack.push_back(domain.load(Array::unpack(constant)));
    else if (op < Load)
      stack.push_back(domain.variable(Op(op)));
    else if (op == Mul || op == Div || op == Mod)
      stack.push_back(domain.byConstant(Op(op), pop(), constant));
    else if (op == Not)
      stack.push_back(domain.inverse(pop()));
    else if (op == Select) {
      auto no = pop(), yes = pop(), condition = pop();
      stack.push_back(domain.select(condition, yes, no));
    } else {
      auto b = pop(), a = pop();
      stack.push_back(domain.binary(Op(op), a, b));
    }
    after(stack.back());
  }
  return stack.front();
}

template <typename Domain> static typename Domain::Value run(Code code, Domain &domain) {
  return run(code, domain, [](const auto &) {});
}

static int64_t floorOf(int64_t a, int64_t d) { return a >= 0 ? a / d : -((-a + d - 1) / d); }

//===--------------------------------------------------------------------===//
// One pair, in numbers
//===--------------------------------------------------------------------===//

namespace {
struct Numbers {
  using Value = int64_t;
  const MaskPoint &point;

  Value number(int64_t constant) { return constant; }
  Value load(Array array) {
    bool perQuery = array.shape == OperandShape::PerQuery;
    return point.load(array.number, array.shape == OperandShape::PerSequence ? 0 : perQuery ? point.q : point.k);
  }
  Value variable(Op op) {
    const int64_t values[] = {point.q, point.k, point.batch, point.head, point.lenQ, point.lenK};
    return values[op - Q];
  }
  Value byConstant(Op op, Value a, int64_t c) {
    return op == Mul ? a * c : op == Div ? floorOf(a, c) : a - floorOf(a, c) * c;
  }
  Value inverse(Value a) { return !a; }
  Value select(Value condition, Value yes, Value no) { return condition ? yes : no; }
  Value binary(Op op, Value a, Value b) {
    switch (op) {
    case Add:
      return a + b;
    case Sub:
      return a - b;
    case Min:
      return std::min(a, b);
    case Max:
      return std::max(a, b);
    case Less:
      return a < b;
    case LessEqual:
      return a <= b;
    case Equal:
      return a == b;
    case And:
      return a && b;
    default:
      return a || b;
    }
  }
};
} // namespace

bool expression::evaluate(Code code, const MaskPoint &point) {
  Numbers numbers{point};
  return run(code, numbers);
}

//===--------------------------------------------------------------------===//
// Ranges, over anything there can be or over a tile
//===--------------------------------------------------------------------===//

namespace {
using Range = std::pair<int64_t, int64_t>;

/// Least and largest values; of truth values 0 and 1.
struct Extremes {
  using Value = Range;
  std::optional<Range> overflow = {};

  Value number(int64_t constant) { return {constant, constant}; }
  Value load(Array) { return {INT32_MIN, INT32_MAX}; }
  Value variable(Op op) {
    constexpr int64_t longest = longestOfPredicates, tile = 512; // tiles reach over the end
    const Range ranges[] = {{0, longest + tile}, {0, longest + tile}, {0, longest},
                            {0, 65535},          {0, longest},        {0, longest}};
    return ranges[op - Q];
  }
  Value byConstant(Op op, Value a, int64_t c) {
    if (op == Mul) { // what is beyond 32 bits has been seen by now
      int64_t x = std::max<int64_t>(a.first, INT32_MIN) * c, y = std::min<int64_t>(a.second, INT32_MAX) * c;
      return {std::min(x, y), std::max(x, y)};
    }
    if (op == Div)
      return {floorOf(a.first, c), floorOf(a.second, c)};
    return {0, c - 1};
  }
  Value inverse(Value) { return {0, 1}; }
  Value select(Value, Value yes, Value no) { return {std::min(yes.first, no.first), std::max(yes.second, no.second)}; }
  Value binary(Op op, Value a, Value b) {
    switch (op) {
    case Add:
      return {a.first + b.first, a.second + b.second};
    case Sub:
      return {a.first - b.second, a.second - b.first};
    case Min:
      return {std::min(a.first, b.first), std::min(a.second, b.second)};
    case Max:
      return {std::max(a.first, b.first), std::max(a.second, b.second)};
    default:
      return {0, 1};
    }
  }
};

Extremes extremesOf(Code code) {
  Extremes extremes;
  run(code, extremes, [&](Range range) {
    if (!extremes.overflow && (range.first < INT32_MIN || range.second > INT32_MAX))
      extremes.overflow = range;
  });
  return extremes;
}
} // namespace

std::optional<Range> expression::findOverflow(Code code) { return extremesOf(code).overflow; }

//===--------------------------------------------------------------------===//
// One pair, as code
//===--------------------------------------------------------------------===//

namespace {
/// Division and remainder of any number. Of a negative a they are those of -1 - a, mirrored.
struct Divider {
  IndexMath &math;

  Index floorDiv(Index a, Range range, int64_t divisor) {
    return mirrored(a, range, -1, [&](Index x) { return math.floorDiv(x, divisor); });
  }
  Index rem(Index a, Range range, int64_t divisor) {
    return mirrored(a, range, divisor - 1, [&](Index x) { return math.rem(x, divisor); });
  }

private:
  template <typename Of> Index mirrored(Index a, Range range, int64_t sum, Of of) {
    if (range.first >= 0)
      return of(a);
    Index result = of(math.max(a, math.sub(-1, a)));
    return math.select(math.lt(a, 0), math.sub(sum, result), result);
  }
};

struct Emission {
  struct Value {
    Index integer = 0;
    Cond truth = Cond::of(false);
    Range range = {0, 1};
  };
  IndexMath &math;
  const MaskScope &scope;
  Index q, k;
  Extremes ranges = {};

  Value number(int64_t constant) { return {constant, {}, ranges.number(constant)}; }
  Value load(Array array) {
    bool perQuery = array.shape == OperandShape::PerQuery;
    Index position = array.shape == OperandShape::PerSequence ? Index(0) : perQuery ? q : k;
    return {scope.load(array.number, position), {}, ranges.load(array)};
  }
  Value variable(Op op) {
    const Index values[] = {q, k, scope.batch, scope.head, scope.lenQ, scope.lenK};
    return {values[op - Q], {}, ranges.variable(op)};
  }
  Value byConstant(Op op, Value a, int64_t c) {
    Divider divider{math};
    Index result = op == Mul   ? c == -1 ? math.sub(0, a.integer) : math.mul(a.integer, c)
                     : op == Div ? divider.floorDiv(a.integer, a.range, c)
                               : divider.rem(a.integer, a.range, c);
    return {result, {}, ranges.byConstant(op, a.range, c)};
  }
  Value inverse(Value a) { return {0, math.logicalNot(a.truth)}; }
  Value select(Value condition, Value yes, Value no) {
    return {math.select(condition.truth, yes.integer, no.integer), {}, ranges.select({}, yes.range, no.range)};
  }
  Value binary(Op op, Value a, Value b) {
    Range range = ranges.binary(op, a.range, b.range);
    switch (op) {
    case Add:
      return {math.add(a.integer, b.integer), {}, range};
    case Sub:
      return {math.sub(a.integer, b.integer), {}, range};
    case Min:
      return {math.min(a.integer, b.integer), {}, range};
    case Max:
      return {math.max(a.integer, b.integer), {}, range};
    case Less:
      return {0, math.lt(a.integer, b.integer)};
    case LessEqual:
      return {0, math.le(a.integer, b.integer)};
    case Equal:
      return {0, math.eq(a.integer, b.integer)};
    case And:
      return {0, math.logicalAnd(a.truth, b.truth)};
    default:
      return {0, math.logicalOr(a.truth, b.truth)};
    }
  }
};
} // namespace

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
    if (array.shape == OperandShape::PerSequence)
      return one(scope.load(array.number, 0), ranges.load(array));
    std::optional<EntryRange> known;
    if (scope.extremes)
      known = scope.extremes(array.number, array.shape == OperandShape::PerQuery ? queries : keys);
    return {known ? Interval{known->least, known->largest} : Interval{INT32_MIN, INT32_MAX}, {}, ranges.load(array)};
  }
  Value variable(Op op) {
    if (op == Q || op == K)
      return {positions(op == Q ? queries : keys), {}, ranges.variable(op)};
    const Index values[] = {scope.batch, scope.head, scope.lenQ, scope.lenK};
    return one(values[op - Batch], ranges.variable(op));
  }
  Value byConstant(Op op, Value a, int64_t c) {
    Range range = ranges.byConstant(op, a.range, c);
    if (op == Mul) {
      auto times = [&](Index x) { return c == -1 ? math.sub(0, x) : math.mul(x, c); };
      Interval ends = {times(a.integer.lo), times(a.integer.hi)};
      return {c < 0 ? Interval{ends.hi, ends.lo} : ends, {}, range};
    }
    Divider divider{math};
    Interval quotients = {divider.floorDiv(a.integer.lo, a.range, c), divider.floorDiv(a.integer.hi, a.range, c)};
    if (op == Div)
      return {quotients, {}, range};
    Cond same = math.eq(quotients.lo, quotients.hi);
    return {{math.select(same, divider.rem(a.integer.lo, a.range, c), 0),
             math.select(same, divider.rem(a.integer.hi, a.range, c), c - 1)},
            {},
            range};
  }
  Value inverse(Value a) { return {{0, 0}, {math.logicalNot(a.truth.all), math.logicalNot(a.truth.some)}}; }
  Value select(Value condition, Value yes, Value no) {
    auto either = [&](Index ifYes, Index ifNo, Index any) {
      return math.select(condition.truth.all, ifYes, math.select(condition.truth.some, any, ifNo));
    };
    Interval a = yes.integer, b = no.integer;
    return {{either(a.lo, b.lo, math.min(a.lo, b.lo)), either(a.hi, b.hi, math.max(a.hi, b.hi))},
            {},
            ranges.select({}, yes.range, no.range)};
  }
  Value binary(Op op, Value x, Value y) {
    Interval a = x.integer, b = y.integer;
    Range range = ranges.binary(op, x.range, y.range);
    switch (op) {
    case Add:
      return {{math.add(a.lo, b.lo), math.add(a.hi, b.hi)}, {}, range};
    case Sub:
      return {{math.sub(a.lo, b.hi), math.sub(a.hi, b.lo)}, {}, range};
    case Min:
      return {{math.min(a.lo, b.lo), math.min(a.hi, b.hi)}, {}, range};
    case Max:
      return {{math.max(a.lo, b.lo), math.max(a.hi, b.hi)}, {}, range};
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
