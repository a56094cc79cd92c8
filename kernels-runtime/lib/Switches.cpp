// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Switches.h"

#include <cstdlib>
#include <string_view>

using namespace attn::rt;

static std::string valueOf(const char *name) {
  const char *value = std::getenv(name);
  std::string_view text = value ? value : "";
  if (text == "0" || text == "off" || text == "no")
    text = "";
  return std::string(text);
}

const Switches &Switches::get() {
  static const Switches switches = [] {
    Switches s;
    s.verbose = !valueOf("ATTN_VERBOSE").empty();
    s.keepTemps = !valueOf("ATTN_KEEP_TEMPS").empty();
    s.lineInfo = !valueOf("ATTN_LINEINFO").empty();
    s.noCache = !valueOf("ATTN_NO_CACHE").empty();
    s.dumpSource = valueOf("ATTN_DUMP_SOURCE");
    return s;
  }();
  return switches;
}
