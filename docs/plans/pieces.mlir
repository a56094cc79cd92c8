// Attention of a rank's queries to the keys that it has.
attn.problem @part mask(#attn.causal) layout(thd pieces) heads(32, 8) dims(128) dtype(bf16) partial(in, out)
