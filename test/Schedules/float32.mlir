// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of f32.
//
// RUN: attn-opt %s -attn-choose-schedule="target=cpu" -convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s -attn-pipeline="target=cpu" | FileCheck %s --check-prefix=SHARED

// Of a place each element has 4 bytes.
// SHARED: tile.kernel @capped
// SHARED-SAME: shared [[#mul(3,mul(64,mul(72,4)))]]
attn.problem @capped mask(#attn.full) layout(thd padded) heads(8, 2) dims(64) dtype(f32) score([#attn.softcap<30.0>])
attn.backward @grads of(@capped)

// Padding of o is 0, that of lse -inf; no polynomial stands for softcap.
// CHECK-LABEL: tile.kernel @capped(%q: !tile.ptr<f32>, %k: !tile.ptr<f32>, %v: !tile.ptr<f32>, %o: !tile.ptr<f32>, %lse: !tile.ptr<f32>
// CHECK: tile.alloc "Q" : !tile.shared<64x64xf32, 72>
// CHECK: tile.store_padding %{{.*}} dim 64 : !tile.ptr<f32>
// CHECK: tile.store_padding %{{.*}} dim 1 : !tile.ptr<f32>
// CHECK: tile.modify %s at(%q0, %k0) : !tile.frag<64x64, 1> {
// CHECK: math.tanh

// CHECK-LABEL: tile.kernel @grads_preprocess(%o: !tile.ptr<f32>, %lse: !tile.ptr<f32>, %do: !tile.ptr<f32>
// CHECK: tile.preprocess {{.*}} : !tile.ptr<f32>, !tile.ptr<f32>) dim 64
// CHECK-LABEL: tile.kernel @grads_dq(%q: !tile.ptr<f32>, %k: !tile.ptr<f32>, %v: !tile.ptr<f32>, %do: !tile.ptr<f32>, %dq: !tile.ptr<f32>
