// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s --split-input-file --verify-diagnostics

// program.def C1
program.def @p {
  program.table "n" [4]
  // expected-error @below {{expected names of sizes, tables and variables that are distinct, got: `n` twice}}
  program.size "n" = 4
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected names of sizes, tables and variables that are distinct, got: `n` twice}}
  program.table "n" [4]
}

// -----

program.def @p {
  program.repeat "i" = 2 {
  }
  // expected-error @below {{expected names of sizes, tables and variables that are distinct, got: `i` twice}}
  program.repeat "i" = 2 {
  }
}

// -----

program.def @p {
  program.repeat "i" = 2 {
    // expected-error @below {{expected tensors, tables, sizes, buffers and steps in a program}}
    %c = arith.constant 1 : i32
  }
}

// -----

program.def @p {
  // expected-error @below {{expected an identifier that is no size of the chip, of ids or of ranks, got: "rank"}}
  program.repeat "rank" = 2 {
  }
}

// -----

// C2
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected tables that are given before it, got: `visits`}}
  program.size "m" = visits[n]
  program.table "visits" [4]
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 [n]
  // expected-error @below {{expected tables that are given before it, got: `n`, a size}}
  program.size "m" = n[3]
}

// -----

program.def @p {
  program.table "visits" [4]
  // expected-error @below {{expected sizes that tensors have or that are computed before it, got: `visits`, a table}}
  program.size "m" = visits + 1
}

// -----

program.def @p {
  program.repeat "i" = 2 {
  }
  // expected-error @below {{expected sizes that tensors have or that are computed before it, got: `i`}}
  program.when i {
  }
}

// -----

program.def @p {
  program.repeat "i" = 2 {
    // expected-error @below {{expected extents that are equal in all iterations, got: `i`}}
    %b = program.buffer "b" : i32 [i + 1]
  }
}

// -----

// C3
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = n {
    program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(i of n))
  }
  program.launch @k2 grid(query_tiles, n) (read %x, write %y)
  program.when n - 1 {
    program.launch @k2 grid(query_tiles, n) (read %y, write %o)
  }
  // expected-error @below {{expected `o` to be written before it is read, got: no launch that writes it on every path}}
  program.launch @k2 grid(query_tiles, n) (read %o, read %y)
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = n {
    program.when i {
      program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(i of n))
    }
  }
  // expected-error @below {{expected `x` to be written before it is read, got: rows that some iterations write}}
  program.launch @k2 grid(query_tiles, n) (read %x, write %o)
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  %last:2 = program.repeat "i" = n carry(%from = %x, %to = %y) {
    // expected-error @below {{expected `x` to be written before it is read, got: no launch that writes it}}
    program.launch @k2 grid(query_tiles, n) (read %from, write %to)
    program.yield %to, %from
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = n {
    program.launch @k2 grid(query_tiles, n) (read %a, scratch %x)
    %b = program.buffer "b" : i32 [n]
    program.when i {
      // expected-error @below {{expected `b` to be written before it is read, got: no launch that writes it}}
      program.launch @k2 grid(query_tiles, n) (read %b, scratch %y)
    }
    program.launch @k2 grid(query_tiles, n) (read %a, write %b)
  }
}

// -----

