// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Driver.h"
#include "DriverTable.h"

#include <fmt/format.h>

#include <algorithm>

#include <dlfcn.h>

using namespace attn::rt;

static Result<DriverTable> openTable() {
  void *handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Error{fmt::format("no NVIDIA driver on this machine: {}", ::dlerror()), {}, {}}.as(ErrorKind::Driver);
  DriverTable table = {};
  const char *missing = nullptr;
#define ATTN_DRIVER_BIND(name, parameters)                                                                             \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(handle, #name));                                         \
  if (!table.name && !missing)                                                                                         \
    missing = #name;
  ATTN_DRIVER_FUNCTIONS(ATTN_DRIVER_BIND)
#undef ATTN_DRIVER_BIND
#define ATTN_DRIVER_BIND(name, parameters) table.name = reinterpret_cast<decltype(table.name)>(::dlsym(handle, #name));
  ATTN_OPTIONAL_DRIVER_FUNCTIONS(ATTN_DRIVER_BIND)
#undef ATTN_DRIVER_BIND
  if (missing)
    return Error{fmt::format("the NVIDIA driver has no `{}`; one for CUDA 11.8 "
                             "or later is needed",
                             missing),
                 {},
                 {}}
        .as(ErrorKind::Driver);
  return table;
}

Error Driver::error(const char *function, int code) const {
  const char *name = nullptr, *text = nullptr;
  functions->cuGetErrorName(code, &name);
  functions->cuGetErrorString(code, &text);
  return Error{fmt::format("`{}` failed: {} ({})", function, text ? text : "unknown error",
                           name ? name : fmt::format("{}", code).c_str()),
               {},
               {}}
      .as(ErrorKind::Driver);
}

Result<const Driver *> Driver::get() {
  // A driver doesn't come or go while we run, so a failure is remembered as
  // well.
  static const Result<DriverTable> table = openTable();
  static const Result<Driver> driver = []() -> Result<Driver> {
    if (!table)
      return table.error();
    Driver d;
    d.functions = &*table;
    if (int code = table->cuInit(0)) {
      if (code == cuda::errorNoDevice)
        return Error{"no NVIDIA GPU on this machine (the driver is there)", {}, {}}.as(ErrorKind::Driver);
      return d.error("cuInit", code);
    }
    table->cuDriverGetVersion(&d.driverVersion);
    if (int code = table->cuDeviceGetCount(&d.devices))
      return d.error("cuDeviceGetCount", code);
    if (d.devices == 0)
      return Error{"no NVIDIA GPU is visible (`CUDA_VISIBLE_DEVICES`?)", {}, {}}.as(ErrorKind::Driver);
    return d;
  }();
  if (!driver)
    return driver.error();
  return &*driver;
}

// One call of the driver, for functions that return a Status.
#define ATTN_CALL(name, ...)                                                                                           \
  do {                                                                                                                 \
    if (int code = functions->name(__VA_ARGS__))                                                                       \
      return error(#name, code);                                                                                       \
  } while (false)

Result<Context> Driver::ensureContext() const {
  Context context = nullptr;
  ATTN_CALL(cuCtxGetCurrent, &context);
  if (context)
    return context;
  if (Status status = useDevice(0); !status)
    return status.error();
  ATTN_CALL(cuCtxGetCurrent, &context);
  return context;
}

Status Driver::useDevice(int ordinal) const {
  int device = 0;
  Context context = nullptr;
  ATTN_CALL(cuDeviceGet, &device, ordinal);
  // Retained until the process ends: others (torch) use it too, and releasing
  // at exit races with the driver's own end.
  ATTN_CALL(cuDevicePrimaryCtxRetain, &context, device);
  ATTN_CALL(cuCtxSetCurrent, context);
  return {};
}

Result<int> Driver::currentDevice() const {
  int device = 0;
  if (Result<Context> context = ensureContext(); !context)
    return context.error();
  ATTN_CALL(cuCtxGetDevice, &device);
  return device;
}

static Result<int> attribute(const Driver &driver, int which, int device) {
  int value = 0;
  if (int code = driver.table().cuDeviceGetAttribute(&value, which, device))
    return driver.error("cuDeviceGetAttribute", code);
  return value;
}

Result<int> Driver::arch(int device) const {
  Result<int> major = attribute(*this, cuda::computeCapabilityMajor, device);
  Result<int> minor = attribute(*this, cuda::computeCapabilityMinor, device);
  if (!major || !minor)
    return major ? minor : major;
  return *major * 10 + *minor;
}

Result<int> Driver::multiprocessors(int device) const { return attribute(*this, cuda::multiprocessorCount, device); }
Result<std::vector<int>> Driver::multiprocessorCounts() const {
  std::vector<int> counts;
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    int device = 0;
    ATTN_CALL(cuDeviceGet, &device, ordinal);
    Result<int> count = multiprocessors(device);
    if (!count)
      return count.error();
    if (std::find(counts.begin(), counts.end(), *count) == counts.end())
      counts.push_back(*count);
  }
  return counts;
}

