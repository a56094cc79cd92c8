// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies by the tensor memory accelerator (PTX ISA: cp.async.bulk) to shared memory, which complete at an mbarrier.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// The result of cuTensorMapEncodeTiled: rank 4 (column, row, head, batch), boxes of a tile's rows by 64 columns, 128
// byte swizzle, zeros out of bounds. Maps of packed rows have rank 5.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};
constexpr int kPackedRows = 1 << 30; // most rows of a sequence in a map of packed rows

// Begins a contiguous copy.
template <int Bytes> ATTN_INLINE void bulk_load(unsigned to, const void *from, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "n"(Bytes), "r"(barrier)
               : "memory");
}

// Begins to copy a box: 64 columns of a tile's rows. Out-of-bounds elements become zeros, and their bytes count as
// landed.
ATTN_INLINE void tma_load(unsigned to, const TensorMap &map, int column, int second, int third, int batch,
                          unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
               "%5}], [%6];" ::"r"(to),
               "l"(&map), "r"(column), "r"(second), "r"(third), "r"(batch), "r"(barrier)
               : "memory");
}
// The same for packed rows: rows from `end` on, where the sequence ends, become zeros. The row coordinate (second or
// third) is kPackedRows - left if `left` rows remain before `end`. attn-rt/TensorMap.h explains the five coordinates.
ATTN_INLINE void tma_load_packed(unsigned to, const TensorMap &map, int column, int second, int third, int end,
                                 unsigned barrier) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
               "%5, %6}], [%7];" ::"r"(to),
               "l"(&map), "r"(column), "r"(second), "r"(third), "r"(end), "r"(kPackedRows), "r"(barrier)
               : "memory");
}

} // namespace attn
