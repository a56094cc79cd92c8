// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/IndexMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

Value IndexMath::value(Index a) {
  if (!a.isConstant())
    return a.getValue();
  assert(builder && a.isConstant() && "a number that stands for a run-time value is no constant");
  return arith::ConstantIntOp::create(*builder, *loc, a.getNumber(), llvm::isInt<32>(a.getNumber()) ? 32 : 64);
}

/// In 64 bits with `b`?
static bool isWideWith(Index a, Index b) {
  auto needs = [](Index x) { return x.isConstant() ? !llvm::isInt<32>(x.getNumber()) : x.isWide(); };
  return needs(a) || needs(b);
}

std::pair<Value, Value> IndexMath::values(Index a, Index b) {
  bool wide = isWideWith(a, b);
  auto of = [&](Index x) -> Value {
    if (!wide)
      return value(x);
    return x.isConstant() ? arith::ConstantIntOp::create(*builder, *loc, x.getNumber(), 64) : value(widen(x));
  };
  Value first = of(a);
  return {first, of(b)};
}

Index IndexMath::widen(Index a) {
  if (a.isConstant() || a.isWide())
    return a;
  if (a.isNumber())
    return Index::runtime(a.getNumber(), /*wide=*/true).atLeast(a.getLeast());
  Value wide = arith::ExtSIOp::create(*builder, *loc, builder->getI64Type(), a.getValue());
  return Index(wide).atLeast(a.getLeast());
}

Index IndexMath::narrow(Index a) {
  if (a.isConstant() || !a.isWide())
    return a;
  if (a.isNumber())
    return Index::runtime(a.getNumber()).atLeast(a.getLeast());
  Value narrow = arith::TruncIOp::create(*builder, *loc, builder->getI32Type(), a.getValue());
  return Index(narrow).atLeast(a.getLeast());
}

Value IndexMath::value(Cond a) {
  if (!a.isConstant())
    return a.getValue();
  return arith::ConstantIntOp::create(*builder, *loc, a.getNumber(), 1);
}

Index IndexMath::named(Index a, StringRef name) {
  if (!a.isNumber())
    if (Operation *op = a.getValue().getDefiningOp(); op && !isa<NameLoc>(op->getLoc()))
      op->setLoc(NameLoc::get(builder->getStringAttr(name), *loc));
  return a;
}

/// Numbers in, number out: a constant if all of them are.
template <typename Compute> static Index compute(Index a, Index b, Compute f) {
  int64_t result = f(a.getNumber(), b.getNumber());
  return a.isConstant() && b.isConstant() ? Index(result) : Index::runtime(result, isWideWith(a, b));
}

template <typename Compute> static Cond decide(Index a, Index b, Compute f) {
  bool result = f(a.getNumber(), b.getNumber());
  return a.isConstant() && b.isConstant() ? Cond::of(result) : Cond::runtime(result);
}

static bool isKnown(Index a) { return a.getLeast() > Index::leastOf32; }

/// What follows of `result` from what is known of its operands.
static Index atLeast(Index result, int64_t least) { return result.isConstant() ? result : result.atLeast(least); }

/// Is the one known not to be below the other?
static bool isBeyond(Index a, Index b) { return b.isConstant() && a.isAtLeast(b.getNumber()); }

/// Is `a` what `Op` made of `b` and something else?
template <typename Op> static bool isOf(Index a, Index b) {
  auto op = a.isNumber() ? Op() : a.getValue().getDefiningOp<Op>();
  return op && !b.isNumber() && llvm::is_contained(op->getOperands(), b.getValue());
}

