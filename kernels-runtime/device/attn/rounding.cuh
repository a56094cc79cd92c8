// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dQ of a backward pass on Hopper, rounded where its sum is complete: adders count, and tell a warp beside them, which reads the sum back into shared memory,
// scales it and rounds it. Where that warp is behind already, a sum is left to a kernel of its own: nobody waits for it.
//
// Those who add to a sum know their neighbours only: the number below their own that adds to it, too, and whether one above does. So what they add to its
// counter leaves `Complete` when all have been there and not before: the first one, who makes the sum, its number + 1; each further one the distance to the
// one before it; the last takes all of that away.
#pragma once
#include "attn/epilogue.cuh"
#include "attn/sums.cuh"

namespace attn {

// The query tile that a sum is of: its first row, and its head, among those of all sequences where they are not packed. (Two numbers are few: adders have
// no registers for more.)
struct SumOf { int row, head; };
// Room for a sum, and a word of each tile that is added: where its sum lies, how many rows it has, 0 if it is not complete, and which it is.
template <int ByteCount, class Element> struct Rounding {
  static constexpr int Bytes = ByteCount, Words = 8, WordBytes = 32;
  unsigned sum;  // and behind it: landed, said[Words], heard[Words], words[Words]
  Cursor<Words> cursor;
  ATTN_INLINE explicit Rounding(int offset) : sum(unsigned(__cvta_generic_to_shared(shared_memory)) + offset) {}
  ATTN_INLINE unsigned landed() const { return sum + Bytes; }
  ATTN_INLINE unsigned said() const { return sum + Bytes + 8 + cursor.slot() * 8; }
  ATTN_INLINE unsigned heard(int slot) const { return sum + Bytes + 8 + (Words + slot) * 8; }
  ATTN_INLINE unsigned heard() const { return heard(cursor.slot()); }
  ATTN_INLINE unsigned word() const { return sum + Bytes + 16 + Words * 16 + cursor.slot() * WordBytes; }
  ATTN_INLINE void init(int /*consumers*/, int /*others*/) const {
    for (int i = 0; i < 1 + 2 * Words; ++i) barrier_init(landed() + i * 8, i <= Words ? 1 : 32);
  }
};

constexpr int Complete = 1 << 30, Rounded = -1;  // of a counter

// One lane of an adder. Rows -1: there are no more.
template <int B, class T> ATTN_INLINE void say(const Rounding<B, T> &rounding, const float *sum, int rows, SumOf of) {
  barrier_wait(rounding.heard(), rounding.cursor.parity() ^ 1);
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};\nst.shared.b32 [%0+8], %3;\nst.shared.b64 [%0+16], %4;" ::"r"(rounding.word()), "r"(of.row), "r"(of.head), "r"(rows), "l"(sum)
               : "memory");
  barrier_arrive(rounding.said());
}
template <int Parts = 1, int B, class T, int S, int V, int N> ATTN_INLINE void end_sums(const Rounding<N, T> &rounding, const Staging<S, B, V> &staging) {
  if (is_mine<Parts>(staging) && lane_index() == 0) say(rounding, nullptr, -1, {});
}

