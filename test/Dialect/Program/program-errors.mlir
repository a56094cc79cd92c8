// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --split-input-file --verify-diagnostics

// C1
program.def @p {
  // expected-error @below {{expected tensors, tables, sizes, buffers and steps in a program}}
  %c = arith.constant 1 : i32
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected names of tensors and buffers that are distinct, got: `a` twice}}
  %b = program.buffer "a" : i32 [n]
}

// -----

// C2
program.def @p {
  %a = program.tensor "a" array : i32 [n + 1]
  // expected-error @below {{expected sizes that tensors have or that are computed before it, got: `m`}}
  program.size "k" = n * m
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  program.size "m" = 2 * n
  // expected-error @below {{expected each size to be computed once, got: `m` again}}
  program.size "m" = 3 * n
}

// -----

tile.kernel @k(%a: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
// C3
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  %sums = program.buffer "sums" : i32 [n]
  // expected-error @below {{expected `sums` to be written before it is read, got: no launch that writes it}}
  program.launch @k grid(query_tiles, n) (update %sums)
}

// -----

tile.kernel @k(%a: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  %sums = program.buffer "sums" : i32 [n]
  program.launch @k grid(query_tiles, n) (write %sums rows(0 of 3))
  program.launch @k grid(query_tiles, n) (write %sums rows(2 of 3))
  // expected-error @below {{expected `sums` to be written before it is read, got: no launch that writes rows(1 of 3)}}
  program.launch @k grid(query_tiles, n) (read %sums)
}

// -----

tile.kernel @k(%a: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
// C4
program.def @p {
  %a = program.tensor "a" result : i32 [n]
  // expected-note @below {{written here, too}}
  program.launch @k grid(query_tiles, n) (write %a)
  // expected-error @below {{expected each row of `a` to be written by one launch (others may update it), got: two}}
  program.launch @k grid(query_tiles, n) (write %a)
}

// -----

tile.kernel @k(%a: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
program.def @p {
  %a = program.tensor "a" result : i32 [n]
  // expected-note @below {{written here, too}}
  program.launch @k grid(query_tiles, n) (write %a rows(0 of 2))
  // expected-error @below {{expected each row of `a` to be written by one launch}}
  program.launch @k grid(query_tiles, n) (write %a rows(1 of 3))
}

// -----

// C5
program.def @p {
  // expected-error @below {{expected every row of the result `a` to be written, got: no launch that writes it}}
  %a = program.tensor "a" result : i32 [n]
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected operands and arrays to be read alone, got: a launch that writes `a`}}
  program.clear %a
}

// -----

tile.kernel @k(%a: !tile.ptr<i32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
program.def @p {
  %a = program.tensor "a" result : i32 [n]
  // expected-error @below {{expected a buffer as scratch, got: `a`}}
  program.launch @k grid(query_tiles, n) (scratch %a)
}

// -----

// C6
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected a launch that reads the buffer `b`, got: none}}
  %b = program.buffer "b" : i32 [n]
  program.clear %b
}

// -----

// C7
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected the name of a `tile.kernel`, got: @k}}
  program.launch @k grid(query_tiles, n) (read %a)
}

// -----

tile.kernel @k(%a: !tile.ptr<i32>) target("sm_80") grid(dense heads 1 keys) schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected a grid of kv_tiles, as @k has, got: query_tiles}}
  program.launch @k grid(query_tiles, n) (read %a)
}

// -----

tile.kernel @k(%a: !tile.ptr<i32>, %n: i32) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected 2 arguments, as @k has, got: 1}}
  program.launch @k grid(query_tiles, n) (read %a)
}

// -----

tile.kernel @k(%a: !tile.ptr<f32>) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected an argument for `a` of type '!tile.ptr<f32>', got: #program.argument<read>}}
  program.launch @k grid(query_tiles, n) (read %a)
}

// -----

tile.kernel @k(%a: !tile.queue) target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected an argument for `a` of type '!tile.queue', got: #program.argument<size n>}}
  program.launch @k grid(query_tiles, n) (size n)
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected axes of `a` from 0 to 0, got: 1}}
  program.launch @k grid(query_tiles, n) (stride %a axis 1)
}

// -----

program.def @p {
  // expected-error @below {{expected strided axes from 0 to 1, got: 2}}
  %a = program.tensor "a" array : i32 [n, 4] strided(2)
}

// -----

program.def @p {
  // expected-error @below {{expected elements of bf16, f16, f32 or i32, got: 'f64'}}
  %a = program.tensor "a" array : f64 [n]
}

// -----

program.def @p {
  // expected-error @below {{expected `floor_div`, `ceil_div`, `mod`, `round_up`, `min`, `max` or `splits` at character 4 of an extent, got: `2 * half(n)`}}
  %a = program.tensor "a" array : i32 [2 * half(n)]
}

// -----

