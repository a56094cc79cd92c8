// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "AttentionBody.h"
#include "ProgramBuilder.h"
#include "Workspace.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The work-tile list among these arguments, or null.
static const WorkTileList *findWorkTileList(const llvm::StringMap<Value> &args) {
  return llvm::find_if(workTileLists(true), [&](const WorkTileList &list) { return args.contains(list.name); });
}

std::optional<Index> AttentionBody::listedWorkTiles(Index total, int64_t rows) {
  const WorkTileList *list = findWorkTileList(args);
  if (list == workTileLists(true).end())
    return std::nullopt;
  return math.named(math.min(load(args[list->count], 0), workTileCount(total, rows, list->keys)), "work_tiles");
}

Index AttentionBody::listedWorkTile(Index at) {
  return math.named(load(args[findWorkTileList(args)->name], at), "work_tile");
}

const LoopSplits *AttentionBody::findLoopSplits() {
  for (const LoopSplits *splits : {&querySplits(/*ofDv=*/false), &querySplits(/*ofDv=*/true), &kvSplits()})
    if (args.contains(splits->list))
      return splits;
  return nullptr;
}

void AttentionBody::splitLoops(const LoopSplits &names, Index tiles, Index heads, int64_t group, Index ctas,
                               int64_t least, Index slots, llvm::function_ref<Index(Index)> steps) {
  auto op = metadata::SplitWalksOp::create(b, loc, args[names.list], args[names.counts], args[names.split],
                                           math.value(tiles), math.value(heads), b.getI64IntegerAttr(group),
                                           math.value(ctas), b.getI64IntegerAttr(least), math.value(slots));
  OpBuilder::InsertionGuard guard(b);
  Block &body = op.getBody().emplaceBlock();
  Index tile = Value(body.addArgument(b.getI32Type(), loc));
  b.setInsertionPointToStart(&body);
  YieldOp::create(b, loc, math.value(steps(tile)));
}

AttentionBody::TilePart AttentionBody::loadTilePart(const LoopSplits &splits, Index entry, std::optional<Index> head) {
  Index place = math.mul(entry, 4);
  auto number = [&](int64_t i, const char *name) {
    return math.named(load(args[splits.list], math.add(place, i)), name);
  };
  TilePart part;
  part.tile = number(0, "tile"), part.first = number(1, "first_step"), part.end = number(2, "end_step");
  part.slot = number(3, "slot");
  part.isWhole = math.lt(part.slot, 0);
  if (head)
    part.slot = math.add(mulRuntime(*head, load(args[splits.counts], 2)), part.slot);
  return part;
}

AttentionBody::SplitTile AttentionBody::loadSplitTile(const SplitTiles &all, Index number) {
  SplitTile split;
  if (!all.isListed)
    split.head = math.named(div(number, all.count), "sequence_head");
  Index place = math.mul(all.isListed ? number : rem(number, all.count), 3);
  auto entry = [&](int64_t i) { return load(args[all.splits.split], math.add(place, i)); };
  split.slot = math.add(mulRuntime(split.head, all.slots), entry(1));
  split.tile = entry(0);
  split.parts = entry(2);
  return split;
}

Index AttentionBody::listedCta(Index listed) {
  auto kernel = cast<KernelOp>(b.getBlock()->getParentOp());
  if (kernel.isPersistent() || (!kernel.getLonger() && !findLoopSplits()))
    return Value(IndexOp::block(b, loc, math.value(listed)));
  Value first = IndexOp::block(b, loc);
  Index cta = enterLoop("block", first, listed, ctasOfListedWorkTiles);
  BarrierOp::create(b, loc, /*warp=*/false); // shared memory is reused from another tile
  return cta;
}

void AttentionBody::branchOnPadding(Index rows, llvm::function_ref<void()> padding,
                                    llvm::function_ref<void()> computing) {
  auto pads = scf::IfOp::create(b, loc, math.value(math.le(rows, 0)));
  auto computes = scf::IfOp::create(b, loc, math.value(math.lt(0, rows)));
  for (auto [branch, write] : {std::pair(pads, padding), std::pair(computes, computing)}) {
    OpBuilder at = branch.getThenBodyBuilder();
    b.setInsertionPoint(at.getInsertionBlock(), at.getInsertionPoint());
    write();
  }
}

