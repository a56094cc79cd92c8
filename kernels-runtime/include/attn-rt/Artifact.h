// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lib/Target hands to the runtime for one kernel: its source, and everything needed to compile and launch it.
// Plain data, without MLIR or CUDA.
//
#ifndef ATTN_RT_ARTIFACT_H
#define ATTN_RT_ARTIFACT_H

#include "attn-rt/Result.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn::rt {

/// Raised whenever the meaning of a field below or of the kernel's argument
/// list changes. Artifacts of another version are refused, cache entries of
/// another version are not seen.
inline constexpr int kAbiVersion = 9;

/// One argument of the kernel, in the order of its C signature. Launching takes
/// `void *const *args`; `args[i]` points at a value of this kind (as
/// `cuLaunchKernelEx` has it), on the host for Pointer too: `args[i]` is the
/// address of a device pointer. What the values are, the program says (attn-rt/Program.h).
///
/// TensorMap: a CUtensorMap by value (`const __grid_constant__`); what it shows is in TensorMap.h. Queue: a pointer to
/// a counter that is 0 between launches. A persistent kernel draws work tiles from it, a segments kernel finds the CTA
/// that finishes last, and cooperative CTAs (`metadata.cooperative_loop`) form their group. The caller gives 8 bytes
/// that `launch` (or `run`) fills in.
struct Param {
  enum class Kind { Pointer, I32, I64, F32, TensorMap, Queue };
  std::string name;
  Kind kind = Kind::Pointer;
};

struct Artifact {
  int abiVersion = kAbiVersion;
  std::string name;   ///< of the problem; names the cache entry, so keep it short
                      ///< and readable
  std::string entry;  ///< symbol: the kernel on a GPU, `<entry>_block` in a host object
  std::string target; ///< "cpu", "sm_80", "sm_90a", "sm_100a"
  std::string source; ///< what the printer printed
  std::vector<Param> params;
  int threads = 0;   ///< per block
  int smemBytes = 0; ///< dynamic shared memory per block; 0 on the cpu
  int minBlocks = 1; ///< per multiprocessor, as promised to the compiler
  int clusters = 1;  ///< blocks per cluster, compiled into the kernel
                     ///< (`__cluster_dims__`); the launch only rounds to it
  /// Launched with programmatic stream serialisation: the kernel itself waits for preceding ones (griddepcontrol.wait).
  bool follows = false;
  bool persistent = false;      ///< fewer CTAs than blocks of work, which share them
  bool clusterPerBlock = false; ///< a block of work is a whole cluster's
  /// Free key/value pairs for tools ("tile.schedule", "mask", ...); nobody
  /// decides anything by them.
  std::vector<std::pair<std::string, std::string>> notes;

  bool isHost() const { return target == "cpu"; }

  /// CTAs that a launch starts for so many blocks of work: whole
  /// clusters, and of a persistent kernel no more than run at once, since each of
  /// them stays until all work is dealt out.
  int64_t blocksToStart(int64_t blocks, int multiprocessors) const {
    int64_t cluster = std::max(clusters, 1);
    if (clusterPerBlock)
      return blocks * cluster;
    int64_t all = (blocks + cluster - 1) / cluster * cluster;
    int64_t resident = blocksAtOnce(multiprocessors) / cluster * cluster;
    return persistent ? std::min(all, std::max(resident, cluster)) : all;
  }
  /// Blocks that run at the same time, as far as the compiler was promised.
  int64_t blocksAtOnce(int multiprocessors) const { return static_cast<int64_t>(multiprocessors) * minBlocks; }

  /// JSON text, two-space indented. Without `withSource` the source is left out
  /// (a cache entry holds it as a file of its own).
  std::string toJson(bool withSource = true) const;
  /// Unknown fields are ignored; a missing or mistyped one and another ABI
  /// version are errors that name it.
  static Result<Artifact> fromJson(std::string_view text);
};

/// "pointer", "i32", "i64", "f32", "tensor_map", "queue".
std::string_view toString(Param::Kind kind);

} // namespace attn::rt

#endif // ATTN_RT_ARTIFACT_H
