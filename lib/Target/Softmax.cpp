// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Printing of forward ops on scores: score modifiers, masks, softmax, sinks, and rows that are recomputed.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void Printer::print(ModifyOp op) {
  line() << "attn::modify(" << names.of(op.getS());
  printModifier({op.getQ0(), op.getK0()}, op.getWithin() ? literal(op.getWithin()->convertToDouble()) : "",
                op.getSmall(), op.getBody());
}

void Printer::printModifier(ValueRange at, StringRef small, Region &smallBody, Region &body) {
  os << ", " << expr(at[0]) << ", " << expr(at[1]) << ", ";
  if (!small.empty()) {
    os << small << ", ";
    printLambda(smallBody.front(), "}, ");
  }
  printLambda(body.front(), "});\n");
}

void Printer::print(ApplyMaskOp op) {
  line() << "attn::apply_mask" << (op.getTransposed() ? "_transposed" : "") << "(" << names.of(op.getS()) << ", "
         << expr(op.getQ0()) << ", " << expr(op.getK0()) << ", ";
  printLambda(op.getBody().front(), "});\n", op.getTransposed());
}

void Printer::print(AddSinkOp op) {
  line() << "attn::add_sink(" << names.of(op.getAcc()) << ", " << names.of(op.getRow()) << ", " << base2(scale) << ", "
         << expr(op.getQ0()) << ", ";
  printLambda(op.getBody().front(), "});\n");
}

void Printer::print(OnlineSoftmaxOp op) {
  line() << (op.getAcc()              ? "attn::online_softmax("
             : op.getRowsRecomputed() ? "attn::softmax<true>("
                                      : "attn::softmax(")
         << names.of(op.getS()) << ", " << names.of(op.getRow()) << ", ";
  if (op.getAcc())
    os << names.of(op.getAcc()) << ", ";
  os << base2(op.getScale().convertToDouble()) << ");\n";
}

void Printer::print(SoftmaxConvertOp op) {
  line() << "attn::softmax_convert" << (op.getRowsRecomputed() ? "<true>(" : "(") << names.of(op.getP()) << ", "
         << names.of(op.getS()) << ", " << names.of(op.getRow()) << ", " << base2(op.getScale().convertToDouble());
  std::string small;
  if (op.getBecomes())
    small = "attn::SmallBound{" + base2(op.getBecomes()->convertToDouble()) + "}";
  else if (op.getWithin())
    small = literal(op.getWithin()->convertToDouble());
  if (op.getModify().empty())
    os << ");\n";
  else
    printModifier(op.getAt(), small, op.getSmall(), op.getModify());
}

void Printer::print(RecomputeRowsOp op) {
  line() << "attn::recompute_rows<" << op.getDimQk() << ", " << op.getDimV() << ">(" << names.of(op.getAcc());
  // The short form, for all keys, rows without packed heads and an LSE of consecutive rows.
  bool plain = !op.getFirstKey() && !op.getRanges() && !op.getLseRow() && !op.getBeforeO() &&
               !isa<PairsType>(op.getQ0().getType());
  os << ", " << expr(op.getQ0()) << ", " << expr(op.getRows()) << ", ";
  if (op.getRanges()) {
    os << "attn::key_ranges(" << expr(op.getRanges());
    printNumbers(op.getAlong().front(), {"j"}, "attn::KeyRange{", "}", "), ");
  } else if (!plain)
    os << (op.getFirstKey() ? expr(op.getFirstKey()) : "0") << ", ";
  os << expr(op.getKeys());
  for (Value value : std::initializer_list<Value>{op.getQ(), op.getQRow(), op.getK(), op.getKRow(), op.getV(),
                                                  op.getVRow(), op.getO(), op.getORow()})
    os << ", " << expr(value);
  os << ", " << (op.getLse() ? stateOf(op.getLse(), op.getSum()) : "(float *)nullptr") << ", ";
  if (!plain)
    os << (op.getLseRow() ? expr(op.getLseRow()) : "1ll") << ", ";
  os << base2(op.getScale().convertToDouble()) << ", ";
  // Arguments are in the order modifiers, sink, dropout, partial result.
  bool drops = bool(op.getDropout()), sinks = !op.getSink().empty(), modifies = !op.getModify().empty();
  if (Value before = op.getBeforeO()) {
    printLambda(op.getBody().front(), "}, ");
    if (modifies)
      printLambda(op.getModify().front(), "}, ");
    else
      os << "attn::Unmodified(), ";
    if (sinks)
      printLambda(op.getSink().front(), "}, ");
    else
      os << "attn::NoSink(), ";
    os << (drops ? dropped(op) : "attn::NoDropout()") << ", attn::Before{" << expr(before) << ", "
       << expr(op.getBeforeRow()) << ", " << expr(op.getBeforeMax()) << ", " << expr(op.getBeforeSum()) << "});\n";
    return;
  }
  printLambda(op.getBody().front(), modifies || sinks || drops ? "}, " : "});\n");
  if (modifies)
    printLambda(op.getModify().front(), sinks || drops ? "}, " : "});\n");
  else if (sinks || drops)
    os << "attn::Unmodified(), ";
  if (sinks)
    printLambda(op.getSink().front(), drops ? "}, " : "});\n");
  else if (drops)
    os << "attn::NoSink(), ";
  if (drops)
    os << dropped(op) << ");\n";
}
