// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of attn's ops: a table of clauses for each.
//
#include "Clauses.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

namespace {

//===--------------------------------------------------------------------===//
// Clauses of one attribute, of two numbers, or of none
//===--------------------------------------------------------------------===//

ParseResult parseOne(OpAsmParser &parser, MaskInterface &mask) { return parseMask(parser, mask); }
ParseResult parseOne(OpAsmParser &parser, Attribute &attribute) { return parser.parseAttribute(attribute); }
template <typename Attr> ParseResult parseOne(OpAsmParser &parser, Attr &attribute) {
  Builder &b = parser.getBuilder();
  Type type = std::is_same_v<Attr, IntegerAttr> ? Type(b.getI64Type())
              : std::is_same_v<Attr, FloatAttr> ? Type(b.getF64Type())
                                                : Type(b.getNoneType());
  return parser.parseCustomAttributeWithFallback(attribute, type);
}

void printOne(OpAsmPrinter &printer, Attribute attribute) { printer.printAttribute(attribute); }
void printOne(OpAsmPrinter &printer, MaskInterface mask) { printer.printStrippedAttrOrType(mask); }
template <typename Attr> void printOne(OpAsmPrinter &printer, Attr attribute) {
  printer.printAttributeWithoutType(attribute);
}

/// `N`, for both, or `M, N`.
ParseResult parsePair(OpAsmParser &parser, IntegerAttr &first, IntegerAttr &second) {
  int64_t a = 0, b = 0;
  if (parser.parseInteger(a))
    return failure();
  b = a;
  if (succeeded(parser.parseOptionalComma()) && parser.parseInteger(b))
    return failure();
  if (SMLoc loc = parser.getCurrentLocation(); succeeded(parser.parseOptionalComma()))
    return parser.emitError(loc, "expected one number for both or two, got: more");
  first = parser.getBuilder().getI64IntegerAttr(a);
  second = parser.getBuilder().getI64IntegerAttr(b);
  return success();
}

void printPair(OpAsmPrinter &printer, IntegerAttr first, IntegerAttr second) {
  printer << first.getInt();
  if (first != second)
    printer << ", " << second.getInt();
}

template <typename P, auto member>
Clause<P> one(StringRef keyword, ClauseKind kind = ClauseKind::Optional, StringRef formerly = {}) {
  return {{keyword, kind, formerly},
          [](const P &of) { return bool(of.*member); },
          [](OpAsmParser &parser, P &of) { return parseOne(parser, of.*member); },
          [](OpAsmPrinter &printer, const P &of) { printOne(printer, of.*member); }};
}

template <typename P, auto first, auto second>
Clause<P> pair(StringRef keyword, ClauseKind kind = ClauseKind::Optional, StringRef formerly = {}) {
  return {{keyword, kind, formerly},
          [](const P &of) { return of.*first && of.*second; },
          [](OpAsmParser &parser, P &of) { return parsePair(parser, of.*first, of.*second); },
          [](OpAsmPrinter &printer, const P &of) { printPair(printer, of.*first, of.*second); }};
}

template <typename P, auto member> Clause<P> flag(StringRef keyword, StringRef formerly = {}) {
  return {{keyword, ClauseKind::Flag, formerly},
          [](const P &of) { return bool(of.*member); },
          [](OpAsmParser &parser, P &of) -> ParseResult {
            of.*member = parser.getBuilder().getUnitAttr();
            return success();
          },
          nullptr};
}

//===--------------------------------------------------------------------===//
// Those of a problem that are of their own kind
//===--------------------------------------------------------------------===//

using P = ProblemOp::Properties;
using B = BackwardOp::Properties;
using S = SegmentsOp::Properties;
using R = GatherRowsOp::Properties;
using Compress = CompressOp::Properties;
using CompressBackward = CompressBackwardOp::Properties;
using Select = SelectOp::Properties;
using Combine = CombineOp::Properties;
using CombineBackward = CombineBackwardOp::Properties;
using Add = AddOp::Properties;

// `layout(thd padded)` stands for all four tensors, `layout(a, b, c, d)` for q, k, v, o.
ParseResult parseLayouts(OpAsmParser &parser, P &of) {
  SmallVector<LayoutAttr, 4> layouts;
  SMLoc loc = parser.getCurrentLocation();
  auto parseLayout = [&]() -> ParseResult {
    FailureOr<LayoutAttr> layout = LayoutAttr::parseKeywords(parser);
    if (failed(layout))
      return failure();
    layouts.push_back(*layout);
    return success();
  };
  if (parser.parseCommaSeparatedList(parseLayout))
    return failure();
  if (layouts.size() != 1 && layouts.size() != 4)
    return parser.emitError(loc, "expected one layout, or four for q, k, v and o, got: ") << layouts.size();
  layouts.resize(4, layouts.front());
  of.q_layout = layouts[0], of.k_layout = layouts[1], of.v_layout = layouts[2], of.o_layout = layouts[3];
  return success();
}

void printLayouts(OpAsmPrinter &printer, const P &of) {
  SmallVector<LayoutAttr, 4> layouts = {of.q_layout, of.k_layout, of.v_layout, of.o_layout};
  if (llvm::all_equal(layouts))
    layouts.resize(1);
  llvm::interleaveComma(layouts, printer.getStream(), [&](LayoutAttr layout) { printer << layout.getKeywords(); });
}

ParseResult parseType(OpAsmParser &parser, TypeAttr &dtype) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  OptionalParseResult parsed = parser.parseOptionalType(type);
  if (!parsed.has_value())
    return parser.emitError(loc, "expected dtype `bf16`, `f16` or `f32`, got: `") << wordAt(loc) << "`";
  if (*parsed)
    return failure();
  dtype = TypeAttr::get(type);
  return success();
}

