// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Printer.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

bool attn::isReserved(StringRef name) {
  // Reserved names of values and kernels: C++20's keywords, CUDA's additions, and one name with a meaning to linkers.
  static const llvm::StringSet<> words = {
      "alignas", "alignof", "and", "and_eq", "asm", "attn", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
      "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept",
      "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do",
      "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend",
      "goto", "if", "inline", "int", "long", "main", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
      "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
      "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
      "template", "this", "thread_local", "threadIdx", "blockIdx", "blockDim", "gridDim", "throw", "true", "try",
      "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while",
      "xor", "xor_eq",
      // Names that kernels and their headers use.
      "work_tile", "attn_queue", "min", "max", "abs", "tanh", "expf", "printf", "NULL", "std"};
  // Functions that CUDA declares with C linkage, for double, and with a suffix for float.
  static const llvm::StringSet<> functions = {
      "acos",  "acosh",   "asin",    "asinh",  "atan",  "atan2",     "atanh",    "cbrt",   "ceil",      "copysign",
      "cos",   "cosh",    "cospi",   "erf",    "erfc",  "erfcinv",   "erfcx",    "erfinv", "exp",       "exp10",
      "exp2",  "expm1",   "fabs",    "fdim",   "floor", "fma",       "fmax",     "fmin",   "fmod",      "frexp",
      "hypot", "ilogb",   "j0",      "j1",     "jn",    "ldexp",     "lgamma",   "llrint", "llround",   "log",
      "log10", "log1p",   "log2",    "logb",   "lrint", "lround",    "modf",     "nan",    "nearbyint", "nextafter",
      "norm",  "normcdf", "pow",     "powi",   "rcbrt", "remainder", "remquo",   "rhypot", "rint",      "rnorm",
      "round", "rsqrt",   "scalbln", "scalbn", "sin",   "sincos",    "sincospi", "sinh",   "sinpi",     "sqrt",
      "tan",   "tgamma",  "trunc",   "y0",     "y1",    "yn"};
  static const llvm::StringSet<> others = {"malloc", "free",    "memcpy", "memset", "memmove", "memcmp", "abort",
                                           "clock",  "clock64", "labs",   "llabs",  "max",     "min"};
  llvm::StringRef alone = name.ends_with("f") ? name.drop_back() : name;
  return words.contains(name) || functions.contains(name) || functions.contains(alone) || others.contains(name) ||
         name.starts_with("ATTN_") || name.starts_with("__"); // macros of the headers, and compilers' names
}

void Names::define(Value value, StringRef wish) {
  std::string base;
  for (char c : wish)
    base += llvm::isAlnum(c) ? c : '_';
  llvm::StringRef given = base; // appending a number would not make these names valid
  if (given.empty() || llvm::isDigit(given.front()) || given.starts_with("__") || given.starts_with("ATTN_"))
    base = "v" + base;
  std::string name = base;
  for (int i = 2; isReserved(name) || !taken.insert(name).second; ++i)
    name = base + "_" + std::to_string(i);
  names[value] = name;
  order.push_back(name);
}

void Names::close(size_t mark) {
  while (order.size() > mark)
    taken.erase(order.pop_back_val());
}

StringRef Names::wishOf(Value value) {
  if (Operation *op = value.getDefiningOp())
    if (auto named = dyn_cast<NameLoc>(op->getLoc()))
      return named.getName();
  return "";
}
