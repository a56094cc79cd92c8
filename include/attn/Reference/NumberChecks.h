// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of numbers that options give. `option` is an option as errors show it: `--batch` of a tool, or a key in
// backticks.
//
#ifndef ATTN_REFERENCE_NUMBERCHECKS_H
#define ATTN_REFERENCE_NUMBERCHECKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace attn::reference {

/// Each size is from `least` to 2^24.
llvm::Error checkSizes(const llvm::Twine &option, llvm::ArrayRef<int64_t> sizes, int64_t least = 0);

/// A rate or a time is finite and above 0.
llvm::Error checkPositive(const llvm::Twine &option, double number);

} // namespace attn::reference

#endif // ATTN_REFERENCE_NUMBERCHECKS_H
