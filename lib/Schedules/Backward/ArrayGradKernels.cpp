// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of arrays that scores are computed from. The gradient of an entry is the sum, over the score positions that
// use it, of dS times the derivative of the score by the entry: a sum over the axes that the array lacks.
//
// One kernel recomputes tiles of these terms and adds those of the same entries:
//
// - query and key axes: each CTA has a tile of entries, loops over the other axes, and stores the tile;
// - query axis, or neither: a CTA loops over the keys of a query tile and stores the sum of each row;
// - key axis: a CTA loops over the queries of a KV tile and stores the sum of each key;
// - table of distances: a CTA loops over tiles along a diagonal and stores the sum of each distance.
//
// These partial sums are as long as the sequences, for each head. A second kernel, with a warp for each entry, adds
// those of an entry; for sinks it computes the sum from row statistics alone. One CTA or warp computes each sum, in a
// fixed order.
//
#include "ArrayGradKernels.h"
#include "BackwardBody.h"
#include "Schedules/Common/KernelArguments.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// CTAs of the first kernel for each head and sequence.
constexpr int64_t workers = 32;

class ArrayGradBody : protected BackwardBody {
protected:
  ArrayGradBody(ProblemOp problem, KernelOp kernel, const ScoreOperand &array, int64_t tile)
      : BackwardBody(problem, kernel), array(array), tile(tile) {}

  bool has(ScoreOperand::Axis axis) { return array.has(axis); }

  /// Sets the current sequence and head.
  void enter(Index sequence, Index head) {
    batch = sequence, h = head;
    kvHead = math.floorDiv(h, int64_t(problem.getHeads() / problem.getKvHeads()));
    lenQ = problem.getQLayout().isPacked() ? Index(0) : arg("seqlen_q");
    findLengths();
    firstQuery = findFirstQuery();
    findArrays();
  }
  /// Emits `body` for all sequences and heads along which the array has no axis, and for the given ones otherwise.
  void alongOthers(Index sequence, Index head, llvm::function_ref<void()> body) {
    auto heads = [&](Index of) {
      if (has(ScoreOperand::Head))
        return enter(of, head), body();
      loop("h", 0, int64_t(problem.getHeads()), 1, [&](Index h) { enter(of, h), body(); });
    };
    if (has(ScoreOperand::Batch))
      return heads(sequence);
    loop("b", 0, arg("batch"), 1, heads);
  }

  Value firstTiledKey() { // padded key offsets may be anywhere; prefix sums of lengths may not
    return firstTiledRow(/*keys=*/true,
                         problem.getKLayout().isPacked() ? Index(load(args["cu_seqlens_kv"], batch)) : Index(0));
  }

  Value partial() { return args[partialGradientOf(array)]; }
  Value at(Value base, Value offset) { return AdvanceOp::create(b, loc, base, offset); }
  /// The first partial sum of rows or keys of the current head and sequence.
  Value sumsOfLine() {
    bool keys = has(ScoreOperand::Key);
    return at(partial(), add(mul(wide(h), keys ? tiledKeys() : tiledRows()), keys ? firstTiledKey() : firstTiledRow()));
  }
  /// The first partial sum of distances; there are two arrays, `pitchOfDistances` apart. Entry x + n * tile is that of
  /// k - q == x, with n the number of the sequence's query tiles; the first array has the positions below a tile's
  /// diagonal, the second those above.
  Value sumsOfDistances() {
    Value all = add(tiledRows(), tiledKeys());
    return at(partial(), add(mul(wide(h), all), add(firstTiledRow(), firstTiledKey())));
  }
  Value pitchOfDistances() { return mul(add(tiledRows(), tiledKeys()), wide(int64_t(problem.getHeads()))); }

  Index tilesOf(Index length) { return math.ceilDiv(length, tile); }

  const ScoreOperand &array;
  int64_t tile;
};

