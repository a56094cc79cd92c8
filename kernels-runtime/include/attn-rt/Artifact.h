// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one header that the compiler (lib/Target) and the runtime share: a
// printed kernel and everything needed to compile and launch it. Plain data; it
// knows neither MLIR nor CUDA.
//
#ifndef ATTN_RT_ARTIFACT_H
#define ATTN_RT_ARTIFACT_H

#include "attn-rt/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn::rt {

/// Raised whenever the meaning of a field below or of the kernel's argument
/// list changes. Artifacts of another version are refused, cache entries of
/// another version are not seen.
inline constexpr int kAbiVersion = 1;

/// One argument of the kernel, in the order of its C signature. Launching takes
/// `void *const *args`; `args[i]` points at a value of this kind (as
/// `cuLaunchKernel` has it), on the host for Pointer too: `args[i]` is the
/// address of a device pointer.
struct Param {
  enum class Kind { Pointer, I32, I64, F32 };
  std::string name;
  Kind kind = Kind::Pointer;
};

/// How many blocks a launch has: one per query tile and query head.
///   dense:  heads * batch * ceil(seqlen_q / qTile)
///   packed: heads * (floor(total_q / qTile) + batch + 2); tiles of all
///   sequences, their padding, and the padding before and
///           after them, an upper bound that needs only static sizes
///           (contract/verbs.md, `find_sequence`).
struct GridRule {
  bool packed = false;
  int qTile = 0;
  int heads = 0;

  /// `queries` is seqlen_q of a dense problem, total_q (rows in the buffer) of
  /// a packed one.
  int64_t blocks(int64_t batch, int64_t queries) const {
    int64_t tiles = packed ? queries / qTile + batch + 2 : batch * ((queries + qTile - 1) / qTile);
    return heads * tiles;
  }
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
  GridRule grid;
  /// Free key/value pairs for tools ("tile.config", "mask", ...); nobody
  /// decides anything by them.
  std::vector<std::pair<std::string, std::string>> notes;

  bool isHost() const { return target == "cpu"; }

  /// JSON text, two-space indented. Without `withSource` the source is left out
  /// (a cache entry holds it as a file of its own).
  std::string toJson(bool withSource = true) const;
  /// Unknown fields are ignored; a missing or mistyped one and another ABI
  /// version are errors that name it.
  static Result<Artifact> fromJson(std::string_view text);
};

/// "pointer", "i32", "i64", "f32".
std::string_view toString(Param::Kind kind);

} // namespace attn::rt

#endif // ATTN_RT_ARTIFACT_H
