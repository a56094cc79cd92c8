attn.problem @problem mask(#attn.band<left = 1023, right = 0>) layout(thd) heads(32, 8) dims(128) dtype(bf16)