template <typename Of, auto member> Clause<Of> type(StringRef keyword, ClauseKind kind) {
  return {{keyword, kind},
          [](const Of &of) { return bool(of.*member); },
          [](OpAsmParser &parser, Of &of) { return parseType(parser, of.*member); },
          [](OpAsmPrinter &printer, const Of &of) { printer << of.*member; }};
}

/// One of the words of an enumeration, of which an op has one.
template <typename Of, auto member, auto value> Clause<Of> word(StringRef keyword) {
  return {{keyword, ClauseKind::Flag},
          [](const Of &of) { return of.*member && (of.*member).getValue() == value; },
          [](OpAsmParser &parser, Of &of) -> ParseResult {
            auto &attribute = of.*member;
            if (attribute)
              return parser.emitError(parser.getCurrentLocation(), "expected one of `")
                     << stringifyEnum(attribute.getValue()) << "` and `" << stringifyEnum(value) << "`, got: both";
            attribute = std::decay_t<decltype(attribute)>::get(parser.getContext(), value);
            return success();
          },
          nullptr};
}

/// `layout(L)`, the same for all tensors.
template <typename Of, auto member> Clause<Of> layout() {
  return {{"layout", ClauseKind::Required},
          [](const Of &of) { return bool(of.*member); },
          [](OpAsmParser &parser, Of &of) -> ParseResult {
            FailureOr<LayoutAttr> parsed = LayoutAttr::parseKeywords(parser);
            if (succeeded(parsed))
              of.*member = *parsed;
            return success(succeeded(parsed));
          },
          [](OpAsmPrinter &printer, const Of &of) { printer << (of.*member).getKeywords(); }};
}

