// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What types refuse: their constraints, by number, and bad text. Schedules are in schedules-errors.mlir.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// !tile.shared C1: rows and cols are positive, cols and, if swizzled, rows multiples of 16, pitch >= cols.
// expected-error @below {{expected columns of a shared tile and, if swizzled, rows in multiples of 16, and pitch >= columns, got: 17x64, pitch 0}}
module attributes {tile.type = !tile.shared<17x64xbf16, swizzled>} {}

// -----

// expected-error @below {{got: 64x72, pitch 72}}
module attributes {tile.type = !tile.shared<64x72xbf16, 72>} {}

// -----

// expected-error @below {{got: 0x64, pitch 72}}
module attributes {tile.type = !tile.shared<0x64xbf16, 72>} {}

// -----

// expected-error @below {{got: 64x64, pitch 56}}
module attributes {tile.type = !tile.shared<64x64xbf16, 56>} {}

// -----

// expected-error @below {{got: 64x64, pitch -72}}
module attributes {tile.type = !tile.shared<64x64xbf16, -72>} {}

// -----

// expected-error @below {{expected rows and columns, got: 1 extents}}
module attributes {tile.type = !tile.shared<64xbf16, 72>} {}

// -----

// expected-error @below {{expected rows and columns, got: 3 extents}}
module attributes {tile.type = !tile.shared<2x64x64xbf16, 72>} {}

// -----

// !tile.shared C2: elements are bf16, f16 or, if not swizzled, f32.
// expected-error @below {{expected a shared tile of bf16, f16 or, if not swizzled, f32, got: 'f64'}}
module attributes {tile.type = !tile.shared<64x64xf64, 72>} {}

// -----

// expected-error @below {{expected a shared tile of bf16, f16 or, if not swizzled, f32, got: 'f32'}}
module attributes {tile.type = !tile.shared<64x64xf32, swizzled>} {}

// -----

// !tile.frag C1: rows is a positive multiple of 16 * warps, cols of 8.
// expected-error @below {{expected rows of a fragment in multiples of 16 * warps and columns of 8, got: 32x64 over 4 warps}}
module attributes {tile.type = !tile.frag<32x64, 4>} {}

// -----

// expected-error @below {{got: 64x4 over 4 warps}}
module attributes {tile.type = !tile.frag<64x4, 4>} {}

// -----

// expected-error @below {{got: 64x64 over 0 warps}}
module attributes {tile.type = !tile.frag<64x64, 0>} {}

// -----

// expected-error @below {{got: 0x64 over 1 warps}}
module attributes {tile.type = !tile.frag<0x64, 1>} {}

// -----

// expected-error @below {{expected rows and columns, got: 1 extents}}
module attributes {tile.type = !tile.frag<64, 4>} {}

// -----

// !tile.register_operand C1: rows is a positive multiple of 16 * warps, cols of 8.
// expected-error @below {{expected rows of a register operand in multiples of 16 * warps and columns of 8, got: 32x64 over 4 warps}}
module attributes {tile.type = !tile.register_operand<32x64xbf16, 4>} {}

// -----

// expected-error @below {{got: 64x20 over 4 warps}}
module attributes {tile.type = !tile.register_operand<64x20xbf16, 4>} {}

// -----

// expected-error @below {{expected rows and columns, got: 1 extents}}
module attributes {tile.type = !tile.register_operand<64xbf16, 4>} {}

// -----

// expected-error @below {{expected token kind `copy` or `product`, got: barrier}}
module attributes {tile.type = !tile.token<barrier>} {}

// -----
// ptr C1
// expected-error @below {{expected a pointer to bf16, f16, f32 or i32, got: 'f64'}}
module attributes {tile.type = !tile.ptr<f64>} {}

// -----

// !tile.shared C1 holds for swizzled tiles too.
// expected-error @below {{got: 64x72, pitch 0}}
module attributes {tile.type = !tile.shared<64x72xbf16, swizzled>} {}

// -----

