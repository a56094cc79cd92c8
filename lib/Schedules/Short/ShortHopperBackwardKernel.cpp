// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of short sequences on Hopper: one CTA has all rows and keys of a sequence and head and computes dQ, dK and
// dV in one kernel, without accumulation in global memory or preprocess and postprocess kernels
// (docs/Schedules/single_pass_backward.md). Sequences of one tile are computed in a single pass, with delta as a row
// sum in registers. With more than 128 rows or keys, Q and dO are stationary and K/V tiles are streamed past them; dK
// and dV of each K/V tile are complete when the next one begins. Longer sequences have the kernels on tiles
// (LongWorkTiles.h).
//
#include "PerSequenceBackwardBody.h"
#include "PerSequenceKernels.h"
#include "ShortHopperBackward.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t rowsOfGroup = 64; ///< rows of a warpgroup

class ShortHopperBackwardKernel : PerSequenceBackwardBody {
public:
  ShortHopperBackwardKernel(BackwardOp backward, KernelOp kernel, ShortLimit limit)
      : PerSequenceBackwardBody(backward.getProblemOp(), kernel, limit) {}

  void build() {
    declareTiles();
    findUnit();
    scope.head = h;
    findArrays();
    Index writtenQ = findWritten(/*ofKeys=*/false), writtenKv = findWritten(/*ofKeys=*/true);
    onlyIf(computes(), [&] { streamsKeys ? streamKeys(writtenQ, writtenKv) : computeSinglePass(writtenQ, writtenKv); });
  }

private:
  /// Rows of a fragment; the last warps may have no rows of the sequence.
  int64_t rowsOfAll() { return 16 * schedule.getWarps(); }
  int64_t keys() { return keysOfAll(schedule); }

  void declareTiles() {
    MLIRContext *context = b.getContext();
    int64_t rows = schedule.getQTile(), colsQk = llvm::alignTo(problem.getDimQk(), 16),
            colsV = llvm::alignTo(problem.getDimV(), 16);
    Q = shared("Q", rows, colsQk, /*usesTma=*/true), dO = shared("dO", rows, colsV, /*usesTma=*/true);
    K = shared("K", int64_t(schedule.getKvTile()), colsQk, /*usesTma=*/true),
    V = shared("V", int64_t(schedule.getKvTile()), colsV, /*usesTma=*/true);
    if (!streamsKeys)
      dO.getDefiningOp<AllocOp>().setSlots(roles.getStages());
    if (streamsKeys && loadsOutputs(problem, schedule)) {
      O = shared("O", rows, colsV, /*usesTma=*/true);
      O.getDefiningOp<AllocOp>().setSlots(1);
    }
    for (Value place : {K, V})
      place.getDefiningOp<AllocOp>().setSlots(roles.getStages());
    auto ring = [&](const char *name, int64_t stages, int64_t columns) {
      return alloc(name,
                   RingType::get(context, stages,
                                 SharedType::get(context, rows, columns, problem.getDtype(), SharedType::swizzled)));
    };
    if (streamsKeys)
      P = ring("P", 1, 64), dS = ring("dS", 1, 64);
    else
      transposed = ring("transposed", 2, rowsOfAll()); // a warpgroup reads 64 keys of its transpose
  }
  /// A fragment, declared where it is used.
  Value frag(const char *name, int64_t cols) {
    return alloc(name, FragType::get(b.getContext(), rowsOfAll(), cols, schedule.getWarps()));
  }

  /// Does the sequence have both rows and keys? Otherwise all gradients are 0, and a tensor without rows must not be
  /// loaded.
  Cond computes() { return math.logicalAnd(*isShort, math.logicalAnd(math.lt(0, lenQ), math.lt(0, scope.lenK))); }

