// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Domains in which expressions are walked: numbers of one pair, ranges over all there can be, code
// for one pair.
//
#ifndef ATTN_LIB_DIALECT_ATTN_EXPRESSIONS_EXPRESSIONDOMAINS_H
#define ATTN_LIB_DIALECT_ATTN_EXPRESSIONS_EXPRESSIONDOMAINS_H

#include "Expression.h"
#include "llvm/ADT/bit.h"

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
      stack.push_back(domain.variable(Opcode(op)));
    else if (op == Mul || op == Div || op == Mod)
      stack.push_back(domain.byConstant(Opcode(op), pop(), constant));
    else if (op >= RealNumber) {
      if constexpr (requires { domain.real(Opcode(op), constant, stack); })
        domain.real(Opcode(op), constant, stack);
    } else if (op == Not)
      stack.push_back(domain.inverse(pop()));
    else if (op == Select) {
      auto no = pop(), yes = pop(), condition = pop();
      stack.push_back(domain.select(condition, yes, no));
    } else {
      auto b = pop(), a = pop();
      stack.push_back(domain.binary(Opcode(op), a, b));
    }
    after(stack.back());
  }
  return stack.front();
}

template <typename Domain> typename Domain::Value run(Code code, Domain &domain) {
  return run(code, domain, [](const auto &) {});
}

inline int64_t floorOf(int64_t a, int64_t d) { return a / d - (a % d < 0); }

//===--------------------------------------------------------------------===//
// One pair, in numbers
//===--------------------------------------------------------------------===//

struct Numbers {
  using Value = int64_t;
  const MaskPoint &point;

