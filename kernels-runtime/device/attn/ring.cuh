// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles that one warp brings by TMA while others multiply: rings of shared memory, handed back and forth by mbarriers.
//
// A ring has Stages slots and two barriers a slot. `full` completes when a tile's bytes have landed, `empty` when every consumer warp is done with
// it. Slots are used in order, so each role keeps a cursor of its own: a slot number and the parity of the round it is in.
#pragma once
#include "attn/fragment.cuh"

namespace attn {

// What cuTensorMapEncodeTiled makes: rank 4, (column, row, head, batch), boxes of a tile's rows by 64 columns, 128 byte swizzle, zeros out of bounds.
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// The last warpgroup brings tiles, all before it multiply.
template <int Kernel = 0> ATTN_INLINE constexpr int consumer_warps() { return Block<Kernel>::threads / 32 - 4; }
template <int Kernel = 0> ATTN_INLINE bool is_consumer() { return warp_index() < consumer_warps<Kernel>(); }

ATTN_INLINE int warpgroup_index() { return uniform(threadIdx.x / 128); }

ATTN_INLINE void barrier_init(unsigned barrier, int arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory"); }
ATTN_INLINE void barrier_arrive(unsigned barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
ATTN_INLINE void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Returns when the barrier's phase of this parity is over. The hardware suspends the warp for a while in each try.
ATTN_INLINE void barrier_wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra over;\nbra again;\nover:\n}" ::"r"(barrier), "r"(parity)
      : "memory");
}

// A tile as TMA leaves it: columns in chunks of 64 (128 bytes), a chunk's rows one after the other, 16 byte units of row r at place unit ^ (r % 8).
// Columns beyond Cols are zeros.
template <class Element, int RowCount, int ColCount> struct Swizzled {
  using T = Element;
  static constexpr int Rows = RowCount, Cols = ColCount, Chunks = (ColCount + 63) / 64, ChunkBytes = RowCount * 128, Bytes = Chunks * ChunkBytes;
  static constexpr bool ReadByLanes = false;  // products end for all lanes at once
  static_assert(Rows % 8 == 0 && Rows <= 256 && Cols % 16 == 0);
  unsigned address;
  static ATTN_INLINE Swizzled lying(unsigned address) { return {address}; }
};

template <class TileType, int StageCount> struct Slots {
  using Tile = TileType;
  static constexpr int Stages = StageCount;
  // Of a warp that gives a slot back: lanes that read by themselves say so by themselves. (One for all behind __syncwarp() is as right and no faster, but the
  // sanitizer's race checker does not follow it.)
  static constexpr int Arrivals = Tile::ReadByLanes ? 32 : 1;
  unsigned tiles, barriers;
  int slot = 0;
  unsigned parity = 0;
  bool given = false;  // back already

  ATTN_INLINE Slots(int tiles_at, int barriers_at) {
    const unsigned base = unsigned(__cvta_generic_to_shared(shared_memory));
    tiles = base + tiles_at, barriers = base + barriers_at;
  }
  ATTN_INLINE unsigned full() const { return barriers + slot * 8; }
  ATTN_INLINE unsigned empty() const { return barriers + (Stages + slot) * 8; }
  ATTN_INLINE Tile tile() const { return Tile::lying(tiles + slot * Tile::Bytes); }
  ATTN_INLINE void step() {
    if (Stages == 1) parity ^= 1;
    else if (++slot == Stages) slot = 0, parity ^= 1;
  }
  ATTN_INLINE void init(int consumers, int /*others*/) const {
    for (int i = 0; i < Stages; ++i) barrier_init(barriers + i * 8, 1), barrier_init(barriers + (Stages + i) * 8, consumers * Arrivals);
  }
};

template <class Element, int RowCount, int ColCount, int StageCount> using Ring = Slots<Swizzled<Element, RowCount, ColCount>, StageCount>;

// Producer: waits for the next slot to be empty and starts bringing the box at (row, head, batch) into it, or (head, row, batch) where a map has heads take
// turns. Rows and columns out of the tensor's bounds become zeros; they count as bytes that land. BoxRows: those of a box that does not fill the tile.
template <int BoxRows = 0, class T, int R, int C, int S> ATTN_INLINE void fill(Ring<T, R, C, S> &ring, const TensorMap &map, int row, int head, int batch) {
  if (lane_index() == 0) {
    using Tile = typename Ring<T, R, C, S>::Tile;
    barrier_wait(ring.empty(), ring.parity ^ 1);
    barrier_expect(ring.full(), BoxRows ? BoxRows * 128 * Tile::Chunks : Tile::Bytes);
#pragma unroll
    for (int c = 0; c < Tile::Chunks; ++c)
      asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(
                       ring.tile().address + c * Tile::ChunkBytes),
                   "l"(&map), "r"(c * 64), "r"(row), "r"(head), "r"(batch), "r"(ring.full())
                   : "memory");
  }
  ring.step();
}

// Consumer: waits for the next tile, and gives its slot back when nothing reads it any more.
template <class Tile, int S> ATTN_INLINE Tile take(const Slots<Tile, S> &ring) {
  barrier_wait(ring.full(), ring.parity);
  return ring.tile();
}
template <class Tile, int S> ATTN_INLINE void release(Slots<Tile, S> &ring) {
  if (Tile::ReadByLanes) __syncwarp();  // not for order: where lanes meet, the compiler needs a register less, and without it a kernel spills
  if (lane_index() < ring.Arrivals && !ring.given) barrier_arrive(ring.empty());
  ring.given = false;
  ring.step();
}
// The same ahead of release(), if there are no more reads. No branch: a loop with one more is other code to the compiler.
template <class Tile, int S> ATTN_INLINE void release_early(Slots<Tile, S> &ring, bool more) {
  ring.given = !more;
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\n@p mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(ring.empty()), "r"(int(!more & (lane_index() < ring.Arrivals)))
               : "memory");
}

}  // namespace attn
