// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backward pass on Hopper: statistics of query rows in rings, by bulk copies; dS through shared memory for dQ, which is added up in global memory.
#pragma once
#include "attn/backward.cuh"
#include "attn/wgmma.cuh"

namespace attn {

template <int Rows, int StageCount> using StatisticsRing = Slots<Statistics<Rows>, StageCount>;

// Producer, as fill().
template <int N, int S> ATTN_INLINE void fill_statistics(StatisticsRing<N, S> &ring, const float *from, long long pitch) {
  if (lane_index() == 0) {
    barrier_wait(ring.empty(), ring.parity ^ 1);
    barrier_expect(ring.full(), Statistics<N>::Bytes);
#pragma unroll
    for (int kind = 0; kind < 2; ++kind)
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(ring.tile().address + kind * N * 4),
                   "l"(from + kind * pitch), "n"(N * 4), "r"(ring.full())
                   : "memory");
  }
  ring.step();
}

// The slots of dS are used in turn. Each warp waits here for the others' rows, so that whoever comes here again has read the slot before last.
template <class T, int R, int C, int W, int Kernel = 0> ATTN_INLINE Swizzled<T, R, C> share(Ring<T, R, C, 2> &ring, const Held<T, R, C, W> &held) {
  static_assert(R == 16 * W);
  const Swizzled<T, R, C> tile = ring.tile();
  const int lane = lane_index(), row = warp_index() * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < C / 16; ++k) {
    const int unit = (k % 4 * 2 + lane / 16) ^ (row % 8);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(tile.address + k / 4 * tile.ChunkBytes + row * 128 + unit * 16),
                 "r"(held.v[0][k][0]), "r"(held.v[0][k][1]), "r"(held.v[0][k][2]), "r"(held.v[0][k][3])
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync 8, %0;" ::"n"(W * 32) : "memory");
  ring.step();
  return tile;
}

template <int Step, class T, int K, int N, int Pieces>
ATTN_INLINE void tn_steps(float (&acc)[Pieces][4], unsigned long long a, unsigned long long b) {
  constexpr int steps = Step + 4 <= K / 16 ? 4 : 1;
  if constexpr (steps == 4) Wgmma<T, N>::template four_tn<Step * 128>(acc, a, b, Step != 0);
  else Wgmma<T, N>::template tn<Step * 128>(acc, a, b, Step != 0);
  if constexpr (Step + steps < K / 16) tn_steps<Step + steps, T, K, N>(acc, a, b);
}
// acc = A^T B, a block of 64 rows for each warpgroup: first those of A's columns, then those of B's.
template <class T, int R, int C, int W, int K, int M, int N> ATTN_INLINE void mma_tn(Frag<R, C, W> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B) {
  constexpr int blocks = M / 64;
  const int block = warp_index() / 4, column = block / blocks * C;
  settle(acc);
  begin_products();
  tn_steps<0, T, K, C>(acc.v[0], describe(A.address + block % blocks * A.ChunkBytes, A.ChunkBytes),
                       describe(B.address + column / 64 * B.ChunkBytes + column % 64 * 2, B.ChunkBytes));
  end_products();
}

template <int ByteCount> struct Staging {
  static constexpr int Bytes = ByteCount;
  unsigned address;
  unsigned turn = 0;  // of its halves, in bytes
  ATTN_INLINE explicit Staging(int offset) : address(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
};

// Each warpgroup for itself: when the copy before has read the staging place, its block is written there and added from there. Where there is room for two
// blocks, the copy before that.
template <int R, int C, int W, int B> ATTN_INLINE void add_sum(float *sum, const Frag<R, C, W> &acc, Staging<B> &staging) {
  constexpr int bytes = 64 * C * 4, both = R * C * 4 * 2 <= B;
  const int group = warp_index() / 4, thread = threadIdx.x % 128;
  const unsigned at = staging.address + staging.turn + group * bytes;
  if (both) staging.turn ^= B / 2;
  if (thread == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(both) : "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
#pragma unroll
  for (int n = 0; n < acc.Pieces; ++n)
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at + (n * 128 + thread) * 16), "f"(acc.v[0][n][0]), "f"(acc.v[0][n][1]), "f"(acc.v[0][n][2]),
                 "f"(acc.v[0][n][3])
                 : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  if (thread == 0)
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::"l"(sum + group * 64 * C), "r"(at),
                 "n"(bytes)
                 : "memory");
}
// The same from registers, 16 bytes each.
template <int R, int C, int W> ATTN_INLINE void add_sum(float *sum, const Frag<R, C, W> &acc) {
  float *const at = sum + warp_index() / 4 * 64 * C + threadIdx.x % 128 * 4;
#pragma unroll
  for (int n = 0; n < acc.Pieces; ++n)
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at + n * 512), "f"(acc.v[0][n][0]), "f"(acc.v[0][n][1]), "f"(acc.v[0][n][2]),
                 "f"(acc.v[0][n][3])
                 : "memory");
}
// What is on its way has left shared memory; the kernel's end waits for the rest.
ATTN_INLINE void end_sums() {
  if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

}  // namespace attn
