// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libcuda.so.1 for machines without one: devices of 132 and 264 multiprocessors
// whose launches only say what they were given. With -DOLD it is one of CUDA 11.8.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FINE(name, parameters)                                                                                         \
  int name parameters { return 0; }

struct {
  unsigned blocks;
  uint64_t firstArg, secondArg;
  int attribute; // the only one's number; 0: none
  int device;
  int count; // of launches
} fake_launch;

// Calls of functions that say where a launch runs.
struct {
  int pushed, popped, currents, streams, pointers;
} fake_calls;

static char contexts[2]; // of the devices
static __thread void *stack[16], **top = NULL;
#define current (*(top ? top : (top = stack)))

FINE(cuInit, (unsigned flags))
int cuDriverGetVersion(int *version) {
#ifdef OLD
  return *version = 11080, 0;
#else
  return *version = 12040, 0;
#endif
}
int cuGetErrorName(int error, const char **text) { return *text = error == 500 ? "NOT_FOUND" : "INVALID", 0; }
int cuGetErrorString(int error, const char **text) { return *text = error == 201 ? "no context" : "fake error", 0; }
int cuDeviceGetCount(int *count) { return *count = 2, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
FINE(cuDeviceGetName, (char *name, int length, int device))
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  return *value = attribute == 88   ? 0
                  : attribute == 16 ? 132 << device
                  : attribute == 75 ? 9
                  : attribute == 76 ? 0
                                    : 232448,
         0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = contexts + device, 0; }
