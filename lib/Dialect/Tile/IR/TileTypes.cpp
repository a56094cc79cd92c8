// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn::tile;

/// `RxC`, with or without a further `x`.
static ParseResult parseExtents(AsmParser &parser, SmallVectorImpl<int64_t> &extents, bool trailing) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(extents, /*allowDynamic=*/false, /*withTrailingX=*/trailing))
    return failure();
  if (extents.size() != 2)
    return parser.emitError(loc, "expected rows and columns, got: ") << extents.size() << " extents";
  return success();
}

LogicalResult PtrType::verify(function_ref<InFlightDiagnostic()> emitError, Type element) {
  if (!element.isBF16() && !element.isF16() && !element.isF32() && !element.isInteger(32)) // C1
    return emitError() << "expected a pointer to bf16, f16, f32 or i32, got: " << element;
  return success();
}

Type SharedType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> extents;
  Type element;
  int64_t pitch = 0;
  if (parser.parseLess() || parseExtents(parser, extents, true) || parser.parseType(element) || parser.parseComma() ||
      parser.parseInteger(pitch) || parser.parseGreater())
    return {};
  return parser.getChecked<SharedType>(loc, parser.getContext(), extents[0], extents[1], element, pitch);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getCols() << "x" << getElement() << ", " << getPitch() << ">";
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols, Type,
                                 int64_t pitch) {
  if (rows <= 0 || rows % 16 || cols <= 0 || cols % 16 || pitch < cols) // C1
    return emitError() << "expected rows and columns of a shared tile in multiples of 16 and pitch >= columns, got: "
                       << rows << "x" << cols << ", pitch " << pitch;
  return success();
}

/// Held tiles and fragments alike (C1).
static LogicalResult verifySplit(function_ref<InFlightDiagnostic()> emitError, const char *what, int64_t rows,
                                 int64_t cols, int64_t warps) {
  if (warps <= 0 || rows <= 0 || rows % (16 * warps) || cols <= 0 || cols % 16)
    return emitError() << "expected rows of a " << what
                       << " in multiples of 16 * warps and columns of 16, got: " << rows << "x" << cols << " over "
                       << warps << " warps";
  return success();
}

Type HeldType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> extents;
  Type element;
  int64_t warps = 0;
  if (parser.parseLess() || parseExtents(parser, extents, true) || parser.parseType(element) || parser.parseComma() ||
      parser.parseInteger(warps) || parser.parseGreater())
    return {};
  return parser.getChecked<HeldType>(loc, parser.getContext(), extents[0], extents[1], element, warps);
}

void HeldType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getCols() << "x" << getElement() << ", " << getWarps() << ">";
}

LogicalResult HeldType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols, Type,
                               int64_t warps) {
  return verifySplit(emitError, "held tile", rows, cols, warps);
}

Type FragType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> extents;
  int64_t warps = 0;
  if (parser.parseLess() || parseExtents(parser, extents, false) || parser.parseComma() || parser.parseInteger(warps) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<FragType>(loc, parser.getContext(), extents[0], extents[1], warps);
}

void FragType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getCols() << ", " << getWarps() << ">";
}

LogicalResult FragType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                               int64_t warps) {
  return verifySplit(emitError, "fragment", rows, cols, warps);
}

Type TokenType::parse(AsmParser &parser) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword) || parser.parseGreater())
    return {};
  std::optional<TokenKind> kind = symbolizeTokenKind(keyword);
  if (!kind) {
    parser.emitError(loc, "expected token kind `copy` or `product`, got: ") << keyword;
    return {};
  }
  return get(parser.getContext(), *kind);
}

void TokenType::print(AsmPrinter &printer) const { printer << "<" << stringifyTokenKind(getKind()) << ">"; }

LogicalResult ConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t qTile, int64_t kvTile,
                                 int64_t warps, int64_t blocks, bool, bool) {
  if (!llvm::is_contained({1, 2, 4, 8}, warps) || qTile <= 0 || qTile > 256 || qTile % (16 * warps)) // C1
    return emitError()
           << "expected 1, 2, 4 or 8 warps and a q_tile in multiples of 16 * warps up to 256, got: q_tile = " << qTile
           << ", warps = " << warps;
  if (kvTile < 16 || kvTile > 256 || kvTile % 16) // C2
    return emitError() << "expected a kv_tile in multiples of 16 from 16 to 256, got: " << kvTile;
  if (blocks < 1 || blocks > 16) // C3
    return emitError() << "expected blocks from 1 to 16, got: " << blocks;
  return success();
}