void AttentionBody::distributePadding(StringRef name, Index begin, Index end, int64_t tiles, Index number, int64_t rows,
                                      llvm::function_ref<void(Index, Index)> pad) {
  constexpr int64_t enough = 4096; // sequences: with more, the stride might exceed 32 bits
  Index sharingSequences = math.min(math.max(arg("batch"), 1), enough);
  Index share = math.mul(math.add(math.mul(math.min(batch, enough), tiles), number), rows);
  Index shares = math.mul(sharingSequences, tiles * rows);
  Index own = math.add(begin, share),
        count = math.named(math.select(math.lt(batch, enough), math.sub(end, own), 0), name);
  loop("i", 0, count, shares, [&](Index i) { pad(math.add(own, i), math.min(math.sub(count, i), rows)); });
}

void AttentionBody::findLengths() {
  if (problem.getQLayout().isPacked())
    lenQ = math.named(lengthIn("cu_seqlens_q"), "len_q");
  if (problem.getKLayout().isPacked()) {
    if (!hasPieces()) // else the piece's
      firstKey = math.named(load(startsOf(/*keys=*/true), batch), "first_key");
    scope.lenK = math.named(lengthIn("cu_seqlens_kv"), "len_kv");
  } else {
    firstKey = 0;
    scope.lenK = arg("seqlen_kv");
  }
  scope.lenQ = lenQ.atLeast(0);
  scope.lenK = scope.lenK.atLeast(0);
  scope.batch = batch;
  scope.head = numberOfHead();
  scope.heads = problem.allHeads();
}

void AttentionBody::findSequence() {
  lenQ = problem.getQLayout().isPacked() ? Index(0) : arg("seqlen_q");
  kvHead = math.floorDiv(h, int64_t(problem.getHeads()) / int64_t(problem.getKvHeads()));
  findLengths();
  if (problem.getQLayout().isPacked())
    firstQuery = load(startsOf(/*keys=*/false), batch);
}

void AttentionBody::takePiece(bool ofKeys, Index number) {
  Piece &piece = ofKeys ? keyPiece : queryPiece;
  piece.number = number;
  if (!hasPieces()) {
    batch = number;
    return;
  }
  batch = math.named(load(pieceLine(ofKeys, PieceSequences), number), "b");
  piece.position = math.named(load(pieceLine(ofKeys, PiecePositions), number), ofKeys ? "k_position" : "q_position");
  Index behind = math.min(math.add(number, 1), sequenceCount(ofKeys));
  piece.rows = math.sub(load(lengthsOf(ofKeys), behind), load(lengthsOf(ofKeys), number));
}

void AttentionBody::eachPiece(bool ofKeys, llvm::function_ref<void()> body) {
  loop("i", 0, Index(countPieces(ofKeys)), 1, [&](Index i) {
    findPiece(ofKeys, i);
    body();
  });
}

Value AttentionBody::countPieces(bool ofKeys) {
  Value firsts = args[firstPiecesArray(ofKeys)];
  return math.value(
      math.named(math.sub(load(firsts, math.min(math.add(batch, 1), arg("batch"))), load(firsts, batch)), "pieces"));
}

void AttentionBody::findOnlyPiece(bool ofKeys) {
  Piece &piece = ofKeys ? keyPiece : queryPiece;
  Cond isThere = math.lt(0, Index(countPieces(ofKeys)));
  findPiece(ofKeys, 0);
  piece.rows = math.named(math.select(isThere, piece.rows, 0), "piece_rows");
}

void AttentionBody::findPiece(bool ofKeys, Index i) {
  Piece &piece = ofKeys ? keyPiece : queryPiece;
  // Line 4 has an entry behind that of the last piece, which is 0.
  Index at = math.add(load(args[firstPiecesArray(ofKeys)], batch), i);
  piece.number = math.named(load(pieceLine(ofKeys, PieceOrder), at), "piece");
  auto entry = [&](PieceLine line) { return load(pieceLine(ofKeys, line), piece.number); };
  piece.position = math.named(entry(PiecePositions), ofKeys ? "k_position" : "q_position");
  piece.rows = math.sub(load(lengthsOf(ofKeys), math.add(piece.number, 1)), entry(PieceEnds));
  piece.rows = math.named(piece.rows, "piece_rows");
  (ofKeys ? firstKey : firstQuery) = math.named(entry(PieceRows), ofKeys ? "first_key" : "first_query");
}

