// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is printed for kernels that find out which tiles to visit.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void Printer::print(EntryRangeOp op) {
  std::string text = "attn::entry_range(" + expr(op.getArray()) + ", " + expr(op.getCount());
  if (op.getHidden())
    text += ", " + std::to_string(int32_t(*op.getHidden()));
  const char *members[] = {"least", "largest", "whole"};
  for (auto [value, member] : llvm::zip(op.getResults(), members))
    names.define(value, member);
  line() << "const auto [" << names.of(op.getLeast()) << ", " << names.of(op.getLargest()) << ", "
         << names.of(op.getWhole()) << "] = " << text << ");\n";
}

void Printer::print(SelectTilesOp op) {
  std::string call = "attn::select_tiles(" + expr(op.getList()) + " + " + expr(op.getAt(), Precedence::Multiplicative);
  for (Value value : op.getOperands().drop_front(2))
    call += ", " + expr(value);
  names.define(op.getFull(), "full");
  names.define(op.getPartial(), "partial");
  line() << "const auto [" << names.of(op.getFull()) << ", " << names.of(op.getPartial()) << "] = " << call;
  printNumbers(op.getBody().front(), {"tile"}, "attn::TileTruth{", "}", "");
  printNumbers(op.getGroups().front(), {"group"}, "", "");
}

void Printer::print(MarkBlocksOp op) { printCall("mark_blocks", op.getOperands(), ");\n"); }
