// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_RT_TENSOR_H
#define ATTN_RT_TENSOR_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace attn::rt {

enum class Dtype { BF16, F16, F32, I32 };
std::string_view toString(Dtype dtype); ///< "bf16", ...
int64_t sizeOf(Dtype dtype);            ///< in bytes

/// A tensor as a caller hands it over: memory of the launch's device, extents, and strides in elements (none:
/// contiguous). It owns nothing.
struct TensorView {
  void *data = nullptr;
  Dtype dtype = Dtype::F32;
  std::span<const int64_t> shape, strides;

  int rank() const { return static_cast<int>(shape.size()); }
  bool isEmpty() const { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }
  int64_t elements() const {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    return count;
  }
  int64_t strideOf(int axis) const {
    if (!strides.empty())
      return strides[static_cast<size_t>(axis)];
    int64_t stride = 1;
    for (int64_t extent : shape.subspan(static_cast<size_t>(axis) + 1))
      stride *= extent;
    return stride;
  }
};

} // namespace attn::rt

#endif // ATTN_RT_TENSOR_H
