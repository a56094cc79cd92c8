// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles that one warp brings by TMA while others multiply: rings of shared memory, handed back and forth by mbarriers.
//
// A ring has Stages slots and two barriers a slot. `full` completes when a tile's bytes have landed, `empty` when every
// consumer warp is done with it. Slots are used in order, so each role keeps a cursor of its own.
#pragma once
#include "attn/fragment.cuh"

namespace attn {

// What cuTensorMapEncodeTiled makes: rank 4, (column, row, head, batch), boxes of a tile's rows by 64 columns, 128 byte
// swizzle, zeros out of bounds; of packed rows rank 5.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};
constexpr int kPackedRows = 1 << 30;

// The last warpgroup brings tiles; of a reducer kernel the one before it makes a product of its own; all before these
// compute.
#define ATTN_REDUCER_KERNEL(name, block_threads, blocks_per_sm)                                                        \
  template <> struct attn::Block<0> {                                                                                  \
    static constexpr int threads = block_threads, reducer_warps = 4;                                                   \
  };                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks_per_sm) name
template <class Of> ATTN_INLINE constexpr auto reducer_warps(int) -> decltype(Of::reducer_warps) {
  return Of::reducer_warps;
}
template <class Of> ATTN_INLINE constexpr int reducer_warps(long) { return 0; }
template <int Kernel = 0> ATTN_INLINE constexpr int producer_warp() { return Block<Kernel>::threads / 32 - 4; }
template <int Kernel = 0> ATTN_INLINE constexpr int consumer_warps() {
  return producer_warp<Kernel>() - reducer_warps<Block<Kernel>>(0);
}
template <int Kernel = 0> ATTN_INLINE bool is_consumer() { return warp_index() < consumer_warps<Kernel>(); }
template <int Kernel = 0> ATTN_INLINE bool is_reducer() { return warp_index() < producer_warp<Kernel>(); }

ATTN_INLINE int warpgroup_index() { return uniform(threadIdx.x / 128); }

ATTN_INLINE void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
ATTN_INLINE void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
ATTN_INLINE void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Between what a lane has read or written in shared memory and what bulk copies or products do there behind a barrier:
// nothing else waits for loads ahead of an arrival, and without it a copy has overwritten what they read
// (docs/Schedules/stationary_q_backward.md).
ATTN_INLINE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Returns when the barrier's phase of this parity is over. The hardware suspends the warp for a while in each try.
ATTN_INLINE void barrier_wait(unsigned barrier, unsigned parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra "
               "over;\nbra again;\nover:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

// Begins to bring so many bytes to shared memory, as they lie; they count at the barrier.
template <int Bytes> ATTN_INLINE void bring(unsigned to, const void *from, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "n"(Bytes), "r"(barrier)
               : "memory");
}

// A tile as TMA leaves it: columns in chunks of 64 (128 bytes), a chunk's rows one after the other, 16 byte units of
// row r at place unit ^ (r % 8). Columns beyond Cols are zeros.
template <class Element, int RowCount, int ColCount> struct Swizzled {
  using T = Element;
  static constexpr int Rows = RowCount, Cols = ColCount, Chunks = (ColCount + 63) / 64, ChunkBytes = RowCount * 128,
                       Bytes = Chunks * ChunkBytes;
  static constexpr bool ReadByLanes =
      false; // products end for all lanes at once; lanes that read one meet behind that (add_deltas)
  static_assert(Rows % 8 == 0 && Rows <= 256 && Cols % 16 == 0);
  unsigned address;
  static ATTN_INLINE Swizzled lying(unsigned address) { return {address}; }
};

