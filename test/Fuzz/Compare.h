// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TEST_FUZZ_COMPARE_H
#define ATTN_TEST_FUZZ_COMPARE_H

#include "Problems.h"

namespace attn::fuzz {

/// Ratios are error by bound: 1 is the limit.
struct Verdict {
  std::string failure;  ///< empty: all is well
  double normRatio = 0; ///< ||ours - A|| / ||B - A||, at most 2; 0 where there are too few elements
  double elementRatio = 0;
  double lseRatio = 0;
  int64_t compared = 0; ///< elements of o
};

/// Half a step of a problem's elements, relative to a number and of numbers below the normal ones, and the largest that
/// there is. Kernels of float32 round nothing but their float32 sums and exponentials, which is the unit then.
struct Precision {
  double unit, tiny, largest;
  static Precision of(ProblemOp problem) {
    mlir::Type dtype = problem.getDtype();
    if (dtype.isF32())
      return {0x1p-20, 0x1p-126, 0x1.fffffep127};
    return dtype.isBF16() ? Precision{0x1p-9, 0x1p-133, 0x1.fep127} : Precision{0x1p-12, 0x1p-25, 65504};
  }
};

/// The same computation without its dropout, and inputs for it.
class Undropped {
public:
  explicit Undropped(Computation computation);
  Computation computation() const;
  reference::Tensors inputs(const reference::Tensors &all) const;
  /// What is kept has been multiplied by it.
  double factor = 1;

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string name, seed;
};

/// Holds the results against the reference, A on the exact inputs and B on the
/// rounded ones with its o rounded too:
/// - the norm of the error against A is at most twice that of B, or of what rounding P costs a row of few keys (but of
///   float32, where B is A);
/// - each element of o is within what rounding P, o and float32 scores can cost;
/// - lse is within 1e-4 (absolute and relative) and what float32 scores cost;
/// - what B says is NaN or infinite is not finite (but where its weight is 0 in
///   P's type, or the scale is 0), all else is finite, but where a dropped pair's v is not;
/// - every element is written, and no byte beside them.
/// Scores beyond 2^30: only what is written, since float32 has nothing to say.
/// Big problems: some rows of all, and whether the others are written.
/// Of a backward pass: each element of dq, dk and dv is within what rounding weights and
/// results and float32 scores can cost at most; and the norm of the error within three times
/// what rounding the inputs moves the gradients by, and the results' own rounding.
Verdict compare(Computation computation, const Problem &made);

/// The second half of it; `scoreError` is that of a score in float32.
Verdict compareBackward(BackwardOp backward, const Problem &made, double scoreError);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_COMPARE_H
