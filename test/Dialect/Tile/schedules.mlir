// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every schedule with all of its parameters, and with defaults, which are not printed.
//
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK: module @simt_rows attributes {tile.schedule = #tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4>}
module @simt_rows attributes {tile.schedule = #tile.simt_rows<rows = 2, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 4, pack_heads = 1>} {}
// CHECK: #tile.simt_rows<rows = 16, keys = 16, lanes = 1, warps = 8, ctas_per_sm = 16, pack_heads = 8>
module attributes {tile.schedule = #tile.simt_rows<rows = 16, keys = 16, lanes = 1, warps = 8, ctas_per_sm = 16, pack_heads = 8>} {}

// CHECK: #tile.cta_per_sequence<q_tile = 17, kv_tile = 8, warps = 2, ctas_per_sm = 32>
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 17, kv_tile = 8, warps = 2, ctas_per_sm = 32, pack_heads = 1, head_loop = 1,
                                                          column_parts = 0>} {}
// CHECK: #tile.cta_per_sequence<q_tile = 256, kv_tile = 256, warps = 8, ctas_per_sm = 1, pack_heads = 256, head_loop = 4, column_parts = 2>
module attributes {tile.schedule = #tile.cta_per_sequence<q_tile = 256, kv_tile = 256, warps = 8, ctas_per_sm = 1, pack_heads = 256,
                                                          head_loop = 4, column_parts = 2>} {}

// CHECK: #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>
module attributes {tile.schedule = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2, q_in_registers = false,
                                               single_loop = false, pack_heads = 1>} {}
// CHECK: #tile.tiled<q_tile = 256, kv_tile = 256, warps = 8, ctas_per_sm = 16, q_in_registers = true, single_loop = true, pack_heads = 256>
module attributes {tile.schedule = #tile.tiled<q_tile = 256, kv_tile = 256, warps = 8, ctas_per_sm = 16, q_in_registers = true,
                                               single_loop = true, pack_heads = 256>} {}

// CHECK: #tile.warp_specialized<q_tile = 64, kv_tile = 16, warps = 4, ctas_per_sm = 3>
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 64, kv_tile = 16, warps = 4, ctas_per_sm = 3, stages = 2, q_stages = 1,
                                                          pingpong = false, single_loop = false, pack_heads = 1>} {}
// CHECK: #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 8, q_stages = 2, pingpong = true,
// CHECK-SAME: single_loop = true, pack_heads = 8>
module attributes {tile.schedule = #tile.warp_specialized<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 8, q_stages = 2,
                                                          pingpong = true, single_loop = true, pack_heads = 8>} {}

// CHECK: #tile.single_pass<q_tile = 192, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1>
module attributes {tile.schedule = #tile.single_pass<q_tile = 192, kv_tile = 48, kv_tiles = 3, warps = 12, ctas_per_sm = 1>} {}
// CHECK: #tile.single_pass<q_tile = 64, kv_tile = 128, kv_tiles = 2, warps = 4, ctas_per_sm = 3, stages = 1, q_stages = 2, single_loop = true>
module attributes {tile.schedule = #tile.single_pass<q_tile = 64, kv_tile = 128, kv_tiles = 2, warps = 4, ctas_per_sm = 3, stages = 1,
                                                     q_stages = 2, single_loop = true>} {}

// CHECK: #tile.split_kv<of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>
// CHECK: #tile.split_kv<splits = 1, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>
// CHECK: #tile.split_kv<splits = 256, of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>
module attributes {tile.schedule = #tile.split_kv<splits = 0, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>} {}
module attributes {tile.schedule = #tile.split_kv<splits = 1, of = #tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>} {}
module attributes {tile.schedule = #tile.split_kv<splits = 256, of = #tile.warp_specialized<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 2>>} {}

// CHECK: #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1, single_loop = false>} {}
// CHECK: #tile.tiled_backward<q_tile = 16, kv_tile = 128, warps = 8, ctas_per_sm = 16, single_loop = true>
module attributes {tile.schedule = #tile.tiled_backward<q_tile = 16, kv_tile = 128, warps = 8, ctas_per_sm = 16, single_loop = true>} {}

// CHECK: #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, dq_columns = 0>} {}
// CHECK: #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 3, q_stages = 2, single_loop = true,
// CHECK-SAME: dq_columns = 32>
module attributes {tile.schedule = #tile.warp_specialized_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 3,
                                                                   q_stages = 2, single_loop = true, dq_columns = 32>} {}

// CHECK: #tile.single_pass_backward<q_tile = 128, kv_tile = 80, warps = 8, ctas_per_sm = 1>
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 128, kv_tile = 80, warps = 8, ctas_per_sm = 1>} {}
// CHECK: #tile.single_pass_backward<q_tile = 80, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>
module attributes {tile.schedule = #tile.single_pass_backward<q_tile = 80, kv_tile = 128, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>} {}

// CHECK: #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 192, kv_tile = 64, kv_tiles = 3, warps = 12, ctas_per_sm = 1>} {}
// CHECK: #tile.stationary_q_backward<q_tile = 256, kv_tile = 48, kv_tiles = 5, warps = 8, ctas_per_sm = 1, stages = 1, q_stages = 2>
module attributes {tile.schedule = #tile.stationary_q_backward<q_tile = 256, kv_tile = 48, kv_tiles = 5, warps = 8, ctas_per_sm = 1, stages = 1,
                                                               q_stages = 2>} {}

// CHECK: #tile.backward_kernels<accumulation = separate, dkdv = [[STATIONARY:#tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>]],
// CHECK-SAME: dv = [[STATIONARY]], dq = [[STATIONARY]]>
// CHECK: #tile.backward_kernels<accumulation = unordered, dkdv = [[STATIONARY]]>
// CHECK: #tile.backward_kernels<accumulation = first_stores, dkdv = [[STATIONARY]]>
// CHECK: #tile.backward_kernels<accumulation = ordered, dkdv = [[STATIONARY]], dv = [[STATIONARY]]>
#stationary = #tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>
module attributes {tile.schedule = #tile.backward_kernels<accumulation = separate, dkdv = #stationary, dv = #stationary, dq = #stationary>} {}
module attributes {tile.schedule = #tile.backward_kernels<accumulation = unordered, dkdv = #stationary>} {}
module attributes {tile.schedule = #tile.backward_kernels<accumulation = first_stores, dkdv = #stationary>} {}
module attributes {tile.schedule = #tile.backward_kernels<accumulation = ordered, dkdv = #stationary, dv = #stationary>} {}

// CHECK: #tile.by_length<short_sequences = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 10>,
// CHECK-SAME: long_sequences = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>>
// CHECK: #tile.by_length<short_sequences = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>,
// CHECK-SAME: long_sequences = #tile.backward_kernels<accumulation = unordered, dkdv = #tile.tiled_backward<{{[^<>]*}}>>>
module attributes {tile.schedule = #tile.by_length<
    short_sequences = #tile.simt_rows<rows = 1, keys = 4, lanes = 16, warps = 4, ctas_per_sm = 10>,
    long_sequences = #tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>>} {}
module attributes {tile.schedule = #tile.by_length<
    short_sequences = #tile.single_pass_backward<q_tile = 128, kv_tile = 128, warps = 8, ctas_per_sm = 1>,
    long_sequences = #tile.backward_kernels<accumulation = unordered, dkdv = #stationary>>} {}

// CHECK: #tile.auxiliary<q_tile = 1, kv_tile = 1, warps = 1, ctas_per_sm = 1>
module attributes {tile.schedule = #tile.auxiliary<q_tile = 1, kv_tile = 1, warps = 1, ctas_per_sm = 1, per_sequence = false>} {}
// CHECK: #tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 16, ctas_per_sm = 16, per_sequence = true>
module attributes {tile.schedule = #tile.auxiliary<q_tile = 128, kv_tile = 128, warps = 16, ctas_per_sm = 16, per_sequence = true>} {}

// CHECK: #tile.target<"cpu", chip = 0>
module attributes {tile.target = #tile.target<"cpu", chip = 0>} {}
// CHECK: #tile.target<"sm_80", chip = 86>
module attributes {tile.target = #tile.target<"sm_80", chip = 86>} {}
// CHECK: #tile.target<"sm_90a", chip = 90>
module attributes {tile.target = #tile.target<"sm_90a", chip = 90>} {}