int cuCtxGetCurrent(void **context) { return ++fake_calls.currents, *context = current, 0; }
int cuCtxSetCurrent(void *context) { return current = context, 0; }
int cuCtxGetDevice(int *device) { return *device = (char *)current - contexts, 0; }
int cuCtxPushCurrent_v2(void *context) {
  void *before = current; // which sets top
  (void)before;
  return ++fake_calls.pushed, *++top = context, 0;
}
int cuCtxPopCurrent_v2(void **context) { return ++fake_calls.popped, *context = *top--, 0; }
// Streams from 0x5000 on are the second device's, until those that are captured.
int cuStreamGetCtx(void *stream, void **context) {
  uintptr_t handle = (uintptr_t)stream;
  return ++fake_calls.streams, *context = contexts + (handle >= 0x5000 && handle < 0x6000), 0;
}
// Whose memory it is says bit 40 and up of an address.
enum { OF_FIRST = 0xd0, OF_SECOND, MANAGED, PINNED, PEER, MAPPED, POOLED, UNKNOWN };
int cuPointerGetAttribute(void *value, int attribute, uint64_t ptr) {
  ++fake_calls.pointers;
  int kind = ptr >> 40, device = kind != OF_FIRST;
  if (kind < OF_FIRST || kind >= UNKNOWN || !current)
    return 1;
  if (attribute == 9) // the ordinal
    return *(int *)value = device, 0;
  if (attribute == 2) // the type
    return *(int *)value = kind == PINNED ? 1 : 2, 0;
  if (attribute == 3) { // where the current context reaches it
    if (kind == MAPPED || kind == POOLED || (kind <= OF_SECOND && (char *)current - contexts != device))
      return 1;
    return *(uint64_t *)value = ptr, 0;
  }
  if (attribute == 8)
    return *(int *)value = kind == MANAGED, 0;
  if (attribute == 17)
    return *(void **)value = kind == POOLED ? &fake_launch : NULL, 0;
  return 1;
}
struct location {
  int type, id;
};
int cuMemGetAccess(unsigned long long *flags, const struct location *location, uint64_t ptr) {
  if (ptr >> 40 != MAPPED || location->type != 1)
    return 1;
  return *flags = location->id == 0 ? 3 : 0, 0;
}
int cuMemPoolGetAccess(int *flags, void *pool, struct location *location) {
  return *flags = pool == &fake_launch && location->type == 1 && location->id == 0 ? 3 : 0, 0;
}
FINE(cuCtxSynchronize, (void))
FINE(cuCtxEnablePeerAccess, (void *context, unsigned flags))
FINE(cuCtxGetStreamPriorityRange, (int *least, int *greatest))
FINE(cuMemAlloc_v2, (uint64_t *ptr, size_t bytes))
FINE(cuMemFree_v2, (uint64_t ptr))
FINE(cuMemcpyHtoD_v2, (uint64_t dst, const void *src, size_t bytes))
FINE(cuMemcpyDtoH_v2, (void *dst, uint64_t src, size_t bytes))
FINE(cuMemcpyHtoDAsync_v2, (uint64_t dst, const void *src, size_t bytes, void *stream))
FINE(cuMemcpyDtoHAsync_v2, (void *dst, uint64_t src, size_t bytes, void *stream))
FINE(cuMemcpyDtoDAsync_v2, (uint64_t dst, uint64_t src, size_t bytes, void *stream))
FINE(cuMemsetD8Async, (uint64_t dst, unsigned char value, size_t bytes, void *stream))
FINE(cuIpcGetMemHandle, (void *handle, uint64_t ptr))
struct handle {
  char bytes[64];
};
FINE(cuIpcOpenMemHandle_v2, (uint64_t *ptr, struct handle handle, unsigned flags))
FINE(cuIpcCloseMemHandle, (uint64_t ptr))
FINE(cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority))
FINE(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))
FINE(cuStreamWaitValue32_v2, (void *stream, uint64_t address, uint32_t value, unsigned flags))
FINE(cuStreamWriteValue32_v2, (void *stream, uint64_t address, uint32_t value, unsigned flags))
FINE(cuEventQuery, (void *event))
FINE(cuStreamCreate, (void **stream, unsigned flags))
FINE(cuStreamDestroy_v2, (void *stream))
FINE(cuStreamSynchronize, (void *stream))
FINE(cuThreadExchangeStreamCaptureMode, (int *mode))
FINE(cuStreamBeginCapture_v2, (void *stream, int mode))
FINE(cuStreamEndCapture, (void *stream, void **graph))
// Streams from 0x9000 on are being captured.
int cuStreamIsCapturing(void *stream, int *status) { return *status = (uintptr_t)stream >= 0x9000, 0; }
FINE(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))
FINE(cuGraphLaunch, (void *exec, void *stream))
FINE(cuGraphDestroy, (void *graph))
FINE(cuGraphExecDestroy, (void *exec))
FINE(cuEventCreate, (void **event, unsigned flags))
FINE(cuEventDestroy_v2, (void *event))
FINE(cuEventRecord, (void *event, void *stream))
FINE(cuEventSynchronize, (void *event))
FINE(cuEventElapsedTime, (float *ms, void *begin, void *end))
int cuModuleLoadData(void **module, const void *image) { return *module = (void *)image, 0; }
FINE(cuModuleUnload, (void *module))
int cuModuleGetFunction(void **function, void *module, const char *name) { return *function = module, 0; }
// Eight counters, where the "code" says that there are some, or is real.
int cuModuleGetGlobal_v2(uint64_t *ptr, size_t *bytes, void *module, const char *name) {
  if (strcmp(module, name) && memcmp(module, "\177ELF", 4))
    return 500;
  return *ptr = 0x10000, *bytes = 32, 0;
}
int fake_attributes[16];
int cuFuncSetAttribute(void *function, int attribute, int value) { return fake_attributes[attribute] = value, 0; }
FINE(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, void *function, int blockSize, size_t smem))
struct config { // CUlaunchConfig
  unsigned grid[3], block[3], smem;
  void *stream;
  int *attributes;
  unsigned count;
};
int cuLaunchKernelEx(const struct config *config, void *function, void **params, void **extra) {
  fake_launch.blocks = config->grid[0];
  fake_launch.device = (char *)current - contexts;
  ++fake_launch.count;
  fake_launch.attribute = config->count ? config->attributes[0] : 0;
  fake_launch.firstArg = *(uint64_t *)params[0];
  fake_launch.secondArg = *(uint64_t *)params[1];
  return 0;
}
#ifndef OLD
int cuStreamGetId(void *stream, unsigned long long *id) { return *id = (uintptr_t)stream + 1000, 0; }
int cuTensorMapEncodeTiled(void *map, int dtype, uint32_t rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides, int interleave,
                           int swizzle, int l2Promotion, int oobFill) {
  // As many extents and strides as the rank says, and three numbers of the box.
  uint64_t said[16] = {dtype, rank, (uintptr_t)address}, *next = said + 3;
  if (rank < 3 || rank > 5)
    return 1;
  memcpy(next, extents, rank * sizeof *next);
  next += rank;
  memcpy(next, strides, (rank - 1) * sizeof *next);
  next += rank - 1;
  for (uint32_t i = 0; i + 1 < rank; ++i)
    if (strides[i] >> 40 || strides[i] % 16)
      return 1;
  if (!current)
    return 201;
  for (uint32_t i = 0; i < 3; ++i)
    *next++ = box[i];
  memcpy(map, said, sizeof said);
  int bad = (uintptr_t)map % 64 != 0;
  for (uint32_t i = 0; i < rank; ++i)
    bad |= elementStrides[i] != 1 || (i > 2 && box[i] != 1);
  return bad;
}
#endif
