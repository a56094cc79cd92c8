// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a kernel that has a row of tokens in each cluster of blocks, or a whole batch in one.
#pragma once
#include "attn/sequences.cuh"
#include "attn/slots.cuh"
