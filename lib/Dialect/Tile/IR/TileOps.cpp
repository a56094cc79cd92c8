// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

/// `heads 4` after an operand: it is a pair of numbers of this width.
static ParseResult parseHeads(OpAsmParser &parser, Type &type, unsigned width) {
  int64_t heads = 0;
  type = parser.getBuilder().getIntegerType(width);
  if (failed(parser.parseOptionalKeyword("heads")))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(heads))
    return failure();
  type = PairsType::getChecked([&] { return parser.emitError(loc); }, parser.getContext(), heads, type);
  return success(bool(type));
}

static void printHeads(OpAsmPrinter &printer, Type type) {
  if (auto pairs = dyn_cast_or_null<PairsType>(type))
    printer << " heads " << pairs.getHeads();
}

static ParseResult parseOrigin(OpAsmParser &parser, Type &type) { return parseHeads(parser, type, 32); }
static ParseResult parseStride(OpAsmParser &parser, Type &type) { return parseHeads(parser, type, 64); }
static void printOrigin(OpAsmPrinter &printer, Operation *, Type type) { printHeads(printer, type); }
static void printStride(OpAsmPrinter &printer, Operation *, Type type) { printHeads(printer, type); }

#define GET_OP_CLASSES
#include "attn/Dialect/Tile/IR/TileOps.cpp.inc"

OpFoldResult AdvanceOp::fold(FoldAdaptor adaptor) {
  auto offset = dyn_cast_or_null<IntegerAttr>(adaptor.getOffset());
  return offset && offset.getValue().isZero() ? getBase() : Value();
}

IndexOp IndexOp::block(OpBuilder &b, Location loc, Value below) {
  return create(b, loc, b.getI32Type(), IndexKind::block, below, /*lanes=*/IntegerAttr());
}

IndexOp IndexOp::laneGroup(OpBuilder &b, Location loc, int64_t lanes) {
  return create(b, loc, b.getI32Type(), IndexKind::lane_group, /*below=*/Value(), b.getI64IntegerAttr(lanes));
}

void IndexOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), stringifyIndexKind(getKind())); }

LogicalResult IndexOp::verify() {
  if (getBelow() && !(isBlock() && isa_and_nonnull<KernelOp>((*this)->getParentOp()))) // C1
    return emitOpError("expected `below` with `block`, in the body of the kernel itself, got: ")
           << stringifyIndexKind(getKind()) << " within " << (*this)->getParentOp()->getName();
  if (getLanes().has_value() != (getKind() == IndexKind::lane_group)) // C2
    return emitOpError("expected `lanes` with `lane_group`, and only with it, got: ") << stringifyIndexKind(getKind());
  if (getLanes() && !isLaneCount(*getLanes())) // C2
    return emitOpError("expected 1, 2, 4, 8, 16 or 32 lanes, got: ") << int64_t(*getLanes());
  return success();
}

LogicalResult ClearOp::verify() {
  if (bool(getCount()) != bool(getBlock()) || (getCount() && !isa<PtrType>(getPlace().getType()))) // C1
    return emitOpError("expected `count` and `block` together, with a pointer, got: ") << getPlace().getType();
  return success();
}

LogicalResult ScaleOp::verify() {
  if (isa<SharedType>(getPlace().getType()) && getFactor().convertToDouble() != -1) // C1
    return emitOpError("expected a tile in shared memory to be scaled by -1, got: ") << getFactor().convertToDouble();
  return success();
}

ParseResult PairsOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand query, head;
  PairsType type;
  return failure(parser.parseOperand(query) || parser.parseComma() || parser.parseOperand(head) ||
                 parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) ||
                 parser.resolveOperand(query, type.getNumber(), result.operands) ||
                 parser.resolveOperand(head, type.getNumber(), result.operands) ||
                 parser.addTypeToList(type, result.types));
}

void PairsOp::print(OpAsmPrinter &printer) {
  printer << " " << getQuery() << ", " << getHead();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getType();
}

void PairsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getType().getNumber().isInteger(32) ? "at" : "stride");
}

