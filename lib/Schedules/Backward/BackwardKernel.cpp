// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile is at rest, of keys (for dK and dV) or of queries (for dQ), and those of the other
// side pass by. Either way two products make scores and gradients of probabilities, rows of
// which belong to the tile at rest, and more products add what these weigh to accumulators
// that stay with it.
//
#include "BackwardKernel.h"
#include "BackwardWalk.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Gradients of one side.
class GradientsKernel : BackwardWalk {
public:
  GradientsKernel(ProblemOp problem, KernelOp kernel, GradientResults results)
      : BackwardWalk(problem, kernel, results), kernel(kernel), boxes(kernel.isPersistent()),
        exponent(exponentOfProbabilities(problem, kernel.getTarget())), unscaled(std::ldexp(1.0, -exponent)) {}

  void build() {
    declarePlaces();
    bool grows = growsWithRows();
    Order ofTiles = results.order == DqAccumulation::ordered
                        ? reduces && addsFromRegisters() ? Order::GridStride : Order::Interleaved
                    : grows ? Order::FirstIsLongest
                            : Order::Alike;
    slot = ofKeys ? slotOf(/*keys=*/true, schedule.getKvTile(), ofTiles)
                  : slotOf(/*keys=*/false, schedule.getQTile(), grows ? Order::LastIsLongest : Order::Alike);
    slot.first = math.named(slot.first, ofKeys ? "k0" : "q0");
    int64_t group = problem.getHeads() / problem.getKvHeads();
    if (ofKeys) {
      kvHead = math.named(slot.head, "kv_head");
    } else {
      h = math.named(slot.head, "h");
      kvHead = math.named(math.floorDiv(h, group), "kv_head");
    }
    if (!problem.getQLayout().isPacked())
      lenQ = arg("seqlen_q");
    findLengths();
    firstQuery = math.named(findFirstQuery(), "first_query");
    if (results.clears) { // while its first tiles are under way
      Value count = mul(mul(wide(problem.getHeads()), wide(rowsInAll())), wide(sumColumns(problem.getDimQk())));
      Value block = IndexOp::block(b, loc);
      ClearOp::create(b, loc, args["dq_accumulator"], count, block, kernel.getArg("blocks"));
    }
    if (kernelIsPacked())
      writeApart(slot.rows, [&] { pad(); }, [&] { compute(); });
    else
      compute();
  }

private:
  /// Of a slot that stands for padding.
  void pad() {
    for (const Output &output : outputs())
      StorePaddingOp::create(b, loc, output.pointer, args[(output.tensor + "_row").str()], math.value(slot.written),
                             output.dim);
  }

