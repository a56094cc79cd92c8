// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One op, one line: the verb of the same name in `attn/tile.h`, places first.
// Tokens leave no trace where copies complete in order at `wait`, and products
// where they are issued; only Hopper's products (Roles.cpp) run on.
//
#include "Printer.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

raw_ostream &Printer::line() { return os.indent(indent); }

void Printer::printCall(StringRef verb, ValueRange operands, StringRef end) {
  line() << "attn::" << verb << "(";
  llvm::interleaveComma(operands, os, [&](Value value) { os << expr(value); });
  os << end;
}

void Printer::complain(Operation *op) {
  if (!unsupported)
    op->emitOpError("cannot be printed as source");
  unsupported = true;
}

void Printer::printBlock(Block &block) {
  size_t mark = names.mark();
  indent += 2;
  for (Operation &op : block)
    printOp(&op);
  indent -= 2;
  if (!isa<ModifyOp, SoftmaxConvertOp, ApplyMaskOp, AddSinkOp, RecomputeRowsOp, ProbabilitiesOp>(
          block.getParentOp())) // its result is yet to be printed
    names.close(mark);
}

void Printer::printScalar(Operation *op) {
  if (isInlined(op))
    return;
  Value value = op->getResult(0);
  StringRef wish = nameOfIndex(op);
  if (wish.empty())
    wish = Names::wishOf(value);
  std::string text = spell(op).first;
  names.define(value, wish.empty() ? "x" : wish);
  std::string type = typeOf(value.getType());
  bool pointer = isa<PtrType>(value.getType());
  line() << (pointer ? "auto *const " : "const " + type + " ") << names.of(value) << " = " << text << ";\n";
  if (auto index = dyn_cast<BlockIndexOp>(op); index && index.getBelow())
    line() << "if (" << names.of(value) << " >= " << expr(index.getBelow()) << ") return;\n";
}

