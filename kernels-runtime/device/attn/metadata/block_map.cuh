// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block maps of block-sparse masks: one bit for each pair of a row block and a column block, built from lists.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// The range of a row's list among the entries, clamped to the entries that exist.
struct BlockList {
  int begin, end;
};
ATTN_INLINE BlockList list_of(const int *offsets, int rows, int entries, int row) {
  if (row >= rows)
    return {0, 0};
  return {min(max(offsets[row], 0), entries), min(offsets[row + 1], entries)};
}

// Calls f(column) for the columns of a list. The threads of the CTA share the columns; several loads are in flight at
// once.
template <class F> ATTN_INLINE void each_column(const BlockList &list, const int *columns, F f) {
  constexpr int Own = 8;
  const int threads = blockDim.x;
  for (int i = list.begin + threadIdx.x; i < list.end; i += Own * threads) {
    unsigned own[Own];
#pragma unroll
    for (int n = 0; n < Own; ++n)
      own[n] = i + n * threads < list.end ? columns[i + n * threads] : ~0u;
#pragma unroll
    for (int n = 0; n < Own; ++n)
      f(own[n]);
  }
}

// Fills the bits of rows first, first + step, ..., up to Words words of a row at a time in shared memory.
ATTN_INLINE void fill_block_bits(int *bits, int rows, int words, const int *offsets, const int *columns, int entries,
                                 int lines, int first, int step) {
  constexpr int Words = 1024;
  const int threads = blockDim.x;
  __shared__ unsigned marks[Words];
  for (long long row = first; row < (long long)lines * rows; row += step) {
    const BlockList list = list_of(offsets + row + row / rows, 1, entries, 0);
    for (int from = 0; from < words; from += Words) {
      const int count = min(words - from, Words);
      for (int i = threadIdx.x; i < count; i += threads)
        marks[i] = 0;
      __syncthreads();
      each_column(list, columns, [&](unsigned column) {
        if (column / 32 - from < (unsigned)count)
          atomicOr(marks + column / 32 - from, 1u << column % 32);
      });
      __syncthreads();
      for (int i = threadIdx.x; i < count; i += threads)
        bits[row * words + from + i] = marks[i];
    }
    __syncthreads();
  }
}

ATTN_INLINE unsigned word_of(const int *bits, int rows, int words, int row, int word) {
  return row < rows && word < words ? (unsigned)__ldg(bits + (long long)row * words + word) : 0u;
}
ATTN_INLINE bool block_bit(const int *bits, int rows, int words, int row, int column) {
  return word_of(bits, rows, words, row, column >> 5) >> (column & 31) & 1;
}
// Is a block in its row's list? The lanes of the warp search together. Without `searches` the result is true.
ATTN_INLINE bool is_in_list(const int *offsets, int rows, const int *columns, int entries, int row, int column,
                            bool searches) {
  if (!searches)
    return true;
  const BlockList list = list_of(offsets, rows, entries, row);
  bool found = false;
#pragma unroll 1
  for (int i = list.begin + lane_index(); i < list.end; i += 32)
    found |= columns[i] == column;
  return __any_sync(~0u, found);
}
// block_bit() of one of the 32 columns from `first` on. Their bits depend on the row alone, so they are loaded once for
// all of a thread's elements of that row.
ATTN_INLINE bool block_bit_near(const int *bits, int rows, int words, int row, int column, int first) {
  const unsigned low = word_of(bits, rows, words, row, first >> 5),
                 high = word_of(bits, rows, words, row, (first >> 5) + 1);
  return __funnelshift_r(low, high, first & 31) >> (column - first) & 1;
}

// For the KV tiles of a query tile (or the query tiles of a KV tile), one bit each: whether some block that covers the
// tile is in the map, and whether all are. A batch of BatchGroups * 32 tiles (select_tiles.cuh) may begin at any tile,
// so it may need one word more.
struct GatheredBlocks {
  static constexpr int Words = 512 + 1;
  int first; // index of the first word
  unsigned some[Words], all[Words];
  ATTN_INLINE int place(int tile) const { return min(max(tile / 32 - first, 0), Words - 1); }
};
template <int Number> ATTN_INLINE GatheredBlocks &gathered_blocks() {
  __shared__ GatheredBlocks blocks;
  return blocks;
}

// The bits of 32 tiles.
struct BlockBits {
  unsigned some, all;
};

// The lower bit of each pair of neighbouring bits: 32 bits become 16.
ATTN_INLINE unsigned lower_halves(unsigned x) {
  x &= 0x55555555;
  x = (x | x >> 1) & 0x33333333;
  x = (x | x >> 2) & 0x0f0f0f0f;
  x = (x | x >> 4) & 0x00ff00ff;
  return (x | x >> 8) & 0xffff;
}
// Bits of tiles that consist of two of the given ones each.
ATTN_INLINE BlockBits pairs_of(BlockBits low, BlockBits high) {
  return {lower_halves(low.some | low.some >> 1) | lower_halves(high.some | high.some >> 1) << 16,
          lower_halves(low.all & low.all >> 1) | lower_halves(high.all & high.all >> 1) << 16};
}
// Each of the lower 16 bits, repeated twice.
ATTN_INLINE unsigned doubled(unsigned x) {
  x = (x | x << 8) & 0x00ff00ff;
  x = (x | x << 4) & 0x0f0f0f0f;
  x = (x | x << 2) & 0x33333333;
  x = (x | x << 1) & 0x55555555;
  return x | x << 1;
}

