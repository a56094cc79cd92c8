attn.problem @sinks
  mask(#attn.and<#attn.or<#attn.prefix<64>, #attn.band<left = 1023>>, #attn.causal>)
  layout(bshd) heads(16) dims(128) dtype(bf16)
