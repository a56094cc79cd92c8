// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

LogicalResult attn::verifyArrayNames(function_ref<InFlightDiagnostic()> emitError, StringRef of,
                                     ArrayRef<StringRef> names) {
  for (auto [i, name] : llvm::enumerate(names)) {
    if (!isIdentifier(name))
      return emitError() << "expected an identifier as the name of an array of " << of << ", got: \"" << name << "\"";
    if (llvm::is_contained(names.take_front(i), name))
      return emitError() << "expected different names for arrays of " << of << ", got: \"" << name << "\" twice";
  }
  return success();
}

ParseResult attn::parseArrayNames(AsmParser &parser, MutableArrayRef<std::string> names) {
  if (parser.parseLess())
    return failure();
  for (auto [i, name] : llvm::enumerate(names))
    if ((i && parser.parseComma()) || parser.parseString(&name))
      return failure();
  return parser.parseGreater();
}

void attn::printArrayNames(AsmPrinter &printer, ArrayRef<StringRef> names) {
  printer << "<";
  llvm::interleaveComma(names, printer.getStream(), [&](StringRef name) { printer << '"' << name << '"'; });
  printer << ">";
}

LogicalResult attn::verifyCount(function_ref<InFlightDiagnostic()> emitError, StringRef of,
                                std::optional<int64_t> number, StringRef array) {
  auto [what, family] = of.split(" of ");
  if (number.has_value() == !array.empty()) // C1
    return emitError() << "expected " << family << " with either a " << what << " or the name of an array";
  if (number && (*number < 0 || *number > int64_t(1) << 30)) // C2
    return emitError() << "expected the " << of << " within [0, 2^30], got: " << *number;
  if (!number && !isIdentifier(array)) // C3
    return emitError() << "expected an identifier as the name of the array of " << family << ", got: \"" << array
                       << "\"";
  return success();
}

ParseResult attn::parseCount(AsmParser &parser, std::optional<int64_t> &number, std::string &array) {
  if (parser.parseLess())
    return failure();
  if (failed(parser.parseOptionalString(&array)) && parser.parseInteger(number.emplace()))
    return failure();
  return parser.parseGreater();
}

void attn::printCount(AsmPrinter &printer, std::optional<int64_t> number, StringRef array) {
  if (number)
    printer << "<" << *number << ">";
  else
    printer << "<\"" << array << "\">";
}

ParseResult attn::parseOperandHeads(AsmParser &parser, SMLoc loc, StringRef keyword, StringRef others,
                                    std::optional<OperandHeads> &heads) {
  std::optional<OperandHeads> parsed = symbolizeOperandHeads(keyword);
  if (!parsed)
    return parser.emitError(loc, "expected ") << others << ", `shared`, `per_kv_head` or `per_head`, got: " << keyword;
  if (heads)
    return parser.emitError(loc, "expected one of `shared`, `per_kv_head` and `per_head`, got: `")
           << keyword << "` too";
  heads = parsed;
  return success();
}

TileTruth attn::truthOfBlocks(IndexMath &math, const MaskScope &scope, unsigned offsets, Interval queries,
                              Interval keys, int64_t rows, int64_t columns) {
  if (!scope.listedIn)
    return anything;
  auto blocks = [&](Interval of, int64_t size) {
    return Interval{math.floorDiv(of.lo, size), math.ceilDiv(of.hi, size)};
  };
  return scope.listedIn(offsets, blocks(queries, rows), blocks(keys, columns));
}

SmallVector<MaskOperand> attn::operandsOfCount(std::optional<int64_t> number, StringRef array) {
  if (number)
    return {};
  return {{array.str(), OperandShape::PerSequence, OperandHeads::shared, OperandEntries::End}};
}

Index attn::countOf(std::optional<int64_t> number, IndexMath &math, const MaskScope &scope, Index extent) {
  if (!scope.clamps)
    return number ? Index(*number) : scope.load(0, 0);
  if (number)
    return math.min(*number, extent);
  return math.clamp(scope.load(0, 0), 0, extent);
}
