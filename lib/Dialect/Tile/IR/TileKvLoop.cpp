// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

/// `[%a, %b] tests [[0]], [%c, %d] tests [[]] own [%e, %f] carry(%t : type) { ... }`
ParseResult KvLoopOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  SmallVector<OpAsmParser::UnresolvedOperand> bounds, own, carried;
  SmallVector<Attribute> runs;
  SmallVector<Type> types;
  auto parseRun = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    size_t first = bounds.size();
    SmallVector<Attribute> segments;
    auto parseSegment = [&]() -> ParseResult {
      SmallVector<int64_t> tests;
      auto parseTest = [&]() -> ParseResult { return parser.parseInteger(tests.emplace_back()); };
      if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseTest))
        return failure();
      segments.push_back(builder.getDenseI64ArrayAttr(tests));
      return success();
    };
    if (parser.parseOperandList(bounds, OpAsmParser::Delimiter::Square) || parser.parseKeyword("tests") ||
        parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseSegment))
      return failure();
    if (segments.empty() || bounds.size() - first != segments.size() + 1) // C1
      return parser.emitError(loc, "expected one bound more than segments in a run, got: ")
             << bounds.size() - first << " bounds and " << segments.size() << " segments";
    runs.push_back(builder.getArrayAttr(segments));
    return success();
  };
  auto parseCarried = [&]() -> ParseResult {
    return failure(parser.parseOperand(carried.emplace_back()) || parser.parseColonType(types.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(parseRun))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("own")) && parser.parseOperandList(own, OpAsmParser::Delimiter::Square))
    return failure();
  if (parser.parseKeyword("carry") || parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseCarried))
    return failure();
  if (parser.resolveOperands(bounds, builder.getI32Type(), result.operands) ||
      parser.resolveOperands(own, builder.getI32Type(), result.operands) ||
      parser.resolveOperands(carried, types, parser.getNameLoc(), result.operands))
    return failure();
  result.addTypes(types);
  result.addAttribute(getTestsAttrName(result.name), builder.getArrayAttr(runs));
  result.getOrAddProperties<Properties>().operandSegmentSizes = {int(bounds.size()), int(own.size()),
                                                                 int(carried.size())};
  if (succeeded(parser.parseOptionalKeyword("one_body")))
    result.addAttribute(getOneBodyAttrName(result.name), builder.getUnitAttr());
  return parser.parseRegion(*result.addRegion());
}

void KvLoopOp::print(OpAsmPrinter &printer) {
  printer << " ";
  llvm::interleaveComma(getRunList(), printer, [&](const Run &run) {
    printer << "[" << run.bounds << "] tests [";
    llvm::interleaveComma(run.tests, printer, [&](ArrayRef<int64_t> tests) {
      printer << "[";
      llvm::interleaveComma(tests, printer);
      printer << "]";
    });
    printer << "]";
  });
  if (!getOwn().empty())
    printer << " own [" << getOwn() << "]";
  printer << " carry(";
  llvm::interleaveComma(getCarried(), printer, [&](Value v) { printer << v << " : " << v.getType(); });
  printer << ") ";
  if (getOneBody())
    printer << "one_body ";
  printer.printRegion(getBody());
}

SmallVector<KvLoopOp::Run> KvLoopOp::getRunList() {
  SmallVector<Run> list;
  OperandRange bounds = getBounds();
  for (auto segments : getTests().getAsRange<ArrayAttr>()) {
    Run &run = list.emplace_back();
    run.bounds = bounds.take_front(segments.size() + 1);
    bounds = bounds.drop_front(segments.size() + 1);
    for (auto tests : segments.getAsRange<DenseI64ArrayAttr>())
      run.tests.push_back(tests);
  }
  return list;
}

LogicalResult KvLoopOp::verify() {
  size_t bounds = 0;
  for (Attribute run : getTests()) {
    auto segments = dyn_cast<ArrayAttr>(run);
    if (!segments || segments.empty() || !llvm::all_of(segments, llvm::IsaPred<DenseI64ArrayAttr>)) // C1
      return emitOpError("expected each run as an array of i64 arrays, got: ") << run;
    bounds += segments.size() + 1;
  }
  if (bounds != getBounds().size())
    return emitOpError("expected ") << bounds << " bounds for its runs, got: " << getBounds().size();
  if (!getOwn().empty() && (getTests().size() != 1 || getOwn().size() != getBounds().size())) // C4
    return emitOpError("expected own bounds like those of a single run, got: ")
           << getOwn().size() << " for " << getTests().size() << " runs and " << getBounds().size() << " bounds";
  Block &body = getBody().front();
  SmallVector<Type> args(3, IntegerType::get(getContext(), 32));
  args[2] = IntegerType::get(getContext(), 1);
  llvm::append_range(args, getCarried().getTypes());
  if (body.getArgumentTypes() != TypeRange(args))
    return emitOpError("expected body arguments (tile i32, next i32, more i1, carried tokens), got: ")
           << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getValues().getTypes() != getResultTypes() || getCarried().getTypes() != getResultTypes()) // C2
    return emitOpError("expected carried, yielded and returned tokens of the same types, got: ")
           << getCarried().getTypes() << ", " << TypeRange(yield ? ValueRange(yield.getValues()) : ValueRange())
           << " and " << getResultTypes();
  int64_t conjuncts = 0;
  for (auto keep : body.getOps<ApplyMaskOp>())
    conjuncts = cast<YieldOp>(keep.getBody().front().getTerminator()).getValues().size();
  for (Run &run : getRunList())
    for (ArrayRef<int64_t> tests : run.tests)
      for (int64_t test : tests)
        if (test < 0 || test >= conjuncts) // C3
          return emitOpError("expected tests among the ")
                 << conjuncts << " conjuncts of the body's `tile.apply_mask`, got: " << test;
  return success();
}

void KvLoopOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  const char *names[] = {"j", "next", "more"};
  for (unsigned i = 0; i < 3 && i < region.getNumArguments(); ++i)
    setName(region.getArgument(i), names[i]);
}
