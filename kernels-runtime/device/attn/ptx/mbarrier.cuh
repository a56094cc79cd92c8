// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mbarriers in shared memory (PTX ISA: mbarrier), and the fence between ordinary accesses and the async proxy.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

ATTN_INLINE void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
ATTN_INLINE void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrives, and makes the phase wait for so many bytes of copies.
ATTN_INLINE void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Orders a lane's accesses to shared memory before those of bulk copies and products that follow a barrier. An mbarrier
// arrival alone does not order earlier loads: without the fence, a copy has overwritten what they read
// (docs/Schedules/stationary_q_backward.md).
ATTN_INLINE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Returns when the phase of this parity is complete. Each try suspends the warp for a while.
ATTN_INLINE void barrier_wait(unsigned barrier, unsigned parity) {
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra "
               "over;\nbra again;\nover:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

} // namespace attn
