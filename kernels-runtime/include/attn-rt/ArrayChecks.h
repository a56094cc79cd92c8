// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the run-time arrays of a call have to hold: offsets of sequences, lists of tiles and of blocks, parents of a
// tree. Errors name the array, the index and what was found.
//
#ifndef ATTN_RT_ARRAYCHECKS_H
#define ATTN_RT_ARRAYCHECKS_H

#include "attn-rt/Result.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace attn::rt {

/// The contents of an array, and its name for messages.
struct NamedArray {
  std::string_view name;
  std::span<const int32_t> values;
};

/// The arrays of a packed side with `rows` rows in its tensors: `cuSeqlens` starts at 0, ascends and ends within the
/// rows; `paddedOffsets` (empty: the layout has none) start at 0 or later, ascend, leave each sequence a slot at least
/// as long as it is, and end within the rows. Without `isWritten` (keys of a forward pass) they only keep each
/// sequence within the rows. Messages call a sequence by `unit`.
Status checkOffsets(NamedArray cuSeqlens, NamedArray paddedOffsets, int64_t rows, bool isWritten,
                    std::string_view unit = "sequence");

/// The pieces of sequences in a tensor of `rows` rows (`layout(thd pieces)`): five lines of a number for each piece and
/// one more. Pieces ascend and lie apart, their positions are within their sequences and apart, the order has each
/// piece once, those of a sequence where `firstPieces` says. Whole sequences end within the `whole` entries that arrays
/// have for their rows; 0: there are no such arrays. A sequence has at most `most` pieces; 0: any number.
Status checkPieces(NamedArray cuSeqlens, NamedArray pieces, NamedArray firstPieces, int64_t rows, int64_t whole,
                   int64_t most = 0);

/// A list of tiles of `tile` rows, of which the first `count` count: each used slot once.
Status checkTiles(NamedArray tiles, int32_t count, std::span<const int32_t> offsets, int64_t rows, int64_t tile);

/// A block map's lists: offsets ascend within the entries of `columns` (of each sequence and head anew: after `line`
/// offsets), and entries are numbers of the `blocks` blocks of `keys` keys.
Status checkBlocks(NamedArray offsets, NamedArray columns, int64_t line, int64_t blocks, int64_t keys);

/// Parents (`#attn.ancestors`) are earlier keys of the sequence, or -1. Of dense keys, `rows` of each sequence; of
/// packed ones their lengths, which were checked, and where they begin, if that is not where the lengths say.
Status checkParents(NamedArray parents, std::span<const int32_t> cuSeqlens, std::span<const int32_t> paddedOffsets,
                    int64_t rows);

/// Calls `visit(slot, sequence, first)` for each slot of a packed layout's grid that has rows to
/// write, in order. A sequence's slots also hold the padding up to the next; what is before the first
/// sequence and behind the last is padding of its own (nullopt). `first` counts from the start of these
/// rows. `offsets` are where sequences start, and where the last one's slot ends.
using VisitSlot = std::function<void(int64_t slot, std::optional<int64_t> sequence, int64_t first)>;
void usedWorkTiles(std::span<const int32_t> offsets, int64_t rows, int64_t tile, const VisitSlot &visit);

} // namespace attn::rt

#endif // ATTN_RT_ARRAYCHECKS_H
