// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TOOLS_ATTN_BENCH_SEGMENTSSUITE_H
#define ATTN_TOOLS_ATTN_BENCH_SEGMENTSSUITE_H

#include "attn/API/Compile.h"
#include <nlohmann/json.hpp>

namespace attn::bench {

/// Times `attn.segments`: rows of 16 segments (or as many as there may be, if fewer), whose
/// slots cut 97 % of the row at random and end with up to a quarter of padding. By mask,
/// batch, tokens and segments: self-attention with the same arrays on both sides, cross-
/// attention with twice the keys, steps of a striped ring; and rows with positions in
/// common. A line for each case whose name contains `filter`. On a GPU: microseconds of a
/// launch in a graph of 20, and of a call until it is done.
void runSegments(const Target &target, llvm::StringRef filter,
                 llvm::function_ref<void(const nlohmann::ordered_json &)> report);

} // namespace attn::bench

#endif // ATTN_TOOLS_ATTN_BENCH_SEGMENTSSUITE_H
