// A problem for each schedule, and gradients, for docs/Schedules/README.md.
attn.problem @one_row mask(#attn.full) layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(1, 16)
attn.backward @one_row_grads of(@one_row)
attn.problem @some_rows mask(#attn.full) layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(17) sink("sinks")
attn.backward @some_rows_grads of(@some_rows) requires_grad(["sinks"])
attn.problem @mostly_short mask(#attn.causal) layout(thd) heads(16) dims(128) dtype(bf16) expected_seqlen(8, 16)
attn.backward @mostly_short_grads of(@mostly_short) deterministic
attn.problem @long mask(#attn.causal) layout(thd) heads(16) dims(128) dtype(bf16) expected_seqlen(4096)
attn.backward @long_grads of(@long)
attn.problem @decode mask(#attn.causal<bottom_right>) layout(bshd) heads(32, 8) dims(128) dtype(bf16) expected_seqlen(1, 32768)
