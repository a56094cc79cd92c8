// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions of warp-level matrix products: ldmatrix and mma.sync.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// Four 8x8 matrices; lane l has the address of row l % 8 of matrix l / 8. NOTE: volatile, so that no read moves across
// a barrier.
ATTN_INLINE void load_matrices(unsigned (&d)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address));
}
ATTN_INLINE void load_matrices_transposed(unsigned (&d)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(address));
}

// Two matrices, whose row addresses come from lanes 0 to 15.
ATTN_INLINE void load_matrices(unsigned (&d)[2], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(d[0]), "=r"(d[1]) : "r"(address));
}
ATTN_INLINE void load_matrices_transposed(unsigned (&d)[2], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(address));
}

// d += a b, for 16 rows, 8 columns and a depth of 16, or of 8.
template <class T> ATTN_INLINE void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);
template <class T> ATTN_INLINE void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0);
#define ATTN_MMA(T, name)                                                                                              \
  template <> ATTN_INLINE void mma<T>(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {               \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name                                                         \
        ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                         \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                               \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                               \
  }                                                                                                                    \
  template <> ATTN_INLINE void mma<T>(float (&d)[4], const unsigned (&a)[4], unsigned b0) {                            \
    asm("mma.sync.aligned.m16n8k8.row.col.f32." name "." name                                                          \
        ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                                                     \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                               \
        : "r"(a[0]), "r"(a[1]), "r"(b0));                                                                              \
  }
ATTN_MMA(bf16, "bf16")
ATTN_MMA(fp16, "f16")
#undef ATTN_MMA

} // namespace attn