Result<int> Driver::maxSharedMemory(int device) const { return attribute(*this, cuda::maxSharedMemoryOptin, device); }

Result<std::string> Driver::deviceName(int device) const {
  char name[256] = {};
  ATTN_CALL(cuDeviceGetName, name, sizeof(name), device);
  return std::string(name);
}

Result<DevicePtr> Driver::alloc(size_t bytes) const {
  DevicePtr ptr = 0;
  ATTN_CALL(cuMemAlloc_v2, &ptr, bytes ? bytes : 1);
  return ptr;
}

Status Driver::free(DevicePtr ptr) const {
  ATTN_CALL(cuMemFree_v2, ptr);
  return {};
}

Status Driver::copyToDevice(DevicePtr dst, const void *src, size_t bytes) const {
  if (bytes)
    ATTN_CALL(cuMemcpyHtoD_v2, dst, src, bytes);
  return {};
}

Status Driver::copyToHost(void *dst, DevicePtr src, size_t bytes) const {
  if (bytes)
    ATTN_CALL(cuMemcpyDtoH_v2, dst, src, bytes);
  return {};
}

Status Driver::copyOnDevice(DevicePtr dst, DevicePtr src, size_t bytes, Stream stream) const {
  if (bytes)
    ATTN_CALL(cuMemcpyDtoDAsync_v2, dst, src, bytes, stream);
  return {};
}

Status Driver::copyToDeviceAsync(DevicePtr dst, const void *src, size_t bytes, Stream stream) const {
  if (bytes)
    ATTN_CALL(cuMemcpyHtoDAsync_v2, dst, src, bytes, stream);
  return {};
}

Status Driver::fill(DevicePtr dst, uint8_t value, size_t bytes, Stream stream) const {
  if (bytes)
    ATTN_CALL(cuMemsetD8Async, dst, value, bytes, stream);
  return {};
}

Status Driver::copyToHostAsync(void *dst, DevicePtr src, size_t bytes, Stream stream) const {
  if (bytes)
    ATTN_CALL(cuMemcpyDtoHAsync_v2, dst, src, bytes, stream);
  return {};
}

Result<MemoryHandle> Driver::handleOf(DevicePtr ptr) const {
  MemoryHandle handle;
  ATTN_CALL(cuIpcGetMemHandle, &handle, ptr);
  return handle;
}

Result<DevicePtr> Driver::openHandle(const MemoryHandle &handle) const {
  DevicePtr ptr = 0;
  ATTN_CALL(cuIpcOpenMemHandle_v2, &ptr, handle, cuda::lazyPeerAccess);
  return ptr;
}

Status Driver::closeHandle(DevicePtr ptr) const {
  ATTN_CALL(cuIpcCloseMemHandle, ptr);
  return {};
}

Status Driver::enablePeerAccess(Context peer) const {
  if (int code = functions->cuCtxEnablePeerAccess(peer, 0); code && code != cuda::errorPeerAccessEnabled)
    return error("cuCtxEnablePeerAccess", code);
  return {};
}

