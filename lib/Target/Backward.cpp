// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Printing of ops of backward passes.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void Printer::print(PreprocessOp op) {
  auto schedule = op->getParentOfType<KernelOp>().getSchedule();
  line() << "attn::preprocess<";
  if (op.getDim())
    os << int64_t(*op.getDim()) << ", ";
  os << schedule.getQTile() << ", " << schedule.getWarps() * 32
     << (op.getStride() ? ", " + std::to_string(int64_t(*op.getStride())) : "") << ">(" << expr(op.getStatistics())
     << ", " << expr(op.getPitch());
  for (Value value :
       {Value(op.getO()), Value(op.getORow()), Value(op.getGradO()), Value(op.getGradORow()), Value(op.getDelta())})
    if (value)
      os << ", " << expr(value);
  os << ", " << expr(op.getLse());
  if (!op.getDelta())
    os << ", " << (op.getGradLse() ? expr(op.getGradLse()) : "nullptr");
  os << ", " << expr(op.getRows()) << (op.getExponent() ? ", " + std::to_string(*op.getExponent()) : "") << ");\n";
  Value cleared = op.getCleared() ? op.getCleared() : op.getRows();
  if (op.getSum())
    line() << "attn::clear_accumulator<" << int64_t(*op.getSumCols()) << ", " << schedule.getWarps() * 32 << ">("
           << expr(op.getSum()) << ", " << expr(cleared) << ");\n";
  if (op.getSemaphore())
    line() << "attn::clear_semaphores<" << schedule.getQTile() / 64 << ">(" << expr(op.getSemaphore()) << ", "
           << expr(cleared) << ");\n";
}

void Printer::print(StoreAndSyncOp op) {
  names.define(op.getTile(), (names.of(op.getRing()) + "_tile").str());
  line() << "const auto " << names.of(op.getTile()) << " = attn::store_and_sync(" << names.of(op.getRing()) << ", "
         << names.of(op.getOperand()) << ");\n";
}

void Printer::print(ProducerStoreOp op) {
  if (!op.getOperand()) {
    line() << "attn::producer_store_zeros(" << names.of(op.getRing()) << ");\n";
    return;
  }
  line() << "attn::producer_store" << (op.getFirst() ? "<" + std::to_string(int64_t(*op.getFirst())) + ">" : "") << "("
         << names.of(op.getRing()) << ", " << names.of(op.getOperand());
  for (Operation *user : op.getRing().getUsers()) // the stash that the store overwrites, if any
    if (auto stash = dyn_cast<StashOp>(user); stash && stash->getBlock() == op->getBlock())
      os << ", " << names.of(stash.getStash());
  os << ");\n";
}

void Printer::print(StashOp op) {
  names.define(op.getStash(), "stash");
  line() << "auto " << names.of(op.getStash()) << " = attn::stash<" << op.getStash().getType().getWarps() << ">("
         << names.of(op.getRing()) << ");\n";
}

void Printer::print(MmaAtbOp op) {
  line() << (isa<SimtTileType>(op.getAcc().getType()) ? "attn::mma_atb_simt" : "attn::mma_atb");
  if (op.getBlock())
    os << "<" << int64_t(*op.getBlock()) << ">";
  os << "(" << names.of(op.getAcc()) << ", " << names.of(op.getA()) << ", " << names.of(op.getB()) << ");\n";
}

void Printer::print(MmaAtbSliceOp op) {
  line() << "attn::mma_atb_slice(" << names.of(op.getAcc()) << ", " << expr(op.getSlice()) << ", "
         << expr(op.getFirstBlock()) << ", " << expr(op.getEndBlock());
  for (auto [left, right] : llvm::zip(op.getLefts(), op.getRights()))
    os << ", " << names.of(left) << ", " << names.of(right);
  os << ");\n";
}

void Printer::print(StoreSliceOp op) {
  line() << "attn::store_slice(" << names.of(op.getAcc()) << ", " << expr(op.getSlice()) << ", " << expr(op.getRows())
         << ", " << expr(op.getWriteRows());
  for (auto [dst, stride, factor, dim] : llvm::zip(op.getDsts(), op.getStrides(), op.getFactors(), op.getDims()))
    os << ", attn::result<" << dim << ">(" << expr(dst) << ", " << expr(stride) << ", " << literal(factor) << ")";
  os << ");\n";
}

void Printer::print(AddDeltaOp op) {
  line() << "attn::add_delta" << (op.getFirst() ? "<" + std::to_string(int64_t(*op.getFirst())) + ">" : "") << "("
         << names.of(op.getRow()) << ", " << names.of(op.getO()) << ", " << names.of(op.getGrad()) << ");\n";
}

/// The DqLayout type of an accumulator with `columns` columns, in register order if dQ is added from registers.
static std::string dqLayoutOf(Operation *op, int64_t columns, bool inRegisterOrder) {
  int64_t rows = op->getParentOfType<KernelOp>().getSchedule().getQTile();
  return "attn::DqLayout<" + std::to_string(rows) + ", " + std::to_string(columns) +
         (inRegisterOrder ? ", true>" : ">");
}

