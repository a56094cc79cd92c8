// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pipelines between a TMA producer warp and consumers: rings of tiles in shared memory, synchronized by mbarriers.
//
// A ring has Stages slots with two mbarriers each. `full` completes when the bytes of a tile have landed, `empty` when
// every consumer warp has released it. Slots are used in order, and each role has a cursor of its own.
#pragma once
#include "attn/fragment.cuh"

namespace attn {

// The result of cuTensorMapEncodeTiled: rank 4, (column, row, head, batch), boxes of a tile's rows by 64 columns, 128
// byte swizzle, zeros out of bounds. Maps of packed rows have rank 5.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};
constexpr int kPackedRows = 1 << 30;

// Warp specialization: the last warpgroup is the producer; with ATTN_DQ_MMA_KERNEL the one before it is the dQ MMA
// warpgroup; all others are consumers.
#define ATTN_DQ_MMA_KERNEL(name, block_threads, blocks_per_sm)                                                         \
  template <> struct attn::Block<0> {                                                                                  \
    static constexpr int threads = block_threads, dq_mma_warps = 4;                                                    \
  };                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(block_threads, blocks_per_sm) name
template <class Of> ATTN_INLINE constexpr auto dq_mma_warps(int) -> decltype(Of::dq_mma_warps) {
  return Of::dq_mma_warps;
}
template <class Of> ATTN_INLINE constexpr int dq_mma_warps(long) { return 0; }
template <int Kernel = 0> ATTN_INLINE constexpr int producer_warp() { return Block<Kernel>::threads / 32 - 4; }
template <int Kernel = 0> ATTN_INLINE constexpr int consumer_warps() {
  return producer_warp<Kernel>() - dq_mma_warps<Block<Kernel>>(0);
}
template <int Kernel = 0> ATTN_INLINE bool is_consumer() { return warp_index() < consumer_warps<Kernel>(); }
template <int Kernel = 0> ATTN_INLINE bool is_dq_mma() { return warp_index() < producer_warp<Kernel>(); }

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
// Orders a lane's accesses to shared memory before those of bulk copies and products that follow a barrier. An mbarrier
// arrival alone does not order earlier loads: without the fence, a copy has overwritten what they read
// (docs/Schedules/stationary_q_backward.md).
ATTN_INLINE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Returns when the phase of this parity is complete. The hardware suspends the warp for a while in each try.
ATTN_INLINE void barrier_wait(unsigned barrier, unsigned parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra "
               "over;\nbra again;\nover:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

// Begins a contiguous bulk copy to shared memory, which completes at the mbarrier.
template <int Bytes> ATTN_INLINE void bulk_load(unsigned to, const void *from, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "n"(Bytes), "r"(barrier)
               : "memory");
}

// A tile as TMA writes it with a 128 byte swizzle: columns in chunks of 64 (128 bytes), the rows of a chunk contiguous,
// 16 byte unit u of row r at unit u ^ (r % 8). Columns beyond Cols are zeros.
template <class Element, int RowCount, int ColCount> struct Swizzled {
  using T = Element;
  static constexpr int Rows = RowCount, Cols = ColCount, Chunks = (ColCount + 63) / 64, ChunkBytes = RowCount * 128,
                       Bytes = Chunks * ChunkBytes;
  static constexpr bool ReadByLanes = false; // one lane releases for its warp: products complete for all lanes at once,
                                             // and lanes that read a tile themselves synchronize afterwards (add_delta)
  static_assert(Rows % 8 == 0 && Rows <= 256 && Cols % 16 == 0);
  unsigned address;
  static ATTN_INLINE Swizzled at_address(unsigned address) { return {address}; }
};

// The position of a role in a ring: a slot and the phase parity. In kernels with a dQ MMA warpgroup, where registers
// are scarce, both follow from one counter.
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
using Cursor = CursorOf<Stages, (dq_mma_warps<Block<0 * Stages>>(0) > 0) && (Stages & (Stages - 1)) == 0>;

template <class TileType, int StageCount, bool ReadByDqMma = false> struct RingBase {
  using Tile = TileType;
  static constexpr int Stages = StageCount;
  // Arrivals with which a warp releases a slot. If lanes read it themselves, each arrives itself. (One arrival after
  // __syncwarp() is equally correct and no faster, but the race checker of compute-sanitizer does not follow it.)
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

// ReadByDqMma: the dQ MMA warps consume it, too.
template <class Element, int RowCount, int ColCount, int StageCount, bool ReadByDqMma = false>
using Ring = RingBase<Swizzled<Element, RowCount, ColCount>, StageCount, ReadByDqMma>;

// Producer: waits until the next slot is empty, then calls `load_box(to, column, row)` for each chunk of columns.
// Out-of-bounds elements become zeros, and their bytes count as landed. BoxRows: rows of a box that does not fill the
// tile, of which there may be several.
template <int BoxRows, int Boxes, class T, int R, int C, int S, bool D, class F>
ATTN_INLINE void producer_load_chunks(Ring<T, R, C, S, D> &ring, F load_box) {
  if (lane_index() == 0) {
    using Tile = typename Ring<T, R, C, S, D>::Tile;
    barrier_wait(ring.empty(), ring.parity() ^ 1);
    barrier_expect(ring.full(), BoxRows ? Boxes * BoxRows * 128 * Tile::Chunks : Tile::Bytes);
#pragma unroll
    for (int i = 0; i < Boxes; ++i)
#pragma unroll
      for (int c = 0; c < Tile::Chunks; ++c)
        load_box(ring.tile().address + c * Tile::ChunkBytes + i * BoxRows * 128, c * 64, i * BoxRows);
  }
  ring.step();
}
// Loads the box at (row, head, batch), or at (head, row, batch) for a tensor map whose heads come before rows.
template <int BoxRows = 0, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head, int batch) {
  producer_load_chunks<BoxRows, 1>(ring, [&](unsigned to, int column, int) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
                 "%5}], [%6];" ::"r"(to),
                 "l"(&map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(ring.full())
                 : "memory");
  });
}
// The same for packed rows, of which `left` belong to the sequence: zeros behind them. attn-rt/TensorMap.h explains the
// five coordinates.
ATTN_INLINE void tma_load_packed(unsigned to, const TensorMap &map, int column, int second, int third, int end,
                                 unsigned full) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
               "%5, %6}], [%7];" ::"r"(to),
               "l"(&map), "r"(column), "r"(second), "r"(third), "r"(end), "r"(kPackedRows), "r"(full)
               : "memory");
}
template <int BoxRows = 0, int Boxes = 1, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load_packed(Ring<T, R, C, S, D> &ring, const TensorMap &map, int row, int head, int left) {
  producer_load_chunks<BoxRows, Boxes>(ring, [&](unsigned to, int column, int first) {
    tma_load_packed(to, map, column, kPackedRows - left + first, head, row + left, ring.full());
  });
}
template <int BoxRows = 0, class T, int R, int C, int S, bool D>
ATTN_INLINE void producer_load_packed_heads(Ring<T, R, C, S, D> &ring, const TensorMap &map, int head, int row,
                                            int left) {
  producer_load_chunks<BoxRows, 1>(ring, [&](unsigned to, int column, int) {
    tma_load_packed(to, map, column, head, kPackedRows - left, row + left, ring.full());
  });
}

