// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Native sparse attention by hand: attention to means of keys, which gives scores of blocks; lists of the best blocks, both
// ways; attention to these; a window; and the sum of the three by gates. Chunks of rows take turns on one workspace.
//
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(program.def(program-place-buffers))' | FileCheck %s --check-prefix=PLACE
// RUN: attn-translate %s --program | FileCheck %s --check-prefix=DATA

tile.kernel @scan(%cu_seqlens: !tile.ptr<i32>, %cu_cmp: !tile.ptr<i32>, %batch: i32)
    target("sm_90a") grid(rows cluster 1) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @compress(%k: !tile.ptr<bf16>, %v: !tile.ptr<bf16>, %cu_cmp: !tile.ptr<i32>, %k_cmp: !tile.ptr<bf16>, %v_cmp: !tile.ptr<bf16>)
    target("sm_90a") grid(packed heads 4 keys) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @attend_cmp(%q: !tile.ptr<bf16>, %k_cmp: !tile.ptr<bf16>, %v_cmp: !tile.ptr<bf16>, %cu_cmp: !tile.ptr<i32>,
                        %o_cmp: !tile.ptr<bf16>, %lse_cmp: !tile.ptr<f32>, %k_map: !tile.tensor_map<64xbf16, packed>)
    target("sm_90a") grid(packed heads 64) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>) {}
