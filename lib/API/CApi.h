// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_API_CAPI_H
#define ATTN_LIB_API_CAPI_H

#include "attn-rt/Result.h"

namespace attn {

/// 1; attnLastError of this thread says what went wrong.
int fail(const rt::Error &error);

} // namespace attn

#endif // ATTN_LIB_API_CAPI_H
