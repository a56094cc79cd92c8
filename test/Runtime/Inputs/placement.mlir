// One kernel, with tensor maps; and kernels that share out the keys by how many multiprocessors there are.
attn.problem @simple mask(#attn.causal) layout(bshd) heads(2, 2) dims(64) dtype(bf16) expected_seqlen(4096)
attn.problem @split mask(#attn.full) layout(bshd) heads(8, 8) dims(64) dtype(bf16) expected_seqlen(1, 32768)
