// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gradients kernel. One tile is stationary, of keys (for dK and dV) or of queries (for dQ); tiles of the other kind
// are streamed. Two products compute S and dP, whose rows belong to the stationary tile; further products add P^T dO,
// dS^T Q or dS K to accumulators of the stationary tile.
//
#include "GradientsKernel.h"
#include "BackwardWalk.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// The gradients of queries (dQ), or of keys and values (dK, dV).
class GradientsKernel : BackwardWalk {
public:
  GradientsKernel(ProblemOp problem, KernelOp kernel, GradientResults results, StridedMaskAttr residues)
      : BackwardWalk(problem, kernel, results, residues), kernel(kernel), usesTma(kernel.isPersistent()),
        exponent(exponentOfProbabilities(problem, kernel.getTarget())), unscaled(std::ldexp(1.0, -exponent)) {}

  void build() {
    declareTiles();
    bool grows = growsWithRows();
    Order ofTiles = results.order == DqAccumulation::ordered
                        ? hasDqMma && addsFromRegisters() ? Order::InterleavedManyHeads : Order::InterleavedHeads
                    : grows || findLoopSplits() ? Order::LptAscending
                                                : Order::EqualCost;
    workTile = ofKeys
                   ? findWorkTile(/*keys=*/true, schedule.getKvTile(), ofTiles)
                   : findWorkTile(/*keys=*/false, schedule.getQTile(), grows ? Order::LptDescending : Order::EqualCost);
    int64_t group = problem.getHeads() / problem.getKvHeads();
    if (ofKeys) {
      kvHead = math.named(workTile.head, "kv_head");
    } else {
      h = math.named(workTile.head, "h");
      kvHead = math.named(math.floorDiv(h, group), "kv_head");
    }
    if (!problem.getQLayout().isPacked())
      lenQ = arg("seqlen_q");
    findLengths();
    findKeyResidue();
    takeRowsOf(ofKeys ? keyResidue : queryResidue, workTile);
    workTile.first = math.named(workTile.first, ofKeys ? "k0" : "q0");
    if (!hasPieces())
      firstQuery = math.named(findFirstQuery(), "first_query");
    else if (!loopsOverPieces())
      findOnlyPiece(/*ofKeys=*/!ofKeys);
    if (results.clearsAccumulator) { // while the first tiles are loaded
      Value count = mul(mul(wide(int64_t(problem.getHeads()) * rowStride), wide(rowsOfAccumulator())),
                        wide(accumulatorColumns(problem.getDimQk())));
      Value cta = IndexOp::block(b, loc);
      ClearOp::create(b, loc, args["dq_accumulator"], count, cta,
                      workItems ? math.value(*workItems) : kernel.getArg("blocks"));
    }
    if (kernelIsPacked())
      branchOnPadding(workTile.rows, [&] { pad(); }, [&] { compute(); });
    else
      compute();
  }

private:
  /// Writes zeros for a work tile of padding.
  void pad() {
    if (problem.getKeepPadding())
      return;
    for (const Output &output : outputs())
      StorePaddingOp::create(b, loc, output.pointer, rowStrideOf(output.tensor), math.value(workTile.written),
                             output.dim);
  }

