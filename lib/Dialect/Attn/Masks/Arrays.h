// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by masks that read run-time arrays: their names, and numbers that may come from one.
//
#ifndef ATTN_LIB_DIALECT_ATTN_MASKS_ARRAYS_H
#define ATTN_LIB_DIALECT_ATTN_MASKS_ARRAYS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

/// Identifiers, all different. `of`: as in "an array of ids".
mlir::LogicalResult verifyArrayNames(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, llvm::StringRef of,
                                     llvm::ArrayRef<llvm::StringRef> names);

/// `<"name", "name", ...>`
mlir::ParseResult parseArrayNames(mlir::AsmParser &parser, llvm::MutableArrayRef<std::string> names);
void printArrayNames(mlir::AsmPrinter &printer, llvm::ArrayRef<llvm::StringRef> names);

/// Of what is either a number or the name of an array with one for each sequence (C1 to
/// C3 of prefix and global rows). `of`: as in "the length of a prefix".
mlir::LogicalResult verifyCount(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, llvm::StringRef of,
                                std::optional<int64_t> number, llvm::StringRef array);
mlir::ParseResult parseCount(mlir::AsmParser &parser, std::optional<int64_t> &number, std::string &array);
template <typename Mask> mlir::Attribute parseCounted(mlir::AsmParser &parser) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  std::optional<int64_t> number;
  std::string array;
  if (parseCount(parser, number, array))
    return {};
  return parser.getChecked<Mask>(loc, parser.getContext(), number, llvm::StringRef(array));
}
void printCount(mlir::AsmPrinter &printer, std::optional<int64_t> number, llvm::StringRef array);

llvm::SmallVector<MaskOperand> operandsOfCount(std::optional<int64_t> number, llvm::StringRef array);

/// Of two numbers that are given, the mask with more or with less; else null.
template <typename Mask> MaskInterface eitherCount(Mask a, MaskInterface other, bool more) {
  auto b = mlir::dyn_cast<Mask>(other);
  if (!b || !a.getLength() || !b.getLength())
    return {};
  return (*a.getLength() > *b.getLength()) == more ? a : b;
}

/// Parses `shared`, `per_kv_head` or `per_head`, the last of a mask's keywords, once; `others`: the keywords before it,
/// as "`begin`, `end`".
mlir::ParseResult parseOperandHeads(mlir::AsmParser &parser, llvm::SMLoc loc, llvm::StringRef keyword,
                                    llvm::StringRef others, std::optional<OperandHeads> &heads);

/// Of a tile of which nothing is known.
const TileTruth anything = {Cond::of(true), Cond::of(false)};

/// What is known of the entries of a tile's positions.
inline std::optional<EntryRange> entriesOf(const MaskScope &scope, unsigned operand, Interval positions) {
  return scope.extremes ? scope.extremes(operand, positions) : std::nullopt;
}

/// The truth of lists of blocks of `rows` rows and `columns` keys, by their offsets.
TileTruth truthOfBlocks(IndexMath &math, const MaskScope &scope, unsigned offsets, Interval queries, Interval keys,
                        int64_t rows, int64_t columns);

/// Its value within [0, extent], or, where the scope cuts nothing, any.
Index countOf(std::optional<int64_t> number, IndexMath &math, const MaskScope &scope, Index extent);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_MASKS_ARRAYS_H
