// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/NumberChecks.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace attn;

llvm::Error reference::checkSizes(const llvm::Twine &option, llvm::ArrayRef<int64_t> sizes, int64_t least) {
  for (int64_t size : sizes)
    if (size < least || size > 1 << 24)
      return llvm::createStringError("expected sizes from " + llvm::Twine(least) + " to 2^24 in " + option +
                                     ", got: " + llvm::Twine(size));
  return llvm::Error::success();
}

llvm::Error reference::checkPositive(const llvm::Twine &option, double number) {
  if (std::isfinite(number) && number > 0)
    return llvm::Error::success();
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return llvm::createStringError("expected a number above 0 in " + option + ", got: " + text);
}