LogicalResult PairsOp::verify() {
  Type number = getType().getNumber();
  if (getQuery().getType() != number || getHead().getType() != number) // C1
    return emitOpError("expected a query and a head of type ")
           << number << ", got: " << getQuery().getType() << " and " << getHead().getType();
  return success();
}

void AllocOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getName()); }

void FindSequenceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (OpResult result : getResults())
    setName(result, nameOf(result));
}

StringRef FindSequenceOp::nameOf(OpResult result) {
  const char *names[] = {"b", "q0", "first", "rows", "write_rows"};
  return names[result.getResultNumber()];
}

static void nameTestArguments(Region &region, bool transposed, OpAsmSetValueNameFn setName) {
  if (region.getNumArguments() == 2) {
    setName(region.getArgument(transposed), "q");
    setName(region.getArgument(!transposed), "k");
  }
}

/// Verifies a region over a score position that yields whether it is visible.
static LogicalResult verifyTest(Operation *op, Region &body) {
  Type i32 = IntegerType::get(op->getContext(), 32);
  if (body.getArgumentTypes() != TypeRange({i32, i32}))
    return op->emitOpError("expected a region over (query row i32, key i32), got: ") << body.getArgumentTypes();
  for (Value kept : cast<YieldOp>(body.front().getTerminator()).getValues())
    if (!kept.getType().isInteger(1))
      return op->emitOpError("expected to yield conditions of type i1, got: ") << kept.getType();
  return success();
}

static SmallVector<Type> modifierArguments(MLIRContext *context) {
  Type i32 = IntegerType::get(context, 32), f32 = Float32Type::get(context);
  return {f32, i32, i32, i32, f32};
}

/// Verifies a region that converts a score into another.
static LogicalResult verifyModifier(Operation *op, Region &body, Value q0) {
  Type i32 = IntegerType::get(op->getContext(), 32), f32 = Float32Type::get(op->getContext());
  SmallVector<Type> expected = modifierArguments(op->getContext());
  if (isa<PairsType>(q0.getType()))
    expected.push_back(i32);
  if (body.getArgumentTypes() != TypeRange(expected))
    return op->emitOpError("expected a region over (score f32, query row i32, key i32, base i32, ahead f32")
           << (expected.size() > 5 ? ", head i32" : "") << "), got: " << body.getArgumentTypes();
  auto yield = dyn_cast<YieldOp>(body.front().getTerminator());
  if (!yield ||
      (yield.getValues().getTypes() != TypeRange(f32) && yield.getValues().getTypes() != TypeRange({f32, f32, f32})))
    return op->emitOpError("expected to yield a score of type f32, or three f32 of which it is a * b + c");
  return success();
}

static void nameModifierArguments(Region &region, OpAsmSetValueNameFn setName, bool transposed = false) {
  const char *names[] = {"score", transposed ? "k" : "q", transposed ? "q" : "k", "base", "column_offset", "h"};
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, name);
}

void ModifyOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameModifierArguments(region, setName);
}

/// Verifies that a formula for small scores has a bound, and that `becomes`, if given, is a bound, too.
static LogicalResult verifySmall(Operation *op, std::optional<APFloat> within, std::optional<APFloat> becomes,
                                 bool hasRegion) {
  auto isBound = [](APFloat number) { return number.convertToDouble() > 0; };
  if (within.has_value() != hasRegion || (within && !isBound(*within)))
    return op->emitOpError("expected a positive bound `within` and a region for smaller scores, or neither");
  if (becomes && (!within || !isBound(*becomes)))
    return op->emitOpError("expected a positive `becomes`, behind `within`");
  return success();
}

LogicalResult ModifyOp::verify() {
  if (failed(verifySmall(*this, getWithin(), getBecomes(), !getSmall().empty()))) // C1, C2
    return failure();
  if (getWithin() && failed(verifyModifier(*this, getSmall(), getQ0())))
    return failure();
  return verifyModifier(*this, getBody(), getQ0());
}

void SoftmaxConvertOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameModifierArguments(region, setName);
}

void ApplyMaskOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameTestArguments(region, getTransposed(), setName);
}

