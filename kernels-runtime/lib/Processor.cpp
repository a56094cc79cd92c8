// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Processor.h"
#include "Files.h"

#include <algorithm>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

using namespace attn::rt;

/// The first block of /proc/cpuinfo; empty where there is none.
static std::string readProcessor() {
  std::string text(16384, '\0');
  Fd fd(::open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC));
  size_t at = 0;
  for (ssize_t got; fd && at < text.size() && (got = ::read(fd.get(), text.data() + at, text.size() - at)) > 0;) {
    at += static_cast<size_t>(got);
    if (text.find("\n\n") < at)
      break;
  }
  text.resize(at);
  return text.substr(0, text.find("\n\n"));
}

/// Calls `visit(name, line)` for each line.
template <typename Visit> static void eachLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    visit(line.substr(0, line.find_first_of("\t :")), line);
  }
}

std::string attn::rt::processorText() {
  static const std::string kept = [] {
    std::string kept;
    eachLine(readProcessor(), [&](std::string_view name, std::string_view line) {
      for (std::string_view wanted : {"vendor_id", "model", "cpu", "flags", "Features", "CPU", "isa", "uarch"})
        if (name == wanted && line.find("MHz") == std::string_view::npos)
          kept.append(line).push_back('\n');
    });
    return kept;
  }();
  return kept;
}

/// Is it an instruction set that a compiler uses? (Others are of the kernel or of hypervisors.)
static bool isInstructionSet(std::string_view feature) {
  for (std::string_view prefix : {"sse", "ssse", "avx", "amx", "bmi", "fma", "sve", "sme", "asimd"})
    if (feature.starts_with(prefix))
      return true;
  for (std::string_view name : {"abm", "adx",    "aes",  "f16c",  "gfni",       "movbe", "pclmulqdq", "popcnt",
                                "sha", "sha_ni", "tbm",  "vaes",  "vpclmulqdq", "xop",   "bf16",      "crc32",
                                "fp",  "fphp",   "i8mm", "pmull", "sha1",       "sha2",  "sha3",      "sha512"})
    if (feature == name)
      return true;
  return false;
}

std::vector<std::string> attn::rt::processorFeatures() {
  std::vector<std::string> features;
  eachLine(readProcessor(), [&](std::string_view name, std::string_view line) {
    if (name != "flags" && name != "Features")
      return;
    line.remove_prefix(std::min(line.size(), line.find(':') + 1));
    while (!line.empty()) {
      std::string_view word = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
      if (isInstructionSet(word))
        features.emplace_back(word);
    }
  });
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}
