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
// Packed layouts, and so pieces, have neither query nor key axes. With pieces, tiles of queries are those of a piece,
// and along a diagonal the tiles of keys begin as far from these as the diagonal says, also before a piece's first key:
// distances of all pieces and sequences are summed in one place (`TableSums`).
//
// Other partial sums are as long as the sequences, for each head. A second kernel, with a warp for each entry, adds
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
constexpr int64_t workers = arrayGradWorkers;

class ArrayGradBody : protected BackwardBody {
protected:
  ArrayGradBody(ProblemOp problem, KernelOp kernel, const ScoreOperand &array, int64_t tile)
      : BackwardBody(problem, kernel), array(array), tile(tile) {}

  bool has(ScoreOperand::Axis axis) { return array.has(axis); }
  bool isTableOfPieces() { return hasPieces() && has(ScoreOperand::Table); }

  /// Sets the current sequence and head.
  void enter(Index sequence, Index head) {
    batch = sequence, h = head;
    kvHead = math.floorDiv(h, int64_t(problem.getHeads() / problem.getKvHeads()));
    lenQ = problem.getQLayout().isPacked() ? Index(0) : arg("seqlen_q");
    findLengths();
    if (!hasPieces())
      firstQuery = findFirstQuery();
    findArrays();
    if (isTableOfPieces()) // tiles of keys may begin before the sequence
      clampPositions();
  }
  /// Calls `body` for each piece that the sequence has, or once without pieces.
  void eachPart(bool ofKeys, llvm::function_ref<void()> body) { hasPieces() ? eachPiece(ofKeys, body) : body(); }
  /// Rows of the current piece, or of the sequence.
  Index rowsOf(bool keys) {
    if (hasPieces())
      return (keys ? keyPiece : queryPiece).rows;
    return keys ? scope.lenK : lenQ;
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

  /// How far a table's distances are from k - q.
  Index shiftOfTable() {
    return array.diagonal == Diagonal::bottom_right ? math.sub(scope.lenK, scope.lenQ) : Index(0);
  }
  /// With pieces, sums of a table's distances d for a head, of all sequences. Tiles of keys begin m * tile distances
  /// from their queries. Those with a part of the table, m from `begin` to `end`, have sums as above: entry d - `first`
  /// is that of d. Others have the first or the last entry alone, and each CTA has a sum of each of its rows.
  struct TableSums {
    Value base;
    int64_t begin, end, first, last, pitch;
    Value beyond[2]; ///< before, and behind these; `rowsBeyond` numbers
  };
  TableSums sumsOfTable() {
    int64_t reach = array.entries / 2, begin = llvm::divideFloorSigned(1 - reach - tile, tile) + 1,
            end = llvm::divideCeil(reach + tile - 1, tile), own = distancesOfTable(array.entries);
    Value ofHead = wide(math.add(math.mul(rowsBeyond(), 2), 2 * own));
    Value base = at(partial(), mul(wide(h), ofHead)), before = at(base, wide(2 * own));
    return {base, begin, end, (begin - 1) * tile, end * tile, own, {before, at(before, wide(rowsBeyond()))}};
  }
  /// CTAs of a head, with a tile of rows each.
  Index rowsBeyond() { return math.mul(arg("batch"), arrayGradWorkers * arrayGradTile); }

  const ScoreOperand &array;
  int64_t tile;

private:
  void clampPositions() {
    auto entry = scope.load;
    auto isListed = scope.listed;
    scope.load = [entry, this](unsigned operand, Index position) { return entry(operand, math.max(position, 0)); };
    scope.listed = [isListed, this](unsigned operand, Index row, Index column) {
      return isListed(operand, row, math.max(column, 0));
    };
  }
};

class ArrayGradKernel : ArrayGradBody {
public:
  ArrayGradKernel(ProblemOp problem, KernelOp kernel, const ScoreOperand &array)
      : ArrayGradBody(problem, kernel, array, kernel.getSchedule().getQTile()), warps(kernel.getSchedule().getWarps()),
        isHost(kernel.getTarget() == "cpu"),
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
      if (isTableOfPieces())
        buildTable(sequence, worker);
      else
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
    eachPart(/*ofKeys=*/transposed, [&] {
      Value sums = sumsOfLine();
      loop(transposed ? "k0" : "q0", math.mul(worker, tile), rowsOf(transposed), workers * tile, [&](Index first) {
        ClearOp::create(b, loc, acc);
        eachPart(/*ofKeys=*/!transposed, [&] {
          loop(transposed ? "q0" : "k0", 0, rowsOf(!transposed), tile,
               [&](Index other) { transposed ? addTile(other, first) : addTile(first, other); });
        });
        StoreSumsOp::create(b, loc, at(sums, wide(first)), acc);
      });
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

  /// Stores the sums of a table's distances, and those of tiles before and behind the table. All CTAs of a head share
  /// the former work, for all sequences; the latter is this sequence's.
  void buildTable(Index sequence, Index worker) {
    TableSums sums = sumsOfTable();
    Index own = math.named(math.add(math.mul(sequence, workers), worker), "own");
    for (bool isBehind : {false, true}) {
      ClearOp::create(b, loc, acc);
      Index reaches = isBehind ? math.sub(scope.lenK, shiftOfTable()) : math.add(lenQ, shiftOfTable());
      Index positions = math.add(reaches, isBehind ? 2 * tile - 2 - sums.end * tile : tile - 2 + sums.begin * tile);
      Index diagonals = math.named(math.floorDiv(math.max(positions, 0), tile), "diagonals");
      loop("i", worker, diagonals, workers,
           [&](Index i) { addTilesOfPieces(isBehind ? math.add(i, sums.end) : math.sub(sums.begin - 1, i)); });
      StoreSumsOp::create(b, loc, at(sums.beyond[isBehind], wide(math.mul(own, tile))), acc);
    }
    loop("m", own, sums.end - sums.begin, math.mul(math.max(arg("batch"), 1), workers), [&](Index m) {
      ClearOp::create(b, loc, acc);
      loop("b", 0, arg("batch"), 1, [&](Index other) {
        enter(other, h);
        addTilesOfPieces(math.add(m, sums.begin));
      });
      StoreSumsOp::create(b, loc, at(sums.base, wide(math.mul(m, tile))), acc, wide(sums.pitch), scratch);
    });
  }

  /// Adds the tiles whose first key is m * tile distances from their first query, of all pairs of pieces.
  void addTilesOfPieces(Index m) {
    Index ahead = math.named(math.add(math.mul(m, tile), shiftOfTable()), "ahead");
    eachPiece(/*ofKeys=*/false, [&] {
      eachPiece(/*ofKeys=*/true, [&] {
        // Tile i of the queries meets keys from row `shift` + i * tile of the piece on.
        Index shift = math.named(math.sub(math.add(queryPiece.position, ahead), keyPiece.position), "shift");
        Index before = math.max(math.sub(0, shift), 0), left = math.max(math.sub(keyPiece.rows, shift), 0);
        loop("i", math.floorDiv(before, tile), math.min(tilesOf(queryPiece.rows), tilesOf(left)), 1, [&](Index i) {
          Index q0 = math.named(math.mul(i, tile), "q0");
          addTile(q0, math.named(math.add(shift, q0), "k0"));
        });
      });
    });
  }

  /// acc += the terms of one tile of score positions, from these rows of the sequence or of pieces on.
  void addTile(Index q0, Index k0) {
    const bool mayBeginBefore = isTableOfPieces();
    KeyWalk walk(problem.getMask(), scope);
    if (hasPieces())
      walk.restrictKeys(keyPiece.positions(math));
    if (mayBeginBefore)
      walk.testFirstKey();
    auto intervalOf = [&](const Piece &piece, Index first, Index rows) {
      Index begin = mayBeginBefore ? math.max(first, 0) : first;
      return Interval{math.add(piece.position, begin), math.add(piece.position, math.min(math.add(first, tile), rows))};
    };
    Interval queries = intervalOf(queryPiece, q0, rowsOf(false)), keys = intervalOf(keyPiece, k0, rowsOf(true));
    Cond isSeen = problem.getMask().tileTruth(math, scope, queries, keys).some;
    if (mayBeginBefore)
      isSeen = math.logicalAnd(math.lt(keys.lo, keys.hi), isSeen);
    onlyIf(isSeen, [&] {
      // With more than 192 columns, products leave no registers for values kept across loops: they are recomputed in
      // each iteration and where masks and modifiers use them. With pieces that holds for addresses of rows too.
      const bool recomputes = std::max(problem.getDimQk(), problem.getDimV()) > 192 && !isHost;
      if (recomputes && hasPieces())
        for (Index *first : {&q0, &k0})
          *first = Index(Value(OptimizationBarrierOp::create(b, loc, math.value(*first))));
      Index row = math.add(firstQuery, q0), key = math.add(firstKey, k0);
      auto copy = [&](Value place, StringRef tensor, Index row, Index head, Index rows, Value from,
                      int64_t dim) -> Value {
        return CopyAsyncOp::create(b, loc, place, rowPointer(tensor, row, batch, head), args[(tensor + "_row").str()],
                                   math.value(rows), from, b.getI64IntegerAttr(dim), Value(), UnitAttr());
      };
      Value statistics = rowStatisticsPointer(firstTiledRow(), h, q0);
      Index left = math.sub(rowsOf(false), q0), leftKeys = math.sub(rowsOf(true), k0);
      Value firstKeyOfTile = mayBeginBefore ? math.value(math.sub(0, k0)) : Value();
      Value copied[] = {copy(Q, "q", row, h, left, Value(), problem.getDimQk()),
                        copy(dO, "do", row, h, left, Value(), problem.getDimV()),
                        copy(K, "k", key, kvHead, leftKeys, firstKeyOfTile, problem.getDimQk()),
                        copy(V, "v", key, kvHead, leftKeys, firstKeyOfTile, problem.getDimV()),
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
      Index ofQueries = math.add(queryPiece.position, q0), ofKeys = math.add(keyPiece.position, k0);
      Value row0 = math.value(transposed ? ofKeys : ofQueries), column0 = math.value(transposed ? ofQueries : ofKeys);
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
      if (recomputes) {
        for (auto mask : op->getBlock()->getOps<ApplyMaskOp>())
          recomputeInLoop(mask, OpBuilder(mask));
        recomputeInLoop(op, OpBuilder(op));
        recomputeInLoop(op->getParentOp(), OpBuilder::atBlockBegin(op->getBlock()));
      }
    });
  }

  int64_t warps;
  bool isHost;
  bool transposed; ///< tiles are transposed: their rows are keys
  Value Q, K, V, dO, stats, s, dp, weighted, acc, scratch;
};

/// Sums the partial sums of each entry. A CTA is one warp and takes entries in a grid-stride loop.
class TotalsKernel : ArrayGradBody {
public:
  TotalsKernel(ProblemOp problem, KernelOp kernel, const ScoreOperand &array, int64_t tile)
      : ArrayGradBody(problem, kernel, array, tile) {}

  void build(bool adds) {
    Value before = adds ? args.at(gradientBefore(array)) : Value(); // what is added to
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
      if (before)
        CopyNumberOp::create(b, loc, to, at(before, wide(entry)));
      else
        ClearOp::create(b, loc, to);
      auto addTerms = [&] {
        if (isTableOfPieces()) {
          h = places[ScoreOperand::Head];
          return addTable(to, places[ScoreOperand::Table]);
        }
        alongOthers(places[ScoreOperand::Batch], places[ScoreOperand::Head], [&] { addLine(to, places); });
      };
      if (!has(ScoreOperand::Head) || !problem.getOfHeads())
        return addTerms();
      // The array has entries of heads that the problem lacks.
      Index head = places[ScoreOperand::Head] = math.sub(places[ScoreOperand::Head], problem.firstHead());
      onlyIf(math.logicalAnd(math.le(0, head), math.lt(head, int64_t(problem.getHeads()))), addTerms);
    });
  }

private:
  Index extentOf(ScoreOperand::Axis axis) {
    switch (axis) {
    case ScoreOperand::Batch:
      return arg("batch");
    case ScoreOperand::Head:
      return problem.allHeads();
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
      eachPart(/*ofKeys=*/false, [&] { AddTotalOp::create(b, loc, to, sumsOfLine(), math.value(rowsOf(false))); });
    }
  }

  /// Adds the sums of the entry's distances: one, or at either end of the table all beyond.
  void addDistances(Value to, Index entry) {
    Index down = math.mul(tilesOf(lenQ), tile), across = math.mul(tilesOf(scope.lenK), tile);
    Index own = math.add(math.sub(entry, array.entries / 2), shiftOfTable());
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

  /// The same with pieces, of all sequences.
  void addTable(Value to, Index entry) {
    TableSums sums = sumsOfTable();
    Index own = math.sub(entry, array.entries / 2);
    Cond isFirst = math.eq(entry, 0), isLast = math.eq(entry, array.entries - 1);
    Index lo = math.select(isFirst, sums.first, own), hi = math.select(isLast, sums.last, math.add(own, 1));
    for (bool above : {false, true}) {
      Index from = math.max(lo, above ? sums.first + tile : sums.first);
      Index end = math.min(hi, above ? sums.last : sums.last - tile);
      Value offset = add(wide(math.sub(from, sums.first)), wide(above ? sums.pitch : 0));
      Index count = math.select(math.lt(0, arg("batch")), math.sub(end, from), 0);
      AddTotalOp::create(b, loc, to, at(sums.base, offset), math.value(count));
    }
    Index rows = math.mul(arg("batch"), workers * tile);
    for (bool isBehind : {false, true})
      AddTotalOp::create(b, loc, to, sums.beyond[isBehind],
                         math.value(math.select(isBehind ? isLast : isFirst, rows, 0)));
  }
};

} // namespace

void attn::writeArrayGrads(BackwardOp backward, ProgramBuilder &program, const TargetInfo &target) {
  ProblemOp problem = backward.getProblemOp();
  OpBuilder b(backward);
  auto module = backward->getParentOfType<ModuleOp>();
  // Shared memory: four operand tiles and a scratch tile for sums.
  int64_t cols = llvm::alignTo(std::max(problem.getDimQk(), problem.getDimV()), 16) + 8, tile = arrayGradTile;
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
    std::string gradient = gradientOf(array), partial = partialGradientOf(array), before = gradientBefore(array);
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
    SmallVector<TensorUse> ofTotals = {{"row_statistics"},
                                       {"row_statistics_head"},
                                       {"row_statistics_kind"},
                                       {gradient, program::Effect::write},
                                       {partial}};
    if (backward.getAddArrayGrads())
      ofTotals.push_back({before});
    if (!isPerScore)
      TotalsKernel(problem, make("", ofTotals, 1, schedule(16, 1)), array, tile).build(backward.getAddArrayGrads());
  }
}
