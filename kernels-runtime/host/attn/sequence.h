// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tile of which packed sequence a block is.
//
// Slots are numbered without knowing any length: sequence b starts at slot
// bound(b) / QTile + (b + 1), which leaves room for one partial tile per
// sequence. That is monotone in b, so a slot finds its sequence by search, and
// the launch needs only the buffer's size: total / QTile + batch + 2 slots.
// Some slots are empty.
//
// Rows before the first sequence and after the last are sequences too (numbers
// -1 and `batch`), of length 0: their rows are padding that somebody has to
// clear.
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
ATTN_VERB Sequence find_sequence(int slot, const int *cu, const int *offsets, int batch, int total) {
  const auto bound = [=](int b) { return b < 0 ? 0 : b > batch ? total : offsets[b]; };
  // Invariant: start(lo) <= slot, and hi is past the last or starts behind the
  // slot.
  int lo = -1, hi = batch + 1;
  while (hi - lo > 1) {
    const int b = lo + (hi - lo) / 2;
    (bound(b) / QTile + b + 1 <= slot ? lo : hi) = b;
  }
  const int b = lo;
  const bool real = b >= 0 && b < batch;
  Sequence s;
  s.b = clamp(b, 0, max(batch - 1, 0));
  s.first = bound(b);
  s.q0 = (slot - (bound(b) / QTile + b + 1)) * QTile;
  s.rows = clamp((real ? cu[b + 1] - cu[b] : 0) - s.q0, 0, QTile);
  s.write_rows = clamp(bound(b + 1) - bound(b) - s.q0, 0, QTile);
  return s;
}

} // namespace attn
