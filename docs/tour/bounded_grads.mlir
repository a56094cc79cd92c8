attn.problem @bounded mask(#attn.causal) layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(112)
attn.backward @bounded_grads of(@bounded)