void AttentionBody::findArrays() {
  // The entries of this sequence and head; positions in it are 32 bits.
  llvm::StringMap<Value> arrays;
  for (const MaskOperand &array : distinctOperands(problem.getMask()))
    if (array.hasPositions())
      arrays[array.name] = AdvanceOp::create(b, loc, args[array.name], startOf(array));
    else if (array.shape == OperandShape::PerHead)
      arrays[array.name] = LoadOp::create(
          b, loc, args[array.name],
          math.value(array.heads == OperandHeads::per_head ? numberOfHead() : numberOfKvHead()), /*uniform=*/false);
    else if (array.lists && args.contains(bitsOf(array)))
      arrays[array.name] = AdvanceOp::create(b, loc, args[bitsOf(array)], startOf(array));
  scope.load = [this, arrays, operands = problem.getMask().operands()](unsigned operand, Index position) {
    const MaskOperand &array = operands[operand];
    if (array.shape == OperandShape::PerSequence)
      return load(args[array.name], batch);
    if (array.shape == OperandShape::PerHead)
      return Index(arrays.lookup(array.name));
    Index length = array.shape == OperandShape::PerQuery ? scope.lenQ : scope.lenK;
    position = math.min(position, math.sub(length, 1)); // tiles extend beyond the end
    return Index(Value(LoadOp::create(b, loc, arrays.lookup(array.name), math.value(position), /*uniform=*/false)));
  };
  scope.listed = [this, arrays, operands = problem.getMask().operands()](unsigned operand, Index row, Index column) {
    const MaskOperand &map = operands[operand];
    std::string bits = bitsOf(map);
    if (!args.contains(bits))
      return isOnList(map, column);
    OpBuilder::InsertionGuard guard(b);
    Value first;
    if (auto [mask, inRow, inColumn] = blocksOfScores(map); inColumn) { // once for all scores of the tile, or of a row
      OpBuilder::InsertPoint inside = b.saveInsertionPoint();
      b.setInsertionPoint(mask);
      Index q0 = mask.getTransposed() ? mask.getK0() : mask.getQ0(),
            k0 = mask.getTransposed() ? mask.getQ0() : mask.getK0();
      column = math.value(math.floorDiv(k0, map.lists->kv));
      if (inRow)
        row = math.floorDiv(q0, map.lists->q);
      else
        b.restoreInsertionPoint(inside);
    } else {
      first = firstColumn(map.lists->kv);
    }
    return Cond::of(Value(metadata::IsListedOp::create(b, loc, arrays.lookup(map.name), rowsOfBits(map),
                                                       /*columns=*/Value(), args[bits + "_words"], math.value(row),
                                                       math.value(column), first, /*condition=*/Value())));
  };
}

AttentionBody::ListOfRow AttentionBody::listOfRow(const MaskOperand &map, Index row) {
  Value offsets = AdvanceOp::create(b, loc, args[map.name], startOf(map));
  Index lists = math.sub(arg(map.name + "_entries"), 1);
  if (packsLists(map))
    lists = math.sub(lists, firstList(map));
  return {offsets, math.value(lists), args[map.lists->columns], args[map.lists->columns + "_entries"], math.value(row)};
}

AttentionBody::ListOfRow AttentionBody::listOfBlock(const MaskOperand &map, Index block) {
  TransposedLists lists = transposedOf(map);
  Index blocks = arg(lists.tiles + "_blocks"), entries = arg(lists.tiles + "_entries");
  Index first = problem.getKLayout().isPacked()
                    ? math.add(math.floorDiv(load(args["cu_seqlens_kv"], batch), map.lists->kv), batch)
                    : mulRuntime(batch, math.ceilDiv(arg("seqlen_kv"), map.lists->kv));
  Value start = wide(first), tiles = args[lists.tiles];
  if (map.heads != OperandHeads::shared) {
    Value head = wide(map.heads == OperandHeads::per_head ? numberOfHead() : numberOfKvHead());
    start = add(mul(head, wide(math.add(blocks, 1))), start);
    tiles = AdvanceOp::create(b, loc, tiles, mul(head, wide(entries)));
  }
  Value offsets = AdvanceOp::create(b, loc, args[lists.offsets], start);
  return {offsets, math.value(math.sub(blocks, first)), tiles, math.value(entries), math.value(block)};
}

