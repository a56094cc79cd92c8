// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What schedules refuse, whatever the problem: their constraints, by number.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// #tile.simt_rows C1: lanes share a warp,
// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 5}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 4, lanes = 5, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 1, 2, 4, 8, 16 or 32 lanes, got: 0}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 4, lanes = 0, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.simt_rows C1: and warps are at most 8.
// expected-error @below {{expected 1, 2, 4 or 8 warps, got: 12}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 12, ctas_per_sm = 1>} {}

// -----

// #tile.simt_rows C2: rows,
// expected-error @below {{expected rows and keys from 1 to 16, and rows a multiple of pack_heads, got: rows = 0, keys = 4, pack_heads = 1}}
module attributes {tile.schedule = #tile.simt_rows<rows = 0, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected rows and keys from 1 to 16, and rows a multiple of pack_heads, got: rows = 17, keys = 4, pack_heads = 1}}
module attributes {tile.schedule = #tile.simt_rows<rows = 17, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.simt_rows C2: keys,
// expected-error @below {{expected rows and keys from 1 to 16, and rows a multiple of pack_heads, got: rows = 1, keys = 0, pack_heads = 1}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 0, lanes = 16, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected rows and keys from 1 to 16, and rows a multiple of pack_heads, got: rows = 1, keys = 17, pack_heads = 1}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 17, lanes = 16, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.simt_rows C2: and packed heads of rows.
// expected-error @below {{expected rows and keys from 1 to 16, and rows a multiple of pack_heads, got: rows = 3, keys = 4, pack_heads = 2}}
module attributes {tile.schedule = #tile.simt_rows<rows = 3, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1, pack_heads = 2>} {}

// -----

// expected-error @below {{expected rows and keys from 1 to 16, and rows a multiple of pack_heads, got: rows = 1, keys = 4, pack_heads = 0}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1, pack_heads = 0>} {}

// -----

// #tile.simt_rows C3
// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 17}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 17>} {}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 0}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 0>} {}

// -----

// A schedule has no parameter of another one,
// expected-error @below {{duplicate or unknown struct parameter name: q_tile}}
module attributes {tile.schedule = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1, q_tile = 1>} {}

// -----

// #tile.cta_per_sequence C1: warps,
// expected-error @below {{expected 1 to 8 warps, a q_tile from 1 to 256 and a kv_tile in multiples of 8 from 8 to 256, got: q_tile = 16, kv_tile = 16, warps = 0}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 0, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{got: q_tile = 16, kv_tile = 16, warps = 9}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 9, ctas_per_sm = 1>} {}

// -----

// #tile.cta_per_sequence C1: rows,
// expected-error @below {{expected 1 to 8 warps, a q_tile from 1 to 256 and a kv_tile in multiples of 8 from 8 to 256, got: q_tile = 0, kv_tile = 16, warps = 1}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 0, kv_tile = 16, warps = 1, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{got: q_tile = 257, kv_tile = 16, warps = 1}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 257, kv_tile = 16, warps = 1, ctas_per_sm = 1>} {}

// -----

// #tile.cta_per_sequence C1: keys.
// expected-error @below {{expected 1 to 8 warps, a q_tile from 1 to 256 and a kv_tile in multiples of 8 from 8 to 256, got: q_tile = 17, kv_tile = 20, warps = 2}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 17, kv_tile = 20, warps = 2, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{got: q_tile = 16, kv_tile = 0, warps = 1}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 16, kv_tile = 0, warps = 1, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{got: q_tile = 16, kv_tile = 264, warps = 1}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 16, kv_tile = 264, warps = 1, ctas_per_sm = 1>} {}

// -----

// #tile.cta_per_sequence C2
// expected-error @below {{expected ctas_per_sm from 1 to 32, got: 33}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 33>} {}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 32, got: 0}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 0>} {}

// -----

// #tile.cta_per_sequence C3: pack_heads,
// expected-error @below {{expected pack_heads from 1 to q_tile, got: pack_heads = 18}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 1, pack_heads = 18>} {}

// -----

// expected-error @below {{expected pack_heads from 1 to q_tile, got: pack_heads = 0}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 17, kv_tile = 24, warps = 2, ctas_per_sm = 1, pack_heads = 0>} {}

// -----

// #tile.cta_per_sequence C3: head_loop,
// expected-error @below {{expected a positive head_loop, and column_parts not to be negative, got: head_loop = 0, column_parts = 0}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, head_loop = 0>} {}

// -----

// #tile.cta_per_sequence C3: column_parts.
// expected-error @below {{expected a positive head_loop, and column_parts not to be negative, got: head_loop = 1, column_parts = -1}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 16, kv_tile = 16, warps = 1, ctas_per_sm = 1, column_parts = -1>} {}

// -----

// and has no other loops.
// expected-error @below {{duplicate or unknown struct parameter name: pingpong}}
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 32, kv_tile = 32, warps = 2, ctas_per_sm = 1, pingpong = true>} {}

// -----

// #tile.tiled C1: warps,
// expected-error @below {{expected 1, 2, 4 or 8 warps, got: 3}}
module attributes {tile.schedule = #tile.tiled<q_tile = 96, kv_tile = 64, warps = 3, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 1, 2, 4 or 8 warps, got: 12}}
module attributes {tile.schedule = #tile.tiled<q_tile = 192, kv_tile = 64, warps = 12, ctas_per_sm = 1>} {}

// -----

// #tile.tiled C1: and 16 rows for each of them.
// expected-error @below {{expected a q_tile in multiples of 16 * warps up to 256, got: q_tile = 64, warps = 8}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 8, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a q_tile in multiples of 16 * warps up to 256, got: q_tile = 512, warps = 4}}
module attributes {tile.schedule = #tile.tiled<q_tile = 512, kv_tile = 64, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a q_tile in multiples of 16 * warps up to 256, got: q_tile = 0, warps = 1}}
module attributes {tile.schedule = #tile.tiled<q_tile = 0, kv_tile = 64, warps = 1, ctas_per_sm = 1>} {}

// -----

// #tile.tiled C2
// expected-error @below {{expected a kv_tile in multiples of 16 from 16 to 256, got: 40}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 40, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a kv_tile in multiples of 16 from 16 to 256, got: 0}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 0, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a kv_tile in multiples of 16 from 16 to 256, got: 272}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 272, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.tiled C3
// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 0}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 0>} {}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 17}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 17>} {}

// -----

// #tile.tiled C4
// expected-error @below {{expected pack_heads from 1 to q_tile, got: pack_heads = 0}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 0>} {}

// -----

// expected-error @below {{expected pack_heads from 1 to q_tile, got: pack_heads = 65}}
module attributes {tile.schedule = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 65>} {}

// -----

// #tile.warp_specialized C1: warps are one to three warpgroups,
// expected-error @below {{expected 4, 8 or 12 warps, got: 2}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 32, kv_tile = 64, warps = 2, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 4, 8 or 12 warps, got: 16}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 256, kv_tile = 64, warps = 16, ctas_per_sm = 1>} {}

// -----

// #tile.warp_specialized C1: of 64 rows each.
// expected-error @below {{expected a q_tile of 16 rows for each warp, got: q_tile = 128, warps = 4}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.warp_specialized C2
// expected-error @below {{expected a kv_tile in multiples of 16 from 16 to 256, got: 40}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 40, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a kv_tile in multiples of 16 from 16 to 256, got: 0}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 0, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a kv_tile in multiples of 16 from 16 to 256, got: 272}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 272, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.warp_specialized C3: CTAs,
// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 4 CTAs of 4 warps}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 4>} {}

// -----

// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 0 CTAs of 4 warps}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 0>} {}

// -----

// #tile.warp_specialized C3: and warps of all of them.
// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 8 warps}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 2>} {}

// -----

// #tile.warp_specialized C4: the next KV tile is needed before this one is released.
// expected-error @below {{expected stages from 2 to 8 and q_stages 1 or 2, got: stages = 1, q_stages = 1}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 1>} {}

// -----

// expected-error @below {{expected stages from 2 to 8 and q_stages 1 or 2, got: stages = 9, q_stages = 1}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 9>} {}

// -----

// expected-error @below {{expected stages from 2 to 8 and q_stages 1 or 2, got: stages = 2, q_stages = 0}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, q_stages = 0>} {}

// -----

// expected-error @below {{expected stages from 2 to 8 and q_stages 1 or 2, got: stages = 2, q_stages = 3}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, q_stages = 3>} {}

// -----

// #tile.warp_specialized C5
// expected-error @below {{expected pingpong with two or three consumer warpgroups, got: 4 warps}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pingpong = true>} {}

// -----

// #tile.warp_specialized C6
// expected-error @below {{expected pack_heads from 1 to q_tile, got: pack_heads = 0}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 0>} {}

// -----

// expected-error @below {{expected pack_heads from 1 to q_tile, got: pack_heads = 65}}
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, pack_heads = 65>} {}

// -----

// #tile.single_pass C1
// expected-error @below {{expected 4, 8 or 12 warps, got: 2}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 32, kv_tile = 64, kv_tiles = 2, warps = 2, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a q_tile of 16 rows for each warp, got: q_tile = 128, warps = 4}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 128, kv_tile = 64, kv_tiles = 2, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.single_pass C2
// expected-error @below {{expected a kv_tile in multiples of 16 from 16 to 256, got: 40}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 40, kv_tiles = 2, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 2 kv_tiles or more, of 256 keys at most, got: kv_tiles = 1, kv_tile = 64}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 64, kv_tiles = 1, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 2 kv_tiles or more, of 256 keys at most, got: kv_tiles = 3, kv_tile = 96}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 96, kv_tiles = 3, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.single_pass C3
// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 4 CTAs of 4 warps}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 64, kv_tiles = 2, warps = 4, ctas_per_sm = 4>} {}

// -----

// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 12 warps}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 192, kv_tile = 64, kv_tiles = 2, warps = 12, ctas_per_sm = 2>} {}

// -----

// #tile.single_pass C4
// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 0, q_stages = 1}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 64, kv_tiles = 2, warps = 4, ctas_per_sm = 1, stages = 0>} {}

// -----

// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 9, q_stages = 1}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 64, kv_tiles = 2, warps = 4, ctas_per_sm = 1, stages = 9>} {}

// -----

// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 2, q_stages = 3}}
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 64, kv_tiles = 2, warps = 4, ctas_per_sm = 1, q_stages = 3>} {}

// -----

// #tile.by_residue C1
// expected-error @below {{expected a stride from 2 to 8, got: 9}}
module attributes {tile.schedule = #tile.by_residue<stride = 9, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// expected-error @below {{expected a stride from 2 to 8, got: 1}}
module attributes {tile.schedule = #tile.by_residue<stride = 1, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// #tile.by_residue C2
// expected-error @below {{expected #tile.tiled, #tile.warp_specialized or #tile.backward_kernels without split_q, got: #tile.split_kv<}}
module attributes {tile.schedule = #tile.by_residue<stride = 4, of = #tile.split_kv<of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>>} {}

// -----

#keys = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
// expected-error @below {{expected #tile.tiled, #tile.warp_specialized or #tile.backward_kernels without split_q, got: #tile.backward_kernels<}}
module attributes {tile.schedule = #tile.by_residue<stride = 4, of = #tile.backward_kernels<accumulation = separate, dkdv = #keys, dq = #keys, split_q = 2>>} {}

// -----

// #tile.by_length C1
#rows = #tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4>
#tiles = #tile.by_residue<stride = 4, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>
// expected-error @below {{expected a CTA or a warp for each short sequence and tiles of a grid for long ones, got: #tile.simt_rows<}}
module attributes {tile.schedule = #tile.by_length<short_sequences = #rows, long_sequences = #tiles>} {}

// -----

// The kernel that combines splits knows nothing of short sequences.
#rows = #tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4>
#tiles = #tile.split_kv<of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>
// expected-error @below {{expected a CTA or a warp for each short sequence and tiles of a grid for long ones, got: #tile.simt_rows<}}
module attributes {tile.schedule = #tile.by_length<short_sequences = #rows, long_sequences = #tiles>} {}

// -----

// #tile.split_kv C1
// expected-error @below {{expected splits from 0 (chosen at launch) to 256, got: -1}}
module attributes {tile.schedule = #tile.split_kv<splits = -1, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// expected-error @below {{expected splits from 0 (chosen at launch) to 256, got: 257}}
module attributes {tile.schedule = #tile.split_kv<splits = 257, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// #tile.split_kv C3
// expected-error @below {{expected a least number of KV tiles from 0 to 1048576, and no splits with it, got: least = -1, splits = 0}}
module attributes {tile.schedule = #tile.split_kv<least = -1, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// expected-error @below {{expected a least number of KV tiles from 0 to 1048576, and no splits with it, got: least = 2, splits = 3}}
module attributes {tile.schedule = #tile.split_kv<splits = 3, least = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// #tile.split_kv C2
// expected-error @below {{expected #tile.tiled or #tile.warp_specialized as the schedule whose keys are split, got: #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1>}}
module attributes {tile.schedule = #tile.split_kv<splits = 2, of = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1>>} {}

// -----

// expected-error @below {{expected #tile.tiled or #tile.warp_specialized as the schedule whose keys are split, got: #tile.split_kv<splits = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>}}
module attributes {tile.schedule = #tile.split_kv<of = #tile.split_kv<splits = 2, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>>} {}

// -----

// #tile.tiled_backward C1: warps,
// expected-error @below {{expected 1, 2, 4 or 8 warps, got: 12}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 192, kv_tile = 192, warps = 12, ctas_per_sm = 1>} {}

// -----

// #tile.tiled_backward C1: rows,
// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 40, kv_tile = 64, warps = 4}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 40, kv_tile = 64, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 272, kv_tile = 64, warps = 4}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 272, kv_tile = 64, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.tiled_backward C1: keys,
// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 64, kv_tile = 0, warps = 4}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 64, kv_tile = 0, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 64, kv_tile = 272, warps = 4}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 64, kv_tile = 272, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.tiled_backward C1: and 16 of the stationary tile for each warp.
// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 64, kv_tile = 64, warps = 8}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 8, ctas_per_sm = 1>} {}

// -----

// #tile.tiled_backward C2
// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 17}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 17>} {}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 0}}
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 0>} {}

// -----

// #tile.warp_specialized_backward C1: warps,
// expected-error @below {{expected 4, 8 or 12 warps, got: 2}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 2, ctas_per_sm = 1>} {}

// -----

// #tile.warp_specialized_backward C1: sizes,
// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 40, kv_tile = 64, warps = 4}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 40, kv_tile = 64, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 64, kv_tile = 272, warps = 4}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 272, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.warp_specialized_backward C1: and 16 rows of the stationary tile for each warp.
// expected-error @below {{expected a q_tile and a kv_tile in multiples of 16 from 16 to 256, one of them in multiples of 16 * warps, got: q_tile = 64, kv_tile = 64, warps = 8}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 8, ctas_per_sm = 1>} {}

// -----

// #tile.warp_specialized_backward C2
// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 4 CTAs of 4 warps}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 4>} {}

// -----

// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 8 warps}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 2>} {}

// -----

// #tile.warp_specialized_backward C3
// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 0, q_stages = 1}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, stages = 0>} {}

// -----

// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 2, q_stages = 3}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, q_stages = 3>} {}

// -----

// #tile.warp_specialized_backward C4: columns,
// expected-error @below {{expected dq_columns of 32 or 64 with single_loop, a q_tile in multiples of 64, 8 warps, 1 CTA and 2 stages or more, got: dq_columns = 48, q_tile = 64, warps = 8, ctas_per_sm = 1, stages = 2}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 48>} {}

// -----

// expected-error @below {{got: dq_columns = -32, q_tile = 64}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = -32>} {}

// -----

// #tile.warp_specialized_backward C4: with 8 warps,
// expected-error @below {{got: dq_columns = 64, q_tile = 64, warps = 4, ctas_per_sm = 1}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = true, dq_columns = 64>} {}

// -----

// #tile.warp_specialized_backward C4: rows in multiples of 64.
// expected-error @below {{got: dq_columns = 64, q_tile = 32, warps = 8, ctas_per_sm = 1}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 32, kv_tile = 128, warps = 8, ctas_per_sm = 1, single_loop = true, dq_columns = 64>} {}

// -----

// #tile.warp_specialized_backward C4: dQ of a query tile is multiplied while the next query tile comes.
// expected-error @below {{got: dq_columns = 64, q_tile = 64, warps = 8, ctas_per_sm = 1, stages = 1}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 1, single_loop = true, dq_columns = 64>} {}

// -----

// #tile.warp_specialized_backward C4: two loops have no registers.
// expected-error @below {{got: dq_columns = 64, q_tile = 64, warps = 8, ctas_per_sm = 1, stages = 2, no single_loop}}
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, dq_columns = 64>} {}

// -----

// #tile.single_pass_backward C1: warps,
// expected-error @below {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 128, kv_tile = 128, warps = 4}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.single_pass_backward C1: queries,
// expected-error @below {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 64, kv_tile = 128, warps = 8}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 144, kv_tile = 128, warps = 8}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 144, kv_tile = 128, warps = 8, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 88, kv_tile = 128, warps = 8}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 88, kv_tile = 128, warps = 8, ctas_per_sm = 1>} {}

// -----

// #tile.single_pass_backward C1: and keys.
// expected-error @below {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 128, kv_tile = 64, warps = 8}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 8 warps and a q_tile and a kv_tile in multiples of 16 from 80 to 128, got: q_tile = 128, kv_tile = 144, warps = 8}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 144, warps = 8, ctas_per_sm = 1>} {}

// -----

// #tile.single_pass_backward C2: CTAs,
// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 8 warps}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 2>} {}

// -----

// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 0 CTAs of 8 warps}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 0>} {}

// -----

// #tile.single_pass_backward C2: and stages.
// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 0, q_stages = 1}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 0>} {}

// -----

// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 2, q_stages = 0}}
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, q_stages = 0>} {}

// -----

// #tile.stationary_q_backward C1: 12 warps,
// expected-error @below {{expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 128, warps = 12}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 128, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 208, warps = 12}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 208, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 152, warps = 12}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 152, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>} {}

// -----

// #tile.stationary_q_backward C1: or 8.
// expected-error @below {{expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 192, warps = 8}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 8, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 272, warps = 8}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 272, kv_tile = 64, kv_tiles = 3, warps = 8, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 12 warps with a q_tile from 144 to 192, or 8 with one from 208 to 256, in multiples of 16, got: q_tile = 192, warps = 4}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 4, ctas_per_sm = 1>} {}

// -----

// #tile.stationary_q_backward C2
// expected-error @below {{expected kv_tiles of 48 or 64 keys and at most 256 keys in all, got: kv_tile = 32, kv_tiles = 3}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 32, kv_tiles = 3, warps = 12, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected kv_tiles of 48 or 64 keys and at most 256 keys in all, got: kv_tile = 64, kv_tiles = 0}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 0, warps = 12, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected kv_tiles of 48 or 64 keys and at most 256 keys in all, got: kv_tile = 64, kv_tiles = 5}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 5, warps = 12, ctas_per_sm = 1>} {}

// -----

// #tile.stationary_q_backward C3
// expected-error @below {{expected at most 3 CTAs and 12 consumer warps a multiprocessor, got: 2 CTAs of 12 warps}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 2>} {}

// -----

// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 9, q_stages = 1}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1, stages = 9>} {}

// -----

// expected-error @below {{expected stages from 1 to 8 and q_stages 1 or 2, got: stages = 2, q_stages = 3}}
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1, q_stages = 3>} {}

// -----

// #tile.backward_kernels C2
// expected-error @below {{expected split_q to be 0 (none) or the least query tiles of a split, to 1048576, got: -1}}
module attributes {tile.schedule = #tile.backward_kernels<accumulation = unordered, dkdv = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>, split_q = -1>} {}

// -----

// #tile.backward_kernels C1
// expected-error @below {{expected a schedule for dq if and only if its accumulation is separate, got: separate without}}
module attributes {tile.schedule = #tile.backward_kernels<accumulation = separate, dkdv = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// expected-error @below {{expected a schedule for dq if and only if its accumulation is separate, got: unordered with dq}}
module attributes {tile.schedule = #tile.backward_kernels<accumulation = unordered, dkdv = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>,
                                                         dq = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// Accumulations have names.
// expected-error @below {{to be one of: separate, unordered, first_stores, ordered}}
// expected-error @below {{failed to parse Tile_BackwardKernels parameter 'accumulation'}}
module attributes {tile.schedule = #tile.backward_kernels<accumulation = atomic, dkdv = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// #tile.by_length C1: tiles of a grid are not for short sequences,
// expected-error @below {{expected a CTA or a warp for each short sequence and tiles of a grid for long ones, got: #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1> and #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>}}
module attributes {tile.schedule = #tile.by_length<short_sequences = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>,
                                                  long_sequences = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>>} {}

// -----

// #tile.by_length C1: nor a warp for each sequence for long ones.
// expected-error @below {{expected a CTA or a warp for each short sequence and tiles of a grid for long ones, got: #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1> and #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1>}}
module attributes {tile.schedule = #tile.by_length<short_sequences = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1>,
                                                  long_sequences = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 1>>} {}

// -----

// #tile.auxiliary C1
// expected-error @below {{expected 1 to 16 warps and a positive q_tile and kv_tile, got: q_tile = 64, kv_tile = 64, warps = 17}}
module attributes {tile.schedule = #tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 17, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 1 to 16 warps and a positive q_tile and kv_tile, got: q_tile = 64, kv_tile = 64, warps = 0}}
module attributes {tile.schedule = #tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 0, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 1 to 16 warps and a positive q_tile and kv_tile, got: q_tile = 0, kv_tile = 64, warps = 4}}
module attributes {tile.schedule = #tile.auxiliary<q_tile = 0, kv_tile = 64, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected 1 to 16 warps and a positive q_tile and kv_tile, got: q_tile = 64, kv_tile = -1, warps = 4}}
module attributes {tile.schedule = #tile.auxiliary<q_tile = 64, kv_tile = -1, warps = 4, ctas_per_sm = 1>} {}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 17}}
module attributes {tile.schedule = #tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 17>} {}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 16, got: 0}}
module attributes {tile.schedule = #tile.auxiliary<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 0>} {}

// -----

// #tile.target C1: targets have names,
// expected-error @below {{expected target "cpu", "sm_80" or "sm_90a" with one of its chips, got: "sm_75", chip = 75}}
module attributes {tile.target = #tile.target<"sm_75", chip = 75>} {}

// -----

// #tile.target C1: and chips.
// expected-error @below {{expected target "cpu", "sm_80" or "sm_90a" with one of its chips, got: "sm_90a", chip = 100}}
module attributes {tile.target = #tile.target<"sm_90a", chip = 100>} {}

// -----

// expected-error @below {{expected target "cpu", "sm_80" or "sm_90a" with one of its chips, got: "cpu", chip = 80}}
module attributes {tile.target = #tile.target<"cpu", chip = 80>} {}