  void declareTiles() {
    Type dtype = problem.getDtype();
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    int64_t stationary = ofKeys ? schedule.getKvTile() : schedule.getQTile();
    int64_t streamed = ofKeys ? schedule.getQTile() : schedule.getKvTile();
    auto frag = [&](const char *name, int64_t cols) {
      return alloc(name, FragType::get(b.getContext(), stationary, cols, schedule.getWarps()));
    };
    auto registerOperand = [&](const char *name) {
      return alloc(name, RegisterOperandType::get(b.getContext(), stationary, streamed, dtype, schedule.getWarps()));
    };
    Q = shared("Q", schedule.getQTile(), colsQk, usesTma);
    K = shared("K", schedule.getKvTile(), colsQk, usesTma);
    if (needsGrads())
      V = shared("V", schedule.getKvTile(), colsV, usesTma);
    dO = shared("dO", schedule.getQTile(), colsV, usesTma);
    stats = alloc("stats", RowStatisticsType::get(b.getContext(), schedule.getQTile()));
    s = frag("s", streamed);
    if (needsGrads()) // beside a dQ MMA warpgroup, registers hold one score tile only
      dp = hasDqMma ? s : frag("dp", streamed);
    if (results.dk)
      dK = frag("dK", colsQk);
    if (results.dv)
      dV = frag("dV", colsV);
    if (results.dq)
      dQ = frag("dQ", colsQk);
    if (usesTma && results.dv)
      p = registerOperand("p");
    if (usesTma && needsGrads())
      ds = hasDqMma ? p : registerOperand("ds");
    if (results.accumulatesDq()) {
      auto tile = SharedType::get(b.getContext(), stationary, streamed, dtype, SharedType::swizzled);
      dS = alloc("dS", RingType::get(b.getContext(), 2, tile));
      // One block for each warpgroup. The dQ MMA warpgroup computes blocks one by one; the fragment type has as many
      // warpgroups as blocks.
      int64_t columns = dqFragmentColumns(problem, schedule), all = accumulatorColumns(problem.getDimQk()),
              blocks = streamed * all / columns / 64;
      dqFragment = alloc("dQ", FragType::get(b.getContext(), 64 * blocks, columns, 4 * blocks));
      // Wide heads have no shared memory for staging. With ordered accumulation, where CTAs wait for each other,
      // staging has two stages. Otherwise that memory is a second stage of K, so that the next work tile begins while
      // the dQ MMA warpgroup still reads K of this one, and of V for narrow heads.
      auto bytesOf = [](Value place) { return cast<SharedType>(place.getType()).getSharedBytes(); };
      int64_t staged = addsFromRegisters() ? 0 : streamed * all * 4,
              room = TargetInfo::get(kernel.getTarget())->roomForTiles() - 2 * tile.getSharedBytes() - staged -
                     warpSpecializationOf(schedule).getStages() * (bytesOf(Q) + bytesOf(dO)) - 2 * bytesOf(K) -
                     bytesOf(V);
      bool prefetchesNext =
          hasDqMma && (staged == 0 || results.order != DqAccumulation::ordered) && sparesRegisters() && room >= 0;
      if (addsFromRegisters() && results.order == DqAccumulation::ordered)
        staging = alloc("order", StagingType::get(b.getContext(), 2, 0));
      else if (!addsFromRegisters())
        staging = alloc("staging", StagingType::get(b.getContext(), prefetchesNext ? 1 : 2, staged));
      if (prefetchesNext)
        K.getDefiningOp<AllocOp>().setSlots(2);
      if (prefetchesNext && room >= bytesOf(V))
        V.getDefiningOp<AllocOp>().setSlots(2);
    }
  }

  bool addsFromRegisters() { return attn::addsFromRegisters(problem, schedule, results.order, /*withDv=*/results.dv); }

  /// Does the kernel compute dS, and so read V?
  bool needsGrads() { return results.dk || results.dq; }

  //===------------------------------------------------------------------===//
  // The computation
  //===------------------------------------------------------------------===//

  void compute() {
    // With grouped-query heads, each query head has loop bounds of its own if the mask depends on it.
    int64_t group = ofKeys ? int64_t(problem.getHeads() / problem.getKvHeads()) : 1;
    bool sharesBounds = group == 1 || !dependsOnQueryHead(problem.getMask());
    if (ofKeys && group == 1 && dependsOnHead(problem.getMask()))
      h = kvHead, scope.head = numberOfHead();
    if (sharesBounds)
      findWalk();
    if (!loopsOverPieces() || !ofKeys)
      firstRow = firstTiledRow();
    Index rest = ofKeys ? math.add(firstKey, positionOf(workTile.first, keyResidue))
                        : math.add(firstQuery, positionOf(workTile.first, queryResidue));
    Index left = math.sub(math.mul(workTile.rows, rowStride), rowStride - 1);
    SmallVector<Value> copied;
    if (ofKeys) {
      copied.push_back(copy(K, "k", rest, kvHead, workTile.rows, left));
      if (V)
        copied.push_back(copy(V, "v", rest, kvHead, workTile.rows, left));
    } else {
      copied.push_back(copy(Q, "q", rest, h, workTile.rows, left));
      copied.push_back(copy(dO, "do", rest, h, workTile.rows, left));
      copied.push_back(copyStatistics(workTile.first, h));
    }
    for (Value acc : accumulators())
      ClearOp::create(b, loc, acc);
    for (Value token : copied)
      WaitOp::create(b, loc, token);
    if (problem.scaleOrDefault() < 0 && !usesTma)
      ScaleOp::create(b, loc, ofKeys ? K : Q, /*factor=*/llvm::APFloat(-1.0));

    SmallVector<KeyRun> runs;
    if (sharesBounds && !loopsOverPieces())
      runs = findRuns();
    if (ofKeys && group > 1) {
      auto heads = scf::ForOp::create(b, loc, math.value(Index(0)), math.value(Index(group)), math.value(Index(1)));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(heads.getBody());
      h = math.named(math.add(math.mul(kvHead, group), heads.getInductionVar()), "h");
      scope.head = numberOfHead();
      if (!sharesBounds) {
        findWalk();
        if (!loopsOverPieces())
          runs = findRuns();
      }
      loopsOverPieces() ? loopOverPieces() : loopOverTiles(runs);
    } else {
      if (ofKeys)
        h = kvHead, scope.head = numberOfHead();
      loopsOverPieces() ? loopOverPieces() : loopOverTiles(runs);
    }

    for (Value acc : {dK, dQ})
      if (acc)
        ScaleOp::create(b, loc, acc, b.getF64FloatAttr(problem.scaleOrDefault()));
    if (dQ && args.contains("before_dq"))
      AddRowsOp::create(b, loc, dQ, rowPointer("before_dq", workTile.row, batch, h), args["before_dq_row"],
                        math.value(workTile.rows), problem.getDimQk());
    if (dV)
      scaleKept(dV);
    if (dV && exponent)
      ScaleOp::create(b, loc, dV, b.getF64FloatAttr(unscaled));
    if (!workTile.part)
      return store();
    onlyIf(workTile.part->isWhole, [&] { store(); });
    onlyIf(math.logicalNot(workTile.part->isWhole), [&] { storePartial(); });
  }

