// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which launch of a persistent kernel draws its tiles from which counter. The
// counters are the module's `attn_queue` in one context, zero when it is loaded.
// A launch finds its counter at 0 and leaves it at 0: the kernel knows how often
// its blocks draw, and whoever draws last sets it back. So no launch needs a
// memset before it, which would cost a stream operation (and a node in each
// graph), and launches that wait for each other can share a counter. Launches
// that may run beside each other must not: they would take each other's tiles.
//
//   - one counter for each stream, which orders its launches;
//   - one for each captured launch: a graph is replayed on any stream, beside
//     whatever runs there. It is not given out again, as nobody tells us when a
//     graph is gone. (A replay waits for the one before it; instances of one
//     captured graph do not wait for each other, and must not run at once.)
//   - none (0) when all are given out: the kernel then deals out its tiles
//     statically, which is slower and as right.
//
// Nothing here calls the driver.
//
#ifndef ATTN_RT_LIB_TILEQUEUE_H
#define ATTN_RT_LIB_TILEQUEUE_H

#include "attn-rt/Driver.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace attn::rt {

/// Tells streams of one context apart.
struct StreamKey {
  enum class Kind { Id, Handle, Thread };
  Kind kind = Kind::Id;
  uint64_t value = 0;
  auto operator<=>(const StreamKey &) const = default;

  /// The key of a stream as the calling thread names it. `id` is what
  /// cuStreamGetId says, nothing where the driver doesn't have it; handles are
  /// used again for later streams, ids are not. The per-thread default stream is
  /// named by the thread in either case: its handle is the same in all threads.
  static StreamKey of(Stream stream, std::optional<uint64_t> id);
};

/// Safe from several threads.
class TileQueue {
public:
  /// `count` counters of 4 bytes from `counters` on.
  TileQueue(DevicePtr counters, size_t count) : next(counters), left(count) {}
  TileQueue(const TileQueue &) = delete;
  TileQueue &operator=(const TileQueue &) = delete;

  /// The stream's counter, a new one at its first launch; 0 when none is left.
  DevicePtr forStream(StreamKey stream);
  /// A counter that no other launch has; 0 when none is left.
  DevicePtr forCapture();

private:
  DevicePtr take();

  std::mutex mutex;
  std::map<StreamKey, DevicePtr> streams;
  DevicePtr next;
  size_t left;
};

} // namespace attn::rt

#endif // ATTN_RT_LIB_TILEQUEUE_H
