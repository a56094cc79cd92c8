// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The KV tile that adds to dQ of some rows before another one is searched among those that may see these rows: without
// a bound the first KV tile of a chunk or a window would search all tiles of the sequence before it.
//
// RUN: rm -rf %t && split-file %s %t
// RUN: attn-opt %t/causal.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/causal.mlir
// RUN: attn-opt %t/chunk.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/chunk.mlir
// RUN: attn-opt %t/window.mlir -attn-choose-schedule="target=sm_90a" -convert-attn-to-tile -canonicalize -cse | FileCheck %t/window.mlir
// RUN: attn-translate %t/causal.mlir --target=sm_90a | FileCheck %t/causal.mlir --check-prefix=CUDA
// RUN: attn-translate %t/chunk.mlir --target=sm_90a | FileCheck %t/chunk.mlir --check-prefix=CUDA

//--- causal.mlir
// All rows see the first KV tile: the search ends there in any case.
// CHECK: tile.add_global {{.*}} semaphore(%{{.*}} of %key_tile) after_first
// CUDA: attn::add_staged<{{.*}}, key_tile, [=](int other)
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.backward @g of(@p)

//--- chunk.mlir
// A chunk's rows see its keys alone.
// CHECK: tile.add_global {{.*}} semaphore(%{{.*}} of %key_tile) first(%begin{{.*}}) after_first
// CUDA: attn::add_staged<{{.*}}, key_tile, begin{{[_0-9]*}}, [=](int other)
attn.problem @p mask(#attn.and<#attn.causal, #attn.chunk<8192>>) layout(bshd) heads(4) dims(128) dtype(bf16)
attn.backward @g of(@p)

//--- window.mlir
// In ordered accumulation, too; here added from registers.
// CHECK: tile.add_global {{.*}} through(%{{.*}} : !tile.staging<2, 0>) semaphore(%{{.*}} of %key_tile) first(
attn.problem @p mask(#attn.band<left = 4095, right = 0>) layout(thd) heads(4) dims(64) dtype(bf16)
attn.backward @g of(@p) deterministic
