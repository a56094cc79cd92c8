// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of a printed kernel, for any CPU: the same text that NVRTC compiles
// against device/attn/tile.h compiles here as plain C++17, with GCC or clang.
//
// One block is one call on one thread. Everything is computed in fp32: places
// convert when they are filled, so no verb below the copy knows the element
// type, and probabilities are never rounded to it (they are on the device).
//
// The layout that carries the speed: *query rows lie in the vector lanes* of
// the scores. Then a key is a broadcast, a row's maximum and sum are plain
// vertical operations, and no verb needs a shuffle. places.h says what that
// costs.
//
// Kernels are compiled by the hundred in CI and one at a time while a user
// waits, so there are no standard headers and no <immintrin.h> (0.2 s to
// parse): vectors are the compiler's own extension, which also means no AVX is
// needed.
#pragma once

#include "attn/backward.h"
#include "attn/blocks.h"
#include "attn/drop.h"
#include "attn/epilogue.h"
#include "attn/merge.h"
#include "attn/modify.h"
#include "attn/numbers.h"
#include "attn/places.h"
#include "attn/prelude.h"
#include "attn/product.h"
#include "attn/sequence.h"
#include "attn/softmax.h"
#include "attn/visit.h"
