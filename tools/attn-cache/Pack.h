// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_TOOLS_ATTN_CACHE_PACK_H
#define ATTN_TOOLS_ATTN_CACHE_PACK_H

#include "attn-rt/Pack.h"
#include "attn/API/Jit.h"

namespace attn {

/// Sizes by their names, as `attnDescribe` has them: `batch`, `seqlen_q`, `total_q`, ...
using NamedSizes = std::vector<std::pair<std::string, int64_t>>;

/// `batch=4000,total_q=16000,total_kv=16000`
rt::Result<NamedSizes> parseSizes(llvm::StringRef text);

/// Sizes of calls that a pack is made for.
struct PackSizes {
  NamedSizes sizes;
  bool isUsed = false; ///< there is a pass with sizes of these names
};

/// Compiles the pass `name`, and what calls of those of these sizes which it has have beside it, and adds them to the
/// pack.
rt::Status addToPack(rt::Pack &pack, rt::Cache &cache, llvm::StringRef text, llvm::StringRef name, const Target &target,
                     llvm::MutableArrayRef<PackSizes> shapes);

} // namespace attn

#endif // ATTN_TOOLS_ATTN_CACHE_PACK_H
