// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host functions of kernels with one CTA per sequence: those of tiles, and those of SIMT tiles for shapes that other
// tiles do not fit.
#pragma once

#include "attn/array_grads.h"
#include "attn/single_pass.h"
#include "attn/single_pass_grads.h"
#include "attn/tile.h"
