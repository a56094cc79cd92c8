// One query row at the end of a long sequence: the problem that
// docs/Schedules/split_kv.md follows.
attn.problem @decode
  mask(#attn.causal<bottom_right>)
  layout(bshd) heads(32, 8) dims(128) dtype(bf16) expected_seqlen(1, 32768)
