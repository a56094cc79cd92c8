// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backward pass on Hopper: statistics of query rows in rings, by bulk copies; dS through shared memory for dQ.
#pragma once
#include "attn/backward.cuh"
#include "attn/wgmma.cuh"

namespace attn {

template <int Rows, int StageCount> using StatisticsRing = Slots<Statistics<Rows>, StageCount>;

// Producer, as fill().
template <int N, int S>
ATTN_INLINE void fill_statistics(StatisticsRing<N, S> &ring, const float *from, long long pitch) {
  if (lane_index() == 0) {
    barrier_wait(ring.empty(), ring.parity() ^ 1);
    barrier_expect(ring.full(), Statistics<N>::Bytes);
#pragma unroll
    for (int kind = 0; kind < 2; ++kind)
      bring<N * 4>(ring.tile().address + kind * N * 4, from + kind * pitch, ring.full());
  }
  ring.step();
}

// What a forward pass left of a tile's rows, in registers of who has them: as the maximum lse in base 2 (+inf of a row
// that sees nothing, or is none), as the sum what is known of delta.
template <int R, int W>
ATTN_INLINE void load_statistics(Rows<R, W> &row, const float *lse, long long, const float *known, long long,
                                 float sign, int rows) {
#pragma unroll
  for (int i = 0; i < R / W / 8; ++i) {
    const int r = row.row_here(i);
    row.max[i] = lse_in_base_2(r < rows ? lse[r] : -infinity());
    row.sum[i] = known && r < rows ? sign * known[r] : 0;
  }
}
// f(m, n, i, the lane's row) for each element, all keys of both rows in turn.
template <int R, int N, int W, class F> ATTN_INLINE void each_element(const Frag<R, N, W> &s, F f) {
#pragma unroll
  for (int m = 0; m < s.Blocks; ++m)
#pragma unroll
    for (int n = 0; n < s.Pieces; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        f(m, n, i, 2 * m + i / 2);
}
template <bool Turned, int R, int N, int W>
ATTN_INLINE void probabilities(Frag<R, N, W> &s, const Rows<R, W> &row, float scale) {
  static_assert(!Turned);
  each_element(s, [&](int m, int n, int i, int r) { s.v[m][n][i] = exp2(fmaf(s.v[m][n][i], scale, -row.max[r])); });
}
// Of each row, the four lanes of a quad take 16 bytes in turns: what a lane has of its rows, one after the other.
template <int Dim, class T, int R, int C, int W>
ATTN_INLINE void hold_rows(Held<T, R, C, W> &held, const T *src, long long stride, int rows) {
  constexpr int Own = C / 32;
  const unsigned t = thread_here() % 4u;
#pragma unroll
  for (int n = 0; n < 2 * Own; ++n) {
    const int r = held.row_here(n / Own), column = (t + n % Own * 4) * 8;
    const uint4 x = r < rows && (Dim % 32 == 0 || column < Dim) ? *(const uint4 *)(src + r * stride + column) : uint4();
    held.v[0][n][0] = x.x, held.v[0][n][1] = x.y, held.v[0][n][2] = x.z, held.v[0][n][3] = x.w;
  }
}
// 16 bytes of O: as hold_rows() has them, or of a tile, from where dO's lie in theirs.
template <class T, int R, int C, int W> ATTN_INLINE uint4 chunk_of(const Held<T, R, C, W> &o, int n, int /*from*/) {
  return {o.v[0][n][0], o.v[0][n][1], o.v[0][n][2], o.v[0][n][3]};
}
template <class T, int N, int M> ATTN_INLINE uint4 chunk_of(const Swizzled<T, N, M> &o, int /*n*/, int from) {
  return chunk_at(o.address + from);
}
// Of O and dO's tile, the rows from First on. It may have the first warps' only: what others add is nobody's.
template <int First = 0, int R, int W, class O, class T, int N, int M>
ATTN_INLINE void add_deltas(Rows<R, W> &row, const O &o, const Swizzled<T, N, M> &grad) {
  constexpr int Own = (M + 31) / 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = min(First + row.row_here(i), N - 1);
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
  __syncwarp(); // all have read O, whose slot one lane may give back
}

// Of rows all of whose keys are in the fragment: x becomes p * (x - delta), delta being what is known and the row's sum
// of p * x. All sums first: row by row ptxas has no registers for the products to come. Known: what is known is all of
// it, whatever keys are there. Drops: pairs with a negative p, whose x is 0, others' times a factor.
template <bool Drops = false, bool Known = false, int R, int N, int W>
ATTN_INLINE void row_grads(Frag<R, N, W> &x, Frag<R, N, W> &p, const Rows<R, W> &row, float factor = 1) {
  float delta[R / W / 8] = {};
  auto weight = [&](int m, int n, int i) { return Drops ? fabsf(p.v[m][n][i]) : p.v[m][n][i]; };
  auto scale = [&](int m, int n, int i) {
    if (Drops)
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
    if (Drops)
      asm("max.NaN.f32 %0, %0, 0f00000000;" : "+f"(p.v[m][n][i])); // in one instruction, and a NaN stays one
  });
}

// The slots of dS are used in turn. Each warp waits here for the others' rows, so that whoever comes here again has
// read the slot before last. A tile may have room for the first warps' rows only, and for more columns.
template <class T, int R, int C, int Rows, int Cols, int W>
ATTN_INLINE Swizzled<T, R, C> share(Ring<T, R, C, 2> &ring, const Held<T, Rows, Cols, W> &held) {
  static_assert(Rows == 16 * W && R <= Rows && R % 16 == 0 && C >= Cols);
  const Swizzled<T, R, C> tile = ring.tile();
  const int lane = lane_index(), row = warp_index() * 16 + lane % 16;
  if (R == Rows || row < R)
#pragma unroll
    for (int k = 0; k < Cols / 16; ++k) {
      const int unit = (k % 4 * 2 + lane / 16) ^ (row % 8);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       tile.address + k / 4 * tile.ChunkBytes + row * 128 + unit * 16),
                   "r"(held.v[0][k][0]), "r"(held.v[0][k][1]), "r"(held.v[0][k][2]), "r"(held.v[0][k][3])
                   : "memory");
    }
  fence_async();
  asm volatile("bar.sync 8, %0;" ::"n"(W * 32) : "memory");
  ring.step();
  return tile;
}

