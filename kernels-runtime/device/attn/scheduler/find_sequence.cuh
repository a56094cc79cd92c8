// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the tile of a packed batch that a CTA works on, from the prefix sums alone: there is no metadata kernel, and
// the host reads nothing.
//
// Each sequence's rows in the buffer, padding included, are cut into query tiles, and tiles are numbered through all
// sequences. Exact numbering would need a sum over all lengths. start(b) = offsets[b] / QTile + b + 1 needs one load,
// is monotone, and gives each sequence at least the tiles it needs; there is at most one tile too many, which is empty.
// Sequences -1 and batch stand for the rows before the first sequence and after the last.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

struct Sequence {
  int b;          // the sequence, within [0, batch)
  int q0;         // first query of the tile, counted in the sequence
  int first;      // row of the buffer where the sequence begins
  int rows;       // queries in the tile
  int write_rows; // rows of the buffer that the tile must write, queries and padding
};

// Each warp performs a 32-way search: one round of loads for up to 31 sequences, two for up to 1023. All warps of the
// CTA repeat it, and none waits for another.
template <int QTile>
ATTN_INLINE Sequence find_sequence(int work_tile, const int *cu, const int *offsets, int batch, int total) {
  int low = 0; // sequences [0, low) start at or before this work tile
  for (int count = batch + 1; count > 0;) {
    const int step = (count + 31) / 32, probe = lane_index() * step;
    const bool before = probe < count && offsets[low + probe] / QTile + low + probe + 1 <= work_tile;
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
  const int q0 = (work_tile - (b < 0 ? 0 : begin / QTile + b + 1)) * QTile;
  return {uniform(valid), uniform(q0), uniform(begin), uniform(max(0, min(QTile, length - q0))),
          uniform(max(0, min(QTile, end - begin - q0)))};
}

} // namespace attn
