/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* A user's program in the common part of C99 and C++11: scores are all 0, so o is the mean of v. */
#include <attn-c/Attn.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 16, HEAD_DIM = 8, SIZE = ROWS * HEAD_DIM };

static uint16_t toBf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}
static float fromBf16(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint16_t q[SIZE] __attribute__((aligned(16))), k[SIZE] __attribute__((aligned(16)));
static uint16_t v[SIZE] __attribute__((aligned(16))), o[SIZE] __attribute__((aligned(16)));
static float lse[ROWS] __attribute__((aligned(16)));

static int consume(const char *way) {
  const char *problem = "attn.problem @p mask(#attn.full) layout(bshd) heads(1) dims(8) dtype(bf16)";
  const int64_t shape[4] = {1, ROWS, 1, HEAD_DIM}, rows[3] = {1, 1, ROWS};
  attnTensor tensors[5];
  attnKernel *kernel = NULL;
  char version[32];
  int i, number = attnVersion();
  for (i = 0; i < SIZE; ++i) /* half of the rows 1, half 2.5 */
    v[i] = toBf16(i / HEAD_DIM % 2 ? 2.5f : 1.0f);
  for (i = 0; i < 5; ++i) {
    tensors[i].data = i == 0 ? (void *)q : i == 1 ? (void *)k : i == 2 ? (void *)v : i == 3 ? (void *)o : (void *)lse;
    tensors[i].dtype = i == 4 ? attnF32 : attnBF16;
    tensors[i].rank = i == 4 ? 3 : 4;
    tensors[i].shape = i == 4 ? rows : shape;
    tensors[i].strides = NULL;
  }
  sprintf(version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  if (strcmp(version, VERSION) != 0) {
    printf("%s: expected version %s, got: %s\n", way, VERSION, version);
    return 1;
  }
  if (attnCompile(problem, NULL, "cpu", &kernel) != 0 || attnLaunch(kernel, tensors, NULL, NULL) != 0) {
    printf("%s: %s\n", way, attnLastError());
    return 1;
  }
  attnDestroy(kernel);
  for (i = 0; i < SIZE; ++i)
    if (fromBf16(o[i]) != 1.75f || lse[i / HEAD_DIM] < 2.7725f || lse[i / HEAD_DIM] > 2.7727f) { /* log(16) */
      printf("%s: expected 1.75 and 2.7726, got: %g and %g\n", way, fromBf16(o[i]), lse[i / HEAD_DIM]);
      return 1;
    }
  printf("%s: attnc %s, o is %g, lse is %.2f\n", way, version, fromBf16(o[0]), lse[0]);
  return 0;
}