  /// Returns how many rows of queries or keys the CTA stores with its results: the sequence's, and padding within the
  /// tile. Code that stores zeros to other rows is emitted at once: beyond the tile, of a sequence without rows or
  /// keys, before the first sequence and after the last.
  Index findWritten(bool ofKeys) {
    int64_t step = schedule.getQTile(); // rows of a `tile.store_padding`, for queries and keys
    Index rows = ofKeys ? Index(keys()) : Index(schedule.getQTile());
    if (streamsKeys && ofKeys)
      rows = math.mul(math.ceilDiv(scope.lenK, schedule.getKvTile()), schedule.getKvTile());
    Index own = ofKeys ? firstKey : firstQuery, length = ofKeys ? scope.lenK : lenQ;
    auto pad = [&](Index first, Index count) {
      auto zeros = [&](StringRef tensor, Index head, int64_t dim) {
        StorePaddingOp::create(b, loc, rowPointer(tensor, first, batch, head), stride(tensor), math.value(count), dim);
      };
      if (!ofKeys)
        return zeros("dq", h, problem.getDimQk());
      zeros("dk", kvHead, problem.getDimQk());
      zeros("dv", kvHead, problem.getDimV());
    };
    auto padRange = [&](StringRef name, Index begin, Index end) {
      distributePadding(name, begin, end, /*tiles=*/1, /*number=*/0, step, pad);
    };
    Index extent = length;
    if (std::optional<Ends> ends = findEnds(ofKeys)) {
      padRange("padding_end", ends->endAll, extentOf(ofKeys));
      if (layoutOf(ofKeys).getPadded()) {
        padRange("before", 0, ends->beginAll);
        extent = math.sub(ends->behind, own);
      }
    }
    extent = math.named(math.select(*isShort, extent, 0),
                        ofKeys ? "extent_kv" : "extent_q"); // other kernels compute longer sequences
    loop("i", math.select(computes(), rows, 0), extent, step,
         [&](Index i) { pad(math.add(own, i), math.min(math.sub(extent, i), step)); });
    return math.min(extent, rows);
  }

  void wait(Value token) { WaitOp::create(b, loc, token); }

  /// Loads row statistics of the rows from `first` on. `dlse` precedes the products: beside one, ptxas lacks registers
  /// for it and a mask.
  Value loadStatistics(int64_t first = 0) {
    Index row = math.add(firstQuery, first);
    Value gradLse = args.contains("dlse") ? statisticPointer("dlse", row, batch, h) : Value();
    Value stats = alloc("stats", SoftmaxStateType::get(b.getContext(), rowsOfAll(), schedule.getWarps()));
    LoadRowStatisticsOp::create(b, loc, stats, statisticPointer("lse", row, batch, h), /*stride=*/Value(), gradLse,
                                /*grad_stride=*/Value(),
                                /*delta=*/Value(), math.value(math.sub(lenQ, first)));
    return stats;
  }
  Value multiply(Value s, Value q, Value k, bool negated = false, IntegerAttr first = {}) {
    return MmaAbtOp::create(b, loc, s, q, k, negated, /*recomputed=*/false, first).getToken();
  }
  /// Converts scores of the rows from `q0` and keys from `k0` on to probabilities. `seesAllKeys`: the mask hides no key
  /// that exists.
  void emitTileProbabilities(KeyWalk &walk, Value s, Value stats, int64_t q0, Index k0, int64_t keys,
                             Cond seesAllKeys) {
    Cond tested = math.logicalOr(math.logicalNot(seesAllKeys), math.lt(math.sub(scope.lenK, k0), keys));
    Value row0 = math.value(q0), col0 = math.value(k0);
    recomputeProbabilities(
        {.walk = walk, .scores = s, .statistics = stats, .row0 = row0, .col0 = col0, .tested = tested});
    drop(s, row0, col0, findDropoutState(), /*scaled=*/false, /*transposed=*/false, /*marks=*/true);
  }
  void emitGradScores(Value dp, Value s, Value stats, bool known) {
    SinglePassGradsOp::create(b, loc, dp, s, stats, /*weighted=*/Value(),
                              dropout ? b.getF64FloatAttr(dropout->factor()) : FloatAttr(), known);
  }