// C4
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = n {
    // expected-note @below {{written here, too}}
    // expected-error @below {{expected each row of `x` to be written by one launch (others may update it), got: one in each iteration}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %x)
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = n {
    // expected-note @below {{written here, too}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(i of n))
    // expected-error @below {{expected each row of `x` to be written by one launch (others may update it), got: two}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(i of n))
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.when n {
    // expected-note @below {{written here, too}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %o)
  }
  // expected-error @below {{expected each row of `o` to be written by one launch (others may update it), got: two}}
  program.clear %o
}

// -----

// C5
program.def @p {
  // expected-error @below {{expected every row of the result `o` to be written, got: no launch that writes it on every path}}
  %o = program.tensor "o" result : i32 [n]
  program.when n {
    program.clear %o
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.clear %x
  // expected-error @below {{expected operands and arrays to be read alone, got: an exchange into `a`}}
  program.exchange %a, %x offset 1
}

// -----

// C6
program.def @p {
  %x = program.buffer "x" : i32 [4]
  %y = program.buffer "y" : i32 [4]
  program.clear %x
  %last:2 = program.repeat "i" = ranks carry(%from = %x, %to = %y) {
    // expected-error @below {{expected one argument for `x`, which the launch writes, got: several}}
    program.launch @k2 grid(query_tiles, 4) (read %from, scratch %to)
    program.yield %from, %from
  }
}

// -----

// C7
program.def @p {
  %a = program.tensor "a" array : i32 [n]
  program.when n {
    // expected-error @below {{expected the name of a `tile.kernel`, got: @other}}
    program.launch @other grid(query_tiles, n) (read %a)
  }
}

// -----

// C8
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-note @below {{exchanged here}}
  program.exchange %x, %a offset 1
  // expected-error @below {{expected a wait for `x` before it is read, got: rows that are still received}}
  program.launch @k2 grid(query_tiles, n) (read %x, write %o)
  program.wait %x
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-note @below {{exchanged here}}
  program.exchange %x, %a offset 1
  // expected-error @below {{expected a wait for `x` before `x` is written, got: rows that are still received}}
  program.launch @k2 grid(query_tiles, n) (read %a, write %x)
  program.wait %x
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.clear %x
  // expected-note @below {{exchanged here}}
  program.exchange %y, %x offset 1
  // expected-error @below {{expected a wait for `y` before `x` is written, got: rows that are still sent}}
  program.launch @k2 grid(query_tiles, n) (read %a, update %x)
  program.wait %y
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-note @below {{exchanged here}}
  program.exchange %x, %a offset 1
  // expected-error @below {{expected a wait for `x` before `x` is written, got: rows that are still received}}
  program.exchange %x, %a offset 2
  program.wait %x
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  %last:3 = program.repeat "step" = ranks - 1 carry(%cur = %a, %next = %x, %spare = %y) {
    // expected-note @below {{exchanged here}}
    // expected-error @below {{expected a wait for `x` before it is read, got: rows that are still received}}
    program.exchange %next, %cur offset 1
    program.yield %next, %spare, %next
  }
}

// -----

// C9
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-error @below {{expected a wait for this exchange before the end of the program, got: none}}
  program.exchange %x, %a offset 1
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = n {
    %b = program.buffer "b" : i32 [n]
    // expected-error @below {{expected a wait for this exchange before the end of the body that has `b`, got: none}}
    program.exchange %b, %a offset 1
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = 1 {
    %b = program.buffer "b" : i32 [n]
    program.clear %b
    // expected-error @below {{expected a wait for this exchange before the end of the body that has `b`, got: none}}
    program.exchange %x, %b offset 1
  }
  program.wait %x
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.clear %x
  // expected-error @below {{expected an exchange into `x` before the wait, got: none}}
  program.wait %x
  program.launch @k2 grid(query_tiles, n) (read %x, scratch %y)
  program.clear %o
}

// -----

// C10
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-note @below {{written here}}
  program.exchange %x, %a offset 1
  program.wait %x
  // expected-error @below {{expected `x` to be read before other rows come there, got: no step that reads it}}
  program.exchange %x, %a offset 2
  program.wait %x
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-note @below {{written here}}
  program.exchange %x, %a offset 1
  program.wait %x
  // expected-error @below {{expected `x` to be read before other rows come there, got: no step that reads it}}
  program.clear %x
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-note @below {{written here}}
  program.clear %x
  // expected-error @below {{expected `x` to be read before other rows come there, got: no step that reads it}}
  program.exchange %x, %a offset 2
  program.wait %x
}

// -----