// A pitch of 0 is what `swizzled` is kept as; it cannot be written.
// expected-error @below {{expected a positive pitch or `swizzled`, got: 0}}
module attributes {tile.type = !tile.shared<64x64xbf16, 0>} {}

// -----

// !tile.tensor_map C1: rows is from 16 to 256, elements are bf16 or f16.
// expected-error @below {{expected boxes of 16 to 256 rows of bf16 or f16, got: 15 of 'bf16'}}
module attributes {tile.type = !tile.tensor_map<15xbf16>} {}

// -----

// expected-error @below {{got: 257 of 'bf16'}}
module attributes {tile.type = !tile.tensor_map<257xbf16>} {}

// -----

// expected-error @below {{got: 64 of 'f32'}}
module attributes {tile.type = !tile.tensor_map<64xf32>} {}

// -----

// expected-error @below {{expected the rows of a box, or its rows and heads, got: 3 extents}}
module attributes {tile.type = !tile.tensor_map<8x8x2xbf16>} {}

// -----

// !tile.tensor_map C2: the stride, the rows that a box reaches over, and one head.
// expected-error @below {{expected a stride from 1 to 8 of boxes that span 256 rows at most, and 1 with several heads, got: stride 9 of 16 rows and 1 heads}}
module attributes {tile.type = !tile.tensor_map<16xbf16, stride 9>} {}

// -----

// expected-error @below {{of boxes that span 256 rows at most, and 1 with several heads, got: stride 4 of 80 rows and 1 heads}}
module attributes {tile.type = !tile.tensor_map<80xbf16, packed, stride 4>} {}

// -----

// expected-error @below {{and 1 with several heads, got: stride 2 of 16 rows and 4 heads}}
module attributes {tile.type = !tile.tensor_map<16x4xbf16, stride 2>} {}

// -----

// Rows of all its heads.
// expected-error @below {{expected boxes of 16 to 256 rows of bf16 or f16, got: 4096 of 'bf16'}}
module attributes {tile.type = !tile.tensor_map<64x64xbf16>} {}

// -----

// Nothing else stands behind the elements.
// expected-error @below {{expected `packed` or `stride N` at most once each, in this order}}
module attributes {tile.type = !tile.tensor_map<64xbf16, other>} {}

// -----

// Packed ones have the same boxes.
// expected-error @below {{got: 15 of 'bf16'}}
module attributes {tile.type = !tile.tensor_map<15xbf16, packed>} {}

// -----

// !tile.pairs C1: heads is from 2 to 256, the number i32 or i64.
// expected-error @below {{expected pairs with one of 2 to 256 heads, counted in i32 or i64, got: 1 in 'i32'}}
module attributes {tile.type = !tile.pairs<1, i32>} {}

// -----

// expected-error @below {{got: 4 in 'f32'}}
module attributes {tile.type = !tile.pairs<4, f32>} {}

// -----

// !tile.ring C1: stages is from 1 to 8, and the tile is swizzled.
// expected-error @below {{expected 1 to 8 stages of a swizzled tile or of row statistics, got: 0 of '!tile.shared<64x64xbf16, swizzled>'}}
module attributes {tile.type = !tile.ring<0, !tile.shared<64x64xbf16, swizzled>>} {}

// -----

// expected-error @below {{expected 1 to 8 stages of a swizzled tile or of row statistics, got: 9 of}}
module attributes {tile.type = !tile.ring<9, !tile.shared<64x64xbf16, swizzled>>} {}

// -----

// expected-error @below {{expected 1 to 8 stages of a swizzled tile or of row statistics, got: 2 of '!tile.shared<64x64xbf16, 72>'}}
module attributes {tile.type = !tile.ring<2, !tile.shared<64x64xbf16, 72>>} {}

// -----

// !tile.mailbox C1: words is from 1 to 32.
// expected-error @below {{expected 1 to 32 words, got: 0}}
module attributes {tile.type = !tile.mailbox<0>} {}

// -----

// expected-error @below {{expected 1 to 32 words, got: 33}}
module attributes {tile.type = !tile.mailbox<33>} {}
