attn.problem @bounded mask(#attn.full) layout(thd) heads(16) dims(128) dtype(bf16) bounds(192)