void Printer::printOp(Operation *op) {
  auto name = [&](Value v) { return names.of(v); };
  llvm::TypeSwitch<Operation *>(op)
      .Case<LoadRowsOp, StorePaddingRowsOp, LoadRowStatisticsOp, AllocOp, FindSequenceOp, CopyAsyncOp, WaitOp,
            WaitFiniteOp, IsFiniteOp, BarrierAndOp, SubtileOp, ModifyOp, ApplyMaskOp, OnlineSoftmaxOp, SoftmaxOp,
            SoftmaxConvertOp, MmaAbtOp, MmaAbOp, StoreOp, StoreLseOp, StorePaddingOp, ClearSliceOp, CombineOp,
            AddSinkOp, RecomputeRowsOp, RolesOp, PersistentLoopOp, PublishWorkOp, ReloadWorkOp, ProducerLoadOp,
            ConsumerWaitOp, ConsumerAdvanceOp, WarpgroupRowsOp, ConsumerReleaseOp, ProducerStoreOp, StashOp,
            PreprocessOp, CopyRowStatisticsOp, ProducerLoadRowStatisticsOp, ProbabilitiesOp, GradScoresOp, DropoutOp,
            DropoutBitsOp, ApplyDropoutBitsOp, DropoutGradScoresOp, StoreAndSyncOp, MmaAtbOp, MmaAtbSliceOp,
            StoreSliceOp, LoadOperandRowsOp, AddDeltaOp, AddGlobalOp, PostprocessOp, StageOp, AddGlobalOrderedOp,
            StoreWarpgroupOp, SkipAddOp, AddStagedOp, OptimizationBarrierOp, scf::ForOp, scf::IfOp>(
          [&](auto o) { print(o); })
      .Case([&](ClearOp o) { line() << "attn::clear(" << name(o.getPlace()) << ");\n"; })
      .Case([&](SyncWarpOp) { line() << "attn::sync_warp();\n"; })
      .Case([&](AccumulateDeltaOp o) {
        line() << "attn::sum_grads(" << name(o.getGrad()) << ", " << name(o.getP()) << ", " << name(o.getRow());
        os << (o.getWeighted() ? ", " + name(o.getWeighted()).str() : "") << ");\n";
      })
      .Case([&](SinglePassGradsOp o) {
        line() << "attn::row_grads"
               << (o.getKnown()    ? o.getFactor() ? "<true, true>(" : "<false, true>("
                   : o.getFactor() ? "<true>("
                                   : "(")
               << name(o.getGrad()) << ", " << name(o.getP()) << ", " << name(o.getStatistics());
        os << (o.getWeighted() ? ", " + name(o.getWeighted()).str() : "")
           << (o.getFactor() ? ", " + literal(o.getFactor()->convertToDouble()) : "") << ");\n";
      })
      .Case([&](SubtractDeltaOp o) {
        line() << "attn::take_delta(" << name(o.getAcc()) << ", " << name(o.getWeights()) << ", " << name(o.getRow())
               << ", " << literal(o.getFactor().convertToDouble()) << ");\n";
      })
      .Case([&](MmaAtbSimtOp o) {
        line() << "attn::mma_turned(" << name(o.getAcc()) << ", " << name(o.getP()) << ", " << name(o.getV()) << ");\n";
      })
      .Case([&](CacheProbabilitiesOp o) {
        line() << "attn::hold_weights(" << name(o.getHeld()) << ", " << name(o.getP()) << ", " << name(o.getGrad())
               << ", " << expr(o.getK0()) << ");\n";
      })
      .Case([&](CachedGradScoresOp o) {
        line() << "attn::held_grads(" << name(o.getGrad()) << ", " << name(o.getHeld()) << ", " << name(o.getRow())
               << ", " << expr(o.getK0()) << ");\n";
      })
      .Case([&](StoreDeltaOp o) {
        line() << "attn::store_delta(" << expr(o.getDst()) << ", " << name(o.getRow()) << ", " << expr(o.getRows())
               << ");\n";
      })
      .Case([&](ReleaseWorkOp o) { line() << "attn::forget(" << name(o.getMailbox()) << ");\n"; })
      .Case([&](StoreEntryOp o) { printCall("set", o->getOperands(), ");\n"); })
      .Case([&](StoreSinkLseOp o) { printCall("store_sinks", o->getOperands(), ");\n"); })
      .Case([&](StoreCornerOp o) { printCall("store_block", o->getOperands(), ");\n"); })
      .Case([&](StoreDiagonalSumsOp o) { printCall("store_diagonals", o->getOperands(), ");\n"); })
      .Case([&](AddSinkGradOp o) { printCall("add_sink_total", o->getOperands(), ");\n"); })
      .Case<AccumulateOp, StoreRowSumsOp, ClearEntryOp, AddTotalOp>(
          [&](Operation *o) { printCall(o->getName().stripDialect(), o->getOperands(), ");\n"); })
      .Case([&](BarrierOp) { line() << "attn::barrier();\n"; })
      .Case([&](PingPongWaitOp) { line() << "attn::take_turn();\n"; })
      .Case([&](PingPongArriveOp) { line() << "attn::pass_turn();\n"; })
      .Case([&](ConsumerReleaseEarlyOp o) {
        line() << "attn::release_early(" << name(o.getRing()) << ", " << expr(o.getMore()) << ");\n";
      })
      .Case([&](ProducerStoreZerosOp o) { line() << "attn::put_zeros(" << name(o.getRing()) << ");\n"; })
      .Case([&](ProducerCommitOp o) { line() << "attn::publish(" << name(o.getRing()) << ");\n"; })
      .Case([&](NullProductOp) {})
      .Case([&](RescaleOp o) { line() << "attn::rescale(" << name(o.getAcc()) << ", " << name(o.getRow()) << ");\n"; })
      .Case([&](ScaleOp o) {
        line() << "attn::scale(" << name(o.getPlace()) << ", " << literal(o.getFactor().convertToDouble()) << ");\n";
      })
      .Case([&](ConvertOp o) {
        line() << (o.getAtOnce() ? "attn::round_at_once(" : "attn::round(") << name(o.getP()) << ", " << name(o.getS())
               << ");\n";
      })
      .Case(
          [&](LoadOperandOp o) { line() << "attn::hold(" << name(o.getHeld()) << ", " << name(o.getSrc()) << ");\n"; })
      .Case([&](NegateOp o) { line() << "attn::negate(" << name(o.getPlace()) << ");\n"; })
      .Case([&](NormalizeOp o) {
        line() << "attn::normalize" << (o.getRepaired() ? "<true>(" : "(") << name(o.getAcc()) << ", "
               << name(o.getRow()) << ");\n";
      })
      .Case([&](ReduceRowSumsOp o) { line() << "attn::complete(" << name(o.getRow()) << ");\n"; })
      .Case([&](DivideOp o) { line() << "attn::divide(" << name(o.getAcc()) << ", " << name(o.getRow()) << ");\n"; })
      .Case([](YieldOp) {})
      .Case([&](scf::YieldOp o) {
        if (isa<scf::IfOp>(o->getParentOp()))
          for (auto [result, value] : llvm::zip_equal(o->getParentOp()->getResults(), o.getOperands()))
            line() << names.of(result) << " = " << expr(value) << ";\n";
      })
      .Default([&](Operation *) {
        if (printMetadata(op))
          return;
        if (op->getNumResults() == 1)
          return printScalar(op);
        complain(op);
        line() << "<<UNSUPPORTED " << op->getName() << ">>\n";
      });
}

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
        text << "attn::Statistics<" << t.getRows() << "> " << names.of(op.getResult()) << "("
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
          text << "attn::StatisticsRing<" << statistics.getRows() << ", " << t.getStages() << "> "
               << names.of(op.getResult()) << "(" << op.getOffset().value_or(0) << ", " << op.getBarriers().value_or(0)
               << ")";
          return;
        }
        auto tile = cast<SharedType>(t.getTile());
        auto users = [&](auto wanted) { return llvm::any_of(op->getUsers(), wanted); };
        bool put = users(llvm::IsaPred<ProducerStoreOp>), reduced = users([&](Operation *user) {
                                                            auto roles = user->getParentOfType<RolesOp>();
                                                            auto release = dyn_cast<ConsumerReleaseOp>(user);
                                                            return roles && release &&
                                                                   release.getRing() == op.getResult() &&
                                                                   roles.getDqMma().isAncestor(user->getParentRegion());
                                                          });
        bool meets =
            put && users([&](Operation *user) { // for those who put it
              auto roles = user->getParentOfType<RolesOp>();
              return isa<ConsumerWaitOp>(user) && roles && roles.getConsumer().isAncestor(user->getParentRegion());
            });
        text << (meets ? "attn::MeetingRing<"
                 : put ? "attn::PutRing<"
                       : "attn::Ring<")
             << typeOf(tile.getElement()) << ", " << tile.getRows() << ", " << tile.getCols() << ", " << t.getStages()
             << (reduced && !put ? ", /*a reducer, too=*/true" : "") << "> " << names.of(op.getResult()) << "("
             << op.getOffset().value_or(0) << ", " << op.getBarriers().value_or(0) << ")";
      })
      .Case([&](MailboxType t) {
        text << "attn::Feed<" << t.getWords() << "> " << names.of(op.getResult()) << "(" << op.getOffset().value_or(0)
             << ")";
      })
      .Case([&](RegisterOperandType t) {
        text << "attn::Held<" << typeOf(t.getElement()) << ", " << t.getRows() << ", " << t.getCols() << ", "
             << t.getWarps() << "> " << names.of(op.getResult());
      })
      .Case([&](SimtTileType t) {
        text << "attn::Strip<" << typeOf(t.getElement()) << ", " << t.getRows() << ", " << t.getCols() << ", "
             << t.getLanes() << "> " << names.of(op.getResult());
      })
      .Case([&](SimtScoresType t) {
        text << "attn::Scores<" << t.getRows() << ", " << t.getCols() << ", " << t.getLanes() << "> "
             << names.of(op.getResult());
      })
      .Case([&](SimtProbabilitiesType t) {
        text << "attn::Weights<" << t.getRows() << ", " << t.getCols() << ", " << t.getLanes() << "> "
             << names.of(op.getResult());
      })
      .Case([&](SimtSoftmaxStateType t) {
        text << "attn::StripRows<" << t.getRows() << ", " << t.getLanes() << "> " << names.of(op.getResult());
      })
      .Case([&](FragType t) {
        text << "attn::Frag<" << t.getRows() << ", " << t.getCols() << ", " << t.getWarps() << "> "
             << names.of(op.getResult());
      })
      .Case([&](SoftmaxStateType t) {
        text << "attn::Rows<" << t.getRows() << ", " << t.getWarps() << "> " << names.of(op.getResult());
      })
      .Default([&](Type) {
        text << metadataPlace(op) << " " << names.of(op.getResult()) << "(" << op.getOffset().value_or(0) << ")";
      });
  line() << type << ";\n";
}

