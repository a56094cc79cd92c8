// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The backward pass on Hopper: row statistics in rings filled by bulk copies; dS through shared memory for dQ.
#pragma once
#include "attn/backward.cuh"
#include "attn/wgmma.cuh"

namespace attn {

template <int Rows, int StageCount> using RowStatisticsRing = RingBase<RowStatistics<Rows>, StageCount>;

// Producer; see producer_load().
template <int N, int S>
ATTN_INLINE void producer_load_row_statistics(RowStatisticsRing<N, S> &ring, const float *from, long long pitch) {
  if (lane_index() == 0) {
    barrier_wait(ring.empty(), ring.parity() ^ 1);
    barrier_expect(ring.full(), RowStatistics<N>::Bytes);
#pragma unroll
    for (int kind = 0; kind < 2; ++kind)
      bulk_load<N * 4>(ring.tile().address + kind * N * 4, from + kind * pitch, ring.full());
  }
  ring.step();
}

// Loads row statistics into the softmax state of the threads that own the rows: the LSE in base 2 as the maximum (+inf
// for a fully masked row or one past the end), the known part of delta as the sum.
template <int R, int W>
ATTN_INLINE void load_row_statistics(SoftmaxState<R, W> &row, const float *lse, long long, const float *known,
                                     long long, float sign, int rows) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    const int r = row.recomputed_row(i);
    row.max[i] = lse_in_base_2(r < rows ? lse[r] : -infinity());
    row.sum[i] = known && r < rows ? sign * known[r] : 0;
  }
}
// Calls f(m, n, i, row of the lane) for each element, alternating between the keys of both rows.
template <int R, int N, int W, class F> ATTN_INLINE void each_element(const Frag<R, N, W> &s, F f) {
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f(m, n, i, 2 * m + i / 2);
}
template <bool Transposed, int R, int N, int W>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const SoftmaxState<R, W> &row, float scale) {
  static_assert(!Transposed);
  each_element(s, [&](int m, int n, int i, int r) { s.v[m][n][i] = exp2(fmaf(s.v[m][n][i], scale, -row.max[r])); });
}
// Loads operand rows by 16 bytes: the four lanes of a quad share a row, and a lane's chunks of its rows follow each
// other in its registers. The order of columns differs from that of load_operand().
template <int Dim, class T, int R, int C, int W>
ATTN_INLINE void load_operand_rows(RegisterOperand<T, R, C, W> &operand, const T *src, long long stride, int rows) {
  constexpr int Own = C / 32;
  const unsigned t = reread_thread_index() % 4u;
#pragma unroll
  for (int n = 0; n < 2 * Own; ++n) {
    const int r = operand.recomputed_row(n / Own), column = (t + n % Own * 4) * 8;
    const uint4 x = r < rows && (Dim % 32 == 0 || column < Dim) ? *(const uint4 *)(src + r * stride + column) : uint4();
    operand.v[0][n][0] = x.x, operand.v[0][n][1] = x.y, operand.v[0][n][2] = x.z, operand.v[0][n][3] = x.w;
  }
}
// 16 bytes of O: from an operand that load_operand_rows() filled, or from a tile, at the offset of dO's bytes in
// theirs.
template <class T, int R, int C, int W>
ATTN_INLINE uint4 chunk_of(const RegisterOperand<T, R, C, W> &o, int n, int /*from*/) {
  return {o.v[0][n][0], o.v[0][n][1], o.v[0][n][2], o.v[0][n][3]};
}
template <class T, int N, int M> ATTN_INLINE uint4 chunk_of(const Swizzled<T, N, M> &o, int /*n*/, int from) {
  return chunk_at(o.address + from);
}
// Adds rowsum(O * dO) to the sums, of the tile's rows from First on. A tile may have rows of the first warps only; the
// sums of other warps are not used.
template <int First = 0, int R, int W, class O, class T, int N, int M>
ATTN_INLINE void add_delta(SoftmaxState<R, W> &row, const O &o, const Swizzled<T, N, M> &grad) {
  constexpr int Own = (M + 31) / 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = min(First + row.recomputed_row(i), N - 1);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < Own; ++j) {
      const int unit = lane_index() % 4 + 4 * j;
      const int from = unit / 8 * grad.ChunkBytes + r * 128 + (unit % 8 ^ r % 8) * 16;
      const uint4 x = chunk_at(grad.address + from), w = chunk_of(o, i * Own + j, from);
      const unsigned y[4] = {x.x, x.y, x.z, x.w}, z[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
      for (int k = 0; k < 4; ++k)
        sum = fmaf(low_half<T>(y[k]), low_half<T>(z[k]), fmaf(high_half<T>(y[k]), high_half<T>(z[k]), sum));
    }
    row.sum[i] += quad_sum(sum);
  }
  fence_async();
  __syncwarp(); // all lanes have read O, whose slot one lane may release
}