  void computeSinglePass(Index writtenQ, Index writtenKv) {
    Value s = frag("s", keys()), dp = frag("dp", keys());
    // Copies are issued in the order in which their stages are released.
    Value copiedQ = copyTma(Q, "q", firstQuery, h, lenQ), copiedV = copyTma(V, "v", firstKey, kvHead, scope.lenK);
    Value copiedDo = copyTma(dO, "do", firstQuery, h, lenQ), copiedK = copyTma(K, "k", firstKey, kvHead, scope.lenK);
    Value stats = loadStatistics();
    wait(copiedQ);
    wait(copiedK);
    Value scores = multiply(s, Q, K, /*negated=*/problem.scaleOrDefault() < 0), grads;
    auto beginGrads = [&] {
      wait(copiedDo);
      wait(copiedV);
      grads = multiply(dp, dO, V);
    };
    if (!dropout) // dropout needs the registers of dP
      beginGrads();
    wait(scores);
    KeyWalk walk(problem.getMask(), scope);
    emitTileProbabilities(walk, s, stats, 0, 0, keys(), Cond::of(!walk.hidesKeys()));
    if (dropout)
      beginGrads();
    wait(grads);
    emitGradScores(dp, s, stats, /*known=*/false);

    Value operand = alloc("probabilities", RegisterOperandType::get(b.getContext(), rowsOfAll(), keys(),
                                                                    problem.getDtype(), schedule.getWarps()));
    ConvertOp::create(b, loc, operand, s, /*at_once=*/true);
    Value probabilities = StoreAndSyncOp::create(b, loc, transposed, operand).getTile();
    ConvertOp::create(b, loc, operand, dp, /*at_once=*/true);
    Value dV = frag("dV", accumulatorColumns(problem.getDimV()));
    wait(MmaAtbOp::create(b, loc, dV, probabilities, dO).getToken()); // all warps have read P before dS is stored
    scaleKept(dV);
    storeGradient("dv", dV, firstKey, kvHead, scope.lenK, writtenKv, problem.getDimV());
    Value gradScores = StoreAndSyncOp::create(b, loc, transposed, operand).getTile();
    Value dQ = frag("dQ", llvm::alignTo(problem.getDimQk(), 16));
    ClearOp::create(b, loc, dQ);
    wait(MmaAbOp::create(b, loc, dQ, operand, K, /*guarded=*/false, Value()).getToken());
    ScaleOp::create(b, loc, dQ, b.getF64FloatAttr(problem.scaleOrDefault()));
    storeGradient("dq", dQ, firstQuery, h, lenQ, writtenQ, problem.getDimQk());
    Value dK = frag("dK", accumulatorColumns(problem.getDimQk()));
    wait(MmaAtbOp::create(b, loc, dK, gradScores, Q).getToken());
    ScaleOp::create(b, loc, dK, b.getF64FloatAttr(problem.scaleOrDefault()));
    storeGradient("dk", dK, firstKey, kvHead, scope.lenK, writtenKv, problem.getDimQk());
  }

  /// dV and dK of a KV tile of 64 keys, summed over 64-row query blocks. Warpgroups take slices of their columns in
  /// rotation, shifted with each KV tile, so that the remaining slices do not always go to the same warpgroup.
  void accumulateSlices(Index tile, Interval rowBlocks, Index firstRow, Index rows, Index written) {
    // Wide slices read P and dS less often. With two row blocks, registers for wide slices cost as much as that gains.
    int64_t groups = schedule.getWarps() / 4,
            columns = groups == 3 && std::min(problem.getDimQk(), problem.getDimV()) > 64 ? 128 : 64;
    int64_t slices = llvm::divideCeil(problem.getDimV(), columns) + llvm::divideCeil(problem.getDimQk(), columns);
    Value probabilities = ConsumerWaitOp::create(b, loc, P).getTile(),
          gradScores = ConsumerWaitOp::create(b, loc, dS).getTile();
    Index own = math.sub(Index(Value(IndexOp::create(b, loc, IndexKind::warpgroup))),
                         math.sub(tile, math.mul(math.floorDiv(tile, groups), groups)));
    own = math.select(math.lt(own, 0), math.add(own, groups), own);
    loop("slice", own, slices, groups, [&](Index slice) {
      Value sum = alloc("sum", FragType::get(b.getContext(), 64, columns, 4));
      wait(MmaAtbSliceOp::create(b, loc, sum, ValueRange{probabilities, gradScores}, ValueRange{dO, Q},
                                 math.value(slice), math.value(rowBlocks.lo), math.value(rowBlocks.hi))
               .getToken());
      Value more = math.value(math.lt(math.add(slice, groups), slices));
      for (Value ring : {P, dS}) // released before the store, which needs neither ring
        ConsumerReleaseOp::early(b, loc, ring, more);
      Value dv = rowPointer("dv", firstRow, batch, kvHead), dk = rowPointer("dk", firstRow, batch, kvHead);
      StoreSliceOp::create(b, loc, ValueRange{dv, dk}, ValueRange{stride("dv"), stride("dk")}, sum, math.value(slice),
                           math.value(rows), math.value(written),
                           ArrayRef<double>{dropout ? dropout->factor() : 1, problem.scaleOrDefault()},
                           ArrayRef<int64_t>{int64_t(problem.getDimV()), int64_t(problem.getDimQk())});
    });
    for (Value ring : {P, dS})
      ConsumerReleaseOp::create(b, loc, ring);
  }