class ArrayGradKernel : ArrayGradBody {
public:
  ArrayGradKernel(ProblemOp problem, KernelOp kernel, const ScoreOperand &array)
      : ArrayGradBody(problem, kernel, array, kernel.getSchedule().getQTile()), warps(kernel.getSchedule().getWarps()),
        transposed(array.has(ScoreOperand::Key) && !array.has(ScoreOperand::Query)) {}

  void build() {
    declareTiles();
    Index cta = Value(IndexOp::block(b, loc));
    if (has(ScoreOperand::Query) && has(ScoreOperand::Key))
      return buildEntryTiles(cta);
    Index worker = math.named(rem(cta, workers), "worker"), line = div(cta, workers);
    Index head = math.named(rem(line, int64_t(problem.getHeads())), "h");
    Index sequence = math.named(div(line, int64_t(problem.getHeads())), "b");
    onlyIf(math.lt(sequence, arg("batch")), [&] {
      enter(sequence, head);
      has(ScoreOperand::Table) ? buildDistances(worker) : buildLines(worker);
    });
  }

private:
  void declareTiles() {
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    Q = shared("Q", tile, colsQk), K = shared("K", tile, colsQk);
    V = shared("V", tile, colsV), dO = shared("dO", tile, colsV);
    stats = alloc("stats", RowStatisticsType::get(b.getContext(), tile));
    auto frag = [&](const char *name) { return alloc(name, FragType::get(b.getContext(), tile, tile, warps)); };
    s = frag("s"), dp = frag("dp"), weighted = frag("weighted"), acc = frag("acc");
    if (has(ScoreOperand::Table))
      scratch = shared("scratch", tile, 2 * tile);
  }

  /// Loops over tiles of entries, distributed over all CTAs.
  void buildEntryTiles(Index cta) {
    Index across = math.named(math.ceilDiv(arg("seqlen_kv"), tile), "across");
    Index cells = mulRuntime(across, math.ceilDiv(arg("seqlen_q"), tile));
    if (has(ScoreOperand::Head))
      cells = math.mul(cells, int64_t(problem.getHeads()));
    if (has(ScoreOperand::Batch))
      cells = mulRuntime(cells, arg("batch"));
    Index ctas = math.mul(math.max(arg("batch"), 1), int64_t(problem.getHeads()) * workers);
    loop("cell", cta, math.named(cells, "cells"), math.named(ctas, "blocks"), [&](Index cell) {
      Index k0 = math.named(math.mul(rem(cell, across), tile), "k0"), rest = div(cell, across);
      Index down = math.ceilDiv(arg("seqlen_q"), tile);
      Index q0 = math.named(math.mul(rem(rest, down), tile), "q0");
      rest = div(rest, down);
      Index head = 0;
      if (has(ScoreOperand::Head)) {
        head = math.named(rem(rest, int64_t(problem.getHeads())), "own_h");
        rest = div(rest, int64_t(problem.getHeads()));
      }
      ClearOp::create(b, loc, acc);
      alongOthers(rest, head, [&] { addTile(q0, k0); });
      Value line = wide(int64_t(0));
      if (has(ScoreOperand::Batch))
        line = wide(rest);
      if (has(ScoreOperand::Head))
        line = add(mul(line, wide(int64_t(problem.getHeads()))), wide(head));
      Value row = add(mul(line, wide(arg("seqlen_q"))), wide(q0)), stride = wide(arg("seqlen_kv"));
      StoreCornerOp::create(b, loc, at(args[gradientOf(array)], add(mul(row, stride), wide(k0))), stride,
                            math.value(math.sub(arg("seqlen_q"), q0)), math.value(math.sub(arg("seqlen_kv"), k0)), acc);
    });
  }

  /// Sums of rows or keys of the current head and sequence.
  void buildLines(Index worker) {
    Value sums = sumsOfLine();
    Index own = transposed ? scope.lenK : lenQ, others = transposed ? lenQ : scope.lenK;
    loop(transposed ? "k0" : "q0", math.mul(worker, tile), own, workers * tile, [&](Index first) {
      ClearOp::create(b, loc, acc);
      loop(transposed ? "q0" : "k0", 0, others, tile,
           [&](Index other) { transposed ? addTile(other, first) : addTile(first, other); });
      StoreSumsOp::create(b, loc, at(sums, wide(first)), acc);
    });
  }

