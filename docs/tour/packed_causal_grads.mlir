// The gradients of docs/tour/packed_causal.mlir, of which docs/Tour.md shows the program.
attn.problem @packed_causal
  mask(#attn.causal)
  layout(thd padded) heads(8, 2) dims(64) dtype(bf16)
attn.backward @grads of(@packed_causal)
