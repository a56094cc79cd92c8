// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// GPUs of one host that access each other's memory. Copy engines move messages, and words in memory say how far ranks
// are. A word is 0 or 1, so a run can be captured in a graph: no number counts runs.
//
//   ready[r][n]  of this rank: rank r has room for exchange n from here. r writes 1 where it posts the exchange, this
//                rank 0 ahead of the message.
//   arrived[n]   of this rank: exchange n is here. The sender writes 1 behind it, this rank 0 where it waits.
//
// r writes ready[r][n] again in a later run, when it has had exchange n of this one, so the word has been read. Another
// plan may send exchange n to another rank, which may be a run ahead: it has a word of its own.
// Streams wait and write these words, which takes no multiprocessor: kernels of the rank cannot hold up its messages.
//
#include "StreamTransport.h"
#include "attn-rt/Placement.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <unistd.h>

using namespace attn;
using rt::DevicePtr;

static constexpr int64_t exchanges = 8192;        ///< of a plan, at most
static constexpr size_t granularity = 2ull << 20; ///< of memory: an allocation of its own, whose handle begins with it

namespace {
/// Memory of a rank as others see it. Plain data, which travels.
struct Shared {
  rt::MemoryHandle handle;
  DevicePtr address = 0; ///< in its own process
  uint64_t context = 0;
  int64_t process = 0;
  char host[40] = {};
};

class PeerTransport final : public StreamTransport {
public:
  PeerTransport(int64_t rank, int64_t ranks, AllGather allGather, double timeout)
      : StreamTransport(rank, ranks, timeout), gather(std::move(allGather)), controls(ranks), values(ranks),
        capacity(ranks), told(rank + 1) {}
  ~PeerTransport() override;
  rt::Status connect();

  rt::Result<std::vector<std::string>> allGather(llvm::StringRef own) override {
    if (rt::Status fine = check(); !fine)
      return fine.error();
    auto all = allGatherTexts(gather, getRanks(), own);
    if (!all)
      (void)setFailure(all.error());
    return all;
  }
  rt::Result<std::shared_ptr<const Route>> route(llvm::ArrayRef<ReceivePlan> all) override {
    auto made = findRoute(all);
    if (!made) // memory may be of other sizes than ranks think
      return setFailure(made.error()).error();
    return made;
  }

private:
  struct PeerRoute : Route {
    std::map<int64_t, std::vector<uint64_t>> offsets; ///< by exchange: in the receiver's values
  };
  DevicePtr wordOf(int64_t rank, int64_t line, int64_t number) const {
    return controls[rank] + 4 * (line * exchanges + number);
  }
  DevicePtr readyOf(int64_t rank, int64_t receiver, int64_t number) const { return wordOf(rank, receiver, number); }
  DevicePtr arrivedOf(int64_t rank, int64_t number) const { return wordOf(rank, getRanks(), number); }
  DevicePtr failedOf(int64_t rank) const { return wordOf(rank, getRanks() + 1, 0); }

  /// The error of the first rank that has one, on all ranks. Blocks.
  rt::Status agree(const rt::Status &own);
  rt::Result<std::shared_ptr<const Route>> findRoute(llvm::ArrayRef<ReceivePlan> all);
  /// Allocates memory in which other ranks write, all of it 0.
  rt::Result<DevicePtr> allocate(size_t bytes);
  rt::Result<Shared> share(DevicePtr memory) const;
  rt::Result<DevicePtr> open(const Shared &shared) const;
  void closeOthers(std::vector<DevicePtr> &memory);
  /// Gives memory to all ranks, and opens theirs where `isChanged`.
  rt::Status exchange(rt::Result<DevicePtr> own, llvm::ArrayRef<bool> isChanged, std::vector<DevicePtr> &memory);

  rt::Result<void *> prepare(const Route *route) override;
  rt::Status offer(int64_t number, int64_t from, rt::Stream stream) override {
    return driver->writeValue(stream, readyOf(from, getRank(), number), 1);
  }
  rt::Status transfer(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                      llvm::ArrayRef<MessagePart> received) override;
  rt::Status arrive(int64_t number, int64_t from, rt::Stream stream) override;
  void release() override {
    (void)driver->fill(controls[getRank()], 1, failedOf(getRank()) - controls[getRank()], rescue);
    (void)driver->synchronize(rescue);
  }
  void tellOthers() override;
  std::optional<rt::Error> hearOthers() override;

