// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Host functions of printed kernels, for any CPU: the text that NVRTC compiles with device/attn/tile.h is compiled with
// these headers as plain C++20, by GCC or clang.
//
// A CTA is one call on one thread. All arithmetic is in float32: tiles are converted when they are loaded, so no
// function after the copy depends on the element type, and probabilities are never rounded to it (they are on the
// device).
//
// The layout is what makes it fast: *query rows are in the vector lanes* of the scores. A key is then a broadcast, a
// row's maximum and sum are vertical operations, and no function needs a shuffle. fragment.h describes the cost.
//
// Kernels are compiled by the hundred in CI and one at a time while a user waits, so there are no standard headers and
// no <immintrin.h> (0.2 s to parse): vectors are the compiler's own extension, which also means that AVX is not
// required.
#pragma once

#include "attn/backward.h"
#include "attn/block_map.h"
#include "attn/combine.h"
#include "attn/dropout.h"
#include "attn/epilogue.h"
#include "attn/find_sequence.h"
#include "attn/fragment.h"
#include "attn/mma.h"
#include "attn/modify.h"
#include "attn/numbers.h"
#include "attn/prelude.h"
#include "attn/select_tiles.h"
#include "attn/softmax.h"
