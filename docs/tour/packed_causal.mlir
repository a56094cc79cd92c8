// Packed sequences with padding, each causal on its own: the problem that
// docs/Tour.md follows through every level.
attn.problem @packed_causal
  mask(#attn.causal)
  layout(thd padded) heads(8, 2) dims(64) dtype(bf16)
