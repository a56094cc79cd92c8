// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Extents of a problem's tensors as expressions over the sizes of a call: `batch`, `seqlen_q` or `total_q`
// (packed), `seqlen_kv` or `total_kv`, `tokens_q`, `tokens_kv` and `id_rows` (ids), `<array>_entries`, `splits`,
// with pieces `piece_count_q`, `piece_count_kv`, `whole_q` and `whole_kv`.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_PROBLEMEXTENTS_H
#define ATTN_LIB_SCHEDULES_COMMON_PROBLEMEXTENTS_H

#include "attn-rt/Extent.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

namespace attn {

inline rt::Extent sizeNamed(llvm::StringRef name) { return rt::Extent::symbol(std::string_view(name)); }

/// Tiles of `tile` rows in a launch: packed sequences have work tiles, with one for padding before the first sequence
/// and one after the last.
rt::Extent tilesOfRows(bool packed, const rt::Extent &batch, const rt::Extent &rows, int64_t tile);

struct ProblemExtents {
  FixedSizes fixed;
  /// Sizes of the tiles that have lists: of query tiles, and of KV tiles.
  struct ListedTiles {
    int64_t queries = 0, keys = 0;
  } listed[2] = {};

  /// Rows of queries or keys, of a dense sequence or of all packed ones.
  rt::Extent rows(bool keys) const;
  /// As many keys as a sequence may have at most.
  rt::Extent keysOfBlocks() const { return fixed.pieces ? sizeNamed("whole_kv") : rows(true); }
  /// Packed sequences, or pieces, of queries or keys.
  rt::Extent sequences(bool keys) const;
  /// Tiles of query rows that have lists of one width, or blocks of keys: of a dense sequence, or of all packed ones.
  rt::Extent linesOfLists(int64_t tile, bool keys = false) const;
  /// Tiles of one side, of one head.
  rt::Extent tilesOf(bool keys, int64_t tile) const;
  rt::Extent extentOf(ProblemTensor::Axis axis, const ProblemTensor &tensor) const;
  /// Without leading dimensions.
  std::vector<rt::Extent> of(const ProblemTensor &tensor) const;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_PROBLEMEXTENTS_H