LogicalResult ApplyMaskOp::verify() {
  if (auto columns = dyn_cast<PairsType>(getK0().getType())) { // C1
    auto rows = dyn_cast<PairsType>(getQ0().getType());
    if (!rows || rows.getHeads() % columns.getHeads() || getTransposed())
      return emitOpError("expected rows of queries with a multiple of ")
             << columns.getHeads() << " heads for keys with as many, got: " << getQ0().getType()
             << (getTransposed() ? " transposed" : "");
  }
  return verifyTest(*this, getBody());
}

void RecomputeRowsOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (&region == &getModify())
    nameModifierArguments(region, setName);
  else if (&region == &getBody())
    nameTestArguments(region, false, setName);
  else
    for (BlockArgument argument : region.getArguments())
      setName(argument, &region == &getAlong() ? "j" : "h");
}

LogicalResult RecomputeRowsOp::verify() {
  if (Type o = getO().getType().getElement(); !o.isF32() && o != getQ().getType().getElement()) // C1
    return emitOpError("expected results of q's elements or f32, got: ") << o;
  auto headsOf = [](Value value) {
    auto pairs = dyn_cast<PairsType>(value.getType());
    return pairs ? pairs.getHeads() : 1;
  };
  int64_t heads = headsOf(getQ0());
  if (headsOf(getQRow()) != heads || headsOf(getORow()) != heads || // C2
      (getLse() && (getLseRow() ? headsOf(getLseRow()) : 1) != heads))
    return emitOpError("expected strides of q, o and lse in pairs as rows are, got: rows for ") << heads << " heads";
  bool drops = bool(getDropout());
  if (getBelow().has_value() != drops || getFactor().has_value() != drops) // C3
    return emitOpError("expected dropout, below and by together");
  if (drops && failed(verifyDropoutOperands(*this, *getBelow())))
    return failure();
  bool resumes = bool(getBeforeO());
  if (bool(getBeforeRow()) != resumes || bool(getBeforeMax()) != resumes || bool(getBeforeSum()) != resumes) // C5
    return emitOpError("expected the rows, their stride, maximum and sum together in before");
  bool listed = bool(getRanges());
  if (listed != !getAlong().empty() || (listed && getFirstKey())) // C4
    return emitOpError("expected ranges and along together, and no from with them");
  if (listed) {
    Type i32 = IntegerType::get(getContext(), 32);
    auto yield = dyn_cast<YieldOp>(getAlong().front().getTerminator());
    if (getAlong().getArgumentTypes() != TypeRange(i32) || !yield ||
        yield.getOperandTypes() != TypeRange(ArrayRef<Type>{i32, i32, i32}))
      return emitOpError("expected an along from i32 to the first key, the end and the row of a range, of type i32");
  }
  if (!getModify().empty() && failed(verifyModifier(*this, getModify(), getQ0())))
    return failure();
  if (!getSink().empty() && failed(verifySink(*this, getSink(), getQ0())))
    return failure();
  return verifyTest(*this, getBody());
}

/// Verifies that probabilities have the shape of the scores.
static LogicalResult verifyHolds(Operation *op, RegisterOperandType p, FragType s) {
  if (p.getRows() != s.getRows() || p.getCols() != s.getCols() || p.getWarps() != s.getWarps())
    return op->emitOpError("expected the same rows, columns and warps, got: ") << p << " and " << s;
  return success();
}

/// A^T B of SIMT tiles.
static LogicalResult verifySimt(MmaAtbOp op) {
  auto acc = dyn_cast<SimtTileType>(op.getAcc().getType()), b = dyn_cast<SimtTileType>(op.getB().getType());
  auto a = dyn_cast<SimtScoresType>(op.getA().getType());
  if (!acc || !a || !b || op.getBlock() || acc.getRows() != a.getCols() || b.getRows() != a.getRows() ||
      acc.getCols() != b.getCols() || !acc.getElement().isF32() || !b.getElement().isF32()) // C3
    return op.emitOpError("expected tiles of warps, or SIMT tiles: acc of A's columns by B's columns over A's rows, of "
                          "f32, got: ")
           << op.getAcc().getType() << " += " << op.getA().getType() << " x " << op.getB().getType();
  return verifyLanesOf(op, op.getOperands()); // C3
}

