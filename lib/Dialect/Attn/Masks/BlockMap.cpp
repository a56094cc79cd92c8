// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

namespace {
enum : unsigned { Offsets = 0, Columns = 1 };
} // namespace

bool BlockMapMaskAttr::keeps(const MaskPoint &p) const { return p.listed(Offsets, p.q / getQ(), p.k / getKv()); }

SmallVector<MaskOperand> BlockMapMaskAttr::operands() const {
  MaskOperand offsets = {getOffsets().str(), OperandShape::BlockRows, getHeads()};
  offsets.lists = BlockLists{getColumns().str(), getQ(), getKv(), getPerSequence()};
  return {offsets, {getColumns().str(), OperandShape::Blocks}};
}

Cond BlockMapMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return scope.listed(Offsets, math.floorDiv(q, getQ()), math.floorDiv(k, getKv()));
}

TileTruth BlockMapMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries, Interval keys) const {
  return truthOfBlocks(math, scope, Offsets, queries, keys, getQ(), getKv());
}

LogicalResult BlockMapMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef offsets,
                                       StringRef columns, int64_t q, int64_t kv, bool, OperandHeads) {
  for (auto [name, size] : {std::pair("q", q), std::pair("kv", kv)})
    if (size < 1 || size > 1 << 20) // C2
      return emitError() << "expected `" << name << "`, of a block of a block map, within [1, 2^20], got: " << size;
  return verifyArrayNames(emitError, "a block map", {offsets, columns}); // C1
}

Attribute BlockMapMaskAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  std::string names[2];
  std::optional<int64_t> sizes[2];
  bool perSequence = false;
  std::optional<OperandHeads> heads;
  int place = 0;
  auto parseItem = [&]() -> ParseResult {
    if (place < 2)
      return parser.parseString(&names[place++]);
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    if (keyword == "q" || keyword == "kv") {
      std::optional<int64_t> &size = sizes[keyword == "kv"];
      if (size)
        return parser.emitError(loc, "`") << keyword << "` given twice";
      return failure(parser.parseEqual() || parser.parseInteger(size.emplace()));
    }
    if (keyword == "per_sequence") {
      perSequence = true;
      return success();
    }
    return parseOperandHeads(parser, loc, keyword, "`q`, `kv`, `per_sequence`", heads);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseItem))
    return {};
  if (!sizes[0] || !sizes[1]) { // C2
    parser.emitError(loc, "expected two arrays, `q` and `kv` of a block map, as in "
                          "#attn.block_map<\"offsets\", \"columns\", q = 128, kv = 128>");
    return {};
  }
  return parser.getChecked<BlockMapMaskAttr>(loc, parser.getContext(), StringRef(names[0]), StringRef(names[1]),
                                             *sizes[0], *sizes[1], perSequence, heads.value_or(OperandHeads::shared));
}

void BlockMapMaskAttr::print(AsmPrinter &printer) const {
  printer << "<\"" << getOffsets() << "\", \"" << getColumns() << "\", q = " << getQ() << ", kv = " << getKv();
  if (getPerSequence())
    printer << ", per_sequence";
  if (getHeads() != OperandHeads::shared)
    printer << ", " << stringifyOperandHeads(getHeads());
  printer << ">";
}
