// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

FailureOr<LayoutAttr> LayoutAttr::parseKeywords(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<LayoutKind> kind = symbolizeLayoutKind(keyword);
  if (!kind) {
    parser.emitError(loc, "expected layout `bshd`, `sbhd`, `bhsd` or `thd`, got: ") << keyword;
    return failure();
  }
  Packing packing = Packing::contiguous;
  for (Packing other : {Packing::padded, Packing::pieces})
    if (succeeded(parser.parseOptionalKeyword(stringifyPacking(other)))) {
      packing = other;
      break;
    }
  auto layout = LayoutAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), *kind, packing);
  if (!layout)
    return failure();
  return layout;
}

std::string LayoutAttr::getKeywords() const {
  std::string words = stringifyLayoutKind(getKind()).str();
  if (getPacking() != Packing::contiguous)
    words += " " + stringifyPacking(getPacking()).str();
  return words;
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<LayoutAttr> layout = parseKeywords(parser);
  if (failed(layout) || parser.parseGreater())
    return {};
  return *layout;
}

void LayoutAttr::print(AsmPrinter &printer) const { printer << "<" << getKeywords() << ">"; }

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, LayoutKind kind, Packing packing) {
  if (packing != Packing::contiguous && kind != LayoutKind::thd) // C1
    return emitError() << "`" << stringifyPacking(packing)
                       << "` goes with layout `thd`, got: " << stringifyLayoutKind(kind);
  return success();
}