  void store() {
    for (const Output &output : outputs())
      StoreOp::create(b, loc, output.pointer, rowStrideOf(output.tensor), output.acc, math.value(workTile.rows),
                      math.value(workTile.written), output.dim);
  }

  /// Stores partial results of a KV tile that several CTAs share.
  void storePartial() {
    for (const Output &output : outputs()) {
      std::string tensor = ("partial_" + output.tensor).str();
      Value elements = mul(wide(workTile.part->slot), wide(schedule.getKvTile() * output.dim));
      StoreOp::create(b, loc, AdvanceOp::create(b, loc, args[tensor], elements), wide(output.dim), output.acc,
                      math.value(workTile.rows), math.value(workTile.rows), output.dim);
    }
  }

  /// A loop over the pieces of the sequence around one over the streamed tiles of each.
  void loopOverPieces() {
    eachPiece(/*ofKeys=*/!ofKeys, [&] {
      if (ofKeys) {
        walk->restrictQueries(queryPiece.positions(math));
        firstRow = firstTiledRow();
      } else {
        walk->restrictKeys(keyPiece.positions(math));
      }
      loopOverTiles(findRuns());
    });
  }

  /// The loop over the streamed tiles.
  void loopOverTiles(ArrayRef<KeyRun> runs) {
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
    Index residue = ofKeys ? queryResidue : keyResidue, length = ofKeys ? lenQ : scope.lenK;
    if (hasPieces())
      length = (ofKeys ? queryPiece : keyPiece).rows;
    Index left = math.sub(rowsOfResidue(length, residue), other), position = positionOf(other, residue);
    Index row = math.add(ofKeys ? firstQuery : firstKey, position);
    Index positionsLeft = rowStride == 1 ? left : math.sub(length, position);
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };
    auto copyAndWait = [&](Value place, StringRef tensor, Index head) {
      wait(copy(place, tensor, row, head, left, positionsLeft));
    };
    bool negated = usesTma && problem.scaleOrDefault() < 0;

