// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The workspace of a program: buffers in the caller's memory that pass data from kernel to kernel.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_WORKSPACE_H
#define ATTN_LIB_SCHEDULES_COMMON_WORKSPACE_H

#include "ProblemExtents.h"
#include <functional>

namespace attn {

struct WorkspaceBuffer {
  std::string name;
  ProblemTensor::Element element;
  /// Its extents, once the tiles with lists are known (`ProblemExtents::listed`).
  std::function<std::vector<rt::Extent>(const ProblemExtents &)> shape;
};

/// All buffers that the kernels of a forward or a backward pass may use; a program allocates those that it uses.
std::vector<WorkspaceBuffer> workspaceOf(Computation computation);

/// Refuses arrays of the problem that have the name of a buffer, or of another argument of kernels.
mlir::LogicalResult verifyArrayNames(Computation computation);

/// Query rows of the tiles in which a backward pass numbers row statistics; query tiles of its kernels are these or
/// halves of them.
constexpr int64_t statisticsTile = 128;
/// Rows of the dQ accumulator that share a semaphore of ordered accumulation: no query tile has fewer rows.
constexpr int64_t semaphoreRows = 64;
/// Columns of a float32 accumulator of gradients (the dQ accumulator, fragments of dK and dV) for a head dim.
inline int64_t accumulatorColumns(int64_t dim) { return dim <= 32 ? 32 : llvm::alignTo(dim, 64); }

/// The buffers of the lists of KV tiles, or of query tiles: least and largest array entries of listed tiles (`ranges`),
/// the lists, the position of each tile's list (`metadata.select_tiles`), and the used length of the lists.
struct TileLists {
  const char *ranges, *list, *positions, *used;
};
/// Heads that have lists of their own: query heads, KV heads, or one for all.
int64_t headsOfTileLists(ProblemOp problem);
/// For each query tile the list of its KV tiles, or, `ownedByKvTiles`, for each KV tile the list of its query tiles.
const TileLists &tileLists(bool ownedByKvTiles);
/// Values of `ranges` for each tile, adjacent in memory: the least and largest entry of each array, and for arrays with
/// a hiding entry, whether the tile has no such entry. Least and largest of groups of 32 tiles follow those of all
/// tiles.
int64_t valuesOfRanges(llvm::ArrayRef<MaskOperand> arrays);
/// Values of `ranges` in all for a tile.
int64_t linesOfRanges(llvm::ArrayRef<MaskOperand> arrays);

/// A work-tile list for a kernel that computes some sequences only: its buffer, and the buffer of its length.
struct WorkTileList {
  const char *name, *count;
  bool keys;
};
/// The list of a forward pass, or those of a backward pass: of the preprocess kernel's rows, of keys, and of dQ.
llvm::ArrayRef<WorkTileList> workTileLists(bool backward);

/// The buffers of `metadata.split_walks`.
struct LoopSplits {
  const char *list, *counts, *split;
};
/// For loops over query tiles: of the kernel of dK (and dV), or of that of dV alone.
const LoopSplits &querySplits(bool ofDv);
/// For loops over KV tiles.
const LoopSplits &kvSplits();
/// Rows of a slot of partial results: no KV tile that is split has more.
constexpr int64_t splitRows = 128;
/// Slots for the partial results of tiles whose loop several CTAs share, of all heads: in `partial_dk` and
/// `partial_dv`, or in `slots_o`, `slots_max` and `slots_sum`, of `splitRows` rows each. 16 query heads on one KV head
/// need seven for each multiprocessor.
rt::Extent splitSlots();

/// Entries of all lists of a block map.
rt::Extent entriesOfMap(const MaskOperand &map, const ProblemExtents &extents);
/// Offsets of all lists of one width.
rt::Extent offsetsOfMap(const MaskOperand &map, const ProblemExtents &extents);

/// Buffers with lists of one width transposed: for each block of keys the tiles of rows that list it.
struct TransposedLists {
  std::string offsets; ///< [heads, blocks + 1]: where the list of each block begins in the head's `tiles`
  std::string tiles;   ///< [heads, entries], ascending for each block
  std::string counts;  ///< [heads, partsOfLists, blocks], scratch space
};
TransposedLists transposedOf(const MaskOperand &map);
/// Parts of a head's lists, which are counted and transposed by a CTA each (`ListParts`).
constexpr int64_t partsOfLists = 32;
/// Heads that have lists of a map.
int64_t headsOfMap(const MaskOperand &map, const FixedSizes &fixed);
/// Blocks of keys of all sequences, of one head.
rt::Extent blocksOfMap(const MaskOperand &map, const ProblemExtents &extents);
/// The buffer of the bits of a block map's lists.
std::string bitsOf(const MaskOperand &lists);
/// The buffer that `metadata.number_tree` needs for parents of this name.
std::string numberingOf(llvm::StringRef parents);
/// The buffer of partial sums of an array's gradient.
std::string partialGradientOf(const ScoreOperand &array);
/// CTAs for each head and sequence that compute partial sums of an array's gradient, in tiles of up to so many rows.
constexpr int64_t arrayGradWorkers = 32, arrayGradTile = 64;
/// With pieces, so many distances have sums in each of two arrays (`ArrayGradBody::TableSums`).
inline int64_t distancesOfTable(int64_t entries) { return llvm::alignTo(entries + 4 * arrayGradTile, 4); }

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_WORKSPACE_H
