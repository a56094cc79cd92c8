// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/IndexMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cassert>

using namespace mlir;
using namespace attn;

Value IndexMath::value(Index a) {
  if (!a.isConstant())
    return a.getValue();
  assert(builder && a.isConstant() && "a number that stands for a run-time value is no constant");
  return arith::ConstantIntOp::create(*builder, *loc, a.getNumber(), 32);
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
  return a.isConstant() && b.isConstant() ? Index(result) : Index::runtime(result);
}

template <typename Compute> static Cond decide(Index a, Index b, Compute f) {
  bool result = f(a.getNumber(), b.getNumber());
  return a.isConstant() && b.isConstant() ? Cond::of(result) : Cond::runtime(result);
}

Index IndexMath::add(Index a, Index b) {
  if (b.is(0))
    return a;
  if (a.is(0))
    return b;
  if (a.isNumber() && b.isNumber())
    return compute(a, b, [](int64_t x, int64_t y) { return x + y; });
  if (a.isConstant())
    std::swap(a, b);
  if (b.isConstant() && b.getNumber() < 0)
    return sub(a, -b.getNumber());
  return Value(arith::AddIOp::create(*builder, *loc, value(a), value(b)));
}

Index IndexMath::sub(Index a, Index b) {
  if (a == b)
    return 0;
  if (b.is(0))
    return a;
  if (a.isNumber() && b.isNumber())
    return compute(a, b, [](int64_t x, int64_t y) { return x - y; });
  if (b.isConstant() && b.getNumber() < 0)
    return add(a, -b.getNumber());
  return Value(arith::SubIOp::create(*builder, *loc, value(a), value(b)));
}

Index IndexMath::mul(Index a, int64_t factor) {
  if (factor == 1)
    return a;
  if (a.isNumber())
    return compute(a, factor, [](int64_t x, int64_t y) { return x * y; });
  return Value(arith::MulIOp::create(*builder, *loc, value(a), value(Index(factor))));
}

Index IndexMath::min(Index a, Index b) {
  if (a == b)
    return a;
  if (a.isNumber() && b.isNumber())
    return compute(a, b, [](int64_t x, int64_t y) { return std::min(x, y); });
  return Value(arith::MinSIOp::create(*builder, *loc, value(a), value(b)));
}

Index IndexMath::max(Index a, Index b) {
  if (a == b)
    return a;
  if (a.isNumber() && b.isNumber())
    return compute(a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
  return Value(arith::MaxSIOp::create(*builder, *loc, value(a), value(b)));
}

Index IndexMath::floorDiv(Index a, int64_t divisor) {
  if (divisor == 1 || a.is(0))
    return a;
  if (a.isNumber())
    return compute(a, divisor, [](int64_t x, int64_t y) { return x / y; });
  return Value(arith::DivUIOp::create(*builder, *loc, value(a), value(Index(divisor))));
}

Index IndexMath::ceilDiv(Index a, int64_t divisor) {
  return divisor == 1 || a.is(0) ? a : floorDiv(add(a, divisor - 1), divisor);
}

Index IndexMath::rem(Index a, int64_t divisor) {
  if (divisor == 1)
    return 0;
  if (a.isNumber())
    return compute(a, divisor, [](int64_t x, int64_t y) { return x % y; });
  if (llvm::isPowerOf2_64(divisor)) // printed code has signed types, whose remainder costs more
    return Value(arith::AndIOp::create(*builder, *loc, value(a), value(Index(divisor - 1))));
  return Value(arith::RemUIOp::create(*builder, *loc, value(a), value(Index(divisor))));
}

Index IndexMath::select(Cond c, Index a, Index b) {
  if (c.isConstant())
    return c.getNumber() ? a : b;
  if (a == b)
    return a;
  if (c.isNumber())
    return Index::runtime((c.getNumber() ? a : b).getNumber());
  return Value(arith::SelectOp::create(*builder, *loc, c.getValue(), value(a), value(b)));
}

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

Cond IndexMath::lt(Index a, Index b) {
  if (a == b)
    return Cond::of(false);
  if (a.isNumber() && b.isNumber())
    return decide(a, b, [](int64_t x, int64_t y) { return x < y; });
  return Cond::of(compare(*builder, *loc, arith::CmpIPredicate::slt, value(a), value(b)));
}

Cond IndexMath::le(Index a, Index b) {
  if (a == b)
    return Cond::of(true);
  if (a.isNumber() && b.isNumber())
    return decide(a, b, [](int64_t x, int64_t y) { return x <= y; });
  return Cond::of(compare(*builder, *loc, arith::CmpIPredicate::sle, value(a), value(b)));
}

Cond IndexMath::eq(Index a, Index b) {
  if (a == b)
    return Cond::of(true);
  if (a.isNumber() && b.isNumber())
    return decide(a, b, [](int64_t x, int64_t y) { return x == y; });
  return Cond::of(compare(*builder, *loc, arith::CmpIPredicate::eq, value(a), value(b)));
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
