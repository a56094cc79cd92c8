// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Printer.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

void Names::define(Value value, StringRef wish) {
  std::string base;
  for (char c : wish)
    base += llvm::isAlnum(c) ? c : '_';
  if (base.empty() || llvm::isDigit(base.front()))
    base = "v" + base;
  std::string name = base;
  for (int i = 2; !taken.insert(name).second; ++i)
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
