// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL, opened at run time (libnccl.so.2), as <nccl.h> declares it.
//
#include "StreamTransport.h"
#include "attn-rt/Placement.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fmt/format.h>

using namespace attn;
using rt::DevicePtr;

namespace {
using Communicator = void *; ///< ncclComm_t
enum NcclResult { ncclSuccess = 0, ncclInProgress = 7 };
enum NcclType { ncclInt8 = 0 };
struct NcclId { ///< ncclUniqueId
  char bytes[128];
};
/// ncclConfig_t of NCCL 2.14, which later versions read by its size and version.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 0;
};
constexpr int oldest = 21400;

#define ATTN_NCCL_FUNCTIONS(X)                                                                                         \
  X(ncclGetVersion, (int *version))                                                                                    \
  X(ncclGetUniqueId, (NcclId * id))                                                                                    \
  X(ncclCommInitRankConfig, (Communicator * communicator, int ranks, NcclId id, int rank, NcclConfig *config))         \
  X(ncclCommDestroy, (Communicator communicator))                                                                      \
  X(ncclCommAbort, (Communicator communicator))                                                                        \
  X(ncclCommGetAsyncError, (Communicator communicator, int *result))                                                   \
  X(ncclCommCount, (Communicator communicator, int *ranks))                                                            \
  X(ncclCommUserRank, (Communicator communicator, int *rank))                                                          \
  X(ncclCommCuDevice, (Communicator communicator, int *device))                                                        \
  X(ncclAllGather, (const void *own, void *all, size_t count, int type, Communicator communicator, rt::Stream stream)) \
  X(ncclSend, (const void *data, size_t count, int type, int to, Communicator communicator, rt::Stream stream))        \
  X(ncclRecv, (void *data, size_t count, int type, int from, Communicator communicator, rt::Stream stream))            \
  X(ncclGroupStart, ())                                                                                                \
  X(ncclGroupEnd, ())

struct Nccl {
#define ATTN_NCCL_FIELD(name, parameters) int(*name) parameters;
  ATTN_NCCL_FUNCTIONS(ATTN_NCCL_FIELD)
#undef ATTN_NCCL_FIELD
  const char *(*ncclGetErrorString)(int result) = nullptr;

  static rt::Result<const Nccl *> get();
  rt::Error error(const char *function, int result) const {
    return rt::Error{fmt::format("`{}` failed: {}", function, ncclGetErrorString(result))}.as(rt::ErrorKind::Driver);
  }
};

class NcclTransport final : public StreamTransport {
public:
  NcclTransport(int64_t rank, int64_t ranks, const Nccl &nccl, double timeout)
      : StreamTransport(rank, ranks, timeout), nccl(nccl) {}
  ~NcclTransport() override;
  rt::Status connect(const char *id);
  rt::Status connect(Communicator theirs);
  rt::Result<std::vector<std::string>> allGather(llvm::StringRef own) override;

private:
  rt::Status allGatherBytes(const void *own, void *all, size_t bytes);
  /// Calls of a communicator that does not block may go on behind their return.
  rt::Status settle(const char *function, int result, llvm::StringRef what);
  rt::Status waitFor(llvm::function_ref<rt::Result<bool>()> isDone, llvm::StringRef what);

  rt::Result<void *> prepare(const Route *) override { return nullptr; }
  rt::Status transfer(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                      llvm::ArrayRef<MessagePart> received) override;
  rt::Status arrive(int64_t number, int64_t from, rt::Stream stream) override {
    return driver->waitEvent(stream, moved[number]);
  }
  void release() override {
    if (!isOwn)
      return;
    std::lock_guard<std::mutex> lock(inUse);
    if (Communicator own = communicator.exchange(nullptr))
      (void)nccl.ncclCommAbort(own);
  }
  std::optional<rt::Error> hearOthers() override {
    std::lock_guard<std::mutex> lock(inUse);
    int state = ncclSuccess;
    Communicator own = communicator;
    if (!own || nccl.ncclCommGetAsyncError(own, &state) || state == ncclSuccess || state == ncclInProgress)
      return {};
    return nccl.error("NCCL", state);
  }

  const Nccl &nccl;
  std::atomic<Communicator> communicator = nullptr; ///< null: aborted
  bool isOwn = false;
  std::mutex inUse;     ///< calls of the communicator, which another thread may abort
  DevicePtr buffer = 0; ///< of allGather
  size_t capacity = 0;
};
} // namespace

