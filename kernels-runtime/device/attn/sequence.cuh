// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which rows of a packed batch a block works on, from the prefix sums alone: no metadata kernel, nothing read by the
// host.
//
// A sequence's slot in the buffer is cut into query tiles, and tiles are numbered through all slots. Exact numbering
// would need a sum over all lengths; start(b) = bound(b) / QTile + b + 1 needs one load, is monotone, and leaves each
// sequence at least the tiles it needs (and at most one too many, which finds itself empty). Sequences -1 and batch
// stand for rows before the first and behind the last slot.
#pragma once
#include "attn/prelude.cuh"

namespace attn {

struct Sequence {
  int b;          // the sequence, within [0, batch)
  int q0;         // first query of the tile, counted in the sequence
  int first;      // row of the buffer where the slot begins
  int rows;       // queries in the tile
  int write_rows; // rows of the buffer that the tile must write, queries and padding
};

// A warp searches 32 ways: one round of loads up to 31 sequences, two up to 1023. Every warp of the block repeats it
// and none waits for another.
template <int QTile>
ATTN_INLINE Sequence find_sequence(int slot, const int *cu, const int *offsets, int batch, int total) {
  int low = 0; // sequences [0, low) start at or before slot
  for (int count = batch + 1; count > 0;) {
    const int step = (count + 31) / 32, probe = lane_index() * step;
    const bool before = probe < count && offsets[low + probe] / QTile + low + probe + 1 <= slot;
    const int found = __popc(__ballot_sync(~0u, before));
    if (found == 0)
      break;
    const int skip = (found - 1) * step + 1;
    low += skip;
    count = min(step - 1, count - skip);
  }
  const int b = low - 1, valid = max(0, min(b, batch - 1));
  const int begin = b < 0 ? 0 : offsets[b], end = b < batch ? offsets[b + 1] : total;
  const int length = b >= 0 && b < batch ? cu[b + 1] - cu[b] : 0;
  const int q0 = (slot - (b < 0 ? 0 : begin / QTile + b + 1)) * QTile;
  return {uniform(valid), uniform(q0), uniform(begin), uniform(max(0, min(QTile, length - q0))),
          uniform(max(0, min(QTile, end - begin - q0)))};
}

} // namespace attn