// C11
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.when n {
    // expected-error @below {{expected exchanges and waits that all ranks run, got: one in a `program.when`}}
    program.exchange %x, %a offset 1
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.exchange %x, %a offset 1
  program.when n {
    // expected-error @below {{expected exchanges and waits that all ranks run, got: one in a `program.when`}}
    program.wait %x
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-error @below {{expected an offset that is equal on all ranks, got: rank + 1}}
  program.exchange %x, %a offset rank + 1
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.size "later" = ranks - 1 - rank
  // expected-error @below {{expected a count that is equal on all ranks, as there are exchanges, got: later}}
  program.repeat "i" = later {
    %b = program.buffer "b" : i32 [n]
    program.exchange %b, %a offset 1
    program.wait %b
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.table "rounds" [ranks]
  // expected-error @below {{expected a count that is equal on all ranks, as there are exchanges, got: rounds[0]}}
  program.repeat "i" = rounds[0] {
    %b = program.buffer "b" : i32 [n]
    program.exchange %b, %a offset 1
    program.wait %b
  }
}

// -----

// C12
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.repeat "i" = n {
    // expected-error @below {{expected a number, or the variable of a repeat around it that runs 2 * n times, got: rows(i of 2 * n)}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(i of 2 * n))
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-error @below {{expected a number, or the variable of a repeat around it that runs 4 times, got: rows(n of 4)}}
  program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(n of 4))
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-error @below {{expected 2 to 64 classes of rows, got: ranks}}
  program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(0 of ranks))
}

// -----

// C13
program.def @p {
  %b0 = program.buffer "b0" : i32 [4]
  program.clear %b0
  %b1 = program.buffer "b1" : i32 [4]
  program.clear %b1
  %b2 = program.buffer "b2" : i32 [4]
  program.clear %b2
  %b3 = program.buffer "b3" : i32 [4]
  program.clear %b3
  %b4 = program.buffer "b4" : i32 [4]
  program.clear %b4
  %b5 = program.buffer "b5" : i32 [4]
  program.clear %b5
  %b6 = program.buffer "b6" : i32 [4]
  program.clear %b6
  %b7 = program.buffer "b7" : i32 [4]
  program.clear %b7
  %b8 = program.buffer "b8" : i32 [4]
  program.clear %b8
  %b9 = program.buffer "b9" : i32 [4]
  program.clear %b9
  %b10 = program.buffer "b10" : i32 [4]
  program.clear %b10
  %b11 = program.buffer "b11" : i32 [4]
  program.clear %b11
  %b12 = program.buffer "b12" : i32 [4]
  program.clear %b12
  %b13 = program.buffer "b13" : i32 [4]
  program.clear %b13
  %b14 = program.buffer "b14" : i32 [4]
  program.clear %b14
  %b15 = program.buffer "b15" : i32 [4]
  program.clear %b15
  %b16 = program.buffer "b16" : i32 [4]
  program.clear %b16
  %b17 = program.buffer "b17" : i32 [4]
  program.clear %b17
  %b18 = program.buffer "b18" : i32 [4]
  program.clear %b18
  %b19 = program.buffer "b19" : i32 [4]
  program.clear %b19
  %b20 = program.buffer "b20" : i32 [4]
  program.clear %b20
  %b21 = program.buffer "b21" : i32 [4]
  program.clear %b21
  %b22 = program.buffer "b22" : i32 [4]
  program.clear %b22
  %b23 = program.buffer "b23" : i32 [4]
  program.clear %b23
  %b24 = program.buffer "b24" : i32 [4]
  program.clear %b24
  %b25 = program.buffer "b25" : i32 [4]
  program.clear %b25
  %b26 = program.buffer "b26" : i32 [4]
  program.clear %b26
  %b27 = program.buffer "b27" : i32 [4]
  program.clear %b27
  // expected-error @below {{expected at most 256 states of repeats, got: more}}
  %last:28 = program.repeat "i" = ranks carry(%c0 = %b0, %c1 = %b1, %c2 = %b2, %c3 = %b3, %c4 = %b4, %c5 = %b5, %c6 = %b6, %c7 = %b7, %c8 = %b8, %c9 = %b9, %c10 = %b10, %c11 = %b11, %c12 = %b12, %c13 = %b13, %c14 = %b14, %c15 = %b15, %c16 = %b16, %c17 = %b17, %c18 = %b18, %c19 = %b19, %c20 = %b20, %c21 = %b21, %c22 = %b22, %c23 = %b23, %c24 = %b24, %c25 = %b25, %c26 = %b26, %c27 = %b27) {
    program.yield %c1, %c2, %c0, %c4, %c5, %c6, %c3, %c8, %c9, %c10, %c11, %c7, %c13, %c14, %c15, %c16, %c17, %c18, %c12, %c20, %c21, %c22, %c23, %c24, %c25, %c26, %c27, %c19
  }
}

