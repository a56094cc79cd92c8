// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tensors of a problem have to look like, and how a launch's tensors
// become the arguments of its kernel. Plain data: nothing here needs MLIR, so a
// launch costs microseconds.
//
#ifndef ATTN_API_SIGNATURE_H
#define ATTN_API_SIGNATURE_H

#include "attn-rt/Artifact.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

namespace attn {

enum class Dtype { BF16, F16, F32, I32 };
llvm::StringRef toString(Dtype dtype);

/// A tensor as a caller hands it over: memory of the kernel's device, extents,
/// strides in elements (empty: contiguous).
struct TensorView {
  void *data = nullptr;
  Dtype dtype = Dtype::F32;
  llvm::ArrayRef<int64_t> shape, strides;
};

/// One tensor of a problem.
struct TensorSpec : ProblemTensor {
  Dtype dtype;
  bool isResult() const { return role == Result; }
};

/// All tensors of a problem, in the order of its kernel's pointer arguments.
struct Signature {
  llvm::SmallVector<TensorSpec, 12> tensors;
  FixedSizes fixed;

  static Signature of(ProblemOp problem);
  const TensorSpec *find(llvm::StringRef name) const;

  /// Checks shapes, dtypes, strides and alignment of all tensors against each
  /// other. Errors name the tensor, what was expected and what was given.
  rt::Result<Sizes> check(llvm::ArrayRef<TensorView> views) const;
};

/// Values of a kernel's arguments, and pointers to them as a launch wants them.
struct Binding {
  llvm::SmallVector<int64_t, 40> values; ///< i32 arguments lie in the low half
  llvm::SmallVector<void *, 40> pointers;
  int64_t blocks = 0;
};

/// Fills `binding` for a launch of `artifact`'s kernel with checked tensors.
rt::Status bind(const rt::Artifact &artifact, const Signature &signature, llvm::ArrayRef<TensorView> views,
                const Sizes &sizes, Binding &binding);

/// Strides of a contiguous tensor.
llvm::SmallVector<int64_t, 4> contiguousStrides(llvm::ArrayRef<int64_t> shape);

} // namespace attn

#endif // ATTN_API_SIGNATURE_H
