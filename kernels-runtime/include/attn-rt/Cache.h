// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled kernels by content. Two levels: a map in this process (microseconds)
// in front of a directory that many processes, containers and machines may
// share (a few milliseconds). Whatever is wrong with the directory, `get` gives
// the right kernel; the worst that can happen is a compile and one line of
// warning.
//
//   <root>/v3/<kernel>-<digest>/
//       kernel.cu|kernel.cpp     the source
//       kernel.cubin|kernel.so   the code
//       artifact.json            argument list, grid, shared memory
//       build.log                what the compiler said
//       entry.json               key; length and SHA-256 of each file; checksum
//   <root>/v3/.tmp/<pid>-<where>-<rand>/
//       entries being built or thrown away; swept when their process is dead
//   <root>/v3/.compilers/<digest>
//       version text by identity of the compiler's file (saves opening NVRTC)
//   <root>/failures/<kernel>-<digest>/
//       reproducers of failed compiles, the newest 50
//
// Key: SHA-256 of source, header digest, library build, compiler kind and
// version, target, flags, CPU features (host only). An entry is written to
// .tmp, synced and renamed into place as a whole; a process that finds a good
// entry already there drops its own. Nothing is locked while compiling. Entries
// that are incomplete, truncated or altered are rebuilt and replaced.
//
// Read-only roots ($ATTN_CACHE_READONLY_DIRS) lie below the user's: an entry that
// <root> has not, or has only damaged, is looked for there, in order. A hit there
// is a disk hit and is not copied. Nothing there is written, locked, touched,
// repaired or removed; what is bad there is passed over, and built into <root>.
//
// Only what nobody but this user, root and the users in $ATTN_CACHE_TRUST can
// have written is read (lib/Trust.h has the rules); the rest is passed over, with
// one warning in a process. What is written has mode 0700 or 0600.
//
#ifndef ATTN_RT_CACHE_H
#define ATTN_RT_CACHE_H

#include "attn-rt/Artifact.h"
#include "attn-rt/Compiler.h"
#include "attn-rt/Result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn::rt {

struct CacheOptions {
  std::string root;                       ///< absolute or relative directory; empty: no disk, memory only
  uint64_t maxBytes = 1ull << 30;         ///< of all entries together; least recently
                                          ///< used go first. 0: no disk
  std::string libraryBuild;               ///< part of the key; empty: the build id of attn_rt
  std::vector<std::string> readOnlyRoots; ///< looked in after `root`, in order; one that
                                          ///< is `root` itself does not count

  /// Root: $ATTN_CACHE_DIR, else $XDG_CACHE_HOME/attnc, else ~/.cache/attnc.
  /// Bound: $ATTN_CACHE_SIZE (bytes, or with K, M, G). Read-only roots:
  /// $ATTN_CACHE_READONLY_DIRS, with colons between them.
  static CacheOptions fromEnvironment();
};

/// Version of this library and of what its kernels and launchers agree on.
std::string libraryBuild();

/// "4096", "64K", "200M", "1G" in bytes; empty where the text is no such size.
std::optional<uint64_t> parseSize(std::string_view text);

/// A kernel ready to be loaded. Immutable and shared.
struct CompiledKernel {
  enum class Origin { Compiled, Disk };
  Artifact artifact; ///< the caller's, with source
  std::string binary;
  std::string log; ///< of the compile; empty when it came from disk
  ResourceReport report;
  std::string directory; ///< of its entry, in whichever root; empty when the disk doesn't hold it
  std::string digest;    ///< 64 hex digits
  Origin origin = Origin::Compiled;
};

/// Counts since the Cache was made.
struct CacheStats {
  uint64_t memoryHits = 0, diskHits = 0, compiles = 0;
  uint64_t repairs = 0;     ///< bad entries that were rebuilt
  uint64_t lostRaces = 0;   ///< somebody else published the same entry first
  uint64_t unpublished = 0; ///< compiled, but the disk wouldn't take it
  uint64_t evicted = 0;
};

/// The parts of a key by name, in a fixed order: kind, compiler, target, flags,
/// machine, headers, library, source.
using KeyFields = std::vector<std::pair<std::string, std::string>>;

/// What `attn-cache` shows of an entry.
struct EntryInfo {
  std::string directory; ///< full path
  std::string kernel;
  std::string digest;
  uint64_t bytes = 0;
  int64_t usedAt = 0; ///< seconds since 1970
  int64_t builtAt = 0;
  ResourceReport report;
  KeyFields key;
  std::string problem; ///< why it isn't valid; empty when it is (only deep
                       ///< checks read every file)
};

/// A root with its entries, least recently used first.
struct CacheRoot {
  std::string path;
  bool readOnly = false;
  std::string problem; ///< why nothing in it is read: it is not there, or others may write to it
  std::vector<EntryInfo> entries;
};

class Cache {
public:
  explicit Cache(CacheOptions options = CacheOptions::fromEnvironment());
  ~Cache();
  Cache(const Cache &) = delete;
  Cache &operator=(const Cache &) = delete;

  /// Adds files to the reproducer of a failed compile: name and text, e.g.
  /// {"problem.mlir", ...}. Called only on failure.
  using Reproducer = std::function<std::vector<std::pair<std::string, std::string>>()>;

  /// The compiled artifact, from memory, disk or the compiler. Safe from
  /// several threads; those that want the same kernel wait for one compile.
  /// Fails only when the compiler does; the error then has the log and the path
  /// of a reproducer directory.
  Result<std::shared_ptr<const CompiledKernel>> get(const Compiler &compiler, const Artifact &artifact,
                                                    const Reproducer &extra = {});

  /// The artifact of `useless`, which `get` gave and which can't be loaded
  /// though its checksums hold, compiled anew in its place.
  Result<std::shared_ptr<const CompiledKernel>> rebuild(const Compiler &compiler, const CompiledKernel &useless,
                                                        const Reproducer &extra = {});

  /// The key under which `get` looks for the artifact.
  Result<KeyFields> keyOf(const Compiler &compiler, const Artifact &artifact) const;

  /// Why `get` would compile (or wouldn't): the fields in which the key differs
  /// from the nearest entry of the same kernel name.
  Result<std::string> explain(const Compiler &compiler, const Artifact &artifact) const;

  CacheStats stats() const;
  const std::string &root() const;
  /// Why the whole directory is neither read nor written: others may write to
  /// it. Empty where it is used.
  std::string whyPassedOver() const;

  /// The entries of `root()`, least recently used first; `deep` reads and
  /// checks every file.
  std::vector<EntryInfo> list(bool deep = false) const;
  /// `root()`, if there is one, and the read-only roots, in the order in which `get` looks.
  std::vector<CacheRoot> roots(bool deep = false) const;
  /// Removes bad entries and stale temporaries; returns how many entries went.
  int removeBad();
  /// Removes least recently used entries until at most `maxBytes` are left;
  /// returns how many went.
  int prune(uint64_t maxBytes);
  /// Tells how an entry's key differs from the nearest other entry of its
  /// kernel; one line per field, empty when alone.
  std::string compare(const EntryInfo &entry, const std::vector<EntryInfo> &all) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace attn::rt

#endif // ATTN_RT_CACHE_H