// -----

// program.exchange C1
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %b = program.buffer "b" : f32 [n]
  // expected-error @below {{expected a destination of the source's elements and extents, got: `b` and `a`}}
  program.exchange %b, %a offset 1
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n, 4]
  %b = program.buffer "b" : i32 [2 * n, 4]
  // expected-error @below {{expected a destination of the source's elements and extents, with 3 times its rows, got: `b` and `a`}}
  program.exchange %b rows(0 of 3), %a offset 1
}

// -----

// C2
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-error @below {{expected an offset to another rank, got: 0}}
  program.exchange %x, %a offset 3 - 3
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-error @below {{expected a source and a destination that differ, got: `x` twice}}
  program.exchange %x, %x offset 1
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  program.clear %x
  %last:2 = program.repeat "i" = ranks carry(%from = %x, %to = %x) {
    // expected-error @below {{expected a source and a destination that differ, got: `x` twice}}
    program.exchange %to, %from offset 1
    program.yield %to, %from
  }
}

// -----

// C3
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  // expected-error @below {{expected rows that are sent and rows that are received, got: one of these}}
  "program.exchange"(%x, %a) <{offset = #program.extent<"1">, sent = #program.extent<"n">}> : (!program.value, !program.value) -> ()
}

// -----

// program.repeat C1
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  %last = program.repeat "i" = ranks carry(%from = %a) {
    // expected-error @below {{expected 1 values, as are carried, got: 2}}
    program.yield %from, %from
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  // expected-error @below {{expected as many carried values as names, arguments of the body and results, got: 1, 0, 1 and 1}}
  %l = "program.repeat"(%a) <{name = "i", count = #program.extent<"n">, names = []}> ({^bb0(%b: !program.value): "program.yield"(%b) : (!program.value) -> ()}) : (!program.value) -> !program.value
}

// -----

// C2
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %b = program.tensor "b" operand : i32 [2 * n]
  %last = program.repeat "i" = ranks carry(%from = %a) {
    // expected-error @below {{expected the elements and extents of `a` to be yielded for `from`, got: `b`}}
    program.yield %b
  }
}

// -----

program.def @p {
  %a = program.tensor "a" array : i32 leading_dims all [n]
  // expected-error @below {{expected memory without leading dimensions to be carried, got: `a`}}
  %last = program.repeat "i" = ranks carry(%from = %a) {
    program.yield %from
  }
}

// -----

// C3
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]

  %last = program.repeat "i" = ranks carry(%from = %a) {
    %b = program.buffer "b" : i32 [n]
    // expected-error @below {{expected memory from outside the body to be yielded, got: `b`, which is new in each iteration}}
    program.yield %b
  }
}

// -----

// program.when C1
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  // expected-error @below {{expected steps without block arguments, got: 1}}
  "program.when"() <{condition = #program.extent<"n">}> ({^bb0(%b: !program.value): "program.clear"(%b) : (!program.value) -> ()}) : () -> ()
}

// -----

// Values that are not defined yet.
program.def @p {
  %x = program.buffer "x" : i32 [4]
  // expected-error @below {{expected values that are defined before it, got: a later one}}
  program.clear %last
  %last = program.repeat "i" = ranks carry(%from = %x) {
    program.yield %from
  }
}

// -----

program.def @p {
  // expected-error @below {{expected values that are defined before it, got: a later one}}
  %last = program.repeat "i" = ranks carry(%from = %last) {
    program.yield %from
  }
}

// -----