// `score([a, b])`; the brackets may be left out.
ParseResult parseScore(OpAsmParser &parser, P &of) {
  SmallVector<Attribute> modifiers;
  auto parseModifier = [&] { return parser.parseAttribute(modifiers.emplace_back()); };
  bool inBrackets = succeeded(parser.parseOptionalLSquare());
  if (!inBrackets || failed(parser.parseOptionalRSquare()))
    if (parser.parseCommaSeparatedList(parseModifier) || (inBrackets && parser.parseRSquare()))
      return failure();
  of.score = parser.getBuilder().getArrayAttr(modifiers);
  return success();
}

void printScore(OpAsmPrinter &printer, const P &of) { printer << of.score; }

ParseResult parseSink(OpAsmParser &parser, P &of) {
  std::string name;
  double number = 0;
  if (succeeded(parser.parseOptionalString(&name))) {
    of.sink = parser.getBuilder().getStringAttr(name);
    return success();
  }
  if (parser.parseFloat(number))
    return failure();
  of.sink = parser.getBuilder().getF64FloatAttr(number);
  return success();
}

void printSink(OpAsmPrinter &printer, const P &of) {
  if (auto number = dyn_cast<FloatAttr>(of.sink))
    printer.printFloat(number.getValue());
  else
    printer << of.sink;
}

ParseResult parseDropout(OpAsmParser &parser, P &of) {
  if (parseOne(parser, of.dropout))
    return failure();
  if (SMLoc loc = parser.getCurrentLocation(); failed(parser.parseOptionalComma()))
    return parser.emitError(loc, "expected `dropout(P, \"SEED\")`, SEED being the array of the seed, got: no array");
  return parseOne(parser, of.seed);
}

void printDropout(OpAsmPrinter &printer, const P &of) {
  printOne(printer, of.dropout);
  printer << ", ";
  printOne(printer, of.seed);
}

ParseResult parseOutputs(OpAsmParser &parser, P &of) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<StringRef, 2> names;
  if (parser.parseCommaSeparatedList([&] { return parser.parseKeyword(&names.emplace_back()); }))
    return failure();
  if (names == ArrayRef<StringRef>{"o"})
    of.no_lse = parser.getBuilder().getUnitAttr();
  else if (names != ArrayRef<StringRef>{"o", "lse"}) // C6
    return parser.emitError(loc, "expected outputs `o` or `o, lse`, got: ") << llvm::join(names, ", ");
  return success();
}

// `partial(in)`, `partial(out)`, `partial(in, out)`
ParseResult parsePartial(OpAsmParser &parser, P &of) {
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    UnitAttr &flag = word == "in" ? of.partial_in : of.partial_out;
    if ((word != "in" && word != "out") || flag)
      return parser.emitError(loc, "expected `in`, `out` or both once in `partial`, got: ") << word;
    flag = parser.getBuilder().getUnitAttr();
    return success();
  });
}

ParseResult parseOfHeads(OpAsmParser &parser, P &of) {
  SmallVector<int64_t, 3> numbers;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList([&] { return parser.parseInteger(numbers.emplace_back()); }))
    return failure();
  if (numbers.size() != 3)
    return parser.emitError(loc, "expected the first head, and all heads and kv heads, got: ")
           << numbers.size() << " numbers";
  of.of_heads = parser.getBuilder().getDenseI64ArrayAttr(numbers);
  return success();
}

void printPartial(OpAsmPrinter &printer, const P &of) {
  printer << (of.partial_in ? "in" : "") << (of.partial_in && of.partial_out ? ", " : "")
          << (of.partial_out ? "out" : "");
}

//===--------------------------------------------------------------------===//
// The tables
//===--------------------------------------------------------------------===//

