// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of printed kernels for NVIDIA GPUs from sm_80 on. A printed kernel includes this file, or one of
// those beside it for its kind of kernel, and nothing else; compiled for a CPU, the same text includes
// host/attn/tile.h. Each op of the tile dialect is a function, mostly of the same name. Folders:
//
//   ptx        element types, instructions, barriers         backward   gradients of scores, dQ accumulation
//   copy       global to shared memory, pipelines            simt       SIMT tiles for short sequences
//   mma        fragments and their matrix products           epilogue   stores, combine and postprocess kernels
//   softmax    mask, score modifiers, softmax, dropout       scheduler  roles of warps, work tiles, CTAs of a sequence
//   metadata   segments, trees, block maps, tile lists
#pragma once
#include "attn/backward/dropout_grad_scores.cuh"
#include "attn/backward/grad_scores.cuh"
#include "attn/backward/preprocess.cuh"
#include "attn/copy/copy_async.cuh"
#include "attn/epilogue/combine.cuh"
#include "attn/epilogue/postprocess.cuh"
#include "attn/epilogue/store.cuh"
#include "attn/metadata/entry_range.cuh"
#include "attn/metadata/select_tiles.cuh"
#include "attn/mma/mma.cuh"
#include "attn/mma/mma_ab_guarded.cuh"
#include "attn/scheduler/find_sequence.cuh"
#include "attn/scheduler/grid_dependency.cuh"
#include "attn/softmax/mask.cuh"
#include "attn/softmax/modify.cuh"
#include "attn/softmax/softmax.cuh"
