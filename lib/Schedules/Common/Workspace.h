// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The workspace of a program: buffers in memory of the caller that kernels leave for the kernels behind them.
//
#ifndef ATTN_LIB_SCHEDULES_WORKSPACE_H
#define ATTN_LIB_SCHEDULES_WORKSPACE_H

#include "ProblemExtents.h"
#include <functional>

namespace attn {

struct WorkspaceBuffer {
  std::string name;
  ProblemTensor::Element element;
  /// Its extents, once the program knows the tiles that have lists (`ProblemExtents::listed`).
  std::function<std::vector<rt::Extent>(const ProblemExtents &)> shape;
};

/// All buffers that the kernels of a forward or a backward pass may use; a program allocates those that it uses.
std::vector<WorkspaceBuffer> workspaceOf(Computation computation);

/// Refuses arrays of the problem that have the name of a buffer, or of another argument of kernels.
mlir::LogicalResult verifyArrayNames(Computation computation);

/// Query rows of the tiles in which a backward pass numbers row statistics; query tiles of its kernels are these or
/// halves of them.
constexpr int64_t statisticsTile = 128;
/// Rows of the dQ accumulator that have one semaphore of the ordered accumulation: no query tile has fewer.
constexpr int64_t rowsOfOrderCounter = 64;
/// Columns of a row of the dQ accumulator.
inline int64_t sumColumns(int64_t dimQk) { return dimQk <= 32 ? 32 : llvm::alignTo(dimQk, 64); }

/// The buffers of the lists of tiles that tiles of one side visit: least and largest entries of arrays in tiles of the
/// other side, the lists, where the list of each tile is (`metadata.select_tiles`), and how much of the lists is taken.
struct TileLists {
  const char *ranges, *list, *visits, *taken;
};
/// Those of query tiles, or of key tiles.
const TileLists &tileLists(bool ofKeys);
/// How many values `ranges` has for each tile, side by side: the least and the largest of each array, and for arrays
/// with an entry that hides, whether none does. Least and largest of groups of 32 tiles stand behind those of all
/// tiles.
int64_t valuesOfRanges(llvm::ArrayRef<MaskOperand> arrays);
/// How many values `ranges` has in all for a tile.
int64_t linesOfRanges(llvm::ArrayRef<MaskOperand> arrays);

/// A list of work tiles of one side, for kernels of some of the sequences: its buffer, and that of its length.
struct WorkTileList {
  const char *name, *count;
  bool keys;
};
/// The list of a forward pass, or those of a backward pass: of the preprocess kernel's rows, of keys, and of dQ.
llvm::ArrayRef<WorkTileList> workTileLists(bool backward);

/// The buffer of the bits of a block map's lists.
std::string bitsOf(const MaskOperand &lists);
/// The buffer that `metadata.number_tree` needs for parents of this name.
std::string numberingOf(llvm::StringRef parents);
/// The buffer of partial sums of an array's gradient.
std::string partialGradientOf(const ScoreOperand &array);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_WORKSPACE_H
