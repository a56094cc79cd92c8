// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_API_CAPI_H
#define ATTN_LIB_API_CAPI_H

#include "attn-rt/Result.h"

namespace attn {

/// 1; attnLastError of this thread says what went wrong, and attnLastErrorKind what is at fault: `kind`, if the error
/// does not know.
int fail(const rt::Error &error, rt::ErrorKind kind = rt::ErrorKind::Unknown);

/// 0 on success, and as `fail` otherwise.
int finish(const rt::Status &status, rt::ErrorKind kind = rt::ErrorKind::Unknown);

/// Hands out an answer that `kept` keeps, or what went wrong with the text of a problem.
int give(rt::Result<std::string> answer, std::string &kept, const char **json);

} // namespace attn

#endif // ATTN_LIB_API_CAPI_H
