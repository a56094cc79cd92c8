// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "AttentionBody.h"
#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Value AttentionBody::perRow(Value query, Value head, StringRef name) {
  if (config.getPackHeads() == 1)
    return query;
  Location named = name.empty() ? loc : NameLoc::get(b.getStringAttr(name), loc);
  return PairsOp::create(b, named, PairsType::get(b.getContext(), config.getPackHeads(), query.getType()), query,
                         head);
}

void AttentionBody::findKeys() {
  int64_t group = problem.getHeads() / problem.getKvHeads();
  kvHead = math.named(math.floorDiv(h, group), "kv_head");
  if (problem.getQLayout().isPacked())
    lenQ = math.named(lengthIn("cu_seqlens_q"), "len_q");
  if (problem.getKLayout().isPacked()) {
    firstKey = load(args[problem.getKLayout().getPadded() ? "padded_offsets_kv" : "cu_seqlens_kv"], batch);
    firstKey = math.named(firstKey, "first_key");
    scope.lenK = math.named(lengthIn("cu_seqlens_kv"), "len_kv");
  } else {
    firstKey = 0;
    scope.lenK = arg("seqlen_kv");
  }
  scope.lenQ = lenQ;
  scope.batch = batch;
  scope.head = h;
  scope.heads = problem.getHeads();
}

void AttentionBody::findArrays() {
  // What belongs to this sequence and head; positions in it are 32 bits.
  llvm::StringMap<Value> arrays;
  for (const MaskOperand &array : distinctOperands(problem.getMask()))
    if (array.shape != OperandShape::PerSequence)
      arrays[array.name] = AdvanceOp::create(b, loc, args[array.name], startOf(array));
  scope.load = [this, arrays, operands = problem.getMask().operands()](unsigned operand, Index position) {
    const MaskOperand &array = operands[operand];
    if (array.shape == OperandShape::PerSequence)
      return load(args[array.name], batch);
    Index length = array.shape == OperandShape::PerQuery ? scope.lenQ : scope.lenK;
    position = math.min(position, math.sub(length, 1)); // tiles reach over the end
    return Index(Value(LoadOp::create(b, loc, arrays.lookup(array.name), math.value(position), /*uniform=*/false)));
  };
}

Value AttentionBody::startOf(const MaskOperand &array) {
  bool perQuery = array.shape == OperandShape::PerQuery;
  bool packed = (perQuery ? problem.getQLayout() : problem.getKLayout()).isPacked();
  Value line = packed ? Value() : wide(batch), token = packed ? wide(perQuery ? firstQuery : firstKey) : Value();
  if (array.heads != OperandHeads::shared) {
    bool perHead = array.heads == OperandHeads::per_head;
    Value head = wide(perHead ? h : kvHead);
    line = line ? add(mul(line, wide(int64_t(perHead ? problem.getHeads() : problem.getKvHeads()))), head) : head;
  }
  if (!line)
    return token;
  std::string extent = (packed ? "total_" : "seqlen_") + std::string(perQuery ? "q" : "kv");
  Value start = mul(line, wide(arg(extent)));
  return token ? add(start, token) : start;
}

tile::KvLoopOp AttentionBody::makeLoop(ArrayRef<KeyRun> runs) {
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
    return {};
  auto loop =
      KvLoopOp::create(b, loc, TypeRange(), bounds, ValueRange(), b.getArrayAttr(segments), /*one_body=*/false);
  loop.getBody().emplaceBlock().addArguments({b.getI32Type(), b.getI32Type(), b.getI1Type()}, {loc, loc, loc});
  return loop;
}

double AttentionBody::modifyScores(KvLoopOp loop, Index k0) {
  double factor = scaleOfProducts();
  OpBuilder before(loop);
  for (ScoreModifierInterface modifier : problem.getModifiers()) {
    double within = modifier.smallBelow(factor);
    auto op =
        ModifyOp::create(b, loc, s, origin, math.value(k0), within > 0 ? b.getF64FloatAttr(within) : FloatAttr());
    if (within > 0)
      writeScore(op.getSmall(), before, factor,
                 [&](ScoreScope &scope, Score score) { return modifier.emitSmallScore(scope, score); });
    factor = writeScore(op.getBody(), before, factor,
                        [&](ScoreScope &scope, Score score) { return modifier.emitScore(scope, score); });
  }
  return factor;
}

