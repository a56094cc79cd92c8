// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far the results of a kernel are from the reference.
//
#ifndef ATTN_REFERENCE_DIFFERENCE_H
#define ATTN_REFERENCE_DIFFERENCE_H

#include "attn/Reference/Interpreter.h"

namespace attn::reference {

/// Over the elements that the reference knows. NaN agrees with NaN, an infinity
/// with itself; anything else beside a NaN or an infinity is infinitely far.
struct Difference {
  double maxAbs = 0;      ///< largest |actual - expected|
  double rms = 0;         ///< root of the mean square of |actual - expected|
  double maxExpected = 0; ///< largest finite |expected|
  int64_t compared = 0;   ///< elements
  int64_t notFinite = 0;  ///< of which so many should be infinite or NaN
  Shape worst;            ///< index of the first element that is `maxAbs` off; empty if all agree
  /// Elements that the reference does not know and whose bits are no longer all 1, as `poisonedResults` sets them.
  /// Where all rows were asked for, these are elements of padding that a pass with `keep_padding` has to leave alone.
  int64_t written = 0;
};

/// Largest sizes of elements and of rows among what is finite: padding is not.
struct Extent {
  double element = 0, row = 0;
  explicit Extent(const Tensor &tensor);
};

/// The actual tensors have the shapes of the problem's results, and any type and
/// strides.
Difference difference(const Tensor &expected, const Tensor &actual);
Difference differenceOfO(ProblemOp problem, const Outputs &expected, const Tensor &actual);
Difference differenceOfGradient(const Gradients &expected, llvm::StringRef name, const Tensor &actual);
Difference differenceOfLse(const Outputs &expected, const Tensor &actual);

/// How large the largest difference may be, of a problem's results.
double toleranceOfO(ProblemOp problem, const Difference &found);
double toleranceOfLse(const Difference &found);
/// `inputs`: those of the backward pass.
double toleranceOfGradient(BackwardOp backward, const Tensors &inputs, llvm::StringRef name, const Difference &found);

/// The same for a result of a program, or of an op that is no attention problem. A program's `dtype` is the coarsest
/// type of its tensors, to which values between calls may be rounded; indices (I32) have to be equal.
double toleranceOfResult(Dtype dtype, bool ofProgram, const Difference &found);

} // namespace attn::reference

#endif // ATTN_REFERENCE_DIFFERENCE_H
