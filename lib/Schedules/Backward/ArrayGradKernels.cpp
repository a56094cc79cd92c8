// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of arrays that scores are made with. An entry's is a sum over the pairs to which it belongs, of the
// gradient of the score times what the score changes with the entry: the axes that the array has not are summed over.
//
// One kernel computes tiles of these products anew and adds them up where they fall on the same entries:
//
// - of an array of rows and keys, each block has a tile of entries, goes along the other axes, and writes it;
// - of one of rows, or of neither, along the keys of a row tile, and leaves the sum of each row;
// - of one of keys, along the rows of a key tile, and leaves the sum of each key;
// - of a table of distances, along tiles as far from the diagonal as each other, and leaves the sum of each distance.
//
// What it leaves is as long as the sequences are, for each head. Another kernel, a warp an entry, sums what belongs to
// an entry, as it does, from statistics alone, for sinks. Each sum is one block's, or one warp's, in order.
//
#include "ArrayGradKernels.h"
#include "BackwardBody.h"
#include "Schedules/Common/KernelArguments.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Blocks of the first kernel for each head and sequence.
constexpr int64_t workers = 32;

class ArrayGradBody : protected BackwardBody {
protected:
  ArrayGradBody(ProblemOp problem, KernelOp kernel, const ScoreOperand &array, int64_t tile)
      : BackwardBody(problem, kernel), array(array), tile(tile) {}

  bool has(ScoreOperand::Axis axis) { return array.has(axis); }

  /// The sequence and head that code from here on is about.
  void enter(Index sequence, Index head) {
    batch = sequence, h = head;
    kvHead = math.floorDiv(h, int64_t(problem.getHeads() / problem.getKvHeads()));
    lenQ = problem.getQLayout().isPacked() ? Index(0) : arg("seqlen_q");
    findLengths();
    firstQuery = findFirstQuery();
    findArrays();
  }
  /// The body for all sequences and heads along which the array has no axis, and for those given of the others.
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

  Value firstTiledKey() { // padded offsets of keys may lie anywhere; their prefix sums do not
    return firstTiledRow(/*keys=*/true,
                         problem.getKLayout().isPacked() ? Index(load(args["cu_seqlens_kv"], batch)) : Index(0));
  }

  Value partial() { return args[partialGradientOf(array)]; }
  Value at(Value base, Value offset) { return AdvanceOp::create(b, loc, base, offset); }
  /// Of the sums of rows or keys: where those of the head and sequence begin.
  Value sumsOfLine() {
    bool keys = has(ScoreOperand::Key);
    return at(partial(), add(mul(wide(h), keys ? tiledKeys() : tiledRows()), keys ? firstTiledKey() : firstTiledRow()));
  }
  /// The same of the sums of distances, of which all have `pitch` numbers. Number x + n * tile is that of k - q == x,
  /// with n the sequence's query tiles; the first half has sums of pairs below a tile's diagonal, the second those
  /// above.
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
        turned(array.has(ScoreOperand::Key) && !array.has(ScoreOperand::Query)) {}

  void build() {
    declarePlaces();
    Index block = Value(IndexOp::block(b, loc));
    if (has(ScoreOperand::Query) && has(ScoreOperand::Key))
      return buildBlocks(block);
    Index worker = math.named(rem(block, workers), "worker"), line = div(block, workers);
    Index head = math.named(rem(line, int64_t(problem.getHeads())), "h");
    Index sequence = math.named(div(line, int64_t(problem.getHeads())), "b");
    onlyIf(math.lt(sequence, arg("batch")), [&] {
      enter(sequence, head);
      has(ScoreOperand::Table) ? buildDistances(worker) : buildLines(worker);
    });
  }

private:
  void declarePlaces() {
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    Q = shared("Q", tile, colsQk), K = shared("K", tile, colsQk);
    V = shared("V", tile, colsV), dO = shared("dO", tile, colsV);
    stats = place("stats", RowStatisticsType::get(b.getContext(), tile));
    auto frag = [&](const char *name) { return place(name, FragType::get(b.getContext(), tile, tile, warps)); };
    s = frag("s"), dp = frag("dp"), weighted = frag("weighted"), acc = frag("acc");
    if (has(ScoreOperand::Table))
      through = shared("scratch", tile, 2 * tile);
  }