Result<Stream> Driver::createUrgentStream() const {
  int least = 0, greatest = 0;
  ATTN_CALL(cuCtxGetStreamPriorityRange, &least, &greatest);
  Stream stream = nullptr;
  ATTN_CALL(cuStreamCreateWithPriority, &stream, cuda::streamNonBlocking, greatest);
  return stream;
}

Result<Stream> Driver::createStream() const {
  Stream stream = nullptr;
  ATTN_CALL(cuStreamCreate, &stream, cuda::streamNonBlocking);
  return stream;
}

Status Driver::destroyStream(Stream stream) const {
  ATTN_CALL(cuStreamDestroy_v2, stream);
  return {};
}

Status Driver::synchronize(Stream stream) const {
  ATTN_CALL(cuStreamSynchronize, stream);
  return {};
}

Status Driver::synchronizeContext() const {
  ATTN_CALL(cuCtxSynchronize);
  return {};
}

Status Driver::waitEvent(Stream stream, Event event) const {
  ATTN_CALL(cuStreamWaitEvent, stream, event, 0);
  return {};
}

Status Driver::writeValue(Stream stream, DevicePtr address, uint32_t value) const {
  ATTN_CALL(cuStreamWriteValue32_v2, stream, address, value, 0);
  return {};
}

Status Driver::waitForValue(Stream stream, DevicePtr address, uint32_t value) const {
  ATTN_CALL(cuStreamWaitValue32_v2, stream, address, value, cuda::waitValueGeq);
  return {};
}

Result<bool> Driver::isCapturing(Stream stream) const {
  int status = cuda::captureNone;
  ATTN_CALL(cuStreamIsCapturing, stream, &status);
  return status != cuda::captureNone;
}

Result<Context> Driver::contextOf(Stream stream) const {
  Context context = nullptr;
  ATTN_CALL(cuStreamGetCtx, stream, &context);
  return context;
}

Result<Event> Driver::createUntimedEvent() const {
  Event event = nullptr;
  ATTN_CALL(cuEventCreate, &event, cuda::eventDisableTiming);
  return event;
}

Result<bool> Driver::isReached(Event event) const {
  int code = functions->cuEventQuery(event);
  if (code && code != cuda::errorNotReady)
    return error("cuEventQuery", code);
  return code == 0;
}

Result<Event> Driver::createEvent() const {
  Event event = nullptr;
  ATTN_CALL(cuEventCreate, &event, 0);
  return event;
}

Status Driver::destroyEvent(Event event) const {
  ATTN_CALL(cuEventDestroy_v2, event);
  return {};
}

Status Driver::record(Event event, Stream stream) const {
  ATTN_CALL(cuEventRecord, event, stream);
  return {};
}

Status Driver::synchronizeEvent(Event event) const {
  ATTN_CALL(cuEventSynchronize, event);
  return {};
}

Result<float> Driver::elapsedMs(Event begin, Event end) const {
  float ms = 0;
  ATTN_CALL(cuEventElapsedTime, &ms, begin, end);
  return ms;
}

Status Driver::beginCapture(Stream stream) const {
  ATTN_CALL(cuStreamBeginCapture_v2, stream, cuda::captureThreadLocal);
  return {};
}

Result<GraphExec> Driver::endCapture(Stream stream) const {
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  ATTN_CALL(cuStreamEndCapture, stream, &graph);
  int code = functions->cuGraphInstantiateWithFlags(&exec, graph, 0);
  functions->cuGraphDestroy(graph);
  if (code)
    return error("cuGraphInstantiateWithFlags", code);
  return exec;
}

int Driver::exchangeCaptureMode(int mode) const {
  functions->cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

CapturesUntouched::CapturesUntouched(const Driver &driver)
    : driver(driver), before(driver.exchangeCaptureMode(cuda::captureRelaxed)) {}

Status Driver::launchGraph(GraphExec graph, Stream stream) const {
  ATTN_CALL(cuGraphLaunch, graph, stream);
  return {};
}

Status Driver::destroyGraph(GraphExec graph) const {
  ATTN_CALL(cuGraphExecDestroy, graph);
  return {};
}

std::string attn::rt::targetOf(int arch, bool specific) {
  return fmt::format("sm_{}{}", arch, specific && arch >= 90 ? "a" : "");
}
