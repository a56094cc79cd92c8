// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libcuda.so.1 for machines without one, of eight devices whose memory is the host's. Each stream is a thread that
// does what is put on it in order, some of it late: copies, fills, events, words that are written and waited for.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace {
char contexts[8];
thread_local void *current = nullptr;

class Stream {
public:
  explicit Stream(void *context) : context(context), worker([this] { work(); }) {}
  ~Stream() {
    put([this] { isEnding = true; });
    worker.join();
  }
  void put(std::function<void()> step) {
    std::lock_guard<std::mutex> lock(mutex);
    steps.push_back(std::move(step));
  }
  void finish() {
    std::promise<void> done;
    put([&] { done.set_value(); });
    done.get_future().wait();
  }
  void *const context;

private:
  void work() {
    std::minstd_rand random(unsigned(reinterpret_cast<uintptr_t>(this) >> 4));
    while (!isEnding) {
      std::function<void()> step;
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (!steps.empty())
          step = std::move(steps.front()), steps.pop_front();
      }
      if (random() % 8 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      step ? step() : std::this_thread::yield();
    }
  }
  std::mutex mutex;
  std::deque<std::function<void()>> steps;
  std::atomic<bool> isEnding = false;
  std::thread worker;
};

struct Event {
  std::atomic<uint64_t> recorded = 0, reached = 0;
};

std::mutex streamsMutex;
std::set<Stream *> streams;

/// The default stream does everything at once.
void put(void *stream, std::function<void()> step) {
  stream ? static_cast<Stream *>(stream)->put(std::move(step)) : step();
}
int open(void **stream) {
  auto *made = new Stream(current);
  std::lock_guard<std::mutex> lock(streamsMutex);
  streams.insert(made);
  return *stream = made, 0;
}
} // namespace

extern "C" {
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuGetErrorName(int, const char **text) { return *text = "INVALID", 0; }
int cuGetErrorString(int, const char **text) { return *text = "fake error", 0; }
int cuDeviceGetCount(int *count) { return *count = sizeof(contexts), 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = contexts + device, 0; }
int cuCtxGetCurrent(void **context) { return *context = current, 0; }
int cuCtxSetCurrent(void *context) { return current = context, 0; }
int cuCtxPushCurrent_v2(void *context) { return current = context, 0; } // nothing here depends on what was before
int cuCtxSynchronize() {
  std::lock_guard<std::mutex> lock(streamsMutex);
  for (Stream *stream : streams)
    if (stream->context == current)
      stream->finish();
  return 0;
}
int cuMemAlloc_v2(uint64_t *memory, size_t bytes) { return *memory = uint64_t(std::malloc(bytes)), 0; }
int cuMemFree_v2(uint64_t memory) { return std::free(reinterpret_cast<void *>(memory)), 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  return put(stream, [=] { std::memcpy(to, reinterpret_cast<void *>(from), bytes); }), 0;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  return cuMemcpyDtoHAsync_v2(reinterpret_cast<void *>(to), from, bytes, stream);
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) {
  return put(stream, [=] { std::memset(reinterpret_cast<void *>(to), value, bytes); }), 0;
}
int cuStreamCreate(void **stream, unsigned) { return open(stream); }
int cuStreamCreateWithPriority(void **stream, unsigned, int) { return open(stream); }
int cuStreamDestroy_v2(void *stream) {
  {
    std::lock_guard<std::mutex> lock(streamsMutex);
    streams.erase(static_cast<Stream *>(stream));
  }
  return delete static_cast<Stream *>(stream), 0;
}
int cuStreamSynchronize(void *stream) { return stream ? static_cast<Stream *>(stream)->finish() : void(), 0; }
int cuStreamGetCtx(void *stream, void **context) {
  return *context = stream ? static_cast<Stream *>(stream)->context : current, 0;
}
int cuStreamWriteValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned) {
  return put(stream, [=] { std::atomic_ref(*reinterpret_cast<uint32_t *>(address)) = value; }), 0;
}
int cuStreamWaitValue32_v2(void *stream, uint64_t address, uint32_t value, unsigned) {
  put(stream, [=] {
    while (int32_t(std::atomic_ref(*reinterpret_cast<uint32_t *>(address)) - value) < 0)
      std::this_thread::yield();
  });
  return 0;
}
int cuEventCreate(void **event, unsigned) { return *event = new Event, 0; }
int cuEventDestroy_v2(void *event) { return 0; } // streams may still reach it
int cuEventRecord(void *event, void *stream) {
  auto *own = static_cast<Event *>(event);
  uint64_t number = ++own->recorded;
  return put(stream, [=] { own->reached = number; }), 0;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned) {
  auto *own = static_cast<Event *>(event);
  uint64_t number = own->recorded;
  put(stream, [=] {
    while (own->reached < number)
      std::this_thread::yield();
  });
  return 0;
}
int cuEventQuery(void *event) {
  auto *own = static_cast<Event *>(event);
  return own->reached < own->recorded ? 600 : 0;
}
}
