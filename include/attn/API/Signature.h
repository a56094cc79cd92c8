// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tensors of a program have to look like. Plain data: nothing here needs MLIR, so a
// launch costs microseconds.
//
#ifndef ATTN_API_SIGNATURE_H
#define ATTN_API_SIGNATURE_H

#include "attn-rt/Program.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

namespace attn {

using rt::Dtype;

/// A tensor as a caller hands it over: memory of the kernel's device, extents,
/// strides in elements (empty: contiguous).
struct TensorView {
  void *data = nullptr;
  Dtype dtype = Dtype::F32;
  llvm::ArrayRef<int64_t> shape, strides;
};

/// How many elements a shape has.
size_t elementsOf(llvm::ArrayRef<int64_t> shape);

/// One tensor of a program.
struct TensorSpec : ProblemTensor {
  Dtype dtype;
  bool isResult() const { return role == Result; }
};

/// All tensors of a program.
struct Signature {
  llvm::SmallVector<TensorSpec, 12> tensors; ///< the caller's, in the order in which they are given
  FixedSizes fixed;

  static Signature of(Computation computation);
  static Signature of(SegmentsOp segments);
  /// One of `tensors`, or null.
  const TensorSpec *find(llvm::StringRef name) const;
  std::optional<size_t> indexOf(llvm::StringRef name) const;
  /// Of ids or positions of keys: those of queries; else null.
  const TensorSpec *twinOf(const TensorSpec &spec) const;

  /// Checks shapes, dtypes, strides and alignment of all tensors against each
  /// other. Errors name the tensor, what was expected and what was given.
  rt::Result<Sizes> check(llvm::ArrayRef<TensorView> views) const;
  /// Do results begin where no other tensor does? (Those that overlap otherwise may be views of one array, and apart.)
  rt::Status checkApart(llvm::ArrayRef<TensorView> views) const;
};

/// Strides of a contiguous tensor.
llvm::SmallVector<int64_t, 4> contiguousStrides(llvm::ArrayRef<int64_t> shape);

} // namespace attn

#endif // ATTN_API_SIGNATURE_H
