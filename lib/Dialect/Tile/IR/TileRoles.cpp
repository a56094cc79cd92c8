// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of roles, rings, staging tiles and mailboxes, and of ops that store or accumulate whole rows.
//
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

std::optional<RingUse> AllocOp::findRingUse() {
  auto ring = dyn_cast<RingType>(getType());
  if (!ring || !isa<SharedType>(ring.getTile()))
    return std::nullopt;
  bool stored = false, read = false, released = false; // by consumers, by consumers, by the dQ MMA warpgroup
  for (Operation *user : (*this)->getUsers()) {
    stored |= isa<ProducerStoreOp>(user);
    auto roles = user->getParentOfType<RolesOp>();
    if (!roles)
      continue;
    read |= isa<ConsumerWaitOp>(user) && roles.getConsumer().isAncestor(user->getParentRegion());
    released |= isa<ConsumerReleaseOp>(user) && roles.getDqMma().isAncestor(user->getParentRegion());
  }
  return stored     ? read ? RingUse::exchanged : RingUse::stored_for_dq_mma
         : released ? RingUse::loaded_for_dq_mma_too
                    : RingUse::loaded;
}

void ConsumerWaitOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (auto place = getRing().getDefiningOp<AllocOp>())
    setName(getTile(), (place.getName() + "_tile").str());
}

void ConsumerAdvanceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (auto place = getRing().getDefiningOp<AllocOp>())
    setName(getTile(), (place.getName() + "_previous").str());
}

void WarpgroupRowsOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  auto wait = getTile().getDefiningOp<ConsumerWaitOp>();
  if (auto place = wait ? wait.getRing().getDefiningOp<AllocOp>() : AllocOp())
    setName(getRows(), (place.getName() + "_rows").str());
}

LogicalResult ConsumerAdvanceOp::verify() {
  if (getRing().getType().getStages() < 2) // C1
    return emitOpError("expected a ring of two stages or more, got: ") << getRing().getType();
  return success();
}

void attn::tile::recomputeInLoop(Operation *of, OpBuilder begin) {
  for (BlockArgument arg : of->getParentOfType<KernelOp>().getBody().getArguments()) {
    auto isWithin = [&](OpOperand &use) {
      return of->isProperAncestor(use.getOwner()) && !isa<OptimizationBarrierOp>(use.getOwner());
    };
    if (!arg.getType().isInteger(32) || llvm::none_of(arg.getUses(), isWithin))
      continue;
    Value here = OptimizationBarrierOp::create(begin, arg.getLoc(), arg);
    arg.replaceUsesWithIf(here, isWithin);
  }
}

ConsumerReleaseOp ConsumerReleaseOp::early(OpBuilder &b, Location loc, Value ring, Value unless) {
  return create(b, loc, ring, /*passed=*/false, /*when=*/Value(), unless, /*fenced=*/false);
}

LogicalResult ConsumerReleaseOp::verify() {
  if ((getWhen() && !getPassed()) || (getUnless() && (getPassed() || getFenced()))) // C1
    return emitOpError("expected `when` with `passed`, and `unless` with neither `passed` nor `fenced`");
  bool ofStatistics = isa<RowStatisticsType>(getRing().getType().getTile());
  if (ofStatistics && (getPassed() || getUnless())) // C3
    return emitOpError("expected no `passed` and no `unless` of row statistics");
  if (auto loop = (*this)->getParentOfType<KvLoopOp>(); getUnless() && loop && getUnless() != loop.getMore()) // C4
    return emitOpError("expected the `more` of its loop, got another condition");
  if (!getFenced()) // C2
    return success();
  if (!ofStatistics)
    return emitOpError("expected a ring of row statistics where `fenced`, got: ") << getRing().getType();
  Operation *before = (*this)->getPrevNode();
  auto release = dyn_cast_or_null<ConsumerReleaseOp>(before);
  if (!isa_and_nonnull<ProducerCommitOp>(before) && !(release && release.getFenced()))
    return emitOpError("expected `tile.producer_commit` right ahead where `fenced`");
  return success();
}

