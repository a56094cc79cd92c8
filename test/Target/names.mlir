// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays may have names that C++ keeps for itself.
// RUN: attn-translate %s --target=sm_80 | FileCheck %s
// RUN: attn-run %s --target=cpu --check --batch=1 --seqlen-q=9 --seqlen-kv=12 | FileCheck %s --check-prefix=SAME

// CHECK: ATTN_KERNEL(
// CHECK: v__global__
// CHECK: vATTN_MAX
// CHECK: int_2
// SAME-COUNT-2: {{^ok}}
attn.problem @p mask(#attn.predicate<"q + ATTN_MAX[k] >= k && int[q] > -9">) layout(bshd) heads(2) dims(16) dtype(bf16) sink("__global__")
