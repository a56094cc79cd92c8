// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU this process runs on, as /proc/cpuinfo describes the first one.
//
#ifndef ATTN_RT_LIB_PROCESSOR_H
#define ATTN_RT_LIB_PROCESSOR_H

#include <string>
#include <vector>

namespace attn::rt {

/// What tells CPUs apart that -march=native makes other code for; lines that change from run to run (MHz, core ids) are
/// not in it.
std::string processorText();

/// Its instruction sets, sorted, by the names of the kernel: "avx2", "fma", ...
std::vector<std::string> processorFeatures();

} // namespace attn::rt

#endif // ATTN_RT_LIB_PROCESSOR_H