program.def @p {
  // expected-error @below {{expected `operand`, `result` or `array`, got: `input`}}
  %a = program.tensor "a" input : i32 [n]
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected `query_tiles`, `kv_tiles`, `sequence_tiles` or `clusters`, got: `tiles`}}
  program.launch @k grid(tiles, n) (read %a)
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected `read`, `write`, `update`, `scratch`, `unused`, `stride`, `size`, `blocks` or `counter`, got: `reads`}}
  program.launch @k grid(query_tiles, n) (reads %a)
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected `rows` and `or zero` with `write` alone, got: read}}
  program.launch @k grid(query_tiles, n) (read %a or zero)
}

// -----

program.def @p {
  %a = program.tensor "a" result : i32 [n]
  // expected-error @below {{expected a class of rows from 0 to 1, got: 2}}
  program.launch @k grid(query_tiles, n) (write %a rows(2 of 2))
}

// -----

program.def @p {
  %a = program.tensor "a" result : bf16 [n, 4, 64]
  // expected-error @below {{expected `read` with a map, got: write}}
  program.launch @k grid(query_tiles, n) (write map %a axes(0, 1))
}

// -----

program.def @p {
  %a = program.tensor "a" result : bf16 [n, 4, 64]
  // expected-error @below {{expected 2 or 3 axes of a map, got: 1}}
  program.launch @k grid(query_tiles, n) (read map %a axes(0))
}

// -----

// expected-error @below {{expected the text of an extent as it is printed, `2 * n`, got: `2*n`}}
program.def @p attributes {program.note = #program.extent<"2*n">} {}

// -----

// expected-error @below {{expected tensors to be `program.tensor`s, got: 1 block arguments}}
"program.def"() <{sym_name = "q"}> ({^bb0(%z: !program.value): "program.clear"(%z) : (!program.value) -> ()}) : () -> ()

// -----

program.def @p {
  %a = program.tensor "a" result : i32 [n]
  // expected-error @below {{expected 2 to 64 classes of rows, got: 9223372036854775807}}
  program.launch @k grid(query_tiles, n) (write %a rows(0 of 9223372036854775807))
}

// -----

program.def @p {
  %a = program.tensor "a" result : i32 [n]
  // expected-error @below {{expected an identifier that is no size of the chip, of ids or of ranks, got: "multiprocessors"}}
  program.size "multiprocessors" = 3
}

// -----

program.def @p {
  // expected-error @below {{expected a place from 0 to 65536, got: -7}}
  %a = program.buffer "a" : i32 [n] place -7
}

// -----

program.def @p {
  %b = program.buffer "b" : i32 [4]
  // expected-error @below {{expected one argument for `b`, which the launch writes, got: several}}
  program.launch @k grid(query_tiles, 4) (scratch %b, read %b)
}

// -----

program.def @p {
  %q = program.tensor "q" operand : bf16 [n, 4, 64]
  // expected-error @below {{expected axes of `q` from 0 to 1, got: 2}}
  program.launch @k grid(query_tiles, 4) (read map %q axes(0, 2))
}

// -----

program.def @p {
  %q = program.tensor "q" operand : bf16 [n, 4, 64]
  // expected-error @below {{expected axes of a map that differ, got: #program.argument<read map axes(0, 0)>}}
  program.launch @k grid(query_tiles, 4) (read map %q axes(0, 0))
}

// -----

program.def @p {
  // expected-error @below {{expected each strided axis once}}
  %q = program.tensor "q" operand : bf16 [n, 4, 64] strided(0, 0)
}

// -----

// C1
program.def @p {
  // expected-error @below {{expected an identifier as its name, got: "a b\0A"}}
  %a = program.tensor "a b\n" array : i32 [n]
}

// -----

program.def @p {
  // expected-error @below {{expected an identifier as its name, got: ""}}
  %a = program.buffer "" : i32 [n]
}

// -----

program.def @p {
  // expected-error @below {{expected an identifier that is no size of the chip, of ids or of ranks, got: "2n"}}
  program.size "2n" = 4
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected names of sizes, tables and variables that are distinct, got: `n` twice}}
  program.size "n" = n + 1
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected names of sizes, tables and variables that are distinct, got: `n` twice}}
  program.size "n" = 5
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 leading_dims last [n]
  // expected-error @below {{expected names of sizes, tables and variables that are distinct, got: `a_rows` twice}}
  program.size "a_rows" = 5
}

// -----

// C2
program.def @p {
  // expected-error @below {{expected extents of 0 or more, got: -3}}
  %a = program.tensor "a" array : i32 [0 - 3]
}

// -----

program.def @p {
  // expected-error @below {{expected extents of 0 or more, got: -1}}
  %a = program.buffer "a" : i32 [4, -1]
}

// -----

program.def @p {
  // expected-error @below {{expected extents of 0 or more, got: -1}}
  program.table "t" [-1]
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected a divisor of 1 or more at character 13 of an extent, got: `floor_div(n, 0)`}}
  program.size "m" = floor_div(n, 0)
}

// -----

program.def @p {
  // expected-error @below {{expected a divisor of 1 or more at character 7 of an extent, got: `mod(7, 0)`}}
  program.size "m" = mod(7, 0)
}

// -----

program.def @p {
  // expected-error @below {{expected a divisor of 1 or more at character 12 of an extent, got: `round_up(7, 3 - 5)`}}
  program.size "m" = round_up(7, 3 - 5)
}
