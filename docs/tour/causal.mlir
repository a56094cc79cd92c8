// Dense, causal, heads of 128: the problem that docs/Schedules/warp_specialized.md follows.
attn.problem @causal mask(#attn.causal) layout(bshd) heads(16) dims(128) dtype(bf16)