Index IndexMath::add(Index a, Index b) {
  if (b.is(0))
    return a;
  if (a.is(0))
    return b;
  int64_t least = isKnown(a) && isKnown(b) ? a.getLeast() + b.getLeast() : Index::unknown;
  if (a.isNumber() && b.isNumber())
    return atLeast(compute(a, b, [](int64_t x, int64_t y) { return x + y; }), least);
  if (a.isConstant())
    std::swap(a, b);
  if (b.isConstant() && b.getNumber() < 0)
    return sub(a, -b.getNumber());
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::AddIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::sub(Index a, Index b) {
  if (a == b)
    return 0;
  if (b.is(0))
    return a;
  int64_t least = isKnown(a) && b.isConstant() ? a.getLeast() - b.getNumber() : Index::unknown;
  if (a.isNumber() && b.isNumber())
    return atLeast(compute(a, b, [](int64_t x, int64_t y) { return x - y; }), least);
  if (b.isConstant() && b.getNumber() < 0)
    return add(a, -b.getNumber());
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::SubIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::mul(Index a, int64_t factor) {
  if (factor == 1)
    return a;
  int64_t least = a.isAtLeast(0) && factor >= 0 ? a.getLeast() * factor : Index::unknown;
  if (a.isNumber())
    return atLeast(compute(a, factor, [](int64_t x, int64_t y) { return x * y; }), least);
  auto [x, y] = values(a, factor);
  return atLeast(Value(arith::MulIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::min(Index a, Index b) {
  if (a == b || isBeyond(b, a) || isOf<arith::MinSIOp>(a, b))
    return a;
  if (isBeyond(a, b) || isOf<arith::MinSIOp>(b, a))
    return b;
  int64_t least = std::min(a.getLeast(), b.getLeast());
  if (a.isNumber() && b.isNumber())
    return atLeast(compute(a, b, [](int64_t x, int64_t y) { return std::min(x, y); }), least);
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::MinSIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::max(Index a, Index b) {
  if (a == b || isBeyond(a, b) || isOf<arith::MaxSIOp>(a, b))
    return a;
  if (isBeyond(b, a) || isOf<arith::MaxSIOp>(b, a))
    return b;
  int64_t least = std::max(a.getLeast(), b.getLeast());
  if (a.isNumber() && b.isNumber())
    return atLeast(compute(a, b, [](int64_t x, int64_t y) { return std::max(x, y); }), least);
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::MaxSIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::floorDiv(Index a, int64_t divisor) {
  if (divisor == 1 || a.is(0))
    return a;
  int64_t least = std::max<int64_t>(a.getLeast(), 0) / divisor;
  if (a.isNumber())
    return atLeast(compute(a, divisor, [](int64_t x, int64_t y) { return x / y; }), least);
  auto [x, y] = values(a, divisor);
  return atLeast(Value(arith::DivUIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::ceilDiv(Index a, int64_t divisor) {
  return divisor == 1 || a.is(0) ? a : floorDiv(add(a, divisor - 1), divisor);
}

Index IndexMath::rem(Index a, int64_t divisor) {
  if (divisor == 1)
    return 0;
  if (a.isNumber())
    return atLeast(compute(a, divisor, [](int64_t x, int64_t y) { return x % y; }), 0);
  bool isPower = llvm::isPowerOf2_64(divisor); // printed code has signed types, whose remainder costs more
  auto [x, y] = values(a, isPower ? divisor - 1 : divisor);
  return Index::position(isPower ? Value(arith::AndIOp::create(*builder, *loc, x, y))
                                 : Value(arith::RemUIOp::create(*builder, *loc, x, y)));
}

Index IndexMath::bitAnd(Index a, Index b) {
  if (a == b || a.is(0) || b.is(-1))
    return a;
  if (b.is(0) || a.is(-1))
    return b;
  int64_t least = a.isAtLeast(0) || b.isAtLeast(0) ? 0 : Index::unknown;
  if (a.isNumber() && b.isNumber())
    return atLeast(compute(a, b, [](int64_t x, int64_t y) { return x & y; }), least);
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::AndIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::bitOr(Index a, Index b) {
  if (a == b || a.is(-1) || b.is(0))
    return a;
  if (b.is(-1) || a.is(0))
    return b;
  int64_t least = a.isAtLeast(0) && b.isAtLeast(0) ? std::max(a.getLeast(), b.getLeast()) : Index::unknown;
  if (a.isNumber() && b.isNumber())
    return atLeast(compute(a, b, [](int64_t x, int64_t y) { return x | y; }), least);
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::OrIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::bitXor(Index a, Index b) {
  if (a == b)
    return 0;
  if (a.is(0))
    return b;
  if (b.is(0))
    return a;
  int64_t least = a.isAtLeast(0) && b.isAtLeast(0) ? 0 : Index::unknown;
  if (a.isNumber() && b.isNumber())
    return atLeast(compute(a, b, [](int64_t x, int64_t y) { return x ^ y; }), least);
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::XOrIOp::create(*builder, *loc, x, y)), least);
}

Index IndexMath::select(Cond c, Index a, Index b) {
  if (c.isConstant())
    return c.getNumber() ? a : b;
  if (a == b)
    return a;
  int64_t least = std::min(a.getLeast(), b.getLeast());
  if (c.isNumber())
    return atLeast(Index::runtime((c.getNumber() ? a : b).getNumber(), isWideWith(a, b)), least);
  auto [x, y] = values(a, b);
  return atLeast(Value(arith::SelectOp::create(*builder, *loc, c.getValue(), x, y)), least);
}

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate, std::pair<Value, Value> values) {
  return arith::CmpIOp::create(b, loc, predicate, values.first, values.second);
}

Cond IndexMath::lt(Index a, Index b) {
  if (a == b || isBeyond(a, b))
    return Cond::of(false);
  if (a.isConstant() && isBeyond(b, a.getNumber() + 1))
    return Cond::of(true);
  if (a.isNumber() && b.isNumber())
    return decide(a, b, [](int64_t x, int64_t y) { return x < y; });
  return Cond::of(compare(*builder, *loc, arith::CmpIPredicate::slt, values(a, b)));
}

Cond IndexMath::le(Index a, Index b) {
  if (a == b || isBeyond(b, a))
    return Cond::of(true);
  if (b.isConstant() && isBeyond(a, b.getNumber() + 1))
    return Cond::of(false);
  if (a.isNumber() && b.isNumber())
    return decide(a, b, [](int64_t x, int64_t y) { return x <= y; });
  return Cond::of(compare(*builder, *loc, arith::CmpIPredicate::sle, values(a, b)));
}

Cond IndexMath::eq(Index a, Index b) {
  if (a == b)
    return Cond::of(true);
  if (a.isNumber() && b.isNumber())
    return decide(a, b, [](int64_t x, int64_t y) { return x == y; });
  return Cond::of(compare(*builder, *loc, arith::CmpIPredicate::eq, values(a, b)));
}

Cond IndexMath::logicalAnd(Cond a, Cond b) {
  if (a.isConstant())
    return a.getNumber() ? b : a;
  if (b.isConstant())
    return b.getNumber() ? a : b;
  if (a.isNumber() && b.isNumber())
    return Cond::runtime(a.getNumber() && b.getNumber());
  return Cond::of(Value(arith::AndIOp::create(*builder, *loc, a.getValue(), b.getValue())));
}

Cond IndexMath::logicalOr(Cond a, Cond b) {
  if (a.isConstant())
    return a.getNumber() ? a : b;
  if (b.isConstant())
    return b.getNumber() ? b : a;
  if (a.isNumber() && b.isNumber())
    return Cond::runtime(a.getNumber() || b.getNumber());
  return Cond::of(Value(arith::OrIOp::create(*builder, *loc, a.getValue(), b.getValue())));
}

Cond IndexMath::logicalNot(Cond a) {
  if (a.isConstant())
    return Cond::of(!a.getNumber());
  if (a.isNumber())
    return Cond::runtime(!a.getNumber());
  return Cond::of(Value(arith::XOrIOp::create(*builder, *loc, a.getValue(), value(Cond::of(true)))));
}
