// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of the program dialect.
//
#include "Verifier.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::program;
using attn::rt::Extent;

/// Reads tokens as long as they can be an extent's, without quotes; `rt::Extent` reads their text.
static ParseResult parseExtent(AsmParser &parser, ExtentAttr &extent) {
  SMLoc loc = parser.getCurrentLocation();
  std::string text, closers; // closers: of the parentheses and brackets that are open
  for (bool operand = true, done = false; !done;) {
    int64_t number = 0;
    StringRef name;
    OptionalParseResult isNumber = operand ? parser.parseOptionalInteger(number) : std::nullopt;
    if (isNumber.has_value()) {
      if (*isNumber)
        return failure();
      text += std::to_string(number), operand = false;
    } else if (operand && succeeded(parser.parseOptionalKeyword(&name))) {
      text += name, operand = false;
      if (succeeded(parser.parseOptionalLParen()))
        text += "(", operand = true, closers += ')';
      else if (succeeded(parser.parseOptionalLSquare()))
        text += "[", operand = true, closers += ']';
    } else if (operand && succeeded(parser.parseOptionalLParen())) {
      text += "(", closers += ')';
    } else if (!operand && succeeded(parser.parseOptionalPlus())) {
      text += " + ", operand = true;
    } else if (!operand && succeeded(parser.parseOptionalMinus())) {
      text += " - ", operand = true;
    } else if (!operand && succeeded(parser.parseOptionalStar())) {
      text += " * ", operand = true;
    } else if (!operand && !closers.empty() && closers.back() == ')' && succeeded(parser.parseOptionalComma())) {
      text += ", ", operand = true;
    } else if (!operand && !closers.empty() &&
               succeeded(closers.back() == ')' ? parser.parseOptionalRParen() : parser.parseOptionalRSquare())) {
      text += closers.back(), closers.pop_back();
    } else {
      done = true;
    }
  }
  auto parsed = Extent::parse(text);
  if (!parsed)
    return parser.emitError(loc, parsed.error().message);
  extent = ExtentAttr::get(parser.getContext(), *parsed);
  return success();
}
static void printExtent(AsmPrinter &printer, ExtentAttr extent) { printer << extent.getText(); }
static void printExtent(OpAsmPrinter &printer, Operation *, ExtentAttr extent) { printer << extent.getText(); }

static ParseResult parseExtents(OpAsmParser &parser, ArrayAttr &extents) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    ExtentAttr extent;
    if (parseExtent(parser, extent))
      return failure();
    list.push_back(extent);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  extents = parser.getBuilder().getArrayAttr(list);
  return success();
}
static void printExtents(OpAsmPrinter &printer, Operation *, ArrayAttr extents) {
  printer << "[";
  llvm::interleaveComma(extents.getAsRange<ExtentAttr>(), printer, [&](ExtentAttr e) { printExtent(printer, e); });
  printer << "]";
}

/// `(1, 2)`
static ParseResult parseAxisList(AsmParser &parser, SmallVectorImpl<int64_t> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                        [&] { return parser.parseInteger(axes.emplace_back()); });
}
static void printAxisList(AsmPrinter &printer, ArrayRef<int64_t> axes) {
  printer << "(";
  llvm::interleaveComma(axes, printer);
  printer << ")";
}
/// A word of an enumeration.
template <typename Attr, typename Case>
static ParseResult parseWord(OpAsmParser &parser, std::optional<Case> (*symbolize)(StringRef), StringRef expected,
                             Attr &attribute) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Case> found = symbolize(word);
  if (!found)
    return parser.emitError(loc, "expected ") << expected << ", got: `" << word << "`";
  attribute = Attr::get(parser.getContext(), *found);
  return success();
}

static ParseResult parseRole(OpAsmParser &parser, RoleAttr &role) {
  return parseWord(parser, symbolizeRole, "`operand`, `result` or `array`", role);
}
static void printRole(OpAsmPrinter &printer, Operation *, RoleAttr role) { printer << stringifyRole(role.getValue()); }

