// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is printed for kernels that find out which tiles to visit.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

// NOTE: members one by one, since C++17 has no lambdas over names of a structured binding.
void Printer::print(EntryRangeOp op) {
  std::string text = "attn::entry_range(" + expr(op.getArray()) + ", " + expr(op.getCount());
  if (op.getHidden())
    text += ", " + std::to_string(int32_t(*op.getHidden()));
  names.define(op.getLeast(), "range");
  std::string range = names.of(op.getLeast()).str();
  line() << "const auto " << range << " = " << text << ");\n";
  for (auto [value, member] :
       {std::pair(op.getLeast(), "least"), std::pair(op.getLargest(), "largest"), std::pair(op.getWhole(), "whole")})
    if (!value.use_empty()) {
      names.define(value, member);
      line() << "const " << typeOf(value.getType()) << " " << names.of(value) << " = " << range << "." << member << ";\n";
    }
}

void Printer::print(SelectTilesOp op) {
  std::string call = "attn::select_tiles(" + expr(op.getList()) + " + " + expr(op.getAt(), Precedence::Multiplicative);
  for (Value value : op.getOperands().drop_front(2))
    call += ", " + expr(value);
  names.define(op.getFull(), "full");
  names.define(op.getPartial(), "partial");
  line() << "const auto [" << names.of(op.getFull()) << ", " << names.of(op.getPartial()) << "] = " << call;
  printNumbers(op.getBody().front(), {"tile"}, "attn::TileTruth{", "}");
}
