// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Clauses.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

#include "attn/Dialect/Attn/IR/AttnDialect.cpp.inc"
#include "attn/Dialect/Attn/IR/AttnEnums.cpp.inc"
#include "attn/Dialect/Attn/IR/AttnInterfaces.cpp.inc"
#include "attn/Dialect/Attn/IR/AttnOpInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnTypes.cpp.inc"

template <typename... Attrs> static SmallVector<StringRef, 32> mnemonicsOf() { return {Attrs::getMnemonic()...}; }

Attribute AttnDialect::parseAttribute(DialectAsmParser &parser, Type type) const {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  Attribute attribute;
  if (generatedAttributeParser(parser, &word, type, attribute).has_value())
    return attribute;
  SmallVector<StringRef, 32> known = mnemonicsOf<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
  InFlightDiagnostic error = parser.emitError(loc, "unknown attribute `") << word << "` in dialect `attn`";
  if (std::optional<StringRef> near = findNear(word, known))
    error << ", which is near `#attn." << *near << "`";
  return {};
}

void AttnDialect::printAttribute(Attribute attribute, DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attribute, printer);
}

void AttnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/Attn/IR/AttnTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
}
