// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inside of Cache: Cache.cpp has the way of a kernel, CacheAdmin.cpp what tools
// do with the directory.
//
#ifndef ATTN_RT_LIB_CACHEIMPL_H
#define ATTN_RT_LIB_CACHEIMPL_H

#include "Entry.h"
#include "Trust.h"
#include "attn-rt/Cache.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <unistd.h>

namespace attn::rt {

/// "<root>/v3".
std::string entriesOf(const std::string &root);
/// That folder, open and checked.
Folder findEntriesOf(const std::string &root, Missing missing);

struct Cache::Impl {
  using Made = Result<std::shared_ptr<const CompiledKernel>>;

  /// A kernel that is there, or that one thread is making while others wait.
  struct Slot {
    pid_t maker = ::getpid(); ///< in a forked child nobody is making it
    std::mutex mutex;
    std::condition_variable ready;
    std::atomic<bool> done{false};
    std::optional<Made> result;
  };

  /// An entry that can be used, and where it is.
  struct Found {
    EntryContent content;
    std::string directory;
  };

  CacheOptions options;
  std::string versionRoot; ///< "<root>/v3", empty without a disk
  std::mutex mutex;        ///< of slots and versions; never held while something is
                           ///< read or compiled
  std::unordered_map<std::string, std::shared_ptr<Slot>> slots;
  std::map<std::string, std::string> versions;
  std::atomic<bool> warned{false}, swept{false};
  struct {
    std::atomic<uint64_t> memoryHits{0}, diskHits{0}, compiles{0}, repairs{0}, lostRaces{0}, unpublished{0}, evicted{0};
  } counters;

  Result<std::string> versionOf(const Compiler &compiler);
  Result<KeyFields> keyOf(const Compiler &compiler, const Artifact &artifact);
  /// What `get` and `rebuild` have in common; `useless`: not this one, which can't be loaded.
  Made obtain(const Compiler &compiler, const Artifact &artifact, const Reproducer &extra,
              const CompiledKernel *useless);
  /// From disk or from the compiler.
  Made make(const Compiler &compiler, const Artifact &artifact, const Reproducer &extra, const CompiledKernel *useless);
  void publish(const Compiler &compiler, CompiledKernel &kernel, const KeyFields &key, const std::string &name,
               const CompiledKernel *useless);
  /// The folder of entries, open and checked: not open where there is none.
  Folder findEntries(Missing missing) const;
  /// The same, which says once if it is passed over.
  Folder openEntries(Missing missing) const;
  /// The entry in the first read-only root that has a good one. `passedOver` gets
  /// a line for each that is no good.
  std::optional<Found> findReadOnly(const std::string &name, std::string_view digest, std::string_view wanted,
                                    std::vector<std::string> &passedOver) const;
  bool hasDisk() const { return !versionRoot.empty() || !options.readOnlyRoots.empty(); }
  Error failed(const Compiler &compiler, const Artifact &artifact, const std::string &name, Error error,
               const Reproducer &extra);
  void warnOnce(std::string_view why);

  /// One line: in which fields the key differs from the nearest entry of this
  /// name.
  std::string whyMissing(const Artifact &artifact, const KeyFields &key) const;
  /// The entries of `kernel` in all roots.
  std::vector<EntryInfo> entriesNamed(std::string_view kernel) const;
  /// Removes least recently used entries except `keep` until at most `maxBytes`
  /// are left.
  int evict(uint64_t maxBytes, const std::string &keep);
};

} // namespace attn::rt

#endif // ATTN_RT_LIB_CACHEIMPL_H
