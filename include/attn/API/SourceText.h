// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts from outside may have brackets nested millions deep and lines of any length: what a tool checks before MLIR
// parses a text, and what it shows of one in an error.
//
#ifndef ATTN_API_SOURCETEXT_H
#define ATTN_API_SOURCETEXT_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"

namespace attn {

/// Refuses a text whose brackets are nested too deep for MLIR's parser: the parser calls itself for each level, and
/// reads the rest of an attribute once for each level.
llvm::LogicalResult checkNesting(mlir::MLIRContext &context, llvm::MemoryBufferRef text);

/// The text, with a mark where the rest of a long line is left out.
std::string cutLongLines(llvm::StringRef text);

/// Prints a diagnostic and its notes to `llvm::errs()`, with what of the text's line is near the column.
void printDiagnostic(mlir::Diagnostic &diagnostic, llvm::MemoryBufferRef text);

/// Prints a diagnostic so if it is about a long line of the text. Otherwise fails, and another handler may print it.
llvm::LogicalResult printCut(mlir::Diagnostic &diagnostic, llvm::MemoryBufferRef text);

} // namespace attn

#endif // ATTN_API_SOURCETEXT_H
