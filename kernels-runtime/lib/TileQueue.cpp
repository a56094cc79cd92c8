// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TileQueue.h"

#include <atomic>

using namespace attn::rt;

StreamKey StreamKey::of(Stream stream, std::optional<uint64_t> id) {
  constexpr uint64_t legacy = 1, perThread = 2; // CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
  uint64_t handle = reinterpret_cast<uintptr_t>(stream);
  if (handle == perThread) {
    // Counted, as the system uses a thread's id again while its last launches may still run.
    static std::atomic<uint64_t> threads{0};
    static thread_local const uint64_t thread = ++threads;
    return {Kind::Thread, thread};
  }
  if (id)
    return {Kind::Id, *id};
  return {Kind::Handle, handle == legacy ? 0 : handle}; // null is the legacy stream too
}

DevicePtr TileQueue::take() {
  if (left == 0)
    return 0;
  --left;
  DevicePtr taken = next;
  next += sizeof(uint32_t);
  return taken;
}

DevicePtr TileQueue::forStream(StreamKey stream) {
  std::lock_guard lock(mutex);
  if (auto known = streams.find(stream); known != streams.end())
    return known->second;
  DevicePtr counter = take();
  if (counter) // streams without one aren't kept: there may be any number of them
    streams.emplace(stream, counter);
  return counter;
}

DevicePtr TileQueue::forCapture() {
  std::lock_guard lock(mutex);
  return take();
}
