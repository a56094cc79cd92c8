// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of printed kernels for NVIDIA GPUs from sm_80 on. A kernel includes this file and nothing else; when
// it is compiled for a CPU, the same text includes host/attn/tile.h. Each op of the tile dialect is a function of the
// same name; its implementation is decided here.
//
//   prelude.cuh         element types, threads, rounding     copy.cuh        tiles from global to shared memory
//   fragment.cuh        shared memory and register tiles     mma.cuh         matrix products on fragments
//   mask.cuh            apply_mask                           softmax.cuh     online softmax, normalization
//   mma_ab_guarded.cuh  P V where V may be non-finite        epilogue.cuh    results to global memory
//   find_sequence.cuh   rows of a packed batch               modify.cuh      score modifiers
//   combine.cuh         split-KV combine                     backward.cuh    recomputed probabilities, dS
//   select_tiles.cuh    KV-tile lists                        block_map.cuh   block maps
//   postprocess.cuh     dQ from its accumulator
#pragma once
#include "attn/backward.cuh"
#include "attn/combine.cuh"
#include "attn/copy.cuh"
#include "attn/dropout_grad_scores.cuh"
#include "attn/epilogue.cuh"
#include "attn/find_sequence.cuh"
#include "attn/fragment.cuh"
#include "attn/mask.cuh"
#include "attn/mma.cuh"
#include "attn/mma_ab_guarded.cuh"
#include "attn/modify.cuh"
#include "attn/postprocess.cuh"
#include "attn/prelude.cuh"
#include "attn/select_tiles.cuh"
#include "attn/softmax.cuh"