const Clause<P> problemClauses[] = {
    one<P, &P::mask>("mask", ClauseKind::Required),
    {{"layout", ClauseKind::Required}, [](const P &) { return true; }, parseLayouts, printLayouts},
    pair<P, &P::heads, &P::kv_heads>("heads", ClauseKind::Required),
    pair<P, &P::dim_qk, &P::dim_v>("dims", ClauseKind::Required),
    type<P, &P::dtype>("dtype", ClauseKind::Required),
    one<P, &P::scale>("scale"),
    {{"score", ClauseKind::Optional}, [](const P &of) { return bool(of.score); }, parseScore, printScore},
    {{"sink", ClauseKind::Optional}, [](const P &of) { return bool(of.sink); }, parseSink, printSink},
    {{"dropout", ClauseKind::Optional}, [](const P &of) { return bool(of.dropout); }, parseDropout, printDropout},
    {{"outputs", ClauseKind::Optional},
     [](const P &of) { return bool(of.no_lse); },
     parseOutputs,
     [](OpAsmPrinter &printer, const P &) { printer << "o"; }},
    {{"partial", ClauseKind::Optional},
     [](const P &of) { return of.partial_in || of.partial_out; },
     parsePartial,
     printPartial},
    flag<P, &P::single_pieces>("single_pieces"),
    flag<P, &P::keep_padding>("keep_padding"),
    {{"of_heads", ClauseKind::Optional},
     [](const P &of) { return bool(of.of_heads); },
     parseOfHeads,
     [](OpAsmPrinter &printer, const P &of) { llvm::interleaveComma(of.of_heads.asArrayRef(), printer.getStream()); }},
    pair<P, &P::expected_seqlen_q, &P::expected_seqlen_kv>("expected_seqlen", ClauseKind::Optional, "typical"),
    pair<P, &P::max_seqlen_q, &P::max_seqlen_kv>("max_seqlen", ClauseKind::Optional, "bounds"),
    one<P, &P::kv_list_capacity>("kv_list_capacity", ClauseKind::Optional, "visits"),
    one<P, &P::segments>("segments"),
    one<P, &P::tiles>("tiles"),
    one<P, &P::schedule>("schedule"),
    one<P, &P::schedule_reason>("schedule_reason"),
};

const Clause<B> backwardClauses[] = {
    one<B, &B::problem>("of", ClauseKind::Required),
    flag<B, &B::deterministic>("deterministic"),
    flag<B, &B::partial_kv>("partial_kv", "merged"),
    flag<B, &B::dlse>("dlse"),
    flag<B, &B::delta>("delta"),
    flag<B, &B::float32_dq>("float32_dq"),
    flag<B, &B::float32_dkv>("float32_dkv"),
    flag<B, &B::add_dq>("add_dq"),
    flag<B, &B::add_array_grads>("add_array_grads"),
    one<B, &B::requires_grad>("requires_grad", ClauseKind::Optional, "learned"),
    one<B, &B::schedule>("schedule"),
    one<B, &B::schedule_reason>("schedule_reason"),
};

const Clause<S> segmentsClauses[] = {
    one<S, &S::mask>("mask", ClauseKind::Required),
    one<S, &S::segments>("segments", ClauseKind::Required),
    flag<S, &S::maps>("maps"),
    one<S, &S::tiles>("tiles"),
};

const Clause<R> gatherRowsClauses[] = {
    one<R, &R::parts>("parts", ClauseKind::Required), one<R, &R::heads>("heads", ClauseKind::Required),
    one<R, &R::dim>("dim", ClauseKind::Required),     type<R, &R::dtype>("dtype", ClauseKind::Required),
    type<R, &R::from>("from", ClauseKind::Optional),
};

const auto required = ClauseKind::Required;

const Clause<Compress> compressClauses[] = {
    flag<Compress, &Compress::mean>("mean"),
    flag<Compress, &Compress::k_only>("k_only"),
    one<Compress, &Compress::length>("length", required),
    one<Compress, &Compress::stride>("stride", required),
    layout<Compress, &Compress::layout>(),
    one<Compress, &Compress::kv_heads>("heads", required),
    pair<Compress, &Compress::dim_qk, &Compress::dim_v>("dims", required),
    type<Compress, &Compress::dtype>("dtype", required),
};

