// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On Hopper numbers are drawn while products run, where registers have room for that, or behind the exponentials.
//
// RUN: attn-translate %s --target=sm_90a | FileCheck %s --check-prefix=TEXT

// TEXT-LABEL: ATTN_KERNEL(forward,
// TEXT: const auto draws = attn::draws(seed, b, h);
// TEXT: attn::softmax<true>(s, row,
// TEXT-NEXT: attn::drop(s, q0, k0, draws, 3277);
// TEXT-NEXT: attn::round(p, s);
// TEXT: attn::mma_pv(acc, p, V_tile);
// TEXT: attn::draw(kept, q0, k0, draws, 3277);
// TEXT-NEXT: attn::wait_products<
// TEXT: attn::weigh<true>(p, s, row,
// TEXT-NEXT: attn::drop_drawn(p, kept);
// TEXT-NEXT: attn::rescale(acc, row);
// TEXT: attn::normalize<true>(acc, row);
// TEXT-NEXT: attn::scale(acc, 1.111118646e+00f);
// TEXT: attn::repair<
// TEXT: }, attn::Unmodified(), attn::NoSink(), attn::Dropped{draws, 3277, 1.111118646e+00f});
attn.problem @forward mask(#attn.causal) layout(bshd) heads(8) dims(128) dtype(bf16) dropout(0.1, "seed")

// TEXT-LABEL: ATTN_KERNEL(three_warpgroups,
// TEXT: attn::weigh<true>(p, s, row,
// TEXT-NEXT: attn::drop(p, q0, k0, draws, 3277);
// TEXT-NEXT: attn::rescale(acc, row);
attn.problem @three_warpgroups mask(#attn.causal) layout(bshd) heads(8) dims(64) dtype(bf16) dropout(0.1, "seed")
  schedule(#tile.warp_specialized<q_tile = 192, kv_tile = 96, warps = 12, blocks = 1>)
