// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_RT_LIB_RANDOM_H
#define ATTN_RT_LIB_RANDOM_H

#include <cstdint>

namespace attn::rt {

/// 64 bits of the kernel's random numbers, for names that nobody else has. From
/// getrandom(2), which every glibc since 2.25 has.
uint64_t randomBits();

} // namespace attn::rt

#endif // ATTN_RT_LIB_RANDOM_H