// Where a lane's first 16 bytes lie in a tile that is put.
ATTN_INLINE int place_of(int warp, int lane) {
  const int row = warp * 16 + lane % 16;
  return row * 128 + (lane / 16 ^ row % 8) * 16;
}

// A ring filled by all warps that compute, which put their rows there, for a reducer.
template <class T, int R, int C, int S> struct PutRing : Slots<Swizzled<T, R, C>, S> {
  unsigned place; // kept: to find it each time takes longer than to write there
  ATTN_INLINE PutRing(int tiles_at, int barriers_at, int place)
      : Slots<Swizzled<T, R, C>, S>(tiles_at, barriers_at), place(place) {}
  ATTN_INLINE PutRing(int tiles_at, int barriers_at)
      : PutRing(tiles_at, barriers_at, here(place_of(warp_index(), lane_index()))) {}
  ATTN_INLINE void init_for(int writers, int readers) const {
    for (int i = 0; i < S; ++i)
      barrier_init(this->barriers + i * 8, writers), barrier_init(this->barriers + (S + i) * 8, readers);
  }
  ATTN_INLINE void init(int consumers, int /*others*/) const { init_for(consumers, 4); }
};
// For themselves: take() waits until all have published, so that all rows are there that anybody puts (a warp may have
// none, which nobody reads then), put() until nobody reads what was there before. Whose turn it is steps on with
// release(). Several such rings have one place.
template <class T, int R, int C, int S> struct MeetingRing : PutRing<T, R, C, S> {
  ATTN_INLINE MeetingRing(int tiles_at, int barriers_at)
      : PutRing<T, R, C, S>(tiles_at, barriers_at, place_of(warp_index(), lane_index())) {}
  ATTN_INLINE void init(int consumers, int /*others*/) const { this->init_for(consumers, consumers); }
};
template <class T, int R, int N, int W>
ATTN_INLINE void pieces_of(unsigned (&x)[4], const Held<T, R, N, W> &held, int k) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    x[i] = held.v[0][k][i];
}
template <class T, int R, int N, int W> ATTN_INLINE void pieces_of(unsigned (&x)[4], const Frag<R, N, W> &s, int k) {
  pack_depth<T>(x, s, 0, k * 16);
}
// From row First on; of a tile with fewer rows, the first warps'.
template <int First = 0, class T, int R, int C, class Put>
ATTN_INLINE void put_at(unsigned at, const Swizzled<T, R, C> &, const Put &tile) {
  static_assert(Put::Rows == 16 * Put::Warps && R % 16 == 0 && Put::Cols <= C);
  if (R >= First + Put::Rows || First + warp_index() * 16 < R)
#pragma unroll
    for (int k = 0; k < Put::Cols / 16; ++k) {
      unsigned x[4];
      pieces_of<T>(x, tile, k);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       (at ^ k % 4 * 32) + k / 4 * Swizzled<T, R, C>::ChunkBytes + First * 128),
                   "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                   : "memory");
    }
}
template <int First = 0, class T, int R, int C, int S, class Put>
ATTN_INLINE void put(const PutRing<T, R, C, S> &ring, const Put &held) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  __syncwarp();
  put_at<First>(ring.tile().address + ring.place, ring.tile(), held);
}
// Zeros: of a step in which this warp's rows have nothing to do.
template <class T, int R, int C, int S> ATTN_INLINE void put_zeros(const PutRing<T, R, C, S> &ring) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  const int thread = thread_here();
  const unsigned at = ring.tile().address + thread / 32 * 2048 + thread % 32 * 16;
