// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attn-bench times, with the case names that recorded runs of peers use.
//
#ifndef ATTN_TOOLS_ATTN_BENCH_CASES_H
#define ATTN_TOOLS_ATTN_BENCH_CASES_H

#include "attn/Reference/Inputs.h"
#include <cstdint>
#include <string>
#include <vector>

namespace attn {

struct Case {
  std::string suite; ///< `dense`, `masks`, `packed`, `short`, `cpu`
  std::string name;
  std::string mask;
  int64_t heads = 1, kvHeads = 1, dim = 128;
  int64_t batch = 1, seqlen = 0; ///< dense
  std::vector<int64_t> lengths;  ///< packed, if not empty
  std::string score;             ///< score modifiers, if any
  std::vector<int64_t> queries;  ///< if not empty: of each packed sequence, `lengths` being of its keys; with bounds

  /// The problem's text, called @bench; `schedule` may override the one that is chosen.
  std::string problem(const std::string &schedule) const;
  reference::InputSizes sizes() const;
};

/// dense: d 64/128/256 x s 1024/4096/16384 x full/causal, 16384 tokens, h = 2048/d.
/// masks: at d 128, h 16, and with score modifiers. packed: documents of uneven length. short: few rows each, very many
/// of them. cpu: small ones.
std::vector<Case> allCases();

} // namespace attn

#endif // ATTN_TOOLS_ATTN_BENCH_CASES_H
