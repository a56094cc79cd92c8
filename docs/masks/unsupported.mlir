attn.problem @wide mask(#attn.causal) layout(bshd) heads(16, 4) dims(300) dtype(bf16)
