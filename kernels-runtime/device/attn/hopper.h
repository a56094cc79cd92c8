// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of warp-specialized kernels for Hopper (sm_90a), with TMA and wgmma. They share register tiles and
// their element-wise operations with tile.h.
#pragma once
#include "attn/backward/dq_accumulation.cuh"
#include "attn/backward/dropout_grad_scores.cuh"
#include "attn/backward/register_statistics.cuh"
#include "attn/backward/row_statistics_ring.cuh"
#include "attn/copy/ring.cuh"
#include "attn/copy/store_ring.cuh"
#include "attn/epilogue/store.cuh"
#include "attn/mma/mma_atb_slice.cuh"
#include "attn/mma/warpgroup_mma.cuh"
#include "attn/scheduler/find_sequence.cuh"
#include "attn/scheduler/mailbox.cuh"
#include "attn/scheduler/roles.cuh"
#include "attn/scheduler/work_tile.cuh"
#include "attn/softmax/mask.cuh"
#include "attn/softmax/modify.cuh"
#include "attn/softmax/overlapped_softmax.cuh"
#include "attn/softmax/recompute_rows.cuh"
