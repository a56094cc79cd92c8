// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is printed for kernels of rows: steps on a table of segments.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void Printer::printCall(StringRef verb, ValueRange operands, StringRef end) {
  line() << "attn::" << verb << "(";
  llvm::interleaveComma(operands, os, [&](Value value) { os << expr(value); });
  os << end;
}

/// A region on integers as the last argument of a call (or another, by what its `end` is): a lambda that returns `type`
/// of what it yields.
void Printer::printNumbers(Block &body, ArrayRef<const char *> arguments, StringRef open, StringRef close,
                           StringRef end) {
  size_t mark = names.mark();
  os << ", [=](";
  for (auto [arg, name] : llvm::zip_equal(body.getArguments(), arguments)) {
    names.define(arg, name);
    os << (arg.getArgNumber() ? ", int" : "int");
    if (!arg.use_empty())
      os << " " << names.of(arg);
  }
  os << ") {\n";
  printBlock(body);
  indent += 2;
  if (ValueRange yielded = body.getTerminator()->getOperands(); !yielded.empty()) {
    line() << "return " << open;
    llvm::interleaveComma(yielded, os, [&](Value value) { os << expr(value); });
    os << close << ";\n";
  }
  indent -= 2;
  line() << "}" << end;
  names.close(mark);
}

void Printer::print(TokensOp op) {
  std::string text = "attn::tokens(" + expr(op.getIds()) + ", " + expr(op.getRow()) + ", " + expr(op.getCount());
  if (op.getPositions())
    text += ", " + expr(op.getPositions()) + ", " + expr(op.getPositionRows());
  names.define(op.getResult(), Names::wishOf(op.getResult()).empty() ? "tokens" : Names::wishOf(op.getResult()));
  line() << "const auto " << names.of(op.getResult()) << " = " << text << ");\n";
}

void Printer::print(BatchRowIndexOp op) {
  names.define(op.getResult(), "row");
  line() << "const int " << names.of(op.getResult()) << " = attn::row_index<"
         << op->getParentOfType<KernelOp>().getCluster().value_or(1) << ">();\n";
}

void Printer::print(CountSegmentsOp op) { printCall("count_segments", op.getOperands(), ");\n"); }

void Printer::print(BoundSegmentsOp op) {
  printCall(op.getWhole() ? "bound_segments<true>" : "bound_segments<false>", op->getOperands(), "");
  printNumbers(op.getBody().front(), {"count_q", "low_q", "high_q", "count_kv", "low_kv", "high_kv"}, "attn::Bounds{",
               "}");
}

void Printer::print(SelectSegmentsOp op) { printCall("select_segments", op.getOperands(), ");\n"); }

void Printer::print(CheckSegmentsOp op) {
  printCall("check_segments", op.getOperands(), "");
  unsigned claims = op.getBody().front().getTerminator()->getNumOperands() / 2;
  printNumbers(op.getBody().front(), {"len_q", "len_kv", "shift"}, "attn::Claims<" + std::to_string(claims) + ">{{",
               "}}");
}

void Printer::print(WriteSegmentsOp op) { printCall("write_segments", op.getOperands(), ");\n"); }

void Printer::print(WriteSequencesOp op) { printCall("pair_segments", op.getOperands(), ");\n"); }

void Printer::print(ListQueryTilesOp op) {
  printCall("list_tiles<" + std::to_string(op.getQTile()) + ">", op.getOperands(), "");
  printNumbers(op.getBody().front(), {"len_q", "len_kv"}, "", "");
}

void Printer::print(ListWorkTilesOp op) {
  printCall("list_slots<" + std::to_string(op.getRows()) + ">", op.getOperands(), "");
  printNumbers(op.getBody().front(), {"b"}, "", "");
}
