// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a kernel whose blocks have short sequences: those of tiles, and those of strips for what does not fit
// one.
#pragma once
#include "attn/learned.cuh"
#include "attn/row_grads.cuh"
#include "attn/tile.h"
#include "attn/whole.cuh"
