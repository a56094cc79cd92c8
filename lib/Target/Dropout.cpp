// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Printing of dropout ops.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// A first row or column.
static std::string place(const std::string &first, bool unaligned) {
  return unaligned ? "attn::Unaligned{" + first + "}" : first;
}

void Printer::print(DropoutOp op) {
  line() << "attn::" << (op.getMarks() ? "dropout_in_sign" : "dropout") << (op.getTransposed() ? "_transposed" : "")
         << "(" << names.of(op.getPlace()) << ", " << place(expr(op.getRow0()), op.getUnaligned()) << ", "
         << place(expr(op.getCol0()), op.getUnaligned()) << ", " << expr(op.getDropout()) << ", " << op.getBelow();
  os << (op.getFactor() ? ", " + literal(op.getFactor()->convertToDouble()) : "") << ");\n";
}

void Printer::print(DropoutBitsOp op) {
  line() << "attn::dropout_bits(" << names.of(op.getBits()) << ", " << place(expr(op.getRow0()), op.getUnaligned())
         << ", " << place(expr(op.getCol0()), op.getUnaligned()) << ", " << expr(op.getDropout()) << ", "
         << op.getBelow() << ");\n";
}

void Printer::print(ApplyDropoutBitsOp op) {
  line() << "attn::apply_dropout_bits(" << names.of(op.getP()) << ", " << names.of(op.getBits()) << ");\n";
}

void Printer::print(DropoutGradScoresOp op) {
  line() << "attn::dropout_grad_scores<" << (op.getTransposed() ? "true" : "false") << ">(" << names.of(op.getGrad())
         << ", " << names.of(op.getP()) << ", ";
  os << (op.getWeighted() ? names.of(op.getWeighted()).str() + ", " : "") << names.of(op.getStatistics()) << ", "
     << literal(op.getFactor().convertToDouble()) << ");\n";
}

std::string Printer::dropped(RecomputeRowsOp op) {
  return "attn::Dropout{" + expr(op.getDropout()) + ", " + std::to_string(*op.getBelow()) + ", " +
         literal(op.getFactor()->convertToDouble()) + "}";
}
