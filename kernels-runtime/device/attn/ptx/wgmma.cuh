// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma instructions, their matrix descriptors, and the instructions that order them.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// One instruction for each width: d (64 x N) = or += a b over a depth of 16, or four of them at once. Operands are
// spelled out because inline assembly has no arrays: ATTN_Ck names the four operands from 4 k on, ATTN_Rk the first 4 k
// (k pieces of eight columns), ATTN_Dk binds those to k pieces of a fragment.

#define ATTN_C0 "%0", "%1", "%2", "%3"
#define ATTN_C1 "%4", "%5", "%6", "%7"
#define ATTN_C2 "%8", "%9", "%10", "%11"
#define ATTN_C3 "%12", "%13", "%14", "%15"
#define ATTN_C4 "%16", "%17", "%18", "%19"
#define ATTN_C5 "%20", "%21", "%22", "%23"
#define ATTN_C6 "%24", "%25", "%26", "%27"
#define ATTN_C7 "%28", "%29", "%30", "%31"
#define ATTN_C8 "%32", "%33", "%34", "%35"
#define ATTN_C9 "%36", "%37", "%38", "%39"
#define ATTN_C10 "%40", "%41", "%42", "%43"
#define ATTN_C11 "%44", "%45", "%46", "%47"
#define ATTN_C12 "%48", "%49", "%50", "%51"
#define ATTN_C13 "%52", "%53", "%54", "%55"
#define ATTN_C14 "%56", "%57", "%58", "%59"
#define ATTN_C15 "%60", "%61", "%62", "%63"
#define ATTN_C16 "%64", "%65", "%66", "%67"
#define ATTN_C17 "%68", "%69", "%70", "%71"
#define ATTN_C18 "%72", "%73", "%74", "%75"
#define ATTN_C19 "%76", "%77", "%78", "%79"
#define ATTN_C20 "%80", "%81", "%82", "%83"
#define ATTN_C21 "%84", "%85", "%86", "%87"
#define ATTN_C22 "%88", "%89", "%90", "%91"
#define ATTN_C23 "%92", "%93", "%94", "%95"
#define ATTN_C24 "%96", "%97", "%98", "%99"
#define ATTN_C25 "%100", "%101", "%102", "%103"
#define ATTN_C26 "%104", "%105", "%106", "%107"
#define ATTN_C27 "%108", "%109", "%110", "%111"
#define ATTN_C28 "%112", "%113", "%114", "%115"
#define ATTN_C29 "%116", "%117", "%118", "%119"
#define ATTN_C30 "%120", "%121", "%122", "%123"
#define ATTN_C31 "%124", "%125", "%126", "%127"
#define ATTN_C32 "%128", "%129", "%130", "%131"
#define ATTN_C33 "%132", "%133", "%134", "%135"
#define ATTN_C34 "%136", "%137", "%138", "%139"
#define ATTN_C35 "%140", "%141", "%142", "%143"
#define ATTN_C36 "%144", "%145", "%146", "%147"
#define ATTN_JOIN(...) ATTN_JOINED(__VA_ARGS__)
#define ATTN_JOINED(a, b, c, d) a ", " b ", " c ", " d
#define ATTN_R1 ATTN_JOIN(ATTN_C0)
#define ATTN_R2 ATTN_R1 ", " ATTN_JOIN(ATTN_C1)
#define ATTN_R3 ATTN_R2 ", " ATTN_JOIN(ATTN_C2)
#define ATTN_R4 ATTN_R3 ", " ATTN_JOIN(ATTN_C3)
#define ATTN_R5 ATTN_R4 ", " ATTN_JOIN(ATTN_C4)
#define ATTN_R6 ATTN_R5 ", " ATTN_JOIN(ATTN_C5)
#define ATTN_R7 ATTN_R6 ", " ATTN_JOIN(ATTN_C6)
#define ATTN_R8 ATTN_R7 ", " ATTN_JOIN(ATTN_C7)
#define ATTN_R9 ATTN_R8 ", " ATTN_JOIN(ATTN_C8)
#define ATTN_R10 ATTN_R9 ", " ATTN_JOIN(ATTN_C9)
#define ATTN_R11 ATTN_R10 ", " ATTN_JOIN(ATTN_C10)
#define ATTN_R12 ATTN_R11 ", " ATTN_JOIN(ATTN_C11)
#define ATTN_R13 ATTN_R12 ", " ATTN_JOIN(ATTN_C12)
#define ATTN_R14 ATTN_R13 ", " ATTN_JOIN(ATTN_C13)
#define ATTN_R15 ATTN_R14 ", " ATTN_JOIN(ATTN_C14)
#define ATTN_R16 ATTN_R15 ", " ATTN_JOIN(ATTN_C15)
#define ATTN_R17 ATTN_R16 ", " ATTN_JOIN(ATTN_C16)
#define ATTN_R18 ATTN_R17 ", " ATTN_JOIN(ATTN_C17)
#define ATTN_R19 ATTN_R18 ", " ATTN_JOIN(ATTN_C18)
#define ATTN_R20 ATTN_R19 ", " ATTN_JOIN(ATTN_C19)
#define ATTN_R21 ATTN_R20 ", " ATTN_JOIN(ATTN_C20)
#define ATTN_R22 ATTN_R21 ", " ATTN_JOIN(ATTN_C21)
#define ATTN_R23 ATTN_R22 ", " ATTN_JOIN(ATTN_C22)
#define ATTN_R24 ATTN_R23 ", " ATTN_JOIN(ATTN_C23)
#define ATTN_R25 ATTN_R24 ", " ATTN_JOIN(ATTN_C24)
#define ATTN_R26 ATTN_R25 ", " ATTN_JOIN(ATTN_C25)
#define ATTN_R27 ATTN_R26 ", " ATTN_JOIN(ATTN_C26)
#define ATTN_R28 ATTN_R27 ", " ATTN_JOIN(ATTN_C27)
#define ATTN_R29 ATTN_R28 ", " ATTN_JOIN(ATTN_C28)
#define ATTN_R30 ATTN_R29 ", " ATTN_JOIN(ATTN_C29)
#define ATTN_R31 ATTN_R30 ", " ATTN_JOIN(ATTN_C30)
#define ATTN_R32 ATTN_R31 ", " ATTN_JOIN(ATTN_C31)
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
// abt: a and b are in shared memory, both K-major; Negate computes -a b. atb: both are in shared memory, both MN-major.
// ab: a is in registers, b MN-major. Addresses in descriptors count units of 16 bytes: a k-step advances K-major
// operands by two units and MN-major ones by 128.
//
// The compiler spends most of its time on the many operands of a statement, so there are statements of four k-steps.
// Where an offset is added to a descriptor decides which instructions ptxas emits, and these statements yield those of
// single steps: `a` is given OffsetA units before the operand and the statement adds OffsetA, which then needs no
// register across tiles. In four_abt, the descriptors of steps 1 to 3 are given Own units apart and the statement adds
// the rest. (Adding the offsets of ab before the statement made packed full masks slower by a seventh.)
#define ATTN_STEP(name, n, pieces)                                                                                     \
  "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name " {" ATTN_R##pieces "}, "
