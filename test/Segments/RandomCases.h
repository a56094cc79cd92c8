// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TEST_SEGMENTS_RANDOMCASES_H
#define ATTN_TEST_SEGMENTS_RANDOMCASES_H

#include "Programs.h"

namespace attn::segments {

/// Ids and positions for a program: a function of the seed, the family and the number of
/// the case. Adds their shapes to `description`.
Tensors makeInputs(uint64_t seed, Compiled &program, llvm::StringRef family, int64_t number, std::string &description);

} // namespace attn::segments

#endif // ATTN_TEST_SEGMENTS_RANDOMCASES_H