LogicalResult MmaAtbOp::verify() {
  auto acc = dyn_cast<FragType>(getAcc().getType());
  auto x = dyn_cast<SharedType>(getA().getType()), y = dyn_cast<SharedType>(getB().getType());
  if (!acc || !x || !y)
    return verifySimt(*this);
  if (!x.isSwizzled() && !y.isSwizzled() && x.getRows() == y.getRows() && x.getElement() == y.getElement() &&
      acc.getRows() == x.getCols() && acc.getCols() == y.getCols())
    return success();
  int64_t warpgroups = acc.getWarps() / 4;
  if (getBlock()) { // C2
    if (warpgroups != 1 || int64_t(*getBlock()) < 0 || getBlock() >= getOf())
      return emitOpError("expected a fragment of one warpgroup and a block below ")
             << *getOf() << ", got: " << acc << ", block " << *getBlock();
    warpgroups = *getOf();
  }
  int64_t blocks = x.getCols() / 64, parts = blocks ? warpgroups / blocks : 0, cols = acc.getCols();
  if (!x.isSwizzled() || !y.isSwizzled() || x.getRows() != y.getRows() || x.getElement() != y.getElement() ||
      x.getCols() % 64 || acc.getRows() != 16 * acc.getWarps() || acc.getRows() % 64 || blocks * parts != warpgroups ||
      cols * parts < y.getCols() || cols * parts > int64_t(llvm::alignTo(y.getCols(), 64)) ||
      !(cols % 64 == 0 || 64 % cols == 0 || (cols == 96 && parts == 2))) // C1
    return emitOpError("expected A^T B, or, of swizzled tiles, blocks of 64 rows of it for each warpgroup, got: ")
           << acc << " = " << x << "^T x " << y;
  return success();
}

/// Verifies that there are row statistics for each query.
static LogicalResult verifyStatistics(Operation *op, Type scores, Type statistics, bool transposed) {
  auto frag = dyn_cast<FragType>(scores);
  auto simt = dyn_cast<SimtScoresType>(scores);
  bool fits = false;
  if (auto tile = dyn_cast<RowStatisticsType>(statistics))
    fits = frag && tile.getRows() == (transposed ? frag.getCols() : frag.getRows());
  else if (auto rows = dyn_cast<SoftmaxStateType>(statistics))
    fits = frag && !transposed && rows.getRows() == frag.getRows() && rows.getWarps() == frag.getWarps();
  else if (auto rows = cast<SimtSoftmaxStateType>(statistics); simt && !transposed)
    fits = rows.getRows() == simt.getRows() && rows.getLanes() == simt.getLanes();
  if (!fits)
    return op->emitOpError("expected row statistics of all ")
           << (transposed ? "columns" : "rows") << " of " << scores << ", got: " << statistics;
  return success();
}

LogicalResult GradScoresOp::verify() { // C1
  Type grad = getGrad().getType(), p = getP().getType();
  auto operand = dyn_cast<RegisterOperandType>(p);
  auto frag = dyn_cast<FragType>(grad);
  if (operand && frag && failed(verifyHolds(*this, operand, frag))) // C2
    return failure();
  if (operand ? !frag : p != grad)
    return emitOpError("expected p of type ") << grad << ", got: " << p;
  if (getSlopes() && getSlopes().getType() != operand) // C2
    return emitOpError("expected slopes in registers, as p is, got: ") << getSlopes().getType() << " and " << p;
  return verifyStatistics(*this, getGrad().getType(), getStatistics().getType(), getTransposed());
}

void ProbabilitiesOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameModifierArguments(region, setName, getTransposed());
}

/// Does the fragment have `rows` rows, rounded up to 16 for each warp?
static bool haveRowsOf(FragType frag, int64_t rows) {
  return frag.getRows() == int64_t(llvm::alignTo(rows, 16 * frag.getWarps()));
}

