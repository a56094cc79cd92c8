// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: attn-opt %s --test-shardings -split-input-file -verify-diagnostics -o /dev/null

// expected-error @below {{expected slots of a multiple of 8 rows (two chunks for each of 4 ranks), got: 20 rows of sequence 1; `#plan.dual_chunk` without `padded` takes any length}}
module attributes {test.shards = {of = #plan.dual_chunk<padded>, ranks = 4, lengths = [8, 20]}} {}

// -----

// expected-error @below {{expected from 1 to 256 ranks, got: 0}}
module attributes {test.shards = {of = #plan.contiguous, ranks = 0, lengths = [8]}} {}

// -----

// expected-error @below {{expected lengths from 0 to 1073741824, got: -1 of sequence 1}}
module attributes {test.shards = {of = #plan.contiguous, ranks = 2, lengths = [8, -1]}} {}

// -----

// expected-error @below {{expected slots that hold their sequences, up to 1073741824 rows, got: 7 rows for the 8 tokens of sequence 0}}
module attributes {test.shards = {of = #plan.contiguous, ranks = 2, lengths = [8], slots = [7]}} {}

// -----

// expected-error @below {{expected as many slots as sequences (1), got: 2}}
module attributes {test.shards = {of = #plan.contiguous, ranks = 2, lengths = [8], slots = [8, 8]}} {}

// -----

// expected-error @below {{expected shards of the name `yours` from the caller, got none}}
module attributes {test.shards = {of = #plan.runs<"yours">, ranks = 1, lengths = [1], given = [[1, [0, 0, 0, 1]]]}} {}

// -----

// expected-error @below {{expected shards of 2 ranks, got: 1}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 2, lengths = [1], given = [[1, [0, 0, 0, 1]]]}} {}

// -----

// expected-error @below {{expected each token on a rank, got: position 3 of sequence 1 on none}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 2, lengths = [2, 5], given = [[5, [0, 0, 0, 2], [2, 1, 0, 3]], [1, [0, 1, 4, 1]]]}} {}

// -----

// expected-error @below {{expected each token on a rank, got: position 0 of sequence 1 on none}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 1, lengths = [2, 1], given = [[2, [0, 0, 0, 2]]]}} {}

// -----

// expected-error @below {{expected each token on one rank, got: position 2 of sequence 0 on ranks 0 and 1}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 2, lengths = [5], given = [[3, [0, 0, 0, 3]], [3, [0, 0, 2, 3]]]}} {}

// -----

// expected-error @below {{expected runs of 1 row or more, got: rows [0, 0) of rank 0 for positions [0, 0) of sequence 0}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 1, lengths = [1], given = [[1, [0, 0, 0, 0]]]}} {}

// -----

// expected-error @below {{expected one of 1 sequences, got: rows [0, 1) of rank 0 for positions [0, 1) of sequence 1}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 1, lengths = [1], given = [[1, [0, 1, 0, 1]]]}} {}

// -----

// expected-error @below {{expected positions within the sequence's 3 tokens, got: rows [0, 2) of rank 0 for positions [2, 4) of sequence 0}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 1, lengths = [3], given = [[3, [0, 0, 2, 2]]]}} {}

// -----

// expected-error @below {{expected runs that ascend by rows, from row 2 on, got: rows [1, 2) of rank 0 for positions [2, 3) of sequence 0}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 1, lengths = [3], given = [[3, [0, 0, 0, 2], [1, 0, 2, 1]]]}} {}

// -----

// expected-error @below {{expected rows below 2, got: rows [0, 3) of rank 0 for positions [0, 3) of sequence 0}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 1, lengths = [3], given = [[2, [0, 0, 0, 3]]]}} {}

// -----

// expected-error @below {{expected from 0 to 1099511627776 rows, got: -5 of rank 0}}
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 1, lengths = [0], given = [[-5]]}} {}

// -----

// expected-error @below {{expected stripes of 1 to 1048576 rows, got: 0}}
module attributes {test.shards = {of = #plan.striped<0>}} {}

// -----

// expected-error @below {{expected a slack from 0 to 100, got: -1.000000e+00}}
module attributes {test.shards = {of = #plan.documents<-1.0>}} {}

// -----

// expected-error @below {{expected 'padded'}}
module attributes {test.shards = {of = #plan.dual_chunk<even>}} {}
