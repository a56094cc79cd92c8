// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of metadata kernels: segments of token rows, one batch row for each cluster of CTAs, and work-tile
// lists of a whole batch.
#pragma once
#include "attn/list_work_tiles.cuh"
#include "attn/write_sequences.cuh"
