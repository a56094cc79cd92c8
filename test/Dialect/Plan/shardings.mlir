// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shards of all kinds of shardings: [first row, sequence, first position, tokens].
//
// RUN: attn-opt %s | attn-opt | FileCheck %s --check-prefix=TEXT
// RUN: attn-opt %s --test-shardings -o /dev/null | FileCheck %s

// Lengths that no number of ranks divides. Chunks of 7 tokens for 2 ranks: 0 | 1 2 | 3 4 | 5 6.
// TEXT: of = #plan.dual_chunk, ranks
// CHECK: #plan.dual_chunk of 2
// CHECK-NEXT: rank 0: 5 rows [0, 0, 0, 1] [1, 0, 5, 2] [3, 1, 0, 1] [4, 1, 3, 1]
// CHECK-NEXT: rank 1: 6 rows [0, 0, 1, 4] [4, 1, 1, 2]
module attributes {test.shards = {of = #plan.dual_chunk, ranks = 2, lengths = [7, 4]}} {}

// TransformerEngine's order: padding behind the tokens of a chunk.
// TEXT: of = #plan.dual_chunk<padded>, ranks
// CHECK: #plan.dual_chunk<padded> of 2
// CHECK-NEXT: rank 0: 6 rows [0, 0, 0, 2] [2, 0, 6, 1] [4, 1, 0, 1]
// CHECK-NEXT: rank 1: 6 rows [0, 0, 2, 4] [4, 1, 1, 2]
module attributes {test.shards = {of = #plan.dual_chunk<padded>, ranks = 2, lengths = [7, 3], slots = [8, 4]}} {}

// A part may begin within a sequence, and be padding only.
// TEXT: of = #plan.contiguous, ranks
// CHECK: #plan.contiguous of 4
// CHECK-NEXT: rank 0: 4 rows [0, 0, 0, 4]
// CHECK-NEXT: rank 1: 4 rows [0, 0, 4, 3]
// CHECK-NEXT: rank 2: 4 rows [0, 1, 0, 3]
// CHECK-NEXT: rank 3: 4 rows{{$}}
module attributes {test.shards = {of = #plan.contiguous, ranks = 4, lengths = [7, 3], slots = [8, 8]}} {}

// More ranks than tokens.
// CHECK: #plan.contiguous of 3
// CHECK-NEXT: rank 0: 0 rows{{$}}
// CHECK-NEXT: rank 1: 1 rows [0, 0, 0, 1]
// CHECK-NEXT: rank 2: 1 rows [0, 2, 0, 1]
module attributes {test.shards = {of = #plan.contiguous, ranks = 3, lengths = [1, 0, 1]}} {}

// TEXT: of = #plan.striped, ranks
// CHECK: #plan.striped of 2
// CHECK-NEXT: rank 0: 3 rows [0, 0, 0, 1] [1, 0, 2, 1] [2, 1, 1, 1]
// CHECK-NEXT: rank 1: 2 rows [0, 0, 1, 1] [1, 1, 0, 1]
module attributes {test.shards = {of = #plan.striped<1>, ranks = 2, lengths = [3, 2]}} {}

// Stripes go on through all sequences.
// TEXT: of = #plan.striped<2>, ranks
// CHECK: #plan.striped<2> of 2
// CHECK-NEXT: rank 0: 4 rows [0, 0, 0, 2] [2, 1, 1, 2]
// CHECK-NEXT: rank 1: 2 rows [0, 0, 2, 1] [1, 1, 0, 1]
module attributes {test.shards = {of = #plan.striped<2>, ranks = 2, lengths = [3, 3]}} {}

// Sequences stay whole where that balances the work.
// TEXT: of = #plan.documents, ranks
// CHECK: #plan.documents of 2
// CHECK-NEXT: rank 0: 12 rows [0, 0, 0, 6] [6, 2, 0, 4] [10, 4, 0, 2]
// CHECK-NEXT: rank 1: 10 rows [0, 1, 0, 6] [6, 3, 0, 4]
module attributes {test.shards = {of = #plan.documents<0.1>, ranks = 2, lengths = [6, 6, 4, 4, 2], mask = #attn.causal}} {}

// The longest one has more than a rank's part of the work, and is cut into two chunks for each rank.
// CHECK: #plan.documents of 2
// CHECK-NEXT: rank 0: 13 rows [0, 0, 0, 2] [2, 0, 6, 2] [4, 1, 0, 1] [5, 1, 3, 1] [6, 2, 0, 2] [8, 3, 0, 2] [10, 3, 7, 3]
// CHECK-NEXT: rank 1: 11 rows [0, 0, 2, 4] [4, 1, 1, 2] [6, 3, 2, 5]
module attributes {test.shards = {of = #plan.documents<0.1>, ranks = 2, lengths = [8, 4, 2, 10], mask = #attn.full}} {}

// TEXT: of = #plan.documents<1.000000e+00>, ranks
// CHECK: #plan.documents<1.000000e+00> of 2
module attributes {test.shards = {of = #plan.documents<1.0>, ranks = 2, lengths = [8, 4, 2, 10]}} {}

// The caller's own, in any order of positions.
// TEXT: of = #plan.runs<"mine">, ranks
// CHECK: #plan.runs<"mine"> of 2
// CHECK-NEXT: rank 0: 4 rows [0, 0, 4, 1] [1, 0, 0, 3]
// CHECK-NEXT: rank 1: 9 rows [8, 0, 3, 1]
module attributes {test.shards = {of = #plan.runs<"mine">, ranks = 2, lengths = [5], given = [[4, [0, 0, 4, 1], [1, 0, 0, 3]], [9, [8, 0, 3, 1]]]}} {}