  void declarePlaces() {
    Type dtype = problem.getDtype();
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    int64_t atRest = ofKeys ? schedule.getKvTile() : schedule.getQTile();
    int64_t passing = ofKeys ? schedule.getQTile() : schedule.getKvTile();
    auto frag = [&](const char *name, int64_t cols) {
      return place(name, FragType::get(b.getContext(), atRest, cols, schedule.getWarps()));
    };
    auto held = [&](const char *name) {
      return place(name, RegisterOperandType::get(b.getContext(), atRest, passing, dtype, schedule.getWarps()));
    };
    Q = shared("Q", schedule.getQTile(), colsQk, boxes);
    K = shared("K", schedule.getKvTile(), colsQk, boxes);
    if (needsGrads())
      V = shared("V", schedule.getKvTile(), colsV, boxes);
    dO = shared("dO", schedule.getQTile(), colsV, boxes);
    stats = place("stats", RowStatisticsType::get(b.getContext(), schedule.getQTile()));
    s = frag("s", passing);
    if (needsGrads()) // by a reducer, accumulators, scores, rounded ones and little more are all that registers hold
      dp = reduces ? s : frag("dp", passing);
    if (results.dk)
      dK = frag("dK", colsQk);
    if (results.dv)
      dV = frag("dV", colsV);
    if (results.dq)
      dQ = frag("dQ", colsQk);
    if (boxes && results.dv)
      p = held("p");
    if (boxes && needsGrads())
      ds = reduces ? p : held("ds");
    if (results.sums()) {
      auto tile = SharedType::get(b.getContext(), atRest, passing, dtype, SharedType::swizzled);
      dS = place("dS", RingType::get(b.getContext(), 2, tile));
      // A block for each warpgroup; what a reducer makes one by one is as if there were as many warpgroups as blocks.
      int64_t columns = sumFragmentColumns(problem, schedule), all = sumColumns(problem.getDimQk()),
              blocks = passing * all / columns / 64;
      part = place("dQ", FragType::get(b.getContext(), 64 * blocks, columns, 4 * blocks));
      // Of wide ones nothing is staged, for want of room. In turns, where a tile waits for others, there is room for
      // two; else, or from registers, for keys of the next tile, which a block so begins while its reducer is still at
      // this one's, and for values, too, if they are narrow.
      auto bytesOf = [](Value place) { return cast<SharedType>(place.getType()).getSharedBytes(); };
      int64_t staged = addsFromRegisters() ? 0 : passing * all * 4,
              room = TargetInfo::get(kernel.getTarget())->roomForTiles() - 2 * tile.getSharedBytes() - staged -
                     warpSpecializationOf(schedule).getStages() * (bytesOf(Q) + bytesOf(dO)) - 2 * bytesOf(K) -
                     bytesOf(V);
      bool ahead =
          reduces && (staged == 0 || results.order != DqAccumulation::ordered) && sparesRegisters() && room >= 0;
      if (addsFromRegisters() && results.order == DqAccumulation::ordered)
        staging = place("order", StagingType::get(b.getContext(), 2, 0));
      else if (!addsFromRegisters())
        staging = place("staging", StagingType::get(b.getContext(), ahead ? 1 : 2, staged));
      if (ahead)
        K.getDefiningOp<AllocOp>().setSlots(2);
      if (ahead && room >= bytesOf(V))
        V.getDefiningOp<AllocOp>().setSlots(2);
    }
  }

  bool addsFromRegisters() {
    return attn::addsFromRegisters(problem, schedule, results.order, /*together=*/results.dv);
  }

  /// Are gradients of scores needed, and so V?
  bool needsGrads() { return results.dk || results.dq; }

  //===------------------------------------------------------------------===//
  // The computation
  //===------------------------------------------------------------------===//

  void compute() {
    // Of heads that share keys, each walks its own tiles where masks differ.
    int64_t group = ofKeys ? int64_t(problem.getHeads() / problem.getKvHeads()) : 1;
    bool alike = group == 1 || !dependsOnHead(problem.getMask());
    if (ofKeys && group == 1 && dependsOnHead(problem.getMask()))
      scope.head = h = kvHead;
    if (alike)
      findWalk();
    firstRow = firstTiledRow();
    Index rest = ofKeys ? math.add(firstKey, slot.first) : math.add(firstQuery, slot.first);
    SmallVector<Value> copied;
    if (ofKeys) {
      copied.push_back(copy(K, "k", rest, kvHead, slot.rows));
      if (V)
        copied.push_back(copy(V, "v", rest, kvHead, slot.rows));
    } else {
      copied.push_back(copy(Q, "q", rest, h, slot.rows));
      copied.push_back(copy(dO, "do", rest, h, slot.rows));
      copied.push_back(copyStatistics(slot.first, h));
    }
    for (Value acc : accumulators())
      ClearOp::create(b, loc, acc);
    for (Value token : copied)
      WaitOp::create(b, loc, token);
    if (problem.scaleOrDefault() < 0 && !boxes)
      ScaleOp::create(b, loc, ofKeys ? K : Q, /*factor=*/llvm::APFloat(-1.0));

    SmallVector<KeyRun> runs;
    if (alike)
      runs = findRuns();
    if (ofKeys && group > 1) {
      auto heads = scf::ForOp::create(b, loc, math.value(Index(0)), math.value(Index(group)), math.value(Index(1)));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(heads.getBody());
      h = math.named(math.add(math.mul(kvHead, group), heads.getInductionVar()), "h");
      scope.head = h;
      if (!alike) {
        findWalk();
        runs = findRuns();
      }
      passBy(runs);
    } else {
      if (ofKeys)
        scope.head = h = kvHead;
      passBy(runs);
    }

    for (Value acc : {dK, dQ})
      if (acc)
        ScaleOp::create(b, loc, acc, b.getF64FloatAttr(problem.scaleOrDefault()));
    if (dV)
      scaleKept(dV);
    if (dV && exponent)
      ScaleOp::create(b, loc, dV, b.getF64FloatAttr(unscaled));
    for (const Output &output : outputs())
      StoreOp::create(b, loc, output.pointer, args[(output.tensor + "_row").str()], output.acc, math.value(slot.rows),
                      math.value(slot.written), output.dim);
  }

