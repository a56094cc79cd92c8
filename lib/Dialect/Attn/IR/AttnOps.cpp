// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;
using namespace attn;

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"

double ProblemOp::scaleOrDefault() {
  return getScale() ? getScale()->convertToDouble() : 1.0 / std::sqrt(double(getDimQk()));
}

static std::optional<int64_t> firstOf(std::optional<uint64_t> most, std::optional<uint64_t> expected) {
  return most ? std::optional<int64_t>(*most) : expected ? std::optional<int64_t>(*expected) : std::nullopt;
}
std::optional<int64_t> ProblemOp::expectedQueries() { return firstOf(getMaxSeqlenQ(), getExpectedSeqlenQ()); }
std::optional<int64_t> ProblemOp::expectedKeys() { return firstOf(getMaxSeqlenKv(), getExpectedSeqlenKv()); }

SmallVector<ScoreModifierInterface> ProblemOp::getModifiers() {
  SmallVector<ScoreModifierInterface> modifiers;
  if (getScore())
    llvm::append_range(modifiers, getScore()->getAsRange<ScoreModifierInterface>());
  return modifiers;
}

SmallVector<ScoreOperand> attn::scoreOperands(ProblemOp problem) {
  SmallVector<ScoreOperand> distinct;
  for (ScoreModifierInterface modifier : problem.getModifiers())
    for (ScoreOperand &operand : modifier.operands())
      if (!llvm::is_contained(distinct, operand))
        distinct.push_back(std::move(operand));
  if (std::optional<ScoreOperand> sinks = problem.getSinkArray())
    distinct.push_back(std::move(*sinks));
  return distinct;
}

std::optional<ScoreOperand> ProblemOp::getSinkArray() {
  if (auto name = dyn_cast_or_null<StringAttr>(getSinkAttr()))
    return ScoreOperand{name.str(), {ScoreOperand::Head}};
  return std::nullopt;
}

std::optional<double> ProblemOp::getSinkNumber() {
  if (auto number = dyn_cast_or_null<FloatAttr>(getSinkAttr()))
    return number.getValueAsDouble();
  return std::nullopt;
}

static LogicalResult verifySink(ProblemOp problem) { // C14
  Attribute sink = problem.getSinkAttr();
  if (auto name = dyn_cast_or_null<StringAttr>(sink); name ? isIdentifier(name.getValue()) : !sink)
    return success();
  if (std::optional<double> number = problem.getSinkNumber(); number && std::abs(*number) <= 0x1p60)
    return success();
  return problem.emitOpError("expected a sink from -2^60 to 2^60 or the name of an array of them, got: ") << sink;
}

std::optional<Dropout> ProblemOp::dropoutInForce() {
  double probability = getDropout() ? getDropout()->convertToDouble() : 0;
  int64_t below = std::floor(probability * Dropout::range + 0.5);
  if (below == 0)
    return std::nullopt;
  return Dropout{getSeed()->str(), below};
}

static LogicalResult verifyDropout(ProblemOp problem) { // C15
  if (problem.getDropout().has_value() != problem.getSeed().has_value())
    return problem.emitOpError(
        "expected both a probability and the name of an array in dropout(0.1, \"seed\"), got: one");
  if (!problem.getDropout())
    return success();
  double probability = problem.getDropout()->convertToDouble();
  if (!(probability >= 0 && probability < 1 - 0x1p-16))
    return problem.emitOpError("expected a dropout probability from 0 to below 1 - 2^-16, got: ") << probability;
  if (!isIdentifier(*problem.getSeed()))
    return problem.emitOpError("expected an identifier as the name of the dropout's array, got: \"")
           << *problem.getSeed() << "\"";
  return success();
}

static LogicalResult verifyHint(ProblemOp problem, StringRef clause, std::optional<uint64_t> queries,
                                std::optional<uint64_t> keys) {
  if (queries.has_value() != keys.has_value()) // C10
    return problem.emitOpError("expected `") << clause << "` of both queries and keys, got: one";
  for (std::optional<uint64_t> length : {queries, keys})
    if (length && int64_t(*length) < 1) // C10
      return problem.emitOpError("expected a positive `") << clause << "`, got: " << int64_t(*length);
  return success();
}

