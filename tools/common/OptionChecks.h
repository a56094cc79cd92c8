// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What numbers of command-line options have in common. Errors name the option.
//
#ifndef ATTN_TOOLS_COMMON_OPTIONCHECKS_H
#define ATTN_TOOLS_COMMON_OPTIONCHECKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace attn {

/// That each size is from `least` to 2^24.
llvm::Error checkSizes(llvm::StringRef option, llvm::ArrayRef<int64_t> sizes, int64_t least = 0);

/// That a rate or a time is a number above 0.
llvm::Error checkPositive(llvm::StringRef option, double number);

/// That each result has a file of its own, and that no result is written over an input. Two paths that lead to one
/// file, through links or folders, are the same.
llvm::Error checkResultPaths(llvm::ArrayRef<llvm::StringRef> inputs, llvm::ArrayRef<llvm::StringRef> results);

} // namespace attn

#endif // ATTN_TOOLS_COMMON_OPTIONCHECKS_H
