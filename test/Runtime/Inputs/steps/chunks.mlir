// Chunks of 4 rows take turns on one buffer; one more repeat carries bf16 values that tensor maps show.
tile.kernel @partial(%a: !tile.ptr<i32>, %partial: !tile.ptr<i32>, %chunk: i32)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
tile.kernel @rows(%partial: !tile.ptr<i32>, %o: !tile.ptr<i32>, %chunk: i32, %rows: i32)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
tile.kernel @copy(%from: !tile.ptr<bf16>, %to: !tile.ptr<bf16>, %map: !tile.tensor_map<64xbf16>)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}

program.def @chunks {
  %a = program.tensor "a" operand : i32 [total]
  %x = program.tensor "x" operand : bf16 [2, total, 4, 64] strided(0, 1, 2)
  %o = program.tensor "o" result : i32 [total]
  program.size "chunks" = ceil_div(total, 4)
  program.repeat "chunk" = chunks {
    %part = program.buffer "part" : i32 [4]
    program.launch @partial grid(query_tiles, 1) (read %a, write %part, size chunk)
    program.launch @rows grid(query_tiles, 1) (read %part, write %o rows(chunk of chunks), size chunk, size min(4, total - 4 * chunk))
  }
  %y = program.buffer "y" : bf16 [2, total, 4, 64]
  %z = program.buffer "z" : bf16 [2, total, 4, 64]
  %last:3 = program.repeat "semaphore" = 2 carry(%from = %x, %to = %y, %later = %z) {
    program.launch @copy grid(query_tiles, 1) (read %from, write %to, read map %from axes(1, 2, 0))
    program.yield %to, %later, %from
  }
  program.launch @copy grid(query_tiles, 1) (read %last#0, scratch %y, read map %last#0 axes(1, 2, 0))
}
