// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one header that the compiler (lib/Target) and the runtime share: a
// printed kernel and everything needed to compile and launch it. Plain data; it
// knows neither MLIR nor CUDA.
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
inline constexpr int kAbiVersion = 8;

/// One argument of the kernel, in the order of its C signature. Launching takes
/// `void *const *args`; `args[i]` points at a value of this kind (as
/// `cuLaunchKernelEx` has it), on the host for Pointer too: `args[i]` is the
/// address of a device pointer.
///
/// TensorMap: a CUtensorMap by value (`const __grid_constant__`), called
/// `<tensor>_map`; what it shows is in TensorMap.h. Queue: a pointer to a counter
/// that is 0 between launches, from which a persistent kernel draws its tiles, or by
/// which a kernel of rows knows the last, or by which blocks of a team (`tile.together`) find
/// each other; the caller gives 8 bytes that `launch` (or
/// `run`) fills in. An I32 called `blocks` is what
/// `GridRule::blocks` gives, one called `splits` what `GridRule::splitsFor` does.
struct Param {
  enum class Kind { Pointer, I32, I64, F32, TensorMap, Queue };
  std::string name;
  Kind kind = Kind::Pointer;
  int boxRows = 0; ///< of a TensorMap: rows that one copy brings, up to 256
  int boxCols = 0; ///< and its columns, of 2 bytes: up to 64 in multiples of 8
  int boxHeads = 1; ///< and its heads, whose rows take turns
};

/// How many blocks a launch has: one per query tile and query head.
///   dense:  heads * batch * ceil(seqlen_q / qTile)
///   packed: heads * (floor(total_q / qTile) + batch + 2); tiles of all
///   sequences, their padding, and the padding before and
///           after them, an upper bound that needs only static sizes
///           (contract/verbs.md, `find_sequence`).
///
///   rows:   batch, each a cluster of `Artifact::clusters` blocks
///   by sequence: heads * batch * sequenceTiles tiles, a block each, or, in streaming kernels, `warps` of them
///           a block; sequences with more rows than that take several turns. (Of a packed batch of 0 as of
///           one of 1, which has padding to write.)
///
/// With `keys` tiles are of keys and heads are kv heads; all else is the same. Where only sequences of
/// more than `longerQ` queries or `longerKv` keys have tiles, batch is how many of them there can be: of a dense batch all or none.
///
/// A persistent kernel has as many blocks of work; fewer blocks of threads
/// (`Artifact::blocksToStart`) share them. Where the keys of a query tile go to several
/// blocks (`splits`), there are so many times as many.
struct GridRule {
  bool packed = false;
  int qTile = 0;
  int heads = 0;
  bool persistent = false;
  bool rows = false;
  int splits = 1; ///< parts of a query tile's keys; 0: as many as fill the machine
  bool keys = false;
  int sequenceTiles = 0; ///< of each sequence, by its number; 0: tiles are the grid's
  int warps = 1;         ///< of a streaming kernel's block, if each has a query tile of its own
  int longerQ = 0, longerKv = 0; ///< both 0: all sequences have tiles
  int most = 0;                  ///< blocks, which then take turns; 0: as many as there are tiles

  /// Is the kernel for some sequences only? Others' results are other kernels'.
  bool hasLimit() const { return longerQ != 0 || longerKv != 0; }
  /// Of a batch in buffers of so many rows, sequences that may have tiles.
  int64_t sequences(int64_t batch, int64_t rowsQ, int64_t rowsKv) const {
    if (!hasLimit())
      return batch;
    if (!packed)
      return rowsQ > longerQ || rowsKv > longerKv ? batch : 0;
    return std::min(batch, rowsQ / (longerQ + 1) + rowsKv / (longerKv + 1));
  }

  /// Of one head; `queries` is seqlen_q of a dense problem, total_q (rows in the buffer) of
  /// a packed one.
  int64_t tiles(int64_t batch, int64_t queries) const {
    return packed ? queries / qTile + batch + 2 : batch * ((queries + qTile - 1) / qTile);
  }
  /// `parts` of a kernel that merges is 1.
  int64_t blocks(int64_t batch, int64_t queries, int parts = 1) const {
    if (rows)
      return batch;
    if (sequenceTiles)
      return (heads * std::max<int64_t>(batch, packed) * sequenceTiles + warps - 1) / warps;
    int64_t all = heads * tiles(batch, queries) * parts;
    return most ? std::min<int64_t>(all, most) : all;
  }

  /// The parts for a launch on a machine that runs `atOnce` blocks at the same time:
  /// `splits`, or the fewest with which blocks come close to filling it, `keys`
  /// (of a sequence) allowing. From sizes alone, so that a launch reads no device data,
  /// and equal launches on equal machines give equal bits.
  int splitsFor(int64_t batch, int64_t queries, int64_t keys, int64_t atOnce) const;
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
  bool follows = false; ///< blocks wait in themselves for what is ahead of them in the stream, and may begin before it is over
  GridRule grid;
  /// Free key/value pairs for tools ("tile.config", "mask", ...); nobody
  /// decides anything by them.
  std::vector<std::pair<std::string, std::string>> notes;

  bool isHost() const { return target == "cpu"; }

  /// Blocks of threads that a launch starts for `blocks` of the grid: whole
  /// clusters, and of a persistent kernel no more than run at once, since each of
  /// them stays until all work is dealt out.
  int64_t blocksToStart(int64_t blocks, int multiprocessors) const {
    int64_t cluster = std::max(clusters, 1);
    if (grid.rows)
      return blocks * cluster;
    int64_t all = (blocks + cluster - 1) / cluster * cluster;
    int64_t resident = blocksAtOnce(multiprocessors) / cluster * cluster;
    return grid.persistent ? std::min(all, std::max(resident, cluster)) : all;
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
