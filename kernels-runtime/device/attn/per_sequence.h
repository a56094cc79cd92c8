// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of kernels with one CTA per sequence: those of tile.h, and those of SIMT tiles for shapes that
// tensor core tiles do not fit.
#pragma once
#include "attn/backward/array_grads.cuh"
#include "attn/backward/single_pass_grads.cuh"
#include "attn/copy/copy_async_once.cuh"
#include "attn/simt/backward.cuh"
#include "attn/simt/store.cuh"
#include "attn/softmax/single_pass.cuh"
#include "attn/tile.h"
