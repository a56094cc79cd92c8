// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Processor.h"
#include "Files.h"

#include <algorithm>
#include <string_view>
#include <utility>

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

/// A name without underscores, in lower case, as the kernel calls the instruction set.
static std::string normalized(std::string_view name) {
  std::string text;
  for (char c : name)
    if (c != '_')
      text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"sse3", "pni"}, {"bmi", "bmi1"}, {"lzcnt", "abm"}, {"pclmul", "pclmulqdq"}, {"sha", "shani"}};
  for (auto [compilers, kernels] : others)
    if (text == compilers)
      return std::string(kernels);
  return text;
}

/// Is it an instruction set that a compiler uses? (Others are of the kernel, of hypervisors, or of the language.)
static bool isInstructionSet(std::string_view feature) {
  for (std::string_view prefix : {"ssse", "avx", "amx", "bmi", "asimd", "sve"})
    if (feature.starts_with(prefix))
      return true;
  for (std::string_view name :
       {"sse",  "sse2", "sse41", "sse42",     "sse4a",  "fma",   "fma4", "pni",  "abm",        "adx", "aes",
        "f16c", "gfni", "movbe", "pclmulqdq", "popcnt", "shani", "tbm",  "vaes", "vpclmulqdq", "xop"})
    if (feature == name)
      return true;
  return false;
}

std::vector<std::string> attn::rt::instructionSets(const std::vector<std::string> &names) {
  std::vector<std::string> features;
  for (const std::string &name : names)
    if (std::string feature = normalized(name); isInstructionSet(feature))
      features.push_back(std::move(feature));
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}

std::vector<std::string> attn::rt::processorFeatures() {
  std::vector<std::string> names;
  eachLine(readProcessor(), [&](std::string_view name, std::string_view line) {
    if (name != "flags" && name != "Features")
      return;
    line.remove_prefix(std::min(line.size(), line.find(':') + 1));
    while (!line.empty()) {
      std::string_view word = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
      names.emplace_back(word);
    }
  });
  return instructionSets(names);
}
