attn.problem @bounded mask(#attn.full) layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(192)
