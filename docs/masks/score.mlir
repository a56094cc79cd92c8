attn.problem @mine
  mask(#attn.causal)
  layout(bshd) heads(4) dims(64) dtype(bf16)
  score([#attn.score<"gate[h] * tanh(s) - log(1.0 + (q - k) / 64.0)">])
  sink("sinks")
attn.backward @grads of(@mine) requires_grad(["gate", "sinks"])
