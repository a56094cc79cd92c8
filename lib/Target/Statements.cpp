// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One op is one line: a call of the function of the same name in `attn/tile.h`, tiles first. Tokens are not printed
// where copies complete in order at `wait`, and products when they are issued; only Hopper's products (Roles.cpp) are
// asynchronous.
//
#include "Printer.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValues().empty()) // the caller prints the values
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
  if (auto index = dyn_cast<IndexOp>(op); index && index.getBelow())
    line() << "if (" << names.of(value) << " >= " << expr(index.getBelow()) << ") return;\n";
}

/// Can the op be printed from its operands alone, without attributes and regions?
static bool hasOperandsOnly(Operation *op) {
  auto isSizes = [](NamedAttribute attribute) { return attribute.getName() == "operandSegmentSizes"; };
  return op->getNumResults() == 0 && op->getNumRegions() == 0 && llvm::all_of(op->getAttrDictionary(), isSizes);
}

/// How an op of the dialect is printed: by an overload of `print`, as an expression if it has one result, or as a call
/// of the function of its name with its operands. An op with attributes or regions needs an overload.
template <typename Op> void Printer::printAs(Op op) {
  if constexpr (requires { print(op); })
    print(op);
  else if (op->getNumResults() == 1)
    printScalar(op);
  else if (hasOperandsOnly(op))
    printCall(op->getName().stripDialect(), op->getOperands(), ");\n");
  else
    complain(op);
}

template <typename... Ops> bool Printer::printAnyOf(Operation *op) {
  auto tryAs = [&]<typename Op>(Op *) {
    auto cast = dyn_cast<Op>(op);
    if (cast)
      printAs(cast);
    return bool(cast);
  };
  return (tryAs(static_cast<Ops *>(nullptr)) || ...);
}

void Printer::printOp(Operation *op) {
  if (printAnyOf<scf::ForOp, scf::IfOp, scf::YieldOp,
#define GET_OP_LIST
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"
                 ,
#define GET_OP_LIST
#include "attn/Dialect/Metadata/IR/MetadataOps.cpp.inc"
                 >(op))
    return;
  if (op->getNumResults() == 1)
    return printScalar(op);
  complain(op);
  line() << "<<UNSUPPORTED " << op->getName() << ">>\n";
}

void Printer::print(scf::YieldOp op) {
  if (isa<scf::IfOp>(op->getParentOp()))
    for (auto [result, value] : llvm::zip_equal(op->getParentOp()->getResults(), op.getOperands()))
      line() << names.of(result) << " = " << expr(value) << ";\n";
}

void Printer::print(ClearOp op) {
  if (!isa<PtrType>(op.getPlace().getType())) {
    line() << "attn::clear(" << names.of(op.getPlace()) << ");\n";
  } else if (!op.getCount()) {
    printCall("clear_entry", op.getPlace(), ");\n");
  } else {
    int64_t threads = op->getParentOfType<KernelOp>().getSchedule().getWarps() * 32;
    printCall("clear_slice<" + std::to_string(threads) + ">", op->getOperands(), ");\n");
  }
}

void Printer::print(BarrierOp op) { line() << (op.getWarp() ? "attn::sync_warp();\n" : "attn::barrier();\n"); }

void Printer::print(GridDependencySyncOp) { line() << "attn::grid_dependency_sync();\n"; }

void Printer::print(SinglePassGradsOp op) {
  line() << "attn::single_pass_grads"
         << (op.getKnown()    ? op.getFactor() ? "<true, true>(" : "<false, true>("
             : op.getFactor() ? "<true>("
                              : "(")
         << names.of(op.getGrad()) << ", " << names.of(op.getP()) << ", " << names.of(op.getStatistics())
         << (op.getWeighted() ? ", " + names.of(op.getWeighted()).str() : "")
         << (op.getFactor() ? ", " + literal(op.getFactor()->convertToDouble()) : "") << ");\n";
}