#pragma unroll
  for (int i = 0; i < C / 16; ++i)
    asm volatile(
        "st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(at + i / 4 * Swizzled<T, R, C>::ChunkBytes + i % 4 * 512),
        "r"(0)
        : "memory");
}
// A held tile that lies in the ring's next slot: each lane's numbers of 16 columns in 16 bytes of their own, among the
// rows that its warp puts there later.
template <class Element, int R, int C, int W> struct Aside {
  using T = Element;
  unsigned address, v[4];
};
template <int W, class T, int R, int C, int S> ATTN_INLINE Aside<T, R, C, W> aside(const PutRing<T, R, C, S> &ring) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  const int thread = thread_here();
  return {ring.tile().address + thread / 32 * 2048 + thread % 32 * 16};
}
// Over what was aside. A kernel that has something there has no register for the ring's place.
template <class T, int R, int C, int S, int W>
ATTN_INLINE void put(const PutRing<T, R, C, S> &ring, const Held<T, R, C, W> &held, const Aside<T, R, C, W> &) {
  barrier_wait(ring.empty(), ring.parity() ^ 1);
  __syncwarp(); // all have read what was there
  const int thread = thread_here();
  put_at(ring.tile().address + place_of(thread / 32, thread % 32), ring.tile(), held);
}
template <class T, int R, int C, int W> ATTN_INLINE unsigned aside_at(const Aside<T, R, C, W> &a, int k) {
  return a.address + k / 4 * Swizzled<T, R, C>::ChunkBytes + k % 4 * 512;
}
template <class T, int R, int C, int W>
ATTN_INLINE void set_pair(Aside<T, R, C, W> &a, int, int k, int i, unsigned pair) {
  a.v[i] = pair;
  if (i == 3)
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(aside_at(a, k)), "r"(a.v[0]), "r"(a.v[1]),
                 "r"(a.v[2]), "r"(a.v[3])
                 : "memory");
}
template <class T, int R, int C, int W> ATTN_INLINE unsigned pair_of(Aside<T, R, C, W> &a, int, int n, int i) {
  if (n % 2 == 0 && i == 0)
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a.v[0]), "=r"(a.v[1]), "=r"(a.v[2]), "=r"(a.v[3])
                 : "r"(aside_at(a, n / 2)));
  return a.v[n % 2 * 2 + i / 2];
}

template <class T, int R, int C, int S> ATTN_INLINE void publish(const MeetingRing<T, R, C, S> &ring) {
  fence_async();
  __syncwarp();
  if (lane_index() == 0)
    barrier_arrive(ring.full());
}
template <class T, int R, int C, int S> ATTN_INLINE void publish(PutRing<T, R, C, S> &ring) {
  fence_async();
  __syncwarp();
  if (lane_index() == 0)
    barrier_arrive(ring.full());
  ring.step();
}

// What is rounded is there before what follows is begun: products else are begun ahead of it and have registers of
// their own.
template <class T, int R, int N, int W> ATTN_INLINE void round_at_once(Held<T, R, N, W> &p, Frag<R, N, W> &s) {
  round(p, s);
#pragma unroll
  for (int k = 0; k < N / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("" : "+r"(p.v[0][k][i])::"memory");
}

// Of K rows, those from the step on; `more`: added to what is there.
template <int Step, class T, int K, int N, int Pieces>
ATTN_INLINE void tn_steps(float (&acc)[Pieces][4], unsigned long long a, unsigned long long b, bool more = false) {
  constexpr int steps = Step + 4 <= K / 16 ? 4 : 1;
  if constexpr (steps == 4)
    Wgmma<T, N>::template four_tn<Step * 128>(acc, a, b, more);
  else
    Wgmma<T, N>::template tn<Step * 128>(acc, a, b, more);
  if constexpr (Step + steps < K / 16)
    tn_steps<Step + steps, T, K, N>(acc, a, b, true);
}
// acc = A^T B, one block of 64 rows: first those of A's columns, then those of B's.
template <class T, int R, int C, int W, int K, int M, int N>
ATTN_INLINE void mma_block(Frag<R, C, W> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B, int block) {
  constexpr int blocks = M / 64;
  const int column = block / blocks * C;
  settle(acc);
  begin_products();
  tn_steps<0, T, K, C>(acc.v[0], describe(A.address + block % blocks * A.ChunkBytes, A.ChunkBytes),
                       describe(B.address + column / 64 * B.ChunkBytes + column % 64 * 2, B.ChunkBytes));
  end_products();
}
// A block for each warpgroup, or the one At by one of them.
template <class T, int R, int C, int W, int K, int M, int N>
ATTN_INLINE void mma_tn(Frag<R, C, W> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B) {
  mma_block(acc, A, B, warp_index() / 4);
}
template <int At, class T, int C, int K, int M, int N>
ATTN_INLINE void mma_tn(Frag<64, C, 4> &acc, const Swizzled<T, K, M> &A, const Swizzled<T, K, N> &B) {
  mma_block(acc, A, B, At);
}

} // namespace attn