static LogicalResult verifyModifiers(ProblemOp problem) {
  std::optional<ArrayAttr> score = problem.getScore();
  if (score && score->size() > 8)
    return problem.emitOpError("expected at most 8 score modifiers, got: ") << score->size();
  llvm::SmallDenseSet<TypeID> kinds;
  for (Attribute attr : score ? *score : ArrayAttr::get(problem.getContext(), {})) {
    auto modifier = dyn_cast<ScoreModifierInterface>(attr);
    if (!modifier)
      return problem.emitOpError("expected score modifiers such as #attn.softcap<30.0> or #attn.alibi, got: ") << attr;
    if (!modifier.mayRepeat() && !kinds.insert(attr.getTypeID()).second)
      return problem.emitOpError("expected at most one score modifier of this kind, got: ") << attr << " once more";
    for (const ScoreOperand &operand : modifier.operands()) // C13
      for (auto [axis, layout] :
           {std::pair(ScoreOperand::Query, problem.getQLayout()), std::pair(ScoreOperand::Key, problem.getKLayout())})
        if (operand.has(axis) && layout.isPacked())
          return problem.emitOpError("expected a dense layout of what a bias has an axis of (for packed ones: "
                                     "#attn.relative_bias), got: ")
                 << attr << " with " << layout;
  }
  return success();
}

