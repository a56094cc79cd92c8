// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Domains in which expressions are walked: numbers of one pair, ranges over all there can be, code
// for one pair.
//
#ifndef ATTN_LIB_MASKS_EXPRESSIONDOMAINS_H
#define ATTN_LIB_MASKS_EXPRESSIONDOMAINS_H

#include "Expression.h"

namespace attn::expression {

/// Runs the code in a domain, which has a type `Value` (of integers and truth values alike)
/// and a method for each kind of instruction; `after(value)` sees each result.
template <typename Domain, typename After> typename Domain::Value run(Code code, Domain &domain, After after) {
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
    else if (op >= RealNumber) {
      if constexpr (requires { domain.real(Op(op), constant, stack); })
        domain.real(Op(op), constant, stack);
    } else if (op == Not)
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

template <typename Domain> typename Domain::Value run(Code code, Domain &domain) {
  return run(code, domain, [](const auto &) {});
}

inline int64_t floorOf(int64_t a, int64_t d) { return a >= 0 ? a / d : -((-a + d - 1) / d); }

//===--------------------------------------------------------------------===//
// One pair, in numbers
//===--------------------------------------------------------------------===//

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

//===--------------------------------------------------------------------===//
// Ranges, over anything there can be or over a tile
//===--------------------------------------------------------------------===//

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
  void real(Op op, int64_t, llvm::SmallVectorImpl<Value> &stack) { // whatever it is, it fits
    stack.pop_back_n(operandsOfReal(op));
    stack.push_back({0, 1});
  }
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

//===--------------------------------------------------------------------===//
// One pair, as code
//===--------------------------------------------------------------------===//

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

} // namespace attn::expression

#endif // ATTN_LIB_MASKS_EXPRESSIONDOMAINS_H
