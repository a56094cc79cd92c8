// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dQ of a backward pass on Hopper, added up in global memory: staged by those who multiply, and added by two warps, or,
// in turns, added from registers when these say so.
#pragma once
#include "attn/roles.cuh"
#include "attn/statistics.cuh"
#include "attn/sum_block.cuh"

namespace attn {

// Fragments on their way to global memory: the reverse of a ring, filled by those who compute, or a reducer's warps,
// and emptied by adders, which take turns.
template <int SlotCount, int ByteCount, int WarpCount = 0> struct Staging {
  static constexpr int Slots = SlotCount, Bytes = ByteCount;
  unsigned slots; // and behind them full[Slots], empty[Slots]
  Cursor<Slots> cursor;
  ATTN_INLINE explicit Staging(int offset) : slots(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  ATTN_INLINE unsigned parity() const { return cursor.parity(); }
  ATTN_INLINE unsigned at() const { return slots + cursor.slot() * Bytes; }
  ATTN_INLINE unsigned full() const { return slots + Slots * Bytes + cursor.slot() * 8; }
  ATTN_INLINE unsigned empty() const { return full() + Slots * 8; }
  ATTN_INLINE unsigned word() const { return empty() + Slots * 8; } // if nothing is staged
  ATTN_INLINE void step() { cursor.step(); }
  ATTN_INLINE void init(int consumers, int /*others*/) const {
    const int writers = (WarpCount ? WarpCount : consumers) *
                        (Bytes ? 1 : 32); // lanes that read a word say so by themselves, which the race checker follows
    for (int i = 0; i < Slots; ++i)
      barrier_init(slots + Slots * Bytes + i * 8, writers), barrier_init(slots + Slots * (Bytes + 8) + i * 8, 1);
  }
};

// Each warp for itself, as `SumBlock` says: a warpgroup's block behind the other's.
template <int S, int B, int V, int R, int C, int W>
ATTN_INLINE void stage(Staging<S, B, V> &staging, const Frag<R, C, W> &acc) {
  static_assert(R * C * 4 == B);
  barrier_wait(staging.empty(), staging.parity() ^ 1);
  const unsigned thread = V ? thread_here() % unsigned(V * 32) : thread_here();
  const unsigned at = staging.at() + thread / 128 * 64 * C * 4;
  for_pairs<C>(thread, [&](int i, int n, int offset, int more) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at + offset * 4 + more * 4), "f"(acc.v[0][n][i * 2]),
                 "f"(acc.v[0][n][i * 2 + 1])
                 : "memory");
  });
  fence_async();
  __syncwarp();
  if (thread % 32 == 0)
    barrier_arrive(staging.full());
  staging.step();
}

// Adders, two warps: each adds every other tile, of which there is room for two, or for one, so that one's copies are
// under way while the other waits for its own. What a slot holds has left it when it is given back. A tile comes in
// Parts, a slot each.
template <int Parts, int S, int B, int V> ATTN_INLINE bool is_mine(const Staging<S, B, V> &staging) {
  static_assert(S == Parts || S == 2 * Parts);
  return (S == Parts ? int(staging.parity()) : staging.cursor.slot() / Parts) == adder_index();
}
template <int Parts, int S, int B, int V> ATTN_INLINE void wait_for_part(const Staging<S, B, V> &staging, int part) {
  if constexpr (S == Parts)
    barrier_wait(staging.empty() + part * 8,
                 staging.parity() ^ 1); // else `full` may be two phases away, and says it is there
  barrier_wait(staging.full() + part * 8, staging.parity());
}
template <bool Copies> ATTN_INLINE void begin_copy(float *to, unsigned from, int bytes) {
  if constexpr (Copies)
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}
// Of a part, the rows that are there: all of a tile's blocks are one behind the other.
template <bool Copies, class Sums, int B> ATTN_INLINE void begin_part(float *sum, int left, int part, unsigned from) {
  if (left >= Sums::Rows)
    return begin_copy<Copies>(sum + part * (B / 4), from, B);
  constexpr int block = 64 * Sums::Columns * 4, blocks = B / block;
#pragma unroll
  for (int i = 0; i < blocks; ++i) {
    const SumBlock<Sums> to(part * blocks + i, left);
    if (Sums::Rows == 64 || to.rows > 0)
      begin_copy<Copies>(sum + to.first, from + i * block, to.rows * Sums::Columns * 4);
  }
}
ATTN_INLINE void end_parts() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
}
// Each part as it comes.
template <bool Copies, class Sums, int Parts, int S, int B, int V>
ATTN_INLINE void add_parts(float *sum, int left, const Staging<S, B, V> &staging) {
#pragma unroll 1
  for (int part = 0; part < Parts; ++part) {
    wait_for_part<Parts>(staging, part);
    begin_part<Copies, Sums, B>(sum, left, part, staging.at() + part * B);
    end_parts();
    barrier_arrive(staging.empty() + part * 8);
  }
}
template <int Parts, int S, int B, int V> ATTN_INLINE void step_tile(Staging<S, B, V> &staging) {
#pragma unroll
  for (int part = 0; part < Parts; ++part)
    staging.step();
}
template <class Sums, int Parts = 1, int S, int B, int V>
ATTN_INLINE void add_staged(float *sum, int left, Staging<S, B, V> &staging) {
  if (is_mine<Parts>(staging) && lane_index() == 0)
    add_parts<false, Sums, Parts>(sum, left, staging);
  step_tile<Parts>(staging);
}