bool attn::isIdentifier(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

std::string attn::freeSymbol(Operation *module, const Twine &name) {
  std::string free = name.str();
  while (SymbolTable::lookupSymbolIn(module, free))
    free += "_";
  return free;
}

static LogicalResult verifyNames(ProblemOp problem) {
  if (!isIdentifier(problem.getSymName()))
    return problem.emitOpError("expected an identifier as its name, got: \"") << problem.getSymName() << "\"";
  // Names that `tensorsOf` gives tensors, and those of sizes.
  llvm::StringSet<> taken = {"q",
                             "k",
                             "v",
                             "o",
                             "lse",
                             "do",
                             "dlse",
                             "delta",
                             "dq",
                             "dk",
                             "dv",
                             "batch",
                             "seqlen_q",
                             "seqlen_kv",
                             "total_q",
                             "total_kv",
                             "tiles_q",
                             "tile_count",
                             "cu_seqlens_q",
                             "ids_q",
                             "ids_kv",
                             "cu_seqlens_kv",
                             "status",
                             "id_rows",
                             "padded_offsets_q",
                             "tokens_q",
                             "tokens_kv",
                             "padded_offsets_kv",
                             "positions_q",
                             "positions_kv",
                             "position_rows_q",
                             "position_rows_kv"};
  for (const MaskOperand &array : distinctOperands(problem.getMask())) {
    if (array.lists)
      for (const std::string &list : {array.name, array.lists->columns})
        taken.insert(list + "_entries");
    if (array.isComputed())
      taken.insert(array.name);
  }
  llvm::StringSet<> listed; // by `block_list`s, one each
  auto clash = [&](const MaskOperand &array) {
    return problem.emitOpError("expected a name for the mask's array that nothing else of the problem has, got: \"")
           << (array.isComputed() && array.lists ? array.lists->columns : array.name) << "\"";
  };
  SmallVector<MaskOperand> arrays = problem.getMask().operands(); // of one name and shape, one is distinct
  for (const MaskOperand &array : arrays)
    if (!array.isComputed() &&
        llvm::any_of(arrays, [&](const MaskOperand &made) { return made.isComputed() && made.name == array.name; }))
      return clash(array);
  for (const MaskOperand &array : distinctOperands(problem.getMask()))
    if (array.isComputed() ? array.lists && !listed.insert(array.lists->columns).second
                           : !taken.insert(array.name).second)
      return clash(array);
  for (const ScoreOperand &array : scoreOperands(problem))
    if (!taken.insert(array.name).second)
      return problem.emitOpError(
                 "expected a name for the modifier's array that nothing else of the problem has, got: \"")
             << array.name << "\"";
  if (std::optional<Dropout> dropout = problem.dropoutInForce(); dropout && !taken.insert(dropout->seed).second)
    return problem.emitOpError("expected a name for the dropout's array that nothing else of the problem has, got: \"")
           << dropout->seed << "\"";
  return success();
}

/// A `heads` whose masks have not all as many heads.
static MaskInterface findUneven(MaskInterface mask, int64_t heads) {
  if (isa<HeadsMaskAttr>(mask) && heads % int64_t(mask.children().size()))
    return mask;
  for (MaskInterface child : mask.children())
    if (MaskInterface bad = findUneven(child, heads))
      return bad;
  return {};
}

ProblemOp BackwardOp::getProblemOp() {
  return SymbolTable::lookupNearestSymbolFrom<ProblemOp>(*this, getProblemAttr());
}

LogicalResult BackwardOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto problem = symbols.lookupNearestSymbolFrom<ProblemOp>(*this, getProblemAttr());
  if (!problem) // C1
    return emitOpError("expected the name of an `attn.problem` of the module, got: ") << getProblemAttr();
  auto refuse = [&](const char *expected, const auto &got) -> LogicalResult {
    InFlightDiagnostic error = emitOpError("expected ") << expected << ", got: " << got;
    error.attachNote(problem.getLoc()) << "problem declared here";
    return error;
  };
  if (!problem.hasLse()) // C2
    return refuse("a problem with outputs(o, lse)", "one without lse");
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  if (dim > widestOfTiles && dependsOnHead(problem.getMask())) // C5
    return refuse("a mask that is the same for all heads, of head dims beyond 256", problem.getMask());
  if (getPartialKv() && dim > widestOfTiles) // C7
    return refuse("head dims up to 256 with partial_kv", dim);
  if (getRequiresGrad() && dim > widestOfTiles) // C7
    return refuse("head dims up to 256 with requires_grad", "dim " + llvm::Twine(dim));
  for (auto [isGiven, expected] :
       {std::pair(getFloat32Dq() || getFloat32Dkv(), "head dims up to 256 with float32 gradients"),
        {getDelta(), "head dims up to 256 with delta"},
        {getAddDq(), "head dims up to 256 with add_dq"}})
    if (isGiven && dim > widestOfTiles) // C7
      return refuse(expected, dim);
  if (getDelta() && getDlse()) // C9
    return emitOpError("expected delta without dlse, which is a part of it, got: both");
  if (problem.getSegments() || problem.getTiles()) // C4
    return refuse("a problem without segments and tiles",
                  problem.getSegments() ? "one with segments" : "one with tiles");
  if (getAddArrayGrads() && !problem.getQLayout().hasPieces()) // C8
    return refuse("layout(thd pieces) with add_array_grads", problem.getQLayout());
  if (!isIdentifier(getSymName())) // C3
    return emitOpError("expected an identifier as its name, got: \"") << getSymName() << "\"";
  return verifyDifferentiatedArrays(*this); // C6
}

static LogicalResult verifySegments(ProblemOp problem) {
  if (std::optional<int64_t> segments = problem.getSegments()) { // C11
    for (LayoutAttr layout : {problem.getQLayout(), problem.getKLayout()})
      if (!layout.getPadded())
        return problem.emitOpError("expected layout(thd padded) with segments, got: ") << layout;
    if (problem.getTiles())
      return problem.emitOpError("expected segments without tiles (of which nobody has a list yet), got: both");
    if (failed(verifySegmentRule(problem, problem.getMask(), *segments)))
      return failure();
  }
  if (std::optional<int64_t> tile = problem.getTiles()) { // C12
    if (!problem.getQLayout().isPacked())
      return problem.emitOpError("expected packed q with tiles, got: ") << problem.getQLayout();
    if (uint64_t dim = std::max(problem.getDimQk(), problem.getDimV()); dim > widestOfTiles)
      return problem.emitOpError("expected head dims up to 256 with tiles (beyond, a tile is a sequence's own), got: ")
             << dim;
    return verifyListedTile(problem, *tile);
  }
  return success();
}

