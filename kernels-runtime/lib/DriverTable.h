// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of libcuda.so.1 that we call, under the names that the library
// exports (what <cuda.h> hides behind macros: the _v2 is part of the symbol).
// `int` is CUresult and CUdevice, handles are `void *`. test/Runtime compares
// the prototypes with <cuda.h> where there is one. All are in CUDA 11.8 and
// later, but for the optional ones: null where the driver is older than they are.
//
#ifndef ATTN_RT_LIB_DRIVERTABLE_H
#define ATTN_RT_LIB_DRIVERTABLE_H

#include "attn-rt/Driver.h"

// X(exported name, parameters)
#define ATTN_DRIVER_FUNCTIONS(X)                                                                                       \
  X(cuInit, (unsigned flags))                                                                                          \
  X(cuDriverGetVersion, (int *version))                                                                                \
  X(cuGetErrorName, (int error, const char **text))                                                                    \
  X(cuGetErrorString, (int error, const char **text))                                                                  \
  X(cuDeviceGetCount, (int *count))                                                                                    \
  X(cuDeviceGet, (int *device, int ordinal))                                                                           \
  X(cuDeviceGetName, (char *name, int length, int device))                                                             \
  X(cuDeviceGetAttribute, (int *value, int attribute, int device))                                                     \
  X(cuDevicePrimaryCtxRetain, (void **context, int device))                                                            \
  X(cuCtxGetCurrent, (void **context))                                                                                 \
  X(cuCtxSetCurrent, (void *context))                                                                                  \
  X(cuCtxGetDevice, (int *device))                                                                                     \
  X(cuCtxPushCurrent_v2, (void *context))                                                                              \
  X(cuCtxPopCurrent_v2, (void **context))                                                                              \
  X(cuCtxSynchronize, ())                                                                                              \
  X(cuCtxEnablePeerAccess, (void *context, unsigned flags))                                                            \
  X(cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                                          \
  X(cuMemAlloc_v2, (uint64_t *ptr, size_t bytes))                                                                      \
  X(cuMemFree_v2, (uint64_t ptr))                                                                                      \
  X(cuMemcpyHtoD_v2, (uint64_t dst, const void *src, size_t bytes))                                                    \
  X(cuMemcpyDtoH_v2, (void *dst, uint64_t src, size_t bytes))                                                          \
  X(cuMemcpyHtoDAsync_v2, (uint64_t dst, const void *src, size_t bytes, void *stream))                                 \
  X(cuMemcpyDtoHAsync_v2, (void *dst, uint64_t src, size_t bytes, void *stream))                                       \
  X(cuMemcpyDtoDAsync_v2, (uint64_t dst, uint64_t src, size_t bytes, void *stream))                                    \
  X(cuMemsetD8Async, (uint64_t dst, unsigned char value, size_t bytes, void *stream))                                  \
  X(cuPointerGetAttribute, (void *value, int attribute, uint64_t ptr))                                                 \
  X(cuMemGetAccess, (unsigned long long *flags, const ::attn::rt::cuda::MemLocation *location, uint64_t ptr))          \
  X(cuMemPoolGetAccess, (int *flags, void *pool, ::attn::rt::cuda::MemLocation *location))                             \
  X(cuIpcGetMemHandle, (::attn::rt::MemoryHandle * handle, uint64_t ptr))                                              \
  X(cuIpcOpenMemHandle_v2, (uint64_t *ptr, ::attn::rt::MemoryHandle handle, unsigned flags))                           \
  X(cuIpcCloseMemHandle, (uint64_t ptr))                                                                               \
  X(cuStreamCreate, (void **stream, unsigned flags))                                                                   \
  X(cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority))                                         \
  X(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                                                    \
  X(cuStreamWaitValue32_v2, (void *stream, uint64_t address, uint32_t value, unsigned flags))                          \
  X(cuStreamWriteValue32_v2, (void *stream, uint64_t address, uint32_t value, unsigned flags))                         \
  X(cuStreamDestroy_v2, (void *stream))                                                                                \
  X(cuStreamSynchronize, (void *stream))                                                                               \
  X(cuStreamGetCtx, (void *stream, void **context))                                                                    \
  X(cuStreamBeginCapture_v2, (void *stream, int mode))                                                                 \
  X(cuStreamEndCapture, (void *stream, void **graph))                                                                  \
  X(cuThreadExchangeStreamCaptureMode, (int *mode))                                                                    \
  X(cuStreamIsCapturing, (void *stream, int *status))                                                                  \
  X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))                                 \
  X(cuGraphLaunch, (void *exec, void *stream))                                                                         \
  X(cuGraphDestroy, (void *graph))                                                                                     \
  X(cuGraphExecDestroy, (void *exec))                                                                                  \
  X(cuEventCreate, (void **event, unsigned flags))                                                                     \
  X(cuEventDestroy_v2, (void *event))                                                                                  \
  X(cuEventRecord, (void *event, void *stream))                                                                        \
  X(cuEventSynchronize, (void *event))                                                                                 \
  X(cuEventQuery, (void *event))                                                                                       \
  X(cuEventElapsedTime, (float *ms, void *begin, void *end))                                                           \
  X(cuModuleLoadData, (void **module, const void *image))                                                              \
  X(cuModuleUnload, (void *module))                                                                                    \
  X(cuModuleGetFunction, (void **function, void *module, const char *name))                                            \
  X(cuModuleGetGlobal_v2, (uint64_t *ptr, size_t *bytes, void *module, const char *name))                              \
  X(cuFuncSetAttribute, (void *function, int attribute, int value))                                                    \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, void *function, int blockSize, size_t smem))            \
  X(cuLaunchKernelEx, (const ::attn::rt::cuda::LaunchConfig *config, void *function, void **params, void **extra))

