// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors that a caller gives, as plain data: they follow from the problem alone, for any target.
//
#ifndef ATTN_CONVERSION_DESCRIBE_H
#define ATTN_CONVERSION_DESCRIBE_H

#include "attn-rt/Program.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

namespace attn {

/// In the order of `tensorsOf`.
std::vector<rt::Program::Tensor> describeTensors(Computation computation);
std::vector<rt::Program::Tensor> describeTensors(SegmentsOp segments);

/// Sizes that follow from those of ids: batch, total_q and total_kv. None without ids.
std::vector<rt::Program::Size> describeSizes(int64_t segments);

} // namespace attn

#endif // ATTN_CONVERSION_DESCRIBE_H
