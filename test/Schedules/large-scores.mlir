// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which forward kernels leave rows of large scores to tile.recompute_rows, and which backward passes hold probabilities 2^12
// times as large.
// RUN: split-file %s %t
// RUN: attn-opt %t/plain.mlir -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=RECOMPUTED
// RUN: attn-opt %t/plain.mlir -attn-choose-schedule=target=sm_80 -convert-attn-to-tile | FileCheck %s --check-prefix=EXACT
// RUN: attn-opt %t/bias.mlir -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=EXACT
// RUN: attn-opt %t/scale.mlir -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=EXACT
// RUN: attn-opt %t/full.mlir -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=RECOMPUTED
// RUN: sed 's/dims(128)/dims(64)/' %t/full.mlir | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=EXACT
// RUN: attn-translate %t/plain.mlir --target=sm_90a | FileCheck %s --check-prefix=CUDA
// RUN: attn-opt %t/half.mlir -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=HALF
// RUN: sed 's/f16/bf16/' %t/half.mlir | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=ONCE
// RUN: sed 's/f16/f16) score([#attn.softcap<30.0>]/' %t/half.mlir | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=ONCE
// RUN: attn-opt %t/half.mlir -attn-choose-schedule=target=sm_80 -convert-attn-to-tile | FileCheck %s --check-prefix=ONCE
// RUN: attn-translate %t/half.mlir --target=sm_90a | FileCheck %s --check-prefix=HALFCUDA
// RUN: sed 's/dtype(f16)/dtype(f16) dropout(0.5, "seed")/' %t/half.mlir | attn-opt -attn-choose-schedule=target=sm_90a -convert-attn-to-tile | FileCheck %s --check-prefix=DROPPED

// RECOMPUTED: tile.online_softmax {{.*}} rows_recomputed :
// RECOMPUTED: tile.normalize {{.*}} rows_recomputed :
// RECOMPUTED: tile.recompute_rows
// EXACT-NOT: rows_recomputed
// EXACT: tile.online_softmax
// EXACT-NOT: rows_recomputed
// CUDA: attn::softmax<true>(
// CUDA: attn::softmax_convert<true>(
// CUDA: attn::normalize<true>(
// CUDA: attn::recompute_rows<

// HALF: tile.preprocess {{.*}} exponent 12
// HALF: tile.grad_scores {{.*}} by 2.44140625E-4 transposed
// HALF: tile.scale %dV by 2.44140625E-4
// ONCE-NOT: exponent
// ONCE-NOT: 2.44140625E-4
// HALFCUDA: attn::preprocess<{{.*}}, 12);
// HALFCUDA: attn::grad_scores<true>({{.*}}, 2.441406250e-04f);
// HALFCUDA: attn::scale(dV, 2.441406250e-04f);
// DROPPED: tile.preprocess {{.*}} exponent 12
// DROPPED: tile.dropout_grad_scores {{.*}} by 4.8828125E-4
// DROPPED: tile.scale %dV by 2.44140625E-4

//--- plain.mlir
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16)
//--- bias.mlir
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) score([#attn.bias<"b", k>])
//--- scale.mlir
attn.problem @p mask(#attn.causal) layout(bshd) heads(4) dims(64) dtype(bf16) scale(1.0)
//--- full.mlir
attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(128) dtype(bf16)
//--- half.mlir
attn.problem @p mask(#attn.full) layout(bshd) heads(4) dims(64) dtype(f16) {sym_visibility = "private"}
attn.backward @grads of(@p)