rt::Result<const Nccl *> Nccl::get() {
  static const rt::Result<Nccl> opened = []() -> rt::Result<Nccl> {
    void *handle = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return rt::Error{fmt::format("expected NCCL 2.14 or later, got: {}", ::dlerror())}.as(rt::ErrorKind::Driver);
    Nccl made = {};
    const char *missing = nullptr;
#define ATTN_NCCL_BIND(name, parameters)                                                                               \
  made.name = reinterpret_cast<decltype(made.name)>(::dlsym(handle, #name));                                           \
  if (!made.name && !missing)                                                                                          \
    missing = #name;
    ATTN_NCCL_FUNCTIONS(ATTN_NCCL_BIND)
#undef ATTN_NCCL_BIND
    made.ncclGetErrorString = reinterpret_cast<const char *(*)(int)>(::dlsym(handle, "ncclGetErrorString"));
    int version = 0;
    if (missing || !made.ncclGetErrorString)
      return rt::Error{fmt::format("expected NCCL 2.14 or later, got: a libnccl.so.2 without {}",
                                   missing ? missing : "ncclGetErrorString")}
          .as(rt::ErrorKind::Driver);
    if (int result = made.ncclGetVersion(&version))
      return made.error("ncclGetVersion", result);
    if (version < oldest)
      return rt::Error{fmt::format("expected NCCL 2.14 or later, got: version {}", version)}.as(rt::ErrorKind::Driver);
    return made;
  }();
  if (!opened)
    return opened.error();
  return &*opened;
}

rt::Status NcclTransport::waitFor(llvm::function_ref<rt::Result<bool>()> isDone, llvm::StringRef what) {
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout);
  while (true) {
    rt::Result<bool> done = isDone();
    if (!done)
      return setFailure(done.error());
    if (*done)
      return {};
    if (std::chrono::steady_clock::now() > end) {
      rt::Status failed = setFailure(timedOut(what));
      release();
      return failed;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

rt::Status NcclTransport::settle(const char *function, int result, llvm::StringRef what) {
  if (result != ncclSuccess && result != ncclInProgress)
    return setFailure(nccl.error(function, result));
  if (result == ncclSuccess)
    return {};
  return waitFor(
      [&]() -> rt::Result<bool> {
        std::lock_guard<std::mutex> lock(inUse);
        if (!communicator)
          return check().error();
        int state = ncclSuccess;
        if (int failed = nccl.ncclCommGetAsyncError(communicator, &state))
          return nccl.error("ncclCommGetAsyncError", failed);
        if (state != ncclSuccess && state != ncclInProgress)
          return nccl.error(function, state);
        return state == ncclSuccess;
      },
      what);
}

rt::Status NcclTransport::connect(const char *id) {
  if (rt::Status opened = open(); !opened)
    return opened;
  ::setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0); // plans need no multicast
  isOwn = true;
  NcclConfig config;
  NcclId unique;
  std::memcpy(unique.bytes, id, sizeof(unique.bytes));
  Communicator made = nullptr;
  int result = nccl.ncclCommInitRankConfig(&made, int(getRanks()), unique, int(getRank()), &config);
  communicator = made;
  return settle("ncclCommInitRankConfig", result, "all ranks to join the communicator");
}

rt::Status NcclTransport::connect(Communicator theirs) {
  communicator = theirs;
  if (rt::Status opened = open(); !opened)
    return opened;
  int device = -1;
  if (int result = nccl.ncclCommCuDevice(theirs, &device))
    return nccl.error("ncclCommCuDevice", result);
  rt::Result<int> current = driver->currentDevice();
  if (!current)
    return current.error();
  if (*current != device)
    return rt::Error{
        fmt::format("expected the communicator's device {} to be the current one, got: device {}", device, *current)};
  return {};
}

NcclTransport::~NcclTransport() {
  if (!driver)
    return;
  auto inside = rt::StreamContext::enter(*driver, communication, context);
  close();
  rt::CapturesUntouched untouched(*driver);
  bool hasFailed = !check();
  if (Communicator own = communicator; own && isOwn)
    (void)(hasFailed ? nccl.ncclCommAbort(own) : nccl.ncclCommDestroy(own));
  if (buffer)
    (void)driver->free(buffer);
}

rt::Status NcclTransport::allGatherBytes(const void *own, void *all, size_t bytes) {
  size_t needed = bytes * (getRanks() + 1);
  if (needed > capacity) {
    if (buffer)
      (void)driver->free(buffer);
    rt::Result<DevicePtr> made = driver->alloc(needed);
    buffer = made ? *made : 0, capacity = made ? needed : 0;
    if (!made)
      return setFailure(made.error());
  }
  DevicePtr gathered = buffer + bytes;
  rt::Status done = driver->copyToDeviceAsync(buffer, own, bytes, communication);
  if (!done)
    return setFailure(done.error());
  int result = ncclSuccess;
  {
    std::lock_guard<std::mutex> lock(inUse);
    if (!communicator)
      return check();
    result = nccl.ncclAllGather(reinterpret_cast<void *>(buffer), reinterpret_cast<void *>(gathered), bytes, ncclInt8,
                                communicator, communication);
  }
  const char *what = "all ranks to bind the same plan";
  if (rt::Status settled = settle("ncclAllGather", result, what); !settled)
    return settled;
  rt::Result<rt::Event> event = driver->createUntimedEvent();
  if (!event)
    return setFailure(event.error());
  done = driver->record(*event, communication);
  if (done)
    done = waitFor([&] { return driver->isReached(*event); }, what);
  (void)driver->destroyEvent(*event);
  if (done)
    done = driver->copyToHostAsync(all, gathered, bytes * getRanks(), communication);
  return done ? driver->synchronize(communication) : done;
}

rt::Result<std::vector<std::string>> NcclTransport::allGather(llvm::StringRef own) {
  if (rt::Status fine = check(); !fine)
    return fine.error();
  return allGatherTexts([&](const void *own, void *all, size_t bytes) { return allGatherBytes(own, all, bytes); },
                        getRanks(), own);
}

rt::Status NcclTransport::transfer(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                                   llvm::ArrayRef<MessagePart> received) {
  std::unique_lock<std::mutex> lock(inUse);
  if (!communicator)
    return check();
  int result = nccl.ncclGroupStart(); // at most 5 parts each way
  for (const MessagePart &part : sent)
    if (result == ncclSuccess || result == ncclInProgress)
      result = nccl.ncclSend(part.data, part.bytes, ncclInt8, int(to), communicator, communication);
  for (const MessagePart &part : received)
    if (result == ncclSuccess || result == ncclInProgress)
      result = nccl.ncclRecv(part.data, part.bytes, ncclInt8, int(from), communicator, communication);
  int ended = nccl.ncclGroupEnd();
  lock.unlock();
  bool isFine = result == ncclSuccess || result == ncclInProgress;
  return settle("ncclSend", isFine ? ended : result, "a message to begin");
}

rt::Status attn::makeNcclId(char *id) {
  rt::Result<const Nccl *> nccl = Nccl::get();
  if (!nccl)
    return nccl.error();
  NcclId made;
  if (int result = (*nccl)->ncclGetUniqueId(&made))
    return (*nccl)->error("ncclGetUniqueId", result);
  std::memcpy(id, made.bytes, sizeof(made.bytes));
  return {};
}

template <typename How>
static MadeTransport connected(int64_t rank, int64_t ranks, const Nccl &nccl, How how, double timeout) {
  auto made = std::make_unique<NcclTransport>(rank, ranks, nccl, timeout);
  if (rt::Status done = made->connect(how); !done)
    return done.error();
  return std::unique_ptr<Transport>(std::move(made));
}

MadeTransport attn::makeNcclTransport(int64_t rank, int64_t ranks, const char *id, double timeout) {
  if (rt::Status right = checkRank(rank, ranks); !right)
    return right.error();
  rt::Result<const Nccl *> nccl = Nccl::get();
  return nccl ? connected(rank, ranks, **nccl, id, timeout) : MadeTransport(nccl.error());
}

MadeTransport attn::makeNcclTransport(void *communicator, double timeout) {
  rt::Result<const Nccl *> nccl = Nccl::get();
  if (!nccl)
    return nccl.error();
  int rank = 0, ranks = 0;
  if (int result = (*nccl)->ncclCommUserRank(communicator, &rank))
    return (*nccl)->error("ncclCommUserRank", result);
  if (int result = (*nccl)->ncclCommCount(communicator, &ranks))
    return (*nccl)->error("ncclCommCount", result);
  return connected(rank, ranks, **nccl, Communicator(communicator), timeout);
}
