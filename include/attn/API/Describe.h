// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_API_DESCRIBE_H
#define ATTN_API_DESCRIBE_H

#include "attn-rt/Result.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace attn {

/// What a pass of a module takes and gives, as JSON, for any target (`attnDescribe` in attn-c/Attn.h says which
/// fields). Compiles nothing and asks no device. Safe to call from several threads.
rt::Result<std::string> describe(llvm::StringRef text, llvm::StringRef name);

} // namespace attn

#endif // ATTN_API_DESCRIBE_H
