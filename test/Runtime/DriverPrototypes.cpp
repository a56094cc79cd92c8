// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiling this proves that DriverTable.h says what <cuda.h> says: as many
// parameters, each a pointer where it is one and otherwise of the same size,
// and the same numbers for enums.
//
#include "DriverTable.h"
#include "attn-rt/TensorMap.h"

#include <cuda.h>

#include <cstddef>
#include <type_traits>

// <cuda.h> renames with macros of its own; we compare exported names, so those
// with a suffix are named by hand below.
#undef cuEventElapsedTime
extern "C" CUresult CUDAAPI cuEventElapsedTime(float *, CUevent, CUevent);

template <typename A, typename B>
constexpr bool sameAbi = std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B);

template <typename A, typename B> struct SameFunction : std::false_type {};
template <typename... As, typename... Bs> struct SameFunction<int (*)(As...), CUresult (*)(Bs...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(As) == sizeof...(Bs))
      return (sameAbi<As, Bs> && ...);
    return false;
  }
  static constexpr bool value = compare();
};

// The macros of <cuda.h> map `cuMemAlloc` to `cuMemAlloc_v2`, which is
// declared, so exported names can be used as they stand.
#define SAME(name, parameters)                                                                                         \
  static_assert(SameFunction<decltype(attn::rt::DriverTable::name), decltype(&::name)>::value, #name);
ATTN_DRIVER_FUNCTIONS(SAME)

using namespace attn::rt::cuda;
#if CUDA_VERSION >= 12000
ATTN_OPTIONAL_DRIVER_FUNCTIONS(SAME)
// Headers from CUDA 13 on align it to 128 bytes; the driver asks for 64.
static_assert(sizeof(attn::rt::TensorMap) == sizeof(CUtensorMap) && alignof(attn::rt::TensorMap) == 64);
static_assert(tensorMapFloat16 == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(tensorMapBfloat16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(tensorMapInterleaveNone == CU_TENSOR_MAP_INTERLEAVE_NONE);
static_assert(tensorMapSwizzle128B == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(tensorMapPromotionNone == CU_TENSOR_MAP_L2_PROMOTION_NONE);
static_assert(tensorMapFillZeros == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
#endif
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value) &&
              sizeof(LaunchAttribute::value) == sizeof(CUlaunchAttributeValue));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig) &&
              offsetof(LaunchConfig, blockX) == offsetof(CUlaunchConfig, blockDimX) &&
              offsetof(LaunchConfig, smem) == offsetof(CUlaunchConfig, sharedMemBytes) &&
              offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream) &&
              offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs) &&
              offsetof(LaunchConfig, attributeCount) == offsetof(CUlaunchConfig, numAttrs));
static_assert(launchEarly == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(multiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(computeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(computeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(maxSharedMemoryOptin == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(maxDynamicSharedSize == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(nonPortableCluster == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(streamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(eventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(waitValueGeq == CU_STREAM_WAIT_VALUE_GEQ);
static_assert(lazyPeerAccess == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(errorNotReady == CUDA_ERROR_NOT_READY);
static_assert(errorPeerAccessEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(sizeof(attn::rt::MemoryHandle) == sizeof(CUipcMemHandle));
static_assert(captureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(captureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(captureNone == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(pageableMemoryAccess == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
static_assert(pointerMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(pointerDevicePointer == CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
static_assert(pointerIsManaged == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(pointerDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(pointerPool == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
static_assert(memoryTypeHost == CU_MEMORYTYPE_HOST);
static_assert(locationDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(sizeof(MemLocation) == sizeof(CUmemLocation) && offsetof(MemLocation, id) == offsetof(CUmemLocation, id));
static_assert(errorInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(errorNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(errorNoBinary == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(errorNoDevice == CUDA_ERROR_NO_DEVICE);
