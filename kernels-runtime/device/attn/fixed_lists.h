// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of kernels for lists of one width (#attn.block_list).
#pragma once
#include "attn/metadata/transpose_lists.cuh"