  /// Sums of distances, along the diagonals of tiles that begin j - (query tiles - 1) tiles from the main one.
  void buildDistances(Index worker) {
    Value sums = sumsOfDistances(), pitch = pitchOfDistances();
    Index down = math.named(tilesOf(lenQ), "down"), across = math.named(tilesOf(scope.lenK), "across");
    Index any =
        math.select(math.logicalAnd(math.lt(0, lenQ), math.lt(0, scope.lenK)), math.sub(math.add(down, across), 1), 0);
    loop("j", worker, math.named(any, "diagonals"), workers, [&](Index j) {
      ClearOp::create(b, loc, acc);
      Index from = math.max(math.sub(math.sub(down, 1), j), 0);
      Index end = math.min(math.sub(math.sub(math.add(down, across), 1), j), down);
      loop("i", from, end, 1, [&](Index i) {
        Index keyTile = math.sub(math.add(i, j), math.sub(down, 1));
        addTile(math.named(math.mul(i, tile), "q0"), math.named(math.mul(keyTile, tile), "k0"));
      });
      StoreSumsOp::create(b, loc, at(sums, wide(math.mul(j, tile))), acc, pitch, scratch);
    });
  }

  /// acc += the terms of one tile of score positions.
  void addTile(Index q0, Index k0) {
    KeyWalk walk(problem.getMask(), scope);
    Interval queries = {q0, math.min(math.add(q0, tile), lenQ)}, keys = {k0, math.min(math.add(k0, tile), scope.lenK)};
    onlyIf(problem.getMask().tileTruth(math, scope, queries, keys).some, [&] {
      Index row = math.add(firstQuery, q0), key = math.add(firstKey, k0);
      auto copy = [&](Value place, StringRef tensor, Index row, Index head, Index rows, int64_t dim) -> Value {
        return CopyAsyncOp::create(b, loc, place, rowPointer(tensor, row, batch, head), args[(tensor + "_row").str()],
                                   math.value(rows), dim, Value());
      };
      Value statistics = rowStatisticsPointer(firstTiledRow(), h, q0);
      Index left = math.sub(lenQ, q0), leftKeys = math.sub(scope.lenK, k0);
      Value copied[] = {copy(Q, "q", row, h, left, problem.getDimQk()), copy(dO, "do", row, h, left, problem.getDimV()),
                        copy(K, "k", key, kvHead, leftKeys, problem.getDimQk()),
                        copy(V, "v", key, kvHead, leftKeys, problem.getDimV()),
                        CopyRowStatisticsOp::create(b, loc, stats, statistics, statisticsPitch())};
      WaitOp::create(b, loc, ValueRange(copied));
      if (problem.scaleOrDefault() < 0)
        ScaleOp::create(b, loc, Q, /*factor=*/llvm::APFloat(-1.0));
      auto product = [&](Value to, Value rows, Value columns) {
        auto op =
            MmaAbtOp::create(b, loc, to, transposed ? columns : rows, transposed ? rows : columns, /*negated=*/false,
                             /*recomputed=*/false);
        WaitOp::create(b, loc, op.getToken());
      };
      product(s, Q, K);
      product(dp, dO, V);
      Value row0 = math.value(transposed ? k0 : q0), column0 = math.value(transposed ? q0 : k0);
      auto gradFactor = [&](ProbabilitiesOp) { return weighted; };
      ProbabilityStep step = {.walk = walk, .scores = s, .statistics = stats, .row0 = row0, .col0 = column0};
      step.transposed = transposed;
      step.by = &array;
      step.gradFactor = gradFactor;
      ProbabilitiesOp op = recomputeProbabilities(step);
      drop(dp, row0, column0, findDropoutState(), /*scaled=*/true, transposed);
      GradScoresOp::create(b, loc, dp, weighted, stats, /*slopes=*/Value(), /*by=*/FloatAttr(),
                           transposed ? b.getUnitAttr() : UnitAttr());
      AccumulateOp::create(b, loc, acc, dp);
      BarrierOp::create(b, loc, /*warp=*/false);
      // Recompute loop-invariant values in each iteration and where masks and modifiers use them: with more than 192
      // columns, products leave no registers for values kept across the loops over batch and keys.
      if (std::max(problem.getDimQk(), problem.getDimV()) > 192 &&
          op->getParentOfType<KernelOp>().getTarget() != "cpu") {
        for (auto mask : op->getBlock()->getOps<ApplyMaskOp>())
          recomputeInLoop(mask, OpBuilder(mask));
        recomputeInLoop(op, OpBuilder(op));
        recomputeInLoop(op->getParentOp(), OpBuilder::atBlockBegin(op->getBlock()));
      }
    });
  }

