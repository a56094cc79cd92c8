// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/IR/Plan.h"
#include <fmt/format.h>

using namespace attn::plan;

std::optional<std::string> RunsAttr::distribute(const Sequences &sequences, std::vector<Shard> &shards) const {
  llvm::ArrayRef<Shard> given = sequences.given ? sequences.given(getName()) : llvm::ArrayRef<Shard>();
  if (given.empty())
    return fmt::format("expected shards of the name `{}` from the caller, got none", getName().str());
  shards.assign(given.begin(), given.end());
  return std::nullopt;
}
