// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of the kernel that follows attention over segments with a sink.
#pragma once
#include "attn/epilogue/sink_lse.cuh"
