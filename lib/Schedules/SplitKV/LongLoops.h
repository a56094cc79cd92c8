// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `split_kv` with `least`: several CTAs share the loops of query tiles that see many more keys than others. A kernel
// before the forward kernel lists what each CTA computes, and a kernel after it combines partial results.
//
#ifndef ATTN_LIB_SCHEDULES_SPLITKV_LONGLOOPS_H
#define ATTN_LIB_SCHEDULES_SPLITKV_LONGLOOPS_H

#include "Schedules/Common/ProgramBuilder.h"

namespace attn {

/// Do the first rows of a long sequence see so many keys more than others that two more kernels are worth it?
bool hasLongLoops(ProblemOp problem);
/// Why loops over keys cannot be split; null if they can.
const char *whyNotSplitLoops(ProblemOp problem, tile::SplitKvAttr schedule);
/// Writes the kernels: `<name>_kv_splits`, `<name>`, `<name>_combine`.
void lowerLongLoops(ProblemOp problem, tile::SplitKvAttr schedule, Lowering &lowering);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SPLITKV_LONGLOOPS_H
