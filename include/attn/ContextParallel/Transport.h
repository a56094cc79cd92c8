// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the ranks of a plan reach each other.
//
#ifndef ATTN_CONTEXTPARALLEL_TRANSPORT_H
#define ATTN_CONTEXTPARALLEL_TRANSPORT_H

#include "attn-rt/Driver.h"
#include "attn-rt/Result.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace attn {

/// Memory of a message, contiguous.
struct MessagePart {
  void *data;
  size_t bytes;
};

/// What one rank receives in a plan that is bound, and where in its memory of values.
struct ReceivePlan {
  struct Message {
    int64_t number, from;
    std::vector<uint64_t> offsets; ///< of its parts, in bytes
  };
  uint64_t bytes = 0; ///< of all values
  std::vector<Message> messages;
};

/// What errors call a plan and its exchanges.
struct PlanNames {
  std::string plan;                   ///< with its `@`
  std::vector<std::string> exchanges; ///< by number, what each moves

  /// An exchange for a reader.
  std::string exchange(int64_t number) const;
};

/// The ranks of a plan as one of them sees them. All ranks call `allGather`, `route` and runs in the same order, and in
/// a run they post the same exchanges in the same order. One thread at a time uses it.
class Transport {
public:
  virtual ~Transport() = default;
  int64_t getRank() const { return rank; }
  int64_t getRanks() const { return ranks; }

  /// Every rank gives bytes, and gets those of all, by rank. Blocks.
  virtual rt::Result<std::vector<std::string>> allGather(llvm::StringRef own) = 0;

  /// Where messages of a bound plan go, for transports that write memory of other ranks.
  struct Route {
    virtual ~Route() = default;
  };
  /// Null, if the memory of values is the caller's. Otherwise `begin` says where it is. Blocks. `all`: by rank.
  virtual rt::Result<std::shared_ptr<const Route>> route(llvm::ArrayRef<ReceivePlan> all) {
    return std::shared_ptr<const Route>();
  }

  /// Begins a run, and returns the memory of values; null: the caller's. `route` may be null.
  virtual rt::Result<void *> begin(std::shared_ptr<const PlanNames> names, const Route *route, rt::Stream stream) {
    return nullptr;
  }
  /// Begins exchange `number` of a run. What is sent was computed on `stream` and does not change until `wait`; what is
  /// received is written any time after what is on `stream` now. Without parts nothing is sent, or received.
  virtual rt::Status post(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                          llvm::ArrayRef<MessagePart> received, rt::Stream stream) = 0;
  /// What is put on `stream` afterwards finds what exchange `number` received from rank `from`, if it does, and may
  /// change what it sent to rank `to`, if it does. Called if it does either.
  virtual rt::Status wait(int64_t number, std::optional<int64_t> from, std::optional<int64_t> to,
                          rt::Stream stream) = 0;
  /// Ends a run, all of whose exchanges are waited for.
  virtual rt::Status finish(rt::Stream stream) = 0;
  /// A run ends by an error of this rank, between `begin` and `finish`. Others learn of it as far as that is possible.
  virtual void abandon(const rt::Error &error) {}
  /// Is the current device the transport's?
  virtual rt::Status checkDevice() { return {}; }
  /// An error of a run that has ended. Does not block.
  virtual rt::Status check() { return {}; }

protected:
  Transport(int64_t rank, int64_t ranks) : rank(rank), ranks(ranks) {}

private:
  int64_t rank, ranks;
};

using MadeTransport = rt::Result<std::unique_ptr<Transport>>;

/// What is wrong with a rank and a number of ranks, if anything is.
rt::Status checkRank(int64_t rank, int64_t ranks);

/// Every rank gives as many bytes, and gets those of all.
using AllGather = std::function<rt::Status(const void *own, void *all, size_t bytes)>;
/// The same with any number of bytes from each rank.
rt::Result<std::vector<std::string>> allGatherTexts(const AllGather &allGather, int64_t ranks, llvm::StringRef own);

/// Functions of a caller (attn-c/Plan.h).
struct TransportFunctions {
  AllGather allGather;
  std::function<rt::Status(int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                           llvm::ArrayRef<MessagePart> received, rt::Stream stream)>
      post;
  std::function<rt::Status(int64_t number, rt::Stream stream)> wait;
  std::function<rt::Status(rt::Stream stream)> finish;
};
MadeTransport makeCallbackTransport(int64_t rank, int64_t ranks, TransportFunctions functions);

/// GPUs of one host that access each other's memory, in one process or in several. Uses the current context. A run
/// that takes longer than `timeout` seconds is an error.
MadeTransport makePeerTransport(int64_t rank, int64_t ranks, AllGather allGather, double timeout);

/// NCCL, opened at run time.
rt::Status makeNcclId(char *id);
/// With a communicator of its own for the device of the current context.
MadeTransport makeNcclTransport(int64_t rank, int64_t ranks, const char *id, double timeout);
/// With an ncclComm_t that the caller keeps.
MadeTransport makeNcclTransport(void *communicator, double timeout);

} // namespace attn

#endif // ATTN_CONTEXTPARALLEL_TRANSPORT_H
