// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Made-up ids and positions of a problem with segments.
//
#ifndef ATTN_LIB_REFERENCE_IDINPUTS_H
#define ATTN_LIB_REFERENCE_IDINPUTS_H

#include "attn/Reference/Inputs.h"
#include <random>

namespace attn::reference {

/// Rows (`sizes.batch`) of `seqlenQ` and `seqlenKv` tokens; the same on both sides where there
/// are as many. Sets sizes to those of given ids.
void addMissingIds(ProblemOp problem, InputSizes &sizes, std::mt19937_64 &rng, Tensors &tensors);

/// NaN in the rows of tokens that have no id.
void poisonWithoutId(Tensor &tensor, const Tensor &ids);

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_IDINPUTS_H
