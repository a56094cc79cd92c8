// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host functions of metadata kernels: segments of token rows, one batch row for each CTA, and work-tile lists of a
// whole batch.
#pragma once

#include "attn/list_work_tiles.h"
#include "attn/segments.h"
#include "attn/split_walks.h"
