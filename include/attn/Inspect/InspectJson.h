// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Answers about problems and masks as JSON; attn-c/Attn.h says which fields they have.
//
#ifndef ATTN_INSPECT_INSPECTJSON_H
#define ATTN_INSPECT_INSPECTJSON_H

#include "attn/Inspect/Equivalence.h"
#include "attn/Inspect/Explain.h"
#include "attn/Inspect/Support.h"

namespace attn {

std::string toJson(const Explanation &explanation);
std::string toJson(llvm::ArrayRef<Support> answers);
std::string toJson(const MaskEquivalence &equivalence);

/// The options of attnExplain. Errors name the key.
rt::Result<ExplainRequest> parseExplainOptions(llvm::StringRef json);

} // namespace attn

#endif // ATTN_INSPECT_INSPECTJSON_H
