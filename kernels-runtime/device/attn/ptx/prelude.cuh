// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all other headers need: element types, the number of threads, rounding, sums over lanes and threads. No header
// of CUDA or the standard library is included anywhere: NVRTC would spend more time in them than in the kernel.
#pragma once

#define ATTN_INLINE __device__ __forceinline__

namespace attn {

// Storage of one element. Arithmetic is done in float32 or by tensor cores, so these types need no operators.
struct bf16 {
  unsigned short bits;
};
struct fp16 {
  unsigned short bits;
};

// The number of threads of a CTA, as a constant, so that loops over a tile's 16 byte units unroll completely.
// ATTN_KERNEL specializes Cta<0> after the headers, so functions name it through an argument that depends on a template
// parameter (Cta<N * 0>). NOTE: this allows one kernel per source text.
template <int> struct Cta;

#define ATTN_KERNEL(name, cta_threads, ctas_per_sm)                                                                    \
  template <> struct attn::Cta<0> {                                                                                    \
    static constexpr int threads = cta_threads;                                                                        \
  };                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(cta_threads, ctas_per_sm) name

// Dynamic shared memory; tiles are at offsets in it.
extern __shared__ __align__(1024) unsigned char shared_memory[];

ATTN_INLINE int block_index() { return blockIdx.x; }
ATTN_INLINE int lane_index() { return threadIdx.x & 31; }
ATTN_INLINE int warp_index() { return threadIdx.x >> 5; }

ATTN_INLINE void barrier() { __syncthreads(); }
ATTN_INLINE void sync_warp() { __syncwarp(); }

// Tells the compiler that a value is the same in all lanes of a warp: addresses derived from it are then computed once
// a warp, in uniform registers. (The or of equal values is the value.)
ATTN_INLINE int uniform(int x) { return __reduce_or_sync(~0u, x); }

template <class T> ATTN_INLINE constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> ATTN_INLINE constexpr T max(T a, T b) { return a < b ? b : a; }
ATTN_INLINE float min(float a, float b) { return fminf(a, b); }
ATTN_INLINE float max(float a, float b) { return fmaxf(a, b); }

// A mask of the bits `begin` to `end`, clamped to the word.
ATTN_INLINE unsigned bits_between(int begin, int end) {
  return end <= 0 || begin >= 32 || begin >= end ? 0u : ~0u >> (32 - min(end, 32)) & ~0u << max(begin, 0);
}

// The rows of a tile are consecutive queries, or, with packed GQA heads, pairs of a query and one of Heads heads that
// share a KV head: row r is query r / Heads and head r % Heads, counted from the first. Tile ops take either kind: the
// first row, and the stride between rows in memory.
template <int Heads> struct Pairs {
  int query, head;
};
template <int Heads> struct PairStride {
  long long query, head;
};
ATTN_INLINE int query_of(int first, int r) { return first + r; }
template <int H> ATTN_INLINE int query_of(Pairs<H> first, int r) { return first.query + r / H; }
ATTN_INLINE long long offset_of(long long stride, int r) { return r * stride; }
template <int H> ATTN_INLINE long long offset_of(PairStride<H> stride, int r) {
  return r / H * stride.query + r % H * stride.head;
}

// An optimization barrier: the compiler cannot hoist computations with the result out of a loop.
ATTN_INLINE int optimization_barrier(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
// Rereads threadIdx.x at the use, so that values derived from it are not kept in registers throughout a persistent
// kernel.
ATTN_INLINE int reread_thread_index() {
  int x;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
  return x;
}

constexpr float kLargest = 3.402823466e38f; // the largest finite float32
// The printer writes these for float constants without a C++ literal: NaN, infinities, bit patterns.
ATTN_INLINE float float_of(unsigned bits) { return __uint_as_float(bits); }
ATTN_INLINE float not_a_number() { return __int_as_float(0x7fffffff); }
ATTN_INLINE float infinity() { return __int_as_float(0x7f800000); }

// One instruction each, with an error of about 2 ulp; subnormal results become 0. exp2(-inf) is 0.
ATTN_INLINE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
ATTN_INLINE float log2(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

ATTN_INLINE float sqrt(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
ATTN_INLINE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

ATTN_INLINE float to_float(bf16 x) { return __uint_as_float(unsigned(x.bits) << 16); }
ATTN_INLINE float to_float(fp16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

// Two floats, rounded to nearest even, in one register. The first is in the low half, as tensor cores and memory expect
// it.
template <class T> ATTN_INLINE unsigned pack(float low, float high);
template <> ATTN_INLINE unsigned pack<bf16>(float low, float high) {
  unsigned d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
template <> ATTN_INLINE unsigned pack<fp16>(float low, float high) {
  unsigned d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
// One element.
template <class T> ATTN_INLINE void round_to(T &to, float x) { to = {(unsigned short)pack<T>(x, 0)}; }
ATTN_INLINE void round_to(float &to, float x) { to = x; }
template <class T> ATTN_INLINE float low_half(unsigned x) { return to_float(T{(unsigned short)(x & 0xffff)}); }
template <class T> ATTN_INLINE float high_half(unsigned x) { return to_float(T{(unsigned short)(x >> 16)}); }

// An FMA on both halves of a register: two elements, each rounded once.
template <class T> ATTN_INLINE unsigned fma_pair(unsigned a, unsigned b, unsigned c);
template <> ATTN_INLINE unsigned fma_pair<bf16>(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
template <> ATTN_INLINE unsigned fma_pair<fp16>(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
template <class T> ATTN_INLINE unsigned multiply_pair(unsigned a, unsigned b) {
  return fma_pair<T>(a, b, pack<T>(-0.f, -0.f));
}

// x * 0 + sum on both halves: stays zero as long as every x is finite.
template <class T> ATTN_INLINE unsigned times_zero(unsigned x, unsigned sum);
template <> ATTN_INLINE unsigned times_zero<bf16>(unsigned x, unsigned sum) {
  unsigned d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(0), "r"(sum));
  return d;
}
template <> ATTN_INLINE unsigned times_zero<fp16>(unsigned x, unsigned sum) {
  unsigned d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(0), "r"(sum));
  return d;
}
ATTN_INLINE bool is_zero(unsigned pair) { return (pair & 0x7fff7fff) == 0; }

// Sums over groups of consecutive lanes, and over a warp.
template <int Lanes> ATTN_INLINE float sum_of_group(float x) {
#pragma unroll
  for (int bit = Lanes / 2; bit; bit /= 2)
    x += __shfl_xor_sync(~0u, x, bit);
  return x;
}
ATTN_INLINE float warp_sum(float x) { return sum_of_group<32>(x); }
// The inclusive prefix sum over the lanes of a warp.
template <class T> ATTN_INLINE T sum_up_to_lane(T x) {
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const T y = __shfl_up_sync(~0u, x, d);
    if (lane_index() >= d)
      x += y;
  }
  return x;
}
// The exclusive prefix sum over the threads of the CTA, and the total.
template <int N> ATTN_INLINE int sum_before_thread(int x, int &all) {
  constexpr int warps = Cta<N>::threads / 32;
  __shared__ int sums[warps];
  const int up_to = sum_up_to_lane(x);
  __syncthreads();
  if (lane_index() == 31)
    sums[warp_index()] = up_to;
  __syncthreads();
  int before = up_to - x;
  all = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w)
    before += w < warp_index() ? sums[w] : 0, all += sums[w];
  return before;
}

} // namespace attn
