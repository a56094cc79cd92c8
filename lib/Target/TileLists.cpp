// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is printed for kernels that find out which tiles to visit.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void Printer::print(EntryRangeOp op) {
  std::string most = std::to_string(op.getMost()), by = op.getBy() == 1 ? "" : ", " + std::to_string(op.getBy());
  std::string text = "attn::entry_range<" + most + by + ">(" + expr(op.getArray()) + ", " + expr(op.getCount());
  if (op.getHidden())
    text += ", " + std::to_string(int32_t(*op.getHidden()));
  const char *members[] = {"least", "largest", "whole"};
  for (auto [value, member] : llvm::zip(op.getResults(), members))
    names.define(value, member);
  line() << "const auto [" << names.of(op.getLeast()) << ", " << names.of(op.getLargest()) << ", "
         << names.of(op.getWhole()) << "] = " << text << ");\n";
}

void Printer::print(LoadRangesOp op) {
  std::string values, text = "attn::ranges<" + std::to_string(op.getNumResults()) + ">(" + expr(op.getArray()) + ", " +
                             expr(op.getAt()) + ").of";
  for (auto [i, value] : llvm::enumerate(op.getValues())) {
    names.define(value, i % 2 ? "largest" : "least");
    values += (i ? ", " : "") + names.of(value).str();
  }
  line() << "const auto [" << values << "] = " << text << ";\n";
}

void Printer::print(SelectTilesOp op) {
  std::string call;
  for (Value value : op.getOperands())
    call += (call.empty() ? "" : ", ") + expr(value);
  line() << "attn::select_tiles(" << call;
  printNumbers(op.getBody().front(), {"tile"}, "attn::TileTruth{", "}", "");
  printNumbers(op.getInner().front(), {"tile"}, "attn::TileTruth{", "}", "");
  printNumbers(op.getGroups().front(), {"group"}, "attn::GroupTruth{", "}", "");
  printNumbers(op.getChunk().front(), {"from", "to"}, "", "");
}

void Printer::print(CooperativeLoopOp op) {
  size_t mark = names.mark();
  printCall("together", op.getOperands(), "");
  names.define(op.getBody().getArgument(0), "team");
  names.define(op.getBody().getArgument(1), "b");
  os << ", [&](const attn::Team &" << names.of(op.getBody().getArgument(0)) << ", int "
     << names.of(op.getBody().getArgument(1)) << ") {\n";
  printBlock(op.getBody().front());
  line() << "});\n";
  names.close(mark);
}

void Printer::print(GatherBlockTilesOp op) {
  std::string verb = "gather_blocks<" + std::to_string(op.getNumber()) + ", " + std::to_string(op.getTile()) + ", " +
                     std::to_string(op.getSize()) + (op.getTransposed() ? ", true>" : ", false>");
  printCall(verb, op.getOperands(), ");\n");
}

void Printer::print(GatherListTilesOp op) {
  std::string verb = "gather_listed<" + std::to_string(op.getNumber()) + ", " + std::to_string(op.getTile()) + ", " +
                     std::to_string(op.getSize()) + ">";
  printCall(verb, op.getOperands(), ");\n");
}

void Printer::printGathered(StringRef verb, int64_t number, Value at, Value some, Value all) {
  names.define(some, "some");
  names.define(all, "all");
  line() << "const auto [" << names.of(some) << ", " << names.of(all) << "] = attn::" << verb << "<" << number << ">("
         << expr(at) << ");\n";
}
void Printer::print(GatheredOp op) { printGathered("gathered", op.getNumber(), op.getAt(), op.getSome(), op.getAll()); }
void Printer::print(GatheredBitsOp op) {
  printGathered("gathered_bits", op.getNumber(), op.getAt(), op.getSome(), op.getAll());
}