  int64_t warps;
  bool transposed; ///< tiles are transposed: their rows are keys
  Value Q, K, V, dO, stats, s, dp, weighted, acc, scratch;
};

/// Sums the partial sums of each entry. A CTA is one warp and takes entries in a grid-stride loop.
class TotalsKernel : ArrayGradBody {
public:
  TotalsKernel(ProblemOp problem, KernelOp kernel, const ScoreOperand &array, int64_t tile)
      : ArrayGradBody(problem, kernel, array, tile) {}

  void build() {
    Index cta = Value(IndexOp::block(b, loc));
    Index entries = 1;
    for (ScoreOperand::Axis axis : array.axes)
      entries = entries.is(1) ? extentOf(axis) : mulRuntime(entries, extentOf(axis));
    Index ctas = math.mul(math.max(arg("batch"), 1), int64_t(problem.getHeads()));
    loop("entry", cta, math.named(entries, "entries"), math.named(ctas, "blocks"), [&](Index entry) {
      Index places[ScoreOperand::Table + 1] = {0, 0, 0, 0, 0}, rest = entry;
      for (ScoreOperand::Axis axis : llvm::reverse(array.axes)) {
        places[axis] = rem(rest, extentOf(axis));
        rest = div(rest, extentOf(axis));
      }
      Value to = at(args[gradientOf(array)], wide(entry));
      ClearOp::create(b, loc, to);
      alongOthers(places[ScoreOperand::Batch], places[ScoreOperand::Head], [&] { addLine(to, places); });
    });
  }

private:
  Index extentOf(ScoreOperand::Axis axis) {
    switch (axis) {
    case ScoreOperand::Batch:
      return arg("batch");
    case ScoreOperand::Head:
      return int64_t(problem.getHeads());
    case ScoreOperand::Query:
      return arg("seqlen_q");
    case ScoreOperand::Key:
      return arg("seqlen_kv");
    case ScoreOperand::Table:
      return array.entries;
    }
    llvm_unreachable("covered");
  }

  /// Adds the terms of the current sequence and head.
  void addLine(Value to, ArrayRef<Index> places) {
    if (problem.isSinkArray(array)) {
      Value sink = LoadOp::create(b, loc, b.getF32Type(), args[array.name], math.value(h), /*uniform=*/false);
      AddSinkGradOp::create(b, loc, to, rowStatisticsPointer(firstTiledRow(), h, 0), statisticsPitch(),
                            math.value(lenQ), sink);
    } else if (has(ScoreOperand::Table)) {
      addDistances(to, places[ScoreOperand::Table]);
    } else if (has(ScoreOperand::Query) || has(ScoreOperand::Key)) {
      Index own = places[has(ScoreOperand::Key) ? ScoreOperand::Key : ScoreOperand::Query];
      AddTotalOp::create(b, loc, to, at(sumsOfLine(), wide(own)), math.value(Index(1)));
    } else {
      AddTotalOp::create(b, loc, to, sumsOfLine(), math.value(lenQ));
    }
  }