void Printer::print(AddGlobalOp op) {
  if (op.getStaging()) // not yet split into roles
    return complain(op);
  line() << "attn::add_global<" << dqLayoutOf(op, op.getAcc().getType().getCols(), /*inRegisterOrder=*/true) << ">("
         << expr(op.getSum()) << ", " << expr(op.getLeft()) << ", " << names.of(op.getAcc()) << ");\n";
}

void Printer::print(AddGlobalOrderedOp op) {
  line() << "attn::add_global_ordered<" << dqLayoutOf(op, op.getAcc().getType().getCols(), /*inRegisterOrder=*/true)
         << ", " << int64_t(op.getBlock()) << (op.getLast() ? ", true>(" : ", false>(") << expr(op.getSum()) << ", "
         << expr(op.getLeft()) << ", " << names.of(op.getAcc()) << ", " << names.of(op.getStaging()) << ");\n";
}

void Printer::print(SkipAddOp op) { line() << "attn::skip_add(" << expr(op.getSemaphore()) << ");\n"; }

void Printer::print(StageOp op) {
  line() << "attn::stage(" << names.of(op.getStaging()) << ", " << names.of(op.getAcc()) << ");\n";
}

void Printer::print(AddStagedOp op) {
  line() << "attn::add_staged<" << dqLayoutOf(op, op.getColumns(), op.getStaging().getType().getBytes() == 0);
  if (int64_t(op.getBlocks()) != 1 || op.getAfterFirst())
    os << ", " << int64_t(op.getBlocks()) << (op.getAfterFirst() ? ", true" : "");
  os << ">(" << expr(op.getSum()) << ", " << expr(op.getLeft()) << ", " << names.of(op.getStaging());
  if (!op.getSemaphore()) {
    os << ");\n";
    return;
  }
  os << ", " << expr(op.getSemaphore()) << ", " << expr(op.getTile());
  if (op.getFirstTile())
    os << ", " << expr(op.getFirstTile());
  printNumbers(op.getAdds().front(), {"other"}, "", "", ");\n");
}

void Printer::print(PostprocessOp op) {
  line() << "attn::postprocess<" << op.getDim() << ", " << dqLayoutOf(op, op.getColumns(), op.getFromRegisters())
         << ">(" << expr(op.getDst()) << ", " << expr(op.getStride()) << ", " << expr(op.getSum()) << ", "
         << expr(op.getRows()) << ", " << expr(op.getWritten()) << ", " << literal(op.getFactor().convertToDouble())
         << (op.getBefore() ? ", attn::RowsBefore{" + expr(op.getBefore()) + ", " + expr(op.getBeforeStride()) + "}"
                            : "")
         << (op.getSemaphore() ? ", " + expr(op.getSemaphore()) : "") << ");\n";
}

void Printer::print(CopyRowStatisticsOp op) {
  line() << "attn::copy_row_statistics(" << names.of(op.getDst()) << ", " << expr(op.getSrc()) << ", "
         << expr(op.getPitch()) << ");\n";
}

void Printer::print(ProducerLoadRowStatisticsOp op) {
  line() << "attn::producer_load_row_statistics(" << names.of(op.getRing()) << ", " << expr(op.getSrc()) << ", "
         << expr(op.getPitch()) << ");\n";
}

void Printer::print(ProbabilitiesOp op) {
  line() << "attn::probabilities" << (op.getSlopes() ? "_and_slopes" : "") << "<"
         << (op.getTransposed() ? "true" : "false") << ">(" << names.of(op.getS()) << ", ";
  if (op.getWeighted())
    os << names.of(op.getWeighted()) << ", ";
  os << names.of(op.getStatistics()) << ", " << base2(op.getScale().convertToDouble());
  if (op.getModify().empty())
    os << ");\n";
  else
    printModify(op);
}

void Printer::printModify(ProbabilitiesOp op) {
  os << ", " << expr(op.getRow0()) << ", " << expr(op.getCol0()) << ", ";
  if (op.getWithin()) {
    os << literal(op.getWithin()->convertToDouble()) << ", ";
    if (ArrayRef<double> slope = op.getSlopes().value_or(ArrayRef<double>()); !slope.empty()) {
      os << "attn::Polynomial<" << slope.size() << ">{";
      llvm::interleaveComma(slope, os, [&](double coefficient) { os << literal(coefficient); });
      os << "}, ";
    } else if (op.getSlopes()) {
      os << "attn::PlainSlope(), ";
    }
    printLambda(op.getSmall().front(), "}, ", op.getTransposed());
  }
  printLambda(op.getModify().front(), "});\n", op.getTransposed());
}

void Printer::print(GradScoresOp op) {
  line() << "attn::grad_scores<" << (op.getTransposed() ? "true" : "false") << ">(" << names.of(op.getGrad()) << ", "
         << names.of(op.getP()) << ", " << (op.getSlopes() ? names.of(op.getSlopes()).str() + ", " : "")
         << names.of(op.getStatistics()) << (op.getFactor() ? ", " + literal(op.getFactor()->convertToDouble()) : "")
         << ");\n";
}