#define ATTN_WGMMA(...) ATTN_WGMMA_OF(__VA_ARGS__)
#define ATTN_WGMMA_OF(T, name, n, pieces, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15, r16,   \
                      r17, r18, r19)                                                                                   \
  template <> struct Wgmma<T, n> {                                                                                     \
    using Place = unsigned long long;                                                                                  \
    template <int Negate, int OffsetA>                                                                                 \
    static ATTN_INLINE void abt(float (&d)[pieces][4], Place a, Place b, int accumulate) {                             \
      asm volatile("{\n.reg .pred p;\n.reg .b64 a;\nadd.s64 a, " r0 ", " r4 ";\nsetp.ne.b32 p, " r2                    \
                   ", 0;\n" ATTN_STEP(name, n, pieces) "a, " r1 ", p, " r3 ", 1, 0, 0;\n}"                             \
                   : ATTN_D##pieces(d)                                                                                 \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(Negate ? -1 : 1), "n"(OffsetA));                             \
    }                                                                                                                  \
    template <int Negate, int OffsetA, int Own>                                                                        \
    static ATTN_INLINE void four_abt(float (&d)[pieces][4], Place a, Place b, int accumulate) {                        \
      asm volatile(                                                                                                    \
          "{\n.reg .pred p, t;\n.reg .b64 a;\nsetp.ne.b32 p, " r8 ", 0;\nsetp.eq.b32 t, 0, 0;\n"                       \
          "add.s64 a, " r0 ", " r10 ";\n" ATTN_STEP(                                                                   \
              name, n, pieces) "a, " r4 ", p, " r9 ", 1, 0, 0;\n"                                                      \
                               "add.s64 a, " r1 ", " r11 ";\n" ATTN_STEP(                                              \
                                   name, n, pieces) "a, " r5 ", t, " r9 ", 1, 0, 0;\n"                                 \
                                                    "add.s64 a, " r2 ", " r12 ";\n" ATTN_STEP(                         \
                                                        name, n, pieces) "a, " r6 ", t, " r9 ", 1, 0, 0;\n"            \
                                                                         "add.s64 a, " r3 ", " r13 ";\n" ATTN_STEP(    \
                                                                             name, n, pieces) "a, " r7 ", t, " r9      \
                                                                                              ", 1, 0, 0;\n}"          \
          : ATTN_D##pieces(d)                                                                                          \
          : "l"(a), "l"(a + Own), "l"(a + 2 * Own), "l"(a + 3 * Own), "l"(b), "l"(b + 2), "l"(b + 4), "l"(b + 6),      \
            "r"(accumulate), "n"(Negate ? -1 : 1), "n"(OffsetA), "n"(OffsetA + 2 - Own), "n"(OffsetA + 4 - 2 * Own),   \
            "n"(OffsetA + 6 - 3 * Own));                                                                               \
    }                                                                                                                  \
    template <int Offset> static ATTN_INLINE void atb(float (&d)[pieces][4], Place a, Place b, int accumulate) {       \
      asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nadd.s64 a, " r0 ", " r3 ";\nadd.s64 b, " r1 ", " r3             \
                   ";\nsetp.ne.b32 p, " r2 ", 0;\n" ATTN_STEP(name, n, pieces) "a, b, p, 1, 1, 1, 1;\n}"               \
                   : ATTN_D##pieces(d)                                                                                 \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(Offset));                                                    \
    }                                                                                                                  \
    template <int Offset> static ATTN_INLINE void four_atb(float (&d)[pieces][4], Place a, Place b, int accumulate) {  \
      asm volatile(                                                                                                    \
          "{\n.reg .pred p, t;\n.reg .b64 a, b;\nsetp.ne.b32 p, " r2 ", 0;\nsetp.eq.b32 t, 0, 0;\n"                    \
          "add.s64 a, " r0 ", " r3 ";\nadd.s64 b, " r1 ", " r3 ";\n" ATTN_STEP(                                        \
              name, n, pieces) "a, b, p, 1, 1, 1, 1;\n"                                                                \
                               "add.s64 a, " r0 ", " r4 ";\nadd.s64 b, " r1 ", " r4 ";\n" ATTN_STEP(                   \
                                   name, n,                                                                            \
                                   pieces) "a, b, t, 1, 1, 1, 1;\n"                                                    \
                                           "add.s64 a, " r0 ", " r5 ";\nadd.s64 b, " r1 ", " r5 ";\n" ATTN_STEP(       \
                                               name, n, pieces) "a, b, t, 1, 1, 1, 1;\n"                               \
                                                                "add.s64 a, " r0 ", " r6 ";\nadd.s64 b, " r1 ", " r6   \
                                                                ";\n" ATTN_STEP(name, n,                               \
                                                                                pieces) "a, b, t, 1, 1, 1, 1;\n}"      \
          : ATTN_D##pieces(d)                                                                                          \
          : "l"(a), "l"(b), "r"(accumulate), "n"(Offset), "n"(Offset + 128), "n"(Offset + 256), "n"(Offset + 384));    \
    }                                                                                                                  \
    static ATTN_INLINE void ab(float (&d)[pieces][4], const unsigned (&a)[4], Place b) {                               \
      asm volatile("{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\n" ATTN_STEP(name, n, pieces) "{" ATTN_JOIN(                \
                       r0, r1, r2, r3) "}, " r4 ", p, 1, 1, 1;\n}"                                                     \
                   : ATTN_D##pieces(d)                                                                                 \
                   : ATTN_A(a), "l"(b));                                                                               \
    }                                                                                                                  \
    static ATTN_INLINE void four_ab(float (&d)[pieces][4], const unsigned (*a)[4], Place b) {                          \
      asm volatile(                                                                                                    \
          "{\n.reg .pred p;\n.reg .b64 b;\nsetp.eq.b32 p, 0, 0;\n" ATTN_STEP(name, n, pieces) "{" ATTN_JOIN(           \
              r0, r1, r2, r3) "}, " r16 ", p, 1, 1, 1;\nadd.s64 b, " r16                                               \
                              ", 128;\n" ATTN_STEP(name, n, pieces) "{" ATTN_JOIN(                                     \
                                  r4, r5, r6, r7) "}, b, p, 1, 1, 1;\nadd.s64 b, " r16                                 \
                                                  ", 256;\n" ATTN_STEP(name, n, pieces) "{" ATTN_JOIN(                 \
                                                      r8, r9, r10,                                                     \
                                                      r11) "}, b, p, 1, 1, 1;\nadd.s64 b, " r16                        \
                                                           ", 384;\n" ATTN_STEP(name, n, pieces) "{" ATTN_JOIN(        \
                                                               r12, r13, r14, r15) "}, b, p, 1, 1, 1;\n}"              \
          : ATTN_D##pieces(d)                                                                                          \
          : ATTN_A(a[0]), ATTN_A(a[1]), ATTN_A(a[2]), ATTN_A(a[3]), "l"(b));                                           \
    }                                                                                                                  \
  };
#define ATTN_A(a) "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3])

// For each width, the number of pieces and the names of the operands that follow them.
#define ATTN_WIDTH_16 2, ATTN_C2, ATTN_C3, ATTN_C4, ATTN_C5, ATTN_C6
#define ATTN_WIDTH_32 4, ATTN_C4, ATTN_C5, ATTN_C6, ATTN_C7, ATTN_C8
#define ATTN_WIDTH_48 6, ATTN_C6, ATTN_C7, ATTN_C8, ATTN_C9, ATTN_C10
#define ATTN_WIDTH_64 8, ATTN_C8, ATTN_C9, ATTN_C10, ATTN_C11, ATTN_C12
#define ATTN_WIDTH_80 10, ATTN_C10, ATTN_C11, ATTN_C12, ATTN_C13, ATTN_C14
#define ATTN_WIDTH_96 12, ATTN_C12, ATTN_C13, ATTN_C14, ATTN_C15, ATTN_C16
#define ATTN_WIDTH_112 14, ATTN_C14, ATTN_C15, ATTN_C16, ATTN_C17, ATTN_C18
#define ATTN_WIDTH_128 16, ATTN_C16, ATTN_C17, ATTN_C18, ATTN_C19, ATTN_C20
#define ATTN_WIDTH_144 18, ATTN_C18, ATTN_C19, ATTN_C20, ATTN_C21, ATTN_C22
#define ATTN_WIDTH_160 20, ATTN_C20, ATTN_C21, ATTN_C22, ATTN_C23, ATTN_C24
#define ATTN_WIDTH_176 22, ATTN_C22, ATTN_C23, ATTN_C24, ATTN_C25, ATTN_C26
#define ATTN_WIDTH_192 24, ATTN_C24, ATTN_C25, ATTN_C26, ATTN_C27, ATTN_C28
#define ATTN_WIDTH_208 26, ATTN_C26, ATTN_C27, ATTN_C28, ATTN_C29, ATTN_C30
#define ATTN_WIDTH_224 28, ATTN_C28, ATTN_C29, ATTN_C30, ATTN_C31, ATTN_C32
#define ATTN_WIDTH_240 30, ATTN_C30, ATTN_C31, ATTN_C32, ATTN_C33, ATTN_C34
#define ATTN_WIDTH_256 32, ATTN_C32, ATTN_C33, ATTN_C34, ATTN_C35, ATTN_C36
// A kernel instantiates the widths of its products, with the element's name in PTX: all of them would take longer to
// compile than all other headers.
#define ATTN_DEFINE_WGMMA(T, name, n)                                                                                  \
  namespace attn {                                                                                                     \
  ATTN_WGMMA(T, name, n, ATTN_WIDTH_##n)                                                                               \
  }

// The matrix descriptor of an operand (PTX ISA, "Matrix Descriptor"): address, two distances in 16 byte units, 128 byte
// swizzle. Blocks of eight rows are 1024 bytes apart. `panel_bytes` is the distance of two panels of an MN-major
// operand, whose rows are the depth; for a K-major one it has no meaning.
ATTN_INLINE unsigned long long make_descriptor(unsigned address, int panel_bytes) {
  return (unsigned long long)((address & 0x3ffff) >> 4 | unsigned(panel_bytes / 16) << 16) | (1ull << 62 | 64ull << 32);
}

ATTN_INLINE void warpgroup_arrive() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
ATTN_INLINE void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

} // namespace attn
