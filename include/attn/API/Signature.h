// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tensors of a program have to look like, and how a launch's tensors
// become the arguments of its kernel. Plain data: nothing here needs MLIR, so a
// launch costs microseconds.
//
#ifndef ATTN_API_SIGNATURE_H
#define ATTN_API_SIGNATURE_H

#include "attn-rt/Artifact.h"
#include "attn-rt/TensorMap.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include <array>

namespace attn {

enum class Dtype { BF16, F16, F32, I32 };
llvm::StringRef toString(Dtype dtype);
int64_t sizeOf(Dtype dtype); ///< in bytes

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
  llvm::SmallVector<TensorSpec, 2> scratch;  ///< what kernels leave for each other, in the workspace
  FixedSizes fixed;

  static Signature of(Computation computation);
  static Signature of(SegmentsOp segments);
  /// One of `tensors`, or null.
  const TensorSpec *find(llvm::StringRef name) const;
  /// Of `tensors` or, numbered behind them, `scratch`.
  std::optional<size_t> indexOf(llvm::StringRef name) const;
  const TensorSpec &operator[](size_t index) const {
    return index < tensors.size() ? tensors[index] : scratch[index - tensors.size()];
  }
  /// Of ids or positions of keys: those of queries; else null.
  const TensorSpec *twinOf(const TensorSpec &spec) const;

  /// Checks shapes, dtypes, strides and alignment of all tensors against each
  /// other. Errors name the tensor, what was expected and what was given.
  rt::Result<Sizes> check(llvm::ArrayRef<TensorView> views) const;
  /// Do results begin where no other tensor does? (Those that overlap otherwise may be views of one array, and apart.)
  rt::Status checkApart(llvm::ArrayRef<TensorView> views) const;
};

/// Where the scratch tensors of a launch lie: one behind another, contiguous, each aligned to 16. What trees are numbered in
/// (`ProblemTensor::isPassing`) is where the longest list of tiles comes to lie, which is made behind that.
class Workspace {
public:
  Workspace(const Signature &signature, const Sizes &sizes);
  Workspace(const Workspace &) = delete; ///< views lead into it

  size_t bytes() const { return size; }
  /// Takes memory of so many bytes and appends the scratch tensors to `tensors`; an error if
  /// the memory cannot be used.
  rt::Status use(void *memory, llvm::SmallVectorImpl<TensorView> &tensors) const;

private:
  struct Piece {
    Dtype dtype;
    llvm::SmallVector<int64_t, 4> shape;
    size_t offset; ///< in bytes
  };
  llvm::SmallVector<Piece, 2> pieces;
  size_t size = 0;
};

/// Values of a kernel's arguments, and pointers to them as a launch wants them.
/// Stays where it is filled: the pointers lead into it.
struct Binding {
  Binding() = default;
  Binding(const Binding &) = delete;
  Binding &operator=(const Binding &) = delete;

  llvm::SmallVector<int64_t, 40> values; ///< i32 arguments lie in the low half; a queue's is the launch's to fill in
  std::array<rt::TensorMap, 5> maps;     ///< of q, k, v, o and do, in the order of their arguments
  llvm::SmallVector<void *, 40> pointers;
  int64_t blocks = 0;
};

/// What the argument `<tensor>_map` shows of that tensor. An error if the tensor's
/// strides cannot be a map's.
rt::Result<rt::TensorMapSpec> mapOf(const rt::Param &param, const TensorSpec &spec, const TensorView &view);

/// Fills `binding` for a launch of `artifact`'s kernel with checked tensors, the caller's
/// and behind them the scratch. A kernel with tensor maps wants a current context for `encode`; tests give one
/// that needs no driver.
rt::Status bind(const rt::Artifact &artifact, const Signature &signature, llvm::ArrayRef<TensorView> views,
                const Sizes &sizes, Binding &binding,
                rt::Result<rt::TensorMap> (*encode)(const rt::TensorMapSpec &) = rt::encodeTensorMap);

/// Strides of a contiguous tensor.
llvm::SmallVector<int64_t, 4> contiguousStrides(llvm::ArrayRef<int64_t> shape);

} // namespace attn

#endif // ATTN_API_SIGNATURE_H