    copyAndWait(ofKeys ? Q : K, ofKeys ? "q" : "k", ofKeys ? h : kvHead);
    Value scores =
        MmaAbtOp::create(b, loc, s, ofKeys ? K : Q, ofKeys ? Q : K, negated, /*recomputed=*/results.accumulatesDq())
            .getToken();
    Value grads;
    auto beginGrads = [&] {
      copyAndWait(ofKeys ? dO : V, ofKeys ? "do" : "v", ofKeys ? h : kvHead);
      if (needsGrads())
        grads = MmaAbtOp::create(b, loc, dp, ofKeys ? V : dO, ofKeys ? dO : V, /*negated=*/false,
                                 /*recomputed=*/results.accumulatesDq())
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
    Value row0 = math.value(math.add((ofKeys ? keyPiece : queryPiece).position, workTile.first)),
          col0 = math.value(math.add((ofKeys ? queryPiece : keyPiece).position, other));
    Value gradFactor = emitTileProbabilities(loop, row0, col0);
    Value products[2];
    auto convert = [&](Value operand, Value frag) -> Value {
      if (!operand)
        return frag;
      ConvertOp::create(b, loc, operand, frag, /*at_once=*/hasDqMma);
      return operand;
    };
    Value probabilities = results.dv ? convert(p, s) : s;
    if (hasDqMma)
      beginGrads();
    if (dropout)
      dropPairs(probabilities, gradFactor, row0, col0, dropoutState, std::exchange(grads, Value()));
    if (results.dv) {
      products[0] = MmaAbOp::create(b, loc, dV, probabilities, dO, /*guarded=*/false, Value()).getToken();
      if (results.accumulatesDq() && gradFactor == s) // no registers for both
        gradFactor = probabilities;
    }
    Value sum;
    if (needsGrads()) {
      if (grads)
        wait(grads);
      if (!dropout || !results.dv)
        GradScoresOp::create(b, loc, dp, gradFactor, stats, slopes,
                             exponent ? b.getF64FloatAttr(unscaled) : FloatAttr(),
                             ofKeys ? b.getUnitAttr() : UnitAttr());
      if (hasDqMma) // dS overwrites P
        wait(std::exchange(products[0], Value()));
      Value converted = convert(ds, dp);
      auto accumulate = [&] {
        return MmaAbOp::create(b, loc, ofKeys ? dK : dQ, converted, ofKeys ? Q : K, /*guarded=*/false, Value())
            .getToken();
      };
      Value tile = results.accumulatesDq() ? StoreAndSyncOp::create(b, loc, dS, ds).getTile() : Value();
      // The product for dQ is issued first, so that its addition to the accumulator overlaps with the product with Q.
      // Wide heads lack registers for both products and have one stage of Q, which is reloaded while dQ is computed.
      if (tile && results.dv)
        sum = MmaAtbOp::create(b, loc, dqFragment, tile, K).getToken();
      products[1] = accumulate();
      if (tile && !results.dv) {
        wait(std::exchange(products[1], Value()));
        sum = MmaAtbOp::create(b, loc, dqFragment, tile, K).getToken();
      }
    }
    if (products[0])
      wait(products[0]);
    if (sum) {
      wait(sum);
      Value semaphore, kvTileIndex;
      Index added = dqAccumulatorRow(row, other, h);
      if (results.firstCtaStores()) {
        semaphore = semaphorePointer(added, h);
        kvTileIndex = math.value(math.named(math.floorDiv(workTile.first, schedule.getKvTile()), "key_tile"));
      }
      bool afterFirst = results.order == DqAccumulation::first_stores;
      auto add = AddGlobalOp::create(b, loc, dqAccumulatorPointer(added), dqFragment, math.value(left), staging,
                                     semaphore, kvTileIndex, afterFirst);
      if (semaphore)
        buildAdds(add, tile, other);
      if (results.hasSoleWriters)
        storeDirectly(add, tile, other, left, row);
    }
    if (products[1])
      wait(products[1]);
    if (!usesTma)
      BarrierOp::create(b, loc, /*warp=*/false);
    YieldOp::create(b, loc, ValueRange());
  }