  /// The rows that all warps process at a time, with their state in registers.
  struct RowBlock {
    int64_t first;
    Value stats, dQ;
  };
  void streamKeys(Index writtenQ, Index writtenKv) {
    int64_t step = schedule.getKvTile();
    Value copiedO =
        O ? copyTma(O, "o", firstQuery, h, lenQ) : Value(); // O first: its stage is the first to be released
    Value copiedQ = copyTma(Q, "q", firstQuery, h, lenQ), copiedDo = copyTma(dO, "do", firstQuery, h, lenQ);
    SmallVector<RowBlock> rowBlocks;
    SmallVector<Value> outputs; // loaded while dO is in flight
    for (int64_t first = 0; first < schedule.getQTile(); first += rowsOfAll()) {
      rowBlocks.push_back({first, loadStatistics(first), Value()});
      Value o = O;
      if (!o) {
        o = alloc("O", RegisterOperandType::get(b.getContext(), rowsOfAll(), llvm::alignTo(problem.getDimV(), 32),
                                                problem.getDtype(), schedule.getWarps()));
        LoadRowsOp::create(b, loc, o, rowPointer("o", math.add(firstQuery, first), batch, h), stride("o"),
                           math.value(math.sub(lenQ, first)), b.getI64IntegerAttr(problem.getDimV()));
      }
      outputs.push_back(o);
    }
    auto firstOf = [&](const RowBlock &rows) {
      return rowBlocks.size() > 1 ? b.getI64IntegerAttr(rows.first) : IntegerAttr();
    };
    wait(copiedDo);
    if (O)
      wait(copiedO);
    for (auto [rows, o] : llvm::zip(rowBlocks, outputs))
      AddDeltaOp::create(b, loc, rows.stats, o, dO, firstOf(rows));
    for (RowBlock &rows : rowBlocks) {
      rows.dQ = frag("dQ", llvm::alignTo(problem.getDimQk(), 16));
      ClearOp::create(b, loc, rows.dQ);
    }
    wait(copiedQ);
    KeyWalk walk(problem.getMask(), scope);
    loop("tile", 0, math.ceilDiv(scope.lenK, step), 1, [&](Index tile) {
      Index k0 = math.named(math.mul(tile, step), "k0"), left = math.sub(scope.lenK, k0),
            first = math.add(firstKey, k0);
      for (Value copied : {copyTma(K, "k", first, kvHead, left), copyTma(V, "v", first, kvHead, left)})
        wait(copied);
      SmallVector<KeyRun> runs = walk.queryRuns(math, {k0, math.min(math.add(k0, step), scope.lenK)}, rowsOfGroup);
      Interval some = hullOf(math, runs);
      std::optional<Interval> all =
          walk.hasLowerTest() ? std::nullopt : fullOf(runs); // with a lower bound, as in a window, few tiles are full
      Index group = Value(IndexOp::create(b, loc, IndexKind::warpgroup));
      for (const RowBlock &rows :
           rowBlocks) { // warpgroups without visible rows skip to the slices, which omit their rows
        Index rowBlock = math.add(group, rows.first / rowsOfGroup);
        onlyIf(contains(math, some, rowBlock), [&] {
          multiplyRows(rows, firstOf(rows), walk, k0, all ? contains(math, *all, rowBlock) : Cond::of(false));
        });
      }
      for (Value ring : {P, dS})
        ProducerCommitOp::create(b, loc, ring);
      accumulateSlices(tile, some, first, left, math.min(math.sub(writtenKv, k0), step));
    });
    for (const RowBlock &rows : rowBlocks) {
      ScaleOp::create(b, loc, rows.dQ, b.getF64FloatAttr(problem.scaleOrDefault()));
      storeGradient("dq", rows.dQ, math.add(firstQuery, rows.first), h, math.sub(lenQ, rows.first),
                    math.sub(writtenQ, rows.first), problem.getDimQk());
    }
  }
  /// For a row block and the KV tile from `k0` on: stores P and dS into shared memory and accumulates dQ.
  void multiplyRows(const RowBlock &rows, IntegerAttr first, KeyWalk &walk, Index k0, Cond seesAllKeys) {
    int64_t step = schedule.getKvTile();
    Value s = frag("s", step), dp = frag("dp", step),
          operand = alloc("probabilities", RegisterOperandType::get(b.getContext(), rowsOfAll(), step,
                                                                    problem.getDtype(), schedule.getWarps()));
    Value scores = multiply(s, Q, K, /*negated=*/problem.scaleOrDefault() < 0, first), grads;
    auto beginGrads = [&] { grads = multiply(dp, dO, V, /*negated=*/false, first); };
    if (!dropout) // dropout needs the registers of dP
      beginGrads();
    wait(scores);
    emitTileProbabilities(walk, s, rows.stats, rows.first, k0, step, seesAllKeys);
    if (dropout)
      beginGrads();
    else // dropout marks probabilities by their signs until dS is computed
      ProducerStoreOp::create(b, loc, P, s, first);
    wait(grads);
    emitGradScores(dp, s, rows.stats, /*known=*/true);
    if (dropout)
      ProducerStoreOp::create(b, loc, P, s, first);
    ConvertOp::create(b, loc, operand, dp, /*at_once=*/true);
    ProducerStoreOp::create(b, loc, dS, operand, first);
    // The wait follows at once, since the products of slices would lack registers while this one is in flight.
    wait(MmaAbOp::create(b, loc, rows.dQ, operand, K, /*guarded=*/false, Value()).getToken());
  }