LogicalResult RolesOp::verify() {
  if (getDqMma().empty() == getDqMmaRegisters().has_value()) // C1
    return emitOpError("expected registers of a dQ MMA warpgroup if there is one, and only then");
  return success();
}

LogicalResult ConsumerWaitOp::verify() {
  auto tile = dyn_cast<SharedType>(getRing().getType().getTile());
  if (bool(getCondition()) != bool(getElseTile())) // C1
    return emitOpError("expected `if` with `else`, or neither");
  if (SharedType other = getElseTile() ? getElseTile().getType() : SharedType();
      other && (!tile || !other.isSwizzled() || other.getCols() != tile.getCols() ||
                other.getElement() != tile.getElement() || other.getRows() < tile.getRows())) // C1
    return emitOpError("expected another tile like those of ") << getRing().getType() << ", got: " << other;
  return success();
}

void PersistentLoopOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  for (BlockArgument arg : region.getArguments())
    setName(arg, nameOf(arg));
}

StringRef PersistentLoopOp::nameOf(BlockArgument word) {
  auto named = dyn_cast<NameLoc>(word.getLoc());
  return word.getArgNumber() == 0 ? "block" : named ? named.getName().getValue() : "word";
}

LogicalResult PersistentLoopOp::verify() {
  if (getBody().getNumArguments() < 1 ||
      !llvm::all_of(getBody().getArgumentTypes(), [](Type type) { return type.isInteger(32); }))
    return emitOpError("expected a region over (block i32, further words i32), got: ") << getBody().getArgumentTypes();
  return success();
}

LogicalResult PublishWorkOp::verify() {
  if (int64_t(getWords().size()) != getMailbox().getType().getWords()) // C1
    return emitOpError("expected ") << getMailbox().getType().getWords() << " words, got: " << getWords().size();
  return success();
}

LogicalResult ReloadWorkOp::verify() {
  int64_t word = getWord(), words = getMailbox().getType().getWords();
  if (word < 0 || word >= words) // C1
    return emitOpError("expected a word from 0 to ") << words - 1 << ", got: " << word;
  return success();
}

/// Verifies that a box of the map fills the tile.
static LogicalResult verifyBox(Operation *op, Type place, TensorMapType map, Value batch, Value left,
                               std::optional<uint64_t> boxes) {
  if (bool(left) != map.isPacked() || bool(batch) == map.isPacked()) // C2
    return op->emitOpError("expected ") << (map.isPacked() ? "rows and no batch" : "a batch and no rows") << " for "
                                        << map;
  auto tile = dyn_cast<SharedType>(place);
  if (!tile) // C1
    return op->emitOpError("expected a tile, got: ") << place;
  int64_t rows = map.getRows() * map.getHeads();
  bool mayRepeat = boxes || map.getStride() != 1,
       fills = rows <= tile.getRows() &&
               (tile.getRows() - rows < map.getHeads() || (mayRepeat && tile.getRows() % rows == 0));
  if (!tile.isSwizzled() || !fills || tile.getElement() != map.getElement()) // C1
    return op->emitOpError("expected a swizzled tile of the map's rows and element type, got: ")
           << tile << " and " << map;
  if (boxes && (!map.isPacked() || map.getHeads() != 1 || map.getStride() != 1 || int64_t(*boxes) < 1 ||
                int64_t(*boxes) * rows > tile.getRows())) // C3
    return op->emitOpError("expected from 1 to ")
           << tile.getRows() / rows << " boxes, of a packed map without heads and stride, got: " << int64_t(*boxes)
           << " of " << map;
  return success();
}

LogicalResult CopyTmaOp::verify() {
  return verifyBox(*this, getDst().getType(), getMap().getType(), getBatch(), getRows(), getBoxes());
}

LogicalResult ProducerLoadOp::verify() {
  return verifyBox(*this, getRing().getType().getTile(), getMap().getType(), getBatch(), getRows(), getBoxes());
}

