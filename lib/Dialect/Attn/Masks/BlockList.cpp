// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

namespace {
enum : unsigned { Offsets = 0, Blocks = 1 };
} // namespace

bool BlockListMaskAttr::keeps(const MaskPoint &p) const { return p.listed(Offsets, p.q / getRows(), p.k / getKeys()); }

SmallVector<MaskOperand> BlockListMaskAttr::operands() const {
  MaskOperand offsets = {getBlocks().str() + "_offsets", OperandShape::BlockRows, getHeads()};
  offsets.lists = BlockLists{getBlocks().str(), getRows(), getKeys(), /*perSequence=*/true, /*fixedWidth=*/true};
  return {offsets, {getBlocks().str(), OperandShape::BlockLines, getHeads()}};
}

Cond BlockListMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return scope.listed(Offsets, math.floorDiv(q, getRows()), math.floorDiv(k, getKeys()));
}

TileTruth BlockListMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return truthOfBlocks(math, scope, Offsets, queries, keys, getRows(), getKeys());
}

LogicalResult BlockListMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef blocks, int64_t rows,
                                        int64_t keys, OperandHeads) {
  for (auto [name, size] : {std::pair("rows", rows), std::pair("keys", keys)})
    if (size < 1 || size > 1 << 20) // C2
      return emitError() << "expected `" << name << "` of a block list within [1, 2^20], got: " << size;
  return verifyArrayNames(emitError, "a block list", {blocks}); // C1
}

Attribute BlockListMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  std::optional<int64_t> sizes[2];
  std::optional<OperandHeads> heads;
  bool isFirst = true;
  auto parseItem = [&]() -> ParseResult {
    if (std::exchange(isFirst, false))
      return parser.parseString(&name);
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    if (keyword == "rows" || keyword == "keys") {
      std::optional<int64_t> &size = sizes[keyword == "keys"];
      if (size)
        return parser.emitError(loc, "`") << keyword << "` given twice";
      return failure(parser.parseEqual() || parser.parseInteger(size.emplace()));
    }
    return parseOperandHeads(parser, loc, keyword, "`rows`, `keys`", heads);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseItem))
    return {};
  if (!sizes[0] || !sizes[1]) { // C2
    parser.emitError(loc, "expected an array, `rows` and `keys` of a block list, as in "
                          "#attn.block_list<\"lists\", rows = 64, keys = 64>");
    return {};
  }
  return parser.getChecked<BlockListMaskAttr>(loc, parser.getContext(), StringRef(name), *sizes[0], *sizes[1],
                                              heads.value_or(OperandHeads::per_kv_head));
}

void BlockListMaskAttr::print(AsmPrinter &printer) const {
  printer << "<\"" << getBlocks() << "\", rows = " << getRows() << ", keys = " << getKeys();
  if (getHeads() != OperandHeads::per_kv_head)
    printer << ", " << stringifyOperandHeads(getHeads());
  printer << ">";
}
