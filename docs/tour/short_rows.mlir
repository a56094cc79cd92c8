// Rows enough for matrix units, and keys that are one tile: the other schedule of
// docs/Schedules/cta_per_sequence.md.
attn.problem @short_rows
  mask(#attn.full)
  layout(thd) heads(16) dims(128) dtype(bf16) max_seqlen(17)