tile.kernel @select(%q: !tile.ptr<bf16>, %k_cmp: !tile.ptr<bf16>, %cu_cmp: !tile.ptr<i32>, %lse_cmp: !tile.ptr<f32>,
                    %list: !tile.ptr<i32>, %count: !tile.ptr<i32>)
    target("sm_90a") grid(packed heads 4) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @transpose(%list: !tile.ptr<i32>, %count: !tile.ptr<i32>, %histogram: !tile.ptr<i32>, %rows: !tile.ptr<i32>, %begin: !tile.ptr<i32>)
    target("sm_90a") grid(rows cluster 1) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @attend_slc(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %v: !tile.ptr<bf16>, %rows: !tile.ptr<i32>, %begin: !tile.ptr<i32>,
                        %partial: !tile.ptr<bf16>, %partial_lse: !tile.ptr<f32>, %chunk: i32)
    target("sm_90a") grid(packed heads 4 keys) schedule(#tile.warp_specialized_backward<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @merge_slc(%list: !tile.ptr<i32>, %partial: !tile.ptr<bf16>, %partial_lse: !tile.ptr<f32>, %o_slc: !tile.ptr<bf16>,
                       %lse_slc: !tile.ptr<f32>, %chunk: i32)
    target("sm_90a") grid(packed heads 64) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @attend_sld(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %v: !tile.ptr<bf16>, %cu_seqlens: !tile.ptr<i32>, %o_sld: !tile.ptr<bf16>,
                        %lse_sld: !tile.ptr<f32>)
    target("sm_90a") grid(packed heads 64) schedule(#tile.warp_specialized<q_tile = 128, kv_tile = 64, warps = 8, ctas_per_sm = 1>) {}
tile.kernel @combine(%gates: !tile.ptr<f32>, %o_cmp: !tile.ptr<bf16>, %o_slc: !tile.ptr<bf16>, %o_sld: !tile.ptr<bf16>, %o: !tile.ptr<bf16>)
    target("sm_90a") grid(packed heads 64) schedule(#tile.auxiliary<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

// Windows of 32 keys every 16, blocks of 64 keys, 16 of them for each row and kv head, chunks of 32768 rows.
// CHECK-LABEL: program.def @nsa {
// PLACE-LABEL: program.def @nsa {
// DATA: "name": "nsa"
program.def @nsa {
  %q = program.tensor "q" operand : bf16 [total, 64, 128] strided(0, 1)
  %k = program.tensor "k" operand : bf16 [total, 4, 128] strided(0, 1)
  %v = program.tensor "v" operand : bf16 [total, 4, 128] strided(0, 1)
  %gates = program.tensor "gates" operand : f32 [total, 64, 3]
  %cu_seqlens = program.tensor "cu_seqlens" array : i32 [batch + 1]
  %o = program.tensor "o" result : bf16 [total, 64, 128] strided(0, 1)
  // Saved for the backward pass, in place of scores and lists of another kind.
  %lse_cmp = program.tensor "lse_cmp" result : f32 [64, total]
  %lse_slc = program.tensor "lse_slc" result : f32 [64, total]
  %lse_sld = program.tensor "lse_sld" result : f32 [64, total]
  %list = program.tensor "list" result : i32 [4, total, 16]
  program.size "windows" = floor_div(total, 16)
  program.size "chunks" = ceil_div(total, 32768)
  program.size "tiles" = floor_div(total, 128) + batch

  %cu_cmp = program.buffer "cu_cmp" : i32 [batch + 1]
  // Means are over once there are lists; then lists the other way and results of later branches lie there, and partial
  // results of a chunk where counts lay.
  // PLACE: "k_cmp" {{.*}} place 2
  // PLACE: "v_cmp" {{.*}} place 3
  %k_cmp = program.buffer "k_cmp" : bf16 [windows, 4, 128]
  %v_cmp = program.buffer "v_cmp" : bf16 [windows, 4, 128]
  %o_cmp = program.buffer "o_cmp" : bf16 [total, 64, 128]
  // PLACE: "count" {{.*}} place 5
  // PLACE: "histogram" {{.*}} place 2
  // PLACE: "rows" {{.*}} place 3
  %count = program.buffer "count" : i32 [4, total]
  %histogram = program.buffer "histogram" : i32 [4, 132, ceil_div(total, 64)]
  %rows = program.buffer "rows" : i32 [4, total * 16]
  %begin = program.buffer "begin" : i32 [4, ceil_div(total, 64) + 1]
  // Chunks write their rows of it.
  // PLACE: "o_slc" {{.*}} place 2
  %o_slc = program.buffer "o_slc" : bf16 [total, 64, 128]
  %o_sld = program.buffer "o_sld" : bf16 [total, 64, 128]

  program.launch @scan grid(clusters, 1) (read %cu_seqlens, write %cu_cmp, size batch)
  program.launch @compress grid(kv_tiles, 4 * ceil_div(windows, 64)) (read %k, read %v, read %cu_cmp, write %k_cmp, write %v_cmp)
  // CHECK: program.launch @attend_cmp {{.*}}read map %k_cmp axes(0, 1))
  // DATA: "kind": "tensor_map",
  // DATA-NEXT: "tensor": 11,
  // DATA-NEXT: "axes": [
  program.launch @attend_cmp grid(query_tiles, 64 * tiles)
      (read %q, read %k_cmp, read %v_cmp, read %cu_cmp, write %o_cmp or zero, write %lse_cmp or zero, read map %k_cmp axes(0, 1))
  program.launch @select grid(query_tiles, 4 * tiles) (read %q, read %k_cmp, read %cu_cmp, read %lse_cmp, write %list or zero, write %count or zero)
  program.launch @transpose grid(clusters, 4) (read %list, read %count, scratch %histogram, write %rows, write %begin)
  // CHECK: program.repeat "chunk" = chunks {
  // DATA: "variable": "chunk",
  // DATA-NEXT: "count": "chunks",
  program.repeat "chunk" = chunks {
    // One for each listed block of each row: 16 results and logarithms that one kernel makes and the next one adds up.
    // PLACE: program.repeat
    // PLACE-NEXT: "partial" {{.*}} place 5
    // PLACE-NEXT: "partial_lse" {{.*}} place 6
    %partial = program.buffer "partial" : bf16 [min(total, 32768), 16, 64, 128]
    %partial_lse = program.buffer "partial_lse" : f32 [min(total, 32768), 16, 64]
    program.launch @attend_slc grid(kv_tiles, 4 * ceil_div(total, 64)) (read %q, read %k, read %v, read %rows, read %begin, write %partial, write %partial_lse, size chunk)
    // CHECK: program.launch @merge_slc grid(query_tiles, 64 * ceil_div(min(32768, total - 32768 * chunk), 128)) (read %list, read %partial, read %partial_lse, write %o_slc rows(chunk of chunks), write %lse_slc rows(chunk of chunks), size chunk)
    program.launch @merge_slc grid(query_tiles, 64 * ceil_div(min(32768, total - 32768 * chunk), 128))
        (read %list, read %partial, read %partial_lse, write %o_slc rows(chunk of chunks), write %lse_slc rows(chunk of chunks), size chunk)
  }
  program.launch @attend_sld grid(query_tiles, 64 * tiles) (read %q, read %k, read %v, read %cu_seqlens, write %o_sld or zero, write %lse_sld or zero)
  program.launch @combine grid(query_tiles, 64 * tiles) (read %gates, read %o_cmp, read %o_slc, read %o_sld, write %o or zero)
}