const Clause<CompressBackward> compressBackwardClauses[] = {
    one<CompressBackward, &CompressBackward::compress>("of", required),
    one<CompressBackward, &CompressBackward::add>("add"),
};

const Clause<Select> selectClauses[] = {
    word<Select, &Select::scorer, BlockScorer::prob>("prob"),
    word<Select, &Select::scorer, BlockScorer::mean_key>("mean_key"),
    word<Select, &Select::scorer, BlockScorer::max>("max"),
    one<Select, &Select::length>("length"),
    one<Select, &Select::stride>("stride"),
    one<Select, &Select::block>("block", required),
    one<Select, &Select::count>("count", required),
    one<Select, &Select::first>("first", required),
    one<Select, &Select::local>("local", required),
    one<Select, &Select::rows>("rows", required),
    flag<Select, &Select::per_head>("per_head"),
    layout<Select, &Select::layout>(),
    pair<Select, &Select::heads, &Select::kv_heads>("heads", required),
    one<Select, &Select::dim>("dim", required),
    type<Select, &Select::dtype>("dtype", required),
    one<Select, &Select::scale>("scale"),
};

const Clause<Combine> combineClauses[] = {
    flag<Combine, &Combine::sigmoid>("sigmoid"),
    flag<Combine, &Combine::uniform>("uniform"),
    one<Combine, &Combine::branches>("branches", required),
    layout<Combine, &Combine::layout>(),
    one<Combine, &Combine::heads>("heads", required),
    one<Combine, &Combine::dim>("dim", required),
    type<Combine, &Combine::dtype>("dtype", required),
    type<Combine, &Combine::gates>("gates", ClauseKind::Optional),
};

const Clause<CombineBackward> combineBackwardClauses[] = {
    one<CombineBackward, &CombineBackward::combine>("of", required),
};

const Clause<Add> addClauses[] = {
    one<Add, &Add::parts>("parts", required),  layout<Add, &Add::layout>(),
    one<Add, &Add::heads>("heads", required),  one<Add, &Add::dim>("dim", required),
    type<Add, &Add::dtype>("dtype", required), type<Add, &Add::from>("from", ClauseKind::Optional),
};

} // namespace

#define ATTN_CLAUSES(op, clauses)                                                                                      \
  ParseResult op::parse(OpAsmParser &parser, OperationState &result) {                                                 \
    return parseOpOf<op>(clauses, parser, result);                                                                     \
  }                                                                                                                    \
  void op::print(OpAsmPrinter &printer) { printOpOf<op>(clauses, printer, *this); }

ATTN_CLAUSES(CompressOp, compressClauses)
ATTN_CLAUSES(CompressBackwardOp, compressBackwardClauses)
ATTN_CLAUSES(SelectOp, selectClauses)
ATTN_CLAUSES(CombineOp, combineClauses)
ATTN_CLAUSES(CombineBackwardOp, combineBackwardClauses)
ATTN_CLAUSES(AddOp, addClauses)

ParseResult GatherRowsOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseOpOf<GatherRowsOp>(gatherRowsClauses, parser, result);
}
void GatherRowsOp::print(OpAsmPrinter &printer) { printOpOf<GatherRowsOp>(gatherRowsClauses, printer, *this); }

ParseResult ProblemOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseOpOf<ProblemOp>(problemClauses, parser, result);
}
void ProblemOp::print(OpAsmPrinter &printer) { printOpOf<ProblemOp>(problemClauses, printer, *this); }

ParseResult BackwardOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseOpOf<BackwardOp>(backwardClauses, parser, result);
}
void BackwardOp::print(OpAsmPrinter &printer) { printOpOf<BackwardOp>(backwardClauses, printer, *this); }

ParseResult SegmentsOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseOpOf<SegmentsOp>(segmentsClauses, parser, result);
}
void SegmentsOp::print(OpAsmPrinter &printer) { printOpOf<SegmentsOp>(segmentsClauses, printer, *this); }
