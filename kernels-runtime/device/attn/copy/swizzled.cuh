// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile in shared memory as TMA writes it and wgmma reads it.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// The 128 byte swizzle: columns in panels of 64 (128 bytes), the rows of a panel contiguous, 16 byte unit u of row r at
// unit u ^ (r % 8). Columns beyond Cols are zeros.
template <class Element, int RowCount, int ColCount> struct Swizzled {
  using T = Element;
  static constexpr int Rows = RowCount, Cols = ColCount, Panels = (ColCount + 63) / 64, PanelBytes = RowCount * 128,
                       Bytes = Panels * PanelBytes;
  // One lane releases the tile for its warp: products complete for all lanes at once, and lanes that read a tile
  // themselves synchronize afterwards (add_delta).
  static constexpr bool ReadByLanes = false;
  static_assert(Rows % 8 == 0 && Rows <= 256 && Cols % 16 == 0);
  unsigned address;
  static ATTN_INLINE Swizzled at_address(unsigned address) { return {address}; }
};

} // namespace attn
