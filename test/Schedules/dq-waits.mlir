// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where CTAs add to dQ in order, or after the first, no mask makes them wait longer than they compute. A KV tile that no
// other one precedes knows it after one step of the search, however long the sequence is.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/local.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse -o %t/local.tile
// RUN: attn-opt %t/dense.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse -o %t/dense.tile
// RUN: attn-opt %t/local.tile --test-dq-waits="tokens=%if long %{1048576%} %else %{65536%}" -o /dev/null | FileCheck %s --check-prefix=%if long %{LONG%} %else %{CHECK%}
// RUN: attn-opt %t/dense.tile --test-dq-waits="tokens=%if long %{65536%} %else %{12288%}" -o /dev/null | FileCheck %s --check-prefix=DENSE
// RUN: attn-opt %t/local.tile --test-dq-waits="tokens=5000 batch=3 ctas=40" -o /dev/null | FileCheck %s --check-prefix=SHORT
// RUN: attn-opt %t/dense.tile --test-dq-waits="tokens=5000 batch=3 ctas=40" -o /dev/null | FileCheck %s --check-prefix=DENSE
// Without `first` the search goes through all of the sequence.
// RUN: sed 's/ first(%%[a-z_0-9]*)//' %t/local.tile | not attn-opt --test-dq-waits -o /dev/null 2>&1 | FileCheck %s --check-prefix=SEARCH
// Where a later KV tile computes these rows first, it waits for CTAs that have not begun.
// RUN: sed 's/tile.index block/arith.constant 1000 : i32/' %t/local.tile | not attn-opt --test-dq-waits -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOTBEGUN
// CHECK: window_grads: 1024 work tiles, 65472 steps, at most 66 of a work tile; 1.0
// CHECK: chunk_grads: 1024 work tiles, 66560 steps, at most 128 of a work tile; 1.0
// CHECK-COUNT-4: times as long as without waits
// LONG: window_grads: 16384 work tiles, 1079232 steps, at most 66 of a work tile
// LONG: chunk_grads: 16384 work tiles, 1064960 steps, at most 128 of a work tile
// LONG-COUNT-4: times as long as without waits
// SHORT-COUNT-6: times as long as without waits
// DENSE-COUNT-4: times as long as without waits
// SEARCH: error: expected a search of one step for a tile that none precedes, got:
// NOTBEGUN: error: expected KV tile -1 to add before {{[0-9]+}}, got: {{[0-9]+}}

//--- local.mlir
attn.problem @window mask(#attn.band<left = 4095, right = 0>) layout(bshd) heads(2) dims(128) dtype(bf16)
attn.backward @window_grads of(@window)
attn.backward @window_ordered of(@window) deterministic
attn.problem @chunk mask(#attn.and<#attn.causal, #attn.chunk<8192>>) layout(bshd) heads(2) dims(128) dtype(bf16)
attn.backward @chunk_grads of(@chunk)
attn.backward @chunk_ordered of(@chunk) deterministic
attn.problem @both mask(#attn.and<#attn.chunk<1000>, #attn.band<left = 512, right = 512>>) layout(bhsd) heads(2) dims(128) dtype(f16)
attn.backward @both_ordered of(@both) deterministic
attn.problem @wide mask(#attn.chunk<8192>) layout(bshd) heads(2) dims(256) dtype(bf16)
attn.backward @wide_ordered of(@wide) deterministic

//--- dense.mlir
attn.problem @causal mask(#attn.causal) layout(bshd) heads(2) dims(128) dtype(bf16)
attn.backward @causal_grads of(@causal)
attn.backward @causal_ordered of(@causal) deterministic
attn.problem @full mask(#attn.full) layout(bshd) heads(4, 2) dims(128) dtype(bf16)
attn.backward @full_ordered of(@full) deterministic
attn.problem @narrow mask(#attn.causal<bottom_right>) layout(bshd) heads(4) dims(64) dtype(bf16)
attn.backward @narrow_ordered of(@narrow) deterministic
