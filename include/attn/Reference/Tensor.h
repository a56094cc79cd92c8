// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small tensor on the host: what the reference interpreter computes with and
// what the tools read, fill and write. Elements are seen as double, whatever
// they are stored as; storing rounds to nearest even.
//
#ifndef ATTN_REFERENCE_TENSOR_H
#define ATTN_REFERENCE_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace attn::reference {

enum class Dtype { BF16, F16, F32, F64, I32 };

llvm::StringRef toString(Dtype dtype); ///< `bf16`, `f16`, `f32`, `f64`, `i32`
int64_t sizeOf(Dtype dtype);           ///< in bytes

// 16-bit floats as bits. Rounding is to nearest even; values beyond the range
// become infinite, NaN stays NaN (quiet, sign kept), subnormals are kept.
uint16_t toBF16(float value);
uint16_t toF16(float value);
float fromBF16(uint16_t bits);
float fromF16(uint16_t bits);
/// For narrowing a double in two steps without rounding twice: the float
/// neighbour of an inexact value whose last bit is 1 ("round to odd").
float toOddFloat(double value);

/// `[2, 128, 16, 64]`
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// Owns its bytes. Axis i has `shape()[i]` elements, `strides()[i]` elements
/// apart; element offsets are in elements from the first one.
class Tensor {
public:
  Tensor() = default;
  /// Zeros, in C order.
  Tensor(Dtype dtype, llvm::ArrayRef<int64_t> shape);
  /// Zeros, with the given strides (not negative), e.g. one of a packed QKV.
  Tensor(Dtype dtype, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

  Dtype dtype() const { return type; }
  llvm::ArrayRef<int64_t> shape() const { return extents; }
  llvm::ArrayRef<int64_t> strides() const { return steps; }
  /// Elements behind the last one that belong to no index, and before the first one.
  void addSlack(int64_t behind, int64_t before = 0) {
    storage.resize(storage.size() + behind * sizeOf(type));
    storage.insert(storage.begin() + start, before * sizeOf(type), 0);
    start += before * sizeOf(type);
  }
  int64_t numElements() const;
  bool isContiguous() const;

  /// All bytes, slack and gaps between strided rows included; the first element is at
  /// `firstByte`.
  llvm::ArrayRef<char> bytes() const { return storage; }
  llvm::MutableArrayRef<char> bytes() { return storage; }
  int64_t firstByte() const { return start; }
  template <typename T> const T *data() const { return reinterpret_cast<const T *>(storage.data() + start); }
  template <typename T> T *data() { return reinterpret_cast<T *>(storage.data() + start); }

  /// Element offset of an index (one entry per axis; fewer: the rest is 0).
  int64_t offset(llvm::ArrayRef<int64_t> index) const;
  double load(int64_t offset) const {
    double value;
    load(offset, 1, value);
    return value;
  }
  /// `values.size()` elements from `offset` on, `step` apart.
  void load(int64_t offset, int64_t step, llvm::MutableArrayRef<double> values) const;
  void store(int64_t offset, double value); ///< i32: the value is an integer within range
  double operator()(llvm::ArrayRef<int64_t> index) const { return load(offset(index)); }

  /// Calls `visit(index, offset)` for each element, in C order; `forEachIndex`, `forEachOffset` likewise.
  template <typename Visit> void forEachElement(Visit visit) const {
    llvm::SmallVector<int64_t, 4> index(extents.size(), 0);
    int64_t at = 0;
    for (int64_t i = 0, n = numElements(); i < n; ++i) {
      visit(llvm::ArrayRef<int64_t>(index), at);
      for (size_t axis = index.size(); axis--; index[axis] = 0) {
        at += steps[axis];
        if (++index[axis] < extents[axis])
          break;
        at -= extents[axis] * steps[axis];
      }
    }
  }
  template <typename Visit> void forEachIndex(Visit visit) const {
    forEachElement([&](llvm::ArrayRef<int64_t> index, int64_t) { visit(index); });
  }
  template <typename Visit> void forEachOffset(Visit visit) const {
    forEachElement([&](llvm::ArrayRef<int64_t>, int64_t at) { visit(at); });
  }

  /// The same values, rounded to another type, in C order.
  Tensor to(Dtype dtype) const;

  void fill(double value);
  /// Standard normal numbers: element i (in C order) is a function of the seed
  /// and i alone, so every machine and every number of threads sees the same.
  void fillNormal(uint64_t seed);

private:
  Dtype type = Dtype::F32;
  llvm::SmallVector<int64_t, 4> extents = {0}, steps = {1};
  std::vector<char> storage;
  int64_t start = 0; ///< in bytes
};

} // namespace attn::reference

#endif // ATTN_REFERENCE_TENSOR_H
