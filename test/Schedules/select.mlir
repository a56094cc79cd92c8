// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.select: one kernel. On GPUs a CTA has as many tiles of queries as its warps have columns and its shared memory
// has room for; on the CPU it has one. The first numbers are heads of q, of lists and of keys; after the head dim follow
// whether scores are probabilities and whether a block has the largest one. The last ones are the scale by log2(e),
// warps, tiles of a warp, and of a tile candidates, windows of a ring's entry and these entries.
//
// RUN: split-file %s %t
// RUN: attn-opt %t/select.mlir --attn-pipeline=target=sm_90a | FileCheck %t/select.mlir --check-prefixes=CHECK,GPU
// RUN: attn-opt %t/select.mlir --attn-pipeline=target=cpu | FileCheck %t/select.mlir --check-prefixes=CHECK,CPU
// RUN: not attn-opt %t/long.mlir --attn-pipeline=target=sm_80 2>&1 | FileCheck %t/long.mlir
// RUN: attn-opt %t/long.mlir --attn-pipeline=target=cpu
// RUN: not attn-opt %t/float32.mlir --attn-pipeline=target=sm_80 2>&1 | FileCheck %t/float32.mlir

//--- select.mlir
// CHECK-LABEL: tile.kernel @tiles(
// GPU-SAME: warps = 8, ctas_per_sm = 2>) shared
// CHECK: tile.call "select_blocks<32, 8, 8, 128, 1, 0, 64, 64, 64, 16, 1, 2, 64, {{[0-9]+}},
// GPU-SAME: 8, 8, 64, 1, 32>" of "attn/select.h"(%blocks)
// CPU-SAME: 1, 1, 64, 1, 32>" of "attn/select.h"(%blocks)
// CHECK-SAME: from(%q, %compressed_k, %cu_seqlens, %cu_seqlens_compressed, %blocks_head, {{.*}}, %block, %lse, %lse_head
// GPU: program.launch @tiles {{.*}}ceil_div(floor_div(total_q, 64) + batch, 64) * 8)
// CPU: program.launch @tiles {{.*}}(floor_div(total_q, 64) + batch) * 8)
attn.select @tiles prob length(64) stride(64) block(64) count(16) first(1) local(2) rows(64) layout(thd) heads(32, 8)
    dim(128) dtype(bf16)

// CHECK-LABEL: tile.kernel @tokens(
// CHECK: tile.call "select_dense_blocks<64, 4, 4, 128, 1, 0, 32, 16, 64, 16, 1, 2, 1, {{[0-9]+}},
// GPU-SAME: 8, 2, 64, 1, 64>"
// CHECK-SAME: from(%q, %compressed_k, %blocks_batch, %blocks_head, {{.*}}, %compressed_k_rows, %block, %lse,
// GPU: program.launch @tokens {{.*}}ceil_div(seqlen_q, 16) * batch * 4)
attn.select @tokens prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(1) layout(bhsd) heads(64, 4)
    dim(128) dtype(f16)

// Lists of query heads, which read the means of their kv head.
// CHECK-LABEL: tile.kernel @moba(
// CHECK: tile.call "select_blocks<64, 64, 4, 128, 0, 0, 512, 512, 512, 3, 0, 1, 64, 1065353216,
// CHECK-SAME: from(%q, %compressed_k, %cu_seqlens, %cu_seqlens_compressed, {{.*}}, %total_q, %block)
// GPU: program.launch @moba {{.*}} * 64)
attn.select @moba mean_key block(512) count(3) first(0) local(1) rows(64) per_head layout(thd) heads(64, 4) dim(128)
    dtype(bf16)

// Largest scores of 32 keys are found in registers: a block has 4.
// CHECK-LABEL: tile.kernel @msa(
// CHECK: tile.call "select_blocks<4, 4, 1, 128, 0, 1, 1, 1, 128, 16, 0, 1, 1, 1065353216,
// GPU-SAME: 32, 4>"
// CHECK-SAME: from(%q, %k, %cu_seqlens, %cu_seqlens, {{.*}}, %k_row, %k_head, %batch, %total_q, %block)
attn.select @msa max block(128) count(16) first(0) local(1) rows(1) per_head layout(thd) heads(4, 1) dim(128)
    dtype(bf16)

// Blocks of 24 keys have 3 times 8, and those of 20 keys are not made of 8 keys.
// CHECK: tile.call "select_dense_blocks<4, 2, 2, 64, 0, 1, 1, 1, 24,
// GPU-SAME: 8, 8>"
// CHECK-SAME: %k_rows, %block)
attn.select @parts max block(24) count(8) first(1) local(2) rows(24) layout(bshd) heads(4, 2) dim(64) dtype(f16)
// CHECK: tile.call "select_dense_blocks<4, 2, 2, 64, 0, 1, 1, 1, 20,
// GPU-SAME: 1, 64>"
attn.select @keys max block(20) count(8) first(1) local(2) rows(20) layout(bshd) heads(4, 2) dim(64) dtype(f16)

//--- long.mlir
// CHECK: error: 'attn.select' op has kernels for target `sm_80` for blocks and windows of up to 8192 strides, got: length(1) stride(1) block(65536)
attn.select @long prob length(1) stride(1) block(65536) count(16) first(1) local(2) rows(1) layout(thd) heads(8) dim(64)
    dtype(bf16)

//--- float32.mlir
// CHECK: error: 'attn.select' op expected dtype bf16 or f16 for target `sm_80`
attn.select @plain prob length(32) stride(16) block(64) count(16) first(1) local(2) rows(1) layout(thd) heads(8) dim(64)
    dtype(f32)
