/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * A pack launched by libattnrt.so alone: attnrt PACK [CHIP]. The pack has @p, causal attention of packed sequences with
 * 2 heads of 64 columns in bf16, and its gradients @g. On a GPU all memory is managed, so the host checks what it
 * reads.
 */
#include "attn-c/Runtime.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      printf("%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, attnrtLastError());                        \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

enum { HEADS = 2, DIM = 64, MOST = 16 };

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

/* Memory that the chip reaches, and a wait for what was launched. */
static int (*allocManaged)(uint64_t *, size_t, unsigned), (*synchronize)(void);

static void *memoryOf(size_t bytes) {
  uint64_t address = 0;
  if (!allocManaged)
    return aligned_alloc(16, (bytes + 31) / 16 * 16);
  CHECK(allocManaged(&address, bytes + 16, 1) == 0);
  return (void *)address;
}

static void useGpu(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
  CHECK(cuda);
  int (*init)(unsigned), (*retain)(void **, int), (*setCurrent)(void *);
  *(void **)&init = dlsym(cuda, "cuInit"), *(void **)&retain = dlsym(cuda, "cuDevicePrimaryCtxRetain");
  *(void **)&setCurrent = dlsym(cuda, "cuCtxSetCurrent"), *(void **)&synchronize = dlsym(cuda, "cuCtxSynchronize");
  *(void **)&allocManaged = dlsym(cuda, "cuMemAllocManaged");
  CHECK(init(0) == 0 && retain(&context, 0) == 0 && setCurrent(context) == 0);
}

/* Tensors of a program by their names, of `count` sequences of `length` rows each. */
typedef struct {
  uint16_t *q, *k, *v, *o, *dout, *dq, *dk, *dv;
  float *lse;
  int32_t *cu;
  int count, length;
} Call;

static Call callOf(int count, int length) {
  Call call = {.count = count, .length = length};
  size_t elements = (size_t)count * (size_t)length * HEADS * DIM;
  uint16_t **all[] = {&call.q, &call.k, &call.v, &call.o, &call.dout, &call.dq, &call.dk, &call.dv};
  for (int t = 0; t < 8; ++t) {
    *all[t] = memoryOf(2 * elements);
    for (size_t i = 0; i < elements; ++i)
      (*all[t])[i] = t == 3 || t > 4 ? 0xffff : toBf16((float)sin((double)i * (0.3 + 0.17 * t) + t));
  }
  call.lse = memoryOf(elements / DIM * sizeof(float));
  call.cu = memoryOf((size_t)(count + 1) * sizeof(int32_t));
  for (int i = 0; i <= count; ++i)
    call.cu[i] = i * length;
  return call;
}

static void *memoryNamed(const Call *call, const char *name) {
  const char *names[] = {"q", "k", "v", "o", "do", "dq", "dk", "dv", "lse", "cu_seqlens_q", "cu_seqlens_kv"};
  void *memory[] = {call->q,  call->k,  call->v,   call->o,  call->dout, call->dq,
                    call->dk, call->dv, call->lse, call->cu, call->cu};
  for (int i = 0; i < 11; ++i)
    if (!strcmp(names[i], name))
      return memory[i];
  CHECK(!"a tensor that the test knows");
  return NULL;
}

/* Tensors of `count` sequences of `length` rows: shapes of inputs, nothing of results, no memory. */
typedef struct {
  int64_t rows[3], statistics[2], ends[1];
  attnTensor tensors[16];
} Shapes;

static void shapesOf(const attnrtProgram *program, int count, int length, Shapes *shapes) {
  const Shapes empty = {{(int64_t)count * length, HEADS, DIM}, {HEADS, (int64_t)count * length}, {count + 1}, {{0}}};
  *shapes = empty;
  CHECK(attnrtTensorCount(program) >= 7 && attnrtTensorCount(program) <= 16);
  for (int i = 0; i < attnrtTensorCount(program); ++i) {
    const char *name = attnrtTensorName(program, i);
    attnTensor data = {NULL, attnBF16, 3, shapes->rows, NULL}, lse = {NULL, attnF32, 2, shapes->statistics, NULL},
               cu = {NULL, attnI32, 1, shapes->ends, NULL};
    if (!attnrtTensorIsResult(program, i))
      shapes->tensors[i] = !strcmp(name, "lse") ? lse : !strncmp(name, "cu", 2) ? cu : data;
  }
}

/* Shapes of results and the workspace follow from shapes of inputs. */
static void run(const attnrtProgram *program, const Call *call) {
  Shapes shapes;
  shapesOf(program, call->count, call->length, &shapes);
  attnTensor *tensors = shapes.tensors;
  int64_t extents[16][attnMaxRank];
  int count = attnrtTensorCount(program);
  CHECK(attnrtInferShapes(program, tensors, extents) == 0);
  size_t bytes = 0;
  CHECK(attnrtWorkspaceSize(program, tensors, &bytes) == 0);
  for (int i = 0; i < count; ++i)
    tensors[i].data = memoryNamed(call, attnrtTensorName(program, i));
  void *workspace = bytes ? memoryOf(bytes) : NULL;
  if (bytes)
    memset(workspace, 0xff, bytes);
  CHECK(attnrtLaunch(program, tensors, workspace, NULL) == 0);
  CHECK(!synchronize || synchronize() == 0);
  CHECK(attnrtLaunchReuseMetadata(program, tensors, workspace, NULL) == 0);
  CHECK(!synchronize || synchronize() == 0);
  attnTensor bad = tensors[0];
  tensors[0].rank = 2;
  CHECK(attnrtLaunch(program, tensors, workspace, NULL) != 0 && strstr(attnrtLastError(), "for `q`"));
  tensors[0] = bad;
}