static LogicalResult verifyPieces(ProblemOp problem) { // C17
  LayoutAttr q = problem.getQLayout(), k = problem.getKLayout();
  if (q.hasPieces() != k.hasPieces())
    return problem.emitOpError("expected pieces of both q and k, or of neither, got: ") << q << " and " << k;
  if (bool partial = problem.getPartialIn() || problem.getPartialOut(); partial && !q.hasPieces()) // C18
    return problem.emitOpError("expected layout(thd pieces) with partial results, got: ") << q;
  else if (partial && problem.getNoLse()) // C18
    return problem.emitOpError("expected outputs(o, lse) with partial results, got: outputs(o)");
  if (problem.getPartialOut() && problem.getSink()) // C18
    return problem.emitOpError("expected no sink with partial(out), got: ") << *problem.getSink();
  if (bool single = problem.getSinglePieces(); (single || problem.getKeepPadding()) && !q.hasPieces()) // C20
    return problem.emitOpError("expected layout(thd pieces) with ")
           << (single ? "single_pieces" : "keep_padding") << ", got: " << q;
  if (!q.hasPieces())
    return success();
  auto refuse = [&](const char *expected, const llvm::Twine &got) {
    return problem.emitOpError("expected ") << expected << " with layout(thd pieces), got: " << got;
  };
  for (const MaskOperand &array : problem.getMask().operands())
    if (array.lists && array.lists->fixedWidth)
      return refuse("a mask without block lists (a block map takes pieces)",
                    "one that reads `" + llvm::Twine(array.lists->columns) + "`");
    else if (!array.madeOf.empty())
      return refuse("a mask without trees", "one that reads `" + llvm::Twine(array.madeOf) + "`");
  if (problem.getSegments() || problem.getTiles())
    return refuse("neither segments nor tiles", problem.getSegments() ? "segments" : "tiles");
  if (uint64_t dim = std::max(problem.getDimQk(), problem.getDimV()); dim > widestOfTiles)
    return refuse("head dims up to 256", llvm::Twine(dim));
  return success();
}

/// `; near it is 512`, `; near it are 32 and 40`
static std::string nearestDims(int64_t dim) {
  int64_t below = std::clamp<int64_t>(dim / 8 * 8, 8, 512);
  bool isBetween = dim > 8 && dim < 512;
  return isBetween ? ("; near it are " + Twine(below) + " and " + Twine(below + 8)).str()
                   : ("; near it is " + Twine(below)).str();
}

LogicalResult GatherRowsOp::verify() {
  auto isIn = [](int64_t number, int64_t least, int64_t most) { return number >= least && number <= most; };
  if (int64_t parts = getParts(); !isIn(parts, 1, 64)) // C1
    return emitOpError("expected 1 to 64 parts, got: ") << parts;
  if (int64_t heads = getHeads(); !isIn(heads, 1, 65536)) // C2
    return emitOpError("expected 1 to 65536 heads, got: ") << heads;
  if (int64_t dim = getDim(); dim != 1 && (dim % 8 || !isIn(dim, 8, 512))) // C2
    return emitOpError("expected a dim of 1 or a multiple of 8 up to 512, got: ") << dim;
  if (Type dtype = getDtype(); !dtype.isBF16() && !dtype.isF16() && !dtype.isF32()) // C3
    return emitOpError("expected dtype bf16, f16 or f32, got: ") << dtype;
  if (Type from = getPartType(); from != getDtype() && !from.isF32()) // C3
    return emitOpError("expected parts of ") << getDtype() << " or f32, got: " << from;
  if (!isIdentifier(getSymName())) // C4
    return emitOpError("expected an identifier as its name, got: \"") << getSymName() << "\"";
  return success();
}

