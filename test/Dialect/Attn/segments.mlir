// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Segments, as people write them and as the generic form spells them.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: attn.segments @full mask(#attn.full) segments(64){{$}}
// GENERIC: "attn.segments"() <{mask = #attn.full, segments = 64 : i64, sym_name = "full"}> : () -> ()
attn.segments @full mask(#attn.full) segments(64)
// CHECK: attn.segments @causal mask(#attn.causal) segments(1) maps{{$}}
// GENERIC: maps
attn.segments @causal mask(#attn.causal) segments(1) maps
// CHECK: attn.segments @aligned mask(#attn.causal<bottom_right>) segments(2048) tiles(16){{$}}
// GENERIC: tiles = 16 : i64
attn.segments @aligned mask(#attn.causal<bottom_right>) segments(2048) tiles(16)
// CHECK: attn.segments @all mask(#attn.band<left = 1023, right = 0, bottom_right>) segments(256) maps tiles(256) {attn.note = "why"}
attn.segments @all mask(#attn.band<left = 1023, right = 0, bottom_right>) segments(256) maps tiles(256) {attn.note = "why"}

// Windows: none of their bounds, one, both; the ends of what is allowed.
// CHECK: mask(#attn.band<left = 0, right = 0>)
attn.segments @own_only mask(#attn.band<left = 0, right = 0>) segments(4)
// CHECK: mask(#attn.band<left = 536870911, right = 536870911>)
attn.segments @widest mask(#attn.band<left = 536870911, right = 536870911>) segments(4)
// CHECK: mask(#attn.band<left = 3>)
attn.segments @behind mask(#attn.band<left = 3>) segments(4)
// CHECK: mask(#attn.band<right = 3>)
attn.segments @ahead mask(#attn.band<right = 3>) segments(4)
// CHECK: mask(#attn.band<right = 0, bottom_right>)
attn.segments @causal_band mask(#attn.band<right = 0, bottom_right>) segments(4)
