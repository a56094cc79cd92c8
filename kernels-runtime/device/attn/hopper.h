// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a printed kernel for Hopper (sm_90a): TMA, warpgroup products, roles. What it has in common with tile.h
// are the places in registers and what is done to them.
#pragma once
#include "attn/drop_grads.cuh"
#include "attn/epilogue.cuh"
#include "attn/fragment.cuh"
#include "attn/mask.cuh"
#include "attn/modify.cuh"
#include "attn/overlap.cuh"
#include "attn/pieces.cuh"
#include "attn/repair.cuh"
#include "attn/ring.cuh"
#include "attn/roles.cuh"
#include "attn/sequence.cuh"
#include "attn/statistics.cuh"
#include "attn/sums.cuh"
#include "attn/wgmma.cuh"
