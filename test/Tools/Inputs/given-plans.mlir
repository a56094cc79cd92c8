// Plans for explain-plans.test: one that leaves out keys, and a sharding to compare.
attn.problem @problem mask(#attn.full) layout(thd) heads(4, 2) dims(64) dtype(bf16)

plan.def @none of(@problem) ranks(2) sharding(#plan.contiguous) {
  %q = plan.local : !plan.rows<q>
  %kv = plan.local : !plan.rows<kv>
  %o = plan.attend [%q], [%kv]
  plan.store %o : !plan.rows<partial>
}

plan.def @striped of(@problem) ranks(2) sharding(#plan.striped) {}