bool AttentionBody::packsLists(const MaskOperand &map) {
  return map.lists->fixedWidth && problem.getQLayout().isPacked();
}

Index AttentionBody::firstList(const MaskOperand &map) {
  return math.add(math.floorDiv(load(args["cu_seqlens_q"], batch), map.lists->q), batch);
}

Value AttentionBody::rowsOfBits(const MaskOperand &map) {
  Value rows = args[bitsOf(map) + "_rows"];
  return packsLists(map) ? math.value(math.sub(rows, firstList(map))) : rows;
}

Cond AttentionBody::isOnList(const MaskOperand &map, Index column) {
  OpBuilder::InsertionGuard guard(b);
  std::optional<Index> query = firstOfTile;
  if (auto mask =
          dyn_cast_or_null<ApplyMaskOp>(b.getInsertionBlock()->getParentOp())) { // once for all scores of the tile
    b.setInsertionPoint(mask);
    Value q0 = mask.getTransposed() ? mask.getK0() : mask.getQ0(),
          k0 = mask.getTransposed() ? mask.getQ0() : mask.getK0();
    column = math.floorDiv(Index(k0), map.lists->kv);
    if (!query)
      query = q0;
  }
  ListOfRow list = listOfRow(map, math.floorDiv(*query, map.lists->q));
  return Cond::of(
      Value(metadata::IsListedOp::create(b, loc, list.offsets, list.rows, list.columns, list.entries, list.row,
                                         math.value(column), /*first=*/Value(), math.value(*tileListsHull))));
}

AttentionBody::BlocksOfScores AttentionBody::blocksOfScores(const MaskOperand &map) {
  auto mask = dyn_cast_or_null<ApplyMaskOp>(b.getInsertionBlock()->getParentOp());
  auto scores = mask ? dyn_cast<FragType>(mask.getS().getType()) : FragType();
  if (!scores || hasPieces())
    return {};
  int64_t queries = scores.getRows(), keys = scores.getCols(); // those of several KV tiles in a single pass
  Type first = mask.getQ0().getType(), firstKey = mask.getK0().getType();
  if (mask.getTransposed())
    std::swap(queries, keys), std::swap(first, firstKey);
  // Scores begin at multiples of their own size; those of packed heads are pairs.
  return {mask, first.isInteger(32) && map.lists->q % queries == 0,
          firstKey.isInteger(32) && map.lists->kv % keys == 0};
}

Value AttentionBody::firstColumn(int64_t keys) {
  auto mask = dyn_cast_or_null<ApplyMaskOp>(b.getInsertionBlock()->getParentOp());
  if (!mask || mask.getTransposed() || !mask.getK0().getType().isInteger(32) ||
      (mask->getParentOfType<KernelOp>().getSchedule().getKvTile() - 1) / keys + 1 > 31)
    return {};
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(mask);
  return math.value(math.floorDiv(Index(mask.getK0()), keys));
}

Value AttentionBody::startOf(const MaskOperand &array) {
  bool perQuery = array.shape == OperandShape::PerQuery;
  bool packed = array.lists ? !array.lists->perSequence || packsLists(array)
                            : (perQuery ? problem.getQLayout() : problem.getKLayout()).isPacked();
  Value line = packed ? Value() : wide(batch);
  Value token;
  if (packed && !array.lists)
    token = hasPieces() ? wide(load(args[perQuery ? "cu_seqlens_q" : "cu_seqlens_kv"], batch))
                        : wide(perQuery ? firstQuery : firstKey);
  if (array.heads != OperandHeads::shared) {
    bool perHead = array.heads == OperandHeads::per_head;
    Value head = wide(perHead ? numberOfHead() : numberOfKvHead());
    line = line ? add(mul(line, wide(perHead ? problem.allHeads() : problem.allKvHeads())), head) : head;
  }
  if (array.lists) {
    std::string bits = bitsOf(array);
    const bool isBits = args.contains(bits);
    Value start = line ? mul(line, wide(arg(isBits ? bits + "_rows" : array.name + "_entries"))) : wide(int64_t(0));
    if (packsLists(array))
      start = add(start, wide(firstList(array)));
    return isBits ? mul(start, wide(arg(bits + "_words"))) : start;
  }
  if (!line)
    return token;
  std::string extent = (hasPieces() ? "whole_" : packed ? "total_" : "seqlen_") + std::string(perQuery ? "q" : "kv");
  Value start = mul(line, wide(arg(extent)));
  return token ? add(start, token) : start;
}

