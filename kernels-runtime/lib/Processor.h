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

/// Its instruction sets, sorted: "avx2", "avx512vnni", ..., without underscores, whatever the kernel writes.
std::vector<std::string> processorFeatures();

/// The instruction sets among these names, by the same names: flags of /proc/cpuinfo ("avx512_vnni") or macros of a
/// compiler ("__AVX512VNNI__").
std::vector<std::string> instructionSets(const std::vector<std::string> &names);

} // namespace attn::rt

#endif // ATTN_RT_LIB_PROCESSOR_H
