// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On Hopper numbers are drawn while products run, where registers have room for that, or behind the exponentials.
//
// RUN: attn-translate %s --target=sm_90a | FileCheck %s --check-prefix=TEXT

// TEXT-LABEL: ATTN_KERNEL(forward,
// TEXT: const auto dropout_state = attn::dropout_state(seed, b, h);
// TEXT: attn::softmax<true>(s, row,
// TEXT-NEXT: attn::dropout(s, q0, k0, dropout_state, 3277);
// TEXT-NEXT: attn::convert(p, s);
// TEXT: attn::mma_ab(acc, p, V_tile);
// TEXT: attn::dropout_bits(dropout_bits, q0, k0, dropout_state, 3277);
// TEXT-NEXT: attn::warpgroup_wait<
// TEXT: attn::softmax_convert<true>(p, s, row,
// TEXT-NEXT: attn::apply_dropout_bits(p, dropout_bits);
// TEXT-NEXT: attn::rescale(acc, row);
// TEXT: attn::normalize<true>(acc, row);
// TEXT-NEXT: attn::scale(acc, 1.111118646e+00f);
// TEXT: attn::recompute_rows<
// TEXT: }, attn::Unmodified(), attn::NoSink(), attn::Dropout{dropout_state, 3277, 1.111118646e+00f});
attn.problem @forward mask(#attn.causal) layout(bshd) heads(8) dims(128) dtype(bf16) dropout(0.1, "seed")

// TEXT-LABEL: ATTN_KERNEL(three_warpgroups,
// TEXT: attn::softmax_convert<true>(p, s, row,
// TEXT-NEXT: attn::dropout(p, q0, k0, dropout_state, 3277);
// TEXT-NEXT: attn::rescale(acc, row);
attn.problem @three_warpgroups mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) dropout(0.1, "seed")
  schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 96, warps = 12, ctas_per_sm = 1>)
