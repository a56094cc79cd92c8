// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_INSPECT_EQUIVALENCE_H
#define ATTN_INSPECT_EQUIVALENCE_H

#include "attn-rt/Result.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace attn {

/// Whether two masks show the same pairs for all lengths, and where they differ if not.
struct MaskEquivalence {
  enum Verdict { Equal, Different, Unknown } verdict = Unknown;
  std::string forms[2];   ///< the masks' canonical forms
  bool areAffine = false; ///< do both consist of compares and remainders of positions?

  // If they differ, a pair that one of them shows and the other hides, and what they read there of their arrays.
  int64_t seqlenQ = 0, seqlenKv = 0, row = 0, key = 0;
  int64_t head = 0, heads = 1;
  bool seenByFirst = true;
  struct Entry {
    std::string array;
    int64_t position, value;
  };
  std::vector<Entry> entries;

  /// For a reader, as `attn-opt --equiv` prints it.
  std::string text() const;
};

/// Compares two masks by their texts, such as `#attn.causal`. Safe to call from several threads.
rt::Result<MaskEquivalence> compareMaskTexts(llvm::StringRef first, llvm::StringRef second);

} // namespace attn

#endif // ATTN_INSPECT_EQUIVALENCE_H
