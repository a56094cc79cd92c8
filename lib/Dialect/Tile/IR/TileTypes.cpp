// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn::tile;

/// `RxC`, with or without a trailing `x`.
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
  int64_t pitch = SharedType::swizzled;
  if (parser.parseLess() || parseExtents(parser, extents, true) || parser.parseType(element) || parser.parseComma())
    return {};
  if (failed(parser.parseOptionalKeyword("swizzled"))) {
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseInteger(pitch))
      return {};
    if (pitch == SharedType::swizzled) {
      parser.emitError(at, "expected a positive pitch or `swizzled`, got: 0");
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SharedType>(loc, parser.getContext(), extents[0], extents[1], element, pitch);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x" << getCols() << "x" << getElement() << ", ";
  isSwizzled() ? printer << "swizzled" : printer << getPitch();
  printer << ">";
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols, Type element,
                                 int64_t pitch) {
  if (rows <= 0 || (pitch == swizzled && rows % 16) || cols <= 0 || cols % 16 ||
      (pitch < cols && pitch != swizzled)) // C1
    return emitError()
           << "expected columns of a shared tile and, if swizzled, rows in multiples of 16, and pitch >= columns, got: "
           << rows << "x" << cols << ", pitch " << pitch;
  if (!element.isBF16() && !element.isF16() && (!element.isF32() || pitch == swizzled)) // C2
    return emitError() << "expected a shared tile of bf16, f16 or, if not swizzled, f32, got: " << element;
  return success();
}

Type TensorMapType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> rows;
  Type element;
  if (parser.parseLess() || parser.parseDimensionList(rows, /*allowDynamic=*/false, /*withTrailingX=*/true) ||
      parser.parseType(element))
    return {};
  bool packed = false;
  std::optional<int64_t> stride;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc at = parser.getCurrentLocation();
    if (!packed && !stride && succeeded(parser.parseOptionalKeyword("packed"))) {
      packed = true;
    } else if (!stride && succeeded(parser.parseOptionalKeyword("stride"))) {
      if (parser.parseInteger(stride.emplace()))
        return {};
    } else {
      parser.emitError(at, "expected `packed` or `stride N` at most once each, in this order");
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  if (rows.size() != 1 && rows.size() != 2) {
    parser.emitError(loc, "expected the rows of a box, or its rows and heads, got: ") << rows.size() << " extents";
    return {};
  }
  return parser.getChecked<TensorMapType>(loc, parser.getContext(), rows[0], rows.size() == 2 ? rows[1] : 1, element,
                                          packed, stride.value_or(1));
}

void TensorMapType::print(AsmPrinter &printer) const {
  printer << "<" << getRows() << "x";
  if (getHeads() != 1)
    printer << getHeads() << "x";
  printer << getElement() << (isPacked() ? ", packed" : "");
  if (getStride() != 1)
    printer << ", stride " << getStride();
  printer << ">";
}

LogicalResult TensorMapType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t heads,
                                    Type element, bool /*packed*/, int64_t stride) {
  if (rows < 1 || heads < 1 || rows * heads < 16 || rows * heads > 256 || !(element.isBF16() || element.isF16())) // C1
    return emitError() << "expected boxes of 16 to 256 rows of bf16 or f16, got: " << rows * heads << " of " << element;
  if (stride < 1 || stride > 8 || rows * stride > 256 || (stride != 1 && heads != 1)) // C2
    return emitError() << "expected a stride from 1 to 8 of boxes that span 256 rows at most, and 1 with several "
                          "heads, got: stride "
                       << stride << " of " << rows << " rows and " << heads << " heads";
  return success();
}

LogicalResult PairsType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t heads, Type number) {
  if (heads < 2 || heads > 256 || !(number.isInteger(32) || number.isInteger(64))) // C1
    return emitError() << "expected pairs with one of 2 to 256 heads, counted in i32 or i64, got: " << heads << " in "
                       << number;
  return success();
}

/// `<2, <64x128xbf16, swizzled>>`: the mnemonic of a shared tile is omitted.
Type RingType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t stages = 0;
  Type tile;
  if (parser.parseLess() || parser.parseInteger(stages) || parser.parseComma())
    return {};
  OptionalParseResult named = parser.parseOptionalType(tile);
  if (named.has_value() ? failed(*named) : !(tile = SharedType::parse(parser)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RingType>(loc, parser.getContext(), stages, tile);
}

void RingType::print(AsmPrinter &printer) const {
  printer << "<" << getStages() << ", ";
  if (auto shared = dyn_cast<SharedType>(getTile()))
    printer.printStrippedAttrOrType(shared);
  else
    printer << getTile();
  printer << ">";
}

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stages, Type tile) {
  auto shared = dyn_cast<SharedType>(tile);
  if (stages < 1 || stages > 8 || !(shared ? shared.isSwizzled() : isa<RowStatisticsType>(tile))) // C1
    return emitError() << "expected 1 to 8 stages of a swizzled tile or of row statistics, got: " << stages << " of "
                       << tile;
  return success();
}

int64_t RingType::getSharedBytes() const { return getStages() * cast<PlaceTypeInterface>(getTile()).getSharedBytes(); }