/// `leading_dims all [E, ...] strided(0, 1)`, with or without what stands around the extents.
static ParseResult parseShape(OpAsmParser &parser, LeadAttr &lead, ArrayAttr &extents, DenseI64ArrayAttr &strided) {
  lead = LeadAttr::get(parser.getContext(), Lead::none);
  SmallVector<int64_t> axes;
  if ((succeeded(parser.parseOptionalKeyword("leading_dims")) &&
       parseWord(parser, symbolizeLead, "`all` or `last`", lead)) ||
      parseExtents(parser, extents) ||
      (succeeded(parser.parseOptionalKeyword("strided")) && parseAxisList(parser, axes)))
    return failure();
  strided = parser.getBuilder().getDenseI64ArrayAttr(axes);
  return success();
}
static void printShape(OpAsmPrinter &printer, Operation *op, LeadAttr lead, ArrayAttr extents,
                       DenseI64ArrayAttr strided) {
  if (lead.getValue() != Lead::none)
    printer << "leading_dims " << stringifyLead(lead.getValue()) << " ";
  printExtents(printer, op, extents);
  if (strided.empty())
    return;
  printer << " strided";
  printAxisList(printer, strided);
}

static ParseResult parseGrid(OpAsmParser &parser, GridUnitAttr &unit, ExtentAttr &blocks) {
  return failure(
      parser.parseKeyword("grid") || parser.parseLParen() ||
      parseWord(parser, symbolizeGridUnit, "`query_tiles`, `kv_tiles`, `sequence_tiles` or `clusters`", unit) ||
      parser.parseComma() || parseExtent(parser, blocks) || parser.parseRParen());
}
static void printGrid(OpAsmPrinter &printer, Operation *, GridUnitAttr unit, ExtentAttr blocks) {
  printer << "grid(" << stringifyGridUnit(unit.getValue()) << ", ";
  printExtent(printer, blocks);
  printer << ")";
}

/// `rows(i of n)`, or nothing.
static ParseResult parseOptionalRows(AsmParser &parser, ExtentAttr &part, ExtentAttr &parts) {
  if (failed(parser.parseOptionalKeyword("rows")))
    return success();
  return failure(parser.parseLParen() || parseExtent(parser, part) || parser.parseKeyword("of") ||
                 parseExtent(parser, parts) || parser.parseRParen());
}
static void printOptionalRows(AsmPrinter &printer, ExtentAttr part, ExtentAttr parts) {
  if (parts)
    printer << " rows(" << part.getText() << " of " << parts.getText() << ")";
}

/// `%dst rows(i of n), %src offset E rows(send A, receive B)`
static ParseResult parseExchange(OpAsmParser &parser, OpAsmParser::UnresolvedOperand &destination, ExtentAttr &part,
                                 ExtentAttr &parts, OpAsmParser::UnresolvedOperand &source, ExtentAttr &offset,
                                 ExtentAttr &sent, ExtentAttr &received) {
  if (parser.parseOperand(destination) || parseOptionalRows(parser, part, parts) || parser.parseComma() ||
      parser.parseOperand(source) || parser.parseKeyword("offset") || parseExtent(parser, offset))
    return failure();
  if (failed(parser.parseOptionalKeyword("rows")))
    return success();
  return failure(parser.parseLParen() || parser.parseKeyword("send") || parseExtent(parser, sent) ||
                 parser.parseComma() || parser.parseKeyword("receive") || parseExtent(parser, received) ||
                 parser.parseRParen());
}
static void printExchange(OpAsmPrinter &printer, Operation *, Value destination, ExtentAttr part, ExtentAttr parts,
                          Value source, ExtentAttr offset, ExtentAttr sent, ExtentAttr received) {
  printer << destination;
  printOptionalRows(printer, part, parts);
  printer << ", " << source << " offset " << offset.getText();
  if (sent)
    printer << " rows(send " << sent.getText() << ", receive " << received.getText() << ")";
}

//===--------------------------------------------------------------------===//
// Repeats
//===--------------------------------------------------------------------===//

