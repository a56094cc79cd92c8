// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products of a warpgroup: wgmma, 64 rows at a time, right operands straight from shared memory. They run while their warps go on; a product's
// places must not be touched until wait_products().
#pragma once
#include "attn/ring.cuh"

namespace attn {

// One instruction for each width: d (64 x N) = or += a b over a depth of 16. Operands are spelled out because inline assembly has no arrays; the lists of
// a width are those of the width before and four (eight columns) more.

#define ATTN_R1 "%0, %1, %2, %3"
#define ATTN_R2 ATTN_R1 ", %4, %5, %6, %7"
#define ATTN_R3 ATTN_R2 ", %8, %9, %10, %11"
#define ATTN_R4 ATTN_R3 ", %12, %13, %14, %15"
#define ATTN_R5 ATTN_R4 ", %16, %17, %18, %19"
#define ATTN_R6 ATTN_R5 ", %20, %21, %22, %23"
#define ATTN_R7 ATTN_R6 ", %24, %25, %26, %27"
#define ATTN_R8 ATTN_R7 ", %28, %29, %30, %31"
#define ATTN_R9 ATTN_R8 ", %32, %33, %34, %35"
#define ATTN_R10 ATTN_R9 ", %36, %37, %38, %39"
#define ATTN_R11 ATTN_R10 ", %40, %41, %42, %43"
#define ATTN_R12 ATTN_R11 ", %44, %45, %46, %47"
#define ATTN_R13 ATTN_R12 ", %48, %49, %50, %51"
#define ATTN_R14 ATTN_R13 ", %52, %53, %54, %55"
#define ATTN_R15 ATTN_R14 ", %56, %57, %58, %59"
#define ATTN_R16 ATTN_R15 ", %60, %61, %62, %63"
#define ATTN_R17 ATTN_R16 ", %64, %65, %66, %67"
#define ATTN_R18 ATTN_R17 ", %68, %69, %70, %71"
#define ATTN_R19 ATTN_R18 ", %72, %73, %74, %75"
#define ATTN_R20 ATTN_R19 ", %76, %77, %78, %79"
#define ATTN_R21 ATTN_R20 ", %80, %81, %82, %83"
#define ATTN_R22 ATTN_R21 ", %84, %85, %86, %87"
#define ATTN_R23 ATTN_R22 ", %88, %89, %90, %91"
#define ATTN_R24 ATTN_R23 ", %92, %93, %94, %95"
#define ATTN_R25 ATTN_R24 ", %96, %97, %98, %99"
#define ATTN_R26 ATTN_R25 ", %100, %101, %102, %103"
#define ATTN_R27 ATTN_R26 ", %104, %105, %106, %107"
#define ATTN_R28 ATTN_R27 ", %108, %109, %110, %111"
#define ATTN_R29 ATTN_R28 ", %112, %113, %114, %115"
#define ATTN_R30 ATTN_R29 ", %116, %117, %118, %119"
#define ATTN_R31 ATTN_R30 ", %120, %121, %122, %123"
#define ATTN_R32 ATTN_R31 ", %124, %125, %126, %127"
#define ATTN_PIECE(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define ATTN_D1(d) ATTN_PIECE(d, 0)
#define ATTN_D2(d) ATTN_D1(d), ATTN_PIECE(d, 1)
#define ATTN_D3(d) ATTN_D2(d), ATTN_PIECE(d, 2)
#define ATTN_D4(d) ATTN_D3(d), ATTN_PIECE(d, 3)
#define ATTN_D5(d) ATTN_D4(d), ATTN_PIECE(d, 4)
#define ATTN_D6(d) ATTN_D5(d), ATTN_PIECE(d, 5)
#define ATTN_D7(d) ATTN_D6(d), ATTN_PIECE(d, 6)
#define ATTN_D8(d) ATTN_D7(d), ATTN_PIECE(d, 7)
#define ATTN_D9(d) ATTN_D8(d), ATTN_PIECE(d, 8)
#define ATTN_D10(d) ATTN_D9(d), ATTN_PIECE(d, 9)
#define ATTN_D11(d) ATTN_D10(d), ATTN_PIECE(d, 10)
#define ATTN_D12(d) ATTN_D11(d), ATTN_PIECE(d, 11)
#define ATTN_D13(d) ATTN_D12(d), ATTN_PIECE(d, 12)
#define ATTN_D14(d) ATTN_D13(d), ATTN_PIECE(d, 13)
#define ATTN_D15(d) ATTN_D14(d), ATTN_PIECE(d, 14)
#define ATTN_D16(d) ATTN_D15(d), ATTN_PIECE(d, 15)
#define ATTN_D17(d) ATTN_D16(d), ATTN_PIECE(d, 16)
#define ATTN_D18(d) ATTN_D17(d), ATTN_PIECE(d, 17)
#define ATTN_D19(d) ATTN_D18(d), ATTN_PIECE(d, 18)
#define ATTN_D20(d) ATTN_D19(d), ATTN_PIECE(d, 19)
#define ATTN_D21(d) ATTN_D20(d), ATTN_PIECE(d, 20)
#define ATTN_D22(d) ATTN_D21(d), ATTN_PIECE(d, 21)
#define ATTN_D23(d) ATTN_D22(d), ATTN_PIECE(d, 22)
#define ATTN_D24(d) ATTN_D23(d), ATTN_PIECE(d, 23)
#define ATTN_D25(d) ATTN_D24(d), ATTN_PIECE(d, 24)
#define ATTN_D26(d) ATTN_D25(d), ATTN_PIECE(d, 25)
#define ATTN_D27(d) ATTN_D26(d), ATTN_PIECE(d, 26)
#define ATTN_D28(d) ATTN_D27(d), ATTN_PIECE(d, 27)
#define ATTN_D29(d) ATTN_D28(d), ATTN_PIECE(d, 28)
#define ATTN_D30(d) ATTN_D29(d), ATTN_PIECE(d, 29)
#define ATTN_D31(d) ATTN_D30(d), ATTN_PIECE(d, 30)
#define ATTN_D32(d) ATTN_D31(d), ATTN_PIECE(d, 31)

template <class T, int N> struct Wgmma;
// qk: a and b in shared memory, both with their depth contiguous. Negate turns the sign of a, which lies OffsetA 16 byte units behind where its descriptor
// says. tn: both in shared memory with their columns contiguous. pv: a in registers, b with its columns contiguous.
#define ATTN_WGMMA(T, name, n, pieces, r0, r1, r2, r3, r4)                                                                                         \
  template <> struct Wgmma<T, n> {                                                                                                                 \
    template <int Negate, int OffsetA>                                                                                                             \
    static ATTN_INLINE void qk(float (&d)[pieces][4], unsigned long long a, unsigned long long b, int accumulate) {                                \
      asm volatile("{\n.reg .pred p;\n.reg .b64 a;\nadd.s64 a, " r0 ", " r4 ";\nsetp.ne.b32 p, " r2 ", 0;\n"                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name " {" ATTN_R##pieces "}, a, " r1 ", p, " r3 ", 1, 0, 0;\n}"      \
                   : ATTN_D##pieces(d) : "l"(a), "l"(b), "r"(accumulate), "n"(Negate ? -1 : 1), "n"(OffsetA));                                     \
    }                                                                                                                                              \
    template <int Offset> static ATTN_INLINE void tn(float (&d)[pieces][4], unsigned long long a, unsigned long long b, int accumulate) {          \
      asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nadd.s64 a, " r0 ", " r3 ";\nadd.s64 b, " r1 ", " r3 ";\nsetp.ne.b32 p, " r2 ", 0;\n"         \
                   "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name " {" ATTN_R##pieces "}, a, b, p, 1, 1, 1, 1;\n}"                \
                   : ATTN_D##pieces(d) : "l"(a), "l"(b), "r"(accumulate), "n"(Offset));                                                            \
    }                                                                                                                                              \
    static ATTN_INLINE void pv(float (&d)[pieces][4], const unsigned (&a)[4], unsigned long long b) {                                              \
      asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name                         \
                   " {" ATTN_R##pieces "}, {" r0 ", " r1 ", " r2 ", " r3 "}, " r4 ", p, 1, 1, 1;\n}"                                               \
                   : ATTN_D##pieces(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                                      \
    }                                                                                                                                              \
  };
#define ATTN_WGMMAS(n, pieces, ...) ATTN_WGMMA(bf16, "bf16", n, pieces, __VA_ARGS__) ATTN_WGMMA(fp16, "f16", n, pieces, __VA_ARGS__)
ATTN_WGMMAS(16, 2, "%8", "%9", "%10", "%11", "%12")
ATTN_WGMMAS(32, 4, "%16", "%17", "%18", "%19", "%20")
ATTN_WGMMAS(48, 6, "%24", "%25", "%26", "%27", "%28")
ATTN_WGMMAS(64, 8, "%32", "%33", "%34", "%35", "%36")
ATTN_WGMMAS(80, 10, "%40", "%41", "%42", "%43", "%44")
ATTN_WGMMAS(96, 12, "%48", "%49", "%50", "%51", "%52")
ATTN_WGMMAS(112, 14, "%56", "%57", "%58", "%59", "%60")
ATTN_WGMMAS(128, 16, "%64", "%65", "%66", "%67", "%68")
ATTN_WGMMAS(144, 18, "%72", "%73", "%74", "%75", "%76")
ATTN_WGMMAS(160, 20, "%80", "%81", "%82", "%83", "%84")
ATTN_WGMMAS(176, 22, "%88", "%89", "%90", "%91", "%92")
ATTN_WGMMAS(192, 24, "%96", "%97", "%98", "%99", "%100")
ATTN_WGMMAS(208, 26, "%104", "%105", "%106", "%107", "%108")
ATTN_WGMMAS(224, 28, "%112", "%113", "%114", "%115", "%116")
ATTN_WGMMAS(240, 30, "%120", "%121", "%122", "%123", "%124")
ATTN_WGMMAS(256, 32, "%128", "%129", "%130", "%131", "%132")
#undef ATTN_WGMMAS
#undef ATTN_WGMMA

// Where an operand lies (PTX ISA, "Matrix Descriptor"): address, two distances in 16 byte units, 128 byte swizzle. For a tile whose columns are the
// depth, blocks of eight rows are 1024 bytes apart; for one whose rows are, so are blocks of eight of these, and `chunk` is the distance of 64 columns.
ATTN_INLINE unsigned long long describe(unsigned address, int chunk) {
  return (unsigned long long)((address & 0x3ffff) >> 4 | unsigned(chunk / 16) << 16) | (1ull << 62 | 64ull << 32);
}

// Registers that a product reads or writes are as the compiler believes them to be from here on.
ATTN_INLINE void settle(float &x) { asm volatile("" : "+f"(x)::"memory"); }
template <int R, int C, int W> ATTN_INLINE void settle(Frag<R, C, W> &f) {
#pragma unroll
  for (int n = 0; n < f.Pieces; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) settle(f.v[0][n][i]);
}

ATTN_INLINE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
ATTN_INLINE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Steps of a product from Step on, 16 of the depth each; constants all the way down, as offsets have to be. The compiler likes to keep the sums of Q's
// descriptor and all offsets in registers from tile to tile, which is well where there is room: beyond a depth of 128, or if asked to be late, they are added where they are used.
template <bool Negate, bool Late, int Step, class T, int R, int N, int C, int Pieces>
ATTN_INLINE void qk_steps(float (&s)[Pieces][4], unsigned long long q, unsigned long long k) {
  constexpr int chunk = Step / 4, within = Step % 4 * 2, at = chunk * Swizzled<T, R, C>::ChunkBytes / 16 + within, late = Late || C > 128 ? at : 0;
  Wgmma<T, N>::template qk<Negate, late>(s, q + (at - late), k + (chunk * Swizzled<T, N, C>::ChunkBytes / 16 + within), Step != 0);
  if constexpr (Step + 1 < C / 16) qk_steps<Negate, Late, Step + 1, T, R, N, C>(s, q, k);
}
template <int Step, class T, int N, int C, int Pieces>
ATTN_INLINE void pv_steps(float (&acc)[Pieces][4], const unsigned (&p)[N / 16][4], unsigned long long v) {
  Wgmma<T, C>::pv(acc, p[Step], v + Step * 128);
  if constexpr (Step + 1 < N / 16) pv_steps<Step + 1, T, N, C>(acc, p, v);
}

// s = Q K^T, or -Q K^T: for each warpgroup its 64 rows.
template <bool Negate = false, bool Late = false, class T, int R, int N, int C, int W>
ATTN_INLINE void mma_qk(Frag<R, N, W> &s, const Swizzled<T, R, C> &Q, const Swizzled<T, N, C> &K) {
  static_assert(R == 16 * W && W % 4 == 0);
  settle(s);
  begin_products();
  qk_steps<Negate, Late, 0, T, R, N, C>(s.v[0], describe(Q.address + warp_index() / 4 * 64 * 128, 16), describe(K.address, 16));
  end_products();
}

// acc += P V.
template <class T, int R, int N, int C, int W> ATTN_INLINE void mma_pv(Frag<R, C, W> &acc, const Held<T, R, N, W> &p, const Swizzled<T, N, C> &V) {
  settle(acc);
  begin_products();
  pv_steps<0, T, N, C>(acc.v[0], p.v[0], describe(V.address, V.ChunkBytes));
  end_products();
}

// Waits until at most Later of the products begun last are still running; `f` is the result of one that is not.
template <int Later, int R, int C, int W> ATTN_INLINE void wait_products(Frag<R, C, W> &f) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Later) : "memory");
  settle(f);
}

}  // namespace attn