/* o and lse in double; sums of dv over keys are those of do over queries, as rows of probabilities add up to 1. */
static void check(const Call *call, int hasGradients) {
  for (int s = 0; s < call->count; ++s)
    for (int h = 0; h < HEADS; ++h) {
      const int first = s * call->length;
      double sums[2][DIM] = {{0}};
      for (int row = 0; row < call->length; ++row) {
        double weight[MOST], sum = 0;
        for (int key = 0; key <= row; ++key) {
          double score = 0;
          for (int d = 0; d < DIM; ++d)
            score += (double)fromBf16(call->q[((first + row) * HEADS + h) * DIM + d]) *
                     fromBf16(call->k[((first + key) * HEADS + h) * DIM + d]);
          sum += weight[key] = exp(score / 8);
        }
        for (int d = 0; d < DIM; ++d) {
          double o = 0;
          for (int key = 0; key <= row; ++key)
            o += weight[key] / sum * fromBf16(call->v[((first + key) * HEADS + h) * DIM + d]);
          CHECK(fabs(o - fromBf16(call->o[((first + row) * HEADS + h) * DIM + d])) < 0.02);
          sums[0][d] += fromBf16(call->dout[((first + row) * HEADS + h) * DIM + d]);
          sums[1][d] += fromBf16(call->dv[((first + row) * HEADS + h) * DIM + d]);
        }
        CHECK(fabs(log(sum) - call->lse[h * call->count * call->length + first + row]) < 1e-3);
      }
      for (int d = 0; hasGradients && d < DIM; ++d)
        CHECK(fabs(sums[0][d] - sums[1][d]) < 0.03 * call->length);
    }
}

static attnrtProgram *special(const attnrtPack *pack, const attnrtProgram *general, int count, int length) {
  Shapes shapes;
  attnrtProgram *found = NULL;
  shapesOf(general, count, length, &shapes);
  CHECK(attnrtSpecialize(pack, general, shapes.tensors, &found) == 0 && found);
  return found;
}

int main(int argc, char **argv) {
  CHECK(argc == 2 || argc == 3);
  const char *chip = argc == 3 ? argv[2] : NULL;
  attnrtPack *pack = NULL;
  attnrtProgram *forward = NULL, *backward = NULL;
  if (attnrtOpen(argv[1], &pack)) {
    printf("refused: %s\n", attnrtLastError());
    return 2;
  }
  for (int i = 0; i < attnrtProgramCount(pack); ++i) {
    int64_t lengths[2];
    CHECK(attnrtProgramLengths(pack, i, lengths) == 0);
    printf("@%s for %s, lengths %d %d\n", attnrtProgramName(pack, i), attnrtProgramChip(pack, i), (int)lengths[0],
           (int)lengths[1]);
  }
  CHECK(attnrtProgramCount(NULL) == 0 && !strcmp(attnrtProgramName(pack, 99), ""));
  CHECK(attnrtLoad(pack, NULL, chip, &forward) != 0);
  printf("no name: %s\n", attnrtLastError());
  CHECK(attnrtLoad(pack, "other", chip, &forward) != 0);
  printf("other name: %s\n", attnrtLastError());
  CHECK(attnrtLoad(pack, "p", "sm_70", &forward) != 0);
  printf("other chip: %s\n", attnrtLastError());
  if (!chip || strcmp(chip, "cpu"))
    useGpu();
  CHECK(attnrtLoad(pack, "p", chip, &forward) == 0 && attnrtLoad(pack, "g", chip, &backward) == 0);
  Call few = callOf(3, 13), many = callOf(600, 4);
  run(forward, &few);
  run(backward, &few);
  check(&few, 1);
  run(forward, &many); /* the general program is right for them, too */
  check(&many, 0);
  attnrtProgram *of_few = special(pack, forward, 3, 13), *of_many = special(pack, forward, 600, 4),
                *gradients = special(pack, backward, 600, 4);
  printf("few: %s\nmany: %s\n", attnrtSchedule(of_few), attnrtSchedule(of_many));
  memset(many.o, 0xff, 600 * 4 * HEADS * DIM * 2);
  attnrtClose(pack); /* programs stay */
  run(of_many, &many);
  run(gradients, &many);
  check(&many, 1);
  attnrtProgram *all[] = {forward, backward, of_few, of_many, gradients, NULL};
  for (int i = 0; i < 6; ++i)
    attnrtDestroy(all[i]);
  printf("done\n");
  return 0;
}
