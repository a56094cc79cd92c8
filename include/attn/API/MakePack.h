// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_API_MAKEPACK_H
#define ATTN_API_MAKEPACK_H

#include "attn-rt/Pack.h"
#include "attn/API/Jit.h"

namespace attn {

/// Sizes by their names, as `attnDescribe` has them: `batch`, `seqlen_q`, `total_q`, ...
using NamedSizes = std::vector<std::pair<std::string, int64_t>>;

/// Sizes of calls that a pack is made for.
struct PackSizes {
  /// `batch=4000,total_q=16000,total_kv=16000`
  static rt::Result<PackSizes> parse(llvm::StringRef text);

  std::string text; ///< as it was given
  NamedSizes sizes;
  bool isUsed = false; ///< there is a pass with sizes of these names
};

/// Compiles the pass `name`, and what calls of those of these sizes which it has have beside it, and adds them to the
/// pack.
rt::Status addToPack(rt::Pack &pack, rt::Cache &cache, llvm::StringRef text, llvm::StringRef name, const Target &target,
                     llvm::MutableArrayRef<PackSizes> shapes);

/// Writes a pack to a file; an error if no pass has sizes of some of the names.
rt::Status writePack(const rt::Pack &pack, llvm::ArrayRef<PackSizes> shapes, const std::string &path);

} // namespace attn

#endif // ATTN_API_MAKEPACK_H
