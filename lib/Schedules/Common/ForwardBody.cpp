// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForwardBody.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void ForwardBody::findKvHead() {
  int64_t group = problem.getHeads() / problem.getKvHeads();
  kvHead = math.named(math.floorDiv(h, group), "kv_head");
  scope.head = numberOfHead();
}

void ForwardBody::findKeys() {
  findKvHead();
  findLengths();
  findKeyResidue();
  keyRows = rowsOfResidue(scope.lenK, keyResidue);
}

/// The score of a head's sink, computed at `at`.
static Value sinkScore(OpBuilder &at, Location loc, ProblemOp problem, Value sinks, Index head,
                       std::optional<Cond> counts) {
  FloatMath math(at, loc);
  IndexMath indices(at, loc);
  if (std::optional<double> number = problem.getSinkNumber())
    sinks = math.constant(*number);
  else
    sinks = LoadOp::create(at, loc, at.getF32Type(), sinks, indices.value(head), /*uniform=*/false);
  if (!counts)
    return sinks;
  Value none = arith::ConstantOp::create(at, loc, at.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
  return arith::SelectOp::create(at, loc, indices.value(*counts), sinks, none);
}

Value ForwardBody::sinks() {
  std::optional<ScoreOperand> array = problem.getSinkArray();
  return array ? args[array->name] : Value();
}

void ForwardBody::findSink(std::optional<Cond> counts) {
  sinkCounts = counts;
  if (problem.getSinkAttr() && schedule.getPackHeads() == 1)
    sink = sinkScore(b, loc, problem, sinks(), numberOfHead(), counts);
}

void ForwardBody::addSink(Value acc, Value row) {
  if (problem.getSinkAttr())
    writeSink(AddSinkOp::create(b, loc, acc, row, origin).getBody());
}

void ForwardBody::writeSink(Region &region) {
  Block &block = region.emplaceBlock();
  OpBuilder inside = OpBuilder::atBlockEnd(&block);
  Value score = sink;
  if (!score)
    score = sinkScore(inside, loc, problem, sinks(), Index(block.addArgument(b.getI32Type(), loc)), sinkCounts);
  YieldOp::create(inside, loc, score);
}

void ForwardBody::emitScoresAndSoftmax(const Step &step) {
  auto product = MmaAbtOp::create(b, loc, step.scores, step.q, step.k, step.negated, /*recomputed=*/false);
  WaitOp::create(b, loc, product.getToken());
  double scale = modifyScores(step.scores, step.loop ? step.loop : product.getOperation(), step.k0);
  maskScores(step.walk, step.scores, origin, firstColumn(step), /*transposed=*/false, step.tested);
  if (step.beforeSoftmax)
    step.beforeSoftmax();
  auto flag = [&](bool on) { return on ? b.getUnitAttr() : UnitAttr(); };
  OnlineSoftmaxOp::create(b, loc, step.scores, step.row, step.acc, b.getF64FloatAttr(scale), flag(step.rising),
                          flag(step.recomputed));
}

void ForwardBody::dropProbabilities(const Step &step) {
  drop(step.scores, origin, firstColumn(step), dropoutState, /*scaled=*/false);
}

void ForwardBody::accumulateValues(Value acc, Value p, Value v, bool guarded) {
  WaitOp::create(b, loc, MmaAbOp::create(b, loc, acc, p, v, guarded, Value()).getToken());
}

double ForwardBody::modifyScores(Value scores, Operation *loop, Index k0) {
  double factor = scaleOfProducts();
  OpBuilder before(loop);
  SmallVector<ScoreModifierInterface> modifiers = problem.getModifiers();
  for (auto [i, modifier] : llvm::enumerate(modifiers)) {
    // The formula is exact to 16-bit results.
    bool hasSmall = !problem.getDtype().isF32();
    double within = hasSmall ? modifier.smallBelow(factor, /*error=*/0) : 0;
    auto some = [&](double number) { return number > 0 ? b.getF64FloatAttr(number) : FloatAttr(); };
    auto op = ModifyOp::create(b, loc, scores, origin, math.value(k0), some(within),
                               some(hasSmall ? modifier.smallBecomes(factor) : 0));
    auto write = [&, first = i == 0](Region &region, llvm::function_ref<Score(ScoreScope &, Score)> emit) {
      return writeScore(region, before, factor, [&](ScoreScope &scope, Score score) {
        if (first)
          score.value = productOf(scope.each, score.value);
        return emit(scope, score);
      });
    };
    if (within > 0)
      write(op.getSmall(), [&, modifier = modifier](ScoreScope &scope, Score score) {
        return SmallValue(scope.each, score.value, within, SmallValue::Beyond)
            .score(modifier.smallScore(factor, /*error=*/0));
      });
    factor = write(op.getBody(),
                   [modifier = modifier](ScoreScope &scope, Score score) { return modifier.emitScore(scope, score); });
  }
  return factor;
}

double ForwardBody::writeScore(Region &region, OpBuilder &before, double factor,
                               llvm::function_ref<Score(ScoreScope &, Score)> emit) {
  Block &block = region.emplaceBlock();
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  block.addArguments({f32, i32, i32, i32, f32}, SmallVector<Location>(5, loc));
  OpBuilder inside = OpBuilder::atBlockEnd(&block);
  MaskScope sequence = scope;
  bool packs = schedule.getPackHeads() != 1;
  if (packs) // packed rows have heads of their own
    sequence.head = block.addArgument(i32, loc);
  OpBuilder &once = packs ? inside : before;
  Index q = Index(block.getArgument(1)), k = Index(block.getArgument(2));
  ScoreScope score =
      scoreScope(sequence, once, inside, q, k, /*from=*/q, /*base=*/Index(block.getArgument(3)), block.getArgument(4));
  Score result = emit(score, {block.getArgument(0), factor});
  SmallVector<Value> parts = {result.value};
  if (result.times || result.offset)
    parts.append(
        {result.times ? result.times : score.each.constant(1), result.offset ? result.offset : score.each.constant(0)});
  YieldOp::create(inside, loc, parts);
  return result.factor;
}
