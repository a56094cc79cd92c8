// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward kernels with a warp or a CTA for each sequence. Sequences of a few rows are bound by memory: a warp has rows
// of one sequence, and each of its lane groups one head; no warp waits for another. With enough rows for tensor cores,
// a CTA has a tile of them (`cta_per_sequence`). The expected length determines the number of warps or CTAs for each
// sequence; they loop over the rows of longer ones.
//
#include "PerSequenceKernels.h"
#include "Schedules/Common/ForwardBody.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The lane groups of a warp, each of which computes one head or one group of packed heads.
static int64_t laneGroupsOf(ScheduleInterface schedule) {
  auto simt = dyn_cast<SimtRowsAttr>(schedule);
  return simt ? 32 / simt.getLanes() : 1;
}

int64_t attn::headLoopOf(ScheduleInterface schedule) {
  auto tiles = dyn_cast<CtaPerSequenceAttr>(schedule);
  return tiles ? tiles.getHeadLoop() : 1;
}

int64_t attn::kvHeadsOf(ProblemOp problem, ScheduleInterface schedule) {
  return std::max<int64_t>(1, schedule.getPackHeads() * problem.getKvHeads() / problem.getHeads());
}

KernelGrid attn::sequenceGrid(ProblemOp problem, ScheduleInterface schedule) {
  int64_t heads = problem.getHeads() / schedule.getPackHeads();
  // 256 suffice to fill a GPU, and warps without rows are not free.
  int64_t tiles =
      std::min<int64_t>(llvm::divideCeil(problem.expectedQueries().value_or(1), schedule.getQueries()), 256);
  KernelGrid grid;
  grid.packed = problem.getQLayout().isPacked();
  grid.heads = llvm::divideCeil(heads, laneGroupsOf(schedule) * headLoopOf(schedule));
  grid.tiles = Builder(problem.getContext()).getI64IntegerAttr(tiles);
  return grid;
}

namespace {

class PerSequenceForward : ForwardBody {
public:
  PerSequenceForward(ProblemOp problem, KernelOp kernel, ScheduleInterface schedule, std::optional<ShortLimit> limit)
      : ForwardBody(problem, kernel, schedule), limit(limit), groups(kernel.getHeads()), tiles(*kernel.getTiles()),
        kvHeads(kvHeadsOf(problem, schedule)), tensorCores(dyn_cast<CtaPerSequenceAttr>(schedule)) {}

  void build() {
    declareTiles();
    findUnit();
    // Padding is stored even without sequences.
    sequences = problem.getQLayout().isPacked() ? math.named(math.max(arg("batch"), 1), "sequences") : arg("batch");
    auto exists =
        scf::IfOp::create(b, loc, math.value(math.lt(batch, sequences))); // the last CTA may have excess warps
    b.setInsertionPoint(exists.thenBlock(), exists.thenBlock()->begin());
    lenQ = args.contains("seqlen_q") ? arg("seqlen_q") : Index(0);
    findKeys();
    findRows();
    Index end = extent;
    if (limit) // another kernel computes longer sequences
      end = math.named(math.select(limit->holds(math, lenQ, scope.lenK), extent, 0), "end");
    if (headLoopOf(schedule) == 1)
      return attendAll(end);
    if (problem.getQLayout().isPacked())
      findPadding();
    // Adjacent CTAs have adjacent heads.
    h = enterLoop("head", h, int64_t(problem.getHeads()), groups * schedule.getPackHeads());
    findKvHead();
    attendAll(end);
  }

private:
  /// Lanes that share a row.
  int64_t lanesOf() { return tensorCores ? 32 : cast<SimtRowsAttr>(schedule).getLanes(); }
  int64_t columnParts() { return tensorCores ? tensorCores.getColumnParts() : 0; }

  /// Attends all rows up to `end` and stores padding.
  void attendAll(Index end) {
    findArrays();
    keys = keyPointer("k"), values = keyPointer("v");
    Index step = tiles * schedule.getQueries();
    loop("q0", math.mul(tile, schedule.getQueries()), end, step, [&](Index first) {
      q0 = first;
      attend();
    });
    if (problem.getQLayout().isPacked())
      storePadding();
  }

