// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Compiler.h"

#include <fmt/format.h>

#include <charconv>

using namespace attn::rt;

/// The number in front of `what` ("12 bytes spill stores"), or -1.
static int numberBefore(std::string_view text, std::string_view what) {
  size_t end = text.find(what);
  if (end == std::string_view::npos)
    return -1;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9')
    --begin;
  int value = -1;
  std::from_chars(text.data() + begin, text.data() + end, value);
  return value;
}

ResourceReport ResourceReport::parse(std::string_view log, std::string_view entry) {
  // ptxas info    : Compiling entry function 'name' for 'sm_80'
  // ptxas info    : Function properties for name
  //     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
  // ptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem, 372
  // bytes cmem[0]
  constexpr std::string_view header = "Compiling entry function";
  size_t begin = log.find(fmt::format("{} '{}'", header, entry));
  if (begin == std::string_view::npos)
    return {};
  std::string_view part = log.substr(begin + header.size());
  part = part.substr(0, part.find(header));
  ResourceReport report;
  report.registers = numberBefore(part, " registers");
  report.stack = numberBefore(part, " bytes stack frame");
  report.spillStores = numberBefore(part, " bytes spill stores");
  report.spillLoads = numberBefore(part, " bytes spill loads");
  // "(C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ... in the function
  // 'name'", in front of that
  for (size_t at = 0; (at = log.find("instructions are serialized", at)) != std::string_view::npos; ++at)
    report.serialized |=
        log.substr(at, log.find('\n', at) - at).find(fmt::format("'{}'", entry)) != std::string_view::npos;
  // Not printed when there is none.
  report.smem = report.known() ? std::max(0, numberBefore(part, " bytes smem")) : -1;
  return report;
}

std::string ResourceReport::str() const {
  if (!known())
    return "not reported";
  return fmt::format("{} registers, {} bytes stack, {} bytes spill stores, {} "
                     "bytes spill loads, {} bytes static smem{}",
                     registers, stack, spillStores, spillLoads, smem, serialized ? ", products serialized" : "");
}