LogicalResult ConvertOp::verify() { // C1
  FragType s = getS().getType();
  auto shared = dyn_cast<SharedType>(getP().getType());
  if (!shared)
    return verifyHolds(*this, cast<RegisterOperandType>(getP().getType()), s);
  if (shared.isSwizzled() || !haveRowsOf(s, shared.getRows()) || shared.getCols() < s.getCols())
    return emitOpError("expected as many rows, and columns, in a tile that is not swizzled, got: ")
           << shared << " and " << s;
  return success();
}

LogicalResult SinglePassGradsOp::verify() {
  if (failed(verifyStatistics(*this, getGrad().getType(), getStatistics().getType(), /*transposed=*/false))) // C1
    return failure();
  if (getWeighted() && getWeighted().getType() != getP().getType()) // C2
    return emitOpError("expected weighted of type ") << getP().getType() << ", got: " << getWeighted().getType();
  if (getWeighted() && isa<SoftmaxStateType>(getStatistics().getType())) // C2
    return emitOpError("expected no weighted with row statistics in registers, got: ") << getStatistics().getType();
  if ((getFactor() || getKnown()) && !isa<SoftmaxStateType>(getStatistics().getType())) // C2
    return emitOpError("expected row statistics in registers where pairs are dropped, or delta is known, got: ")
           << getStatistics().getType();
  return success();
}

LogicalResult LoadOp::verify() {
  if (getUniform() && !getType().isInteger(32)) // C1
    return emitOpError("expected i32 elements in a uniform load, got: ") << getType();
  return success();
}

LogicalResult WaitOp::verify() {
  if (getTokens().empty() || !llvm::all_equal(getTokens().getTypes())) // C1
    return emitOpError("expected tokens of one kind, got: ") << getTokens().getTypes();
  return success();
}

LogicalResult WaitFiniteOp::verify() {
  for (Value token : getTokens()) // C1
    if (auto copy = token.getDefiningOp<CopyAsyncOp>(); copy && copy.getDst() == getPlace())
      return success();
  return emitOpError("expected a copy of the tile among those it waits for");
}

LogicalResult SubtileOp::verify() {
  SharedType tile = getTile().getType(), part = getPart().getType();
  if (tile.isSwizzled() || part.getPitch() != tile.getPitch() || part.getElement() != tile.getElement() ||
      part.getRows() > tile.getRows() || part.getCols() > tile.getCols()) // C1
    return emitOpError("expected rows and columns of a tile that is not swizzled, at its pitch, got: ")
           << part << " of " << tile;
  return success();
}

Value attn::tile::wholeOf(Value tile) {
  for (Operation *op = tile.getDefiningOp(); isa_and_nonnull<SubtileOp, WarpgroupRowsOp>(op); op = tile.getDefiningOp())
    tile = op->getOperand(0);
  return tile;
}

LogicalResult CopyAsyncOp::verify() {
  SharedType dst = getDst().getType();
  int64_t dim = getDim();
  if (dim <= 0 || dim % 8 || dim > dst.getCols() || dst.getElement() != getSrc().getType().getElement()) // C1
    return emitOpError("expected dim in multiples of 8 up to the place's columns and one element type, got: dim ")
           << dim << ", " << getSrc().getType() << " into " << dst;
  if (getFirst() && (getOnce() || !getStride().getType().isInteger(64))) // C2
    return emitOpError("expected neither `once` nor pairs of rows with `from`, got: ") << getStride().getType();
  return success();
}

namespace {
/// The common part of all tile types.
struct TileShape {
  int64_t rows, cols;
  Type element;
  bool operator==(const TileShape &) const = default;
};
} // namespace

static TileShape shapeOf(Type type) {
  Type f32 = Float32Type::get(type.getContext());
  if (auto operand = dyn_cast<RegisterOperandType>(type))
    return {operand.getRows(), operand.getCols(), operand.getElement()};
  if (auto simt = dyn_cast<SimtTileType>(type))
    return {simt.getRows(), simt.getCols(), simt.getElement()};
  if (auto frag = dyn_cast<FragType>(type))
    return {frag.getRows(), frag.getCols(), f32};
  if (auto scores = dyn_cast<SimtScoresType>(type))
    return {scores.getRows(), scores.getCols(), f32};
  auto shared = cast<SharedType>(type);
  return {shared.getRows(), shared.getCols(), shared.getElement()};
}