// For rows whose keys are all in the fragment: x becomes p * (x - delta), where delta is the known part plus the row's
// sum of p * x. All sums are computed first: row by row, ptxas lacks registers for the next products. Known: the known
// part is all of delta. HasDropout: pairs with a negative p are dropped, x of the other pairs is multiplied by a
// factor.
template <bool HasDropout = false, bool Known = false, int R, int N, int W>
ATTN_INLINE void single_pass_grads(Frag<R, N, W> &x, Frag<R, N, W> &p, const SoftmaxState<R, W> &row,
                                   float factor = 1) {
  float delta[R / W / 8] = {};
  auto weight = [&](int m, int n, int i) { return HasDropout ? fabsf(p.v[m][n][i]) : p.v[m][n][i]; };
  auto scale = [&](int m, int n, int i) {
    if (HasDropout)
      x.v[m][n][i] = p.v[m][n][i] < 0 ? 0 : x.v[m][n][i] * factor;
  };
  if (!Known)
    each_element(x, [&](int m, int n, int i, int r) {
      scale(m, n, i), delta[r] = fmaf(weight(m, n, i), x.v[m][n][i], delta[r]);
    });
#pragma unroll
  for (int i = 0; i < 2 * x.Blocks; ++i)
    delta[i] = (Known ? 0 : quad_sum(delta[i])) + row.sum[i];
  each_element(x, [&](int m, int n, int i, int r) {
    if (Known)
      scale(m, n, i);
    x.v[m][n][i] = weight(m, n, i) * (x.v[m][n][i] - delta[r]);
    if (HasDropout)
      asm("max.NaN.f32 %0, %0, 0f00000000;" : "+f"(p.v[m][n][i])); // one instruction, and a NaN stays a NaN
  });
}

// Slots of dS alternate. The named barrier makes each warp wait for the rows of the others, so when a warp comes
// here again, the slot before last has been read. A tile may have room for the rows of the first warps only, and
// may have more columns.
template <class T, int R, int C, int Rows, int Cols, int W>
ATTN_INLINE Swizzled<T, R, C> store_and_sync(Ring<T, R, C, 2> &ring, const RegisterOperand<T, Rows, Cols, W> &operand) {
  static_assert(Rows == 16 * W && R <= Rows && R % 16 == 0 && C >= Cols);
  const Swizzled<T, R, C> tile = ring.tile();
  const int lane = lane_index(), row = warp_index() * 16 + lane % 16;
  if (R == Rows || row < R)
#pragma unroll
    for (int k = 0; k < Cols / 16; ++k) {
      const int unit = (k % 4 * 2 + lane / 16) ^ (row % 8);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       tile.address + k / 4 * tile.ChunkBytes + row * 128 + unit * 16),
                   "r"(operand.v[0][k][0]), "r"(operand.v[0][k][1]), "r"(operand.v[0][k][2]), "r"(operand.v[0][k][3])
                   : "memory");
    }
  fence_async();
  asm volatile("bar.sync 8, %0;" ::"n"(W * 32) : "memory");
  ring.step();
  return tile;
}

// Byte offset of a lane's first 16 bytes in a tile that producer_store() writes.
ATTN_INLINE int store_offset_of(int warp, int lane) {
  const int row = warp * 16 + lane % 16;
  return row * 128 + (lane / 16 ^ row % 8) * 16;
}

