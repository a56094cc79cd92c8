// Keys go from rank to rank; four ranks.
attn.problem @problem mask(#attn.causal) layout(thd) heads(32, 8) dims(128) dtype(bf16)

plan.def @ring of(@problem) ranks(4) sharding(#plan.dual_chunk) {}
