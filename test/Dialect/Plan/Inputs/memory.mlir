// Plans whose memory is computed and placed.
attn.problem @p mask(#attn.causal) layout(thd) heads(8, 2) dims(16) dtype(bf16)
attn.backward @grads of(@p)
plan.def @forward of(@p) ranks(4) sharding(#plan.dual_chunk) attributes {test.sequences = {lengths = [65536]}} {}
plan.def @backward of(@p) ranks(4) sharding(#plan.dual_chunk) backward attributes {test.sequences = {lengths = [65536]}} {}

attn.problem @window mask(#attn.band<left = 1023, right = 0>) layout(thd) heads(8, 2) dims(16) dtype(bf16)
attn.backward @window_grads of(@window)
plan.def @window_forward of(@window) ranks(4) sharding(#plan.contiguous) attributes {test.sequences = {lengths = [65536]}} {}
plan.def @window_backward of(@window) ranks(4) sharding(#plan.dual_chunk) backward attributes {test.sequences = {lengths = [65536]}} {}
