// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of sequences whose rows and keys are one tile each, on Hopper: a block has a sequence's and a head's, looks at all pairs in one go and makes all
// three results of them. Nothing is added up in memory, delta is a sum over a row in registers, and no kernel is ahead of this one or behind it
// (docs/Schedules/streaming.md, 9). Longer sequences have the kernels on tiles (SizeClasses.h).
//
#include "StreamingKernel.h"
#include "StreamingUnit.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class LookBackward : StreamingUnit {
public:
  LookBackward(BackwardOp backward, KernelOp kernel, ShortLimit limit) : StreamingUnit(backward.getProblemOp(), kernel, limit) {}

  void build() {
    declarePlaces();
    findUnit();
    scope.head = h;
    findArrays();
    Index writtenQ = findWritten(/*ofKeys=*/false), writtenKv = findWritten(/*ofKeys=*/true);
    onlyIf(computes(), [&] { compute(writtenQ, writtenKv); });
  }

private:
  /// Of fragments: those of the last warps may be nobody's.
  int64_t rowsOfAll() { return 16 * config.getWarps(); }
  int64_t keys() { return config.getKvTile() * config.getLook(); }

  void declarePlaces() {
    MLIRContext *context = b.getContext();
    int64_t rows = config.getQTile(), colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    Q = shared("Q", rows, colsQk, /*isBox=*/true), dO = shared("dO", rows, colsV, /*isBox=*/true);
    K = shared("K", keys(), colsQk, /*isBox=*/true), V = shared("V", keys(), colsV, /*isBox=*/true);
    for (Value place : {K, V, dO})
      place.getDefiningOp<PlaceOp>().setSlots(config.getStages());
    auto tile = SharedType::get(context, rows, rowsOfAll(), problem.getDtype(), SharedType::swizzled); // a warpgroup has 64 keys of its transpose
    turned = place("turned", RingType::get(context, 2, tile));
  }
  /// In registers, declared where they are needed.
  Value frag(const char *name, int64_t cols) {
    return place(name, FragType::get(b.getContext(), rowsOfAll(), cols, config.getWarps()));
  }

  /// Are there rows and keys? Without either all results are 0, and a tensor without rows has none to bring.
  Cond computes() { return math.logicalAnd(*isShort, math.logicalAnd(math.lt(0, lenQ), math.lt(0, scope.lenK))); }

  /// Of a side, how many rows of the sequence's this block writes with what it computes: those that are there, and padding behind them. Zeros beyond the tile, of
  /// rows or keys without the other, before the first sequence and behind the last are written here.
  Index findWritten(bool ofKeys) {
    int64_t rows = ofKeys ? keys() : config.getQTile(), step = config.getQTile(); // of `tile.store_padding`, on both sides
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
    auto share = [&](StringRef name, Index begin, Index end) { sharePadding(name, begin, end, /*tiles=*/1, /*number=*/0, step, pad); };
    Index extent = length;
    if (std::optional<Ends> ends = findEnds(ofKeys)) {
      share("behind_all", ends->endAll, extentOf(ofKeys));
      if (layoutOf(ofKeys).getPadded()) {
        share("before", 0, ends->beginAll);
        extent = math.sub(ends->behind, own);
      }
    }
    extent = math.named(math.select(*isShort, extent, 0), ofKeys ? "extent_kv" : "extent_q"); // longer ones are other kernels'
    loop("i", math.select(computes(), rows, 0), extent, step, [&](Index i) { pad(math.add(own, i), math.min(math.sub(extent, i), step)); });
    return math.min(extent, rows);
  }

  void compute(Index writtenQ, Index writtenKv) {
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };
    Value s = frag("s", keys()), dp = frag("dp", keys());
    // In the order in which their slots get free.
    Value copiedQ = copyBox(Q, "q", firstQuery, h, lenQ), copiedV = copyBox(V, "v", firstKey, kvHead, scope.lenK);
    Value copiedDo = copyBox(dO, "do", firstQuery, h, lenQ), copiedK = copyBox(K, "k", firstKey, kvHead, scope.lenK);
    // Ahead of the products: beside one, ptxas has no registers for it and a test.
    Value gradLse = args.contains("dlse") ? statisticPointer("dlse", firstQuery, batch, h) : Value();
    Value stats = place("stats", RowsType::get(b.getContext(), rowsOfAll(), config.getWarps()));
    LoadStatisticsOp::create(b, loc, stats, statisticPointer("lse", firstQuery, batch, h), /*stride=*/Value(), gradLse, /*grad_stride=*/Value(),
                             /*delta=*/Value(), math.value(lenQ));
    wait(copiedQ);
    wait(copiedK);
    Value scores = MmaQkOp::create(b, loc, s, Q, K, /*negated=*/problem.scaleOrDefault() < 0, /*late=*/false).getToken();
    Value grads;
    auto beginGrads = [&] {
      wait(copiedDo);
      wait(copiedV);
      grads = MmaQkOp::create(b, loc, dp, dO, V, /*negated=*/false, /*late=*/false).getToken();
    };
    if (!dropout) // to draw random numbers takes the registers that gradients have
      beginGrads();
    wait(scores);
    KeyWalk walk(problem.getMask(), scope);
    auto test = [&] {
      auto keep = KeepOp::create(b, loc, s, math.value(0), math.value(0), /*turned=*/false);
      buildTests(walk, keep.getBody());
    };
    if (walk.hidesKeys()) // else what is behind the last
      test();
    else
      onlyIf(math.lt(scope.lenK, keys()), test);
    ProbabilitiesOp::create(b, loc, s, stats, math.value(0), math.value(0), /*weighted=*/Value(), b.getF64FloatAttr(scaleOfProducts()), /*turned=*/UnitAttr(),
                            /*within=*/FloatAttr(), /*slopes=*/DenseF64ArrayAttr());
    drop(s, math.value(0), math.value(0), findDraws(), /*scaled=*/false, /*turned=*/false, /*marks=*/true);
    if (dropout)
      beginGrads();
    wait(grads);
    RowGradsOp::create(b, loc, dp, s, stats, /*weighted=*/Value(), dropout ? b.getF64FloatAttr(dropout->factor()) : FloatAttr());

    // Each sum beside the stores of the one before.
    Value weights = place("weights", HeldType::get(b.getContext(), rowsOfAll(), keys(), problem.getDtype(), config.getWarps()));
    RoundOp::create(b, loc, weights, s, /*at_once=*/true);
    Value probabilities = ShareOp::create(b, loc, turned, weights).getTile();
    RoundOp::create(b, loc, weights, dp, /*at_once=*/true);
    Value dV = frag("dV", sumColumns(problem.getDimV()));
    Value sumV = MmaTnOp::create(b, loc, dV, probabilities, dO).getToken();
    wait(sumV); // all are done with what was shared, before the next is
    Value gradScores = ShareOp::create(b, loc, turned, weights).getTile();
    Value dQ = frag("dQ", llvm::alignTo(problem.getDimQk(), 16));
    ClearOp::create(b, loc, dQ);
    Value sumQ = MmaPvOp::create(b, loc, dQ, weights, K, /*guarded=*/false, Value()).getToken();
    scaleKept(dV);
    storeSum("dv", dV, firstKey, kvHead, scope.lenK, writtenKv, problem.getDimV());
    wait(sumQ);
    Value dK = frag("dK", sumColumns(problem.getDimQk()));
    Value sumK = MmaTnOp::create(b, loc, dK, gradScores, Q).getToken();
    ScaleOp::create(b, loc, dQ, b.getF64FloatAttr(problem.scaleOrDefault()));
    storeSum("dq", dQ, firstQuery, h, lenQ, writtenQ, problem.getDimQk());
    wait(sumK);
    ScaleOp::create(b, loc, dK, b.getF64FloatAttr(problem.scaleOrDefault()));
    storeSum("dk", dK, firstKey, kvHead, scope.lenK, writtenKv, problem.getDimQk());
  }

  void storeSum(StringRef tensor, Value acc, Index row, Index head, Index rows, Index written, int64_t dim) {
    StoreOp::create(b, loc, rowPointer(tensor, row, batch, head), stride(tensor), acc, math.value(rows), math.value(written), dim);
  }

  Value Q, K, V, dO;
  Value turned; ///< what rows made of keys, for products with its transpose
};

} // namespace

void attn::writeLookBackward(BackwardOp backward, StringRef name, ConfigAttr config, ShortLimit limit) {
  ProblemOp problem = backward.getProblemOp();
  OpBuilder b(backward);
  SmallVector<StringRef> tensors = {"q", "k", "v", "lse", "do", "dq", "dk", "dv"};
  if (backward.getDlse())
    tensors.push_back("dlse");
  KernelGrid grid = {problem.getQLayout().isPacked(), int64_t(problem.getHeads())};
  grid.tiles = b.getI64IntegerAttr(1);
  auto arguments = KernelArguments::ofBackward(backward, tensors, /*boxes=*/true, [&](StringRef tensor) {
    return tensor == "k" || tensor == "v" ? config.getKvTile() * config.getLook() : config.getQTile();
  });
  LookBackward(backward, arguments.makeKernel(b, backward.getLoc(), name, "sm_90a", grid, config), limit).build();
}
