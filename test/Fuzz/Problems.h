// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TEST_FUZZ_PROBLEMS_H
#define ATTN_TEST_FUZZ_PROBLEMS_H

#include "attn/Reference/Shapes.h"

namespace attn::fuzz {

/// One call of a kernel.
struct Problem {
  reference::Tensors exact;   ///< q, k, v as float32 before rounding, and the arrays
  reference::Tensors inputs;  ///< rounded to the problem's dtype; the same strides
  reference::Tensors results; ///< every byte 0xff
  Sizes sizes;
  std::string description;
};

/// The `number`th problem for the kernel of a seed. Sizes go through all classes
/// as the number rises: edges of tiles, batch 0, empty sequences, one row, one
/// key, more rows than keys and the reverse. What no index or no sequence
/// reaches (gaps of strided views, padding, memory behind the end) is NaN. Of a backward pass
/// o and lse are the reference's, and there are no other NaN nor infinities. `noLengths`: sizes that say what problems
/// without a hint do not (`hintOf`).
Problem makeProblem(Computation computation, uint64_t kernelSeed, uint64_t number, bool noLengths = false);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_PROBLEMS_H
