/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* The C interface from C: compile, look, launch, check, and every bad tensor. */
#include "attn-c/Attn.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { HEADS = 2, DIM = 16, MOST = 160 };

static uint16_t toBf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
static float fromBf16(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static _Alignas(16) uint16_t q[MOST * HEADS * DIM + 8], k[MOST * HEADS * DIM + 8], v[MOST * HEADS * DIM + 8],
    o[MOST * HEADS * DIM + 8];
static float lse[HEADS * MOST];
static int32_t cu[3];

/* One head of one sequence, causal, in double. */
static void check(int first, int length, int tokens) {
  for (int h = 0; h < HEADS; ++h)
    for (int row = 0; row < length; ++row) {
      double weight[MOST], sum = 0, out[DIM] = {0};
      for (int key = 0; key <= row; ++key) {
        double s = 0;
        for (int d = 0; d < DIM; ++d)
          s += (double)fromBf16(q[((first + row) * HEADS + h) * DIM + d]) *
               fromBf16(k[((first + key) * HEADS + h) * DIM + d]);
        weight[key] = exp(s * 0.25);
        sum += weight[key];
      }
      for (int key = 0; key <= row; ++key)
        for (int d = 0; d < DIM; ++d)
          out[d] += weight[key] / sum * fromBf16(v[((first + key) * HEADS + h) * DIM + d]);
      for (int d = 0; d < DIM; ++d)
        CHECK(fabs(out[d] - fromBf16(o[((first + row) * HEADS + h) * DIM + d])) < 0.02);
      CHECK(fabs(log(sum) - lse[h * tokens + first + row]) < 1e-4);
    }
}

/* The tensors of two sequences: of `a` tokens, and of the others. */
static int64_t shape[3] = {0, HEADS, DIM}, lseShape[2] = {HEADS, 0}, offsets[1] = {3};
static const attnTensor *launchOf(int a, int tokens) {
  static const attnTensor tensors[7] = {{q, attnBF16, 3, shape, NULL},     {k, attnBF16, 3, shape, NULL},
                                        {v, attnBF16, 3, shape, NULL},     {o, attnBF16, 3, shape, NULL},
                                        {lse, attnF32, 2, lseShape, NULL}, {cu, attnI32, 1, offsets, NULL},
                                        {cu, attnI32, 1, offsets, NULL}};
  shape[0] = lseShape[1] = tokens;
  cu[0] = 0, cu[1] = a, cu[2] = tokens;
  return tensors;
}

static const char *problem = "attn.problem @p mask(#attn.causal) layout(thd) heads(2) dims(16) dtype(bf16)";

/* A kernel that shares out keys: it wants a workspace, and what is in it does not matter. */
static void splits(void) {
  const char *text =
      "attn.problem @s mask(#attn.causal) layout(thd) heads(2) dims(16) dtype(bf16) "
      "schedule(#tile.split_kv<splits = 3, of = #tile.tiled<q_tile = 64, kv_tile = 16, warps = 1, ctas_per_sm = 1>>)";
  const int tokens = 150, a = 90;
  const attnTensor *tensors = launchOf(a, tokens);
  attnKernel *kernel = NULL;
  int64_t before = attnCompileCount();
  CHECK(attnCompile(text, NULL, "cpu", &kernel) == 0);
  CHECK(attnCompileCount() == before + 2); /* what computes, and what merges */
  CHECK(attnTensorCount(kernel) == 7);
  size_t bytes = 0;
  CHECK(attnWorkspaceSize(kernel, tensors, NULL) != 0);
  CHECK(attnWorkspaceSize(kernel, tensors, &bytes) == 0);
  CHECK(bytes == 3 * sizeof(float) * HEADS * (size_t)tokens * (DIM + 2));
  CHECK(attnLaunch(kernel, tensors, NULL, NULL) != 0);
  printf("no workspace: %s\n", attnLastError());
  char *memory = aligned_alloc(16, (bytes + 31) / 16 * 16);
  CHECK(attnLaunch(kernel, tensors, memory + 4, NULL) != 0);
  printf("misaligned workspace: %s\n", attnLastError());
  static uint16_t first[MOST * HEADS * DIM];
  for (int fill = 0; fill < 256; fill += 255) {
    memset(memory, fill, bytes); /* 0, then NaN */
    memset(o, 0x77, sizeof o);
    CHECK(attnLaunch(kernel, tensors, memory, NULL) == 0);
    check(0, a, tokens);
    check(a, tokens - a, tokens);
    if (fill)
      CHECK(memcmp(first, o, sizeof first) == 0);
    memcpy(first, o, sizeof first);
  }
  shape[0] = lseShape[1] = 0, cu[1] = cu[2] = 0; /* no rows, no parts of them */
  CHECK(attnWorkspaceSize(kernel, tensors, &bytes) == 0 && bytes == 0);
  CHECK(attnLaunch(kernel, tensors, NULL, NULL) == 0);
  free(memory);
  attnDestroy(kernel);
}

/* The launch with tensor `index` changed is refused, for the reason given. */
static void refuse(attnKernel *kernel, const attnTensor *good, int index, attnTensor bad, const char *why) {
  attnTensor tensors[7];
  size_t bytes;
  /* Queries look at shapes and strides of operands and arrays, and at nothing else. */
  const int isShape = index != 3 && index != 4 && ((uintptr_t)bad.data == (uintptr_t)good[index].data);
  memcpy(tensors, good, sizeof tensors);
  tensors[index] = bad;
  CHECK(attnLaunch(kernel, tensors, NULL, NULL) != 0);
  printf("%s: %s\n", why, attnLastError());
  CHECK((attnWorkspaceSize(kernel, tensors, &bytes) != 0) == isShape);
  attnKernel *special = NULL;
  CHECK((attnSpecialize(kernel, tensors, &special) != 0) == isShape && (special == NULL) == isShape);
  attnDestroy(special);
}

static void refusals(attnKernel *kernel, const attnTensor *good) {
  attnTensor bad;
#define REFUSE(index, why, change) (bad = good[index], change, refuse(kernel, good, index, bad, why))
  REFUSE(0, "null", bad.data = NULL);
  REFUSE(0, "misaligned", bad.data = (char *)bad.data + 2);
  REFUSE(5, "misaligned array", bad.data = (char *)bad.data + 2);
  attnTensor shared[7];
  memcpy(shared, good, sizeof shared);
  shared[3].data = good[0].data;
  CHECK(attnLaunch(kernel, shared, NULL, NULL) != 0);
  printf("overlap: %s\n", attnLastError());
  REFUSE(1, "dtype", bad.dtype = attnF16);
  REFUSE(4, "lse dtype", bad.dtype = attnBF16);
  REFUSE(2, "rank", bad.rank = 2);
  REFUSE(2, "negative rank", bad.rank = -1);
  const int64_t shape[3] = {good[1].shape[0] + 1, HEADS, DIM}, dim[3] = {good[1].shape[0], HEADS, DIM - 8};
  REFUSE(2, "shape", bad.shape = shape);
  REFUSE(0, "dim", bad.shape = dim);
  const int64_t negative[3] = {-1, HEADS, DIM};
  REFUSE(0, "negative extent", bad.shape = negative);
  const int64_t odd[3] = {HEADS * DIM + 4, DIM, 1}, last[3] = {HEADS * DIM * 2, DIM * 2, 2};
  REFUSE(0, "stride", bad.strides = odd);
  REFUSE(3, "last stride", bad.strides = last);
  const int64_t none[1] = {0};
  REFUSE(5, "no offsets", bad.shape = none);
}

/* What is known before anything is compiled, from shapes alone, for any target and number of multiprocessors. */
static void lowered(void) {
  const char *gradients = "attn.problem @p mask(#attn.causal) layout(thd) heads(4, 2) dims(256) dtype(bf16)\n"
                          "attn.backward @g of(@p)";
  const int64_t shape_q[3] = {1000, 4, 256}, shape_k[3] = {1200, 2, 256}, statistics[2] = {4, 1000}, ends[1] = {8};
  int64_t extents[12][attnMaxRank];
  attnKernel *kernel = NULL;
  int64_t before = attnCompileCount();
  CHECK(attnLower(gradients, "g", "sm_90a", &kernel) == 0);
  attnTensor tensors[12];
  CHECK(attnTensorCount(kernel) == 11);
  for (int i = 0; i < 11; ++i) {
    const char *name = attnTensorName(kernel, i);
    attnTensor of_q = {NULL, attnBF16, 3, shape_q, NULL}, of_k = {NULL, attnBF16, 3, shape_k, NULL},
               of_lse = {NULL, attnF32, 2, statistics, NULL}, of_cu = {NULL, attnI32, 1, ends, NULL};
    tensors[i] = !strncmp(name, "cu", 2) ? of_cu : !strcmp(name, "lse") ? of_lse : strpbrk(name, "kv") ? of_k : of_q;
    if (attnTensorIsResult(kernel, i))
      memset(&tensors[i], 0, sizeof tensors[i]);
  }
  CHECK(attnInferShapes(kernel, tensors, NULL) != 0);
  CHECK(attnInferShapes(kernel, tensors, extents) == 0);
  for (int i = 0; i < 11; ++i)
    if (attnTensorIsResult(kernel, i)) { /* dq is as q, dk and dv are as k */
      const int64_t *expected = strcmp(attnTensorName(kernel, i), "dq") ? shape_k : shape_q;
      CHECK(tensors[i].rank == 3 && tensors[i].dtype == attnBF16 && tensors[i].shape == extents[i]);
      CHECK(memcmp(tensors[i].shape, expected, sizeof shape_q) == 0);
    }
  size_t small = 0, large = 0;
  CHECK(attnWorkspaceSizeFor(kernel, tensors, 132, &large) == 0 && large >= 4 * 1000 * 8);
  CHECK(attnWorkspaceSizeFor(kernel, tensors, -1, &small) != 0);
  printf("multiprocessors: %s\n", attnLastError());
  CHECK(attnLaunch(kernel, tensors, NULL, NULL) != 0);
  printf("lowered: %s\n", attnLastError());
  CHECK(strcmp(attnResources(kernel), "") == 0 && strstr(attnSource(kernel), "attn::"));
  CHECK(attnCompileCount() == before);
  attnDestroy(kernel);

  /* Split-KV: the number of splits, and so the workspace, goes by the multiprocessors. */
  const int64_t one[4] = {1, 1, 4, 64}, many[4] = {1, 32768, 4, 64};
  attnTensor decode[5] = {
      {NULL, attnBF16, 4, one, NULL}, {NULL, attnBF16, 4, many, NULL}, {NULL, attnBF16, 4, many, NULL}};
  CHECK(attnLower("attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(bf16)", NULL, "sm_90a",
                  &kernel) == 0);
  attnKernel *special = NULL;
  CHECK(attnWorkspaceSizeFor(kernel, decode, 132, &large) == 0 && large == 0);
  CHECK(attnSpecialize(kernel, decode, &special) == 0 && strcmp(attnSchedule(kernel), attnSchedule(special)) != 0);
  CHECK(attnWorkspaceSizeFor(special, decode, 8, &small) == 0 &&
        attnWorkspaceSizeFor(special, decode, 132, &large) == 0);
  CHECK(small > 0 && small < large);
  CHECK(attnCompileCount() == before);
  attnDestroy(kernel);
  attnDestroy(special);
}

int main(void) {
  attnKernel *kernel = NULL;
  CHECK(attnVersion() == 100);
  CHECK(strcmp(attnLastError(), "") == 0);

  /* What cannot be compiled, and why. */
  CHECK(attnCompile("attn.problem", NULL, "cpu", &kernel) != 0 && kernel == NULL);
  CHECK(strstr(attnLastError(), "is not a valid module"));
  CHECK(attnCompile("", NULL, "cpu", &kernel) != 0);
  CHECK(strstr(attnLastError(), "expected an `attn.problem` in the module, got: none"));
  CHECK(attnCompile(problem, "other", "cpu", &kernel) != 0);
  CHECK(strstr(attnLastError(), "expected one of the module's problems @p, got: @other"));
  CHECK(attnCompile(problem, NULL, "sm_70", &kernel) != 0);
  CHECK(strstr(attnLastError(), "got: sm_70"));
  CHECK(attnCompileCount() == 0);

  CHECK(attnCompile(problem, "p", "cpu", &kernel) == 0 && kernel);
  CHECK(attnTensorCount(NULL) == 0 && strcmp(attnLastError(), "expected a kernel, got: NULL") == 0);
  CHECK(strcmp(attnTensorName(kernel, 7), "") == 0);
  CHECK(strcmp(attnLastError(), "expected the number of a tensor, from 0 to 6, got: 7") == 0);
  CHECK(attnTensorIsResult(kernel, -1) == 0 && strstr(attnLastError(), "from 0 to 6, got: -1"));
  const char *names[] = {"q", "k", "v", "o", "lse", "cu_seqlens_q", "cu_seqlens_kv"};
  CHECK(attnTensorCount(kernel) == 7);
  for (int i = 0; i < 7; ++i) {
    CHECK(strcmp(attnTensorName(kernel, i), names[i]) == 0);
    CHECK(attnTensorIsResult(kernel, i) == (i == 3 || i == 4));
  }
  CHECK(strcmp(attnTensorName(kernel, 7), "") == 0 && strcmp(attnTensorName(kernel, -1), "") == 0);
  CHECK(strstr(attnSource(kernel), "attn::mma_abt(s, Q, K);"));
  CHECK(attnResources(kernel));
  CHECK(strstr(attnSchedule(kernel), "; neither max_seqlen nor expected_seqlen says that sequences are short"));

  for (int i = 0; i < MOST * HEADS * DIM; ++i) {
    q[i] = toBf16((float)sin(i * 0.7));
    k[i] = toBf16((float)cos(i * 1.3));
    v[i] = toBf16((float)sin(i * 0.3 + 1));
  }
  /* 50 sets of lengths, one compilation. */
  for (int run = 0; run < 50; ++run) {
    int a = run * 37 % 83, b = run * 53 % 71, tokens = a + b;
    const attnTensor *tensors = launchOf(a, tokens);
    size_t bytes = 77;
    CHECK(attnWorkspaceSize(kernel, tensors, &bytes) == 0 && bytes == 0);
    memset(o, 0xff, sizeof o);
    CHECK(attnLaunch(kernel, tensors, NULL, NULL) == 0);
    check(0, a, tokens);
    check(a, b, tokens);
    CHECK(o[tokens * HEADS * DIM] == 0xffff); /* nothing behind the last token */
    attnKernel *again = NULL;
    CHECK(attnCompile(problem, NULL, "cpu", &again) == 0);
    attnDestroy(again);
    CHECK(attnCompileCount() == 1);
    if (run == 49)
      refusals(kernel, tensors);
  }
  attnDestroy(kernel);
  attnDestroy(NULL);
  splits();
  lowered();
  puts("done");
  return 0;
}