// Consumer: waits for the next tile.
template <class Tile, int S, bool D> ATTN_INLINE Tile consumer_wait(const RingBase<Tile, S, D> &ring) {
  barrier_wait(ring.full(), ring.parity());
  return ring.tile();
}
// The same if there is one, else returns another tile whose contents are not used.
template <class Tile, int S, bool D, class Other>
ATTN_INLINE Tile consumer_wait(const RingBase<Tile, S, D> &ring, bool more, const Other &other) {
  if (more)
    barrier_wait(ring.full(), ring.parity());
  return Tile::at_address(more ? ring.tile().address : other.address);
}
// Advances past a tile that is still being read: the next tile can be waited for before this one is released by
// consumer_release_previous().
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
    __syncwarp(); // not needed for order: without this convergence point the compiler needs one more register, and a
                  // kernel spills
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
// Releases ahead of consumer_release(), which then does not arrive, if no reads follow (!more). Predicated: a branch
// would change the code that the compiler makes of the loop.
template <class Tile, int S, bool D> ATTN_INLINE void consumer_release_early(RingBase<Tile, S, D> &ring, bool more) {
  static_assert(!Tile::ReadByLanes);
  ring.released_early = !more;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(ring.empty()),
      "r"(int(!more & (lane_index() < ring.Arrivals)))
      : "memory");
}

} // namespace attn