void Printer::print(SubtractDeltaOp op) {
  line() << "attn::subtract_delta(" << names.of(op.getAcc()) << ", " << names.of(op.getWeights()) << ", "
         << names.of(op.getRow()) << ", " << literal(op.getFactor().convertToDouble()) << ");\n";
}

void Printer::print(StoreSumsOp op) {
  if (!op.getPlace())
    return printCall("store_row_sums", op->getOperands(), ");\n");
  printCall("store_diagonal_sums", {op.getDst(), op.getPitch(), op.getAcc(), op.getPlace()}, ");\n");
}

void Printer::print(ScaleOp op) {
  if (isa<SharedType>(op.getPlace().getType()))
    return printCall("negate", op->getOperands(), ");\n");
  line() << "attn::scale(" << names.of(op.getPlace()) << ", " << literal(op.getFactor().convertToDouble()) << ");\n";
}

void Printer::print(ConvertOp op) {
  printCall(op.getAtOnce() ? "convert_at_once" : "convert", op->getOperands(), ");\n");
}

void Printer::print(NormalizeOp op) {
  printCall(op.getReduced()          ? "divide"
            : op.getRowsRecomputed() ? "normalize<true>"
                                     : "normalize",
            op->getOperands(), ");\n");
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
  os << "attn::copy_async" << (op.getOnce() ? "_once" : "") << "<" << op.getDim() << ">(" << names.of(op.getDst())
     << ", " << expr(op.getSrc()) << ", " << expr(op.getStride()) << ", " << expr(op.getRows());
  if (op.getFirst())
    os << ", attn::FirstRow{" << expr(op.getFirst()) << "}";
  os << ");\n";
}

void Printer::print(LoadRowsOp op) {
  line() << (op.getDim() ? "attn::load_operand_rows<" + std::to_string(*op.getDim()) + ">("
                         : std::string("attn::load_rows("))
         << names.of(op.getDst()) << ", " << expr(op.getSrc()) << ", " << expr(op.getStride()) << ", "
         << expr(op.getRows()) << ");\n";
}

void Printer::print(LoadRowStatisticsOp op) {
  Value known = op.getGradLse() ? op.getGradLse() : op.getDelta();
  std::string stride = op.getStride() ? expr(op.getStride()) : "1ll";
  line() << "attn::load_row_statistics(" << names.of(op.getRow()) << ", " << expr(op.getLse()) << ", " << stride << ", "
         << (known ? expr(known) : "nullptr") << ", " << (op.getGradStride() ? expr(op.getGradStride()) : stride)
         << ", " << (op.getGradLse() ? "-1.f" : "1.f") << ", " << expr(op.getRows()) << ");\n";
}

void Printer::print(WaitOp op) {
  if (cast<TokenType>(op.getTokens().front().getType()).getKind() == TokenKind::copy)
    line() << "attn::wait_copies_and_sync();\n";
  else if (hopper)
    printProductWait(op);
}

void Printer::print(WaitFiniteOp op) {
  names.define(op.getFinite(), "finite");
  line() << "const bool " << names.of(op.getFinite()) << " = attn::wait_finite(" << names.of(op.getPlace()) << ");\n";
}

void Printer::print(IsFiniteOp op) {
  names.define(op.getFinite(), "thread_finite");
  line() << "const bool " << names.of(op.getFinite()) << " = attn::is_finite(" << names.of(op.getPlace()) << ");\n";
}

void Printer::print(BarrierAndOp op) {
  names.define(op.getAll(), "all_finite");
  line() << "const bool " << names.of(op.getAll()) << " = attn::barrier_and(" << expr(op.getOwn()) << ");\n";
}

void Printer::print(SubtileOp op) {
  std::string whole = names.of(op.getTile()).str(), column = op.getColumn() ? ", " + expr(op.getColumn()) : "";
  SharedType part = op.getPart().getType();
  names.define(op.getPart(), wholeOf(op.getTile()).getDefiningOp<AllocOp>().getName().str() + "_subtile");
  line() << "auto " << names.of(op.getPart()) << " = attn::subtile<" << part.getRows() << ", " << part.getCols() << ">("
         << whole << column << ");\n";
}

