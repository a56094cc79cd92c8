// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a printed kernel, for NVIDIA GPUs from sm_80 on. A kernel includes this file and nothing else; the same
// text includes host/attn/tile.h when it is compiled for a CPU. One verb is one operation of the tile dialect; how it
// is done is decided here.
//
//   prelude.cuh    element types, the block, rounding        copy.cuh       tiles from global to shared memory
//   fragment.cuh   places: Smem, Frag, Held, Rows            mma.cuh        matrix products on fragments
//   mask.cuh       keep                                      softmax.cuh    online softmax, final division
//   guarded.cuh    P V where V may hold garbage              epilogue.cuh   results to global memory
//   sequence.cuh   which rows of a packed batch a block has  modify.cuh     functions of scores
//   merge.cuh      parts of the keys, back together          backward.cuh   probabilities anew, gradients of scores
//   visit.cuh      which key tiles a query tile visits       blocks.cuh     block maps
//   round_sum.cuh  dQ from its sums
#pragma once
#include "attn/backward.cuh"
#include "attn/copy.cuh"
#include "attn/drop_grads.cuh"
#include "attn/epilogue.cuh"
#include "attn/fragment.cuh"
#include "attn/guarded.cuh"
#include "attn/mask.cuh"
#include "attn/merge.cuh"
#include "attn/mma.cuh"
#include "attn/modify.cuh"
#include "attn/prelude.cuh"
#include "attn/round_sum.cuh"
#include "attn/sequence.cuh"
#include "attn/softmax.cuh"
#include "attn/visit.cuh"