Value AttentionBody::listRow(bool ofKeys, Index tile, int64_t rows) {
  Value row = wide(tile), line = layoutOf(ofKeys).isPacked() ? Value() : wide(batch);
  if (int64_t heads = headsOfTileLists(problem); heads != 1) {
    Value head = wide(heads == int64_t(problem.getHeads()) ? h : kvHead);
    line = line ? add(mul(head, wide(arg("batch"))), line) : head;
  }
  if (!line)
    return row;
  return add(mul(line, wide(tilesOf(ofKeys, rows))), row);
}

AttentionBody::ListedWalk AttentionBody::listedWalk(KeyWalk &walk, bool ofKeys, Index tile, int64_t rows,
                                                    bool isUniform) {
  const TileLists &names = tileLists(ofKeys);
  Value list = args[names.list];
  Value position = AdvanceOp::create(b, loc, args[names.positions], mul(listRow(ofKeys, tile, rows), wide(int64_t(8))));
  // If any list found no room, every tile with entries of its own loops over all tiles from its first to its last.
  // Results then do not depend on which lists found room.
  auto header = [&](int64_t i) { return load(position, i, isUniform); };
  Cond loopsOverHull = math.logicalAnd(math.lt(0, header(6)), math.lt(0, load(args[names.used], 2, isUniform)));
  tileListsHull = loopsOverHull;
  Index fullAt = header(0), full = math.named(math.select(loopsOverHull, 0, header(1)), "full");
  Index partialAt = math.named(math.select(loopsOverHull, header(4), header(2)), "partial_at");
  Index end = math.named(math.select(loopsOverHull, header(5), header(3)), "end");
  auto tileAt = [this, list, fullAt, full, partialAt](Index j) {
    return load(list, math.add(math.select(math.lt(j, full), fullAt, partialAt), j));
  };
  return {{walk.listed(full, end)}, tileAt};
}

void AttentionBody::buildTests(KeyWalk &walk, Region &region, bool transposed) {
  OpBuilder::InsertionGuard guard(b);
  Block &test = region.emplaceBlock();
  test.addArguments({b.getI32Type(), b.getI32Type()}, {loc, loc});
  b.setInsertionPointToStart(&test);
  SmallVector<Value> kept;
  Index q = positionOf(Index(test.getArgument(transposed)), queryResidue),
        k = positionOf(Index(test.getArgument(!transposed)), keyResidue);
  for (Cond cond : walk.tests(math, q, k))
    kept.push_back(math.value(cond));
  YieldOp::create(b, loc, kept);
}

void AttentionBody::maskScores(KeyWalk &walk, Value scores, Value row0, Value col0, bool transposed,
                               std::optional<Cond> tested) {
  auto apply = [&] {
    buildTests(walk, ApplyMaskOp::create(b, loc, scores, row0, col0, transposed).getBody(), transposed);
  };
  if (tested && !tested->isConstant())
    onlyIf(*tested, apply);
  else
    apply();
}

ScoreScope AttentionBody::scoreScope(const MaskScope &sequence, OpBuilder &once, OpBuilder &inside, Index q, Index k,
                                     Index from, Index base, Value ahead) {
  return {sequence,
          problem.allHeads(),
          FloatMath(once, loc),
          FloatMath(inside, loc),
          q,
          k,
          from,
          base,
          ahead,
          [this, &sequence, &once, &inside, q, k](const ScoreOperand &operand, Index at) {
            bool perScore =
                operand.has(ScoreOperand::Query) || operand.has(ScoreOperand::Key) || operand.has(ScoreOperand::Table);
            return loadEntry(operand, perScore ? inside : once, sequence, q, k, at);
          },
          [this](Diagonal diagonal) { return reachOf(problem.getMask(), diagonal); }};
}