static LogicalResult verifyRows(Operation *op, int64_t dim, Type element, StringRef what) {
  if (dim < 8 || dim > 256 || dim % 8 || !isDataType(op, element)) // C1
    return op->emitOpError("expected dim in multiples of 8 from 8 to 256 and ")
           << what << " of " << textOfDataTypes(op) << ", got: dim " << dim << ", " << element;
  return success();
}

static LogicalResult verifyColumns(Operation *op, FragType frag, int64_t dim) { // C1
  if (dim % 8 || dim < 8 || dim > frag.getCols())
    return op->emitOpError("expected a dim in multiples of 8 up to the ")
           << frag.getCols() << " columns of the fragment, got: " << dim;
  return success();
}

LogicalResult ResumeOp::verify() { return verifyColumns(*this, cast<FragType>(getAcc().getType()), getDim()); }
LogicalResult AddRowsOp::verify() { return verifyColumns(*this, cast<FragType>(getAcc().getType()), getDim()); }

LogicalResult attn::tile::GatherRowsOp::verify() {
  if (getStrides().size() != 2 * getParts().size()) // C1
    return emitOpError("expected a stride of rows and one of heads for each of ")
           << getParts().size() << " parts, got: " << getStrides().size();
  if (int64_t heads = getHeads(), dim = getDim(); heads < 1 || (dim != 1 && (dim % 8 || dim < 8))) // C2
    return emitOpError("expected heads, and a dim of 1 or a multiple of 8, got: ") << heads << " and " << dim;
  return success();
}

LogicalResult attn::tile::CombineOp::verify() {
  if (!(getScale().convertToDouble() > 0)) // C2
    return emitOpError("expected a positive scale, got: ") << getScale().convertToDouble();
  return verifyRows(*this, getDim(), getO().getType().getElement(), "results");
}

LogicalResult CombineSumsOp::verify() {
  if (Type element = getDst().getType().getElement(); element.isF32()) // of gradients that are not rounded
    return verifyRows(*this, getDim(), BFloat16Type::get(getContext()), "results");
  return verifyRows(*this, getDim(), getDst().getType().getElement(), "results");
}

LogicalResult PreprocessOp::verify() {
  if (bool(getO()) == bool(getDelta()) || (getGradLse() && getDelta())) // C2
    return emitOpError("expected rows of O and dO, with or without dlse, or delta alone");
  if (bool(getO()) != getDim().has_value() || (getO() && getO().getType() != getGradO().getType())) // C1
    return emitOpError("expected dim with rows of O and dO, which are of one type");
  return getO() ? verifyRows(*this, *getDim(), getO().getType().getElement(), "o") : success();
}

LogicalResult ProducerLoadRowStatisticsOp::verify() {
  if (!isa<RowStatisticsType>(getRing().getType().getTile())) // C1
    return emitOpError("expected a ring of row statistics, got: ") << getRing().getType();
  return success();
}

void StoreAndSyncOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (auto place = getRing().getDefiningOp<AllocOp>())
    setName(getTile(), (place.getName() + "_tile").str());
}

LogicalResult StoreAndSyncOp::verify() {
  auto tile = dyn_cast<SharedType>(getRing().getType().getTile());
  RegisterOperandType operand = getOperand().getType();
  if (getRing().getType().getStages() != 2 || !tile || tile.getRows() > operand.getRows() ||
      tile.getCols() < operand.getCols() || tile.getElement() != operand.getElement()) // C1
    return emitOpError("expected a ring of two tiles with room for ")
           << operand << " or its first rows, 16 of each warp, got: " << getRing().getType();
  return success();
}

/// Verifies that the ring's tiles match the register operand.
static LogicalResult verifyOperandInRing(Operation *op, RingType ring, RegisterOperandType operand) {
  auto tile = dyn_cast<SharedType>(ring.getTile());
  if (!tile || tile.getRows() != operand.getRows() || tile.getCols() != operand.getCols() ||
      tile.getElement() != operand.getElement()) // C1
    return op->emitOpError("expected a ring of tiles like ") << operand << ", got: " << ring;
  return success();
}