// One repeat in another: after one iteration of the outer one the two have changed places.
program.def @p {
  %x = program.buffer "x" : i32 [4]
  %y = program.buffer "y" : i32 [4]
  program.clear %x
  %outer:2 = program.repeat "i" = ranks carry(%a = %x, %b = %y) {
    %inner:2 = program.repeat "j" = 1 carry(%c = %a, %d = %b) {
      program.exchange %d, %c offset 1
      program.wait %d
      program.yield %d, %c
    }
    program.yield %inner#0, %inner#1
  }
  // expected-note @below {{exchanged here}}
  program.exchange %outer#1, %outer#0 offset 1
  // expected-error @below {{expected a wait for `x` before it is read, got: rows that are still received}}
  program.launch @k2 grid(query_tiles, 4) (read %outer#1, update %outer#0)
}

// -----

// C11: what GPUs may differ in.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %x = program.buffer "x" : i32 [n]
  // expected-error @below {{expected an offset that is equal on all ranks, got: multiprocessors}}
  program.exchange %x, %a offset multiprocessors
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %x = program.buffer "x" : i32 [n]
  // expected-error @below {{expected as many rows received as sent, since neither goes by the rank, got: rows(send 1, receive n)}}
  program.exchange %x, %a offset 1 rows(send 1, receive n)
}

// -----

// C3
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %x = program.buffer "x" : i32 [n]
  // expected-error @below {{expected 1 row or more, got: -1}}
  program.exchange %x, %a offset 1 rows(send 0 - 1, receive 0 - 1)
}

// -----

program.def @p {
  // expected-error @below {{expected at most 8 axes, got: 9}}
  %a = program.tensor "a" operand : i32 [n, 1, 1, 1, 1, 1, 1, 1, 1]
}

// -----

// C13: repeats whose iterations are followed one by one, nested.
tile.kernel @add(%x: !tile.ptr<i32>)
    target("sm_80") grid(dense heads 1) schedule(#tile.tiled<q_tile = 64, kv_tile = 64, warps = 4, ctas_per_sm = 1>) {}
// expected-error @below {{expected repeats that are checked in 262144 steps, got: more}}
program.def @p {
  %x = program.buffer "x" : i32 [4]
  program.clear %x
  program.repeat "i0" = 3 {
  program.repeat "i1" = 3 {
  program.repeat "i2" = 3 {
  program.repeat "i3" = 3 {
  program.repeat "i4" = 3 {
  program.repeat "i5" = 3 {
  program.repeat "i6" = 3 {
  program.repeat "i7" = 3 {
  program.repeat "i8" = 3 {
  program.repeat "i9" = 3 {
  program.repeat "i10" = 3 {
  program.repeat "i11" = 3 {
  program.repeat "i12" = 3 {
  program.repeat "i13" = 3 {
  program.launch @add grid(query_tiles, 1) (update %x)
  }}}}}}}}}}}}}}
}

// -----

// C3: the first iteration writes rows of another buffer; a launch leaves anything in the rows of earlier iterations.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]
  %last:2 = program.repeat "i" = 3 carry(%to = %y, %next = %x) {
    program.launch @k2 grid(query_tiles, n) (read %a, write %to rows(i of 3))
    program.yield %next, %next
  }
  // expected-error @below {{expected `x` to be written before it is read, got: rows that some iterations write}}
  program.launch @k2 grid(query_tiles, n) (read %x, write %o)
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]
  program.repeat "i" = 3 {
    program.launch @k1 grid(query_tiles, n) (scratch %x)
    program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(i of 3))
  }
  // expected-error @below {{expected `x` to be written before it is read, got: rows that some iterations write}}
  program.launch @k2 grid(query_tiles, n) (read %x, write %o)
}

// -----

// C4: two paths have other classes of rows.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]
  program.launch @k1 grid(query_tiles, n) (write %x rows(0 of 3))
  program.when n {
    program.launch @k1 grid(query_tiles, n) (scratch %x)
    // expected-note @below {{written here, too}}
    program.launch @k1 grid(query_tiles, n) (write %x rows(0 of 2))
  }
  // expected-error @below {{expected each row of `x` to be written by one launch (others may update it), got: two}}
  program.launch @k1 grid(query_tiles, n) (write %x rows(1 of 2))
  program.launch @k2 grid(query_tiles, n) (read %x, write %o)
}