  void declareTiles() {
    int64_t rows = schedule.getQTile(), keys = schedule.getKvTile(), warps = schedule.getWarps();
    MLIRContext *context = b.getContext();
    Type f32 = b.getF32Type(), dtype = problem.getDtype();
    if (tensorCores) {
      int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
      int64_t count = std::max<int64_t>(columnParts(), 1), fragment = tensorCores.getFragmentRows();
      Q = shared("Q", rows, colsQk);
      K = shared("K", keys, colsQk);
      V = shared("V", keys, colsV);
      s = alloc("s", FragType::get(context, fragment, keys, warps));
      acc = alloc("acc", FragType::get(context, fragment, colsV / count, warps));
      row = alloc("row", SoftmaxStateType::get(context, fragment, warps));
      return;
    }
    int64_t lanes = lanesOf();
    Q = alloc("Q", SimtTileType::get(context, rows, problem.getDimQk(), f32, lanes));
    K = alloc("K", SimtTileType::get(context, keys, problem.getDimQk(), dtype, lanes));
    V = alloc("V", SimtTileType::get(context, keys, problem.getDimV(), dtype, lanes));
    s = alloc("s", SimtScoresType::get(context, rows, keys, lanes));
    acc = alloc("acc", SimtTileType::get(context, rows, problem.getDimV(), f32, lanes));
    row = alloc("row", SimtSoftmaxStateType::get(context, rows, lanes));
  }

  /// Finds the sequence and heads of the warp or CTA. Units that read the same keys, or the same rows, are adjacent.
  void findUnit() {
    Index unit = !tensorCores ? Index(Value(IndexOp::create(b, loc, IndexKind::global_warp)))
                              : Index(Value(IndexOp::block(b, loc)));
    tile = tiles == 1 ? Index(0) : math.named(math.rem(unit, tiles), "tile");
    Index rest = math.floorDiv(unit, tiles);
    Index group = groups == 1 ? Index(0) : math.rem(rest, groups);
    batch = math.named(math.floorDiv(rest, groups), "b");
    Index head = group;
    if (int64_t laneGroups = laneGroupsOf(schedule); laneGroups > 1) {
      Value laneGroup = IndexOp::laneGroup(b, loc, lanesOf());
      head = math.add(math.mul(group, laneGroups), laneGroup);
      if (gridHeads() % laneGroups) { // lane groups without a head read the last one's rows and store nothing
        hasHead = math.lt(head, gridHeads());
        head = math.min(head, gridHeads() - 1);
      }
    }
    h = math.named(firstHead(head), "h");
  }

  /// Finds the sequence's first row and how many rows to store.
  void findRows() {
    extent = lenQ;
    LayoutAttr layout = problem.getQLayout();
    if (!layout.isPacked())
      return;
    first = math.named(load(startsOf(/*keys=*/false), batch), "first");
    firstQuery = first;
    if (layout.getPadded())
      extent = math.named(math.sub(load(args["padded_offsets_q"], math.min(math.add(batch, 1), arg("batch"))), first),
                          "extent");
  }

  void attend() {
    origin = perRow(math.value(q0), math.value(h), "at");
    dropoutState = findDropoutState(schedule.getPackHeads() != 1);
    Index queries = schedule.getQueries();
    Index rows = math.named(math.min(math.sub(lenQ, q0), queries), "rows");
    Index writeRows = extent == lenQ ? rows : math.named(math.min(math.sub(extent, q0), queries), "write_rows");
    Index row0 = math.named(math.add(first, q0), "row0");
    if (columnParts())
      return attendInColumnParts(row0, rows, writeRows);
    ClearOp::create(b, loc, acc);
    ClearOp::create(b, loc, row);
    if (extent == lenQ) {
      loopOverKeys(row0, rows);
    } else { // padding rows see no keys
      OpBuilder::InsertionGuard guard(b);
      auto sees = scf::IfOp::create(b, loc, math.value(math.lt(0, rows)));
      b.setInsertionPoint(sees.thenBlock(), sees.thenBlock()->begin());
      loopOverKeys(row0, rows);
    }
    findSink();
    addSink(acc, row);
    NormalizeOp::create(b, loc, acc, row);
    scaleKept(acc);
    Value computed = rowsToCompute(rows), written = rowsToCompute(writeRows);
    StoreOp::create(b, loc, rowPointer("o", row0, batch, h), strideOf("o"), acc, computed, written, problem.getDimV());
    if (problem.hasLse())
      StoreLseOp::create(b, loc, lsePointer(row0, batch, h), /*sum=*/Value(), lseStride(), row, computed, written);
  }

