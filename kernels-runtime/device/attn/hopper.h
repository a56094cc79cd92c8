// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of a printed kernel for Hopper (sm_90a): TMA, wgmma, warp specialization. It shares register tiles
// and their element-wise operations with tile.h.
#pragma once
#include "attn/dq_accumulation.cuh"
#include "attn/dropout_grad_scores.cuh"
#include "attn/epilogue.cuh"
#include "attn/find_sequence.cuh"
#include "attn/fragment.cuh"
#include "attn/hopper_backward.cuh"
#include "attn/mask.cuh"
#include "attn/mma_atb_slice.cuh"
#include "attn/modify.cuh"
#include "attn/overlapped_softmax.cuh"
#include "attn/recompute_rows.cuh"
#include "attn/ring.cuh"
#include "attn/roles.cuh"
#include "attn/wgmma.cuh"
