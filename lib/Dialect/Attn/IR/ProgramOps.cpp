// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.program: operands, calls and results.
//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace attn;

static LogicalResult verifyIdentifier(Operation *op, StringRef name) {
  if (!isIdentifier(name)) // C2
    return op->emitOpError("expected an identifier as a name, got: \"") << name << "\"";
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  if (failed(verifyIdentifier(*this, getSymName())))
    return failure();
  Block &body = getBody().front();
  if (body.getNumArguments()) // C1
    return emitOpError("expected no block arguments, got: ") << body.getNumArguments();
  llvm::StringSet<> names;
  llvm::DenseSet<Value> given;
  bool hasResult = false;
  for (Operation &op : body) {
    StringRef name;
    if (auto operand = dyn_cast<OperandOp>(op))
      name = operand.getName();
    else if (auto result = dyn_cast<ResultOp>(op)) {
      name = result.getName(), hasResult = true;
      if (!result.getTensor().getDefiningOp<CallOp>()) // C3
        return result.emitOpError("expected a result of an `attn.call`, got: an operand");
      if (!given.insert(result.getTensor()).second) // C3
        return result.emitOpError("expected each tensor to be a result once, got: a second time");
    } else if (!isa<CallOp>(op)) { // C1
      return op.emitOpError("expected operands, calls and results in an `attn.program`, got: `")
             << op.getName().getStringRef() << "`";
    } else {
      continue;
    }
    if (failed(verifyIdentifier(&op, name)))
      return failure();
    if (!names.insert(name).second) // C2
      return op.emitOpError("expected distinct names of operands and results, got: \"") << name << "\" twice";
  }
  if (!hasResult) // C1
    return emitOpError("expected an `attn.result`, got: none");
  return success();
}

/// May a program call it?
static bool isCallee(Operation *op) {
  return isa_and_nonnull<ProblemOp, BackwardOp, GatherRowsOp, ComputationInterface>(op);
}

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto call : getOps<CallOp>())
    if (!isCallee(symbols.lookupNearestSymbolFrom(*this, call.getCalleeAttr())))
      return call.emitOpError("expected the name of a computation in the module, got: ") << call.getCalleeAttr();
  return success();
}

void OperandOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getTensor(), getName()); }

void CallOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (auto [result, name] : llvm::zip_equal(getResults(), getResultNames().getAsValueRange<StringAttr>()))
    setName(result, name);
}

LogicalResult CallOp::verify() {
  if (getOperandNames().size() != getTensors().size()) // C1
    return emitOpError("expected a name for each of ")
           << getTensors().size() << " operands, got: " << getOperandNames().size();
  if (getResultNames().size() != getResults().size()) // C1
    return emitOpError("expected a name for each of ")
           << getResults().size() << " results, got: " << getResultNames().size();
  for (ArrayAttr names : {getOperandNames(), getResultNames()}) {
    llvm::StringSet<> distinct;
    for (StringRef name : names.getAsValueRange<StringAttr>())
      if (!distinct.insert(name).second) // C2
        return emitOpError("expected each name once, got: `") << name << "` twice";
  }
  return success();
}

// %o, %lse = attn.call @callee(q = %q, k = %k) -> (o, lse)
ParseResult CallOp::parse(OpAsmParser &parser, OperationState &result) {
  FlatSymbolRefAttr callee;
  Builder &b = parser.getBuilder();
  SmallVector<Attribute> operandNames, resultNames;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  auto parseName = [&](SmallVector<Attribute> &names) -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name))
      return failure();
    names.push_back(b.getStringAttr(name));
    return success();
  };
  auto parseOperand = [&]() -> ParseResult {
    return failure(parseName(operandNames) || parser.parseEqual() || parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseAttribute(callee) || parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOperand))
    return failure();
  if (succeeded(parser.parseOptionalArrow()) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] { return parseName(resultNames); }))
    return failure();
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  Type tensor = ProgramTensorType::get(parser.getContext());
  auto &properties = result.getOrAddProperties<Properties>();
  properties.callee = callee;
  properties.operand_names = b.getArrayAttr(operandNames);
  properties.result_names = b.getArrayAttr(resultNames);
  result.types.assign(resultNames.size(), tensor);
  return parser.resolveOperands(operands, tensor, result.operands);
}

void CallOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getCalleeAttr() << '(';
  llvm::interleaveComma(llvm::zip_equal(getOperandNames().getAsValueRange<StringAttr>(), getTensors()),
                        printer.getStream(), [&](auto pair) {
                          printer.printKeywordOrString(std::get<0>(pair));
                          printer << " = " << std::get<1>(pair);
                        });
  printer << ')';
  if (!getResults().empty()) {
    printer << " -> (";
    llvm::interleaveComma(getResultNames().getAsValueRange<StringAttr>(), printer.getStream(),
                          [&](StringRef name) { printer.printKeywordOrString(name); });
    printer << ')';
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), getAttributeNames());
}