// The last number below `tile` that adds to the same sum, or -1.
template <class F> ATTN_INLINE int number_before(int tile, F adds) {
  for (int next = tile - 1; next >= 0; next -= 32) {
    const int other = next - lane_index();
    if (const unsigned found = __ballot_sync(~0u, other >= 0 && adds(other)))
      return next - (__ffs(found) - 1);
  }
  return -1;
}
// A counter says more than what it counts: bulk copies are the async proxy's, so a fence of that lies on either side of
// it.
template <class F> ATTN_INLINE void wait_for_turn(const int *turn, F has_come) {
  for (int last;;) {
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(last) : "l"(turn) : "memory");
    if (has_come(last))
      break;
    __nanosleep(40);
  }
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
ATTN_INLINE void end_turn(int *turn, int tile) {
  asm volatile("cp.async.bulk.wait_group 0;\nfence.proxy.async.global;" ::: "memory");
  asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(turn), "r"(tile + 1) : "memory");
}
// In order of numbers: all parts are there before the turn is waited for, since who has it passes it on soon. Or in any
// order, but behind the first.
template <class Sums, int Parts = 1, bool AfterFirst = false, int S, int B, int V, class F>
ATTN_INLINE void add_staged(float *sum, int left, Staging<S, B, V> &staging, int *turn, int tile, F adds) {
  if (is_mine<Parts>(staging)) {
    const int before = number_before(tile, adds);
    if (lane_index() == 0) {
      if constexpr (AfterFirst) {
        if (before < 0) {
          add_parts<true, Sums, Parts>(sum, left, staging);
          end_turn(turn, tile);
        } else {
          wait_for_turn(turn, [](int last) { return last != 0; });
          add_parts<false, Sums, Parts>(sum, left, staging);
        }
      } else {
#pragma unroll
        for (int part = 0; part < Parts; ++part)
          wait_for_part<Parts>(staging, part);
        if (before < 0) {
          begin_part<true, Sums, Parts * B>(sum, left, 0, staging.at());
        } else {
          wait_for_turn(turn, [=](int last) { return last == before + 1; });
          begin_part<false, Sums, Parts * B>(sum, left, 0, staging.at());
        }
        end_parts();
#pragma unroll
        for (int part = 0; part < Parts; ++part)
          barrier_arrive(staging.empty() + part * 8);
        end_turn(turn, tile);
      }
    }
    __syncwarp();
  }
  step_tile<Parts>(staging);
}
// A sum that nobody adds to, since one tile has all of it, which has been written.
ATTN_INLINE void skip_sum(int *turn) {
  if (lane_index() == 0)
    *turn = -1;
}
// The rows of a reducer's block.
template <int Dim, class T, int C>
ATTN_INLINE void store_alone(T *dst, long long stride, const Frag<64, C, 4> &acc, float factor, int rows) {
  const unsigned thread = thread_here() % 128u, t = thread % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = thread / 32 * 16 + thread % 32 / 4 + i * 8;
    T *const to = dst + r * stride + t * 8;
#pragma unroll
    for (int n = 0; n < Dim / 8; n += 4) {
      unsigned x[4];
      quad_pieces<T>(x, acc, i, n, factor, ~0u, t);
      store_if(r < rows && is_inside<Dim>(n, t), to + n * 8, x);
    }
  }
}

// From registers: block `block`, or each warpgroup's block behind the other's.
template <class Sums, class Frag> ATTN_INLINE void add_sum(float *sum, int left, const Frag &acc) {
  const SumBlock<Sums> to(warp_index() / 4, left);
  move_block<AddFloats, Sums>(sum + to.first, acc, 0, to.rows);
}

// In turns, where nothing is staged: slots have barriers only, of which one completes when a block may add, and the
// other when it has, and a word, which says whether it is the first, and writes. Two warps take turns with blocks'
// query tiles, so that one waits for its turn while the other says that it is over. Over: with the last part of a tile.
template <class Sums, int Block, bool Over, int S, int V, int R, int C, int W>
ATTN_INLINE void add_in_turn(float *sum, int left, const Frag<R, C, W> &acc, Staging<S, 0, V> &turns) {
  static_assert(C == Sums::Columns);
  const SumBlock<Sums> to(W == 4 ? Block : warp_index() / 4, left);
  float *const at = sum + to.first;
  barrier_wait(turns.empty(), turns.parity());
  int writes;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(writes) : "r"(turns.word()) : "memory");
  if (writes)
    move_block<WriteFloats, Sums>(at, acc, 0, to.rows);
  else
    move_block<AddFloats, Sums>(at, acc, 0, to.rows);
  if constexpr (Over) {
    barrier_arrive(turns.full());
    turns.step();
  }
}
template <class Sums, int /*Parts*/ = 1, int S, int V, class F>
ATTN_INLINE void add_staged(float *, int /*left*/, Staging<S, 0, V> &turns, int *turn, int tile, F adds) {
  static_assert(S == 2);
  if (is_mine<1>(turns)) {
    const int before = number_before(tile, adds);
    if (lane_index() == 0) {
      if (before >= 0)
        wait_for_turn(turn, [=](int last) { return last == before + 1; });
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(turns.word()), "r"(int(before < 0)) : "memory");
      barrier_arrive(turns.empty());
      barrier_wait(turns.full(), turns.parity());
      asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(turn), "r"(tile + 1) : "memory");
    }
    __syncwarp();
  }
  turns.step();
}

// What is left to a block of an array of 0s if blocks take turns, 16 bytes a thread.
template <int Threads> ATTN_INLINE void clear_share(float *to, long long count, int block, int blocks) {
  for (long long i = ((long long)block * Threads + thread_here()) * 4; i < count; i += (long long)blocks * Threads * 4)
    *(float4 *)(to + i) = {0, 0, 0, 0};
}

} // namespace attn
