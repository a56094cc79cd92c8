// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the connectives: and, or, not, diff, heads.
//
#ifndef ATTN_LIB_DIALECT_ATTN_MASKS_COMPOSITE_H
#define ATTN_LIB_DIALECT_ATTN_MASKS_COMPOSITE_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

/// Lists stay short. Past `maxIntervals`, `some` becomes its hull and `all` its first intervals, both safe.
TileRanges shortened(IndexMath &math, TileRanges ranges);

/// The arrays of all masks, one after the other.
llvm::SmallVector<MaskOperand> allOperands(llvm::ArrayRef<MaskInterface> masks);

/// Adds the terms of all; false if one is not affine.
bool allAffine(llvm::ArrayRef<MaskInterface> masks, AffineTerms &terms);

/// From `least` (one or two) to `most` masks, nested no deeper than masks may be.
mlir::LogicalResult verifyMasks(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, llvm::StringRef name,
                                llvm::ArrayRef<MaskInterface> masks, size_t least, size_t most);

/// `<mask, ...>`
mlir::ParseResult parseMasks(mlir::AsmParser &parser, llvm::SmallVectorImpl<MaskInterface> &masks);
void printMasks(mlir::AsmPrinter &printer, llvm::ArrayRef<MaskInterface> masks);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_MASKS_COMPOSITE_H