  void storeGradient(StringRef tensor, Value acc, Index row, Index head, Index rows, Index written, int64_t dim) {
    StoreOp::create(b, loc, rowPointer(tensor, row, batch, head), stride(tensor), acc, math.value(rows),
                    math.value(written), dim);
  }

  Value Q, K, V, dO, O;
  WarpSpecializedInterface roles = cast<WarpSpecializedInterface>(schedule);
  bool streamsKeys = isa<StationaryQBackwardAttr>(schedule);
  Value transposed; ///< P or dS in shared memory, read transposed
  Value P, dS;      ///< P and dS of a streamed KV tile
};

} // namespace

void attn::writeShortHopperBackward(BackwardOp backward, ProgramBuilder &program, StringRef name,
                                    ScheduleInterface schedule, ShortLimit limit, int64_t classesOfDq) {
  ProblemOp problem = backward.getProblemOp();
  OpBuilder b(backward);
  using program::Effect;
  SmallVector<TensorUse> tensors = {
      {"q"}, {"k"}, {"v"}, {"lse"}, {"do"}, {"dq", Effect::write}, {"dk", Effect::write}, {"dv", Effect::write}};
  if (isa<StationaryQBackwardAttr>(schedule))
    tensors.push_back({"o"});
  if (backward.getDlse())
    tensors.push_back({"dlse"});
  KernelGrid grid = {problem.getQLayout().isPacked(), int64_t(problem.getHeads())};
  grid.tiles = b.getI64IntegerAttr(1);
  grid.parts = 2;
  grid.partOfDq = {0, classesOfDq};
  auto arguments = KernelArguments::ofBackward(backward, tensors, /*usesTma=*/true, [&](StringRef tensor) {
    if (tensor == "o" && !loadsOutputs(problem, schedule)) // consumers read O from global memory
      return int64_t(0);
    return tensor == "k" || tensor == "v" ? int64_t(schedule.getKvTile()) : schedule.getQTile();
  });
  ShortHopperBackwardKernel(backward,
                            arguments.makeKernel(program, b, backward.getLoc(), name, "sm_90a", grid, schedule), limit)
      .build();
}