  /// The KV tiles that add to dQ of this query tile: the first, and a region that tells whether another one does.
  void buildAdds(AddGlobalOp add, Index tile, Index q0) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(add);
    if (Index firstTile = firstVisibleKvTile(q0);
        !firstTile.is(0)) // 0: the search for the predecessor ends there anyway
      add.getFirstTileMutable().assign(math.value(firstTile));
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
    Index rows = math.select(math.lt(workTile.first, schedule.getKvTile()), left, 0);
    Cond isSoleWriter = seesFirstKeyTileOnly(tile, q0);
    add.getSoleWriterMutable().assign(math.value(isSoleWriter));
    add.getDstMutable().assign(rowPointer("dq", row, batch, h));
    add.getStrideMutable().assign(rowStrideOf("dq"));
    add.getRowsMutable().assign(math.value(rows));
    add.setFactor(APFloat(problem.scaleOrDefault()));
    add.setDim(problem.getDimQk());
  }

  /// Applies dropout to the operand of dV and, after waiting for `grads`, to dP. With both, dS is computed here, so
  /// that random bits are drawn once.
  void dropPairs(Value probabilities, Value gradFactor, Value row0, Value col0, Value dropoutState, Value grads) {
    if (results.dv)
      drop(probabilities, row0, col0, dropoutState, /*scaled=*/false, /*transposed=*/ofKeys, /*marks=*/bool(grads));
    if (!grads)
      return;
    WaitOp::create(b, loc, grads);
    if (!results.dv)
      return drop(dp, row0, col0, dropoutState, /*scaled=*/true, /*transposed=*/ofKeys);
    DropoutGradScoresOp::create(b, loc, dp, probabilities, stats, gradFactor == s ? Value() : gradFactor,
                                b.getF64FloatAttr(dropout->factor() * unscaled), ofKeys ? b.getUnitAttr() : UnitAttr());
  }

  /// Are P and the modifiers' slopes stored separately as 16-bit operands, and multiplied for dS? The multiplication
  /// costs half an instruction for each score. Not in float16 if slopes may exceed its range; those of softcap are at
  /// most 1.
  bool storesSlopesSeparately() {
    return hasDqMma && !dropout && !problem.getModifiers().empty() &&
           (!problem.getDtype().isF16() || onlyModifierHasSmall());
  }

  /// Converts scores to probabilities P. Returns the factor of (dP - delta) in dS: P times the modifiers' slope.
  Value emitTileProbabilities(KvLoopOp loop, Value row0, Value col0) {
    auto gradFactor = [&](ProbabilitiesOp op) -> Value {
      OpBuilder before(op);
      if (hasDqMma)
        return StashOp::create(before, loc, ds.getType(), dS);
      before.setInsertionPointToStart(&kernel.getBody().front());
      if (!weighted) // operands of products leave no registers for another fragment
        weighted = AllocOp::create(before, loc, (ds ? ds : s).getType(), "weighted");
      return weighted;
    };
    ProbabilityStep step = {.walk = *walk, .scores = s, .statistics = stats, .row0 = row0, .col0 = col0};
    step.transposed = ofKeys;
    step.wantsSlope = needsGrads();
    step.hasSmall = usesTma && (results.accumulatesDq() || !needsGrads());
    step.separateSlopes = storesSlopesSeparately();
    step.loop = loop;
    step.gradFactor = gradFactor;
    ProbabilitiesOp op = recomputeProbabilities(step);
    if (!op.getWeighted())
      return s;
    if (!op.getSlopes())
      return op.getWeighted();
    slopes = op.getWeighted();
    return s;
  }

  //===------------------------------------------------------------------===//
  // Copies and results
  //===------------------------------------------------------------------===//

  /// `rows`: to copy at most. `positions`: that are left of the sequence, of all residues.
  Value copy(Value place, StringRef tensor, Index row, Index head, Index rows, Index positions) {
    if (usesTma)
      return copyTma(place, tensor, row, head, positions);
    int64_t dim = tensor == "q" || tensor == "k" ? problem.getDimQk() : problem.getDimV();
    return CopyAsyncOp::create(b, loc, place, rowPointer(tensor, row, batch, head), rowStrideOf(tensor),
                               math.value(rows), dim, Value());
  }

  Value copyStatistics(Index q, Index head) {
    Value from = rowStatisticsPointer(firstRow, head, q);
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
        all.push_back({tensor, acc, rowPointer(tensor, workTile.row, batch, ofKeys ? kvHead : h), dim});
    };
    write("dq", dQ, problem.getDimQk());
    write("dk", dK, problem.getDimQk());
    write("dv", dV, problem.getDimV());
    return all;
  }

  KernelOp kernel;
  bool usesTma;     ///< tiles are loaded by TMA
  int64_t exponent; ///< probabilities are scaled by 2^exponent
  double unscaled;  ///< 2^-exponent
  Value firstRow;   ///< the sequence's first row in `row_statistics`
  Value Q, K, V, dO, stats, s, dp, p, ds, weighted, slopes, dQ, dK, dV;
  Value dS, dqFragment, staging; ///< for dQ accumulation
};

} // namespace

int64_t attn::exponentOfProbabilities(ProblemOp problem, StringRef target) {
  return problem.getDtype().isF16() && target == "sm_90a" && problem.getModifiers().empty() ? 12 : 0;
}

static int64_t dqColumnsOf(ScheduleInterface schedule) {
  WarpSpecializedInterface roles = warpSpecializationOf(schedule);
  return roles ? roles.getDqColumns() : 0;
}

int64_t attn::dqFragmentColumns(ProblemOp problem, ScheduleInterface schedule) {
  int64_t columns = accumulatorColumns(problem.getDimQk());
  int64_t own = dqColumnsOf(schedule);
  return own ? std::min<int64_t>(columns, own) : columns * schedule.getQTile() / (16 * schedule.getWarps());
}

bool attn::addsFromRegisters(ProblemOp problem, ScheduleInterface schedule, DqAccumulation order, bool withDv) {
  return !withDv ||
         (order == DqAccumulation::ordered && dqColumnsOf(schedule) && accumulatorColumns(problem.getDimQk()) <= 64);
}

void attn::writeGradients(ProblemOp problem, KernelOp kernel, GradientResults results, StridedMaskAttr residues) {
  GradientsKernel(problem, kernel, results, residues).build();
}
