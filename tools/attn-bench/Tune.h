// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-bench --tune: every schedule of a problem, compiled and timed. The
// heuristic of each schedule (lib/Schedules) is written from its tables.
//
#ifndef ATTN_TOOLS_ATTN_BENCH_TUNE_H
#define ATTN_TOOLS_ATTN_BENCH_TUNE_H

#include "attn/API/Compile.h"
#include "attn/Reference/Inputs.h"

namespace attn::bench {

struct TuneRequest {
  std::string name;    ///< for the reader
  std::string text;    ///< of a module
  std::string problem; ///< in it; empty: its only one
  reference::InputSizes sizes;
  std::string match; ///< a regular expression for the text of schedules (`textOf`)
  bool json = false;
};

/// Lowers all candidates, compiles what is accepted and differs, on all CPUs,
/// and times those that do not spill, in turns: five rounds for all, ten more for those
/// within 5 % of the fastest. On a machine that cannot run the target it stops after
/// compiling. Prints a table, the fastest first, or a JSON line each.
rt::Status tune(const TuneRequest &request, const Target &target, llvm::raw_ostream &os);

} // namespace attn::bench

#endif // ATTN_TOOLS_ATTN_BENCH_TUNE_H
