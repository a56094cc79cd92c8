// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

attn.problem @p mask(#attn.causal) layout(thd) heads(16, 4) dims(128) dtype(bf16)
// CHECK: attn.backward @grads of(@p){{$}}
attn.backward @grads of(@p)
// CHECK: attn.backward @both of(@p) deterministic dlse{{$}}
attn.backward @both of(@p) deterministic dlse
// CHECK: attn.backward @sized of(@p) dlse schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
attn.backward @sized of(@p) dlse schedule(#tile.tiled_backward<q_tile = 64, kv_tile = 128, warps = 8, ctas_per_sm = 1>)