// -----

// C3
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]
  program.launch @k1 grid(query_tiles, n) (write %x rows(0 of 2))
  program.when n {
    program.launch @k1 grid(query_tiles, n) (scratch %x)
    program.launch @k1 grid(query_tiles, n) (write %x)
  }
  // expected-error @below {{expected `x` to be written before it is read, got: no launch that writes it on every path}}
  program.launch @k2 grid(query_tiles, n) (read %x, write %o)
}

// -----

// C4: iterations that may have written their rows.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  program.repeat "i" = 2 {
    program.when n {
      // expected-note @below {{written here, too}}
      program.launch @k1 grid(query_tiles, n) (write %o rows(i of 2))
    }
  }
  // expected-error @below {{expected each row of `o` to be written by one launch (others may update it), got: two}}
  program.launch @k1 grid(query_tiles, n) (write %o rows(0 of 2))
  program.launch @k1 grid(query_tiles, n) (write %o rows(1 of 2))
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  program.repeat "i" = 2 {
    program.when n {
      // expected-note @below {{written here, too}}
      program.launch @k1 grid(query_tiles, n) (write %o rows(i of 2))
    }
    // expected-error @below {{expected each row of `o` to be written by one launch (others may update it), got: two}}
    program.launch @k1 grid(query_tiles, n) (write %o rows(i of 2))
  }
}

// -----

// C4: a block is half of the rows, one behind another; a class is what kernels take it for.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [2 * n]
  // expected-note @below {{written here, too}}
  program.launch @k2 grid(query_tiles, n) (read %a, write %o rows(0 of 2))
  // expected-error @below {{expected rows of `o` to be classes that launches write or blocks that are received, got: both}}
  program.exchange %o rows(1 of 2), %a offset 1
  program.wait %o
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [2 * n]
  // expected-note @below {{written here, too}}
  program.exchange %o rows(1 of 2), %a offset 1
  program.wait %o
  // expected-error @below {{expected rows of `o` to be classes that launches write or blocks that are received, got: both}}
  program.launch @k2 grid(query_tiles, n) (read %a, write %o rows(0 of 2))
}

// -----

// Once they have been read, blocks may be received where classes were, and the other way round.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %x = program.buffer "x" : i32 [2 * n]
  program.launch @k2 grid(query_tiles, n) (read %a, write %x)
  program.launch @k2 grid(query_tiles, n) (read %x, read %a)
  program.exchange %x rows(0 of 2), %a offset 1
  program.exchange %x rows(1 of 2), %a offset 1
  program.wait %x
  program.launch @k2 grid(query_tiles, n) (read %x, read %a)
  program.launch @k2 grid(query_tiles, n) (read %a, write %x rows(0 of 2))
  // expected-error @below {{expected `x` to be written before it is read, got: no launch that writes rows(1 of 2)}}
  program.launch @k2 grid(query_tiles, n) (read %x, read %a)
}

// -----

// C5
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // expected-error @below {{expected a grid of 1 block or more, got: 0}}
  program.launch @k2 grid(query_tiles, 0) (read %a, write %o)
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // expected-error @below {{expected a grid of 1 block or more, got: -5}}
  program.launch @k2 grid(query_tiles, 0 - 5) (read %a, write %o or zero)
}

// -----

// C12: a repeat that may run no time, and a result that has rows then.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  program.repeat "i" = ranks - 1 {
    // expected-error @below {{expected a repeat that runs once or more, or an extent of `o` that is 0 where it does not run, got: a repeat that runs ranks - 1 times}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %o rows(i of ranks - 1))
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  program.size "times" = floor_div(n, 4)
  program.repeat "i" = times {
    // expected-error @below {{expected a repeat that runs once or more, or an extent of `o` that is 0 where it does not run, got: a repeat that runs times times}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %o rows(i of times))
  }
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n * (n - 3)]
  program.repeat "i" = 0 - 2 {
    // expected-error @below {{expected a repeat that runs once or more, or an extent of `o` that is 0 where it does not run, got: a repeat that runs -2 times}}
    program.launch @k2 grid(query_tiles, n) (read %a, write %o rows(i of -2))
  }
}

