// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all other headers and the text of a kernel need: entry, CTA index, small integer helpers, and the vector type.
#pragma once

// A kernel is one function with internal linkage; the printer adds the exported trampoline that unpacks the arguments.
// Numbers of threads and CTAs have no meaning here.
#define ATTN_KERNEL(name, cta_threads, ctas_per_sm) static void name

// Every tile op is a function of its own: kernels call the large ones from two loops (full and partial tiles), and
// compiling a product twice would only take time. NOTE: `static`, also on templates. A process loads hundreds of
// kernels, and with weak symbols a function of one kernel could replace that of another kernel, built from other
// headers; GCC's unique symbols would also prevent dlclose from unloading them.
#define ATTN_TILE_OP static __attribute__((noinline))
#define ATTN_HELPER static inline __attribute__((always_inline))

// Register tiles are small arrays; they become registers only if the loops over them are unrolled before the compiler
// analyses arrays, hence the explicit request.
//
// Loops over plain elements need the opposite: clang would unroll a constant head dim into scalars before it vectorizes
// (copies were four times slower).
#if defined(__clang__)
#define ATTN_UNROLL _Pragma("clang loop unroll(full)")
#define ATTN_VECTORIZE _Pragma("clang loop vectorize(enable) unroll(disable)")
#else
#define ATTN_UNROLL _Pragma("GCC unroll 16")
#define ATTN_VECTORIZE _Pragma("GCC ivdep")
#endif

namespace attn {

// Lanes of the widest vector that the target passes in registers, and the number of accumulators of a product: AVX-512
// has 32 vector registers, other targets count as having 16.
#if defined(__AVX512F__)
constexpr int lanes = 16, accumulators = 16;
#elif defined(__AVX__)
constexpr int lanes = 8, accumulators = 8;
#else
constexpr int lanes = 4, accumulators = 8;
#endif

// `may_alias`: vectors access plain float arrays.
typedef float Lanes __attribute__((vector_size(lanes * 4), may_alias));
typedef int IntLanes __attribute__((vector_size(lanes * 4), may_alias));

ATTN_HELPER Lanes &at(float *p) { return *reinterpret_cast<Lanes *>(p); }
ATTN_HELPER const Lanes &at(const float *p) { return *reinterpret_cast<const Lanes *>(p); }

// Compilers know that `x - 0` is x for every x; `x + 0` is not (-0) and would remain an addition.
ATTN_HELPER Lanes splat(float x) { return x - Lanes{}; }

// A value that is uniform across a warp on GPUs; here there is one thread.
ATTN_HELPER int uniform(int x) { return x; }

// Keeps a loaded vector in a register. GCC otherwise repeats the load in every FMA that uses it, and products are bound
// by full-width loads: worth 10 %.
ATTN_HELPER void keep_in_register(Lanes &x) {
#if defined(__AVX512F__)
  __asm__("" : "+v"(x));
#elif defined(__SSE__)
  __asm__("" : "+x"(x));
#elif defined(__aarch64__)
  __asm__("" : "+w"(x));
#else
  (void)x;
#endif
}

// A NaN in `x` is ignored: a NaN score must not become a row's maximum, it reaches the result through its own
// probability. (Operand order is that of x86 `maxps`.)
ATTN_HELPER Lanes larger(Lanes x, Lanes old) { return x > old ? x : old; }

template <class T> ATTN_HELPER constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> ATTN_HELPER constexpr T max(T a, T b) { return a < b ? b : a; }
ATTN_HELPER constexpr int clamp(int x, int lo, int hi) { return min(max(x, lo), hi); }
ATTN_HELPER constexpr int round_up(int x, int to) { return (x + to - 1) / to * to; }

constexpr float infinity = __builtin_inff();

// The device reads blockIdx.x; here the trampoline sets the index. Thread local, so that any thread pool may share one
// loaded kernel.
static thread_local int current_cta;
ATTN_HELPER void set_block_index(int cta) { current_cta = cta; }
ATTN_HELPER int block_index() { return current_cta; }
ATTN_HELPER int warp_index() { return 0; }

} // namespace attn