void Printer::print(MmaAbtOp op) {
  const char *options =
      op.getRecomputed() ? (op.getNegated() ? "<true, true>(" : "<false, true>(") : (op.getNegated() ? "<true>(" : "(");
  std::string q = names.of(op.getQ()).str();
  if (op.getFirst())
    q = "attn::rows_from<" + std::to_string(int64_t(*op.getFirst())) + ">(" + q + ")";
  line() << "attn::mma_abt" << options << names.of(op.getS()) << ", " << q << ", " << names.of(op.getK()) << ");\n";
}

void Printer::printLambda(Block &body, StringRef end, bool transposed) {
  size_t mark = names.mark();
  const char *row = transposed ? "key" : "query", *column = transposed ? "query" : "key";
  const char *test[] = {row, column}, *score[] = {"score", row, column, "base", "column_offset", "head"};
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
    line() << "return attn::ModifiedScore{" << join(", ", Precedence::Conditional) << "};\n";
  else if (several && !tests) // the score is a * b + c
    line() << "return attn::LinearScore{" << join(", ", Precedence::Conditional) << "};\n";
  else
    line() << "return " << join(" & ", several ? Precedence::And : Precedence::Conditional) << ";\n";
  indent -= 2;
  line() << end;
  names.close(mark);
}

/// Prints a region on integers as the last argument of a call (or another one, by `end`): a lambda that returns `type`
/// of what the region yields.
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

std::string Printer::literal(double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (float narrow = value; std::isfinite(narrow))
    os << llvm::format("%.9ef", narrow == 0 ? 0 : value); // literals too small for a float are invalid
  else                                                    // no literal exists
    os << llvm::format("attn::float_of(0x%08xu)", llvm::bit_cast<uint32_t>(narrow));
  return text;
}

std::string Printer::base2(double scale) { return literal(scale * std::log2(std::exp(1.0))); }

void Printer::print(MmaAbOp op) {
  line() << (op.getGuarded() ? "attn::mma_ab_guarded(" : "attn::mma_ab(") << names.of(op.getAcc()) << ", "
         << names.of(op.getP()) << ", " << names.of(op.getV());
  if (op.getGuarded() && op.getWhen())
    os << ", " << expr(op.getWhen());
  os << ");\n";
}

void Printer::print(StoreOp op) {
  if (op.getFactor()) { // by the dQ MMA warpgroup
    line() << "attn::store_warpgroup<" << op.getDim() << ">(" << expr(op.getDst()) << ", " << expr(op.getStride())
           << ", " << names.of(op.getAcc()) << ", " << literal(op.getFactor()->convertToDouble()) << ", "
           << expr(op.getRows()) << ");\n";
    return;
  }
  line() << "attn::store<" << op.getDim() << ">(" << expr(op.getDst()) << ", " << expr(op.getStride()) << ", "
         << names.of(op.getAcc()) << ", " << expr(op.getRows()) << ", " << expr(op.getWriteRows()) << ");\n";
}

std::string Printer::stateOf(Value lse, Value sum) {
  return sum ? "attn::PartialState{" + expr(lse) + ", " + expr(sum) + "}" : expr(lse);
}

void Printer::print(StoreLseOp op) {
  line() << "attn::store_lse(" << stateOf(op.getDst(), op.getSum()) << ", "
         << (op.getStride() ? expr(op.getStride()) + ", " : "") << names.of(op.getRow()) << ", " << base2(scale) << ", "
         << expr(op.getRows()) << ", " << expr(op.getWriteRows()) << ");\n";
}

void Printer::print(ResumeOp op) {
  printCall("resume<" + std::to_string(op.getDim()) + ">", op->getOperands(), ");\n");
}

