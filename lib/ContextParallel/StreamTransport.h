// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What transports between GPUs have in common: messages go on a stream of their own, and a thread watches the runs.
//
#ifndef ATTN_LIB_CONTEXTPARALLEL_STREAMTRANSPORT_H
#define ATTN_LIB_CONTEXTPARALLEL_STREAMTRANSPORT_H

#include "attn/ContextParallel/Transport.h"
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace attn {

class StreamTransport : public Transport {
public:
  ~StreamTransport() override;
  rt::Result<void *> begin(std::shared_ptr<const PlanNames> names, const Route *route, rt::Stream stream) final;
  rt::Status post(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                  llvm::ArrayRef<MessagePart> received, rt::Stream stream) final;
  rt::Status wait(int64_t number, std::optional<int64_t> from, std::optional<int64_t> to, rt::Stream stream) final;
  rt::Status finish(rt::Stream stream) final;
  void abandon(const rt::Error &error) final;
  rt::Status check() final;
  rt::Status checkDevice() final;

protected:
  StreamTransport(int64_t rank, int64_t ranks, double timeout) : Transport(rank, ranks), timeout(timeout) {}
  /// Takes the current context, and makes streams and events.
  rt::Status open();
  /// Called by destructors of derived classes, before what `release` uses goes: all runs are complete, or have failed.
  void close();

  /// Returns the memory of values.
  virtual rt::Result<void *> prepare(const Route *route) = 0;
  /// On the stream of a run: this rank is ready to receive an exchange.
  virtual rt::Status offer(int64_t number, int64_t from, rt::Stream stream) { return {}; }
  /// On `communication`.
  virtual rt::Status transfer(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                              llvm::ArrayRef<MessagePart> received) = 0;
  /// On the stream of a run: what follows finds what was received.
  virtual rt::Status arrive(int64_t number, int64_t from, rt::Stream stream) = 0;
  /// After a failure: streams that wait for other ranks go on. Called again as long as runs are not complete.
  virtual void release() = 0;
  /// Tells other ranks that this one has failed.
  virtual void tellOthers() {}
  /// What another rank has told.
  virtual std::optional<rt::Error> hearOthers() { return {}; }

  /// Does the current run go into a graph?
  bool isCaptured() const { return captured; }
  rt::Status setFailure(rt::Error error);
  rt::Error timedOut(llvm::StringRef what) const;

  const rt::Driver *driver = nullptr;
  rt::Context context = nullptr;
  std::vector<rt::Event> moved;                         ///< by exchange: behind `transfer`
  rt::Stream communication = nullptr, rescue = nullptr; ///< of messages; of `release`, which waits for no rank
  const double timeout;                                 ///< in seconds

private:
  using Clock = std::chrono::steady_clock;
  struct Mark {
    rt::Event event;
    std::string what; ///< is expected
  };
  struct Run {
    rt::Event began, ended;
    std::vector<Mark> arrivals, departures;
    std::optional<Clock::time_point> since;
  };
  rt::Result<rt::Event> recordMark(rt::Stream stream);
  void watch();
  bool isComplete(Run &run);

  rt::Event posted = nullptr, last = nullptr;
  rt::Stream lastStream = nullptr, currentStream = nullptr;
  bool hasRun = false, captured = false, hasPosted = false;
  std::shared_ptr<const PlanNames> names; ///< of the current run
  Run current;

  std::mutex mutex; ///< of all below
  std::condition_variable changed;
  std::deque<Run> running;
  std::vector<rt::Event> free; ///< events of marks
  std::optional<rt::Error> failure;
  bool isClosing = false;
  std::thread watcher;
};

} // namespace attn

#endif // ATTN_LIB_CONTEXTPARALLEL_STREAMTRANSPORT_H
