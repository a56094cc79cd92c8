/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The example of docs/Thd.md, around which this is a program: THD_EXAMPLE is the page's C, THD_MODULE its MLIR. */
#include "attn-c/Attn.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../Tools/Inputs/check.h"

static int32_t ids[] = {1, 1, 1, 0, 2, 2, 0, 0, 3, 3, 3, 3, 1, 1, 0, 0, 0, 0, 2, 2, 2, 0, 0, 0};
static int32_t positions[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0};
static int32_t seqlens_q[8], seqlens_kv[8], offsets_q[10], offsets_kv[10], status[2], cu_q[9], padded_q[9], cu_kv[9],
    padded_kv[9];
static _Alignas(16) uint16_t q[24 * 32], k[24 * 32], v[24 * 32], o[24 * 32];
static float lse[2 * 24], lse2[2 * 24];
static _Alignas(16) uint16_t o2[24 * 32];
static _Alignas(16) char memory[4096];
static void *allocate(size_t bytes) { return bytes <= sizeof memory ? memory : NULL; }

static void names(const attnKernel *kernel) {
  for (int i = 0; i < attnTensorCount(kernel); ++i)
    printf("%s%s", attnTensorName(kernel, i), i + 1 < attnTensorCount(kernel) ? " " : "\n");
}
static void print(const char *name, const int32_t *values, int count) {
  printf("%s", name);
  for (int i = 0; i < count; ++i)
    printf(" %d", values[i]);
  printf("\n");
}

int main(void) {
  memset(memory, 0xff, sizeof memory);
  static char module[1 << 12];
  FILE *file = fopen(THD_MODULE, "r");
  CHECK(file && fread(module, 1, sizeof module - 1, file) > 0);
  fclose(file);
  const char *target = "cpu";
  void *stream = NULL;
#include THD_EXAMPLE
  names(rows);
  names(attention);
  names(by_ids);
  print("seqlens_q", seqlens_q, 8);
  print("offsets_kv", offsets_kv, 10);
  print("status", status, 2);
  print("cu_seqlens_q", cu_q, 9);
  print("padded_offsets_q", padded_q, 9);
  CHECK(memcmp(cu_q, cu_kv, sizeof cu_q) == 0 && memcmp(padded_q, padded_kv, sizeof padded_q) == 0);
  /* Queries are 0, so lse says how many keys each sees: those up to its position; padding sees none. */
  for (int t = 0; t < 24; ++t)
    for (int h = 0; h < 2; ++h)
      CHECK(ids[t] ? fabs(lse[h * 24 + t] - log(positions[t] + 1.)) < 1e-4 : lse[h * 24 + t] == -INFINITY);
  attnDestroy(rows);
  CHECK(memcmp(o, o2, sizeof o) == 0 && memcmp(lse, lse2, sizeof lse) == 0);
  attnDestroy(attention);
  attnDestroy(by_ids);
  puts("done");
  return 0;
}
