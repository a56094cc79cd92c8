// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

tile.kernel @split(%q: !tile.ptr<bf16>, %k: !tile.ptr<bf16>, %o: !tile.ptr<f32>, %batch: i32, %splits: i32, %q_row: i64,
                   %k_map: !tile.tensor_map<64xbf16>, %blocks: i32, %queue: !tile.queue)
    target("sm_80") grid(dense heads 16) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @merge(%partial: !tile.ptr<f32>, %o: !tile.ptr<bf16>, %splits: i32)
    target("sm_80") grid(dense heads 16) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

// CHECK-LABEL: program.def @forward {
program.def @forward {
  // CHECK-NEXT: %q = program.tensor "q" operand : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
  %q = program.tensor "q" operand : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
  %k = program.tensor "k" operand : bf16 [batch, seqlen_kv, 16, 128] strided(0, 1, 2)
  %o = program.tensor "o" result : bf16 [batch, seqlen_q, 16, 128] strided(0, 1, 2)
  // CHECK: program.size "splits" = splits(16 * batch * ceil_div(seqlen_q, 128), seqlen_kv, 2 * multiprocessors)
  program.size "splits" = splits((16 * batch) * ceil_div(seqlen_q, 128), seqlen_kv, (2) * multiprocessors)
  // CHECK-NEXT: %partial = program.buffer "partial" : f32 [splits, 16, batch * seqlen_q, 128]
  %partial = program.buffer "partial" : f32 [splits, 16, batch * seqlen_q, 128]
  // CHECK-NEXT: program.launch @split grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128) * splits) (read %q, read %k, write %partial, size batch, size splits, stride %q axis 1, read map %k axes(1, 2, 0), blocks, counter)
  program.launch @split grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128) * splits)
      (read %q, read %k, write %partial, size batch, size splits, stride %q axis 1, read map %k axes(1, 2, 0), blocks, counter)
  // CHECK-NEXT: program.launch @merge grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128)) (read %partial, write %o or zero, size splits)
  program.launch @merge grid(query_tiles, 16 * batch * ceil_div(seqlen_q, 128)) (read %partial, write %o or zero, size splits)
}

tile.kernel @number(%ids: !tile.ptr<i32>, %status: !tile.ptr<i32>, %work: !tile.ptr<i32>)
    target("sm_80") grid(rows cluster 1) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @long(%o: !tile.ptr<bf16>, %work: !tile.ptr<i32>)
    target("sm_80") grid(packed heads 16) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}
tile.kernel @short(%o: !tile.ptr<bf16>, %work: !tile.ptr<i32>)
    target("sm_80") grid(packed heads 16 tiles 1) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

// Classes of rows together are all of them, a launch's scratch may be another's, and sums have zeros to begin with.
// CHECK-LABEL: program.def @classes {
program.def @classes {
  // CHECK-NEXT: %ids_q = program.tensor "ids_q" array : i32 leading_dims all [tokens_q]
  %ids = program.tensor "ids_q" array : i32 leading_dims all [tokens_q]
  // CHECK-NEXT: %status = program.tensor "status" result : i32 leading_dims all []
  %status = program.tensor "status" result : i32 leading_dims all []
  %o = program.tensor "o" result : bf16 [total_q, 16, 64] strided(0, 1)
  // CHECK: program.size "batch" = 8 * id_rows
  program.size "batch" = 8 * id_rows
  %work = program.buffer "work" : i32 [total_q]
  // CHECK: %sums = program.buffer "sums" : i32 [total_q] place 0
  %sums = program.buffer "sums" : i32 [total_q] place 0
  // CHECK-NEXT: program.clear %sums
  program.clear %sums
  program.launch @number grid(clusters, id_rows) (read %ids, write %status, scratch %work)
  // CHECK: program.launch @long grid(query_tiles, 16 * (floor_div(total_q, 128) + batch + 2)) (write %o rows(0 of 2), update %sums)
  program.launch @long grid(query_tiles, 16 * (floor_div(total_q, 128) + batch + 2)) (write %o rows(0 of 2), update %sums)
  program.launch @short grid(sequence_tiles, 16 * max(batch, 1)) (write %o rows(1 of 2), scratch %work)
}

tile.kernel @part(%k: !tile.ptr<bf16>, %o: !tile.ptr<bf16>)
    target("sm_80") grid(dense heads 16) schedule(#tile.tiled<q_tile = 128, kv_tile = 64, warps = 4, ctas_per_sm = 2>) {}

// Iterations write all rows: `ranks` are 1 or more, and where others are none, there are no rows.
// CHECK-LABEL: program.def @iterations {
program.def @iterations {
  // CHECK-NEXT: program.size "total" = id_rows * tokens
  program.size "total" = id_rows * tokens
  // A size that is computed before the tensor is one that it has to have.
  %k = program.tensor "k" operand : bf16 [total, 64]
  %ids = program.tensor "ids" array : i32 leading_dims all [tokens]
  %shares = program.tensor "shares" result : bf16 [total, 64]
  %chunks = program.tensor "chunks" result : bf16 [round_up(total, 128), 64]
  %others = program.tensor "others" result : bf16 [total * (ranks - 1), 64]
  program.size "tiles" = ceil_div(total, 128)
  program.size "steps" = 2 * max(tiles, ranks - 2)
  program.repeat "share" = ranks {
    program.launch @part grid(query_tiles, 16) (read %k, write %shares rows(share of ranks))
  }
  program.repeat "chunk" = steps {
    program.launch @part grid(query_tiles, 16) (read %k, write %chunks rows(chunk of steps))
  }
  // CHECK: program.exchange %others rows(other of ranks - 1), %k offset other + 1
  program.repeat "other" = ranks - 1 {
    program.exchange %others rows(other of ranks - 1), %k offset other + 1
  }
  program.wait %others
}