Value AttentionBody::loadEntry(const ScoreOperand &operand, OpBuilder &at, const MaskScope &sequence, Index q, Index k,
                               Index entry) {
  IndexMath indices(at, loc);
  auto element = [&](Value offset) -> Value {
    return LoadOp::create(at, loc, b.getF32Type(), args[operand.name], offset, /*uniform=*/false);
  };
  if (operand.axes.size() == 1 && operand.has(ScoreOperand::Head))
    return element(indices.value(sequence.head));
  // Tiles extend beyond the end.
  auto within = [&](Index position, Index length) { return indices.min(position, indices.sub(length, 1)); };
  auto wideAt = [&](Index x) -> Value { return arith::ExtSIOp::create(at, loc, b.getI64Type(), indices.value(x)); };
  Value offset;
  for (ScoreOperand::Axis axis : operand.axes) {
    Index place = 0, extent = 0;
    switch (axis) {
    case ScoreOperand::Batch:
      place = batch, extent = arg("batch");
      break;
    case ScoreOperand::Head:
      place = sequence.head, extent = problem.allHeads();
      break;
    case ScoreOperand::Query:
      place = within(q, scope.lenQ), extent = scope.lenQ;
      break;
    case ScoreOperand::Key:
      place = within(k, scope.lenK), extent = scope.lenK;
      break;
    case ScoreOperand::Table:
      place = entry, extent = operand.entries;
      break;
    }
    if (offset)
      offset = arith::MulIOp::create(at, loc, offset, wideAt(extent));
    offset = offset ? Value(arith::AddIOp::create(at, loc, offset, wideAt(place))) : wideAt(place);
  }
  return element(offset);
}

Score AttentionBody::modified(ScoreScope &of, Score score, ArrayRef<ScoreModifierInterface> modifiers, Value &slope,
                              const ScoreOperand *by) {
  for (ScoreModifierInterface modifier : modifiers) {
    if (Value own = by && !slope ? Value() : modifier.emitDerivative(of, score))
      slope = slope ? of.each.mul(slope, own) : own;
    for (auto [i, operand] : llvm::enumerate(modifier.operands()))
      if (by && operand == *by) {
        Value more = modifier.emitEntryDerivative(of, score, i);
        more = more ? more : of.each.constant(1);
        slope = slope ? of.each.add(slope, more) : more;
      }
    score = settled(of.each, modifier.emitScore(of, score));
  }
  return score;
}

bool AttentionBody::writeModified(ProbabilitiesOp op, OpBuilder before, bool transposed, bool packs, bool wantsSlope,
                                  bool hasSmall, const ScoreOperand *by) {
  if (problem.getModifiers().empty())
    return false;
  bool sloping = false;
  auto write = [&](Region &region, bool small) {
    Block &block = region.emplaceBlock();
    Type i32 = b.getI32Type(), f32 = b.getF32Type();
    block.addArguments({f32, i32, i32, i32, f32}, SmallVector<Location>(5, loc));
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    FloatMath each(inside, loc);
    MaskScope sequence = scope;
    if (packs) // packed rows have heads of their own
      sequence.head = block.addArgument(i32, loc);
    // The last two arguments add up to the column: a key if queries are stationary, otherwise a query.
    Index q = Index(block.getArgument(transposed ? 2 : 1)), k = Index(block.getArgument(transposed ? 1 : 2)),
          first = Index(block.getArgument(3));
    Value ahead = block.getArgument(4);
    ScoreScope of = scoreScope(sequence, packs ? inside : before, inside, q, k, /*from=*/transposed ? first : q,
                               /*base=*/transposed ? k : first, transposed ? each.neg(ahead) : ahead);
    Value slope;
    Score score = {productOf(each, block.getArgument(0)), scaleOfProducts()};
    SmallVector<ScoreModifierInterface> modifiers = problem.getModifiers();
    if (small) {
      ScoreModifierInterface first = modifiers.front();
      SmallVector<double> derivative = first.smallDerivative(score.factor, errorOfScores());
      // squares of products overflow float16
      SmallValue x(each, score.value, first.smallBelow(score.factor, errorOfScores()), SmallValue::Square,
                   /*narrow=*/problem.getDtype().isF16());
      score = modified(of, settled(each, x.score(first.smallScore(score.factor, errorOfScores()))),
                       ArrayRef(modifiers).drop_front(), slope, by);
      if (op.getSlopes() && !slope) { // computed for two scores at a time
        slope = x.argument;
        op.setSlopes(x.coefficients(derivative));
      } else {
        Value own = x.evaluate(derivative);
        slope = slope ? each.mul(slope, own) : own;
      }
    } else {
      score = modified(of, score, modifiers, slope, by);
    }
    sloping = slope && wantsSlope;
    YieldOp::create(inside, loc, ValueRange{score.value, sloping ? slope : each.constant(1)});
    op.setScale(APFloat(score.factor));
  };
  write(op.getModify(), /*small=*/false);
  double within = problem.getModifiers().front().smallBelow(scaleOfProducts(), errorOfScores());
  if (hasSmall && sloping && within > 0) {
    write(op.getSmall(), /*small=*/true);
    op.setWithin(APFloat(within));
  }
  if (!sloping)
    op.removeSlopesAttr();
  return sloping;
}