void Printer::print(FindSequenceOp op) {
  std::string call = "attn::find_sequence<" + std::to_string(op.getQTile()) + ">(" + expr(op.getSlot()) + ", " +
                     expr(op.getCuSeqlens()) + ", " + expr(op.getOffsets()) + ", " + expr(op.getBatch()) + ", " +
                     expr(op.getTotal()) + ")";
  line() << "const auto [";
  for (OpResult result : op->getResults()) {
    names.define(result, op.nameOf(result));
    os << (result.getResultNumber() ? ", " : "") << names.of(result);
  }
  os << "] = " << call << ";\n";
}

void Printer::print(CopyAsyncOp op) {
  line();
  if (op.getWhen())
    os << "if (" << expr(op.getWhen()) << ") ";
  os << "attn::copy_" << (op.getOnce() ? "once" : "async") << "<" << op.getDim() << ">(" << names.of(op.getDst())
     << ", " << expr(op.getSrc()) << ", " << expr(op.getStride()) << ", " << expr(op.getRows()) << ");\n";
}

void Printer::print(LoadRowsOp op) {
  line() << "attn::fetch(" << names.of(op.getDst()) << ", " << expr(op.getSrc()) << ", " << expr(op.getStride()) << ", "
         << expr(op.getRows()) << ");\n";
}

