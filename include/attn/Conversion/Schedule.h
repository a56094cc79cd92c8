// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which kernels compute a problem or its backward pass, and why these: asked by the lowering, and by tools that say it.
//
#ifndef ATTN_CONVERSION_SCHEDULE_H
#define ATTN_CONVERSION_SCHEDULE_H

#include "attn-rt/Specialization.h"
#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// Kernels that stream sequences, kernels on tiles, or both, by size classes: the first for short sequences, the others
/// for long ones (`hasSizeClasses`). A config that is given decides; else the heuristic does.
struct Schedule {
  tile::ConfigAttr streamed; ///< null: no sequence is streamed
  tile::ConfigAttr tiles;    ///< null: all are
  std::string name;          ///< for a reader
  std::string why;           ///< likewise, from who decided
  bool hasFallback = false;  ///< is there something else to try? (Not where the config is given.)
};

using rt::areFew;
using rt::manyKeys;

struct BackwardSchedule : Schedule { ///< `tiles` is that of key tiles at rest
  BackwardConfigs configs;           ///< of all kernels on tiles, where there are some
};

/// How many tiles of a forward pass a sequence has, or a block takes turns at, if bounds say that they are one or two: then a grid deals out so many to each
/// sequence, by its number. Of slots, half would be nobody's, and to find out whose one is takes longer than what a short sequence needs of memory. Tiles
/// that look at the same keys in one go are a block's. Nothing for others, and where lists say which keys a slot visits.
std::optional<int64_t> tilesOfBounds(ProblemOp problem, tile::ConfigAttr config);

/// Do rows and keys lie packed, and scores stay as they are? Then tiles of Hopper may `look` at all keys in one go, where `tilesOfBounds` has a number.
bool mayLook(ProblemOp problem);
/// May a block of a backward pass look at all pairs of a sequence? Where both sides are packed or both dense, nothing modifies scores, masks have no lists of
/// blocks, each head has keys of its own, and results have registers: of dims to 128.
bool mayLookBackward(ProblemOp problem);

/// Of a backward pass: has a block, or a warp, all of a sequence? With `look` it has one on Hopper, and other kernels what is longer.
inline bool ownsSequences(tile::ConfigAttr config) { return config.streams() || config.getLook() > 1; }

/// Of a backward pass with `look`: there are too many rows for all pairs at once, so they are at rest, and keys pass by, a tile at a time. Three warpgroups have
/// 64 rows each, up to 192; two have that twice.
inline bool passesKeys(tile::ConfigAttr config) { return config.getQTile() > 128; }
/// Shared memory of such a block, in bytes, but for barriers: with or without a slot for O, of which delta is made.
int64_t bytesAtRest(ProblemOp problem, tile::ConfigAttr config, bool outputs);
/// Does O come there as dO does, since there is room? Else those who compute read it where it lies.
bool bringsOutputs(ProblemOp problem, tile::ConfigAttr config);

/// What is wrong with the config that an op was given, to schedule it by; nothing if it has none.
std::optional<std::string> faultOfConfig(mlir::Attribute given);

/// The masks of problems are canonical, and a config that is given is one. `fallback`: which of the heuristic's fallbacks, where there are fewer the last.
Schedule scheduleOf(ProblemOp problem, llvm::StringRef target, int64_t arch, int64_t fallback = 0);
BackwardSchedule scheduleOf(BackwardOp backward, llvm::StringRef target, int64_t arch, int64_t fallback = 0);

} // namespace attn

#endif // ATTN_CONVERSION_SCHEDULE_H