LogicalResult LoadOperandOp::verify() {
  if (!(shapeOf(getOperand().getType()) == shapeOf(getSrc().getType()))) // C1
    return emitOpError("expected tiles of the same shape and element type, got: ")
           << getOperand().getType() << " and " << getSrc().getType();
  return success();
}

static LogicalResult verifyScale(Operation *op, const APFloat &scale) {
  if (!(scale.convertToDouble() > 0)) // C1
    return op->emitOpError("expected a positive scale, got: ") << scale.convertToDouble();
  return success();
}

LogicalResult OnlineSoftmaxOp::verify() {
  if (failed(verifyScale(*this, getScale()))) // C1
    return failure();
  if (!getAcc() && !isa<FragType>(getS().getType())) // C2
    return emitOpError("expected an accumulator with SIMT tiles, got: ") << getS().getType();
  return verifyLanesOf(*this, getOperands()); // C2
}

LogicalResult NormalizeOp::verify() {
  auto recomputesRows = [&] {
    auto kernel = getOperation()->getParentOfType<KernelOp>();
    return kernel && kernel.walk([](RecomputeRowsOp) { return WalkResult::interrupt(); }).wasInterrupted();
  };
  if (getRowsRecomputed() && !(isa<FragType>(getAcc().getType()) && recomputesRows())) // C2
    return emitOpError("expected `rows_recomputed` with a fragment, in a kernel with a `tile.recompute_rows`");
  if (getReduced() && (getRowsRecomputed() || !isa<FragType>(getAcc().getType()))) // C3
    return emitOpError("expected `reduced` with a fragment, and without `rows_recomputed`");
  return verifyLanesOf(*this, getOperands()); // C1
}

LogicalResult ProbabilitiesOp::verify() {
  if (failed(verifyScale(*this, getScale())) ||                                                      // C1
      failed(verifyStatistics(*this, getS().getType(), getStatistics().getType(), getTransposed()))) // C2
    return failure();
  auto operand = getWeighted() ? dyn_cast<RegisterOperandType>(getWeighted().getType()) : RegisterOperandType();
  auto frag = dyn_cast<FragType>(getS().getType());
  if (operand && frag && failed(verifyHolds(*this, operand, frag))) // C3
    return failure();
  if (getWeighted() && (getModify().empty() || (operand ? !frag : getWeighted().getType() != getS().getType()))) // C3
    return emitOpError("expected `weighted` with a region, of type ")
           << getS().getType() << ", got: " << getWeighted().getType();
  if (getSlopes() && (!operand || (!getSlopes()->empty() && !getWithin()))) // C3
    return emitOpError("expected `slopes` with `weighted` in registers, and numbers with `small` only");
  bool pairs = isa<PairsType>(getRow0().getType());
  if (pairs && getTransposed()) // C5
    return emitOpError("expected rows of queries where they are pairs, got: transposed with ") << getRow0().getType();
  if (isa<SoftmaxStateType>(getStatistics().getType()) && !getModify().empty()) // C6
    return emitOpError("expected no region with row statistics in registers, got: ") << getStatistics().getType();
  if (getWithin().has_value() == getSmall().empty() ||
      (getWithin() && !(getWithin()->convertToDouble() > 0 && getWeighted()))) // C4
    return emitOpError("expected a positive bound with a region for smaller scores, and `weighted`, or none of them");
  Type f32 = Float32Type::get(getContext());
  SmallVector<Type> expected = modifierArguments(getContext());
  if (pairs)
    expected.push_back(IntegerType::get(getContext(), 32));
  for (Region *region : {&getModify(), &getSmall()}) {
    if (region->empty())
      continue;
    auto yield = dyn_cast<YieldOp>(region->front().getTerminator());
    if (region->getArgumentTypes() != TypeRange(expected) || !yield ||
        yield.getValues().getTypes() != TypeRange({f32, f32})) // C4
      return emitOpError("expected a region over (score f32, row i32, column i32, base i32, ahead f32")
             << (pairs ? ", head i32" : "") << ") that yields a score and its derivative of type f32";
  }
  return success();
}