  /// Tiles of entries, dealt to all blocks.
  void buildBlocks(Index block) {
    Index across = math.named(math.ceilDiv(arg("seqlen_kv"), tile), "across");
    Index cells = times(across, math.ceilDiv(arg("seqlen_q"), tile));
    if (has(ScoreOperand::Head))
      cells = math.mul(cells, int64_t(problem.getHeads()));
    if (has(ScoreOperand::Batch))
      cells = times(cells, arg("batch"));
    Index blocks = math.mul(math.max(arg("batch"), 1), int64_t(problem.getHeads()) * workers);
    loop("cell", block, math.named(cells, "cells"), math.named(blocks, "blocks"), [&](Index cell) {
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

  /// Sums of rows or keys of this head and sequence.
  void buildLines(Index worker) {
    Value sums = sumsOfLine();
    Index own = turned ? scope.lenK : lenQ, others = turned ? lenQ : scope.lenK;
    loop(turned ? "k0" : "q0", math.mul(worker, tile), own, workers * tile, [&](Index first) {
      ClearOp::create(b, loc, acc);
      loop(turned ? "q0" : "k0", 0, others, tile,
           [&](Index other) { turned ? addTile(other, first) : addTile(first, other); });
      StoreSumsOp::create(b, loc, at(sums, wide(first)), acc);
    });
  }

  /// Sums of distances: of tiles that begin j - (query tiles - 1) tiles from the diagonal.
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
      StoreSumsOp::create(b, loc, at(sums, wide(math.mul(j, tile))), acc, pitch, through);
    });
  }

  /// acc += what the pairs of a tile add to their entries.
  void addTile(Index q0, Index k0) {
    KeyWalk walk(problem.getMask(), scope);
    Interval queries = {q0, math.min(math.add(q0, tile), lenQ)}, keys = {k0, math.min(math.add(k0, tile), scope.lenK)};
    onlyIf(problem.getMask().tileTruth(math, scope, queries, keys).some, [&] {
      Index row = math.add(firstQuery, q0), key = math.add(firstKey, k0);
      auto copy = [&](Value place, StringRef tensor, Index row, Index head, Index rows, int64_t dim) -> Value {
        return CopyAsyncOp::create(b, loc, place, rowPointer(tensor, row, batch, head), args[(tensor + "_row").str()],
                                   math.value(rows), dim, Value());
      };
      Value statistics = statisticsPointer(firstTiledRow(), h, q0);
      Index left = math.sub(lenQ, q0), leftKeys = math.sub(scope.lenK, k0);
      Value copied[] = {copy(Q, "q", row, h, left, problem.getDimQk()), copy(dO, "do", row, h, left, problem.getDimV()),
                        copy(K, "k", key, kvHead, leftKeys, problem.getDimQk()),
                        copy(V, "v", key, kvHead, leftKeys, problem.getDimV()),
                        CopyRowStatisticsOp::create(b, loc, stats, statistics, statisticsPitch())};
      WaitOp::create(b, loc, ValueRange(copied));
      if (problem.scaleOrDefault() < 0)
        ScaleOp::create(b, loc, Q, /*factor=*/llvm::APFloat(-1.0));
      auto product = [&](Value to, Value rows, Value columns) {
        auto op = MmaAbtOp::create(b, loc, to, turned ? columns : rows, turned ? rows : columns, /*negated=*/false,
                                   /*recomputed=*/false);
        WaitOp::create(b, loc, op.getToken());
      };
      product(s, Q, K);
      product(dp, dO, V);
      Value row0 = math.value(turned ? k0 : q0), column0 = math.value(turned ? q0 : k0);
      auto keep = ApplyMaskOp::create(b, loc, s, row0, column0, turned);
      buildTests(walk, keep.getBody(), turned);
      auto op = ProbabilitiesOp::create(b, loc, s, stats, row0, column0, weighted, b.getF64FloatAttr(scaleOfProducts()),
                                        turned ? b.getUnitAttr() : UnitAttr(), /*within=*/FloatAttr(),
                                        /*slopes=*/DenseF64ArrayAttr());
      OpBuilder before(op);
      writeModified(op, before, turned, /*packs=*/false, /*wantsSlope=*/true, /*hasSmall=*/false, &array);
      drop(dp, row0, column0, findDropoutState(), /*scaled=*/true, turned);
      GradScoresOp::create(b, loc, dp, weighted, stats, /*slopes=*/Value(), /*by=*/FloatAttr(),
                           turned ? b.getUnitAttr() : UnitAttr());
      AccumulateOp::create(b, loc, acc, dp);
      BarrierOp::create(b, loc, /*warp=*/false);
      // In each turn, and for tests and scores where they stand: products of more than 192 columns have no registers
      // for what is kept along the loops over batch and keys.
      if (std::max(problem.getDimQk(), problem.getDimV()) > 192 &&
          op->getParentOfType<KernelOp>().getTarget() != "cpu") {
        recomputeInLoop(keep, OpBuilder(keep));
        recomputeInLoop(op, OpBuilder(op));
        recomputeInLoop(op->getParentOp(), OpBuilder::atBlockBegin(op->getBlock()));
      }
    });
  }

  int64_t warps;
  bool turned; ///< rows of tiles are keys
  Value Q, K, V, dO, stats, s, dp, weighted, acc, through;
};

