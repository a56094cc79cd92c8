// A ring over numbers: what each rank sums up shows whose keys it has seen, and how often.
tile.kernel @begin(%k: !tile.ptr<i32>, %acc: !tile.ptr<i32>, %rows: i32)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
tile.kernel @add(%k: !tile.ptr<i32>, %acc: !tile.ptr<i32>, %rows: i32, %from: i32, %row: i64)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
tile.kernel @store(%acc: !tile.ptr<i32>, %o: !tile.ptr<i32>, %rows: i32)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}

program.def @ring {
  %k = program.tensor "k" operand : i32 [rows, 2] strided(0)
  %o = program.tensor "o" result : i32 [rows, 2]
  program.table "visits" [ranks]
  %acc = program.buffer "acc" : i32 [rows, 2]
  %slot0 = program.buffer "slot0" : i32 [rows, 2]
  %slot1 = program.buffer "slot1" : i32 [rows, 2]
  program.launch @begin grid(query_tiles, 1) (read %k, write %acc, size rows)
  %last:3 = program.repeat "step" = ranks - 1 carry(%cur = %k, %next = %slot0, %spare = %slot1) {
    program.exchange %next, %cur offset 1
    program.wait %next
    program.when visits[step + 1] {
      program.launch @add grid(query_tiles, 1)
          (read %next, update %acc, size rows, size mod(rank - step - 1, ranks), stride %cur axis 0)
    }
    program.yield %next, %spare, %next
  }
  program.launch @store grid(query_tiles, 1) (read %acc, write %o, size rows)
}