// Both since CUDA 12.0.
#define ATTN_OPTIONAL_DRIVER_FUNCTIONS(X)                                                                              \
  X(cuStreamGetId, (void *stream, unsigned long long *id))                                                             \
  X(cuTensorMapEncodeTiled,                                                                                            \
    (void *map, int dtype, uint32_t rank, void *address, const uint64_t *extents, const uint64_t *strides,             \
     const uint32_t *box, const uint32_t *elementStrides, int interleave, int swizzle, int l2Promotion, int oobFill))

namespace attn::rt {

/// Structures of <cuda.h>.
namespace cuda {
struct LaunchAttribute { ///< CUlaunchAttribute
  int id;
  alignas(8) union {
    char all[64];
    int programmaticStreamSerialization;
  } value;
};
struct LaunchConfig { ///< CUlaunchConfig
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, smem;
  void *stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};
struct MemLocation { ///< CUmemLocation
  int type, id;
};
} // namespace cuda

struct DriverTable {
#define ATTN_DRIVER_FIELD(name, parameters) int(*name) parameters;
  ATTN_DRIVER_FUNCTIONS(ATTN_DRIVER_FIELD)
  ATTN_OPTIONAL_DRIVER_FUNCTIONS(ATTN_DRIVER_FIELD)
#undef ATTN_DRIVER_FIELD
};

/// Numbers of <cuda.h> enums.
namespace cuda {
inline constexpr int multiprocessorCount = 16;     // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr int computeCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int computeCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
inline constexpr int maxSharedMemoryOptin = 97;    // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
inline constexpr int pageableMemoryAccess = 88;    // CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS
inline constexpr int pointerMemoryType = 2;        // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
inline constexpr int pointerDevicePointer = 3;     // CU_POINTER_ATTRIBUTE_DEVICE_POINTER
inline constexpr int pointerIsManaged = 8;         // CU_POINTER_ATTRIBUTE_IS_MANAGED
inline constexpr int pointerDeviceOrdinal = 9;     // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
inline constexpr int pointerPool = 17;             // CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
inline constexpr int memoryTypeHost = 1;           // CU_MEMORYTYPE_HOST
inline constexpr int locationDevice = 1;           // CU_MEM_LOCATION_TYPE_DEVICE
inline constexpr int maxDynamicSharedSize = 8;     // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr int nonPortableCluster = 14;      // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
inline constexpr unsigned streamNonBlocking = 1;   // CU_STREAM_NON_BLOCKING
inline constexpr unsigned eventDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned waitValueGeq = 0;        // CU_STREAM_WAIT_VALUE_GEQ
inline constexpr unsigned lazyPeerAccess = 1;      // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
inline constexpr int errorNotReady = 600;          // CUDA_ERROR_NOT_READY
inline constexpr int errorPeerAccessEnabled = 704; // CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
inline constexpr int captureThreadLocal = 1;       // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
inline constexpr int captureRelaxed = 2;           // CU_STREAM_CAPTURE_MODE_RELAXED
inline constexpr int captureNone = 0;              // CU_STREAM_CAPTURE_STATUS_NONE
inline constexpr int tensorMapFloat16 = 6;         // CU_TENSOR_MAP_DATA_TYPE_FLOAT16
inline constexpr int tensorMapBfloat16 = 9;        // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
inline constexpr int tensorMapInterleaveNone = 0;  // CU_TENSOR_MAP_INTERLEAVE_NONE
inline constexpr int tensorMapSwizzle128B = 3;     // CU_TENSOR_MAP_SWIZZLE_128B
inline constexpr int tensorMapPromotionNone = 0;   // CU_TENSOR_MAP_L2_PROMOTION_NONE
inline constexpr int tensorMapFillZeros = 0;       // CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
inline constexpr int launchEarly = 6;              // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
inline constexpr int errorInvalidImage = 200;      // CUDA_ERROR_INVALID_IMAGE
inline constexpr int errorNoBinary = 209;          // CUDA_ERROR_NO_BINARY_FOR_GPU
inline constexpr int errorNotFound = 500;          // CUDA_ERROR_NOT_FOUND
inline constexpr int errorNoDevice = 100;          // CUDA_ERROR_NO_DEVICE
} // namespace cuda

} // namespace attn::rt

#endif // ATTN_RT_LIB_DRIVERTABLE_H
