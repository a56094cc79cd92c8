/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Two ranks, which are threads, share the tokens of two sequences. Queries are 0, so that o is the mean of the values
 * that a query sees, and v is the position: o of position p is p / 2, and its lse is log(p + 1). */
#include "attn-c/Attn.h"
#include "attn-c/Plan.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { RANKS = 2, HEADS = 2, DIM = 16, SEQUENCES = 2 };
static const int64_t lengths[SEQUENCES] = {11, 6};
static const attnSequences sequences = {.count = SEQUENCES, .lengths_q = lengths};
static const char module[] = "attn.problem @p mask(#attn.causal) layout(thd) heads(2, 1) dims(16) dtype(f32)\n"
                             "plan.def @forward of(@p) ranks(2) sharding(#plan.dual_chunk) {}\n";
static attnLocalRanks *ranks;

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(256, (bytes + 256) / 256 * 256);
  CHECK(memory);
  return memset(memory, 0xff, bytes); /* NaN, until something is written */
}

static void *rank_main(void *argument) {
  int32_t rank = *(int32_t *)argument;
  attnPlan *plan;
  attnTransport *transport;
  attnBoundPlan *bound;
  CHECK(attnPlanCreate(module, NULL, "strategy=ring", "cpu", &plan) == 0);
  CHECK(attnTransportLocal(ranks, rank, /*on_gpu=*/0, &transport) == 0);
  CHECK(attnPlanBind(plan, &sequences, transport, &bound) == 0);

  int64_t rows, run_count;
  const attnRun *runs; /* which tokens this rank has, and in which rows */
  CHECK(attnPlanShard(plan, &sequences, rank, /*keys=*/0, &rows, &runs, &run_count) == 0);
  float *q = allocate(rows * HEADS * DIM * 4), *k = allocate(rows * DIM * 4), *v = allocate(rows * DIM * 4),
        *o = allocate(rows * HEADS * DIM * 4), *lse = allocate(HEADS * rows * 4);
  for (int64_t i = 0; i < run_count; ++i)
    for (int64_t row = runs[i].row; row < runs[i].row + runs[i].length; ++row)
      for (int d = 0; d < DIM; ++d) {
        q[(row * HEADS + 0) * DIM + d] = q[(row * HEADS + 1) * DIM + d] = 0;
        k[row * DIM + d] = 1, v[row * DIM + d] = (float)(runs[i].position + row - runs[i].row);
      }

  int64_t of_queries[] = {rows, HEADS, DIM}, of_keys[] = {rows, 1, DIM}, of_lse[] = {HEADS, rows};
  attnTensor tensors[8];
  int count = attnPlanTensorCount(plan);
  CHECK(count <= 8);
  for (int i = 0; i < count; ++i) {
    const char *name = attnPlanTensorName(plan, i);
    float *data = !strcmp(name, "q")   ? q
                  : !strcmp(name, "k") ? k
                  : !strcmp(name, "v") ? v
                  : !strcmp(name, "o") ? o
                                       : lse;
    int is_lse = !strcmp(name, "lse"), is_keys = !strcmp(name, "k") || !strcmp(name, "v");
    tensors[i] = (attnTensor){data, attnF32, is_lse ? 2 : 3, is_lse ? of_lse : is_keys ? of_keys : of_queries, NULL};
  }
  size_t bytes;
  CHECK(attnPlanWorkspaceSize(bound, tensors, &bytes) == 0);
  CHECK(attnPlanRun(bound, tensors, NULL, NULL) != 0 && strstr(attnLastError(), "got: NULL")); /* before it sends */
  void *workspace = allocate(bytes);
  CHECK(attnPlanRun(bound, tensors, (char *)workspace + 16, NULL) != 0 && strstr(attnLastError(), "aligned to 256"));
  CHECK(attnPlanRun(bound, tensors, workspace, NULL) == 0);
  for (int64_t i = 0; i < run_count; ++i)
    for (int64_t row = runs[i].row; row < runs[i].row + runs[i].length; ++row) {
      double position = (double)(runs[i].position + row - runs[i].row);
      for (int h = 0; h < HEADS; ++h)
        CHECK(fabs(lse[h * rows + row] - log(position + 1)) < 1e-5 &&
              fabs(o[(row * HEADS + h) * DIM + 3] - position / 2) < 1e-5);
    }
  attnBoundPlanDestroy(bound);
  attnTransportDestroy(transport);
  attnPlanDestroy(plan);
  free(q), free(k), free(v), free(o), free(lse), free(workspace);
  return NULL;
}

/* What is refused when a plan is made. */
static void refused(const char *text, const char *steps, const char *error) {
  attnPlan *plan;
  CHECK(attnPlanCreate(text, NULL, steps, "cpu", &plan) != 0);
  if (!strstr(attnLastError(), error))
    fprintf(stderr, "expected: %s\ngot: %s\n", error, attnLastError());
  CHECK(strstr(attnLastError(), error));
}

int main(void) {
  CHECK(attnLocalRanksCreate(RANKS, /*timeout_s=*/30, &ranks) == 0);
  pthread_t threads[RANKS];
  int32_t numbers[RANKS] = {0, 1};
  for (int rank = 0; rank < RANKS; ++rank)
    CHECK(pthread_create(&threads[rank], NULL, rank_main, &numbers[rank]) == 0);
  for (int rank = 0; rank < RANKS; ++rank)
    pthread_join(threads[rank], NULL);
  attnLocalRanksDestroy(ranks);
  CHECK(attnLocalRanksCreate(0, 1, &ranks) != 0 && strstr(attnLastError(), "expected from 1 to 256 ranks, got: 0"));

  attnPlan *plan;
  CHECK(attnPlanCreate(module, NULL, NULL, "cpu", &plan) == 0);
  char with_steps[4096];
  snprintf(with_steps, sizeof with_steps, "%s", attnPlanText(plan));
  attnPlanDestroy(plan);
  refused(with_steps, "strategy=ring", "expected no options of plan-make-steps for @forward, which has steps");
  refused("attn.problem @p mask(#attn.full) layout(thd pieces) heads(2) dims(16) dtype(f32)\n"
          "plan.def @forward of(@p) ranks(2) sharding(#plan.contiguous) {}",
          NULL, "expected a problem of whole sequences");
  refused("attn.problem @p mask(#attn.full) layout(thd) heads(2) dims(16) dtype(f32)\n"
          "attn.backward @a of(@p)\nattn.backward @b of(@p) dlse\n"
          "plan.def @grads of(@p) ranks(2) sharding(#plan.contiguous) backward {}",
          NULL, "expected one attn.backward of @p, got: @a and @b");
  puts("done");
  return 0;
}
