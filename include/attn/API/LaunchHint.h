// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the sizes of a launch say of lengths, where its problem says nothing.
//
#ifndef ATTN_API_LAUNCHHINT_H
#define ATTN_API_LAUNCHHINT_H

#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include <compare>
#include <optional>
#include <string>

namespace attn {

/// So many queries and keys a sequence, as `typical(queries, keys)` would have it.
struct LaunchHint {
  int64_t queries = 0, keys = 0;

  std::string str() const;
  auto operator<=>(const LaunchHint &) const = default;
};

/// What of a launch's sizes may choose its program.
enum class HintSource {
  Nothing, ///< the problem says how long sequences are
  Lengths, ///< of dense layouts, and not how many sequences there are, on which no bits may depend
  Sizes,   ///< all
};

/// The hint that suits a launch of short sequences (of packed ones, of many), of up to 1024 dense rows and keys (forward), or of few queries on many keys; nothing for others. Of dense layouts,
/// sizes are lengths; of packed ones, they say what the average is, and that is all: nobody reads the device. Hints are few, as each may be a program: lengths are rounded up.
/// (docs/Schedules/streaming.md, 3, has the measurements.)
std::optional<LaunchHint> hintOf(HintSource source, const FixedSizes &fixed, const Sizes &sizes);

} // namespace attn

#endif // ATTN_API_LAUNCHHINT_H