  //===------------------------------------------------------------------===//
  // Sequences expected to have one KV tile
  //===------------------------------------------------------------------===//

  /// Copies Q, K and V together. If all keys fit the tile and V is finite, a single softmax runs between the two
  /// products, without online state or guarded products. Otherwise loops over small KV tiles.
  void attendInColumnParts(Index row0, Index rows, Index writeRows) {
    Value keyRows = math.value(math.mul(scope.lenK, kvHeads));
    Value tokens[] = {
        copyOnce(Q, rowPointer("q", row0, batch, h), strideOf("q"), rowsToCompute(rows), problem.getDimQk()),
        copyOnce(K, keys, strideOfKeys("k"), keyRows, problem.getDimQk()),
        copyOnce(V, values, strideOfKeys("v"), keyRows, problem.getDimV())};
    Cond finite = Cond::of(WaitFiniteOp::create(b, loc, V, tokens).getFinite());
    if (problem.scaleOrDefault() < 0)
      ScaleOp::create(b, loc, Q, /*factor=*/llvm::APFloat(-1.0));
    ClearOp::create(b, loc, row);
    Cond some = math.logicalAnd(math.lt(0, rows), math.lt(0, scope.lenK));
    Cond fits = math.logicalAnd(math.logicalAnd(finite, math.le(scope.lenK, schedule.getKvTile() / kvHeads)), some);
    auto singlePass = scf::IfOp::create(b, loc, math.value(fits), /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(singlePass.thenBlock(), singlePass.thenBlock()->begin());
      attendSinglePass(row0, rows, writeRows);
      b.setInsertionPoint(singlePass.elseBlock(), singlePass.elseBlock()->begin());
      attendOnline(row0, rows, writeRows);
    }
    if (problem.hasLse())
      StoreLseOp::create(b, loc, lsePointer(row0, batch, h), /*sum=*/Value(), lseStride(), row, rowsToCompute(rows),
                         rowsToCompute(writeRows));
    BarrierOp::create(b, loc, /*warp=*/false); // shared memory is reused for the next rows
  }

  void attendSinglePass(Index row0, Index rows, Index writeRows) {
    KeyWalk walk(problem.getMask(), scope);
    Step step = {.walk = walk, .q = Q, .k = K, .scores = s, .row = row, .kvHeads = kvHeads};
    if (problem.getSinkAttr()) // before all keys, while there is nothing to rescale
      step.beforeSoftmax = [&] {
        ClearOp::create(b, loc, acc);
        findSink();
        addSink(acc, row);
      };
    emitScoresAndSoftmax(step);
    ReduceRowSumsOp::create(b, loc, row);
    dropProbabilities(step);
    auto scores = cast<FragType>(s.getType());
    Value P = alloc("P", RegisterOperandType::get(b.getContext(), scores.getRows(), scores.getCols(),
                                                  problem.getDtype(), scores.getWarps()));
    ConvertOp::create(b, loc, P, s);
    int64_t width = cast<FragType>(acc.getType()).getCols();
    for (int64_t column = 0; column < width * columnParts();
         column += width) { // unrolled: in a loop ptxas runs out of registers
      ClearOp::create(b, loc, acc);
      accumulateValues(acc, P, columnsOf(V, column), /*guarded=*/false);
      NormalizeOp::create(b, loc, acc, row, /*rows_recomputed=*/false, /*reduced=*/true);
      storeColumnPart(row0, rows, writeRows, column);
    }
  }

