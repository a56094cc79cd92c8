// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Placement.h"
#include "DriverTable.h"

#include <fmt/format.h>

using namespace attn::rt;

static bool isDefault(Stream stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2; // null, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
}

Result<StreamContext> StreamContext::enter(const Driver &driver, Stream stream, Context otherwise) {
  const DriverTable &cu = driver.table();
  Context current = nullptr, wanted = nullptr;
  if (int code = cu.cuCtxGetCurrent(&current))
    return driver.error("cuCtxGetCurrent", code);
  if (isDefault(stream)) {
    if (!current)
      if (int code = cu.cuCtxSetCurrent(otherwise))
        return driver.error("cuCtxSetCurrent", code);
    return StreamContext(nullptr);
  }
  if (int code = cu.cuStreamGetCtx(stream, &wanted))
    return driver.error("cuStreamGetCtx", code);
  if (wanted == current)
    return StreamContext(nullptr);
  if (int code = cu.cuCtxPushCurrent_v2(wanted))
    return driver.error("cuCtxPushCurrent", code);
  return StreamContext(&driver);
}

StreamContext::~StreamContext() {
  Context popped = nullptr;
  if (driver)
    driver->table().cuCtxPopCurrent_v2(&popped);
}

/// Some attribute of an address as a number; 0 where the driver has no answer.
static uint64_t attributeOf(const DriverTable &cu, int attribute, DevicePtr memory) {
  uint64_t value = 0; // wide enough for each of them, and they are little-endian
  return cu.cuPointerGetAttribute(&value, attribute, memory) ? 0 : value;
}

/// Whether anything says that `device`, of the current context, reaches memory
/// which isn't its own. Mappings and pools have lists of devices of their own,
/// beside the peer access of contexts.
static bool isShared(const DriverTable &cu, DevicePtr memory, int device) {
  if (attributeOf(cu, cuda::pointerMemoryType, memory) == cuda::memoryTypeHost ||
      attributeOf(cu, cuda::pointerIsManaged, memory) || attributeOf(cu, cuda::pointerDevicePointer, memory))
    return true;
  cuda::MemLocation here = {cuda::locationDevice, device};
  unsigned long long mapped = 0;
  if (cu.cuMemGetAccess(&mapped, &here, memory) == 0 && mapped)
    return true;
  void *pool = reinterpret_cast<void *>(attributeOf(cu, cuda::pointerPool, memory));
  int allowed = 0;
  return pool && cu.cuMemPoolGetAccess(&allowed, pool, &here) == 0 && allowed;
}

Status attn::rt::checkReach(const Driver &driver, DevicePtr memory, int device, std::string_view name) {
  const DriverTable &cu = driver.table();
  int owner = 0;
  bool isKnown = cu.cuPointerGetAttribute(&owner, cuda::pointerDeviceOrdinal, memory) == 0;
  if (isKnown && (owner == device || isShared(cu, memory, device)))
    return {};
  if (isKnown)
    return Error{fmt::format("expected `{}` in memory that device {} can reach, where the stream is, got: memory of "
                             "device {}",
                             name, device, owner),
                 {},
                 {}};
  int pageable = 0; // memory of the host that no allocator of CUDA knows
  if (cu.cuDeviceGetAttribute(&pageable, cuda::pageableMemoryAccess, device) == 0 && pageable)
    return {};
  return Error{fmt::format("expected `{}` in memory that device {} can reach, where the stream is, got: memory of the "
                           "host that the driver does not know, or none",
                           name, device),
               {},
               {}};
}