LogicalResult SoftmaxConvertOp::verify() {
  if (failed(verifyScale(*this, getScale())) ||                       // C1
      failed(verifyHolds(*this, getP().getType(), getS().getType()))) // C2
    return failure();
  if (getAt().size() != (getModify().empty() ? 0 : 2)) // C3
    return emitOpError("expected `at` two numbers and a region `modify`, or neither");
  if (failed(verifySmall(*this, getWithin(), getBecomes(), !getSmall().empty() && !getModify().empty()))) // C3
    return failure();
  for (Region *region : {&getSmall(), &getModify()})
    if (!region->empty() && failed(verifyModifier(*this, *region, getAt().front())))
      return failure();
  return success();
}

/// Can `rows` rows of a K or V tile be read: all of them, or the first ones of a swizzled tile?
static bool hasDepth(Type type, int64_t rows) {
  auto tile = dyn_cast<SharedType>(type);
  int64_t all = shapeOf(type).rows;
  return all == rows || (tile && tile.isSwizzled() && rows < all);
}

LogicalResult MmaAbtOp::verify() {
  TileShape s = shapeOf(getS().getType()), q = shapeOf(getQ().getType()), k = shapeOf(getK().getType());
  bool simt = isa<SimtTileType>(getQ().getType());
  Type element = simt ? Float32Type::get(getContext()) : k.element; // Q's element type
  auto frag = dyn_cast<FragType>(getS().getType());
  int64_t first = getFirst().value_or(0), there = getFirst() ? std::min<int64_t>(q.rows - first, s.rows) : q.rows;
  bool rows = frag && isa<SharedType>(getQ().getType())
                  ? there > 0 && first >= 0 && first % 64 == 0 && haveRowsOf(frag, there)
                  : !getFirst() && s.rows == q.rows;
  if (!rows || !hasDepth(getK().getType(), s.cols) || q.cols != k.cols || q.element != element) // C1
    return emitOpError("expected s to be Q's rows by K's rows over equal columns, got: ")
           << getS().getType() << " = " << getQ().getType() << " x " << getK().getType();
  return verifyLanesOf(*this, getOperands()); // C2
}

/// The warps that share a tile's rows; 0 for a SIMT tile.
static int64_t warpsOf(Type type) {
  if (auto operand = dyn_cast<RegisterOperandType>(type))
    return operand.getWarps();
  auto frag = dyn_cast<FragType>(type);
  return frag ? frag.getWarps() : 0;
}

LogicalResult MmaAbOp::verify() {
  Type accType = getAcc().getType(), pType = getP().getType(), vType = getV().getType();
  TileShape acc = shapeOf(accType), p = shapeOf(pType), v = shapeOf(vType);
  bool sum = acc.element.isF32() && warpsOf(accType) == warpsOf(pType);
  if (!sum || acc.rows != p.rows || !hasDepth(vType, p.cols) || acc.cols != v.cols) // C1
    return emitOpError("expected acc to be p's rows by V's columns over V's rows, got: ")
           << accType << " += " << pType << " x " << vType;
  ValueRange places = getOperands().take_front(3);
  return verifyLanesOf(*this, places); // C2
}

LogicalResult StoreOp::verify() {
  auto simt = dyn_cast<SimtTileType>(getAcc().getType());
  if (simt && (!simt.getElement().isF32() || simt.getCols() != int64_t(getDim()) ||
               !isDataType(*this, getDst().getType().getElement()))) // C1
    return emitOpError("expected a SIMT tile of f32 and `dim` columns into ")
           << textOfDataTypes(*this) << ", got: " << simt << " into " << getDst().getType() << ", dim "
           << int64_t(getDim());
  auto acc = dyn_cast<FragType>(getAcc().getType());
  if (getFactor() && (!acc || acc.getRows() != 64 || acc.getWarps() != 4 || int64_t(getDim()) > acc.getCols() ||
                      getRows() != getWriteRows())) // C2
    return emitOpError("expected a factor with a fragment of 64 rows, four warps and ")
           << int64_t(getDim()) << " columns or more, and no padding, got: " << getAcc().getType();
  return success();
}
