attn.problem @mine
  mask(#attn.and<#attn.causal, #attn.predicate<"kind_q[q] == kind_kv[k] || q - k < 32">>)
  layout(bshd) heads(4) dims(64) dtype(bf16)
