// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a kernel on strips: short rows, streamed.
#pragma once
#include "attn/strip.cuh"
