attn.problem @wide mask(#attn.causal) layout(bshd) heads(16, 4) dims(300) dtype(bf16)
attn.problem @large mask(#attn.causal) layout(thd) heads(16) dims(512) dtype(bf16) sink("sinks") max_seqlen(1, 16)
attn.backward @large_grads of(@large) requires_grad(["sinks"])
