// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Positions, lengths and arrays for the methods of a score modifier: for one score of
// the reference (`ScorePoint`) and for a kernel (`ScoreScope`).
//
#ifndef ATTN_DIALECT_ATTN_IR_SCORESCOPE_H
#define ATTN_DIALECT_ATTN_IR_SCORESCOPE_H

#include "attn/Dialect/Attn/IR/MaskScope.h"

namespace attn {

enum class Diagonal : uint32_t;

/// Emits arithmetic on f32.
class FloatMath {
public:
  FloatMath(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::Value constant(double number); ///< beyond f32: its largest
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c); ///< a * b + c
  mlir::Value neg(mlir::Value a);
  mlir::Value abs(mlir::Value a);
  mlir::Value tanh(mlir::Value a);
  mlir::Value exp2(mlir::Value a);
  mlir::Value log2(mlir::Value a);
  mlir::Value sqrt(mlir::Value a);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value lessEqual(mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);
  mlir::Value convert(Index a); ///< i32 to f32
  /// Gives the value a name that printed code and dumps use.
  mlir::Value named(mlir::Value a, llvm::StringRef name);
  /// For positions and lengths, at the same place.
  IndexMath indices() { return IndexMath(builder, loc); }

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// A score in a kernel: `(value * times + offset) * factor` in natural units. The first
/// modifier gets the product of Q and K as the value and the problem's scale as the factor.
/// The factor costs nothing, since softmax multiplies by a constant anyway, so a modifier
/// may move constants into it. The factor stays positive: a sign is in the value.
///
/// A modifier gets a value and a factor only, and may also set `times` and `offset`: softmax
/// multiplies and subtracts in one instruction, and subtracts a number of
/// each row anyway. So an offset that depends only on `from` and `base` costs nothing.
struct Score {
  mlir::Value value;
  double factor;
  mlir::Value times = {}, offset = {}; ///< if absent: 1 and 0
};

/// A run-time float32 array that a modifier reads.
struct ScoreOperand {
  /// Its axes, in this order: sequences, query heads, rows and keys (dense
  /// layouts only), and a table of `entries`.
  enum Axis { Batch, Head, Query, Key, Table };
  std::string name;
  llvm::SmallVector<Axis, 4> axes;
  int64_t entries = 0;
  /// A table is indexed by k - D, clamped to -(entries / 2) ... entries / 2.
  Diagonal diagonal = {};
  bool operator==(const ScoreOperand &) const = default;
  bool has(Axis axis) const { return llvm::is_contained(axes, axis); }
};

/// One score of one sequence and head, for the definition.
struct ScorePoint : MaskPoint {
  /// The entry of an operand that belongs to the score of key k; for a table, entry `at`.
  std::function<double(const ScoreOperand &, int64_t k, int64_t at)> entry;
  double entryOf(const ScoreOperand &operand, int64_t at = 0) const { return entry(operand, k, at); }
};

/// The same in a kernel.
struct ScoreScope {
  const MaskScope &sequence; ///< lengths, batch, head: SSA values
  int64_t heads;
  FloatMath once; ///< emits once for a query tile, before the KV loop
  FloatMath each; ///< emits for each score
  Index q, k;     ///< the score's row and key
  /// The distance k - q as base - from + ahead. `ahead` is a constant after
  /// unrolling; the others are the same for all scores of a fragment's row that a thread has.
  /// (The conversion of an integer to a float costs as much as an exponential; an FMA with
  /// a constant costs no more than another FMA.)
  Index from, base;
  mlir::Value ahead; ///< f32
  /// Loads the entry of an operand that belongs to this score; for a table, entry `at`. If
  /// all scores of a query tile share an entry, it is loaded once.
  std::function<mlir::Value(const ScoreOperand &, Index at)> entry;
  /// `MaskInterface::reach` of the mask.
  std::function<std::optional<int64_t>(Diagonal)> reach;
};

/// The factor of scores whose value is the exponent of 2, so that softmax need not multiply.
inline constexpr double factorOfExponents = 0.69314718055994530942;

/// A value whose magnitude is below `within`, for which polynomials in (value / within)^2 are evaluated (`smallScore`,
/// `smallDerivative`).
class SmallValue {
public:
  /// The polynomials' argument: the square, or the square minus that of `within`, whose sign shows whether the value is
  /// small. `narrow`: squares of the unscaled value may overflow.
  enum Argument { Square, Beyond };
  SmallValue(FloatMath &math, mlir::Value value, double within, Argument argument, bool narrow = false);
  mlir::Value argument; ///< the square, or the difference
  /// The same polynomial over `argument`.
  llvm::SmallVector<double> coefficients(llvm::ArrayRef<double> polynomial) const;
  mlir::Value evaluate(llvm::ArrayRef<double> polynomial) const;
  /// value / within times the polynomial, with the factor of exponents.
  Score score(llvm::ArrayRef<double> polynomial) const;

private:
  FloatMath &math;
  mlir::Value x; ///< in units in which powers fit f32
  double within; ///< in the same units
  Argument over;
};

/// The same score as a value and a factor alone.
Score settled(FloatMath &math, Score score);

/// The same score with a factor that is far from f32's limits, so that other numbers
/// may be divided by it.
Score moderate(FloatMath &math, Score score);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_SCORESCOPE_H