  AllGather gather;
  std::vector<DevicePtr> controls, values; ///< by rank; of others as this process reaches them
  std::vector<char> isOpened;
  std::vector<uint64_t> capacity; ///< of values, by rank
  std::vector<DevicePtr> retired; ///< values that a graph may still use
  std::vector<DevicePtr> kept;    ///< the same of other ranks, opened here
  bool wasCaptured = false;
  const PeerRoute *current = nullptr;
  uint32_t told; ///< what other ranks are told when this one fails
};
} // namespace

static std::string readHost() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

rt::Status PeerTransport::agree(const rt::Status &own) {
  std::string text;
  if (!own)
    text = char('0' + int(own.error().kind)) + own.error().str();
  auto all = allGather(text);
  if (!all)
    return own ? all.status() : own;
  if (!own) // what went wrong here says most
    return own;
  for (auto [rank, said] : llvm::enumerate(*all))
    if (!said.empty())
      return rt::Error{fmt::format("rank {}: {}", rank, said.substr(1))}.as(rt::ErrorKind(said[0] - '0'));
  return {};
}

rt::Result<DevicePtr> PeerTransport::allocate(size_t bytes) {
  rt::Result<DevicePtr> memory = driver->alloc(llvm::alignTo(std::max<size_t>(bytes, 1), granularity));
  if (!memory)
    return memory;
  rt::Status done = driver->fill(*memory, 0, bytes, rescue);
  if (done)
    done = driver->synchronize(rescue);
  return done ? memory : rt::Result<DevicePtr>(done.error());
}

rt::Result<Shared> PeerTransport::share(DevicePtr memory) const {
  Shared shared;
  if (rt::Result<rt::MemoryHandle> handle = driver->handleOf(memory))
    shared.handle = *handle;
  else
    return handle.error();
  shared.address = memory, shared.context = reinterpret_cast<uint64_t>(context), shared.process = ::getpid();
  std::string host = readHost();
  host.copy(shared.host, sizeof(shared.host) - 1);
  return shared;
}

rt::Result<DevicePtr> PeerTransport::open(const Shared &shared) const {
  if (shared.process != ::getpid())
    return driver->openHandle(shared.handle);
  auto other = reinterpret_cast<rt::Context>(shared.context);
  if (other != context)
    if (rt::Status done = driver->enablePeerAccess(other); !done)
      return done.error();
  return shared.address;
}

void PeerTransport::closeOthers(std::vector<DevicePtr> &memory) {
  for (int64_t rank = 0; rank < getRanks(); ++rank)
    if (memory[rank] && isOpened[rank])
      (void)driver->closeHandle(memory[rank]), memory[rank] = 0;
}

rt::Status PeerTransport::exchange(rt::Result<DevicePtr> own, llvm::ArrayRef<bool> isChanged,
                                   std::vector<DevicePtr> &memory) {
  rt::Status right = own.status();
  Shared mine;
  if (right && isChanged[getRank()]) {
    memory[getRank()] = *own;
    if (rt::Result<Shared> shared = share(*own))
      mine = *shared;
    else
      right = shared.status();
  }
  if (rt::Status all = agree(right); !all)
    return all;
  std::vector<Shared> shared(getRanks());
  if (rt::Status done = gather(&mine, shared.data(), sizeof(mine)); !done)
    return setFailure(done.error());
  for (int64_t rank = 0; right && rank < getRanks(); ++rank) {
    if (rank == getRank() || !isChanged[rank])
      continue;
    if (llvm::StringRef(shared[rank].host) != readHost()) {
      right = rt::Error{fmt::format("expected ranks on one host, got: rank {} on another one", rank)};
      continue;
    }
    isOpened[rank] = shared[rank].process != ::getpid();
    if (rt::Result<DevicePtr> opened = open(shared[rank])) {
      memory[rank] = *opened;
    } else {
      rt::Error error = opened.error();
      error.message = fmt::format("expected access to the memory of rank {}, got: {}", rank, error.message);
      right = error;
    }
  }
  return agree(right);
}

rt::Status PeerTransport::connect() {
  rt::Status opened = StreamTransport::open();
  isOpened.assign(getRanks(), false);
  rt::Result<DevicePtr> memory =
      opened ? allocate(4 * ((getRanks() + 1) * exchanges + 1)) : rt::Result<DevicePtr>(opened.error());
  return exchange(memory, llvm::SmallVector<bool>(getRanks(), true), controls);
}

PeerTransport::~PeerTransport() {
  if (!driver)
    return;
  auto inside = rt::StreamContext::enter(*driver, communication, context);
  close();
  rt::CapturesUntouched untouched(*driver);
  closeOthers(controls), closeOthers(values);
  for (DevicePtr memory : kept)
    (void)driver->closeHandle(memory);
  for (DevicePtr memory : {controls[getRank()], values[getRank()]})
    if (memory)
      (void)driver->free(memory);
  for (DevicePtr memory : retired)
    (void)driver->free(memory);
}