LogicalResult StagingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t slots, int64_t bytes) {
  if (slots < 1 || slots > 8 || bytes < 0 || bytes % 128) // C1
    return emitError() << "expected 1 to 8 slots of a multiple of 128 bytes, got: " << slots << " of " << bytes;
  if (bytes == 0 && slots != 2) // C2
    return emitError() << "expected two slots of 0 bytes, one for each warp that adds, got: " << slots;
  return success();
}

LogicalResult RowStatisticsType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows) {
  if (rows < 16 || rows > 256 || rows % 16) // C1
    return emitError() << "expected row statistics of 16 to 256 rows in multiples of 16, got: " << rows;
  return success();
}

LogicalResult MailboxType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t words) {
  if (words < 1 || words > 32) // C1
    return emitError() << "expected 1 to 32 words, got: " << words;
  return success();
}

/// Verifies register operands and fragments (C1).
static LogicalResult verifySplit(function_ref<InFlightDiagnostic()> emitError, const char *what, int64_t rows,
                                 int64_t cols, int64_t warps) {
  if (warps <= 0 || rows <= 0 || rows % (16 * warps) || cols <= 0 || cols % 8)
    return emitError() << "expected rows of a " << what << " in multiples of 16 * warps and columns of 8, got: " << rows
                       << "x" << cols << " over " << warps << " warps";
  return success();
}

/// `<rows x cols, number>`, distributed over so many warps or lanes.
template <typename T> static Type parseOver(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> extents;
  int64_t number = 0;
  if (parser.parseLess() || parseExtents(parser, extents, false) || parser.parseComma() ||
      parser.parseInteger(number) || parser.parseGreater())
    return {};
  return parser.getChecked<T>(loc, parser.getContext(), extents[0], extents[1], number);
}
/// `<rows x cols x element, number>`
template <typename T> static Type parseElementsOver(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> extents;
  Type element;
  int64_t number = 0;
  if (parser.parseLess() || parseExtents(parser, extents, true) || parser.parseType(element) || parser.parseComma() ||
      parser.parseInteger(number) || parser.parseGreater())
    return {};
  return parser.getChecked<T>(loc, parser.getContext(), extents[0], extents[1], element, number);
}
template <typename T> static void printOver(AsmPrinter &printer, T type, int64_t number) {
  printer << "<" << type.getRows() << "x" << type.getCols() << ", " << number << ">";
}
template <typename T> static void printElementsOver(AsmPrinter &printer, T type, int64_t number) {
  printer << "<" << type.getRows() << "x" << type.getCols() << "x" << type.getElement() << ", " << number << ">";
}

Type RegisterOperandType::parse(AsmParser &parser) { return parseElementsOver<RegisterOperandType>(parser); }
void RegisterOperandType::print(AsmPrinter &printer) const { printElementsOver(printer, *this, getWarps()); }

LogicalResult RegisterOperandType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                                          Type, int64_t warps) {
  return verifySplit(emitError, "register operand", rows, cols, warps);
}

Type FragType::parse(AsmParser &parser) { return parseOver<FragType>(parser); }
void FragType::print(AsmPrinter &printer) const { printOver(printer, *this, getWarps()); }

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

bool attn::tile::isLaneCount(int64_t lanes) { return llvm::is_contained({1, 2, 4, 8, 16, 32}, lanes); }

static LogicalResult verifyLanes(function_ref<InFlightDiagnostic()> emitError, int64_t lanes) {
  if (!isLaneCount(lanes))
    return emitError() << "expected 1, 2, 4, 8, 16 or 32 lanes, got: " << lanes;
  return success();
}

Type SimtTileType::parse(AsmParser &parser) { return parseElementsOver<SimtTileType>(parser); }
void SimtTileType::print(AsmPrinter &printer) const { printElementsOver(printer, *this, getLanes()); }

LogicalResult SimtTileType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                                   Type element, int64_t lanes) {
  if (rows <= 0 || cols <= 0 || cols % 8 || !(element.isBF16() || element.isF16() || element.isF32())) // C1
    return emitError() << "expected rows, columns in multiples of 8 and elements of bf16, f16 or f32, got: " << rows
                       << "x" << cols << "x" << element;
  return verifyLanes(emitError, lanes); // C2
}

/// Verifies scores and probabilities (C1).
static LogicalResult verifyPairs(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                                 int64_t lanes) {
  if (rows <= 0 || cols <= 0)
    return emitError() << "expected positive rows and columns, got: " << rows << "x" << cols;
  return verifyLanes(emitError, lanes);
}

Type SimtScoresType::parse(AsmParser &parser) { return parseOver<SimtScoresType>(parser); }
void SimtScoresType::print(AsmPrinter &printer) const { printOver(printer, *this, getLanes()); }

LogicalResult SimtScoresType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                                     int64_t lanes) {
  return verifyPairs(emitError, rows, cols, lanes);
}

Type SimtProbabilitiesType::parse(AsmParser &parser) { return parseOver<SimtProbabilitiesType>(parser); }
void SimtProbabilitiesType::print(AsmPrinter &printer) const { printOver(printer, *this, getLanes()); }

LogicalResult SimtProbabilitiesType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t cols,
                                            int64_t lanes) {
  return verifyPairs(emitError, rows, cols, lanes);
}

LogicalResult SimtSoftmaxStateType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t lanes) {
  if (rows <= 0) // C1
    return emitError() << "expected a positive number of rows, got: " << rows;
  return verifyLanes(emitError, lanes);
}
