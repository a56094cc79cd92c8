// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocations as variables: classes of the headers, with their types' parameters.
//
#include "Printer.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void Printer::print(AllocOp op) {
  names.define(op.getResult(), op.getName());
  std::string type;
  llvm::raw_string_ostream text(type);
  llvm::TypeSwitch<Type>(op.getType())
      .Case([&](SharedType t) {
        text << "attn::Smem<" << typeOf(t.getElement()) << ", " << t.getRows() << ", " << t.getCols() << ", "
             << t.getPitch() << "> " << names.of(op.getResult()) << "(" << op.getOffset().value_or(0) << ")";
      })
      .Case([&](RowStatisticsType t) {
        text << "attn::RowStatistics<" << t.getRows() << "> " << names.of(op.getResult()) << "("
             << op.getOffset().value_or(0) << ")";
      })
      .Case([&](StagingType t) {
        text << "attn::Staging<" << t.getSlots() << ", " << t.getBytes();
        if (op->getParentOfType<KernelOp>().getRoles().getDqColumns())
          text << ", /*written by warps=*/4";
        text << "> " << names.of(op.getResult()) << "(" << op.getOffset().value_or(0) << ")";
      })
      .Case([&](RingType t) {
        if (auto statistics = dyn_cast<RowStatisticsType>(t.getTile())) {
          text << "attn::RowStatisticsRing<" << statistics.getRows() << ", " << t.getStages() << "> "
               << names.of(op.getResult()) << "(" << op.getOffset().value_or(0) << ", " << op.getBarriers().value_or(0)
               << ")";
          return;
        }
        auto tile = cast<SharedType>(t.getTile());
        RingUse use = op.getRingUse();
        text << (use == RingUse::exchanged           ? "attn::ExchangeRing<"
                 : use == RingUse::stored_for_dq_mma ? "attn::StoreRing<"
                                                     : "attn::Ring<")
             << typeOf(tile.getElement()) << ", " << tile.getRows() << ", " << tile.getCols() << ", " << t.getStages()
             << (use == RingUse::loaded_for_dq_mma_too ? ", /*read by dQ MMA, too=*/true" : "") << "> "
             << names.of(op.getResult()) << "(" << op.getOffset().value_or(0) << ", " << op.getBarriers().value_or(0)
             << ")";
      })
      .Case([&](MailboxType t) {
        text << "attn::Mailbox<" << t.getWords() << "> " << names.of(op.getResult()) << "("
             << op.getOffset().value_or(0) << ")";
      })
      .Case([&](RegisterOperandType t) {
        text << "attn::RegisterOperand<" << typeOf(t.getElement()) << ", " << t.getRows() << ", " << t.getCols() << ", "
             << t.getWarps() << "> " << names.of(op.getResult());
      })
      .Case([&](SimtTileType t) {
        text << "attn::SimtTile<" << typeOf(t.getElement()) << ", " << t.getRows() << ", " << t.getCols() << ", "
             << t.getLanes() << "> " << names.of(op.getResult());
      })
      .Case([&](SimtScoresType t) {
        text << "attn::SimtScores<" << t.getRows() << ", " << t.getCols() << ", " << t.getLanes() << "> "
             << names.of(op.getResult());
      })
      .Case([&](SimtProbabilitiesType t) {
        text << "attn::SimtProbabilities<" << t.getRows() << ", " << t.getCols() << ", " << t.getLanes() << "> "
             << names.of(op.getResult());
      })
      .Case([&](SimtSoftmaxStateType t) {
        text << "attn::SimtSoftmaxState<" << t.getRows() << ", " << t.getLanes() << "> " << names.of(op.getResult());
      })
      .Case([&](FragType t) {
        text << "attn::Frag<" << t.getRows() << ", " << t.getCols() << ", " << t.getWarps() << "> "
             << names.of(op.getResult());
      })
      .Case([&](SoftmaxStateType t) {
        text << "attn::SoftmaxState<" << t.getRows() << ", " << t.getWarps() << "> " << names.of(op.getResult());
      })
      .Default([&](Type) {
        text << metadataPlace(op) << " " << names.of(op.getResult()) << "(" << op.getOffset().value_or(0) << ")";
      });
  line() << type << ";\n";
}
