// One query and a few keys a sequence, and very many sequences: the problem that
// docs/Schedules/simt_rows.md follows.
attn.problem @short
  mask(#attn.full)
  layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(1, 16)