/// `"step" = ranks - 1 carry(%cur = %k, ...) { ... }`
ParseResult RepeatOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  ExtentAttr count;
  SmallVector<OpAsmParser::Argument> carried;
  SmallVector<OpAsmParser::UnresolvedOperand> initial;
  SmallVector<Attribute> names;
  Type value = ValueType::get(parser.getContext());
  auto parseOne = [&]() -> ParseResult {
    OpAsmParser::Argument &argument = carried.emplace_back();
    if (parser.parseArgument(argument) || parser.parseEqual() || parser.parseOperand(initial.emplace_back()))
      return failure();
    argument.type = value;
    names.push_back(parser.getBuilder().getStringAttr(argument.ssaName.name.drop_front()));
    return success();
  };
  if (parser.parseAttribute(name) || parser.parseEqual() || parseExtent(parser, count) ||
      (succeeded(parser.parseOptionalKeyword("carry")) &&
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne)) ||
      parser.resolveOperands(initial, value, result.operands) || parser.parseRegion(*result.addRegion(), carried) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  ensureTerminator(*result.regions.back(), parser.getBuilder(), result.location);
  result.addAttribute(getNameAttrName(result.name), name);
  result.addAttribute(getCountAttrName(result.name), count);
  result.addAttribute(getNamesAttrName(result.name), parser.getBuilder().getArrayAttr(names));
  result.addTypes(SmallVector<Type>(carried.size(), value));
  return success();
}

void RepeatOp::print(OpAsmPrinter &printer) {
  printer << " " << getNameAttr() << " = " << getCount().getText();
  if (!getInitial().empty()) {
    printer << " carry(";
    llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInitial()), printer,
                          [&](auto carried) { printer << std::get<0>(carried) << " = " << std::get<1>(carried); });
    printer << ")";
  }
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/!getInitial().empty());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getNameAttrName(), getCountAttrName(), getNamesAttrName()});
}

void RepeatOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (getNames().size() == region.getNumArguments())
    for (auto [argument, name] : llvm::zip(region.getArguments(), getNames().getAsValueRange<StringAttr>()))
      setName(argument, name);
}

//===--------------------------------------------------------------------===//
// Arguments of launches
//===--------------------------------------------------------------------===//

/// `parseTensor` reads the tensor where the text has it.
static ArgumentAttr parseArgument(AsmParser &parser, llvm::function_ref<ParseResult()> parseTensor) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (parser.parseKeyword(&word))
    return {};
  ArgumentKind kind = ArgumentKind::pointer;
  Effect effect = Effect::none;
  ExtentAttr part, parts;
  bool orZero = false;
  SmallVector<int64_t> axes;
  ExtentAttr extent;
  if (std::optional<ArgumentKind> named = symbolizeArgumentKind(word); named && *named > ArgumentKind::map) {
    kind = *named;
    if (kind == ArgumentKind::size && parseExtent(parser, extent))
      return {};
    if (kind == ArgumentKind::stride &&
        (parseTensor() || parser.parseKeyword("axis") || parser.parseInteger(axes.emplace_back())))
      return {};
  } else if (std::optional<Effect> access = symbolizeEffect(word); access && *access != Effect::none) {
    effect = *access;
    if (succeeded(parser.parseOptionalKeyword("map")))
      kind = ArgumentKind::map;
    if (parseTensor())
      return {};
    if (kind == ArgumentKind::map && (parser.parseKeyword("axes") || parseAxisList(parser, axes)))
      return {};
    if (parseOptionalRows(parser, part, parts))
      return {};
    if (succeeded(parser.parseOptionalKeyword("or"))) {
      if (parser.parseKeyword("zero"))
        return {};
      orZero = true;
    }
  } else {
    parser.emitError(
        loc, "expected `read`, `write`, `update`, `scratch`, `unused`, `stride`, `size`, `blocks` or `counter`, got: `")
        << word << "`";
    return {};
  }
  return ArgumentAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), kind, effect, part, parts,
                                  orZero, axes, extent);
}

static void printArgument(AsmPrinter &printer, ArgumentAttr argument, llvm::function_ref<void()> printTensor) {
  if (argument.getEffect() == Effect::none)
    printer << stringifyArgumentKind(argument.getKind());
  else
    printer << stringifyEffect(argument.getEffect()) << (argument.getKind() == ArgumentKind::map ? " map" : "");
  if (argument.hasTensor())
    printTensor();
  if (argument.getKind() == ArgumentKind::size) {
    printer << " ";
    printExtent(printer, argument.getExtent());
  }
  if (argument.getKind() == ArgumentKind::stride)
    printer << " axis " << argument.getAxes()[0];
  if (argument.getKind() == ArgumentKind::map) {
    printer << " axes";
    printAxisList(printer, argument.getAxes());
  }
  printOptionalRows(printer, argument.getPart(), argument.getParts());
  if (argument.getOrZero())
    printer << " or zero";
}

