// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Backward kernels with a warp or a CTA for all rows and keys of a sequence and its kv heads, so that nothing is
// accumulated across warps or CTAs and the order of sums is fixed. If one SIMT tile has all rows, keys and values are
// read once: dV is stored in the loop that computes dQ and delta, and dK follows from probabilities cached in
// registers. If one tile has all rows and keys (`cta_per_sequence`), dV and dK are products with P and dS transposed.
// Otherwise two loops: stationary rows with streamed keys, then stationary keys with streamed rows.
//
#include "PerSequenceBackwardBody.h"
#include "PerSequenceKernels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class PerSequenceBackward : PerSequenceBackwardBody {
public:
  PerSequenceBackward(BackwardOp backward, KernelOp kernel, std::optional<ShortLimit> limit)
      : PerSequenceBackwardBody(backward.getProblemOp(), kernel, limit) {}

  void build() {
    findUnit();
    if (headLoopOf(schedule) == 1)
      return computeAll();
    endsQ = findEnds(/*keys=*/false), endsKv = findEnds(/*keys=*/true);
    // Adjacent CTAs have adjacent heads.
    kvHead = enterLoop("kv_head", kvHead, int64_t(problem.getKvHeads()), groups * kvHeads);
    h = group == 1 ? kvHead : math.named(math.mul(kvHead, group), "h");
    scope.head = h;
    computeAll();
    BarrierOp::create(b, loc, /*warp=*/false); // shared memory is reused for the next heads
  }

