// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks of one process. A rank that waits copies what others have posted.
//
#include "attn-rt/Driver.h"
#include "attn/ContextParallel/RunPlan.h"
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <mutex>

using namespace attn;

struct LocalRanks::State {
  /// What one rank sends in one exchange, by the exchange's number and the sender.
  using Key = std::pair<int64_t, int64_t>;
  struct Sent {
    int64_t to = 0;
    std::vector<MessagePart> parts;
    bool isTaken = false;
  };
  /// What a rank is to receive.
  struct Expected {
    int64_t from = 0;
    std::vector<MessagePart> parts;
  };
  class Rank : public Transport {
  public:
    Rank(State &all, int64_t rank, int64_t ranks) : Transport(rank, ranks), all(all), rank(rank) {}
    rt::Result<std::vector<std::string>> allGather(llvm::StringRef own) override;
    rt::Status post(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                    llvm::ArrayRef<MessagePart> received, rt::Stream stream) override;
    rt::Status wait(int64_t number, std::optional<int64_t> from, std::optional<int64_t> to, rt::Stream stream) override;
    rt::Status finish(rt::Stream stream) override;
    rt::Result<void *> begin(std::shared_ptr<const PlanNames> ofPlan, const Route *, rt::Stream) override {
      names = std::move(ofPlan);
      rt::Status fine = check();
      return fine ? rt::Result<void *>(nullptr) : rt::Result<void *>(fine.error());
    }
    void abandon(const rt::Error &error) override {
      std::lock_guard<std::mutex> lock(all.mutex);
      all.fail(rt::Error{fmt::format("rank {}: {}", rank, error.message)}.as(error.kind));
    }
    rt::Status check() override {
      std::lock_guard<std::mutex> lock(all.mutex);
      return all.failure ? rt::Status(*all.failure) : rt::Status();
    }

  private:
    rt::Status take(int64_t number, rt::Stream stream);

    State &all;
    int64_t rank;
    std::map<int64_t, Expected> expected;
    std::shared_ptr<const PlanNames> names;
  };

  /// What others wait for does not come.
  void fail(const rt::Error &error) {
    if (!failure)
      failure = error;
    changed.notify_all();
  }
  /// Waits until it holds. `missing`: what has not come, for the error.
  rt::Status waitUntil(std::unique_lock<std::mutex> &lock, llvm::function_ref<bool()> holds,
                       llvm::function_ref<std::string()> missing) {
    auto isOver = [&] { return failure || holds(); };
    if (timeout <= 0)
      changed.wait(lock, isOver);
    else if (!changed.wait_for(lock, std::chrono::duration<double>(timeout), isOver))
      fail(rt::Error{fmt::format("expected {} within {:g} s, got: nothing", missing(), timeout)}.as(
          rt::ErrorKind::Driver));
    return holds() ? rt::Status() : rt::Status(*failure);
  }
  /// The first rank that is not among these.
  int64_t firstWithout(const std::vector<bool> &present) const { return llvm::find(present, false) - present.begin(); }

  rt::Status complete(rt::Stream stream) const { return driver ? driver->synchronize(stream) : rt::Status(); }
  rt::Status copy(const MessagePart &to, const MessagePart &from, rt::Stream stream) const {
    if (driver)
      return driver->copyOnDevice(rt::DevicePtr(to.data), rt::DevicePtr(from.data), to.bytes, stream);
    std::memcpy(to.data, from.data, to.bytes);
    return {};
  }

  const rt::Driver *driver = nullptr; ///< of a GPU
  rt::Status hasDriver;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, Sent> sent;
  std::vector<bool> finished, gave;         ///< the ranks that have finished this run, and given a text
  std::vector<std::string> given, gathered; ///< texts of this all-gather by rank, and of the last one
  int64_t runs = 0, gathers = 0;            ///< runs and all-gathers that are complete
  double timeout = 0;
  std::optional<rt::Error> failure;
};

static rt::Error abandoned() { return {"expected all ranks of the plan to run, got: a rank that failed", {}, {}}; }

rt::Status LocalRanks::State::Rank::post(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                                         llvm::ArrayRef<MessagePart> received, rt::Stream stream) {
  if (!all.hasDriver)
    return all.hasDriver;
  if (!received.empty())
    expected[number] = {from, received.vec()};
  if (sent.empty())
    return {};
  if (rt::Status done = all.complete(stream); !done)
    return done;
  std::lock_guard<std::mutex> lock(all.mutex);
  all.sent[{number, rank}] = {to, sent.vec(), false};
  all.changed.notify_all();
  return {};
}

