// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of the verifier of `program.def`, and what carried values are.
//
#ifndef ATTN_LIB_DIALECT_PROGRAM_IR_VERIFIER_H
#define ATTN_LIB_DIALECT_PROGRAM_IR_VERIFIER_H

#include "attn/Dialect/Program/IR/Program.h"
#include "llvm/ADT/StringMap.h"

namespace attn::program {

/// An argument of the body of a repeat, or a result.
struct Carried {
  RepeatOp repeat;
  unsigned number;
  static std::optional<Carried> of(mlir::Value value);
};

/// `rows(part of parts)`, or null and null: numbers are in their range.
llvm::LogicalResult verifyRows(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, ExtentAttr part,
                               ExtentAttr parts);

/// What is known of extents before sizes have numbers.
class Bounds {
public:
  /// A size that is computed, from sizes before it alone.
  void add(llvm::StringRef size, const rt::Extent &value);
  /// No value is below it.
  int64_t least(const rt::Extent &extent) const;
  /// Is an extent 0 (or below) wherever a count is?
  bool isEmptyWith(const rt::Extent &extent, const rt::Extent &count) const;

private:
  bool isEmptyWith(const rt::Extent &extent, const rt::Extent &count, int &steps) const;

  llvm::StringMap<std::pair<rt::Extent, int64_t>> sizes; ///< their values, and the least
};

llvm::LogicalResult checkNames(DefOp program);    ///< C1
llvm::LogicalResult checkSizes(DefOp program);    ///< C1, C2, C11, C12
llvm::LogicalResult checkAccesses(DefOp program); ///< C3 to C6, C8 to C10, C13; of steps C1 and C3

} // namespace attn::program

#endif // ATTN_LIB_DIALECT_PROGRAM_IR_VERIFIER_H
