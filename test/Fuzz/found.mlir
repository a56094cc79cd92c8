// Problems of kernels that were wrong once (docs/FuzzLedger.md).
// RUN: attn-run %s --problem=empty_interval_first --target=cpu --lengths-q=192 --lengths-kv=192 --check | FileCheck %s
// RUN: attn-run %s --problem=empty_between --target=cpu --seqlen-q=193 --seqlen-kv=260 --check | FileCheck %s
// RUN: attn-run %s --problem=strips_with_sinks --target=cpu --seqlen-q=3 --seqlen-kv=5 --check | FileCheck %s --check-prefix=SINKS
// RUN: attn-run %s --problem=remainder_of_sum --target=cpu --seqlen-q=50 --seqlen-kv=70 --check | FileCheck %s
// RUN: attn-run %s --problem=remainder_of_sum_grads --target=cpu --seqlen-q=50 --seqlen-kv=70 --check | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %s --problem=step_at_zero --target=cpu --seqlen-q=50 --seqlen-kv=70 --check | FileCheck %s
// RUN: attn-run %s --problem=step_at_zero_grads --target=cpu --seqlen-q=50 --seqlen-kv=70 --check | FileCheck %s --check-prefix=GRADS
// RUN: attn-run %s --problem=capped_step_at_zero --target=cpu --seqlen-q=50 --seqlen-kv=70 --check | FileCheck %s
// CHECK-COUNT-2: {{^}}ok
// GRADS-COUNT-3: {{^}}ok
// SINKS: {{^}}ok

// An interval that is empty in a tile lay far up and hid the tiles of those before it.
attn.problem @empty_interval_first
  mask(#attn.or<#attn.and<#attn.band<left = 61>, #attn.band<left = 118, right = -61, bottom_right>>, #attn.band<left = 74, right = 52>>)
  layout(thd) heads(2, 1) dims(32) dtype(bf16)

attn.problem @empty_between
  mask(#attn.and<#attn.or<#attn.and<#attn.band<left = 110, right = -85>, #attn.band<left = -6, right = 70>>, #attn.and<#attn.causal<top_left>, #attn.causal<bottom_right>, #attn.prefix<1>>, #attn.band<left = 0, top_left>>, #attn.or<#attn.causal<bottom_right>, #attn.band<left = 102, right = 63, top_left>>, #attn.and<#attn.or<#attn.causal<top_left>, #attn.band<left = 146, right = -86>>, #attn.or<#attn.prefix<"sinks">, #attn.band<left = 1, right = 122, bottom_right>, #attn.band<left = 133, right = -83>>>>)
  layout(bshd) heads(2, 1) dims(32) dtype(f16)

// Did not compile for a CPU.
attn.problem @strips_with_sinks mask(#attn.full) layout(bshd) heads(4) dims(8, 16) dtype(bf16) sink("sinks") max_seqlen(1, 4)

// Did not compile: a choice between 1 and 0 becomes a condition that is extended.
attn.problem @remainder_of_sum mask(#attn.predicate<"(k + 1) % 2 == 0 || (q + 4) % 3 < k">) layout(bshd) heads(2) dims(32) dtype(bf16)
attn.backward @remainder_of_sum_grads of(@remainder_of_sum)

// With a scale of 0, products were multiplied by the least float: a function that asks whether a score is below 0 was told so by the sign of a product.
attn.problem @step_at_zero mask(#attn.full) layout(bshd) heads(2, 1) dims(32) dtype(bf16) scale(0.0) score([#attn.score<"s < 0.0 ? s - k : s">])
attn.backward @step_at_zero_grads of(@step_at_zero)
attn.problem @capped_step_at_zero mask(#attn.causal) layout(bshd) heads(2, 1) dims(32) dtype(f16) scale(0.0) score([#attn.softcap<3.0>, #attn.score<"s < 0.0 ? s - k : s">])