rt::Result<std::shared_ptr<const Transport::Route>> PeerTransport::findRoute(llvm::ArrayRef<ReceivePlan> all) {
  auto made = std::make_shared<PeerRoute>();
  for (const ReceivePlan &plan : all)
    for (const ReceivePlan::Message &message : plan.messages) {
      if (message.number >= exchanges)
        return rt::Error{fmt::format("expected up to {} exchanges in a plan, got: more", exchanges)};
      if (message.from == getRank())
        made->offsets[message.number] = message.offsets;
    }
  // Memory grows to a power of two. All ranks know whose does.
  llvm::SmallVector<bool> grows(getRanks(), false);
  bool anyGrows = false;
  for (auto [rank, plan] : llvm::enumerate(all))
    if (plan.bytes > capacity[rank]) {
      capacity[rank] = std::max<uint64_t>(llvm::PowerOf2Ceil(plan.bytes), granularity);
      grows[rank] = anyGrows = true;
    }
  if (!anyGrows)
    return std::shared_ptr<const Route>(made);
  bool isRetired = wasCaptured && values[getRank()];
  rt::Status done = driver->synchronizeContext();
  for (int64_t rank = 0; rank < getRanks(); ++rank) // no rank frees memory that another one has open
    if (grows[rank] && isOpened[rank] && values[rank]) {
      wasCaptured ? kept.push_back(values[rank]) : void(driver->closeHandle(values[rank]));
      values[rank] = 0;
    }
  if (rt::Status all = agree(done); !all)
    return all.error();
  rt::Result<DevicePtr> memory = values[getRank()];
  if (grows[getRank()]) {
    if (isRetired)
      retired.push_back(values[getRank()]);
    else if (values[getRank()])
      (void)driver->free(values[getRank()]);
    values[getRank()] = 0;
    memory = allocate(capacity[getRank()]);
  }
  if (rt::Status all = exchange(memory, grows, values); !all)
    return all.error();
  return std::shared_ptr<const Route>(made);
}

rt::Result<void *> PeerTransport::prepare(const Route *route) {
  current = static_cast<const PeerRoute *>(route);
  wasCaptured |= isCaptured();
  return reinterpret_cast<void *>(values[getRank()]);
}

rt::Status PeerTransport::transfer(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t,
                                   llvm::ArrayRef<MessagePart>) {
  if (sent.empty())
    return {};
  auto found = current->offsets.find(number);
  if (found == current->offsets.end() || found->second.size() != sent.size())
    return rt::Error{fmt::format("expected rank {} to receive {} parts in exchange {}, got: {}", to, sent.size(),
                                 number, found == current->offsets.end() ? 0 : found->second.size())};
  rt::Status done = driver->waitForValue(communication, readyOf(getRank(), to, number), 1);
  if (done)
    done = driver->writeValue(communication, readyOf(getRank(), to, number), 0);
  for (auto [part, offset] : llvm::zip_equal(sent, found->second))
    if (done)
      done = driver->copyOnDevice(values[to] + offset, DevicePtr(part.data), part.bytes, communication);
  return done ? driver->writeValue(communication, arrivedOf(to, number), 1) : done;
}

rt::Status PeerTransport::arrive(int64_t number, int64_t, rt::Stream stream) {
  rt::Status done = driver->waitForValue(stream, arrivedOf(getRank(), number), 1);
  return done ? driver->writeValue(stream, arrivedOf(getRank(), number), 0) : done;
}

void PeerTransport::tellOthers() {
  for (int64_t rank = 0; rank < getRanks(); ++rank)
    if (rank != getRank() && controls[rank])
      (void)driver->writeValue(rescue, failedOf(rank), told);
}

std::optional<rt::Error> PeerTransport::hearOthers() {
  uint32_t failed = 0;
  if (!driver->copyToHostAsync(&failed, failedOf(getRank()), sizeof(failed), rescue) || !driver->synchronize(rescue) ||
      failed == 0)
    return {};
  return rt::Error{fmt::format("expected all ranks to run the plan, got: rank {} failed", failed - 1)};
}

MadeTransport attn::makePeerTransport(int64_t rank, int64_t ranks, AllGather allGather, double timeout) {
  if (rt::Status right = checkRank(rank, ranks); !right)
    return right.error();
  auto made = std::make_unique<PeerTransport>(rank, ranks, std::move(allGather), timeout);
  if (rt::Status done = made->connect(); !done)
    return done.error();
  return std::unique_ptr<Transport>(std::move(made));
}
