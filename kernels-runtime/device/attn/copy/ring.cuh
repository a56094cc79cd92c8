// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pipelines between a TMA producer warp and consumers: rings of tiles in shared memory, synchronized by mbarriers (the
// pipelines of CUTLASS, with a tile in each stage).
//
// A ring has Stages slots with two mbarriers each. `full` completes when the bytes of a tile have landed, `empty` when
// every consumer warp has released it. Slots are used in order, and each role has a cursor of its own.
#pragma once
#include "attn/copy/swizzled.cuh"
#include "attn/ptx/mbarrier.cuh"
#include "attn/ptx/tma.cuh"
#include "attn/scheduler/roles.cuh"

namespace attn {

// The position of a role in a ring: a slot and the phase parity. In kernels with a dQ MMA warpgroup, where registers
// are scarce, both follow from one counter (Counts).
template <int Stages, bool Counts> struct CursorOf {
  int index = 0;
  unsigned phase = 0;
  ATTN_INLINE int slot() const { return index; }
  ATTN_INLINE unsigned parity() const { return phase; }
  ATTN_INLINE int slot_before() const { return index == 0 ? Stages - 1 : index - 1; }
  ATTN_INLINE void step() {
    if (Stages == 1)
      phase ^= 1;
    else if (++index == Stages)
      index = 0, phase ^= 1;
  }
};
template <int Stages> struct CursorOf<Stages, true> {
  unsigned steps = 0;
  ATTN_INLINE int slot() const { return steps % Stages; }
  ATTN_INLINE unsigned parity() const { return steps / Stages & 1; }
  ATTN_INLINE int slot_before() const { return (steps - 1) % Stages; }
  ATTN_INLINE void step() { ++steps; }
};
template <int Stages>
using Cursor = CursorOf<Stages, (dq_mma_warps<Cta<0 * Stages>>(0) > 0) && (Stages & (Stages - 1)) == 0>;

// ReadByDqMma: the dQ MMA warps release its slots, too.
template <class TileType, int StageCount, bool ReadByDqMma = false> struct RingBase {
  using Tile = TileType;
  static constexpr int Stages = StageCount;
  // Arrivals with which a warp releases a slot. If lanes read the tile themselves, each lane arrives. (One arrival
  // after __syncwarp() is equally correct and no faster, but the race checker of compute-sanitizer does not follow it.)
  static constexpr int Arrivals = Tile::ReadByLanes ? 32 : 1;
  unsigned tiles, barriers;
  Cursor<Stages> cursor;
  bool released_early = false; // by consumer_release_early()

  ATTN_INLINE RingBase(int tiles_at, int barriers_at) {
    const unsigned base = unsigned(__cvta_generic_to_shared(shared_memory));
    tiles = base + tiles_at, barriers = base + barriers_at;
  }
  ATTN_INLINE unsigned parity() const { return cursor.parity(); }
  ATTN_INLINE unsigned full() const { return barriers + cursor.slot() * 8; }
  ATTN_INLINE unsigned empty() const { return barriers + (Stages + cursor.slot()) * 8; }
  ATTN_INLINE Tile tile() const { return Tile::at_address(tiles + cursor.slot() * Tile::Bytes); }
  ATTN_INLINE void step() { cursor.step(); }
  ATTN_INLINE void init(int consumers, int /*others*/) const {
    const int readers = consumers * Arrivals + (ReadByDqMma ? 4 : 0);
    for (int i = 0; i < Stages; ++i)
      barrier_init(barriers + i * 8, 1), barrier_init(barriers + (Stages + i) * 8, readers);
  }
};

template <class Element, int RowCount, int ColCount, int StageCount, bool ReadByDqMma = false>
using Ring = RingBase<Swizzled<Element, RowCount, ColCount>, StageCount, ReadByDqMma>;

// Producer: waits until the next slot is empty, then calls `load_box(to, column, row)` for each box: for each panel of
// columns, one box of all rows of the tile (BoxRows 0), or `Boxes` boxes of BoxRows rows, which may be fewer rows than
// the tile has.
template <int BoxRows, int Boxes, class T, int R, int C, int S, bool D, class F>
ATTN_INLINE void producer_load_panels(Ring<T, R, C, S, D> &ring, F load_box) {
  if (lane_index() == 0) {
    using Tile = typename Ring<T, R, C, S, D>::Tile;
    barrier_wait(ring.empty(), ring.parity() ^ 1);
    barrier_expect(ring.full(), BoxRows ? Boxes * BoxRows * 128 * Tile::Panels : Tile::Bytes);
#pragma unroll
    for (int i = 0; i < Boxes; ++i)
#pragma unroll
      for (int c = 0; c < Tile::Panels; ++c)
        load_box(ring.tile().address + c * Tile::PanelBytes + i * BoxRows * 128, c * 64, i * BoxRows);
  }
  ring.step();
}
// Loads the box at (row, head, batch), or at (head, row, batch) for a tensor map whose heads come before rows.
template <int BoxRows = 0, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head, int batch) {
  producer_load_panels<BoxRows, 1>(
      ring, [&](unsigned to, int column, int) { tma_load(to, map, column, row, head, batch, ring.full()); });
}
// The same for packed rows, of which `left` remain in the sequence; zeros behind them.
template <int BoxRows = 0, int Boxes = 1, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load_packed(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head, int left) {
  producer_load_panels<BoxRows, Boxes>(ring, [&](unsigned to, int column, int first) {
    tma_load_packed(to, map, column, kPackedRows - left + first, head, row + left, ring.full());
  });
}
template <int BoxRows = 0, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load_packed_heads(Ring<T, R, C, S, D> &ring, const TensorMap &map, int head, int row,
                                            int left) {
  producer_load_panels<BoxRows, 1>(ring, [&](unsigned to, int column, int) {
    tma_load_packed(to, map, column, head, kPackedRows - left, row + left, ring.full());
  });
}