rt::Status LocalRanks::State::Rank::wait(int64_t number, std::optional<int64_t> from, std::optional<int64_t> to,
                                         rt::Stream stream) {
  if (from)
    if (rt::Status taken = take(number, stream); !taken)
      return taken;
  if (!to)
    return {};
  std::unique_lock<std::mutex> lock(all.mutex);
  return all.waitUntil(
      lock, [&] { return all.sent[{number, rank}].isTaken; },
      [&] { return fmt::format("rank {} to take {} of rank {}", *to, names->exchange(number), rank); });
}

rt::Status LocalRanks::State::Rank::take(int64_t number, rt::Stream stream) {
  auto found = expected.find(number);
  assert(found != expected.end() && "an exchange that receives");
  Expected own = std::move(found->second);
  expected.erase(found);
  Sent message;
  {
    std::unique_lock<std::mutex> lock(all.mutex);
    rt::Status came = all.waitUntil(
        lock, [&] { return all.sent.count({number, own.from}) != 0; },
        [&] { return fmt::format("{} from rank {} on rank {}", names->exchange(number), own.from, rank); });
    if (!came)
      return came;
    message = all.sent[{number, own.from}];
  }
  if (message.to != rank || message.parts.size() != own.parts.size())
    return rt::Error{fmt::format("expected a message of {} parts for rank {} from rank {}, got: {} for rank {}",
                                 own.parts.size(), rank, own.from, message.parts.size(), message.to)};
  for (auto [to, from] : llvm::zip(own.parts, message.parts)) {
    if (to.bytes != from.bytes)
      return rt::Error{
          fmt::format("expected {} of {} bytes from rank {} on rank {}, got: {} bytes (do all ranks run the "
                      "same plans in the same order?)",
                      names->exchange(number), to.bytes, own.from, rank, from.bytes)};
    if (rt::Status copied = all.copy(to, from, stream); !copied)
      return copied;
  }
  if (rt::Status done = all.complete(stream); !done)
    return done;
  std::lock_guard<std::mutex> lock(all.mutex);
  all.sent[{number, own.from}].isTaken = true;
  all.changed.notify_all();
  return {};
}

rt::Result<std::vector<std::string>> LocalRanks::State::Rank::allGather(llvm::StringRef own) {
  std::unique_lock<std::mutex> lock(all.mutex);
  const int64_t number = all.gathers;
  all.given[rank] = own.str(), all.gave[rank] = true;
  if (!llvm::is_contained(all.gave, false)) {
    all.gathered = all.given, ++all.gathers;
    all.gave.assign(all.gave.size(), false);
    all.changed.notify_all();
  }
  rt::Status came = all.waitUntil(
      lock, [&] { return all.gathers != number; },
      [&] { return fmt::format("rank {} to bind the same plan", all.firstWithout(all.gave)); });
  return came ? rt::Result<std::vector<std::string>>(all.gathered) : came.error();
}

rt::Status LocalRanks::State::Rank::finish(rt::Stream stream) {
  if (rt::Status done = all.complete(stream); !done)
    return done;
  std::unique_lock<std::mutex> lock(all.mutex);
  const int64_t run = all.runs;
  all.finished[rank] = true;
  if (!llvm::is_contained(all.finished, false)) {
    ++all.runs;
    all.finished.assign(all.finished.size(), false);
    all.sent.clear();
    all.changed.notify_all();
  }
  return all.waitUntil(
      lock, [&] { return all.runs != run; },
      [&] { return fmt::format("rank {} to end its run", all.firstWithout(all.finished)); });
}

LocalRanks::LocalRanks(int64_t ranks, bool isHost, double timeout) : state(std::make_unique<State>()) {
  state->timeout = timeout;
  state->finished.resize(ranks), state->gave.resize(ranks), state->given.resize(ranks);
  if (!isHost) {
    rt::Result<const rt::Driver *> driver = rt::Driver::get();
    if (driver)
      state->driver = *driver;
    else
      state->hasDriver = driver.error();
  }
  for (int64_t rank = 0; rank < ranks; ++rank)
    state->ranks.push_back(std::make_unique<State::Rank>(*state, rank, ranks));
}
LocalRanks::~LocalRanks() = default;

Transport &LocalRanks::of(int64_t rank) { return *state->ranks[rank]; }

void LocalRanks::abandon() {
  std::lock_guard<std::mutex> lock(state->mutex);
  state->fail(abandoned());
}