  /// Adds the sums of the entry's distances: one, or at either end of the table all beyond.
  void addDistances(Value to, Index entry) {
    Index shift = array.diagonal == Diagonal::bottom_right ? math.sub(scope.lenK, scope.lenQ) : Index(0);
    Index down = math.mul(tilesOf(lenQ), tile), across = math.mul(tilesOf(scope.lenK), tile);
    Index own = math.add(math.sub(entry, array.entries / 2), shift);
    Index lo = math.select(math.eq(entry, 0), math.sub(0, down), own);
    Index hi = math.select(math.eq(entry, array.entries - 1), across, math.add(own, 1));
    Value sums = sumsOfDistances();
    Cond some = math.logicalAnd(math.lt(0, lenQ), math.lt(0, scope.lenK));
    // Positions below their tile's diagonal reach from the lowest distance to one tile before the highest, those above
    // from one tile after the lowest.
    for (bool above : {false, true}) {
      Index from = math.max(lo, math.sub(above ? Index(tile) : Index(0), down));
      Index end = math.min(hi, above ? across : math.sub(across, tile));
      Index count = math.select(some, math.sub(end, from), 0);
      Value offset = wide(math.add(from, down));
      if (above)
        offset = add(offset, pitchOfDistances());
      AddTotalOp::create(b, loc, to, at(sums, offset), math.value(count));
    }
  }
};

} // namespace

void attn::writeArrayGrads(BackwardOp backward, ProgramBuilder &program, const TargetInfo &target) {
  ProblemOp problem = backward.getProblemOp();
  OpBuilder b(backward);
  auto module = backward->getParentOfType<ModuleOp>();
  // Shared memory: four operand tiles and a scratch tile for sums.
  int64_t cols = llvm::alignTo(std::max(problem.getDimQk(), problem.getDimV()), 16) + 8, tile = 64;
  if (!target.isHost() && tile * (4 * 2 * cols + 2 * (2 * tile + 8)) > target.sharedMemory - 1024)
    tile = 32;
  // Four fragments leave no registers for several modifiers.
  if (!target.isHost() && problem.getModifiers().size() > 1)
    tile = 32;
  auto schedule = [&](int64_t size, int64_t warps) {
    return AuxiliaryAttr::get(b.getContext(), size, size, target.isHost() ? 1 : warps, /*ctas_per_sm=*/1)
        .withPerSequence(true);
  };
  SmallVector<ScoreOperand> arrays = backward.getDifferentiatedArrays();
  for (const ScoreOperand &array : arrays) {
    std::string gradient = gradientOf(array), partial = partialGradientOf(array);
    auto make = [&](StringRef suffix, ArrayRef<TensorUse> tensors, int64_t ctas, ScheduleInterface schedule) {
      auto arguments = KernelArguments::ofBackward(backward, tensors, /*usesTma=*/false, [](StringRef) { return 0; });
      KernelGrid grid;
      grid.packed = true; // at least one CTA even without sequences: entries have to be written
      grid.heads = problem.getHeads();
      grid.tiles = b.getI64IntegerAttr(ctas);
      return arguments.makeKernel(program, b, backward.getLoc(),
                                  freeSymbol(module, backward.getSymName() + "_" + gradient + suffix), target.generic(),
                                  grid, schedule);
    };
    bool sinks = problem.isSinkArray(array);
    bool isPerScore = array.has(ScoreOperand::Query) && array.has(ScoreOperand::Key);
    if (!sinks)
      ArrayGradKernel(problem,
                      make(isPerScore ? "" : "_parts",
                           {{"q"},
                            {"k"},
                            {"v"},
                            {"do"},
                            {"row_statistics"},
                            {"row_statistics_head"},
                            {"row_statistics_kind"},
                            {isPerScore ? gradient : partial, program::Effect::write}},
                           workers, schedule(tile, tile / 16)),
                      array)
          .build();
    if (!isPerScore)
      TotalsKernel(problem,
                   make("",
                        {{"row_statistics"},
                         {"row_statistics_head"},
                         {"row_statistics_kind"},
                         {gradient, program::Effect::write},
                         {partial}},
                        1, schedule(16, 1)),
                   array, tile)
          .build();
  }
}
