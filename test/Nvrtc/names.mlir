// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problems may be called what C, CUDA or a compiler have a meaning for.
//
// REQUIRES: nvrtc
// RUN: attn-translate %s --target=sm_80 --quiet --compile | FileCheck %s
// CHECK-COUNT-9: sm_80: {{[0-9]+}} registers
attn.problem @exp2f mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @sqrt mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @malloc mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @__CUDACC__ mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @__global__ mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @float mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @std mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @ATTN_KERNEL mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
attn.problem @threadIdx mask(#attn.full) layout(bshd) heads(4, 2) dims(64) dtype(bf16)
