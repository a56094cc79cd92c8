// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TOOLS_ATTN_BENCH_NAIVELOOP_H
#define ATTN_TOOLS_ATTN_BENCH_NAIVELOOP_H

#include <cstdint>

namespace attn::bench {

/// The loop one writes first: scores of the visible keys of a row, softmax, sum
/// of values, in float, compiled with -O2; heads shared among all CPUs. What the
/// CPU target is measured against. Returns the milliseconds of the fastest of
/// three runs on q, k, v of [heads, seqlen, dim].
double timeNaiveLoop(int64_t heads, int64_t seqlen, int64_t dim, bool causal);

} // namespace attn::bench

#endif // ATTN_TOOLS_ATTN_BENCH_NAIVELOOP_H
