// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Affine masks: a pair's visibility depends only on compares of q, k, the key D where
// a row meets the diagonal, and their differences with constants, and on
// remainders. Testing a few pairs decides whether two such masks are equal.
//
#ifndef ATTN_DIALECT_ATTN_IR_AFFINEMASK_H
#define ATTN_DIALECT_ATTN_IR_AFFINEMASK_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace attn {

struct AffineTerms {
  /// Diagonal is D = q + lenK - lenQ, the bottom-right one; masks of the top-left diagonal use Row and KeyMinusRow.
  enum Term { Row, Key, Diagonal, KeyMinusRow, KeyMinusDiagonal };
  static constexpr int count = 5;

  /// A pair's visibility depends on whether the term is below these, ...
  llvm::SmallVector<int64_t> bounds[count];
  /// ... on the remainders of q, k and D modulo this, ...
  int64_t period = 1;
  /// ... and on whether both terms of a difference have the same quotient by it.
  bool quotients[count] = {};

  void compare(Term term, int64_t bound) { bounds[term].push_back(bound); }
  void remainder(int64_t modulus);
  void quotient(Term term, int64_t modulus) {
    quotients[term] = true;
    remainder(modulus);
  }
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_AFFINEMASK_H
