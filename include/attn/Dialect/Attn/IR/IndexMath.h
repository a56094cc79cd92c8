// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer arithmetic that computes on constants and otherwise emits `arith` on i32 (on i64
// where an operand has been widened), and sorted lists of half-open intervals of such numbers. Every analysis of
// a mask is written once, over these: with constants it computes a result, with SSA
// values it emits code. Constants are folded here, so that what is known statically
// (an absent bound, an empty segment) leaves no op in the IR.
//
#ifndef ATTN_DIALECT_ATTN_IR_INDEXMATH_H
#define ATTN_DIALECT_ATTN_IR_INDEXMATH_H

#include "mlir/IR/Builders.h"
#include <algorithm>
#include <cassert>
#include <optional>

namespace attn {

/// An integer: a constant of the mask, an SSA value of type i32 or i64, or a number that
/// stands for such a value (`runtime`). Numbers compute but do not fold, so an
/// analysis takes the same path, and has as many intervals, for every length. A value or
/// number may have a known lower bound, and conditions that follow from it fold.
class Index {
public:
  Index(int64_t constant) : number(constant), least(constant) {}
  Index(mlir::Value value) : least(value.getType().isInteger(64) ? unknown : leastOf32), value(value) {}
  static Index runtime(int64_t number, bool wide = false) {
    Index i(number);
    i.isRuntime = true, i.wide = wide, i.least = wide ? unknown : leastOf32;
    return i;
  }
  /// A length, or a position in one.
  static Index position(mlir::Value value) { return Index(value).atLeast(0); }
  static Index position(int64_t number) { return runtime(number).atLeast(0); }
  Index atLeast(int64_t bound) const {
    assert((value || number >= bound) && "what is known of a number has to hold");
    Index i = *this;
    i.least = std::max(least, bound);
    return i;
  }
  bool isConstant() const { return !value && !isRuntime; }
  bool isNumber() const { return !value; }
  /// Has it 64 bits? A constant fits both widths.
  bool isWide() const { return value ? value.getType().isInteger(64) : wide; }
  bool is(int64_t c) const { return isConstant() && number == c; }
  /// Of a constant or a number.
  int64_t getNumber() const { return number; }
  mlir::Value getValue() const { return value; }
  static constexpr int64_t unknown = INT64_MIN, leastOf32 = INT32_MIN;
  int64_t getLeast() const { return least; }
  bool isAtLeast(int64_t bound) const { return least >= bound; }
  /// Known to be the same.
  bool operator==(const Index &o) const { return value ? value == o.value : isConstant() && o.is(number); }

private:
  int64_t number = 0, least = unknown;
  mlir::Value value;
  bool isRuntime = false, wide = false;
};

/// A truth value, likewise; SSA values are of type i1.
class Cond {
public:
  static Cond of(bool constant) {
    Cond c;
    c.number = constant;
    return c;
  }
  static Cond of(mlir::Value value) {
    Cond c;
    c.value = value;
    return c;
  }
  static Cond runtime(bool number) {
    Cond c = of(number);
    c.isRuntime = true;
    return c;
  }
  bool isConstant() const { return !value && !isRuntime; }
  bool isNumber() const { return !value; }
  bool getNumber() const { return number; }
  mlir::Value getValue() const { return value; }

private:
  bool number = false;
  mlir::Value value;
  bool isRuntime = false;
};

/// [lo, hi); empty when hi <= lo.
struct Interval {
  Index lo, hi;
};

/// Sorted by `lo` and disjoint; empty intervals may occur anywhere.
using IntervalList = llvm::SmallVector<Interval, 2>;
/// The most intervals of a list of a tile's keys or rows, since each interval is code of its own.
inline constexpr size_t maxIntervals = 4;

/// The keys that some rows and all rows of a tile see (or likewise rows for a tile's keys):
/// `some` is never too small, `all` never too large.
struct TileRanges {
  IntervalList some, all;
};

/// Are some pairs of a tile visible (never wrongly false), and are all (never wrongly true)?
struct TileTruth {
  Cond some, all;
};

/// Builds integer expressions. Without a builder there are no SSA values.
class IndexMath {
public:
  IndexMath() = default;
  IndexMath(mlir::OpBuilder &builder, mlir::Location loc) : builder(&builder), loc(loc) {}

  Index add(Index a, Index b);
  Index sub(Index a, Index b);
  Index mul(Index a, int64_t factor);
  Index min(Index a, Index b);
  Index max(Index a, Index b);
  Index floorDiv(Index a, int64_t divisor); ///< a >= 0, divisor > 0
  Index ceilDiv(Index a, int64_t divisor);  ///< a >= 0, divisor > 0
  Index rem(Index a, int64_t divisor);      ///< a >= 0, divisor > 0
  /// Bit by bit, in two's complement.
  Index bitAnd(Index a, Index b);
  Index bitOr(Index a, Index b);
  Index bitXor(Index a, Index b);
  Index select(Cond c, Index a, Index b);
  /// The same number in 64 bits; results computed from it have 64 bits, too.
  Index widen(Index a);
  /// The same number in 32 bits, which it is known to fit.
  Index narrow(Index a);
  Index clamp(Index a, Index lo, Index hi) { return min(max(a, lo), hi); }

  Cond lt(Index a, Index b);
  Cond le(Index a, Index b);
  Cond eq(Index a, Index b);
  Cond logicalAnd(Cond a, Cond b);
  Cond logicalOr(Cond a, Cond b);
  Cond logicalNot(Cond a);

  /// SSA values of either kind (constants are materialised).
  mlir::Value value(Index a);
  mlir::Value value(Cond a);
  /// Gives the value a name that printed code and dumps use.
  Index named(Index a, llvm::StringRef name);

  mlir::OpBuilder *getBuilder() { return builder; }
  mlir::Location getLoc() { return *loc; }

private:
  /// Both as SSA values of one type.
  std::pair<mlir::Value, mlir::Value> values(Index a, Index b);

  mlir::OpBuilder *builder = nullptr;
  std::optional<mlir::Location> loc;
};

/// Sorted union; touching and overlapping intervals become one.
IntervalList unite(IndexMath &math, llvm::ArrayRef<Interval> a, llvm::ArrayRef<Interval> b);
/// Sorted intersection.
IntervalList intersect(IndexMath &math, llvm::ArrayRef<Interval> a, llvm::ArrayRef<Interval> b);
/// [0, extent) without the list.
IntervalList complement(IndexMath &math, llvm::ArrayRef<Interval> a, Index extent);
/// The number of positions in the intervals; all bounds are numbers.
int64_t countOf(llvm::ArrayRef<Interval> intervals);
/// Is `x` in one of the intervals?
Cond contains(IndexMath &math, llvm::ArrayRef<Interval> a, Index x);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_INDEXMATH_H