LogicalResult ProducerStoreOp::verify() {
  auto tile = dyn_cast<SharedType>(getRing().getType().getTile());
  if (!getOperand()) { // C2
    if (!tile || !tile.isSwizzled() || getFirst())
      return emitOpError("expected a ring of swizzled tiles, and no `first`, for zeros, got: ") << getRing().getType();
    return success();
  }
  int64_t first = getFirst().value_or(0);
  auto hasRoom = [&](auto type) {
    return (getFirst() ? first >= 0 && first % 16 == 0 && tile.getRows() > first : tile.getRows() <= type.getRows()) &&
           tile.getCols() >= type.getCols();
  };
  auto operand = dyn_cast<RegisterOperandType>(getOperand().getType());
  if (!tile || !(operand ? hasRoom(operand) && tile.getElement() == operand.getElement()
                         : hasRoom(cast<FragType>(getOperand().getType())))) // C1
    return emitOpError("expected a ring of tiles with room for ")
           << getOperand().getType() << " or its first rows, 16 of each warp, got: " << getRing().getType();
  return success();
}

LogicalResult MmaAtbSliceOp::verify() {
  FragType acc = getAcc().getType();
  bool fits = !getLefts().empty() && acc.getRows() == 64 && (acc.getCols() == 64 || acc.getCols() == 128) &&
              acc.getWarps() == 4;
  for (auto [left, right] : llvm::zip(getLefts(), getRights())) {
    auto a = cast<SharedType>(left.getType()), b = cast<SharedType>(right.getType());
    fits &= a.isSwizzled() && b.isSwizzled() && a.getRows() == b.getRows() && a.getRows() % 16 == 0 &&
            a.getElement() == b.getElement() && a.getCols() == 64 &&
            llvm::alignTo(b.getCols(), 64) % acc.getCols() == 0;
  }
  if (!fits) // C1
    return emitOpError("expected pairs of swizzled tiles of as many rows, the left one with 64 columns, the right one "
                       "with as many as the fragment, rounded up, or several times that, and a fragment of 64 x 64 or "
                       "64 x 128 in 4 warps, got: ")
           << acc << " of " << getLefts().getTypes() << " and " << getRights().getTypes();
  return success();
}

LogicalResult StoreSliceOp::verify() {
  if (getFactors().size() != getDsts().size() || getDims().size() != getDsts().size()) // C1
    return emitOpError("expected as many factors and dims as products, got: ")
           << getFactors().size() << " and " << getDims().size() << " for " << getDsts().size();
  return success();
}

LogicalResult AddDeltaOp::verify() {
  Type o = getO().getType();
  SharedType grad = getGrad().getType();
  SoftmaxStateType rows = getRow().getType();
  int64_t first = getFirst().value_or(0);
  auto isRegisterOperand = [&] { // with as many rows as the row statistics
    auto operand = dyn_cast<RegisterOperandType>(o);
    return operand && operand.getRows() == rows.getRows() && operand.getWarps() == rows.getWarps() &&
           operand.getElement() == grad.getElement() && operand.getCols() == int64_t(llvm::alignTo(grad.getCols(), 32));
  };
  if (!grad.isSwizzled() || rows.getRows() != 16 * rows.getWarps() || (o != grad && !isRegisterOperand()) ||
      (getFirst() ? first < 0 || first % 16 || grad.getRows() <= first : grad.getRows() > rows.getRows())) // C1
    return emitOpError("expected rows of statistics, 16 a warp, a swizzled tile of as many or fewer, and O as one, or "
                       "a register operand, of as many columns, got: ")
           << rows << ", " << grad << " and " << o;
  return success();
}

LogicalResult StashOp::verify() { return verifyOperandInRing(*this, getRing().getType(), getStash().getType()); }

