// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all transports have in common, and the one that calls functions of the caller.
//
#include "attn/ContextParallel/Transport.h"
#include "attn/Dialect/Plan/IR/Shards.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <fmt/format.h>

using namespace attn;

rt::Status attn::checkRank(int64_t rank, int64_t ranks) {
  if (ranks < 1 || ranks > plan::mostRanks)
    return rt::Error{fmt::format("expected from 1 to {} ranks, got: {}", plan::mostRanks, ranks)};
  if (rank >= 0 && rank < ranks)
    return {};
  return rt::Error{fmt::format("expected a rank from 0 to {}, got: {}", ranks - 1, rank)};
}

std::string PlanNames::exchange(int64_t number) const {
  return fmt::format("exchange {} ({}) of `{}`", number,
                     number < int64_t(exchanges.size()) ? exchanges[number] : "rows", plan);
}

rt::Result<std::vector<std::string>> attn::allGatherTexts(const AllGather &allGather, int64_t ranks,
                                                          llvm::StringRef own) {
  // A size and the beginning of the text, which mostly is all of it; then what is left of the longest.
  constexpr size_t block = 4096, first = block - sizeof(uint64_t);
  const uint64_t size = own.size();
  std::string sent(block, 0), all(block * ranks, 0);
  std::memcpy(sent.data(), &size, sizeof(size));
  llvm::copy(own.take_front(first), sent.begin() + sizeof(size));
  if (rt::Status done = allGather(sent.data(), all.data(), block); !done)
    return done.error();
  std::vector<std::string> texts(ranks);
  std::vector<uint64_t> sizes(ranks);
  uint64_t most = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::memcpy(&sizes[rank], all.data() + rank * block, sizeof(uint64_t));
    texts[rank] = all.substr(rank * block + sizeof(uint64_t), std::min<uint64_t>(sizes[rank], first));
    most = std::max(most, sizes[rank]);
  }
  if (most <= first)
    return texts;
  if (most > uint64_t(1) << 30)
    return rt::Error{
        fmt::format("expected ranks that bind plans by the same version of this library, got: a text of {} "
                    "bytes",
                    most)};
  sent.assign(most - first, 0), all.assign((most - first) * ranks, 0);
  llvm::copy(own.drop_front(std::min(own.size(), first)), sent.begin());
  if (rt::Status done = allGather(sent.data(), all.data(), most - first); !done)
    return done.error();
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (sizes[rank] > first)
      texts[rank] += all.substr(rank * (most - first), sizes[rank] - first);
  return texts;
}

namespace {
class CallbackTransport : public Transport {
public:
  CallbackTransport(int64_t rank, int64_t ranks, TransportFunctions functions)
      : Transport(rank, ranks), functions(std::move(functions)) {}

  rt::Result<std::vector<std::string>> allGather(llvm::StringRef own) override {
    if (!fine)
      return fine.error();
    auto all = allGatherTexts(functions.allGather, getRanks(), own);
    return all ? all : rt::Result<std::vector<std::string>>(keep(all.status()).error());
  }
  rt::Result<void *> begin(std::shared_ptr<const PlanNames> ofPlan, const Route *, rt::Stream) override {
    names = std::move(ofPlan);
    return fine ? rt::Result<void *>(nullptr) : rt::Result<void *>(fine.error());
  }
  rt::Status post(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                  llvm::ArrayRef<MessagePart> received, rt::Stream stream) override {
    return keep(named(number, functions.post(number, to, sent, from, received, stream)));
  }
  rt::Status wait(int64_t number, std::optional<int64_t>, std::optional<int64_t>, rt::Stream stream) override {
    return keep(named(number, functions.wait(number, stream)));
  }
  rt::Status finish(rt::Stream stream) override { return keep(functions.finish(stream)); }
  void abandon(const rt::Error &error) override {
    if (fine)
      fine = error;
  }
  rt::Status check() override { return fine; }

private:
  /// Errors of functions are no matter of the tensors.
  rt::Status keep(rt::Status status) {
    if (!status && status.error().kind == rt::ErrorKind::Unknown)
      status = rt::Error(status.error()).as(rt::ErrorKind::Driver);
    if (fine && !status)
      fine = status;
    return status;
  }
  rt::Status named(int64_t number, rt::Status status) const {
    if (status)
      return status;
    rt::Error error = status.error();
    error.message = names->exchange(number) + ": " + error.message;
    return error;
  }
  TransportFunctions functions;
  std::shared_ptr<const PlanNames> names;
  rt::Status fine;
};
} // namespace

MadeTransport attn::makeCallbackTransport(int64_t rank, int64_t ranks, TransportFunctions functions) {
  if (rt::Status right = checkRank(rank, ranks); !right)
    return right.error();
  return std::unique_ptr<Transport>(std::make_unique<CallbackTransport>(rank, ranks, std::move(functions)));
}
