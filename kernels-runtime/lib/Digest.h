// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_RT_LIB_DIGEST_H
#define ATTN_RT_LIB_DIGEST_H

#include <string>
#include <string_view>

namespace attn::rt {

/// SHA-256 of the bytes as 64 lower-case hex digits.
std::string sha256(std::string_view bytes);

} // namespace attn::rt

#endif // ATTN_RT_LIB_DIGEST_H
