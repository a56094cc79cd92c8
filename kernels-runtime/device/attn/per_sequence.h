// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device functions of kernels with one CTA per sequence: those of tiles, and those of SIMT tiles for shapes that tensor
// core tiles do not fit.
#pragma once
#include "attn/array_grads.cuh"
#include "attn/single_pass.cuh"
#include "attn/single_pass_grads.cuh"
#include "attn/tile.h"
