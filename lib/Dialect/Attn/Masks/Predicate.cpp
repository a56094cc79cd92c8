// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Expressions/Expression.h"

using namespace mlir;
using namespace attn;

bool PredicateMaskAttr::keeps(const MaskPoint &p) const { return expression::evaluate(getCode(), p); }

SmallVector<MaskOperand> PredicateMaskAttr::operands() const {
  SmallVector<MaskOperand> arrays(getNames().size());
  for (size_t i = 0; i < getCode().size(); i += 1 + expression::hasConstant(getCode()[i]))
    if (getCode()[i] == expression::Load) {
      auto array = expression::Array::unpack(getCode()[i + 1]);
      arrays[array.number] = {getNames()[array.number].str(), array.shape, array.heads};
    }
  return arrays;
}

bool PredicateMaskAttr::asksForHead() const {
  for (size_t i = 0; i < getCode().size(); i += 1 + expression::hasConstant(getCode()[i]))
    if (getCode()[i] == expression::Head)
      return true;
  return false;
}

/// All of [0, extent) or nothing of it, by what is known of rows (or keys) alone.
static IntervalList wholeIf(IndexMath &math, Cond holds, Index extent) { return {{0, math.select(holds, extent, 0)}}; }

TileRanges PredicateMaskAttr::keyRanges(IndexMath &math, const MaskScope &scope, Interval queries) const {
  TileTruth truth = expression::classify(getCode(), math, scope, queries, {0, scope.lenK});
  return {wholeIf(math, truth.some, scope.lenK), wholeIf(math, truth.all, scope.lenK)};
}

TileRanges PredicateMaskAttr::queryRanges(IndexMath &math, const MaskScope &scope, Interval keys) const {
  TileTruth truth = expression::classify(getCode(), math, scope, {0, scope.lenQ}, keys);
  return {wholeIf(math, truth.some, scope.lenQ), wholeIf(math, truth.all, scope.lenQ)};
}

Cond PredicateMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return expression::emit(getCode(), math, scope, q, k);
}

TileTruth PredicateMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return expression::classify(getCode(), math, scope, queries, keys);
}

namespace {
/// A sum of positions and lengths, or its remainder.
struct Remainder {
  int64_t q = 0, k = 0, lenQ = 0, lenK = 0, constant = 0;
  int64_t modulus = 0; ///< 0: the sum itself

  bool isNumber() const { return !q && !k && !lenQ && !lenK && !modulus; }
};
} // namespace

/// So small that sums of two of them do not overflow.
static bool areSmall(std::initializer_list<int64_t> numbers) {
  return llvm::all_of(numbers, [](int64_t number) { return std::abs(number) <= int64_t(1) << 30; });
}

static std::optional<Remainder> sum(const Remainder &a, const Remainder &b, int64_t sign) {
  Remainder sum = {a.q + sign * b.q, a.k + sign * b.k, a.lenQ + sign * b.lenQ, a.lenK + sign * b.lenK,
                   a.constant + sign * b.constant};
  return !a.modulus && !b.modulus && areSmall({sum.q, sum.k, sum.lenQ, sum.lenK, sum.constant}) ? std::optional(sum)
                                                                                                : std::nullopt;
}

/// `x % n == r`, `r == x % n` and `x % n == y % n` say that a sum is a multiple of n; null for other conditions.
static std::optional<Remainder> multipleOf(ArrayRef<int64_t> code) {
  using namespace expression;
  SmallVector<Remainder> stack;
  for (size_t i = 0; i < code.size(); i += 1 + hasConstant(code[i])) {
    int64_t op = code[i], constant = hasConstant(op) ? code[i + 1] : 0;
    switch (op) {
    case Number:
      if (!areSmall({constant}))
        return std::nullopt;
      stack.push_back({.constant = constant});
      break;
    case Q:
      stack.push_back({.q = 1});
      break;
    case K:
      stack.push_back({.k = 1});
      break;
    case LenQ:
      stack.push_back({.lenQ = 1});
      break;
    case LenK:
      stack.push_back({.lenK = 1});
      break;
    case Add:
    case Sub: {
      Remainder right = stack.pop_back_val();
      std::optional<Remainder> both = sum(stack.back(), right, op == Add ? 1 : -1);
      if (!both)
        return std::nullopt;
      stack.back() = *both;
      break;
    }
    case Mod:
      if (stack.back().modulus || !areSmall({constant}))
        return std::nullopt;
      stack.back().modulus = constant;
      break;
    case Equal: {
      Remainder right = stack.pop_back_val(), left = stack.pop_back_val();
      if (!left.modulus)
        std::swap(left, right);
      int64_t modulus = left.modulus;
      bool isNumber = right.isNumber() && right.constant >= 0 && right.constant < modulus;
      if (i + 1 != code.size() || !modulus || (!isNumber && right.modulus != modulus))
        return std::nullopt;
      left.modulus = right.modulus = 0;
      std::optional<Remainder> difference = sum(left, right, -1);
      if (difference)
        difference->modulus = modulus;
      return difference;
    }
    default:
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// A condition on the remainder of the distance from a diagonal is a strided mask.
MaskInterface PredicateMaskAttr::simplified() const {
  std::optional<Remainder> multiple = multipleOf(getCode());
  if (!multiple || multiple->modulus > int64_t(1) << 29)
    return *this;
  int64_t n = multiple->modulus;
  auto modulo = [n](int64_t x) { return (x % n + n) % n; };
  for (int64_t sign : {1, -1}) {
    auto is = [&](int64_t coefficient, int64_t number) { return modulo(sign * coefficient - number) == 0; };
    if (!is(multiple->q, 1) || !is(multiple->k, -1))
      continue;
    bool isTop = is(multiple->lenQ, 0) && is(multiple->lenK, 0);
    if (!isTop && (!is(multiple->lenQ, -1) || !is(multiple->lenK, 1)))
      continue;
    return StridedMaskAttr::get(getContext(), n, modulo(-sign * multiple->constant),
                                isTop ? Diagonal::top_left : Diagonal::bottom_right)
        .simplified();
  }
  return *this;
}

LogicalResult PredicateMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> code,
                                        ArrayRef<StringAttr>) {
  if (auto overflow = expression::findOverflow(code)) // C2
    return emitError() << "expected integers within 64 bits in a predicate (`min` and `max` bound them), got: "
                       << *overflow;
  return success();
}

Attribute PredicateMaskAttr::parse(AsmParser &parser, Type) { // C1, C3
  return expression::parseAttr<PredicateMaskAttr>(parser, expression::parse);
}

void PredicateMaskAttr::print(AsmPrinter &printer) const { expression::printAttr(printer, getCode(), getNames()); }
