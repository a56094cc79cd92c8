// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps: how the copy engine of sm_90 and later (TMA) sees a tensor. A
// kernel names a box by the position of its corner; what of the box lies outside
// the tensor arrives as zeros. Ours have four dimensions: columns (contiguous, 2
// bytes each), rows, heads, batch.
//
// A packed tensor has no batch, and its rows end where a sequence ends, which only
// the kernel knows. So its map has rows three times, in five dimensions: columns, rows up
// to `kPackedRows`, heads, rows again, and a last one of which a step leads
// 2^34 bytes less a row ahead, so that `kPackedRows` of them are the same number of
// rows back, modulo 2^64. A box that begins `left` rows ahead of the row `end` is at
// (column, kPackedRows - left, head, end, kPackedRows): where the sequence is over,
// the second of them leaves the tensor. (As Triton's ragged tensor descriptors do it.)
//
#ifndef ATTN_RT_TENSORMAP_H
#define ATTN_RT_TENSORMAP_H

#include "attn-rt/Driver.h"
#include "attn-rt/Result.h"

#include <cstdint>

namespace attn::rt {

/// CUtensorMap: opaque, passed to a kernel by value.
struct TensorMap {
  alignas(64) uint64_t opaque[16];
};

/// What a map shows. Plain data: making one needs no driver.
struct TensorMapSpec {
  DevicePtr address = 0;             ///< in multiples of 16 bytes
  int64_t extents[4] = {1, 1, 1, 1}; ///< columns, rows, heads, batch; at least 1
  int64_t strides[3] = {0, 0, 0};    ///< rows, heads, batch; in elements, multiples
                                     ///< of 8 below `kTensorMapStrideLimit`
  int boxRows = 0, boxCols = 0;      ///< of one copy; the box is of one sequence and head,
  bool bf16 = false;                 ///< else f16
  int boxHeads = 1;                  ///< or of several heads: then heads come before rows in
                                     ///< the map's order, and rows of heads take turns
  int rowStep = 1;                   ///< a box has every so many-th row, up to every 8th;
                                     ///< boxRows * rowStep is at most 256
  bool packed = false;               ///< of sequences one behind another: batch is 1
};

/// Rows that a sequence of a packed map may have.
inline constexpr int64_t kPackedRows = int64_t(1) << 30;

/// Strides of a map are below 2^40 bytes.
inline constexpr int64_t kTensorMapStrideLimit = int64_t(1) << 39;

/// The map, with 128-byte swizzle. Under a microsecond; it reads no memory, and
/// an address that nobody copies from need not be one. Needs a current context
/// (`Module::prepare` makes one current) and a driver for CUDA 12.0 or later.
Result<TensorMap> encodeTensorMap(const TensorMapSpec &spec);

} // namespace attn::rt

#endif // ATTN_RT_TENSORMAP_H
