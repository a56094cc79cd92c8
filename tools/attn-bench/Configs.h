// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TOOLS_ATTN_BENCH_CONFIGS_H
#define ATTN_TOOLS_ATTN_BENCH_CONFIGS_H

#include "attn/API/Compile.h"

namespace attn::bench {

/// The schedules of a target that are worth compiling for a problem: valid, and with accumulators that leave registers
/// over. What does not fit shared memory, or the target does not take, is for the lowering to refuse.
std::vector<mlir::Attribute> candidatesOf(ProblemOp problem, const Target &target);

/// `#tile.tiled<q_tile = 128, ...>`, without parameters that are as by default.
std::string textOf(mlir::Attribute schedule);

} // namespace attn::bench

#endif // ATTN_TOOLS_ATTN_BENCH_CONFIGS_H