  /// The walk over the tiles of the other side.
  void passBy(ArrayRef<KeyRun> runs) {
    Value draws = findDropoutState();
    SmallVector<Value> own = findOwnBounds(runs);
    KvLoopOp loop = createLoop(runs);
    if (!loop) {
      if (auto hopper = dyn_cast<WarpSpecializedBackwardAttr>(schedule)) // nothing is added up
        kernel.setScheduleAttr(hopper.withDqColumns(0));
      return;
    }
    loop.getOwnMutable().assign(own);
    Block &body = loop.getBody().front();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&body);
    int64_t step = ofKeys ? schedule.getQTile() : schedule.getKvTile();
    Index tile = tileAt ? tileAt(Index(body.getArgument(0))) : Index(body.getArgument(0));
    Index other = math.named(math.mul(tile, step), ofKeys ? "q0" : "k0");
    Index left = math.sub(ofKeys ? lenQ : scope.lenK, other);
    Index row = math.add(ofKeys ? firstQuery : firstKey, other);
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };
    auto bring = [&](Value place, StringRef tensor, Index head) { wait(copy(place, tensor, row, head, left)); };
    bool negated = boxes && problem.scaleOrDefault() < 0;

    bring(ofKeys ? Q : K, ofKeys ? "q" : "k", ofKeys ? h : kvHead);
    Value scores =
        MmaAbtOp::create(b, loc, s, ofKeys ? K : Q, ofKeys ? Q : K, negated, /*recomputed=*/results.sums()).getToken();
    Value grads;
    auto beginGrads = [&] {
      bring(ofKeys ? dO : V, ofKeys ? "do" : "v", ofKeys ? h : kvHead);
      if (needsGrads())
        grads = MmaAbtOp::create(b, loc, dp, ofKeys ? V : dO, ofKeys ? dO : V, /*negated=*/false,
                                 /*recomputed=*/results.sums())
                    .getToken();
    };
    if (reduces) // gradients come where scores are
      wait(scores);
    else
      beginGrads();
    if (ofKeys)
      wait(copyStatistics(other, h));
    if (!reduces)
      wait(scores);
    Value row0 = math.value(slot.first), col0 = math.value(other);
    auto keep = ApplyMaskOp::create(b, loc, s, row0, col0, /*turned=*/ofKeys);
    Value weights = becomeProbabilities(loop, row0, col0);
    Value products[2];
    auto round = [&](Value held, Value frag) -> Value {
      if (!held)
        return frag;
      ConvertOp::create(b, loc, held, frag, /*at_once=*/reduces);
      return held;
    };
    Value probabilities = results.dv ? round(p, s) : s;
    if (reduces)
      beginGrads();
    if (dropout)
      dropPairs(probabilities, weights, row0, col0, draws, std::exchange(grads, Value()));
    if (results.dv) {
      products[0] = MmaAbOp::create(b, loc, dV, probabilities, dO, /*guarded=*/false, Value()).getToken();
      if (results.sums() && weights == s) // there are no registers for both
        weights = probabilities;
    }
    Value sum;
    if (needsGrads()) {
      if (grads)
        wait(grads);
      if (!dropout || !results.dv)
        GradScoresOp::create(b, loc, dp, weights, stats, slopes, exponent ? b.getF64FloatAttr(unscaled) : FloatAttr(),
                             ofKeys ? b.getUnitAttr() : UnitAttr());
      if (reduces) // to where probabilities are
        wait(std::exchange(products[0], Value()));
      Value rounded = round(ds, dp);
      auto accumulate = [&] {
        return MmaAbOp::create(b, loc, ofKeys ? dK : dQ, rounded, ofKeys ? Q : K, /*guarded=*/false, Value())
            .getToken();
      };
      Value tile = results.sums() ? StoreAndSyncOp::create(b, loc, dS, ds).getTile() : Value();
      // First, so that adding it up runs beside the product with Q. Not of wide tiles, which have no registers for
      // both, and one slot for Q: it is filled again while dQ is made.
      if (tile && results.dv)
        sum = MmaAtbOp::create(b, loc, part, tile, K).getToken();
      products[1] = accumulate();
      if (tile && !results.dv) {
        wait(std::exchange(products[1], Value()));
        sum = MmaAtbOp::create(b, loc, part, tile, K).getToken();
      }
    }
    if (products[0])
      wait(products[0]);
    if (sum) {
      wait(sum);
      Value turn, number;
      Index added = sumRow(row, h);
      if (results.isOrdered()) {
        turn = turnPointer(added, h);
        number = math.value(math.named(math.floorDiv(slot.first, schedule.getKvTile()), "key_tile"));
      }
      bool afterFirst = results.order == DqAccumulation::first_stores;
      auto add =
          AddGlobalOp::create(b, loc, sumPointer(added), part, math.value(left), staging, turn, number, afterFirst);
      if (turn)
        buildAdds(add, tile);
      if (results.alone)
        storeDirectly(add, tile, other, left, row);
    }
    if (products[1])
      wait(products[1]);
    if (!boxes)
      BarrierOp::create(b, loc, /*warp=*/false);
    YieldOp::create(b, loc, ValueRange());
    buildTests(*walk, keep.getBody(), /*turned=*/ofKeys);
  }

  /// The region that says whether another key tile adds to the sum of this query tile.
  void buildAdds(AddGlobalOp add, Index tile) {
    OpBuilder::InsertionGuard guard(b);
    Block &block = add.getAdds().emplaceBlock();
    Index other = Value(block.addArgument(b.getI32Type(), loc));
    b.setInsertionPointToStart(&block);
    YieldOp::create(b, loc, math.value(adds(other, tile)));
  }

  /// Query tiles whose keys are all in the first tile have no sum. Walks over keys and over queries may each visit more
  /// than they need, so the first tile of keys has to come by: it writes the rows.
  void storeDirectly(AddGlobalOp add, Index tile, Index q0, Index left, Index row) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(add);
    Index rows = math.select(math.lt(slot.first, schedule.getKvTile()), left, 0);
    Cond alone = seesFirstKeyTileOnly(tile, q0);
    add.getSoleWriterMutable().assign(math.value(alone));
    add.getDstMutable().assign(rowPointer("dq", row, batch, h));
    add.getStrideMutable().assign(args["dq_row"]);
    add.getRowsMutable().assign(math.value(rows));
    add.setFactor(APFloat(problem.scaleOrDefault()));
    add.setDim(problem.getDimQk());
  }

  /// Of what makes dV and, once `grads` is over, of gradients. Those of scores are made here if there is both: then
  /// numbers are drawn once.
  void dropPairs(Value probabilities, Value weights, Value row0, Value col0, Value draws, Value grads) {
    if (results.dv)
      drop(probabilities, row0, col0, draws, /*scaled=*/false, /*turned=*/ofKeys, /*marks=*/bool(grads));
    if (!grads)
      return;
    WaitOp::create(b, loc, grads);
    if (!results.dv)
      return drop(dp, row0, col0, draws, /*scaled=*/true, /*turned=*/ofKeys);
    DropoutGradScoresOp::create(b, loc, dp, probabilities, stats, weights == s ? Value() : weights,
                                b.getF64FloatAttr(dropout->factor() * unscaled), ofKeys ? b.getUnitAttr() : UnitAttr());
  }

  /// Where both are held, rounded: their product takes half an instruction a score. In float16 slopes that may be
  /// beyond it are not: softcap's are 1 at most.
  bool slopesApart() {
    return reduces && !dropout && !problem.getModifiers().empty() &&
           (!problem.getDtype().isF16() || onlyModifierHasSmall());
  }

  /// Returns what gradients of probabilities are to be weighted by.
  Value becomeProbabilities(KvLoopOp loop, Value row0, Value col0) {
    auto op = ProbabilitiesOp::create(b, loc, s, stats, row0, col0, /*weighted=*/Value(),
                                      b.getF64FloatAttr(scaleOfProducts()), ofKeys ? b.getUnitAttr() : UnitAttr(),
                                      /*within=*/FloatAttr(), /*slopes=*/DenseF64ArrayAttr());
    if (slopesApart())
      op.setSlopes(ArrayRef<double>{});
    if (!writeModified(op, OpBuilder(loop), ofKeys, /*packs=*/false, needsGrads(),
                       /*hasSmall=*/boxes && (results.sums() || !needsGrads())))
      return s;
    if (reduces) {
      OpBuilder ahead(op);
      Value aside = StashOp::create(ahead, loc, ds.getType(), dS);
      op.getWeightedMutable().assign(aside);
      if (!op.getSlopes())
        return aside;
      slopes = aside;
      return s;
    }
    OpBuilder top = OpBuilder::atBlockBegin(&op->getParentOfType<KernelOp>().getBody().front());
    if (!weighted) // there are no registers for more where products hold their operands
      weighted = AllocOp::create(top, loc, (ds ? ds : s).getType(), "weighted");
    op.getWeightedMutable().assign(weighted);
    return weighted;
  }

  //===------------------------------------------------------------------===//
  // Copies and results
  //===------------------------------------------------------------------===//

  Value copy(Value place, StringRef tensor, Index row, Index head, Index rows) {
    if (boxes)
      return copyBox(place, tensor, row, head, rows);
    int64_t dim = tensor == "q" || tensor == "k" ? problem.getDimQk() : problem.getDimV();
    return CopyAsyncOp::create(b, loc, place, rowPointer(tensor, row, batch, head), args[(tensor + "_row").str()],
                               math.value(rows), dim, Value());
  }

  Value copyStatistics(Index q, Index head) {
    Value from = statisticsPointer(firstRow, head, q);
    return CopyRowStatisticsOp::create(b, loc, stats, from, statisticsPitch());
  }

  SmallVector<Value> accumulators() {
    SmallVector<Value> all;
    for (Value acc : {dQ, dK, dV})
      if (acc)
        all.push_back(acc);
    return all;
  }

  struct Output {
    StringRef tensor;
    Value acc, pointer;
    int64_t dim;
  };
  SmallVector<Output> outputs() {
    SmallVector<Output> all;
    auto write = [&](StringRef tensor, Value acc, int64_t dim) {
      if (acc)
        all.push_back({tensor, acc, rowPointer(tensor, slot.row, batch, ofKeys ? kvHead : h), dim});
    };
    write("dq", dQ, problem.getDimQk());
    write("dk", dK, problem.getDimQk());
    write("dv", dV, problem.getDimV());
    return all;
  }

  KernelOp kernel;
  bool boxes;
  int64_t exponent; ///< probabilities are 2^this times as large,
  double unscaled;  ///< and this makes up for it
  Value firstRow;   ///< of the statistics
  Value Q, K, V, dO, stats, s, dp, p, ds, weighted, slopes, dQ, dK, dV;
  Value dS, part, staging; ///< where dQ is added up
};

} // namespace

int64_t attn::exponentOfProbabilities(ProblemOp problem, StringRef target) {
  return problem.getDtype().isF16() && target == "sm_90a" && problem.getModifiers().empty() ? 12 : 0;
}

static int64_t dqColumnsOf(ScheduleInterface schedule) {
  WarpSpecializedInterface roles = warpSpecializationOf(schedule);
  return roles ? roles.getDqColumns() : 0;
}

int64_t attn::sumFragmentColumns(ProblemOp problem, ScheduleInterface schedule) {
  int64_t columns = sumColumns(problem.getDimQk());
  int64_t own = dqColumnsOf(schedule);
  return own ? std::min<int64_t>(columns, own) : columns * schedule.getQTile() / (16 * schedule.getWarps());
}

bool attn::addsFromRegisters(ProblemOp problem, ScheduleInterface schedule, DqAccumulation order, bool together) {
  return !together ||
         (order == DqAccumulation::ordered && dqColumnsOf(schedule) && sumColumns(problem.getDimQk()) <= 64);
}

void attn::writeGradients(ProblemOp problem, KernelOp kernel, GradientResults results) {
  GradientsKernel(problem, kernel, results).build();
}