ProbabilitiesOp AttentionBody::recomputeProbabilities(const ProbabilityStep &step) {
  maskScores(step.walk, step.scores, step.row0, step.col0, step.transposed, step.tested);
  // Packed kv heads have no modifiers, which alone use the column.
  Value column = isa<PairsType>(step.col0.getType()) ? math.value(0) : step.col0;
  auto op = ProbabilitiesOp::create(b, loc, step.scores, step.statistics, step.row0, column, /*weighted=*/Value(),
                                    b.getF64FloatAttr(scaleOfProducts()),
                                    step.transposed ? b.getUnitAttr() : UnitAttr(), /*within=*/FloatAttr(),
                                    /*slopes=*/DenseF64ArrayAttr());
  if (step.separateSlopes)
    op.setSlopes(ArrayRef<double>{});
  OpBuilder before(step.loop ? step.loop : op.getOperation());
  bool packs = isa<PairsType>(step.row0.getType());
  if (writeModified(op, before, step.transposed, packs, step.wantsSlope, step.hasSmall, step.by))
    op.getWeightedMutable().assign(step.gradFactor(op));
  return op;
}

double AttentionBody::scaleOfProducts() {
  double scale = std::abs(problem.scaleOrDefault());
  // Without modifiers, hidden scores of -inf have to stay -inf: a tiny scale, but a normal number, since threads with
  // flush-to-zero (JAX's) would make a subnormal 0. With modifiers `productOf` is 0.
  return scale > 0 ? scale : problem.getModifiers().empty() ? 0x1p-100 : 1;
}

Value AttentionBody::productOf(FloatMath &math, Value product) {
  return problem.scaleOrDefault() == 0 ? math.mul(product, math.constant(0)) : product;
}

void AttentionBody::findKeyResidue() {
  if (!residues)
    return;
  bool isSame = residues.getOffset() == 0 && residues.getDiagonal() == Diagonal::top_left;
  keyResidue = isSame ? queryResidue : math.named(residueOfKeys(residues, math, scope, queryResidue), "key_residue");
}

KvLoopOp AttentionBody::createLoop(ArrayRef<KeyRun> runs) {
  SmallVector<Value> bounds;
  SmallVector<Attribute> segments;
  for (const KeyRun &run : runs) {
    for (Index bound : run.bounds)
      bounds.push_back(math.value(bound));
    SmallVector<Attribute> tests;
    for (ArrayRef<int64_t> segment : run.tests)
      tests.push_back(b.getDenseI64ArrayAttr(segment));
    segments.push_back(b.getArrayAttr(tests));
  }
  if (segments.empty())
    return {}; // no row sees any key
  auto loop = KvLoopOp::create(b, loc, TypeRange(), bounds, /*own=*/ValueRange(), ValueRange(),
                               b.getArrayAttr(segments), /*one_body=*/false);
  loop.getBody().emplaceBlock().addArguments({b.getI32Type(), b.getI32Type(), b.getI1Type()}, {loc, loc, loc});
  return loop;
}

Value AttentionBody::copyTma(Value place, StringRef tensor, Index row, Index head, Index left,
                             std::optional<int64_t> boxCount) {
  LayoutAttr layout = tensor == "q"   ? problem.getQLayout()
                      : tensor == "k" ? problem.getKLayout()
                      : tensor == "v" ? problem.getVLayout()
                                      : problem.getOLayout();
  bool packed = layout.isPacked();
  return CopyTmaOp::create(b, loc, place, args[(tensor + "_map").str()], math.value(row), math.value(head),
                           packed ? Value() : math.value(batch), packed ? math.value(left) : Value(),
                           boxCount ? b.getI64IntegerAttr(*boxCount) : IntegerAttr());
}
