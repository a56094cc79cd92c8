/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A tensor as a caller hands it over. */
#ifndef ATTN_C_TENSOR_H
#define ATTN_C_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#define ATTN_API __attribute__((visibility("default")))

typedef enum { attnBF16 = 0, attnF16 = 1, attnF32 = 2, attnI32 = 3 } attnDtype;

enum { attnMaxRank = 8 };

/*
 * Memory that the launch's device can reach (its own, managed memory, pinned memory of the host, memory
 * of another device with peer access enabled); the caller owns it. Strides are in
 * elements; NULL means contiguous. The last axis has stride 1; the others of q,
 * k, v and o are multiples of 8 elements, and their data is 16-byte aligned (of
 * float32: any strides, and 4-byte aligned); their offsets are computed in 64 bits. Extents are from 0 to 2^30. On
 * Hopper tiles come by tensor maps, which want the strides of q, k, v and, for gradients, do to be from 0 to below
 * 2^39; elsewhere strides may be anything, negative too.
 */
typedef struct {
  void *data;
  attnDtype dtype;
  int32_t rank;
  const int64_t *shape;
  const int64_t *strides;
} attnTensor;

#endif /* ATTN_C_TENSOR_H */