void Printer::print(LoadRowStatisticsOp op) {
  Value known = op.getGradLse() ? op.getGradLse() : op.getDelta();
  std::string stride = op.getStride() ? expr(op.getStride()) : "1ll";
  line() << "attn::load_statistics(" << names.of(op.getRow()) << ", " << expr(op.getLse()) << ", " << stride << ", "
         << (known ? expr(known) : "nullptr") << ", " << (op.getGradStride() ? expr(op.getGradStride()) : stride)
         << ", " << (op.getGradLse() ? "-1.f" : "1.f") << ", " << expr(op.getRows()) << ");\n";
}

void Printer::print(StorePaddingRowsOp op) {
  line() << "attn::pad_rows<" << op.getDim() << ", " << op.getLanes() << ">(" << expr(op.getDst()) << ", "
         << expr(op.getStride()) << ", " << expr(op.getBegin()) << ", " << expr(op.getEnd()) << ", "
         << expr(op.getStep()) << ");\n";
}

void Printer::print(WaitOp op) {
  if (cast<TokenType>(op.getTokens().front().getType()).getKind() == TokenKind::copy)
    line() << "attn::wait();\n";
  else if (hopper)
    printProductWait(op);
}

void Printer::print(WaitFiniteOp op) {
  names.define(op.getFinite(), "finite");
  line() << "const bool " << names.of(op.getFinite()) << " = attn::wait_finite(" << names.of(op.getPlace()) << ");\n";
}

void Printer::print(IsFiniteOp op) {
  names.define(op.getFinite(), "own");
  line() << "const bool " << names.of(op.getFinite()) << " = attn::is_finite(" << names.of(op.getPlace()) << ");\n";
}

void Printer::print(BarrierAndOp op) {
  names.define(op.getAll(), "all");
  line() << "const bool " << names.of(op.getAll()) << " = attn::barrier_all(" << expr(op.getOwn()) << ");\n";
}

void Printer::print(SubtileOp op) {
  std::string whole = names.of(op.getTile()).str(), column = op.getColumn() ? ", " + expr(op.getColumn()) : "";
  SharedType part = op.getPart().getType();
  names.define(op.getPart(), wholeOf(op.getTile()).getDefiningOp<AllocOp>().getName().str() + "_part");
  line() << "auto " << names.of(op.getPart()) << " = attn::part<" << part.getRows() << ", " << part.getCols() << ">("
         << whole << column << ");\n";
}

void Printer::print(MmaAbtOp op) {
  const char *options =
      op.getRecomputed() ? (op.getNegated() ? "<true, true>(" : "<false, true>(") : (op.getNegated() ? "<true>(" : "(");
  std::string q = names.of(op.getQ()).str();
  if (op.getFirst())
    q = "attn::rows_from<" + std::to_string(int64_t(*op.getFirst())) + ">(" + q + ")";
  line() << "attn::mma_qk" << options << names.of(op.getS()) << ", " << q << ", " << names.of(op.getK()) << ");\n";
}

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
  line() << "attn::keep" << (op.getTransposed() ? "_turned" : "") << "(" << names.of(op.getS()) << ", "
         << expr(op.getQ0()) << ", " << expr(op.getK0()) << ", ";
  printLambda(op.getBody().front(), "});\n", op.getTransposed());
}