  Value number(int64_t constant) { return constant; }
  Value load(Array array) {
    bool perQuery = array.shape == OperandShape::PerQuery;
    return point.load(array.number, !array.hasPositions() ? 0 : perQuery ? point.q : point.k);
  }
  Value variable(Opcode op) {
    const int64_t values[] = {point.q, point.k, point.batch, point.head, point.lenQ, point.lenK};
    return values[op - Q];
  }
  Value byConstant(Opcode op, Value a, int64_t c) {
    return op == Mul ? a * c : op == Div ? floorOf(a, c) : a - floorOf(a, c) * c;
  }
  Value inverse(Value a) { return !a; }
  Value select(Value condition, Value yes, Value no) { return condition ? yes : no; }
  Value binary(Opcode op, Value a, Value b) {
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
    case BitAnd:
      return a & b;
    case BitOr:
      return a | b;
    case BitXor:
      return a ^ b;
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

inline bool fits32(Range range) { return range.first >= INT32_MIN && range.second <= INT32_MAX; }

/// The largest number of no more bits than `a`, which is not negative.
inline int64_t allBitsOf(int64_t a) { return a ? int64_t(~uint64_t(0) >> llvm::countl_zero(uint64_t(a))) : 0; }

/// Bounds of two numbers' common bits. No number has more of them than one that is not negative, and of two negative
/// ones none is larger; bits that both have as they have their sign stay so.
inline Range commonBits(Range a, Range b) {
  bool positiveA = a.first >= 0, positiveB = b.first >= 0, negative = a.second < 0 && b.second < 0;
  int64_t least = positiveA || positiveB ? 0 : -1 - allBitsOf(-1 - std::min(a.first, b.first));
  if (positiveA != positiveB)
    return {least, positiveA ? a.second : b.second};
  return {least, positiveA || negative ? std::min(a.second, b.second) : std::max(a.second, b.second)};
}

/// The range of -1 - x.
inline Range inverted(Range a) { return {-1 - a.second, -1 - a.first}; }

inline Range rangeOfBits(Opcode op, Range a, Range b) {
  if (op == BitAnd)
    return commonBits(a, b);
  if (op == BitOr)
    return inverted(commonBits(inverted(a), inverted(b)));
  auto bits = [](Range x) { return allBitsOf(std::max({x.first, x.second, -1 - x.first, -1 - x.second})); };
  int64_t all = std::max(bits(a), bits(b));
  auto hasSigns = [&](bool alike) { // of some two numbers
    auto has = [](Range x, bool negative) { return negative ? x.first < 0 : x.second >= 0; };
    return (has(a, false) && has(b, !alike)) || (has(a, true) && has(b, alike));
  };
  return {hasSigns(/*alike=*/false) ? -1 - all : 0, hasSigns(/*alike=*/true) ? all : -1};
}

/// Least and largest values; of truth values 0 and 1. What leaves 64 bits is clamped to them.
struct Extremes {
  using Value = Range;
  using Wide = __int128;
  std::optional<std::pair<Wide, Wide>> overflow = {}; ///< the first values beyond 64 bits

  Range within64(Wide least, Wide largest) {
    auto clamped = [](Wide x) { return int64_t(std::clamp<Wide>(x, INT64_MIN, INT64_MAX)); };
    Range range = {clamped(least), clamped(largest)};
    if (!overflow && (range.first != least || range.second != largest))
      overflow = {least, largest};
    return range;
  }
  Value number(int64_t constant) { return {constant, constant}; }
  Value load(Array) { return {INT32_MIN, INT32_MAX}; }
  Value variable(Opcode op) {
    constexpr int64_t longest = longestOfPredicates, tile = 512; // tiles reach over the end, as is documented
    const Range ranges[] = {{0, longest + tile}, {0, longest + tile}, {0, longest},
                            {0, 65535},          {0, longest},        {0, longest}};
    return ranges[op - Q];
  }
  Value byConstant(Opcode op, Value a, int64_t c) {
    if (op == Mul) {
      Wide x = Wide(a.first) * c, y = Wide(a.second) * c;
      return within64(std::min(x, y), std::max(x, y));
    }
    if (op == Div)
      return {floorOf(a.first, c), floorOf(a.second, c)};
    return {0, c - 1};
  }
  Value inverse(Value) { return {0, 1}; }
  void real(Opcode op, int64_t, llvm::SmallVectorImpl<Value> &stack) { // whatever it is, it fits
    stack.pop_back_n(operandsOfReal(op));
    stack.push_back({0, 1});
  }
  Value select(Value, Value yes, Value no) { return {std::min(yes.first, no.first), std::max(yes.second, no.second)}; }
  Value binary(Opcode op, Value a, Value b) {
    switch (op) {
    case Add:
      return within64(Wide(a.first) + b.first, Wide(a.second) + b.second);
    case Sub:
      return within64(Wide(a.first) - b.second, Wide(a.second) - b.first);
    case Min:
      return {std::min(a.first, b.first), std::min(a.second, b.second)};
    case Max:
      return {std::max(a.first, b.first), std::max(a.second, b.second)};
    case BitAnd:
    case BitOr:
    case BitXor:
      return rangeOfBits(op, a, b);
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

/// Where a value may pass 32 bits it is computed in 64, and what is made of it is narrow again where it fits.
struct Widths {
  IndexMath &math;

  /// An operand of what has such a result.
  Index operand(Index a, Range result) { return fits32(result) ? a : math.widen(a); }
  Index result(Index a, Range result) { return fits32(result) ? math.narrow(a) : a; }
};

inline Index bitsOf(IndexMath &math, Opcode op, Index a, Index b) {
  return op == BitAnd ? math.bitAnd(a, b) : op == BitOr ? math.bitOr(a, b) : math.bitXor(a, b);
}

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
    Index position = !array.hasPositions() ? Index(0) : perQuery ? q : k;
    return {scope.load(array.number, position), {}, ranges.load(array)};
  }
  Value variable(Opcode op) {
    const Index values[] = {q, k, scope.batch, scope.head, scope.lenQ, scope.lenK};
    return {values[op - Q], {}, ranges.variable(op)};
  }
  Value byConstant(Opcode op, Value a, int64_t c) {
    Divider divider{math};
    Range range = ranges.byConstant(op, a.range, c);
    Index x = widths().operand(a.integer, range);
    Index result = op == Mul   ? c == -1 ? math.sub(0, x) : math.mul(x, c)
                   : op == Div ? divider.floorDiv(x, a.range, c)
                               : divider.rem(x, a.range, c);
    return {widths().result(result, range), {}, range};
  }
  Value inverse(Value a) { return {0, math.logicalNot(a.truth)}; }
  Value select(Value condition, Value yes, Value no) {
    Range range = ranges.select({}, yes.range, no.range);
    Index x = widths().operand(yes.integer, range), y = widths().operand(no.integer, range);
    return {math.select(condition.truth, x, y), {}, range};
  }
  Widths widths() { return {math}; }
  Value binary(Opcode op, Value a, Value b) {
    Range range = ranges.binary(op, a.range, b.range);
    Index x = widths().operand(a.integer, range), y = widths().operand(b.integer, range);
    switch (op) {
    case Add:
      return {widths().result(math.add(x, y), range), {}, range};
    case Sub:
      return {widths().result(math.sub(x, y), range), {}, range};
    case Min:
      return {widths().result(math.min(x, y), range), {}, range};
    case Max:
      return {widths().result(math.max(x, y), range), {}, range};
    case BitAnd:
    case BitOr:
    case BitXor:
      return {widths().result(bitsOf(math, op, x, y), range), {}, range};
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

#endif // ATTN_LIB_DIALECT_ATTN_EXPRESSIONS_EXPRESSIONDOMAINS_H
