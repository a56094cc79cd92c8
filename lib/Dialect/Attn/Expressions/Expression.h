// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The expressions of `#attn.predicate`: integers and truth values over positions, lengths and
// entries of run-time arrays; and those of `#attn.score`, which have real numbers as well. Kept as instructions that
// take their operands from a stack, so that an expression is a list of numbers, and anything that is to be known about
// one is a walk over it in some domain: values, code, ranges of values.
//
#ifndef ATTN_LIB_DIALECT_ATTN_EXPRESSIONS_EXPRESSION_H
#define ATTN_LIB_DIALECT_ATTN_EXPRESSIONS_EXPRESSION_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/Error.h"

namespace attn::expression {

enum Opcode : int64_t {
  // Integers; `Number` is followed by its value and `Load` by an `Array`.
  Number,
  Q,
  K,
  Batch,
  Head,
  LenQ,
  LenK,
  Load,
  Add,
  Sub,
  Min,
  Max,
  // By a constant that follows; the last two by a positive one, rounding down.
  Mul,
  Div,
  Mod,
  // Truth values.
  Less,
  LessEqual,
  Equal,
  And,
  Or,
  Not,
  // Of a condition and two integers.
  Select,
  // Integers, bit by bit.
  BitAnd,
  BitOr,
  BitXor,
  // Real numbers; the first is followed by the bits of a double, `RealLoad` by a `RealArray`.
  RealNumber,
  OwnScore,
  RealLoad,
  ToReal,
  RealAbs,
  Exp,
  Log,
  Sqrt,
  Tanh,
  RealAdd,
  RealSub,
  RealMul,
  RealDiv,
  RealMin,
  RealMax,
  // A truth value.
  RealLess,
  RealLessEqual,
  // Of a condition and two real numbers.
  RealSelect
};

/// Which array an instruction reads, as one number.
struct Array {
  unsigned number; ///< among the names
  OperandShape shape;
  OperandHeads heads;
  static_assert(int64_t(OperandShape::PerHead) < 4 && int64_t(OperandHeads::per_head) < 4);
  int64_t pack() const { return int64_t(number) * 16 + int64_t(shape) * 4 + int64_t(heads); }
  /// Has it an entry for each row or key?
  bool hasPositions() const { return shape == OperandShape::PerQuery || shape == OperandShape::PerKey; }
  static Array unpack(int64_t packed) {
    return {unsigned(packed / 16), OperandShape(packed / 4 % 4), OperandHeads(packed % 4)};
  }
};

/// The same of a float32 array: which axes it has, as `letters` number them.
struct RealArray {
  static constexpr llvm::StringLiteral letters = "bhqk";
  unsigned number;
  unsigned axes; ///< a bit for each
  int64_t pack() const { return int64_t(number) * 16 + axes; }
  static RealArray unpack(int64_t packed) { return {unsigned(packed / 16), unsigned(packed % 16)}; }
};

inline bool hasConstant(int64_t op) {
  return op == Number || op == Load || op == Mul || op == Div || op == Mod || op == RealNumber || op == RealLoad;
}

/// How many operands an instruction of real numbers takes.
inline unsigned operandsOfReal(int64_t op) { return op <= RealLoad ? 0 : op <= Tanh ? 1 : op == RealSelect ? 3 : 2; }

using Code = llvm::ArrayRef<int64_t>;

struct Parsed {
  llvm::SmallVector<int64_t> code;
  llvm::SmallVector<std::string> names; ///< of arrays; one name is one array
};

/// Of a truth value, or an error that says where in the text.
llvm::Expected<Parsed> parse(llvm::StringRef text);
/// Of a real number.
llvm::Expected<Parsed> parseScore(llvm::StringRef text);

/// With no more parentheses than it needs.
std::string print(Code code, llvm::ArrayRef<llvm::StringRef> names);

/// The parameters of an attribute that is written `<"text">` and holds code and names; `read` is one of those above.
template <class Attr>
mlir::Attribute parseAttr(mlir::AsmParser &parser, llvm::Expected<Parsed> (*read)(llvm::StringRef)) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  std::string text;
  if (parser.parseLess() || parser.parseString(&text) || parser.parseGreater())
    return {};
  llvm::Expected<Parsed> parsed = read(text);
  if (!parsed) {
    parser.emitError(loc, llvm::toString(parsed.takeError()));
    return {};
  }
  llvm::SmallVector<mlir::StringAttr> names;
  for (const std::string &name : parsed->names)
    names.push_back(mlir::StringAttr::get(parser.getContext(), name));
  return parser.getChecked<Attr>(loc, parser.getContext(), llvm::ArrayRef<int64_t>(parsed->code),
                                 llvm::ArrayRef<mlir::StringAttr>(names));
}
void printAttr(mlir::AsmPrinter &printer, Code code, llvm::ArrayRef<mlir::StringAttr> names);

/// Between what numbers an integer is that does not fit 64 bits for some sequence and entries,
/// as text; nullopt if all fit.
std::optional<std::string> findOverflow(Code code);

bool evaluate(Code code, const MaskPoint &point);
Cond emit(Code code, IndexMath &math, const MaskScope &scope, Index q, Index k);

/// A score and how it changes with the score before (`by` -1) or with the entry of an array that belongs to it: forward
/// differentiation, in numbers and as code.
struct DualNumber {
  double value = 0, slope = 0;
};
DualNumber evaluateScore(Code code, const ScorePoint &point, llvm::ArrayRef<ScoreOperand> arrays, double score, int by);
struct DualValue {
  mlir::Value value, slope; ///< no slope: 0, or 1
  bool isOne = false;
};
DualValue emitScore(Code code, ScoreScope &scope, llvm::ArrayRef<ScoreOperand> arrays, mlir::Value score, int by);

/// May it hold for some pair of a tile, and must it for all (neither is empty)?
TileTruth classify(Code code, IndexMath &math, const MaskScope &scope, Interval queries, Interval keys);

} // namespace attn::expression

#endif // ATTN_LIB_DIALECT_ATTN_EXPRESSIONS_EXPRESSION_H
