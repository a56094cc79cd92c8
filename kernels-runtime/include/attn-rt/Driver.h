// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver, opened at run time (libcuda.so.1) so that this library loads
// where there is none. `Driver::get()` is the only way in; it fails with a
// sentence that says what is missing. Handles are opaque (`void *`, as CUstream
// etc. are), device memory is a 64-bit address. Everything acts on the calling
// thread's current context; `ensureContext` makes sure that there is one.
//
#ifndef ATTN_RT_DRIVER_H
#define ATTN_RT_DRIVER_H

#include "attn-rt/Result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attn::rt {

using Stream = void *;      ///< CUstream; nullptr is the legacy default stream
using Event = void *;       ///< CUevent
using Context = void *;     ///< CUcontext
using Graph = void *;       ///< CUgraph
using GraphExec = void *;   ///< CUgraphExec
using DevicePtr = uint64_t; ///< CUdeviceptr

/// Memory of one process for another one of the same machine (CUipcMemHandle).
struct MemoryHandle {
  char bytes[64];
};

struct DriverTable; // lib/DriverTable.h: the functions as libcuda exports them

class Driver {
public:
  /// The driver of this machine, opened and initialised once. Fails without
  /// libcuda.so.1 and where it finds no device.
  static Result<const Driver *> get();

  int deviceCount() const { return devices; }
  /// CUDA version that the driver supports, e.g. 13000.
  int version() const { return driverVersion; }

  /// The current context, else device 0's primary context, which it makes
  /// current (and keeps for the life of the process).
  Result<Context> ensureContext() const;
  /// Makes the primary context of a device current (what torch and the CUDA
  /// runtime use).
  Status useDevice(int device) const;
  /// Device of the current context.
  Result<int> currentDevice() const;

  /// Compute capability of a device, e.g. 80, 90, 100.
  Result<int> arch(int device) const;
  Result<std::string> deviceName(int device) const;
  Result<int> multiprocessors(int device) const;
  /// Of all devices; each number once.
  Result<std::vector<int>> multiprocessorCounts() const;
  /// Most dynamic shared memory a block can ask for, in bytes.
  Result<int> maxSharedMemory(int device) const;

  Result<DevicePtr> alloc(size_t bytes) const; ///< 0 bytes give a valid pointer too
  Status free(DevicePtr ptr) const;
  Status copyToDevice(DevicePtr dst, const void *src,
                      size_t bytes) const;                         ///< blocks
  Status copyToHost(void *dst, DevicePtr src, size_t bytes) const; ///< blocks
  Status copyOnDevice(DevicePtr dst, DevicePtr src, size_t bytes, Stream stream) const;
  Status copyToDeviceAsync(DevicePtr dst, const void *src, size_t bytes, Stream stream) const;
  Status fill(DevicePtr dst, uint8_t value, size_t bytes, Stream stream = nullptr) const;

  Status copyToHostAsync(void *dst, DevicePtr src, size_t bytes, Stream stream) const;

  /// Memory that `alloc` gave, for other processes.
  Result<MemoryHandle> handleOf(DevicePtr ptr) const;
  /// Memory of another process, whose device the current context can then access. Not of this process.
  Result<DevicePtr> openHandle(const MemoryHandle &handle) const;
  Status closeHandle(DevicePtr ptr) const;
  /// The current context can then access memory of another one of this process.
  Status enablePeerAccess(Context peer) const;

  Result<Stream> createStream() const;       ///< non-blocking
  Result<Stream> createUrgentStream() const; ///< the same, of the highest priority
  Status destroyStream(Stream stream) const;
  Status synchronize(Stream stream) const;
  Status waitEvent(Stream stream, Event event) const;
  /// Writes a word of device memory, of a peer too, after all that is on the stream.
  Status writeValue(Stream stream, DevicePtr address, uint32_t value) const;
  /// What follows on the stream waits until the word is `value` or more. Takes no multiprocessor.
  Status waitForValue(Stream stream, DevicePtr address, uint32_t value) const;
  Result<bool> isCapturing(Stream stream) const;
  Result<Context> contextOf(Stream stream) const;
  Status synchronizeContext() const;

  Result<Event> createEvent() const;        ///< with timing
  Result<Event> createUntimedEvent() const; ///< cheaper
  Result<bool> isReached(Event event) const;
  Status destroyEvent(Event event) const;
  Status record(Event event, Stream stream) const;
  Status synchronizeEvent(Event event) const;
  Result<float> elapsedMs(Event begin,
                          Event end) const; ///< both recorded and reached

  /// Capture of what is put on `stream` between the two calls (thread-local
  /// mode); an executable graph comes out, the source graph is already
  /// destroyed.
  Status beginCapture(Stream stream) const;
  Result<GraphExec> endCapture(Stream stream) const;
  /// What this thread may do while streams are captured; returns what it was before (CUstreamCaptureMode).
  int exchangeCaptureMode(int mode) const;
  Status launchGraph(GraphExec graph, Stream stream) const;
  Status destroyGraph(GraphExec graph) const;

  /// "`cuMemAlloc` failed: out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  Error error(const char *function, int code) const;
  const DriverTable &table() const { return *functions; }

private:
  const DriverTable *functions = nullptr;
  int devices = 0;
  int driverVersion = 0;
};

/// For the life of this object, calls of this thread that have nothing to do with captured streams, such as freeing
/// memory, do not end the capture of any stream.
class CapturesUntouched {
public:
  explicit CapturesUntouched(const Driver &driver);
  CapturesUntouched(const CapturesUntouched &) = delete;
  ~CapturesUntouched() { driver.exchangeCaptureMode(before); }

private:
  const Driver &driver;
  int before;
};

/// The target to compile for on a device of compute capability `arch`: "sm_86"
/// for 86. With `specific`, 90 and later give the architecture-specific
/// instruction set: "sm_90a", "sm_100a". (A cubin runs on its own major version
/// only, so sm_80 code for an H200 is compiled with target "sm_90".)
std::string targetOf(int arch, bool specific);

} // namespace attn::rt

#endif // ATTN_RT_DRIVER_H