void Printer::print(AddSinkOp op) {
  line() << "attn::add_sink(" << names.of(op.getAcc()) << ", " << names.of(op.getRow()) << ", " << base2(scale) << ", "
         << expr(op.getQ0()) << ", ";
  printLambda(op.getBody().front(), "});\n");
}

void Printer::printLambda(Block &body, StringRef end, bool turned) {
  size_t mark = names.mark();
  const char *row = turned ? "key" : "query", *column = turned ? "query" : "key";
  const char *test[] = {row, column}, *score[] = {"score", row, column, "base", "ahead", "head"};
  bool tests = body.getNumArguments() == std::size(test), sink = body.getNumArguments() <= 1;
  os << "[=](";
  for (BlockArgument arg : body.getArguments()) {
    names.define(arg, sink ? "head" : (tests ? test : score)[arg.getArgNumber()]);
    os << (arg.getArgNumber() ? ", " : "") << typeOf(arg.getType());
    if (tests || !arg.use_empty())
      os << " " << names.of(arg);
  }
  os << ") {\n";
  printBlock(body);
  indent += 2;
  OperandRange values = body.getTerminator()->getOperands();
  bool several = values.size() > 1;
  auto join = [&](const char *between, Precedence context) {
    std::string text;
    for (Value value : values)
      text += (text.empty() ? "" : between) + expr(value, context);
    return text;
  };
  if (values.empty())
    line() << "return true;\n";
  else if (values.size() == 2 && !tests) // a score and its derivative
    line() << "return attn::Changed{" << join(", ", Precedence::Conditional) << "};\n";
  else if (several && !tests) // the score is a * b + c
    line() << "return attn::Linear{" << join(", ", Precedence::Conditional) << "};\n";
  else
    line() << "return " << join(" & ", several ? Precedence::And : Precedence::Conditional) << ";\n";
  indent -= 2;
  line() << end;
  names.close(mark);
}

std::string Printer::literal(double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (float narrow = value; std::isfinite(narrow))
    os << llvm::format("%.9ef", narrow == 0 ? 0 : value); // what is too small for a float is no literal
  else                                                    // no literal says it
    os << llvm::format("attn::float_of(0x%08xu)", llvm::bit_cast<uint32_t>(narrow));
  return text;
}

std::string Printer::base2(double scale) { return literal(scale * std::log2(std::exp(1.0))); }

void Printer::print(OnlineSoftmaxOp op) {
  line() << "attn::softmax_step(" << names.of(op.getS()) << ", " << names.of(op.getRow()) << ", "
         << names.of(op.getAcc()) << ", " << base2(op.getScale().convertToDouble()) << ");\n";
}

void Printer::print(SoftmaxOp op) {
  line() << "attn::softmax" << (op.getRepaired() ? "<true>(" : "(") << names.of(op.getS()) << ", "
         << names.of(op.getRow()) << ", " << base2(op.getScale().convertToDouble()) << ");\n";
}

void Printer::print(SoftmaxConvertOp op) {
  line() << "attn::weigh" << (op.getRepaired() ? "<true>(" : "(") << names.of(op.getP()) << ", " << names.of(op.getS())
         << ", " << names.of(op.getRow()) << ", " << base2(op.getScale().convertToDouble());
  std::string small;
  if (op.getBecomes())
    small = "attn::SmallTo{" + base2(op.getBecomes()->convertToDouble()) + "}";
  else if (op.getWithin())
    small = literal(op.getWithin()->convertToDouble());
  if (op.getModify().empty())
    os << ");\n";
  else
    printModifier(op.getAt(), small, op.getSmall(), op.getModify());
}

void Printer::print(MmaAbOp op) {
  line() << (op.getGuarded() ? "attn::mma_pv_guarded(" : "attn::mma_pv(") << names.of(op.getAcc()) << ", "
         << names.of(op.getP()) << ", " << names.of(op.getV());
  if (op.getGuarded() && op.getWhen())
    os << ", " << expr(op.getWhen());
  os << ");\n";
}