// A ring that all consumer warps fill with their rows for the dQ MMA warpgroup.
template <class T, int R, int C, int S> struct StoreRing : RingBase<Swizzled<T, R, C>, S> {
  unsigned place; // kept in a register: recomputing it takes longer than the store
  ATTN_INLINE StoreRing(int tiles_at, int barriers_at, int place)
      : RingBase<Swizzled<T, R, C>, S>(tiles_at, barriers_at), place(place) {}
  ATTN_INLINE StoreRing(int tiles_at, int barriers_at)
      : StoreRing(tiles_at, barriers_at, optimization_barrier(store_offset_of(warp_index(), lane_index()))) {}
  ATTN_INLINE void init_for(int writers, int readers) const {
    for (int i = 0; i < S; ++i)
      barrier_init(this->barriers + i * 8, writers), barrier_init(this->barriers + (S + i) * 8, readers);
  }
  ATTN_INLINE void init(int consumers, int /*others*/) const { init_for(consumers, 4); }
};
// A ring that the consumer warps both fill and read. consumer_wait() waits until all warps have committed, so all rows
// are there (a warp whose rows the tile lacks stores nothing). producer_store() waits until no warp reads the previous
// contents. consumer_release() advances the ring. Several such rings share one `place`.
template <class T, int R, int C, int S> struct ExchangeRing : StoreRing<T, R, C, S> {
  ATTN_INLINE ExchangeRing(int tiles_at, int barriers_at)
      : StoreRing<T, R, C, S>(tiles_at, barriers_at, store_offset_of(warp_index(), lane_index())) {}
  ATTN_INLINE void init(int consumers, int /*others*/) const { this->init_for(consumers, consumers); }
};
template <class T, int R, int N, int W>
ATTN_INLINE void pieces_of(unsigned (&x)[4], const RegisterOperand<T, R, N, W> &operand, int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    x[i] = operand.v[0][k][i];
}
template <class T, int R, int N, int W> ATTN_INLINE void pieces_of(unsigned (&x)[4], const Frag<R, N, W> &s, int k) {
  pack_depth<T>(x, s, 0, k * 16);
}
// Stores rows from row First on; of a tile with fewer rows, those of the first warps.
template <int First = 0, class T, int R, int C, class Operand>
ATTN_INLINE void store_rows_at(unsigned at, const Swizzled<T, R, C> &, const Operand &tile) {
  static_assert(Operand::Rows == 16 * Operand::Warps && R % 16 == 0 && Operand::Cols <= C);
  if (R >= First + Operand::Rows || First + warp_index() * 16 < R)
#pragma unroll
    for (int k = 0; k < Operand::Cols / 16; ++k) {
      unsigned x[4];
      pieces_of<T>(x, tile, k);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       (at ^ k % 4 * 32) + k / 4 * Swizzled<T, R, C>::ChunkBytes + First * 128),
                   "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                   : "memory");
    }
}
template <int First = 0, class T, int R, int C, int S, class Operand>
ATTN_INLINE void producer_store(const StoreRing<T, R, C, S> &ring, const Operand &operand) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  __syncwarp();
  store_rows_at<First>(ring.tile().address + ring.place, ring.tile(), operand);
}
// Stores zeros: the step masks all rows of this warp.
template <class T, int R, int C, int S> ATTN_INLINE void producer_store_zeros(const StoreRing<T, R, C, S> &ring) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  const int thread = reread_thread_index();
  const unsigned at = ring.tile().address + thread / 32 * 2048 + thread % 32 * 16;