Attribute ArgumentAttr::parse(AsmParser &parser, Type) {
  ArgumentAttr argument;
  if (parser.parseLess() || !(argument = parseArgument(parser, [] { return success(); })) || parser.parseGreater())
    return {};
  return argument;
}

void ArgumentAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printArgument(printer, *this, [] {});
  printer << ">";
}

static ParseResult parseArguments(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &tensors,
                                  ArrayAttr &arguments) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    ArgumentAttr argument = parseArgument(parser, [&] { return parser.parseOperand(tensors.emplace_back()); });
    list.push_back(argument);
    return success(bool(argument));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  arguments = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printArguments(OpAsmPrinter &printer, Operation *, OperandRange tensors, ArrayAttr arguments) {
  printer << "(";
  auto tensor = tensors.begin();
  llvm::interleaveComma(arguments.getAsRange<ArgumentAttr>(), printer, [&](ArgumentAttr argument) {
    printArgument(printer, argument, [&] { printer << " " << *tensor++; });
  });
  printer << ")";
}

#include "attn/Dialect/Program/IR/ProgramDialect.cpp.inc"
#include "attn/Dialect/Program/IR/ProgramEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Program/IR/ProgramTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Program/IR/ProgramAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "attn/Dialect/Program/IR/ProgramOps.cpp.inc"

void ProgramDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Program/IR/ProgramTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Program/IR/ProgramAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Program/IR/ProgramOps.cpp.inc"
      >();
}

void TensorOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getTensor(), getName()); }
void BufferOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getTensor(), getName()); }

//===--------------------------------------------------------------------===//
// Attributes
//===--------------------------------------------------------------------===//

Extent ExtentAttr::getExtent() const { return *Extent::parse(getText()); }

LogicalResult ExtentAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef text) {
  auto parsed = Extent::parse(text);
  if (!parsed)
    return emitError() << parsed.error().message;
  if (parsed->str() != text)
    return emitError() << "expected the text of an extent as it is printed, `" << parsed->str() << "`, got: `" << text
                       << "`";
  return success();
}

LogicalResult attn::program::verifyRows(llvm::function_ref<InFlightDiagnostic()> emitError, ExtentAttr part,
                                        ExtentAttr parts) {
  if (bool(part) != bool(parts))
    return emitError() << "expected a class of rows and how many there are, got: one of these";
  if (std::optional<int64_t> number = part ? part.getExtent().constant() : std::nullopt) {
    constexpr int64_t mostParts = 64;
    std::optional<int64_t> count = parts.getExtent().constant();
    if (!count || *count < 2 || *count > mostParts)
      return emitError() << "expected 2 to " << mostParts << " classes of rows, got: " << parts.getText();
    if (*number < 0 || *number >= *count)
      return emitError() << "expected a class of rows from 0 to " << *count - 1 << ", got: " << *number;
  }
  return success();
}

LogicalResult ArgumentAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArgumentKind kind, Effect effect,
                                   ExtentAttr part, ExtentAttr parts, bool orZero, ArrayRef<int64_t> axes,
                                   ExtentAttr extent) {
  bool accesses = kind == ArgumentKind::pointer || kind == ArgumentKind::map;
  if (accesses != (effect != Effect::none) || (kind == ArgumentKind::map && effect != Effect::read)) // C1
    return emitError() << "expected "
                       << (kind == ArgumentKind::map ? "`read` with a map" : "an effect with pointers alone")
                       << ", got: " << stringifyEffect(effect);
  if ((parts || orZero) && effect != Effect::write) // C2
    return emitError() << "expected `rows` and `or zero` with `write` alone, got: " << stringifyEffect(effect);
  if (failed(verifyRows(emitError, part, parts)))
    return failure();
  bool isMap = kind == ArgumentKind::map;
  size_t least = isMap ? 2 : kind == ArgumentKind::stride ? 1 : 0, most = isMap ? 3 : least;
  if (axes.size() < least || axes.size() > most) // C3
    return emitError() << "expected 2 or 3 axes of a map, got: " << axes.size();
  if ((kind == ArgumentKind::size) != bool(extent))
    return emitError() << "expected an extent with `size` alone, got: " << stringifyArgumentKind(kind);
  return success();
}