private:
  void computeAll() {
    findArrays();
    {
      OpBuilder::InsertionGuard guard(b);
      if (isShort) { // other kernels compute longer sequences
        auto streamed = scf::IfOp::create(b, loc, math.value(*isShort));
        b.setInsertionPoint(streamed.thenBlock(), streamed.thenBlock()->begin());
      }
      compute();
    }
    storePadding(/*keys=*/false, {{"dq", problem.getDimQk()}});
    storePadding(/*keys=*/true, {{"dk", problem.getDimQk()}, {"dv", problem.getDimV()}});
  }

  void compute() {
    // Is one tile or one SIMT tile expected to have all rows?
    bool tile = bool(tensorCores);
    if (!tile && !(group == 1 && problem.expectedQueries().value_or(1) <= schedule.getQTile())) {
      findKeys();
      computeInTwoLoops();
    } else {
      int64_t keys = tile ? schedule.getKvTile() / kvHeads : keysInRegisters();
      Cond fits = math.logicalAnd(math.le(lenQ, schedule.getQueries()), math.le(scope.lenK, keys));
      // Masks read array entries also for positions beyond the last, clamped to the last entry, which has to exist.
      if (tile || !problem.getMask().operands().empty())
        fits = math.logicalAnd(fits, math.logicalAnd(math.lt(0, lenQ), math.lt(0, scope.lenK)));
      if (kvHeads > 1)
        return computeHeads(fits);
      auto once = scf::IfOp::create(b, loc, math.value(fits), /*withElseRegion=*/true);
      {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(once.thenBlock(), once.thenBlock()->begin());
        if (tile)
          computeTile();
        else
          computeSinglePass(keys);
        b.setInsertionPoint(once.elseBlock(), once.elseBlock()->begin());
        forEachKvHead([&] { computeInTwoLoops(); });
      }
    }
  }

  /// With packed kv heads, probabilities across heads are 0, but 0 times NaN or Inf is not: with a non-finite value
  /// each head is computed by itself.
  void computeHeads(Cond fits) {
    auto packed = scf::IfOp::create(b, NameLoc::get(b.getStringAttr("packed"), loc), TypeRange{b.getI1Type()},
                                    math.value(fits), /*addThenBlock=*/true, /*addElseBlock=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(packed.thenBlock());
      Value finite = computeTile();
      scf::YieldOp::create(b, loc, finite);
      b.setInsertionPointToEnd(packed.elseBlock());
      scf::YieldOp::create(b, loc, math.value(Cond::of(false)));
    }
    onlyIf(math.logicalNot(Cond::of(packed.getResult(0))), [&] { forEachKvHead([&] { computeInTwoLoops(); }); });
  }

  /// The number of keys whose probabilities are cached: all expected ones, rounded up to whole lanes and tiles.
  int64_t keysInRegisters() {
    int64_t keys = std::clamp<int64_t>(problem.expectedKeys().value_or(16), 1, 64);
    return llvm::alignTo(keys, std::max<int64_t>(lanes, schedule.getKvTile()));
  }

  //===------------------------------------------------------------------===//
  // Tiles
  //===------------------------------------------------------------------===//

  // SIMT tiles; with `cta_per_sequence` these are for sequences that do not fit the tile.
  int64_t rows() { return tensorCores ? 1 : schedule.getQTile(); }
  int64_t keys() { return tensorCores ? 1 : schedule.getKvTile(); }
  Value simtTile(const char *name, int64_t rows, int64_t cols, bool data) {
    return alloc(
        name, SimtTileType::get(b.getContext(), rows, cols, data ? problem.getDtype() : Type(b.getF32Type()), lanes));
  }
  Value scores(const char *name) { return alloc(name, SimtScoresType::get(b.getContext(), rows(), keys(), lanes)); }

  /// The tiles of a loop: rows, keys, and scores.
  struct Tiles {
    Value Q, dO, row, K, V, s, dp;
    Value weighted; ///< probabilities times the modifiers' derivative; the same as s without modifiers that need it
  };
  Tiles declare() {
    Tiles p;
    p.Q = simtTile("Q", rows(), problem.getDimQk(), false);
    p.dO = simtTile("dO", rows(), problem.getDimV(), false);
    p.row = alloc("row", SimtSoftmaxStateType::get(b.getContext(), rows(), lanes));
    p.K = simtTile("K", keys(), problem.getDimQk(), true);
    p.V = simtTile("V", keys(), problem.getDimV(), true);
    p.s = scores("s");
    p.dp = scores("dp");
    return p;
  }

  //===------------------------------------------------------------------===//
  // Parts of a loop
  //===------------------------------------------------------------------===//

  Value at(StringRef tensor, Value base, Index row) {
    return AdvanceOp::create(b, loc, base, mul(wide(row), stride(tensor)));
  }
  Value deltaPointer(Index row) {
    Value offset = add(mul(wide(h), wide(rowsInAll())), wide(rowInAll(row, batch)));
    return AdvanceOp::create(b, loc, args["row_statistics"], offset);
  }

  /// Loads the rows from `q0` on and their row statistics.
  void loadRows(const Tiles &p, Index q0, bool withDelta) {
    Index row = math.add(firstQuery, q0);
    Value left = math.value(math.sub(lenQ, q0));
    LoadRowsOp::create(b, loc, p.Q, rowPointer("q", row, batch, h), stride("q"), left, /*dim=*/IntegerAttr());
    LoadRowsOp::create(b, loc, p.dO, rowPointer("do", row, batch, h), stride("do"), left, /*dim=*/IntegerAttr());
    Value gradLse, delta;
    if (withDelta)
      delta = deltaPointer(row);
    else if (args.contains("dlse"))
      gradLse = statisticPointer("dlse", row, batch, h);
    LoadRowStatisticsOp::create(b, loc, p.row, statisticPointer("lse", row, batch, h), /*stride=*/Value(), gradLse,
                                /*grad_stride=*/Value(), delta, left);
  }
  void loadKeys(const Tiles &p, Index k0) {
    Value left = math.value(math.sub(scope.lenK, k0));
    LoadRowsOp::create(b, loc, p.K, at("k", k, k0), stride("k"), left, /*dim=*/IntegerAttr());
    LoadRowsOp::create(b, loc, p.V, at("v", v, k0), stride("v"), left, /*dim=*/IntegerAttr());
  }
  /// Computes P, and dP with dropout applied.
  void emitScoresAndProbabilities(Tiles &p, Index q0, Index k0) {
    KeyWalk walk(problem.getMask(), scope);
    WaitOp::create(
        b, loc, MmaAbtOp::create(b, loc, p.s, p.Q, p.K, problem.scaleOrDefault() < 0, /*recomputed=*/false).getToken());
    WaitOp::create(b, loc,
                   MmaAbtOp::create(b, loc, p.dp, p.dO, p.V, /*negated=*/false, /*recomputed=*/false).getToken());
    emitTileProbabilities(walk, p, math.value(q0), math.value(k0));
    drop(p.dp, math.value(q0), math.value(k0), dropoutState, /*scaled=*/true);
  }
  /// Accumulates dV. Dropout overwrites the probabilities, so this is their last use.
  void addToValues(Tiles &p, Value dV, Index q0, Index k0) {
    drop(p.s, math.value(q0), math.value(k0), dropoutState, /*scaled=*/false);
    WaitOp::create(b, loc, MmaAtbOp::create(b, loc, dV, p.s, p.dO).getToken());
  }

  /// Converts `p.s` to probabilities; sets `p.weighted`.
  void emitTileProbabilities(KeyWalk &walk, Tiles &p, Value q0, Value k0) {
    auto gradFactor = [&](ProbabilitiesOp) {
      if (p.weighted && p.weighted != p.s)
        return p.weighted;
      OpBuilder b(p.s.getContext());
      b.setInsertionPointAfter(p.s.getDefiningOp());
      return Value(AllocOp::create(b, loc, p.s.getType(), "weighted"));
    };
    ProbabilitiesOp op = recomputeProbabilities(
        {.walk = walk, .scores = p.s, .statistics = p.row, .row0 = q0, .col0 = k0, .gradFactor = gradFactor});
    p.weighted = op.getWeighted() ? op.getWeighted() : p.s;
  }
  Value separateWeighted(const Tiles &p) { return p.weighted == p.s ? Value() : p.weighted; }
  void accumulate(Value acc, Value scores, Value rows) {
    WaitOp::create(b, loc, MmaAbOp::create(b, loc, acc, scores, rows, /*guarded=*/false, Value()).getToken());
  }
  void storeRows(StringRef tensor, Value base, Value tile, Index row, Index end, int64_t dim) {
    Value left = math.value(math.sub(end, row));
    StoreOp::create(b, loc, at(tensor, base, row), stride(tensor), tile, left, left, dim);
  }
  FloatAttr factor() { return b.getF64FloatAttr(problem.scaleOrDefault()); }

  /// Computes dQ and delta of the rows from `q0` on; calls `each` with the first key of each step.
  void loopOverKeys(Tiles &p, Value dQ, Value pK, Index q0, llvm::function_ref<void(Index)> each) {
    ClearOp::create(b, loc, dQ);
    ClearOp::create(b, loc, pK);
    loop("k0", 0, scope.lenK, keys(), [&](Index k0) {
      loadKeys(p, k0);
      emitScoresAndProbabilities(p, q0, k0);
      AccumulateDeltaOp::create(b, loc, p.dp, p.s, p.row, separateWeighted(p));
      accumulate(dQ, p.dp, p.K);
      accumulate(pK, p.weighted, p.K);
      each(k0);
    });
    SubtractDeltaOp::create(b, loc, dQ, pK, p.row, factor());
    storeRows("dq", rowPointer("dq", firstQuery, batch, h), dQ, q0, lenQ, problem.getDimQk());
  }

  //===------------------------------------------------------------------===//
  // The computation
  //===------------------------------------------------------------------===//

  /// Computes all gradients of a sequence that fits one tile, with the packed query heads. With several kv heads it
  /// returns whether all values are finite; otherwise nothing is stored.
  Value computeTile() {
    MLIRContext *context = b.getContext();
    int64_t rows = schedule.getQTile(), keys = schedule.getKvTile(), warps = schedule.getWarps();
    int64_t rowsOfAll = tensorCores.getFragmentRows(), keysOfAll = llvm::alignTo(keys, 16 * warps); // in fragments
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    auto frag = [&](const char *name, int64_t rows, int64_t cols) {
      return alloc(name, FragType::get(context, rows, cols, warps));
    };
    int64_t heads = schedule.getPackHeads();
    auto strideOf = [&](StringRef tensor, int64_t heads) {
      return pairs(heads, stride(tensor), args[(tensor + "_head").str()]);
    };
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };
    scope.head = h;
    Tiles p;
    p.Q = shared("Q", rows, colsQk), p.dO = shared("dO", rows, colsV);
    p.K = shared("K", keys, colsQk), p.V = shared("V", keys, colsV);
    p.row = alloc("stats", RowStatisticsType::get(context, rowsOfAll));
    p.s = frag("s", rowsOfAll, keys), p.dp = frag("dp", rowsOfAll, keys);
    Value P = shared("P", rows, keysOfAll), dS = shared("dS", rows, keysOfAll);

    Value queryRows = math.value(math.mul(lenQ, heads)), keyRows = math.value(math.mul(scope.lenK, kvHeads));
    SmallVector<Value> copied;
    auto copy = [&](Value place, Value from, Value stride, Value rows, int64_t dim) {
      copied.push_back(copyOnce(place, from, stride, rows, dim));
    };
    copy(p.Q, rowPointer("q", firstQuery, batch, h), strideOf("q", heads), queryRows, problem.getDimQk());
    copy(p.K, keyPointer("k"), strideOf("k", kvHeads), keyRows, problem.getDimQk());
    copy(p.dO, rowPointer("do", firstQuery, batch, h), strideOf("do", heads), queryRows, problem.getDimV());
    copy(p.V, keyPointer("v"), strideOf("v", kvHeads), keyRows, problem.getDimV());
    auto statisticStride = [&](StringRef tensor) {
      return heads == 1 ? Value() : pairs(heads, wide(int64_t(1)), args[(tensor + "_head").str()]);
    };
    Value gradLse = args.contains("dlse") ? statisticPointer("dlse", firstQuery, batch, h) : Value();
    LoadRowStatisticsOp::create(b, loc, p.row, statisticPointer("lse", firstQuery, batch, h), statisticStride("lse"),
                                gradLse, gradLse ? statisticStride("dlse") : Value(), /*delta=*/Value(), queryRows);
    WaitOp::create(b, loc, copied);
    double scale = problem.scaleOrDefault();
    if (scale < 0)
      ScaleOp::create(b, loc, p.Q, /*factor=*/llvm::APFloat(-1.0));

    Cond isFinite = Cond::of(true);
    auto checkFinite = [&](Value place) {
      if (kvHeads > 1)
        isFinite = math.logicalAnd(isFinite, Cond::of(IsFiniteOp::create(b, loc, place).getFinite()));
    };
    wait(MmaAbtOp::create(b, loc, p.s, p.Q, p.K, /*negated=*/false, /*recomputed=*/false).getToken());
    checkFinite(p.s);
    Value q0 = pairs(heads, math.value(0), math.value(h));
    KeyWalk walk(problem.getMask(), scope);
    Value k0 = pairs(kvHeads, math.value(0), math.value(0));
    emitTileProbabilities(walk, p, q0, k0);
    wait(MmaAbtOp::create(b, loc, p.dp, p.dO, p.V, /*negated=*/false, /*recomputed=*/false).getToken());
    checkFinite(p.dp);
    // dS is computed before dV, dQ and dK, so that their products have the registers of dP.
    if (dropout) {
      dropoutState = findDropoutState(heads > 1);
      drop(p.dp, q0, k0, dropoutState, /*scaled=*/true);
    }
    SinglePassGradsOp::create(b, loc, p.dp, p.s, p.row, separateWeighted(p));
    checkFinite(p.s), checkFinite(p.dp); // catches non-finite LSE and array entries
    if (dropout)
      drop(p.s, q0, k0, dropoutState, /*scaled=*/false);
    // Results are computed in column parts where registers are few.
    int64_t parts = std::max<int64_t>(tensorCores.getColumnParts(), 1);
    auto forEachColumnPart = [&](Value tile, Value to, int64_t cols, int64_t dim,
                                 llvm::function_ref<void(Value, Value, int64_t)> make) {
      if (parts == 1)
        return make(tile, to, dim);
      int64_t rows = cast<SharedType>(tile.getType()).getRows();
      for (int64_t column = 0; column < cols; column += cols / parts)
        make(subtileOf(tile, rows, cols / parts, math.value(column)), AdvanceOp::create(b, loc, to, wide(column)),
             dim / parts);
    };
    auto emitKeyGradient = [&](const char *name, Value scores, Value rows, int64_t cols, FloatAttr by, StringRef tensor,
                               int64_t dim) {
      Value acc = frag(name, keysOfAll, cols / parts);
      forEachColumnPart(rows, keyPointer(tensor), cols, dim, [&](Value part, Value to, int64_t dim) {
        wait(MmaAtbOp::create(b, loc, acc, scores, part).getToken());
        if (by)
          ScaleOp::create(b, loc, acc, by);
        StoreOp::create(b, loc, to, strideOf(tensor, kvHeads), acc, keyRows, keyRows, dim);
      });
    };
    // Converted operands reuse the shared memory of V, or of the previous operand. Without barriers the compiler would
    // keep all three accumulators in registers at once.
    Value finite;
    OpBuilder::InsertionGuard guard(b);
    if (kvHeads > 1) {
      finite = BarrierAndOp::create(b, loc, math.value(isFinite)).getAll();
      b.setInsertionPoint(scf::IfOp::create(b, loc, finite).thenYield());
    } else {
      BarrierOp::create(b, loc, /*warp=*/false);
    }
    ConvertOp::create(b, loc, P, p.s);
    emitKeyGradient("dV", P, p.dO, colsV, dropout ? b.getF64FloatAttr(dropout->factor()) : FloatAttr(), "dv",
                    problem.getDimV());
    BarrierOp::create(b, loc, /*warp=*/false);
    ConvertOp::create(b, loc, dS, p.dp);
    Value dQ = frag("dQ", rowsOfAll, colsQk / parts);
    forEachColumnPart(p.K, rowPointer("dq", firstQuery, batch, h), colsQk, problem.getDimQk(),
                      [&](Value part, Value to, int64_t dim) {
                        ClearOp::create(b, loc, dQ);
                        wait(MmaAbOp::create(b, loc, dQ, p.dp, part, /*guarded=*/false, Value()).getToken());
                        ScaleOp::create(b, loc, dQ, factor());
                        StoreOp::create(b, loc, to, strideOf("dq", heads), dQ, queryRows, queryRows, dim);
                      });
    BarrierOp::create(b, loc, /*warp=*/false);
    // Q is negated already if the scale is negative.
    emitKeyGradient("dK", dS, p.Q, colsQk, b.getF64FloatAttr(std::abs(scale)), "dk", problem.getDimQk());
    return finite;
  }

  void computeSinglePass(int64_t cachedKeys) {
    Tiles p = declare();
    scope.head = h;
    findKeys();
    Value dQ = simtTile("dQ", rows(), problem.getDimQk(), false),
          pK = simtTile("pK", rows(), problem.getDimQk(), false);
    Value probabilities = alloc("probabilities", SimtProbabilitiesType::get(b.getContext(), rows(), cachedKeys, lanes));
    loadRows(p, 0, /*withDelta=*/false);
    dropoutState = findDropoutState();
    Value dV = simtTile("dV", keys(), problem.getDimV(), false);
    loopOverKeys(p, dQ, pK, 0, [&](Index k0) {
      CacheProbabilitiesOp::create(b, loc, probabilities, p.weighted, p.dp, math.value(k0));
      ClearOp::create(b, loc, dV);
      addToValues(p, dV, 0, k0);
      scaleKept(dV);
      storeRows("dv", dv, dV, k0, scope.lenK, problem.getDimV());
    });
    Value dK = simtTile("dK", keys(), problem.getDimQk(), false);
    loop("k0", 0, scope.lenK, keys(), [&](Index k0) {
      CachedGradScoresOp::create(b, loc, p.dp, probabilities, p.row, math.value(k0));
      ClearOp::create(b, loc, dK);
      WaitOp::create(b, loc, MmaAtbOp::create(b, loc, dK, p.dp, p.Q).getToken());
      ScaleOp::create(b, loc, dK, factor());
      storeRows("dk", dk, dK, k0, scope.lenK, problem.getDimQk());
    });
  }

  /// Emits `body` in a loop over the query heads of the kv head.
  void forEachHead(llvm::function_ref<void()> body) {
    Index first = h;
    if (group == 1) {
      scope.head = h;
      return body();
    }
    loop("head_in_group", 0, group, 1, [&](Index member) {
      scope.head = h = math.named(math.add(first, member), "head");
      body();
    });
    scope.head = h = first;
  }

  /// Emits `body` in a loop over the packed kv heads.
  void forEachKvHead(llvm::function_ref<void()> body) {
    if (kvHeads == 1) {
      findKeys();
      return body();
    }
    Index first = kvHead, firstHead = h;
    loop("packed_head", 0, kvHeads, 1, [&](Index side) {
      kvHead = math.named(math.add(first, side), "own_kv_head");
      h = math.mul(kvHead, group);
      findKeys();
      body();
    });
    kvHead = first, h = firstHead;
  }

  void computeInTwoLoops() {
    Tiles p = declare();
    forEachHead([&] {
      dropoutState = findDropoutState();
      loop("q0", 0, lenQ, rows(), [&](Index q0) {
        Value dQ = simtTile("dQ", rows(), problem.getDimQk(), false),
              pK = simtTile("pK", rows(), problem.getDimQk(), false);
        loadRows(p, q0, /*withDelta=*/false);
        loopOverKeys(p, dQ, pK, q0, [](Index) {});
        StoreDeltaOp::create(b, loc, deltaPointer(math.add(firstQuery, q0)), p.row, math.value(math.sub(lenQ, q0)));
      });
    });
    BarrierOp::create(b, loc, /*warp=*/true);
    loop("k0", 0, scope.lenK, keys(), [&](Index k0) {
      Value dK = simtTile("dK", keys(), problem.getDimQk(), false),
            dV = simtTile("dV", keys(), problem.getDimV(), false);
      loadKeys(p, k0);
      ClearOp::create(b, loc, dK);
      ClearOp::create(b, loc, dV);
      forEachHead([&] {
        dropoutState = findDropoutState();
        loop("q0", 0, lenQ, rows(), [&](Index q0) {
          loadRows(p, q0, /*withDelta=*/true);
          emitScoresAndProbabilities(p, q0, k0);
          if (!dropout)
            addToValues(p, dV, q0, k0);
          GradScoresOp::create(b, loc, p.dp, p.weighted, p.row, /*slopes=*/Value(), /*by=*/FloatAttr(),
                               /*transposed=*/UnitAttr());
          if (dropout)
            addToValues(p, dV, q0, k0);
          WaitOp::create(b, loc, MmaAtbOp::create(b, loc, dK, p.dp, p.Q).getToken());
        });
      });
      ScaleOp::create(b, loc, dK, factor());
      scaleKept(dV);
      storeRows("dk", dk, dK, k0, scope.lenK, problem.getDimQk());
      storeRows("dv", dv, dV, k0, scope.lenK, problem.getDimV());
    });
  }

  CtaPerSequenceAttr tensorCores = dyn_cast<CtaPerSequenceAttr>(schedule); ///< null for SIMT rows
  Value dropoutState;                                                      ///< null without dropout
};

} // namespace