void Printer::print(AddRowsOp op) {
  printCall("add_rows<" + std::to_string(op.getDim()) + ">", op->getOperands(), ");\n");
}

void Printer::print(tile::GatherRowsOp op) {
  auto kernel = op->getParentOfType<KernelOp>();
  line() << "attn::gather_rows<" << op.getHeads() << ", " << op.getDim() << ", " << kernel.getSchedule().getWarps() * 32
         << ">(" << expr(op.getResult()) << ", " << expr(op.getRow()) << ", " << expr(op.getHead()) << ", "
         << expr(op.getIndex()) << ", " << expr(op.getTotal()) << ", " << expr(op.getFirst()) << ", "
         << expr(op.getRows());
  for (auto [i, part] : llvm::enumerate(op.getParts()))
    os << ", attn::part_of(" << expr(part) << ", " << expr(op.getStrides()[2 * i]) << ", "
       << expr(op.getStrides()[2 * i + 1]) << ")";
  os << ");\n";
}

void Printer::print(StorePaddingOp op) {
  if (op.getLanes()) {
    std::string function =
        "store_padding_rows<" + std::to_string(op.getDim()) + ", " + std::to_string(*op.getLanes()) + ">";
    return printCall(function, op->getOperands(), ");\n");
  }
  auto kernel = op->getParentOfType<KernelOp>();
  int64_t rows = kernel.getTileRows(), threads = kernel.getSchedule().getWarps() * 32;
  if (op.getDim() == 1) { // of an LSE
    bool isStrided = !matchPattern(op.getStride(), m_One());
    line() << "attn::store_padding_lse<" << rows << ", " << threads << ">(" << expr(op.getDst()) << ", "
           << (isStrided ? expr(op.getStride()) + ", " : "") << expr(op.getWriteRows()) << ");\n";
    return;
  }
  // With stationary K and V or stationary Q, no registers are left for values hoisted out of the loop over work tiles.
  bool scarce = (kernel.getKeys() && kernel.isPersistent()) || kernel.isStationaryQBackward();
  line() << "attn::store_padding<" << op.getDim() << ", " << rows << ", " << threads << ">(" << expr(op.getDst())
         << ", " << expr(op.getStride()) << ", " << expr(op.getWriteRows())
         << (scarce ? ", attn::reread_thread_index()" : "") << ");\n";
}

void Printer::print(tile::CombineOp op) {
  auto schedule = op->getParentOfType<KernelOp>().getSchedule();
  line() << "attn::combine<" << op.getDim() << ", " << schedule.getQTile() << ", " << schedule.getWarps() * 32 << ">("
         << expr(op.getO()) << ", " << expr(op.getStride()) << ", " << (op.getLse() ? expr(op.getLse()) : "nullptr")
         << ", " << expr(op.getPartialO()) << ", " << expr(op.getPartialMax()) << ", " << expr(op.getPartialSum())
         << ", " << base2(op.getScale().convertToDouble()) << ", " << expr(op.getSplits()) << ", "
         << expr(op.getPitch()) << ", " << expr(op.getRows()) << ");\n";
}

void Printer::print(CombineSumsOp op) {
  auto schedule = op->getParentOfType<KernelOp>().getSchedule();
  line() << "attn::combine_sums<" << op.getDim() << ", " << schedule.getKvTile() << ", " << schedule.getWarps() * 32
         << ">(" << expr(op.getDst()) << ", " << expr(op.getStride()) << ", " << expr(op.getPartial()) << ", "
         << expr(op.getSplits()) << ", " << expr(op.getPitch()) << ", " << expr(op.getRows()) << ");\n";
}

void Printer::print(scf::ForOp op) {
  size_t mark = names.mark();
  auto named = dyn_cast<NameLoc>(op.getInductionVar().getLoc());
  names.define(op.getInductionVar(), named ? named.getName().getValue() : "j");
  std::string j = names.of(op.getInductionVar()).str();
  if (rolled) // an iteration is thousands of instructions, or a wait
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