// Boxes of every Stride-th row, one behind the other, with a tensor map of that stride.
template <int BoxRows, int Boxes, int Stride, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load_strided(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head, int batch) {
  producer_load_panels<BoxRows, Boxes>(ring, [&](unsigned to, int column, int first) {
    tma_load(to, map, column, row + first * Stride, head, batch, ring.full());
  });
}
// The same for packed rows, of which `left` remain in the sequence, those in between counted.
template <int BoxRows, int Boxes, int Stride, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load_packed_strided(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head,
                                              int left) {
  producer_load_panels<BoxRows, Boxes>(ring, [&](unsigned to, int column, int first) {
    tma_load_packed(to, map, column, kPackedRows - left + first * Stride, head, row + left, ring.full());
  });
}

// Consumer: waits for the next tile.
template <class Tile, int S, bool D> ATTN_INLINE Tile consumer_wait(const RingBase<Tile, S, D> &ring) {
  barrier_wait(ring.full(), ring.parity());
  return ring.tile();
}
// The same if `more`; else returns the address of another tile, whose contents are not used.
template <class Tile, int S, bool D, class Other>
ATTN_INLINE Tile consumer_wait(const RingBase<Tile, S, D> &ring, bool more, const Other &other) {
  if (more)
    barrier_wait(ring.full(), ring.parity());
  return Tile::at_address(more ? ring.tile().address : other.address);
}
// Advances past a tile that is still being read, so that consumer_wait() waits for the next one;
// consumer_release_previous() releases this one.
template <class Tile, int S, bool D> ATTN_INLINE Tile consumer_advance(RingBase<Tile, S, D> &ring) {
  const Tile tile = ring.tile();
  ring.step();
  return tile;
}
template <class Tile, int S, bool D>
ATTN_INLINE void consumer_release_previous(const RingBase<Tile, S, D> &ring, bool any = true) {
  static_assert(!Tile::ReadByLanes);
  if (any && lane_index() < ring.Arrivals)
    barrier_arrive(ring.barriers + (S + ring.cursor.slot_before()) * 8);
}
// producer_commit() has already fenced the reads.
template <class Tile, int S, bool D> ATTN_INLINE void consumer_release_fenced(RingBase<Tile, S, D> &ring) {
  if (Tile::ReadByLanes)
    __syncwarp(); // not for order: without this convergence point the compiler needs one more register, and a kernel
                  // spills
  if (lane_index() < ring.Arrivals && !ring.released_early)
    barrier_arrive(ring.empty());
  ring.released_early = false;
  ring.step();
}
template <class Tile, int S, bool D> ATTN_INLINE void consumer_release(RingBase<Tile, S, D> &ring) {
  if (Tile::ReadByLanes)
    fence_async();
  consumer_release_fenced(ring);
}
// Releases the slot before consumer_release(), which then does not arrive, if no reads follow (!more). Predicated: a
// branch would change the code that the compiler makes of the loop.
template <class Tile, int S, bool D> ATTN_INLINE void consumer_release_early(RingBase<Tile, S, D> &ring, bool more) {
  static_assert(!Tile::ReadByLanes);
  ring.released_early = !more;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(ring.empty()),
      "r"(int(!more & (lane_index() < ring.Arrivals)))
      : "memory");
}

} // namespace attn