/// Verifies that a fragment fills a staging slot.
static LogicalResult verifyWorkTile(Operation *op, FragType acc, StagingType staging) {
  if (acc.getRows() * acc.getCols() * 4 != staging.getBytes()) // C1
    return op->emitOpError("expected slots of the size of ") << acc << ", got: " << staging;
  return success();
}

/// Checks that a semaphore, its number and its region are given together.
static LogicalResult verifySemaphore(Operation *op, Value staging, Value semaphore, Value tile, Value firstTile,
                                     bool afterFirst, Region &adds) {
  if (staging && cast<StagingType>(staging.getType()).getBytes() == 0 && (!semaphore || afterFirst)) // C1
    return op->emitOpError("expected a semaphore for slots of 0 bytes, and not after_first");
  auto fits = [&] {
    if (!adds.hasOneBlock() || adds.getNumArguments() != 1 || !adds.getArgument(0).getType().isInteger(32))
      return false;
    auto yield = dyn_cast<YieldOp>(adds.front().getTerminator());
    return yield && yield.getValues().size() == 1 && yield.getValues()[0].getType().isInteger(1);
  };
  if (bool(semaphore) != bool(tile) || (semaphore ? !fits() : !adds.empty()))
    return op->emitOpError("expected a semaphore and a region over (i32) that yields an i1, or neither");
  if (afterFirst && !semaphore)
    return op->emitOpError("expected after_first with a semaphore");
  if (firstTile && !semaphore)
    return op->emitOpError("expected a first tile with a semaphore");
  return success();
}

LogicalResult AddGlobalOp::verify() {
  if (getStaging() && getStaging().getType().getBytes() &&
      failed(verifyWorkTile(*this, getAcc().getType(), getStaging().getType())))
    return failure();
  if (getSemaphore() && !getStaging()) // C2
    return emitOpError("expected a staging place, got a semaphore without one");
  bool alone = bool(getSoleWriter());
  auto kernel = getOperation()->getParentOfType<KernelOp>();
  if (alone && (!kernel || !kernel.isPersistent() || !kernel.getRoles().getDqColumns() ||
                int64_t(getDim().value_or(0)) > getAcc().getType().getCols() * getAcc().getType().getWarps() / 4)) // C3
    return emitOpError("expected `sole_writer` in a kernel with a dQ MMA warpgroup, and no more columns than it makes");
  if ((alone && !getSemaphore()) || bool(getDst()) != alone || bool(getStride()) != alone || bool(getRows()) != alone ||
      getFactor().has_value() != alone || getDim().has_value() != alone) // C3
    return emitOpError("expected `sole_writer` with a semaphore and with where rows are written, or none of it");
  return verifySemaphore(*this, getStaging(), getSemaphore(), getTile(), getFirstTile(), getAfterFirst(), getAdds());
}

LogicalResult AddGlobalOrderedOp::verify() {
  if (getStaging().getType().getBytes() != 0 || int64_t(getBlock()) < 0) // C1
    return emitOpError("expected slots of 0 bytes and a block from 0 on, got: ")
           << getStaging().getType() << ", " << int64_t(getBlock());
  return success();
}

LogicalResult StageOp::verify() { return verifyWorkTile(*this, getAcc().getType(), getStaging().getType()); }

LogicalResult AddStagedOp::verify() {
  int64_t bytes = getStaging().getType().getBytes(), columns = getColumns();
  if (int64_t(getBlocks()) < 1 || columns < 16 || columns % 16 || bytes % (64 * columns * 4)) // C2
    return emitOpError("expected at least one block, and slots of some times 64 rows of ")
           << columns << " columns, got: " << int64_t(getBlocks()) << ", " << getStaging().getType();
  return verifySemaphore(*this, getStaging(), getSemaphore(), getTile(), getFirstTile(), getAfterFirst(), getAdds());
}

LogicalResult PostprocessOp::verify() {
  int64_t columns = getColumns(), dim = getDim();
  if (columns < 16 || columns % 16 || dim < 8 || dim % 8) // C1
    return emitOpError("expected columns in multiples of 16, and a dim in eights, got: ") << columns << ", " << dim;
  return success();
}
