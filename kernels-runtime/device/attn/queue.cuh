// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Counters that all blocks of a launch share, of which a launch gets one: 0 before it and after it. The launcher finds
// them by this name.
extern "C" {
__device__ unsigned attn_queue[4096];
}