  void attendOnline(Index row0, Index rows, Index writeRows) {
    int64_t step = std::min<int64_t>(16, schedule.getKvTile());
    auto few = [&](Value tile) { return subtileOf(tile, step, cast<SharedType>(tile.getType()).getCols(), Value()); };
    auto all = std::tuple(K, V, s);
    K = few(K), V = few(V);
    FragType scores = cast<FragType>(s.getType());
    s = alloc("s", FragType::get(b.getContext(), scores.getRows(), step, scores.getWarps()));
    auto make = [&](Index column) {
      ClearOp::create(b, loc, acc);
      ClearOp::create(b, loc, row);
      onlyIf(math.lt(0, rows), [&] { loopOverTiles({q0, math.add(q0, rows)}, step, column); });
      findSink();
      addSink(acc, row);
      NormalizeOp::create(b, loc, acc, row);
      storeColumnPart(row0, rows, writeRows, column);
    };
    int64_t width = cast<FragType>(acc.getType()).getCols();
    columnParts() == 1 ? make(0) : loop("column", 0, width * columnParts(), width, make);
    std::tie(K, V, s) = all;
  }

  Value columnsOf(Value tile, Index first) {
    SharedType type = cast<SharedType>(tile.getType());
    int64_t width = cast<FragType>(acc.getType()).getCols();
    if (width == type.getCols())
      return tile;
    return subtileOf(tile, type.getRows(), width, math.value(first));
  }
  void storeColumnPart(Index row0, Index rows, Index writeRows, Index column) {
    scaleKept(acc);
    Value to = rowPointer("o", row0, batch, h);
    if (!column.is(0))
      to = AdvanceOp::create(b, loc, to, wide(column));
    StoreOp::create(b, loc, to, strideOf("o"), acc, rowsToCompute(rows), rowsToCompute(writeRows),
                    int64_t(problem.getDimV()) / columnParts());
  }

  //===------------------------------------------------------------------===//
  // The KV loop
  //===------------------------------------------------------------------===//

  /// The number of tile rows for `queries` queries; 0 in a lane group without a head.
  Value rowsToCompute(Index queries) {
    Index rows = math.mul(queries, schedule.getPackHeads());
    return math.value(hasHead ? math.select(*hasHead, rows, 0) : rows);
  }
  Value strideOfKeys(StringRef tensor) {
    return pairs(kvHeads, args[(tensor + "_row").str()], args[(tensor + "_head").str()]);
  }
  Value lseStride() { return perRow(wide(int64_t(1)), args["lse_head"]); }

  void loopOverKeys(Index row0, Index rows) {
    if (Value copied =
            loadTile(Q, rowPointer("q", row0, batch, h), strideOf("q"), rowsToCompute(rows), problem.getDimQk())) {
      WaitOp::create(b, loc, copied);
      if (problem.scaleOrDefault() < 0)
        ScaleOp::create(b, loc, Q, /*factor=*/llvm::APFloat(-1.0));
    }
    loopOverTiles({q0, math.add(q0, rows)}, schedule.getKvTile(), 0);
  }

  /// Loops over KV tiles of `columns` keys of all kv heads, for the results' columns from `firstColumn` on.
  void loopOverTiles(Interval queries, int64_t columns, Index firstColumn) {
    KeyWalk walk(problem.getMask(), scope);
    int64_t keysOfTile = columns / kvHeads;
    SmallVector<KeyRun> runs = walk.runs(math, queries, keysOfTile);
    if (kvHeads > 1) // packed kv heads never see a whole tile
      for (KeyRun &run : runs)
        for (SmallVector<int64_t> &tests : run.tests)
          tests = walk.numbers();
    if (columnParts()) // one segment: registers are few, and this code hardly ever runs
      for (KeyRun &run : runs)
        run.bounds = {run.bounds.front(), run.bounds.back()}, run.tests = {walk.numbers()};
    KvLoopOp loop = createLoop(runs);
    if (!loop)
      return;
    loop.setOneBody(columnParts() && runs.size() > 1);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&loop.getBody().front());
    Index k0 = math.named(math.mul(Index(loop.getTile()), keysOfTile), "k0");
    Value left = math.value(math.mul(math.sub(scope.lenK, k0), kvHeads));
    auto loadFromTile = [&](Value place, StringRef tensor, Value base, int64_t dim) {
      Value from = AdvanceOp::create(b, loc, base, mul(wide(k0), args[(tensor + "_row").str()]));
      return loadTile(place, from, strideOfKeys(tensor), left, dim);
    };
    Value copied = loadFromTile(K, "k", keys, problem.getDimQk());
    if (copied)
      WaitOp::create(b, loc, copied);
    else
      loadFromTile(V, "v", values, problem.getDimV()); // K and V are both in flight before any computation
    Step step = {.walk = walk, .q = Q, .k = K, .scores = s, .row = row, .acc = acc, .k0 = k0, .kvHeads = kvHeads};
    step.negated = !tensorCores && problem.scaleOrDefault() < 0;
    step.loop = loop;
    emitScoresAndSoftmax(step);
    dropProbabilities(step);
    if (copied)
      WaitOp::create(b, loc, loadFromTile(V, "v", values, problem.getDimV()));
    accumulateValues(acc, s, tensorCores ? columnsOf(V, firstColumn) : V, /*guarded=*/true);
    YieldOp::create(b, loc, ValueRange());
  }