// -----

// C11: how many rows there are, and how long one is.
program.def @p {
  %x = program.tensor "x" operand : i32 [rank * 4 + 4]
  %y = program.buffer "y" : i32 [rank * 4 + 4]
  // expected-error @below {{expected extents that are equal on all ranks, or `rows(send A, receive B)` of the first, got: `x` with rank * 4 + 4}}
  program.exchange %y, %x offset 1
}

// -----

program.def @p {
  program.table "shard" [ranks]
  program.size "own" = shard[rank]
  %x = program.tensor "x" operand : i32 [own]
  %y = program.buffer "y" : i32 [2 * own]
  // expected-error @below {{expected extents that are equal on all ranks, or `rows(send A, receive B)` of the first, got: `x` with own}}
  program.exchange %y rows(0 of 2), %x offset 1
}

// -----

program.def @p {
  %x = program.tensor "x" operand : i32 [n, multiprocessors]
  %y = program.buffer "y" : i32 [n, multiprocessors]
  // expected-error @below {{expected extents that are equal on all ranks, or `rows(send A, receive B)` of the first, got: `x` with multiprocessors}}
  program.exchange %y, %x offset 1 rows(send n, receive n)
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // expected-error @below {{expected rows that name `rank` in the index of a table alone, got: rank}}
  program.exchange %o, %a offset 1 rows(send rank, receive rank)
}

// -----

program.def @p {
  program.table "shard" [ranks]
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  program.size "later" = ranks - 1 - rank
  // expected-error @below {{expected rows that name `rank` in the index of a table alone, got: later + 1}}
  program.exchange %o, %a offset 1 rows(send shard[rank], receive later + 1)
}

// -----

// program.repeat C3: through a repeat in it.
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  %x = program.buffer "x" : i32 [n]
  %y = program.buffer "y" : i32 [n]
  program.launch @k2 grid(query_tiles, n) (read %a, write %x)
  %last = program.repeat "i" = 3 carry(%from = %x) {
    program.launch @k1 grid(query_tiles, n) (scratch %from)
    program.launch @k1 grid(query_tiles, n) (write %from)
    %b = program.buffer "b" : i32 [n]
    program.launch @k2 grid(query_tiles, n) (read %from, write %b)
    %inner = program.repeat "j" = 2 carry(%c = %b) {
      program.yield %c
    }
    // expected-error @below {{expected memory from outside the body to be yielded, got: `b`, which is new in each iteration}}
    program.yield %inner
  }
}

// -----

// program.exchange C1
program.def @p {
  %a = program.tensor "a" operand : i32 leading_dims all [n]
  %x = program.buffer "x" : i32 [n]
  // expected-error @below {{expected a source and a destination without leading dimensions, and a destination without strided axes, got: `a`}}
  program.exchange %x, %a offset 1
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 leading_dims last [n]
  // expected-error @below {{expected a source and a destination without leading dimensions, and a destination without strided axes, got: `o`}}
  program.exchange %o, %a offset 1
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n] strided(0)
  %o = program.tensor "o" result : i32 [n] strided(0)
  %last = program.repeat "i" = 1 carry(%to = %o) {
    // expected-error @below {{expected a source and a destination without leading dimensions, and a destination without strided axes, got: `o`}}
    program.exchange %to, %a offset 1
    program.yield %to
  }
}

// -----

// program.exchange C3
program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // expected-error @below {{expected 1 row or more, got: 0}}
  program.exchange %o, %a offset 1 rows(send 0, receive 0)
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [n]
  %o = program.tensor "o" result : i32 [n]
  // expected-error @below {{expected n rows, as a block has, got: n + 100}}
  program.exchange %o, %a offset 1 rows(send n + 100, receive n + 100)
}

// -----

program.def @p {
  %a = program.tensor "a" operand : i32 [16]
  %o = program.tensor "o" result : i32 [32]
  // expected-error @below {{expected 16 rows, as a block has, got: 15}}
  program.exchange %o rows(0 of 2), %a offset 1 rows(send 15, receive 15)
}