// What a role has come to in a ring: a slot, and the parity of its round. Beside a reducer, where registers are few,
// they follow from one number.
template <int Stages, bool Counts> struct CursorOf {
  int at = 0;
  unsigned odd = 0;
  ATTN_INLINE int slot() const { return at; }
  ATTN_INLINE unsigned parity() const { return odd; }
  ATTN_INLINE int slot_before() const { return at == 0 ? Stages - 1 : at - 1; }
  ATTN_INLINE void step() {
    if (Stages == 1)
      odd ^= 1;
    else if (++at == Stages)
      at = 0, odd ^= 1;
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
using Cursor = CursorOf<Stages, (reducer_warps<Block<0 * Stages>>(0) > 0) && (Stages & (Stages - 1)) == 0>;

template <class TileType, int StageCount, bool Reduced = false> struct Slots {
  using Tile = TileType;
  static constexpr int Stages = StageCount;
  // Of a warp that gives a slot back: lanes that read by themselves say so by themselves. (One for all behind
  // __syncwarp() is as right and no faster, but the sanitizer's race checker does not follow it.)
  static constexpr int Arrivals = Tile::ReadByLanes ? 32 : 1;
  unsigned tiles, barriers;
  Cursor<Stages> cursor;
  bool given = false; // back already

  ATTN_INLINE Slots(int tiles_at, int barriers_at) {
    const unsigned base = unsigned(__cvta_generic_to_shared(shared_memory));
    tiles = base + tiles_at, barriers = base + barriers_at;
  }
  ATTN_INLINE unsigned parity() const { return cursor.parity(); }
  ATTN_INLINE unsigned full() const { return barriers + cursor.slot() * 8; }
  ATTN_INLINE unsigned empty() const { return barriers + (Stages + cursor.slot()) * 8; }
  ATTN_INLINE Tile tile() const { return Tile::lying(tiles + cursor.slot() * Tile::Bytes); }
  ATTN_INLINE void step() { cursor.step(); }
  ATTN_INLINE void init(int consumers, int /*others*/) const {
    const int readers = consumers * Arrivals + (Reduced ? 4 : 0);
    for (int i = 0; i < Stages; ++i)
      barrier_init(barriers + i * 8, 1), barrier_init(barriers + (Stages + i) * 8, readers);
  }
};

// Reduced: a reducer takes from it, as those that compute do.
template <class Element, int RowCount, int ColCount, int StageCount, bool Reduced = false>
using Ring = Slots<Swizzled<Element, RowCount, ColCount>, StageCount, Reduced>;

// Producer: waits for the next slot to be empty; then `bring(to, column)` starts for each chunk of its columns. What is
// out of bounds becomes zeros, which count as bytes that land. BoxRows: those of a box that does not fill the tile, of
// which several may come; then `bring(to, column, row)`.
template <int BoxRows, int Boxes, class T, int R, int C, int S, bool D, class F>
ATTN_INLINE void fill_chunks(Ring<T, R, C, S, D> &ring, F bring) {
  if (lane_index() == 0) {
    using Tile = typename Ring<T, R, C, S, D>::Tile;
    barrier_wait(ring.empty(), ring.parity() ^ 1);
    barrier_expect(ring.full(), BoxRows ? Boxes * BoxRows * 128 * Tile::Chunks : Tile::Bytes);
#pragma unroll
    for (int i = 0; i < Boxes; ++i)
#pragma unroll
      for (int c = 0; c < Tile::Chunks; ++c)
        bring(ring.tile().address + c * Tile::ChunkBytes + i * BoxRows * 128, c * 64, i * BoxRows);
  }
  ring.step();
}
// The box at (row, head, batch), or (head, row, batch) where a map has heads take turns.
template <int BoxRows = 0, class T, int R, int C, int S, bool D>
ATTN_INLINE void fill(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head, int batch) {
  fill_chunks<BoxRows, 1>(ring, [&](unsigned to, int column, int) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
                 "%5}], [%6];" ::"r"(to),
                 "l"(&map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(ring.full())
                 : "memory");
  });
}
// The same of packed rows, of which so many are `left` of a sequence: zeros behind them. attn-rt/TensorMap.h says what
// a map has five coordinates for.
ATTN_INLINE void bring_packed(unsigned to, const TensorMap &map, int column, int second, int third, int end,
                              unsigned full) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
               "%5, %6}], [%7];" ::"r"(to),
               "l"(&map), "r"(column), "r"(second), "r"(third), "r"(end), "r"(kPackedRows), "r"(full)
               : "memory");
}
template <int BoxRows = 0, int Boxes = 1, class T, int R, int C, int S, bool D>
ATTN_INLINE void fill_packed(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head, int left) {
  fill_chunks<BoxRows, Boxes>(ring, [&](unsigned to, int column, int first) {
    bring_packed(to, map, column, kPackedRows - left + first, head, row + left, ring.full());
  });
}
template <int BoxRows = 0, class T, int R, int C, int S, bool D>
ATTN_INLINE void fill_packed_heads(Ring<T, R, C, S, D> &ring, const TensorMap &map, int head, int row, int left) {
  fill_chunks<BoxRows, 1>(ring, [&](unsigned to, int column, int) {
    bring_packed(to, map, column, head, kPackedRows - left, row + left, ring.full());
  });
}

// Consumer: waits for the next tile, and gives its slot back when nothing reads it any more.
template <class Tile, int S, bool D> ATTN_INLINE Tile take(const Slots<Tile, S, D> &ring) {
  barrier_wait(ring.full(), ring.parity());
  return ring.tile();
}
// The same if there is one; else another tile, to be read to no end.
template <class Tile, int S, bool D, class Other>
ATTN_INLINE Tile take(const Slots<Tile, S, D> &ring, bool more, const Other &other) {
  if (more)
    barrier_wait(ring.full(), ring.parity());
  return Tile::lying(more ? ring.tile().address : other.address);
}
// One tile may be passed: the next one is taken before it is given back.
template <class Tile, int S, bool D> ATTN_INLINE Tile pass(Slots<Tile, S, D> &ring) {
  const Tile tile = ring.tile();
  ring.step();
  return tile;
}
template <class Tile, int S, bool D> ATTN_INLINE void release_passed(const Slots<Tile, S, D> &ring, bool any = true) {
  static_assert(!Tile::ReadByLanes);
  if (any && lane_index() < ring.Arrivals)
    barrier_arrive(ring.barriers + (S + ring.cursor.slot_before()) * 8);
}
// Where publish() has the reads over already.
template <class Tile, int S, bool D> ATTN_INLINE void release_fenced(Slots<Tile, S, D> &ring) {
  if (Tile::ReadByLanes)
    __syncwarp(); // not for order: where lanes meet, the compiler needs a register less, and without it a kernel spills
  if (lane_index() < ring.Arrivals && !ring.given)
    barrier_arrive(ring.empty());
  ring.given = false;
  ring.step();
}
template <class Tile, int S, bool D> ATTN_INLINE void release(Slots<Tile, S, D> &ring) {
  if (Tile::ReadByLanes)
    fence_async();
  release_fenced(ring);
}
// The same ahead of release(), if there are no more reads. No branch: a loop with one more is other code to the
// compiler.
template <class Tile, int S, bool D> ATTN_INLINE void release_early(Slots<Tile, S, D> &ring, bool more) {
  static_assert(!Tile::ReadByLanes);
  ring.given = !more;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(ring.empty()),
      "r"(int(!more & (lane_index() < ring.Arrivals)))
      : "memory");
}

} // namespace attn
