// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running kernels. `args[i]` points at the value of parameter i (see Param);
// the arrays may die after the call returns. Zero blocks is a launch that does
// nothing.
//
#ifndef ATTN_RT_LAUNCH_H
#define ATTN_RT_LAUNCH_H

#include "attn-rt/Driver.h"
#include "attn-rt/Module.h"
#include "attn-rt/Result.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

namespace attn::rt {

/// Puts the kernel on `stream` and returns: a few microseconds, no allocation,
/// no synchronisation, so it can be captured. Threads and shared memory are the
/// artifact's; `blocks` are blocks of work (`Program::Step`), of which a persistent
/// kernel's launch starts only as many CTAs as run at once.
///
/// Blocks of a kernel that `follows` may begin while the last ones of what is ahead of it in the stream still run; they
/// touch no memory before that is over.
///
/// The stream's context decides where it runs, see Placement.h.
///
/// A Queue's value is written here: the address of this stream's counter, or of
/// one of its own if the launch is captured (kernels-runtime/lib/TileQueue.h).
Status launch(Module &module, void *const *args, int64_t blocks, Stream stream);

/// A stream of the current context, for several launches in a row: what the driver says of it is asked once, when a
/// kernel with a Queue is launched.
class StreamState {
public:
  explicit StreamState(Stream stream) : stream(stream) {}

private:
  friend Status launchHere(Module &, const Module::Place &, void *const *, int64_t, StreamState &);
  Status ask(const Driver &driver);
  Stream stream;
  bool isKnown = false, isCaptured = false;
  std::optional<uint64_t> id; ///< nothing where the driver has none
};

/// As `launch`, where `module.enter(stream)` has been called and its result lives; `place` is what `prepare` gave.
Status launchHere(Module &module, const Module::Place &place, void *const *args, int64_t blocks, StreamState &stream);

/// Threads that stay, for host kernels. Workers have 16 MB of stack (kernels
/// keep their tiles there). One job at a time; further callers wait. In a
/// forked child the workers are started anew at the first use.
class ThreadPool {
public:
  /// 0: $ATTN_NUM_THREADS, else the number of CPUs this process may use.
  /// Threads start at the first job.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int size() const { return count; }
  /// body(i) once for each i in [0, n), in rising order of start, spread over
  /// the workers; returns when all are done.
  void forEach(int64_t n, const std::function<void(int64_t)> &body);

private:
  struct State;
  State *stateOfThisProcess();
  int count;
  std::atomic<State *> state{nullptr};
};

/// Runs all blocks of a host kernel and waits for them.
Status run(HostModule &module, ThreadPool &pool, void *const *args, int64_t blocks);

} // namespace attn::rt

#endif // ATTN_RT_LAUNCH_H