double AttentionBody::writeScore(Region &region, OpBuilder &before, double factor,
                  llvm::function_ref<Score(ScoreScope &, Score)> emit) {
  Block &block = region.emplaceBlock();
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  block.addArguments({f32, i32, i32, i32, f32}, SmallVector<Location>(5, loc));
  OpBuilder inside = OpBuilder::atBlockEnd(&block);
  MaskScope sequence = scope;
  bool packs = config.getPackHeads() != 1;
  if (packs) // a row's head is its own
    sequence.head = block.addArgument(i32, loc);
  OpBuilder &once = packs ? inside : before;
  ScoreScope score = {sequence,
                      int64_t(problem.getHeads()),
                      FloatMath(once, loc),
                      FloatMath(inside, loc),
                      Index(block.getArgument(1)),
                      Index(block.getArgument(2)),
                      Index(block.getArgument(3)),
                      block.getArgument(4),
                      [&](const ScoreOperand &operand, Index at) {
                        bool perScore = operand.has(ScoreOperand::Query) || operand.has(ScoreOperand::Key) ||
                                        operand.has(ScoreOperand::Table);
                        return loadEntry(operand, perScore ? inside : once, sequence, block, at);
                      },
                      [&](Diagonal diagonal) { return reachOf(problem.getMask(), diagonal); }};
  Score result = emit(score, {block.getArgument(0), factor});
  SmallVector<Value> parts = {result.value};
  if (result.times || result.offset)
    parts.append({result.times ? result.times : score.each.constant(1),
                  result.offset ? result.offset : score.each.constant(0)});
  YieldOp::create(inside, loc, parts);
  return result.factor;
}

Value AttentionBody::loadEntry(const ScoreOperand &operand, OpBuilder &at, const MaskScope &sequence, Block &block,
                               Index entry) {
  IndexMath indices(at, loc);
  auto element = [&](Value offset) -> Value {
    return LoadOp::create(at, loc, b.getF32Type(), args[operand.name], offset, /*uniform=*/false);
  };
  if (operand.axes.size() == 1 && operand.has(ScoreOperand::Head))
    return element(indices.value(sequence.head));
  // Tiles reach over the end.
  auto within = [&](unsigned argument, Index length) {
    return indices.min(Index(block.getArgument(argument)), indices.sub(length, 1));
  };
  auto wideAt = [&](Index x) -> Value { return arith::ExtSIOp::create(at, loc, b.getI64Type(), indices.value(x)); };
  Value offset;
  for (ScoreOperand::Axis axis : operand.axes) {
    Index place = 0, extent = 0;
    switch (axis) {
    case ScoreOperand::Batch:
      place = batch, extent = arg("batch");
      break;
    case ScoreOperand::Head:
      place = sequence.head, extent = int64_t(problem.getHeads());
      break;
    case ScoreOperand::Query:
      place = within(1, scope.lenQ), extent = scope.lenQ;
      break;
    case ScoreOperand::Key:
      place = within(2, scope.lenK), extent = scope.lenK;
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

void AttentionBody::buildTests(KeyWalk &walk, Region &region) {
  OpBuilder::InsertionGuard guard(b);
  Block &test = region.emplaceBlock();
  test.addArguments({b.getI32Type(), b.getI32Type()}, {loc, loc});
  b.setInsertionPointToStart(&test);
  SmallVector<Value> kept;
  for (Cond cond : walk.tests(math, Index(test.getArgument(0)), Index(test.getArgument(1))))
    kept.push_back(math.value(cond));
  YieldOp::create(b, loc, kept);
}

double AttentionBody::scaleOfProducts() {
  double scale = std::abs(problem.scaleOrDefault());
  return scale > 0 ? scale : 0x1p-149;
}
