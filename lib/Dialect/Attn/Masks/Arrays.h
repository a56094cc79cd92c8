// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by masks that read run-time arrays: their names, and ranges of which
// nothing is known before the arrays are read.
//
#ifndef ATTN_LIB_MASKS_ARRAYS_H
#define ATTN_LIB_MASKS_ARRAYS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

/// Any tile may be visible in part.
inline TileRanges anyOf(Index extent) { return {{{0, extent}}, {}}; }

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
void printCount(mlir::AsmPrinter &printer, std::optional<int64_t> number, llvm::StringRef array);

/// Its value within [0, extent], or, where the scope cuts nothing, any.
Index countOf(std::optional<int64_t> number, IndexMath &math, const MaskScope &scope, Index extent);

} // namespace attn

#endif // ATTN_LIB_MASKS_ARRAYS_H
