// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the tile of a packed batch that a CTA works on.
//
// Work tiles are numbered without knowing any length: sequence b starts at tile bound(b) / QTile + (b + 1), which
// leaves room for one partial tile per sequence. This is monotone in b, so a tile finds its sequence by search, and the
// launch needs only the buffer's size: total / QTile + batch + 2 tiles, of which some are empty.
//
// Rows before the first sequence and after the last are treated as sequences -1 and `batch` of length 0: they are
// padding that has to be cleared.
#pragma once

#include "attn/prelude.h"

namespace attn {

struct Sequence {
  int b;          // sequence, clamped into the batch
  int q0;         // first row of the tile, within the sequence
  int first;      // first row of the sequence, within the buffer
  int rows;       // valid rows of the tile
  int write_rows; // rows of the tile that the sequence owns, padding included
};

template <int QTile>
ATTN_TILE_OP Sequence find_sequence(int work_tile, const int *cu, const int *offsets, int batch, int total) {
  const auto bound = [=](int b) { return b < 0 ? 0 : b > batch ? total : offsets[b]; };
  // Invariant: start(lo) <= work_tile, and hi is past the last or starts behind it.
  int lo = -1, hi = batch + 1;
  while (hi - lo > 1) {
    const int b = lo + (hi - lo) / 2;
    (bound(b) / QTile + b + 1 <= work_tile ? lo : hi) = b;
  }
  const int b = lo;
  const bool real = b >= 0 && b < batch;
  Sequence s;
  s.b = clamp(b, 0, max(batch - 1, 0));
  s.first = bound(b);
  s.q0 = (work_tile - (bound(b) / QTile + b + 1)) * QTile;
  s.rows = clamp((real ? cu[b + 1] - cu[b] : 0) - s.q0, 0, QTile);
  s.write_rows = clamp(bound(b + 1) - bound(b) - s.q0, 0, QTile);
  return s;
}

} // namespace attn
