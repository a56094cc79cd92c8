// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TOOLS_ATTN_BENCH_CONFIGS_H
#define ATTN_TOOLS_ATTN_BENCH_CONFIGS_H

#include "attn/API/Compile.h"

namespace attn::bench {

/// The configurations of a target that are worth compiling for a problem: valid, and
/// with accumulators that leave registers over. What does not fit shared memory,
/// or the target does not take, is for the lowering to refuse.
std::vector<tile::ConfigAttr> configsOf(ProblemOp problem, const Target &target);

/// `q_tile = 128, kv_tile = 64, ...`, without what is by default.
std::string textOf(tile::ConfigAttr config);
/// The same with all of them, in the attribute's order.
std::string fullTextOf(tile::ConfigAttr config);

} // namespace attn::bench

#endif // ATTN_TOOLS_ATTN_BENCH_CONFIGS_H
