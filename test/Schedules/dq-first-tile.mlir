// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The KV tile that adds to dQ of some rows before another one is searched among those that may see these rows: without
// a bound the first KV tile of a chunk or a window would search all tiles of the sequence before it.
//
// RUN: attn-opt %s -split-input-file -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %s
// RUN: sed 's/\(of(@[a-z]*)\)/\1 deterministic/' %s | attn-opt -split-input-file -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %s
// RUN: sed '/@chunk/,$d' %s | sed 's/@g_causal/@g/' | attn-translate --target=sm_90a - | FileCheck %s --check-prefix=ALL
// RUN: sed -n '/@chunk/,/@g_chunk/p' %s | attn-translate --target=sm_90a - | FileCheck %s --check-prefix=BOUND

// All rows see the first KV tile: the search ends there in any case.
// CHECK-LABEL: tile.kernel @g_causal(
// CHECK: tile.add_global
// CHECK-SAME: semaphore(%{{.*}} of %key_tile)
// CHECK-NOT: first(
// CHECK-SAME: {
// ALL: attn::add_staged<{{.*}}, key_tile, [=](int other)
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.backward @g_causal of(@p)

// -----

// A chunk's rows see its keys alone.
// CHECK-LABEL: tile.kernel @g_chunk(

// CHECK: tile.add_global
// CHECK-SAME: first(%begin
// BOUND: attn::add_staged<{{.*}}, key_tile, {{[a-z_0-9]+}}, [=](int other)
attn.problem @chunk mask(#attn.and<#attn.causal, #attn.chunk<8192>>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.backward @g_chunk of(@chunk)

// -----

// CHECK-LABEL: tile.kernel @g_window(
// CHECK: tile.add_global
// CHECK-SAME: first(
attn.problem @window mask(#attn.band<left = 4095, right = 0>) layout(thd) heads(4) dims(64) dtype(bf16)
attn.backward @g_window of(@window)
