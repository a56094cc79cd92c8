// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks of one process. A rank that waits copies what others have posted.
//
#include "attn-rt/Driver.h"
#include "attn/API/RunPlan.h"
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

  private:
    rt::Status take(int64_t number, rt::Stream stream);

    State &all;
    int64_t rank;
    std::map<int64_t, Expected> expected;
  };

  rt::Status complete(rt::Stream stream) const { return driver ? driver->synchronize(stream) : rt::Status(); }
  rt::Status copy(const MessagePart &to, const MessagePart &from, rt::Stream stream) const {
    if (to.bytes != from.bytes)
      return rt::Error{fmt::format("expected a message of {} bytes, got: {}", to.bytes, from.bytes)};
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
  int64_t finished = 0, runs = 0;           ///< ranks that have finished this run, and runs that all have finished
  std::vector<std::string> given, gathered; ///< texts of this all-gather by rank, and of the last one
  int64_t givers = 0, gathers = 0;
  bool isAbandoned = false;
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
  all.changed.wait(lock, [&] { return all.isAbandoned || all.sent[{number, rank}].isTaken; });
  return all.isAbandoned ? rt::Status(abandoned()) : rt::Status();
}

rt::Status LocalRanks::State::Rank::take(int64_t number, rt::Stream stream) {
  auto found = expected.find(number);
  assert(found != expected.end() && "an exchange that receives");
  Expected own = std::move(found->second);
  expected.erase(found);
  Sent message;
  {
    std::unique_lock<std::mutex> lock(all.mutex);
    all.changed.wait(lock, [&] { return all.isAbandoned || all.sent.count({number, own.from}); });
    if (all.isAbandoned)
      return abandoned();
    message = all.sent[{number, own.from}];
  }
  if (message.to != rank || message.parts.size() != own.parts.size())
    return rt::Error{fmt::format("expected a message of {} parts for rank {} from rank {}, got: {} for rank {}",
                                 own.parts.size(), rank, own.from, message.parts.size(), message.to)};
  for (auto [to, from] : llvm::zip(own.parts, message.parts))
    if (rt::Status copied = all.copy(to, from, stream); !copied)
      return copied;
  if (rt::Status done = all.complete(stream); !done)
    return done;
  std::lock_guard<std::mutex> lock(all.mutex);
  all.sent[{number, own.from}].isTaken = true;
  all.changed.notify_all();
  return {};
}

rt::Result<std::vector<std::string>> LocalRanks::State::Rank::allGather(llvm::StringRef own) {
  std::unique_lock<std::mutex> lock(all.mutex);
  int64_t number = all.gathers;
  all.given.resize(all.ranks.size());
  all.given[rank] = own.str();
  if (++all.givers == int64_t(all.ranks.size())) {
    all.givers = 0, ++all.gathers;
    all.gathered = std::exchange(all.given, {});
    all.changed.notify_all();
  }
  all.changed.wait(lock, [&] { return all.isAbandoned || all.gathers != number; });
  return all.gathers != number ? rt::Result<std::vector<std::string>>(all.gathered) : abandoned();
}

rt::Status LocalRanks::State::Rank::finish(rt::Stream stream) {
  if (rt::Status done = all.complete(stream); !done)
    return done;
  std::unique_lock<std::mutex> lock(all.mutex);
  int64_t run = all.runs;
  if (++all.finished == int64_t(all.ranks.size())) {
    all.finished = 0, ++all.runs;
    all.sent.clear();
    all.changed.notify_all();
  }
  all.changed.wait(lock, [&] { return all.isAbandoned || all.runs != run; });
  return all.runs != run ? rt::Status() : abandoned();
}

LocalRanks::LocalRanks(int64_t ranks, bool isHost) : state(std::make_unique<State>()) {
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
  state->isAbandoned = true;
  state->changed.notify_all();
}