// Is the word of the tile before read?
template <int B, class T> ATTN_INLINE bool heard_before(const Rounding<B, T> &rounding) {
  const auto &cursor = rounding.cursor;
  unsigned heard;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(heard)
               : "r"(rounding.heard(cursor.slot_before())), "r"(cursor.slot() == 0 ? cursor.parity() ^ 1 : cursor.parity())
               : "memory");
  return heard;
}
// Does a number above `tile`, below `tiles`, add to the same sum?
template <class F> ATTN_INLINE bool any_behind(int tile, int tiles, F adds) {
  for (int next = tile + 1; next < tiles; next += 32) {
    const int other = next + lane_index();
    if (__any_sync(~0u, other < tiles && adds(other))) return true;
  }
  return false;
}
// Adder, behind the first.
template <int Parts = 1, int S, int B, int V, int N, class T, class F>
ATTN_INLINE void add_staged(float *sum, Staging<S, B, V> &staging, Rounding<N, T> &rounding, int *turn, int tile, int tiles, int rows, SumOf of, F adds) {
  if (is_mine<Parts>(staging)) {
    const int before = number_before(tile, adds);
    const bool behind = any_behind(tile, tiles, adds);
    if (lane_index() == 0) {
      bool all = !behind;
      if (!add_behind_first<Parts>(sum, staging, turn, before, Complete + tile)) {
        const int more = behind ? tile - before : -before - 1;
        int last;
        wait_for_copies();
        asm volatile("atom.add.acq_rel.gpu.global.s32 %0, [%1], %2;" : "=r"(last) : "l"(turn), "r"(more) : "memory");
        all = last + more == Complete;
      }
      all = all && heard_before(rounding);
      if (all) *turn = Rounded;  // it will be
      say(rounding, sum, all ? rows : 0, of);
    }
    __syncwarp();
  }
  step_tile<Parts>(staging);
  rounding.cursor.step();
}

// Element i becomes element i + by, of four.
ATTN_INLINE void rotate(unsigned (&x)[4], int by) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    unsigned y[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = by & bit ? x[(i - bit) & 3] : x[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = y[i];
  }
}
// A complete sum, in shared memory as load_sum() says, Rows of it and Columns a fragment: 16 rows and 32 columns at a time. A lane reads the eight columns of a
// piece that two rows have, of the four threads that wrote them, each lane beginning with another, so that no bank is asked twice.
template <int Rows, int Columns, int Dim, int B, class T> ATTN_INLINE void round_landed(const Rounding<B, T> &rounding, T *to, long long stride, int rows, float scale) {
  static_assert(Columns % 32 == 0);
  constexpr int Parts = Columns / 32;
  const int piece = lane_index() % 4, r = lane_index() / 4;
  const unsigned from = rounding.sum + piece * 2048 + r * 64;
#pragma unroll 1
  for (int i = 0; i < B / 2048; ++i) {
    const int part = i / 4, block = part / Parts, row = block % (Rows / 64) * 64 + i % 4 * 16 + r;
    const int column = block / (Rows / 64) * Columns + part % Parts * 32 + piece * 8;
    unsigned x[2][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float v[4];
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(from + part * 8192 + i % 4 * 512 + (k + piece) % 4 * 16));
      x[0][k] = pack<T>(v[0] * scale, v[1] * scale), x[1][k] = pack<T>(v[2] * scale, v[3] * scale);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rotate(x[half], piece);
      store_if(row + half * 8 < rows && column < Dim, to + (row + half * 8) * stride + column, x[half]);
    }
  }
}

// The role that rounds: where what it writes begins is for `where` to say.
template <int Rows, int Columns, int Dim, int B, class T, class F> ATTN_INLINE void round_sums(Rounding<B, T> &rounding, long long stride, float scale, F where) {
  for (unsigned loads = 0;; rounding.cursor.step()) {
    barrier_wait(rounding.said(), rounding.cursor.parity());
    const float *sum;
    int rows;
    SumOf of;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%4];\nld.shared.b32 %2, [%4+8];\nld.shared.b64 %3, [%4+16];"
                 : "=r"(of.row), "=r"(of.head), "=r"(rows), "=l"(sum)
                 : "r"(rounding.word())
                 : "memory");
    barrier_arrive(rounding.heard());  // each lane for itself, as those who release a ring's slot
    if (rows > 0 && lane_index() == 0) {
      asm volatile("fence.proxy.async.global;" ::: "memory");
      barrier_expect(rounding.landed(), B);
      bring<B>(rounding.sum, sum, rounding.landed());
    }
    if (rows < 0) return;
    if (rows == 0) continue;
    barrier_wait(rounding.landed(), loads++ & 1);
    round_landed<Rows, Columns, Dim>(rounding, where(of.row, of.head), stride, rows, scale);
    __syncwarp();
  }
}

}  // namespace attn
