// Uneven shards come from all ranks at once, each into its block.
tile.kernel @sum(%k: !tile.ptr<i32>, %others: !tile.ptr<i32>, %o: !tile.ptr<i32>, %most: i32)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}

program.def @gather {
  program.table "shard" [ranks]
  %k = program.tensor "k" operand : i32 [most, 2]
  %o = program.tensor "o" result : i32 [most, 2]
  %others = program.buffer "others" : i32 [(ranks - 1) * most, 2]
  program.clear %o
  program.repeat "step" = ranks - 1 {
    program.exchange %others rows(step of ranks - 1), %k offset step + 1
        rows(send shard[rank], receive shard[mod(rank - step - 1, ranks)])
  }
  program.wait %others
  program.launch @sum grid(query_tiles, 1) (read %k, read %others, update %o, size most)
}
