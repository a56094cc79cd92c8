// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradients kernel. One tile is stationary, of keys (for dK and dV) or of queries (for dQ); tiles of the other side
// are streamed. Two products compute S and dP, whose rows belong to the stationary tile; further products add P^T dO,
// dS^T Q or dS K to accumulators of the stationary tile.
//
#include "BackwardKernel.h"
#include "BackwardWalk.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Gradients of queries, or of keys.
class GradientsKernel : BackwardWalk {
public:
  GradientsKernel(ProblemOp problem, KernelOp kernel, GradientResults results)
      : BackwardWalk(problem, kernel, results), kernel(kernel), boxes(kernel.isPersistent()),
        exponent(exponentOfProbabilities(problem, kernel.getTarget())), unscaled(std::ldexp(1.0, -exponent)) {}

  void build() {
    declarePlaces();
    bool grows = growsWithRows();
    Order ofTiles = results.order == DqAccumulation::ordered
                        ? hasDqMma && addsFromRegisters() ? Order::InterleavedManyHeads : Order::InterleavedHeads
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
    if (results.clears) { // while the first tiles are loaded
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
  /// Writes zeros for a work tile of padding.
  void pad() {
    for (const Output &output : outputs())
      StorePaddingOp::create(b, loc, output.pointer, args[(output.tensor + "_row").str()], math.value(slot.written),
                             output.dim);
  }

  void declarePlaces() {
    Type dtype = problem.getDtype();
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    int64_t stationary = ofKeys ? schedule.getKvTile() : schedule.getQTile();
    int64_t streamed = ofKeys ? schedule.getQTile() : schedule.getKvTile();
    auto frag = [&](const char *name, int64_t cols) {
      return place(name, FragType::get(b.getContext(), stationary, cols, schedule.getWarps()));
    };
    auto registerOperand = [&](const char *name) {
      return place(name, RegisterOperandType::get(b.getContext(), stationary, streamed, dtype, schedule.getWarps()));
    };
    Q = shared("Q", schedule.getQTile(), colsQk, boxes);
    K = shared("K", schedule.getKvTile(), colsQk, boxes);
    if (needsGrads())
      V = shared("V", schedule.getKvTile(), colsV, boxes);
    dO = shared("dO", schedule.getQTile(), colsV, boxes);
    stats = place("stats", RowStatisticsType::get(b.getContext(), schedule.getQTile()));
    s = frag("s", streamed);
    if (needsGrads()) // beside a dQ MMA warpgroup, registers hold one score tile only
      dp = hasDqMma ? s : frag("dp", streamed);
    if (results.dk)
      dK = frag("dK", colsQk);
    if (results.dv)
      dV = frag("dV", colsV);
    if (results.dq)
      dQ = frag("dQ", colsQk);
    if (boxes && results.dv)
      p = registerOperand("p");
    if (boxes && needsGrads())
      ds = hasDqMma ? p : registerOperand("ds");
    if (results.sums()) {
      auto tile = SharedType::get(b.getContext(), stationary, streamed, dtype, SharedType::swizzled);
      dS = place("dS", RingType::get(b.getContext(), 2, tile));
      // One block for each warpgroup. The dQ MMA warpgroup computes blocks one by one; the fragment type has as many
      // warpgroups as blocks.
      int64_t columns = sumFragmentColumns(problem, schedule), all = sumColumns(problem.getDimQk()),
              blocks = streamed * all / columns / 64;
      part = place("dQ", FragType::get(b.getContext(), 64 * blocks, columns, 4 * blocks));
      // Wide heads stage nothing, for want of shared memory. With ordered accumulation, where CTAs wait for each other,
      // staging has two stages. Otherwise that memory is a second stage of K, so that the next work tile begins while
      // the dQ MMA warpgroup still reads K of this one, and of V for narrow heads.
      auto bytesOf = [](Value place) { return cast<SharedType>(place.getType()).getSharedBytes(); };
      int64_t staged = addsFromRegisters() ? 0 : streamed * all * 4,
              room = TargetInfo::get(kernel.getTarget())->roomForTiles() - 2 * tile.getSharedBytes() - staged -
                     warpSpecializationOf(schedule).getStages() * (bytesOf(Q) + bytesOf(dO)) - 2 * bytesOf(K) -
                     bytesOf(V);
      bool ahead =
          hasDqMma && (staged == 0 || results.order != DqAccumulation::ordered) && sparesRegisters() && room >= 0;
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

  /// Does the kernel compute dS, and so read V?
  bool needsGrads() { return results.dk || results.dq; }

  //===------------------------------------------------------------------===//
  // The computation
  //===------------------------------------------------------------------===//

  void compute() {
    // With grouped-query heads, each query head has loop bounds of its own if the mask depends on the head.
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
      walkTiles(runs);
    } else {
      if (ofKeys)
        scope.head = h = kvHead;
      walkTiles(runs);
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

  /// The loop over the streamed tiles.
  void walkTiles(ArrayRef<KeyRun> runs) {
    Value dropoutState = findDropoutState();
    SmallVector<Value> own = findOwnBounds(runs);
    KvLoopOp loop = createLoop(runs);
    if (!loop) {
      if (auto hopper = dyn_cast<WarpSpecializedBackwardAttr>(schedule)) // dQ receives nothing
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
    auto copyAndWait = [&](Value place, StringRef tensor, Index head) { wait(copy(place, tensor, row, head, left)); };
    bool negated = boxes && problem.scaleOrDefault() < 0;

    copyAndWait(ofKeys ? Q : K, ofKeys ? "q" : "k", ofKeys ? h : kvHead);
    Value scores =
        MmaAbtOp::create(b, loc, s, ofKeys ? K : Q, ofKeys ? Q : K, negated, /*recomputed=*/results.sums()).getToken();
    Value grads;
    auto beginGrads = [&] {
      copyAndWait(ofKeys ? dO : V, ofKeys ? "do" : "v", ofKeys ? h : kvHead);
      if (needsGrads())
        grads = MmaAbtOp::create(b, loc, dp, ofKeys ? V : dO, ofKeys ? dO : V, /*negated=*/false,
                                 /*recomputed=*/results.sums())
                    .getToken();
    };
    if (hasDqMma) // dP overwrites S
      wait(scores);
    else
      beginGrads();
    if (ofKeys)
      wait(copyStatistics(other, h));
    if (!hasDqMma)
      wait(scores);
    Value row0 = math.value(slot.first), col0 = math.value(other);
    auto mask = ApplyMaskOp::create(b, loc, s, row0, col0, /*transposed=*/ofKeys);
    Value weights = becomeProbabilities(loop, row0, col0);
    Value products[2];
    auto round = [&](Value operand, Value frag) -> Value {
      if (!operand)
        return frag;
      ConvertOp::create(b, loc, operand, frag, /*at_once=*/hasDqMma);
      return operand;
    };
    Value probabilities = results.dv ? round(p, s) : s;
    if (hasDqMma)
      beginGrads();
    if (dropout)
      dropPairs(probabilities, weights, row0, col0, dropoutState, std::exchange(grads, Value()));
    if (results.dv) {
      products[0] = MmaAbOp::create(b, loc, dV, probabilities, dO, /*guarded=*/false, Value()).getToken();
      if (results.sums() && weights == s) // no registers for both
        weights = probabilities;
    }
    Value sum;
    if (needsGrads()) {
      if (grads)
        wait(grads);
      if (!dropout || !results.dv)
        GradScoresOp::create(b, loc, dp, weights, stats, slopes, exponent ? b.getF64FloatAttr(unscaled) : FloatAttr(),
                             ofKeys ? b.getUnitAttr() : UnitAttr());
      if (hasDqMma) // dS overwrites P
        wait(std::exchange(products[0], Value()));
      Value rounded = round(ds, dp);
      auto accumulate = [&] {
        return MmaAbOp::create(b, loc, ofKeys ? dK : dQ, rounded, ofKeys ? Q : K, /*guarded=*/false, Value())
            .getToken();
      };
      Value tile = results.sums() ? StoreAndSyncOp::create(b, loc, dS, ds).getTile() : Value();
      // dQ is issued first, so that its addition runs under the product with Q. Not for wide heads, which lack
      // registers for both and have one stage of Q, refilled while dQ is computed.
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
      if (results.firstCtaStores()) {
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
    buildTests(*walk, mask.getBody(), /*transposed=*/ofKeys);
  }

  /// The region that tells whether another KV tile adds to dQ of this query tile.
  void buildAdds(AddGlobalOp add, Index tile) {
    OpBuilder::InsertionGuard guard(b);
    Block &block = add.getAdds().emplaceBlock();
    Index other = Value(block.addArgument(b.getI32Type(), loc));
    b.setInsertionPointToStart(&block);
    YieldOp::create(b, loc, math.value(adds(other, tile)));
  }

  /// Query tiles that see the first KV tile only bypass the accumulator. The loops over keys and over queries may each
  /// visit more tiles than needed, so the first KV tile must also visit the query tile: it stores the rows.
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

  /// Applies dropout to the operand of dV and, after waiting for `grads`, to dP. With both, dS is computed here, so
  /// that random bits are drawn once.
  void dropPairs(Value probabilities, Value weights, Value row0, Value col0, Value dropoutState, Value grads) {
    if (results.dv)
      drop(probabilities, row0, col0, dropoutState, /*scaled=*/false, /*transposed=*/ofKeys, /*marks=*/bool(grads));
    if (!grads)
      return;
    WaitOp::create(b, loc, grads);
    if (!results.dv)
      return drop(dp, row0, col0, dropoutState, /*scaled=*/true, /*transposed=*/ofKeys);
    DropoutGradScoresOp::create(b, loc, dp, probabilities, stats, weights == s ? Value() : weights,
                                b.getF64FloatAttr(dropout->factor() * unscaled), ofKeys ? b.getUnitAttr() : UnitAttr());
  }

  /// Are P and the modifier's slopes kept separately, converted? Their product costs half an instruction a score. Not
  /// in float16 if slopes may exceed its range; those of softcap are at most 1.
  bool slopesApart() {
    return hasDqMma && !dropout && !problem.getModifiers().empty() &&
           (!problem.getDtype().isF16() || onlyModifierHasSmall());
  }

  /// Returns the factor of (dP - delta) in dS.
  Value becomeProbabilities(KvLoopOp loop, Value row0, Value col0) {
    auto op = ProbabilitiesOp::create(b, loc, s, stats, row0, col0, /*weighted=*/Value(),
                                      b.getF64FloatAttr(scaleOfProducts()), ofKeys ? b.getUnitAttr() : UnitAttr(),
                                      /*within=*/FloatAttr(), /*slopes=*/DenseF64ArrayAttr());
    if (slopesApart())
      op.setSlopes(ArrayRef<double>{});
    if (!writeModified(op, OpBuilder(loop), ofKeys, /*packs=*/false, needsGrads(),
                       /*hasSmall=*/boxes && (results.sums() || !needsGrads())))
      return s;
    if (hasDqMma) {
      OpBuilder ahead(op);
      Value stash = StashOp::create(ahead, loc, ds.getType(), dS);
      op.getWeightedMutable().assign(stash);
      if (!op.getSlopes())
        return stash;
      slopes = stash;
      return s;
    }
    OpBuilder top = OpBuilder::atBlockBegin(&op->getParentOfType<KernelOp>().getBody().front());
    if (!weighted) // operands of products leave no registers for another fragment
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
  int64_t exponent; ///< probabilities are scaled by 2^exponent
  double unscaled;  ///< 2^-exponent
  Value firstRow;   ///< of the statistics
  Value Q, K, V, dO, stats, s, dp, p, ds, weighted, slopes, dQ, dK, dV;
  Value dS, part, staging; ///< of the dQ accumulation
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
