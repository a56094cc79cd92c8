// The problem of short.mlir and its gradients, for docs/Schedules/simt_rows.md.
attn.problem @short
  mask(#attn.full)
  layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(1, 16)
attn.backward @grads of(@short)
