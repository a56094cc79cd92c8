// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programmatic dependent launch, from sm_90 on.
#pragma once
#include "attn/ptx/prelude.cuh"

namespace attn {

// A kernel may start while the preceding kernel in its stream still runs. This waits until the preceding kernel is
// complete and its writes are visible, and allows the next kernel to start. (Forward kernels of short sequences lose
// more by this than they gain.)
ATTN_INLINE void grid_dependency_sync() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
}

} // namespace attn