LogicalResult ProblemOp::verify() {
  int64_t heads = getHeads(), kvHeads = getKvHeads();
  if (kvHeads < 1 || heads < 1 || heads % kvHeads != 0 || heads > 65536) // C1
    return emitOpError("expected heads to be a positive multiple of kv_heads (at most 65536), got: heads = ")
           << heads << ", kv_heads = " << kvHeads;
  for (auto [name, dim] : {std::pair("dim_qk", getDimQk()), std::pair("dim_v", getDimV())})
    if (int64_t(dim) < 8 || int64_t(dim) > 512 || dim % 8 != 0) // C2
      return emitOpError("expected ") << name << " to be a multiple of 8 from 8 to 512, got: " << int64_t(dim)
                                      << nearestDims(int64_t(dim));
  if (Type dtype = getDtype(); !dtype.isBF16() && !dtype.isF16() && !dtype.isF32()) // C3
    return emitOpError("expected dtype bf16, f16 or f32, got: ") << dtype;
  auto sameKind = [](LayoutAttr a, LayoutAttr b) {
    return a.isPacked() == b.isPacked() && a.getPacking() == b.getPacking();
  };
  if (!sameKind(getQLayout(), getOLayout())) // C4
    return emitOpError("expected q and o both dense or both packed alike, got: ")
           << getQLayout() << " and " << getOLayout();
  if (!sameKind(getKLayout(), getVLayout()))
    return emitOpError("expected k and v both dense or both packed alike, got: ")
           << getKLayout() << " and " << getVLayout();
  if (failed(verifyPieces(*this))) // C17
    return failure();
  if (std::optional<ArrayRef<int64_t>> part = getOfHeads()) { // C19
    if (!getQLayout().hasPieces())
      return emitOpError("expected layout(thd pieces) with of_heads, got: ") << getQLayout();
    int64_t first = (*part)[0], all = (*part)[1], allKv = (*part)[2];
    if (allKv < 1 || all < 1 || all % allKv || first < 0 || first + heads > all)
      return emitOpError("expected heads among those of of_heads, whose kv heads divide them, got: ")
             << heads << " heads from " << first << " of " << all << " on " << allKv;
    int64_t group = all / allKv, inGroup = first % group;
    bool isWhole = inGroup == 0 && heads == kvHeads * group, isPart = kvHeads == 1 && inGroup + heads <= group;
    if (!isWhole && !isPart)
      return emitOpError("expected heads of whole kv heads or of a part of one, of which ")
             << group << " query heads each read one, got: " << heads << " from " << first << " on " << kvHeads
             << " kv heads";
  }
  heads = allHeads();
  if (MaskInterface bad = findUneven(getMask(), heads)) // C5
    return emitOpError("expected a number of masks that divides the ")
           << heads << " query heads, got: " << bad.children().size() << " in " << bad;
  double size = std::abs(scaleOrDefault());
  if (!(size == 0 || (size >= 0x1p-100 && size <= 0x1p100))) // C7
    return emitOpError("expected a scale that is 0 or has a size from 2^-100 to 2^100, got: ") << scaleOrDefault();
  if (failed(verifyHint(*this, "expected_seqlen", getExpectedSeqlenQ(), getExpectedSeqlenKv())) || // C10
      failed(verifyHint(*this, "max_seqlen", getMaxSeqlenQ(), getMaxSeqlenKv())))
    return failure();
  if (getKvListCapacity() && int64_t(*getKvListCapacity()) < 1) // C16
    return emitOpError("expected a positive `kv_list_capacity`, got: ") << int64_t(*getKvListCapacity());
  if (failed(verifyModifiers(*this)) || failed(verifySink(*this)) || failed(verifyDropout(*this)) ||
      failed(verifySegments(*this))) // C9 to C15
    return failure();
  return verifyNames(*this); // C8
}