void Printer::print(StoreOp op) {
  line() << "attn::store<" << op.getDim() << ">(" << expr(op.getDst()) << ", " << expr(op.getStride()) << ", "
         << names.of(op.getAcc()) << ", " << expr(op.getRows()) << ", " << expr(op.getWriteRows()) << ");\n";
}

std::string Printer::stateOf(Value lse, Value sum) {
  return sum ? "attn::Partial{" + expr(lse) + ", " + expr(sum) + "}" : expr(lse);
}

void Printer::print(StoreLseOp op) {
  line() << "attn::store_lse(" << stateOf(op.getDst(), op.getSum()) << ", "
         << (op.getStride() ? expr(op.getStride()) + ", " : "") << names.of(op.getRow()) << ", " << base2(scale) << ", "
         << expr(op.getRows()) << ", " << expr(op.getWriteRows()) << ");\n";
}

void Printer::print(ClearSliceOp op) {
  line() << "attn::clear_share<" << op->getParentOfType<KernelOp>().getSchedule().getWarps() * 32 << ">("
         << expr(op.getTo()) << ", " << expr(op.getCount()) << ", " << expr(op.getBlock()) << ", "
         << expr(op.getBlocks()) << ");\n";
}

void Printer::print(StorePaddingOp op) {
  auto kernel = op->getParentOfType<KernelOp>();
  int64_t rows = kernel.getTileRows(), threads = kernel.getSchedule().getWarps() * 32;
  if (op.getDim() == 1) { // of an LSE
    bool pairs = isa<PairsType>(op.getStride().getType());
    line() << "attn::store_minus_inf<" << rows << ", " << threads << ">(" << expr(op.getDst()) << ", "
           << (pairs ? expr(op.getStride()) + ", " : "") << expr(op.getWriteRows()) << ");\n";
    return;
  }
  // With keys at rest, or rows that keys pass by, there is no register for what a loop over messages would know ahead
  // of them.
  bool scarce = (kernel.getKeys() && kernel.isPersistent()) || kernel.hasStationaryRows();
  line() << "attn::store_zero<" << op.getDim() << ", " << rows << ", " << threads << ">(" << expr(op.getDst()) << ", "
         << expr(op.getStride()) << ", " << expr(op.getWriteRows()) << (scarce ? ", attn::thread_here()" : "")
         << ");\n";
}

void Printer::print(CombineOp op) {
  auto schedule = op->getParentOfType<KernelOp>().getSchedule();
  line() << "attn::merge<" << op.getDim() << ", " << schedule.getQTile() << ", " << schedule.getWarps() * 32 << ">("
         << expr(op.getO()) << ", " << expr(op.getStride()) << ", " << (op.getLse() ? expr(op.getLse()) : "nullptr")
         << ", " << expr(op.getPartialO()) << ", " << expr(op.getPartialMax()) << ", " << expr(op.getPartialSum())
         << ", " << base2(op.getScale().convertToDouble()) << ", " << expr(op.getSplits()) << ", "
         << expr(op.getPitch()) << ", " << expr(op.getRows()) << ");\n";
}

void Printer::print(scf::ForOp op) {
  size_t mark = names.mark();
  auto named = dyn_cast<NameLoc>(op.getInductionVar().getLoc());
  names.define(op.getInductionVar(), named ? named.getName().getValue() : "j");
  std::string j = names.of(op.getInductionVar()).str();
  if (rolled) // a turn is thousands of instructions, or a wait
    os << "#pragma unroll 1\n";
  std::string step = isConstantIntValue(op.getStep(), 1) ? "++" + j : j + " += " + expr(op.getStep());
  line() << "for (int " << j << " = " << expr(op.getLowerBound()) << "; " << j << " < "
         << expr(op.getUpperBound(), Precedence::Additive) << "; " << step << ") {\n";
  printBlock(*op.getBody());
  line() << "}\n";
  names.close(mark);
}

void Printer::print(scf::IfOp op) {
  for (Value result : op.getResults()) {
    names.define(result, Names::wishOf(result).empty() ? "found" : Names::wishOf(result));
    line() << typeOf(result.getType()) << " " << names.of(result) << ";\n";
  }
  line() << "if (" << expr(op.getCondition()) << ") {\n";
  printBlock(op.getThenRegion().front());
  if (!op.getElseRegion().empty()) {
    line() << "} else {\n";
    printBlock(op.getElseRegion().front());
  }
  line() << "}\n";
}