  /// Loads rows; returns the token if they are copied to shared memory, null if to registers.
  Value loadTile(Value place, Value from, Value stride, Value rows, int64_t dim) {
    if (tensorCores)
      return CopyAsyncOp::create(b, loc, place, from, stride, rows, dim, Value());
    LoadRowsOp::create(b, loc, place, from, stride, rows, /*dim=*/IntegerAttr());
    return {};
  }

  /// Loads the first row of the first sequence and the end of the last.
  void findPadding() {
    bool padded = problem.getQLayout().getPadded();
    Value offsets = args[padded ? "padded_offsets_q" : "cu_seqlens_q"];
    if (padded)
      beginAll = math.named(load(offsets, 0), "begin_all");
    endAll = math.named(load(offsets, arg("batch")), "end_all");
  }

  /// Stores padding rows before the first and after the last sequence, distributed over all warps of these heads.
  void storePadding() {
    if (!endAll)
      findPadding();
    int64_t warps = tensorCores ? schedule.getWarps() : 1, lanes = lanesOf();
    Index own = math.add(math.mul(batch, tiles), tile), step = math.mul(sequences, tiles * warps);
    if (warps > 1) // of this CTA
      own = math.add(math.mul(own, warps), rem(Value(IndexOp::create(b, loc, IndexKind::global_warp)), warps));
    auto pad = [&](Index begin, Index end) {
      Value from = math.value(math.add(begin, own)), to = math.value(end), by = math.value(step);
      StorePaddingOp::create(b, loc, rowPointer("o", 0, batch, h), strideOf("o"), from, to, by, problem.getDimV(),
                             lanes);
      if (problem.hasLse())
        StorePaddingOp::create(b, loc, lsePointer(0, batch, h), lseStride(), from, to, by, 1, lanes);
    };
    if (beginAll)
      pad(0, *beginAll);
    pad(*endAll, arg("total_q"));
  }

  std::optional<ShortLimit> limit; ///< if set, the kernel computes short sequences only
  int64_t groups;                  ///< groups of heads, one for each warp or CTA
  int64_t tiles;                   ///< warps or CTAs that share the rows of a sequence
  int64_t kvHeads;                 ///< packed into a tile
  CtaPerSequenceAttr tensorCores;  ///< null for SIMT rows
  Value Q, K, V, acc, row;
  Value keys, values;          ///< K and V of the sequence's first key
  std::optional<Cond> hasHead; ///< does the lane group have a head?
  Index sequences = 0;         ///< sequences with warps or CTAs
  Index tile = 0;              ///< index of the warp or CTA among those of its sequence and heads
  Index first = 0;             ///< the sequence's first row in its tensor
  Index extent = 0;            ///< its rows with the padding after them
  Index q0 = 0;                ///< the first row of this iteration
  /// The begin (with padded offsets only) and the end of all sequences' rows, once loaded.
  std::optional<Index> beginAll, endAll;
};

} // namespace

void attn::writePerSequenceForward(ProblemOp problem, KernelOp kernel, ScheduleInterface schedule,
                                   std::optional<ShortLimit> limit) {
  PerSequenceForward(problem, kernel, schedule, limit).build();
}