void attn::writePerSequenceBackward(BackwardOp backward, ProgramBuilder &program, StringRef name, StringRef target,
                                    ScheduleInterface schedule, std::optional<ShortLimit> limit, int64_t classesOfDq) {
  ProblemOp problem = backward.getProblemOp();
  OpBuilder b(backward);
  using program::Effect;
  SmallVector<TensorUse> tensors = {{"q"},
                                    {"k"},
                                    {"v"},
                                    {"lse"},
                                    {"do"},
                                    {"dq", Effect::write},
                                    {"dk", Effect::write},
                                    {"dv", Effect::write},
                                    {"row_statistics", Effect::scratch}};
  if (backward.getDlse())
    tensors.push_back({"dlse"});
  KernelGrid grid;
  grid.packed = problem.getQLayout().isPacked() || problem.getKLayout().isPacked();
  auto simt = dyn_cast<SimtRowsAttr>(schedule);
  int64_t headsPerUnit = simt ? 32 / simt.getLanes() : kvHeadsOf(problem, schedule);
  grid.heads = llvm::divideCeil(int64_t(problem.getKvHeads()), headsPerUnit * headLoopOf(schedule));
  grid.tiles = b.getI64IntegerAttr(1);
  grid.parts = limit ? 2 : 1;
  grid.partOfDq = {0, classesOfDq};
  auto arguments = KernelArguments::ofBackward(backward, tensors, /*usesTma=*/false, [](StringRef) { return 0; });
  KernelOp kernel = arguments.makeKernel(program, b, backward.getLoc(), name, target, grid, schedule);
  PerSequenceBackward(backward, kernel, limit).build();
}
