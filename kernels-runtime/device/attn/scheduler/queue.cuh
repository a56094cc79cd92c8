// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counters of the tile scheduler. A launch uses one of them, which all of its CTAs share and which is 0 before and
// after the launch. The runtime looks them up by this name.
#pragma once

extern "C" {
__device__ unsigned attn_queue[4096];
}
