// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dQ accumulation of the Hopper backward pass in global memory. Fragments are staged in shared memory and added by two
// dQ store warps. Wide heads, and heads to 64 columns in ordered mode, are added from registers instead; in ordered
// mode these warps then signal when.
#pragma once
#include "attn/backward/dq_layout.cuh"
#include "attn/copy/ring.cuh"
#include "attn/epilogue/store.cuh"

namespace attn {

// Staging buffer for fragments on their way to global memory: filled by all consumer warps, or by the dQ MMA warps
// (WarpCount), and drained by the two dQ store warps in alternation.
template <int SlotCount, int ByteCount, int WarpCount = 0> struct Staging {
  static constexpr int Slots = SlotCount, Bytes = ByteCount;
  unsigned slots; // followed by full[Slots], empty[Slots]
  Cursor<Slots> cursor;
  ATTN_INLINE explicit Staging(int offset) : slots(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  ATTN_INLINE unsigned parity() const { return cursor.parity(); }
  ATTN_INLINE unsigned at() const { return slots + cursor.slot() * Bytes; }
  ATTN_INLINE unsigned full() const { return slots + Slots * Bytes + cursor.slot() * 8; }
  ATTN_INLINE unsigned empty() const { return full() + Slots * 8; }
  ATTN_INLINE unsigned word() const { return empty() + Slots * 8; } // without staged bytes: see add_global_ordered()
  ATTN_INLINE void step() { cursor.step(); }
  ATTN_INLINE void init(int consumers, int /*others*/) const {
    // Each lane that reads the word arrives itself, which the race checker of compute-sanitizer can follow.
    const int writers = (WarpCount ? WarpCount : consumers) * (Bytes ? 1 : 32);
    for (int i = 0; i < Slots; ++i)
      barrier_init(slots + Slots * Bytes + i * 8, writers), barrier_init(slots + Slots * (Bytes + 8) + i * 8, 1);
  }
};

// Each warp writes its own rows in the layout of a block; the blocks of the warpgroups follow each other.
template <int S, int B, int V, int R, int C, int W>
ATTN_INLINE void stage(Staging<S, B, V> &staging, const Frag<R, C, W> &acc) {
  static_assert(R * C * 4 == B);
  barrier_wait(staging.empty(), staging.parity() ^ 1);
  const unsigned thread = V ? reread_thread_index() % unsigned(V * 32) : reread_thread_index();
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

// The two dQ store warps add tiles alternately, so that one waits for a tile while the bulk copies of the other run.
// The buffer has room for one tile or for two. A tile has Parts parts, one slot each. A slot is released when its
// contents have been read.
template <int Parts, int S, int B, int V> ATTN_INLINE bool is_own_tile(const Staging<S, B, V> &staging) {
  static_assert(S == Parts || S == 2 * Parts);
  return (S == Parts ? int(staging.parity()) : staging.cursor.slot() / Parts) == dq_store_index();
}
template <int Parts, int S, int B, int V> ATTN_INLINE void wait_for_part(const Staging<S, B, V> &staging, int part) {
  // Without this, `full` may be two phases behind this warp, and its parity would match too early.
  if constexpr (S == Parts)
    barrier_wait(staging.empty() + part * 8, staging.parity() ^ 1);
  barrier_wait(staging.full() + part * 8, staging.parity());
}
// Begins a bulk copy to global memory that stores, or else adds.
template <bool Stores> ATTN_INLINE void begin_bulk(float *to, unsigned from, int bytes) {
  if constexpr (Stores)
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}
// Begins to store or add the valid rows of one part. The blocks of a tile are contiguous in the accumulator.
template <bool Stores, class DqLayout, int B>
ATTN_INLINE void begin_part(float *sum, int left, int part, unsigned from) {
  if (left >= DqLayout::Rows)
    return begin_bulk<Stores>(sum + part * (B / 4), from, B);
  constexpr int block = 64 * DqLayout::Columns * 4, blocks = B / block;
#pragma unroll
  for (int i = 0; i < blocks; ++i) {
    const DqBlock<DqLayout> to(part * blocks + i, left);
    if (DqLayout::Rows == 64 || to.rows > 0)
      begin_bulk<Stores>(sum + to.first, from + i * block, to.rows * DqLayout::Columns * 4);
  }
}
ATTN_INLINE void end_parts() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
}
// Stores or adds each part as soon as it is staged.
template <bool Stores, class DqLayout, int Parts, int S, int B, int V>
ATTN_INLINE void add_parts(float *sum, int left, const Staging<S, B, V> &staging) {
#pragma unroll 1
  for (int part = 0; part < Parts; ++part) {
    wait_for_part<Parts>(staging, part);
    begin_part<Stores, DqLayout, B>(sum, left, part, staging.at() + part * B);
    end_parts();
    barrier_arrive(staging.empty() + part * 8);
  }
}
template <int Parts, int S, int B, int V> ATTN_INLINE void step_tile(Staging<S, B, V> &staging) {
#pragma unroll
  for (int part = 0; part < Parts; ++part)
    staging.step();
}
template <class DqLayout, int Parts = 1, int S, int B, int V>
ATTN_INLINE void add_staged(float *sum, int left, Staging<S, B, V> &staging) {
  if (is_own_tile<Parts>(staging) && lane_index() == 0)
    add_parts<false, DqLayout, Parts>(sum, left, staging);
  step_tile<Parts>(staging);
}

// The largest index from `first` to `tile` - 1 of a tile that adds to the same accumulator rows, or -1.
template <class F> ATTN_INLINE int previous_tile(int tile, int first, F adds) {
  for (int next = tile - 1; next >= first; next -= 32) {
    const int other = next - lane_index();
    if (const unsigned found = __ballot_sync(~0u, other >= first && adds(other)))
      return next - (__ffs(found) - 1);
  }
  return -1;
}
// A semaphore holds 1 + the index of the tile that was added last to its rows, 0 before the first. It orders bulk
// copies, which belong to the async proxy, so a proxy fence is needed on either side of it.
template <class F> ATTN_INLINE void semaphore_wait(const int *semaphore, F is_ready) {
  for (int last;;) {
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(last) : "l"(semaphore) : "memory");
    if (is_ready(last))
      break;
    __nanosleep(40);
  }
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
ATTN_INLINE void semaphore_release(int *semaphore, int tile) {
  asm volatile("cp.async.bulk.wait_group 0;\nfence.proxy.async.global;" ::: "memory");
  asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(semaphore), "r"(tile + 1) : "memory");
}
// Ordered accumulation: waits for all parts before it waits for the semaphore, since a warp that has passed the
// semaphore should release it soon. AfterFirst: the first tile stores, and the others add in any order after it.
// HasFirst: tiles below `first` see none of these rows and do not add.
template <class DqLayout, int Parts, bool AfterFirst, bool HasFirst, int S, int B, int V, class F>
ATTN_INLINE void add_staged(float *sum, int left, Staging<S, B, V> &staging, int *semaphore, int tile, int first,
                            F adds) {
  if (is_own_tile<Parts>(staging)) {
    const int before = previous_tile(tile, first, adds);
    if (lane_index() == 0) {
      if (HasFirst && tile < first) {
#pragma unroll 1
        for (int part = 0; part < Parts; ++part) {
          wait_for_part<Parts>(staging, part);
          barrier_arrive(staging.empty() + part * 8);
        }
      } else if constexpr (AfterFirst) {
        if (before < 0) {
          add_parts<true, DqLayout, Parts>(sum, left, staging);
          semaphore_release(semaphore, tile);
        } else {
          semaphore_wait(semaphore, [](int last) { return last != 0; });
          add_parts<false, DqLayout, Parts>(sum, left, staging);
        }
      } else {
#pragma unroll
        for (int part = 0; part < Parts; ++part)
          wait_for_part<Parts>(staging, part);
        if (before < 0) {
          begin_part<true, DqLayout, Parts * B>(sum, left, 0, staging.at());
        } else {
          semaphore_wait(semaphore, [=](int last) { return last == before + 1; });
          begin_part<false, DqLayout, Parts * B>(sum, left, 0, staging.at());
        }
        end_parts();
#pragma unroll
        for (int part = 0; part < Parts; ++part)
          barrier_arrive(staging.empty() + part * 8);
        semaphore_release(semaphore, tile);
      }
    }
    __syncwarp();
  }
  step_tile<Parts>(staging);
}
template <class DqLayout, int Parts = 1, bool AfterFirst = false, int S, int B, int V, class F>
ATTN_INLINE void add_staged(float *sum, int left, Staging<S, B, V> &staging, int *semaphore, int tile, F adds) {
  add_staged<DqLayout, Parts, AfterFirst, false>(sum, left, staging, semaphore, tile, 0, adds);
}
template <class DqLayout, int Parts = 1, bool AfterFirst = false, int S, int B, int V, class F>
ATTN_INLINE void add_staged(float *sum, int left, Staging<S, B, V> &staging, int *semaphore, int tile, int first,
                            F adds) {
  add_staged<DqLayout, Parts, AfterFirst, true>(sum, left, staging, semaphore, tile, first, adds);
}
// These rows of dQ have a sole writer, which has stored them directly; the accumulator is not used.
ATTN_INLINE void skip_add(int *semaphore) {
  if (lane_index() == 0)
    *semaphore = -1;
}
// Stores the rows of a dQ MMA warpgroup's block directly to dQ.
template <int Dim, class T, int C>
ATTN_INLINE void store_warpgroup(T *dst, long long stride, const Frag<64, C, 4> &acc, float factor, int rows) {
  const unsigned thread = reread_thread_index() % 128u, t = thread % 4;
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

// Adds from registers: each warpgroup adds its own block.
template <class DqLayout, class Frag> ATTN_INLINE void add_global(float *sum, int left, const Frag &acc) {
  const DqBlock<DqLayout> to(warp_index() / 4, left);
  move_block<AddFloats, DqLayout>(sum + to.first, acc, 0, to.rows);
}

// Ordered accumulation from registers. Slots have barriers only: `empty` completes when a tile may be added and `full`
// when it has been; a word says how: 1 for the first tile, which stores, 0 for those that add, -1 for one that sees
// none of the rows. The two dQ store warps alternate between query tiles, so that one waits for the semaphore while the
// other releases it. Last: this call adds the last block of a tile.
template <class DqLayout, int Block, bool Last, int S, int V, int R, int C, int W>
ATTN_INLINE void add_global_ordered(float *sum, int left, const Frag<R, C, W> &acc, Staging<S, 0, V> &order) {
  static_assert(C == DqLayout::Columns);
  const DqBlock<DqLayout> to(W == 4 ? Block : warp_index() / 4, left);
  float *const at = sum + to.first;
  barrier_wait(order.empty(), order.parity());
  int how;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(how) : "r"(order.word()) : "memory");
  if (how > 0)
    move_block<WriteFloats, DqLayout>(at, acc, 0, to.rows);
  else if (how == 0)
    move_block<AddFloats, DqLayout>(at, acc, 0, to.rows);
  if constexpr (Last) {
    barrier_arrive(order.full());
    order.step();
  }
}
template <class DqLayout, int /*Parts*/ = 1, int S, int V, class F>
ATTN_INLINE void add_staged(float *, int /*left*/, Staging<S, 0, V> &order, int *semaphore, int tile, int first,
                            F adds) {
  static_assert(S == 2);
  if (is_own_tile<1>(order)) {
    const int before = previous_tile(tile, first, adds);
    if (lane_index() == 0) {
      const bool sees = tile >= first;
      if (sees && before >= 0)
        semaphore_wait(semaphore, [=](int last) { return last == before + 1; });
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(order.word()), "r"(sees ? int(before < 0) : -1) : "memory");
      barrier_arrive(order.empty());
      barrier_wait(order.full(), order.parity());
      if (sees)
        asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(semaphore), "r"(tile + 1) : "memory");
    }
    __syncwarp();
  }
  order.step();
}

template <class DqLayout, int Parts = 1, int S, int V, class F>
ATTN_INLINE void add_staged(float *sum, int left, Staging<S, 0, V> &order, int *semaphore, int tile, F adds) {
  add_staged<DqLayout, Parts>(sum, left, order, semaphore, tile, 0, adds);
}

// Clears every `ctas`th slice of an array from slice `cta` on, 16 bytes a thread.
template <int Threads> ATTN_INLINE void clear_slice(float *to, long long count, int cta, int ctas) {
  for (long long i = ((long long)cta * Threads + reread_thread_index()) * 4; i < count;
       i += (long long)ctas * Threads * 4)
    *(float4 *)(to + i) = {0, 0, 0, 0};
}

} // namespace attn
