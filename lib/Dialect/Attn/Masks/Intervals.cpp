// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `row_interval` and `column_interval`: the ends of what a row sees, or of what sees a
// key, from run-time arrays. One is the other with rows and keys swapped.
//
#include "Arrays.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace attn;

/// begin[at] <= x < end[at], of the arrays that are there.
template <typename Mask> static bool holds(Mask mask, const MaskPoint &p, int64_t at, int64_t x) {
  bool begins = !mask.getBegin().empty();
  return (!begins || p.load(0, at) <= x) && (mask.getEnd().empty() || x < p.load(begins, at));
}

template <typename Mask> static Cond emitHolds(Mask mask, IndexMath &math, const MaskScope &scope, Index at, Index x) {
  bool begins = !mask.getBegin().empty();
  Cond holds = begins ? math.le(scope.load(0, at), x) : Cond::of(true);
  return mask.getEnd().empty() ? holds : math.logicalAnd(holds, math.lt(x, scope.load(begins, at)));
}

/// `at` and `xs` are positions of a tile.
template <typename Mask>
static TileTruth truthOf(Mask mask, IndexMath &math, const MaskScope &scope, Interval at, Interval xs) {
  bool begins = !mask.getBegin().empty();
  TileTruth truth = {Cond::of(true), Cond::of(true)};
  auto bound = [&](unsigned operand, bool isEnd) {
    std::optional<EntryRange> range = entriesOf(scope, operand, at);
    if (!range)
      return truth.all = Cond::of(false), void();
    truth.some = math.logicalAnd(truth.some, isEnd ? math.lt(xs.lo, range->largest) : math.lt(range->least, xs.hi));
    truth.all = math.logicalAnd(truth.all, isEnd ? math.le(xs.hi, range->least) : math.le(range->largest, xs.lo));
  };
  if (begins)
    bound(0, false);
  if (!mask.getEnd().empty())
    bound(begins, true);
  return truth;
}

template <typename Mask> static SmallVector<MaskOperand> arraysOf(Mask mask, OperandShape shape) {
  SmallVector<MaskOperand> arrays;
  for (auto [name, entries] : {std::pair(mask.getBegin(), OperandEntries::Begin), {mask.getEnd(), OperandEntries::End}})
    if (!name.empty())
      arrays.push_back({name.str(), shape, mask.getHeads(), entries});
  return arrays;
}

static LogicalResult verifyInterval(function_ref<InFlightDiagnostic()> emitError, StringRef mnemonic, StringRef begin,
                                    StringRef end) {
  if (begin.empty() && end.empty()) // C1
    return emitError() << "expected `#attn." << mnemonic << "` with `begin`, `end` or both (`#attn.full` has no bound)";
  SmallVector<StringRef> names;
  for (StringRef name : {begin, end})
    if (!name.empty())
      names.push_back(name);
  return verifyArrayNames(emitError, "bounds", names); // C2
}

template <typename Mask> static Attribute parseInterval(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  std::string names[2];
  std::optional<OperandHeads> heads;
  auto parseItem = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    if (keyword == "begin" || keyword == "end") {
      std::string &name = names[keyword == "end"];
      if (!name.empty())
        return parser.emitError(loc, "`") << keyword << "` given twice";
      if (parser.parseEqual() || parser.parseString(&name))
        return failure();
      return name.empty() ? parser.emitError(loc, "expected an identifier as the name of an array of bounds, got: \"\"")
                          : ParseResult(success());
    }
    return parseOperandHeads(parser, loc, keyword, "`begin`, `end`", heads);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseItem))
    return {};
  return parser.getChecked<Mask>(loc, parser.getContext(), StringRef(names[0]), StringRef(names[1]),
                                 heads.value_or(OperandHeads::shared));
}

template <typename Mask> static void printInterval(AsmPrinter &printer, Mask mask) {
  const char *comma = "";
  printer << "<";
  for (auto [keyword, name] : {std::pair("begin", mask.getBegin()), std::pair("end", mask.getEnd())})
    if (!name.empty())
      printer << std::exchange(comma, ", ") << keyword << " = \"" << name << '"';
  if (mask.getHeads() != OperandHeads::shared)
    printer << ", " << stringifyOperandHeads(mask.getHeads());
  printer << ">";
}

//===--------------------------------------------------------------------===//
// row_interval
//===--------------------------------------------------------------------===//

bool RowIntervalMaskAttr::keeps(const MaskPoint &p) const { return holds(*this, p, p.q, p.k); }

SmallVector<MaskOperand> RowIntervalMaskAttr::operands() const { return arraysOf(*this, OperandShape::PerQuery); }

Cond RowIntervalMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return emitHolds(*this, math, scope, q, k);
}

TileTruth RowIntervalMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries,
                                         Interval keys) const {
  return truthOf(*this, math, scope, queries, keys);
}

LogicalResult RowIntervalMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef begin, StringRef end,
                                          OperandHeads) {
  return verifyInterval(emitError, getMnemonic(), begin, end);
}

Attribute RowIntervalMaskAttr::parse(AsmParser &parser, Type) { return parseInterval<RowIntervalMaskAttr>(parser); }

void RowIntervalMaskAttr::print(AsmPrinter &printer) const { printInterval(printer, *this); }

//===--------------------------------------------------------------------===//
// column_interval
//===--------------------------------------------------------------------===//

bool ColumnIntervalMaskAttr::keeps(const MaskPoint &p) const { return holds(*this, p, p.k, p.q); }

SmallVector<MaskOperand> ColumnIntervalMaskAttr::operands() const { return arraysOf(*this, OperandShape::PerKey); }

Cond ColumnIntervalMaskAttr::emitKeep(IndexMath &math, const MaskScope &scope, Index q, Index k) const {
  return emitHolds(*this, math, scope, k, q);
}

TileTruth ColumnIntervalMaskAttr::tileTruth(IndexMath &math, const MaskScope &scope, Interval queries,
                                            Interval keys) const {
  return truthOf(*this, math, scope, keys, queries);
}

LogicalResult ColumnIntervalMaskAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef begin,
                                             StringRef end, OperandHeads) {
  return verifyInterval(emitError, getMnemonic(), begin, end);
}

Attribute ColumnIntervalMaskAttr::parse(AsmParser &parser, Type) {
  return parseInterval<ColumnIntervalMaskAttr>(parser);
}

void ColumnIntervalMaskAttr::print(AsmPrinter &printer) const { printInterval(printer, *this); }
