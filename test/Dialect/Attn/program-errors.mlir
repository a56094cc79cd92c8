// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What programs, operands, calls and results refuse: their constraints, by number, and bad text.
//
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// attn.program. C1: a result,
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
// expected-error @below {{'attn.program' op expected an `attn.result`, got: none}}
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
}

// -----

// C1: no other ops
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  // expected-error @below {{'builtin.unrealized_conversion_cast' op expected operands, calls and results in an `attn.program`, got: `builtin.unrealized_conversion_cast`}}
  %z = builtin.unrealized_conversion_cast %x : !attn.tensor to !attn.tensor
  attn.result "y" = %y
}

// -----

// C1: and no block arguments.
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
// expected-error @below {{'attn.program' op expected no block arguments, got: 1}}
"attn.program"() <{sym_name = "f"}> ({
^entry(%t: !attn.tensor):
  %y = "attn.call"(%t) <{callee = @a, operand_names = ["part_0"], result_names = ["result"]}>
    : (!attn.tensor) -> !attn.tensor
  "attn.result"(%y) <{name = "y"}> : (!attn.tensor) -> ()
}) : () -> ()

// -----

// C2: names are identifiers,
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
// expected-error @below {{'attn.program' op expected an identifier as a name, got: "f-g"}}
attn.program @"f-g" {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  attn.result "y" = %y
}

// -----

// C2
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  // expected-error @below {{'attn.operand' op expected an identifier as a name, got: ""}}
  %x = attn.operand ""
  %y = attn.call @a(part_0 = %x) -> (result)
  attn.result "y" = %y
}

// -----

// C2
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  // expected-error @below {{'attn.result' op expected an identifier as a name, got: "1"}}
  attn.result "1" = %y
}

// -----

// C2: and distinct.
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  // expected-error @below {{'attn.result' op expected distinct names of operands and results, got: "x" twice}}
  attn.result "x" = %y
}

// -----

// C2
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{expected distinct names of operands and results, got: "x" twice}}
  %z = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  attn.result "y" = %y
}

// -----

// C3: results are those of calls,
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.result' op expected a result of an `attn.call`, got: an operand}}
  attn.result "y" = %x
}

// -----

// C3: and given once.
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  attn.result "y" = %y
  // expected-error @below {{'attn.result' op expected each tensor to be a result once, got: a second time}}
  attn.result "z" = %y
}

// -----

// attn.call. C1: as many names as operands
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected a name for each of 1 operands, got: 2}}
  %y = "attn.call"(%x) <{callee = @a, operand_names = ["part_0", "b"], result_names = ["result"]}>
    : (!attn.tensor) -> !attn.tensor
  attn.result "y" = %y
}

// -----

// C1: and results.
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected a name for each of 1 results, got: 0}}
  %y = "attn.call"(%x) <{callee = @a, operand_names = ["part_0"], result_names = []}>
    : (!attn.tensor) -> !attn.tensor
  attn.result "y" = %y
}

// -----

// C2: each name once,
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected each name once, got: `part_0` twice}}
  %y = attn.call @a(part_0 = %x, part_0 = %x) -> (result)
  attn.result "y" = %y
}

// -----

// C2
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected each name once, got: `result` twice}}
  %y, %z = attn.call @a(part_0 = %x) -> (result, result)
  attn.result "y" = %y
}

// -----

// C2: and a computation of the module,
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected the name of a computation in the module, got: @b}}
  %y = attn.call @b(part_0 = %x) -> (result)
  attn.result "y" = %y
}

// -----

// C2: which is no program,
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  attn.result "y" = %y
}
attn.program @g {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected the name of a computation in the module, got: @f}}
  %y = attn.call @f(x = %x) -> (y)
  attn.result "y" = %y
}

// -----

// C2: not even itself,
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected the name of a computation in the module, got: @f}}
  %y = attn.call @f(x = %x) -> (y)
  attn.result "y" = %y
}

// -----

// C2: and no attn.segments.
attn.segments @s mask(#attn.causal) segments(4)
attn.program @f {
  %x = attn.operand "x"
  // expected-error @below {{'attn.call' op expected the name of a computation in the module, got: @s}}
  %y = attn.call @s(ids = %x) -> (status)
  attn.result "y" = %y
}

// -----

// Operands, calls and results are those of a program.
// expected-error @below {{'attn.operand' op expects parent op 'attn.program'}}
%x = attn.operand "x"

// -----

// Calls read what earlier calls gave.
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  // expected-error @below {{operand #0 does not dominate this use}}
  %y = attn.call @a(part_0 = %z) -> (result)
  // expected-note @below {{operand defined here}}
  %z = attn.call @a(part_0 = %y) -> (result)
  attn.result "y" = %y
}

// -----

// One name, one op.
// expected-note @below {{see existing symbol definition here}}
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
// expected-error @below {{redefinition of symbol named 'a'}}
attn.program @a {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> (result)
  attn.result "y" = %y
}

// -----

// Text
attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 %x) -> (result) // expected-error {{expected '='}}
}

// -----

attn.add @a parts(1) layout(thd) heads(2) dim(64) dtype(bf16)
attn.program @f {
  %x = attn.operand "x"
  %y = attn.call @a(part_0 = %x) -> result // expected-error {{expected '('}}
}