// Bits of the 32 tiles from tile 32 * `at` on, where a tile has Tile positions, a block has Size positions, and word(i)
// returns the bits of the 32 blocks from block 32 * i on.
template <int Tile, int Size, class F> ATTN_INLINE BlockBits tiles_of_blocks(int at, F word) {
  if constexpr (Tile == Size) {
    return word(at);
  } else if constexpr (Size % (2 * Tile) == 0 && (Size / Tile & (Size / Tile - 1)) == 0) {
    const BlockBits larger = tiles_of_blocks<2 * Tile, Size>(at / 2, word);
    const int from = at % 2 * 16;
    return {doubled(larger.some >> from & 0xffff), doubled(larger.all >> from & 0xffff)};
  } else if constexpr (Tile % (2 * Size) == 0 && Tile / Size <= 8 && (Tile / Size & (Tile / Size - 1)) == 0) {
    return pairs_of(tiles_of_blocks<Tile / 2, Size>(2 * at, word), tiles_of_blocks<Tile / 2, Size>(2 * at + 1, word));
  } else {
    BlockBits bits = {0, 0}, cached = {0, 0};
    int cached_at = -1;
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
      const unsigned from = unsigned(at * 32 + i) * Tile;
      const int begin = from / Size, end = (from + Tile - 1) / Size + 1;
      unsigned some = 0, missing = 0;
      for (int w = begin / 32; w <= (end - 1) / 32; ++w) {
        if (w != cached_at)
          cached = word(w), cached_at = w;
        const unsigned own = bits_between(begin - 32 * w, end - 32 * w);
        some |= cached.some & own, missing |= ~cached.all & own;
      }
      bits.some |= (unsigned)(some != 0) << i, bits.all |= (unsigned)(missing == 0) << i;
    }
    return bits;
  }
}

// Gathers the bits of tiles [from, to) from rows [begin, end) of a map or, with Transposed, from these columns.
template <int Number, int Tile, int Size, bool Transposed>
ATTN_INLINE void gather_block_tiles(const int *bits, int rows, int words, int begin, int end, int from, int to) {
  GatheredBlocks &blocks = gathered_blocks<Number>();
  const int first = from / 32, last = (to - 1) / 32;
  if (threadIdx.x == 0)
    blocks.first = first;
  for (int at = first + threadIdx.x; at <= last; at += blockDim.x) {
    const BlockBits known = tiles_of_blocks<Tile, Size>(at, [&](int word) {
      BlockBits x = {0, Transposed ? 0u : ~0u};
      if constexpr (Transposed) { // one bit for each of 32 rows
#pragma unroll 1
        for (int i = 0; i < 32; ++i) {
          unsigned some = 0, missing = 0;
          for (int w = begin / 32; w <= (end - 1) / 32; ++w) {
            const unsigned own = bits_between(begin - 32 * w, end - 32 * w),
                           y = word_of(bits, rows, words, word * 32 + i, w);
            some |= y & own, missing |= ~y & own;
          }
          x.some |= (unsigned)(some != 0) << i, x.all |= (unsigned)(missing == 0) << i;
        }
      } else {
#pragma unroll 4
        for (int row = begin; row < end; ++row) {
          const unsigned y = word_of(bits, rows, words, row, word);
          x.some |= y, x.all &= y;
        }
      }
      return x;
    });
    blocks.some[at - first] = known.some, blocks.all[at - first] = known.all & known.some;
  }
}

// The same directly from list `row`, for blocks that consist of whole tiles: each tile is in exactly one block, so it
// is either fully visible or fully hidden.
template <int Number, int Tile, int Size>
ATTN_INLINE void gather_list_tiles(const int *offsets, int rows, const int *columns, int entries, int row, int from,
                                   int to) {
  constexpr int Tiles = Size / Tile;
  GatheredBlocks &blocks = gathered_blocks<Number>();
  const int first = from / 32, words = (to - 1) / 32 + 1 - first, threads = blockDim.x;
  const BlockList list = list_of(offsets, rows, entries, row);
  if (threadIdx.x == 0)
    blocks.first = first;
  for (int i = threadIdx.x; i < words; i += threads)
    blocks.some[i] = 0;
  __syncthreads();
  each_column(list, columns, [&](unsigned column) {
    if (column > unsigned(to - 1) / Tiles)
      return;
    const int tile = column * Tiles - first * 32;
    if constexpr (32 % Tiles == 0) {
      if (tile + Tiles > 0)
        atomicOr(blocks.some + tile / 32, (~0u >> (32 - Tiles)) << tile % 32);
    } else {
      for (int w = max(tile, 0) / 32; w < words && w * 32 < tile + Tiles; ++w)
        atomicOr(blocks.some + w, bits_between(tile - w * 32, tile + Tiles - w * 32));
    }
  });
  __syncthreads();
  for (int i = threadIdx.x; i < words; i += threads)
    blocks.all[i] = blocks.some[i];
}

struct GatheredTile {
  bool some, all;
};
template <int Number> ATTN_INLINE GatheredTile gathered(int tile) {
  const GatheredBlocks &blocks = gathered_blocks<Number>();
  const int at = blocks.place(tile);
  return {(blocks.some[at] >> (tile & 31) & 1) != 0, (blocks.all[at] >> (tile & 31) & 1) != 0};
}
// One bit for each of 32 tiles, which may span two words. Bits of tiles outside of the batch are undefined.
struct GatheredTileBits {
  int some, all;
};
template <int Number> ATTN_INLINE GatheredTileBits gathered_bits(int tile) {
  const GatheredBlocks &blocks = gathered_blocks<Number>();
  const int low = blocks.place(tile), high = blocks.place(tile + 31);
  return {(int)__funnelshift_r(blocks.some[low], blocks.some[high], tile & 31),
          (int)__funnelshift_r(blocks.all[low], blocks.all[high], tile & 31)};
}

} // namespace attn