/// The sums of each entry. A block is a warp, and has every so many-th entry.
class TotalsKernel : ArrayGradBody {
public:
  TotalsKernel(ProblemOp problem, KernelOp kernel, const ScoreOperand &array, int64_t tile)
      : ArrayGradBody(problem, kernel, array, tile) {}

  void build() {
    Index block = Value(IndexOp::block(b, loc));
    Index entries = 1;
    for (ScoreOperand::Axis axis : array.axes)
      entries = entries.is(1) ? extentOf(axis) : times(entries, extentOf(axis));
    Index blocks = math.mul(math.max(arg("batch"), 1), int64_t(problem.getHeads()));
    loop("entry", block, math.named(entries, "entries"), math.named(blocks, "blocks"), [&](Index entry) {
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

  /// What a sequence and head add to the entry.
  void addLine(Value to, ArrayRef<Index> places) {
    if (problem.isSinkArray(array)) {
      Value sink = LoadOp::create(b, loc, b.getF32Type(), args[array.name], math.value(h), /*uniform=*/false);
      AddSinkGradOp::create(b, loc, to, statisticsPointer(firstTiledRow(), h, 0), statisticsPitch(), math.value(lenQ),
                            sink);
    } else if (has(ScoreOperand::Table)) {
      addDistances(to, places[ScoreOperand::Table]);
    } else if (has(ScoreOperand::Query) || has(ScoreOperand::Key)) {
      Index own = places[has(ScoreOperand::Key) ? ScoreOperand::Key : ScoreOperand::Query];
      AddTotalOp::create(b, loc, to, at(sumsOfLine(), wide(own)), math.value(Index(1)));
    } else {
      AddTotalOp::create(b, loc, to, sumsOfLine(), math.value(lenQ));
    }
  }

  /// Of the distances that have the entry: one, or at an end all beyond.
  void addDistances(Value to, Index entry) {
    Index shift = array.diagonal == Diagonal::bottom_right ? math.sub(scope.lenK, scope.lenQ) : Index(0);
    Index down = math.mul(tilesOf(lenQ), tile), across = math.mul(tilesOf(scope.lenK), tile);
    Index own = math.add(math.sub(entry, array.entries / 2), shift);
    Index lo = math.select(math.eq(entry, 0), math.sub(0, down), own);
    Index hi = math.select(math.eq(entry, array.entries - 1), across, math.add(own, 1));
    Value sums = sumsOfDistances();
    Cond some = math.logicalAnd(math.lt(0, lenQ), math.lt(0, scope.lenK));
    // Pairs below their tile's diagonal reach from the lowest distance to a tile before the highest, those above
    // from a tile behind the lowest.
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
  // Four tiles of operands, and room for one of sums.
  int64_t cols = llvm::alignTo(std::max(problem.getDimQk(), problem.getDimV()), 16) + 8, tile = 64;
  if (!target.isHost() && tile * (4 * 2 * cols + 2 * (2 * tile + 8)) > target.sharedMemory - 1024)
    tile = 32;
  // Four fragments leave no registers for what several modifiers make.
  if (!target.isHost() && problem.getModifiers().size() > 1)
    tile = 32;
  auto schedule = [&](int64_t size, int64_t warps) {
    return AuxiliaryAttr::get(b.getContext(), size, size, target.isHost() ? 1 : warps, /*blocks=*/1)
        .withPerSequence(true);
  };
  SmallVector<ScoreOperand> arrays = backward.getDifferentiatedArrays();
  for (const ScoreOperand &array : arrays) {
    std::string gradient = gradientOf(array), partial = partialGradientOf(array);
    auto make = [&](StringRef suffix, ArrayRef<TensorUse> tensors, int64_t blocks, ScheduleInterface schedule) {
      auto arguments = KernelArguments::ofBackward(backward, tensors, /*boxes=*/false, [](StringRef) { return 0; });
      KernelGrid grid;
      grid.packed = true; // a block even of no sequences: entries have to be written
      grid.heads = problem.getHeads();
      grid.tiles = b.getI64IntegerAttr(blocks);
      return arguments.makeKernel(program, b, backward.getLoc(),
                                  freeSymbol(module, backward.getSymName() + "_" + gradient + suffix), target.generic(),
                                  grid, schedule);
    };
    bool sinks = problem.isSinkArray(array);
    bool whole = array.has(ScoreOperand::Query) && array.has(ScoreOperand::Key);
    if (!sinks)
      ArrayGradKernel(problem,
                      make(whole ? "" : "_parts",
                           {{"q"},
                            {"k"},
                            {"v"},
                            {"do"},
                            {"row_statistics"},
                            {"row_statistics_head"},
                            {"row_statistics_kind"},
                            {whole ? gradient : partial, program::Effect::write}},
                           workers, schedule(tile, tile / 16)),
                      array)
          .build();
    if (!whole)
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
