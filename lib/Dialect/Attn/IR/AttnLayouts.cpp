// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  std::optional<LayoutKind> kind = symbolizeLayoutKind(keyword);
  if (!kind) {
    parser.emitError(loc, "expected layout `bshd`, `sbhd`, `bhsd` or `thd`, got: ") << keyword;
    return {};
  }
  bool padded = succeeded(parser.parseOptionalKeyword("padded"));
  if (parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(loc, parser.getContext(), *kind, padded);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyLayoutKind(getKind()) << (getPadded() ? " padded>" : ">");
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, LayoutKind kind, bool padded) {
  if (padded && kind != LayoutKind::thd) // C1
    return emitError() << "`padded` goes with layout `thd`, got: " << stringifyLayoutKind(kind);
  return success();
}