#pragma unroll
  for (int i = 0; i < C / 16; ++i)
    asm volatile(
        "st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at + i / 4 * Swizzled<T, R, C>::ChunkBytes + i % 4 * 512),
        "r"(0)
        : "memory");
}
// A register operand stashed in the ring's next slot: each lane keeps the numbers of 16 columns in 16 contiguous bytes,
// within the rows that its warp stores there later.
template <class Element, int R, int C, int W> struct Stash {
  using T = Element;
  unsigned address, v[4];
};
template <int W, class T, int R, int C, int S> ATTN_INLINE Stash<T, R, C, W> stash(const StoreRing<T, R, C, S> &ring) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  const int thread = reread_thread_index();
  return {ring.tile().address + thread / 32 * 2048 + thread % 32 * 16};
}
// Stores over a stash. A kernel with a stash lacks a register for the ring's `place`, so the offset is recomputed.
template <class T, int R, int C, int S, int W>
ATTN_INLINE void producer_store(const StoreRing<T, R, C, S> &ring, const RegisterOperand<T, R, C, W> &operand,
                                const Stash<T, R, C, W> &) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  __syncwarp(); // all lanes have read the stash
  const int thread = reread_thread_index();
  store_rows_at(ring.tile().address + store_offset_of(thread / 32, thread % 32), ring.tile(), operand);
}
template <class T, int R, int C, int W> ATTN_INLINE unsigned stash_address(const Stash<T, R, C, W> &a, int k) {
  return a.address + k / 4 * Swizzled<T, R, C>::ChunkBytes + k % 4 * 512;
}
template <class T, int R, int C, int W>
ATTN_INLINE void set_pair(Stash<T, R, C, W> &a, int, int k, int i, unsigned pair) {
  a.v[i] = pair;
  if (i == 3)
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(stash_address(a, k)), "r"(a.v[0]), "r"(a.v[1]),
                 "r"(a.v[2]), "r"(a.v[3])
                 : "memory");
}
template <class T, int R, int C, int W> ATTN_INLINE unsigned pair_of(Stash<T, R, C, W> &a, int, int n, int i) {
  if (n % 2 == 0 && i == 0)
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a.v[0]), "=r"(a.v[1]), "=r"(a.v[2]), "=r"(a.v[3])
                 : "r"(stash_address(a, n / 2)));
  return a.v[n % 2 * 2 + i / 2];
}

template <class T, int R, int C, int S> ATTN_INLINE void producer_commit(const ExchangeRing<T, R, C, S> &ring) {
  fence_async();
  __syncwarp();
  if (lane_index() == 0)
    barrier_arrive(ring.full());
}
template <class T, int R, int C, int S> ATTN_INLINE void producer_commit(StoreRing<T, R, C, S> &ring) {
  fence_async();
  __syncwarp();
  if (lane_index() == 0)
    barrier_arrive(ring.full());
  ring.step();
}

// Makes the conversion complete before what follows begins. Otherwise the next products begin earlier and take
// registers of their own.
template <class T, int R, int N, int W>
ATTN_INLINE void convert_at_once(RegisterOperand<T, R, N, W> &p, Frag<R, N, W> &s) {
  convert(p, s);
#pragma unroll
  for (int k = 0; k < N / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("" : "+r"(p.v[0][k][i])::"memory");
}

// A product over K rows, from step Step on; `more`: accumulates.
template <int Step, class T, int K, int N, int Pieces>
ATTN_INLINE void atb_steps(float (&acc)[Pieces][4], unsigned long long a, unsigned long long b, bool more = false) {
  constexpr int steps = Step + 4 <= K / 16 ? 4 : 1;
  if constexpr (steps == 4)
    Wgmma<T, N>::template four_atb<Step * 128>(acc, a, b, more);
  else
    Wgmma<T, N>::template atb<Step * 128>(acc, a, b, more);
  if constexpr (Step + steps < K / 16)
    atb_steps<Step + steps, T, K, N>(acc, a, b, true);
}
// acc = A^T B, one block of 64 rows: blocks are numbered by A's columns first, then by B's.
template <class T, int R, int C, int W, int K, int M, int N>
ATTN_INLINE void mma_atb_block(Frag<R, C, W> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B, int block) {
  constexpr int blocks = M / 64;
  const int column = block / blocks * C;
  warpgroup_fence_operand(acc);
  warpgroup_arrive();
  atb_steps<0, T, K, C>(acc.v[0], make_descriptor(A.address + block % blocks * A.ChunkBytes, A.ChunkBytes),
                        make_descriptor(B.address + column / 64 * B.ChunkBytes + column % 64 * 2, B.ChunkBytes));
  warpgroup_commit();
}
// One block for each warpgroup, or block At by a single warpgroup.
template <class T, int R, int C, int W, int K, int M, int N>
ATTN_INLINE void mma_atb(Frag<R, C, W> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B) {
  mma_atb_block(acc, A, B, warp_index() / 4);
}
template <int At, class T, int C, int K, int M, int N>
ATTN_INLINE void mma_atb(Frag<64, C, 4> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B) {
  mma_atb_block(acc, A, B, At);
}

} // namespace attn
