// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel is written here once, plainly: who am I, load Q, walk over the key
// tiles, write O and LSE. Everything that depends on the mask comes from KeyWalk;
// everything clever is a later pass.
//
#include "ForwardKernel.h"
#include "Schedules/Common/ForwardBody.h"
#include "Schedules/Common/Workspace.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Builds the body of one kernel.
class ForwardKernel : ForwardBody {
public:
  ForwardKernel(ProblemOp problem, KernelOp kernel, ScheduleInterface schedule)
      : ForwardBody(problem, kernel, schedule), boxes(kernel.isPersistent()),
        lists(kernel.getArg(tileLists(false).list)), ofLong(kernel.getLonger().has_value()),
        isSplit(isa<SplitKvAttr>(schedule)), singlePass(dyn_cast<SinglePassAttr>(schedule)), tiles(kernel.getTiles()) {}

  void build() {
    declarePlaces();
    if (!problem.getQLayout().isPacked()) {
      findDenseTile();
      findKeys();
      return attend();
    }
    if (tiles)
      return attendSequence();
    findPackedTile();
    findKeys();
    writeApart(rows, [&] { storePadding(); }, [&] { attend(); });
  }

private:
  //===------------------------------------------------------------------===//
  // Who am I
  //===------------------------------------------------------------------===//

  void declarePlaces() {
    Type dtype = problem.getDtype();
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    auto frag = [&](const char *name, int64_t cols) {
      return place(name, FragType::get(b.getContext(), schedule.getQTile(), cols, schedule.getWarps()));
    };
    Q = shared("Q", schedule.getQTile(), colsQk, boxes);
    K = shared("K", keysAtOnce(), colsQk, boxes);
    V = shared("V", keysAtOnce(), colsV, boxes);
    s = frag("s", schedule.getKvTile());
    acc = frag("acc", colsV);
    if (auto tiled = dyn_cast<TiledAttr>(unsplit()); tiled && tiled.getQInRegisters())
      held = place("q_operand",
                   RegisterOperandType::get(b.getContext(), schedule.getQTile(), colsQk, dtype, schedule.getWarps()));
    if (int64_t keys = keysAtOnce(); singlePass) {
      allScores = frag("all_scores", keys);
      probabilities =
          place("P", RegisterOperandType::get(b.getContext(), schedule.getQTile(), keys, dtype, schedule.getWarps()));
    }
    row = place("row", SoftmaxStateType::get(b.getContext(), schedule.getQTile(), schedule.getWarps()));
  }

  /// The number of this block's query tile in the grid, of which `tiles` are needed, if
  /// given. The parts of its keys, if it has some, go to blocks that follow each other.
  Index findTile(std::optional<Index> tiles = std::nullopt) {
    if (tiles && !isSplit)
      return listedBlock(*tiles);
    Value below;
    if (tiles)
      below = mul(math.value(*tiles), args["splits"]);
    Index block = Value(IndexOp::block(b, loc, below));
    if (!isSplit)
      return block;
    split = math.named(rem(block, arg("splits")), "split");
    return math.named(div(block, arg("splits")), "query_tile");
  }

  void findDenseTile() {
    Index block = findTile();
    Index seqlen = arg("seqlen_q");
    Index tiles = math.named(math.ceilDiv(seqlen, schedule.getQueries()), "tiles");
    int64_t heads = gridHeads();
    Deal dealt = deal(block, tiles, heads, problem.getQLayout(), growsWithRows() ? Order::LastIsLongest : Order::Alike);
    tile = dealt.tile;
    Index head = math.named(dealt.head, "sequence_head");
    h = math.named(firstHead(rem(head, heads)), "h");
    batch = math.named(div(head, heads), "b");
    q0 = math.named(math.mul(tile, schedule.getQueries()), "q0");
    rows = writeRows = math.named(math.min(math.sub(seqlen, q0), schedule.getQueries()), "rows");
    lenQ = seqlen;
    first = q0;
  }

  void findPackedTile() {
    std::optional<Index> listed = listedWorkTiles(arg("total_q"), schedule.getQueries());
    Index block = findTile(listed ? std::optional(math.mul(*listed, gridHeads())) : std::nullopt);
    Index slots = listed ? *listed : math.named(this->slots(schedule.getQueries()), "work_tiles"), &slot = tile;
    // `metadata.list_query_tiles` or the caller sorts tiles by cost, `metadata.list_work_tiles` does not.
    bool sorted = listed && !ofLong;
    Order order = !growsWithRows() ? Order::Alike : sorted ? Order::FirstIsLongest : Order::LastIsLongest;
    Deal dealt = deal(block, slots, gridHeads(), problem.getQLayout(), order);
    h = math.named(firstHead(dealt.head), "h");
    slot = dealt.tile;
    if (listed)
      slot = listedWorkTile(slot);
    Value offsets = startsOf(/*keys=*/false);
    auto find = FindSequenceOp::create(b, loc, math.value(slot), args["cu_seqlens_q"], offsets, args["batch"],
                                       args["total_q"], schedule.getQueries());
    batch = find.getB();
    q0 = find.getQ0();
    rows = find.getRows();
    writeRows = find.getWriteRows();
    firstQuery = find.getFirst();
    first = math.named(math.add(firstQuery, q0), "row0");
  }

  /// This block's tiles of the sequence that its number says: one, if that has no more rows than its bounds said.
  void attendSequence() {
    Index block = Value(IndexOp::block(b, loc)), number = *tiles == 1 ? Index(0) : rem(block, *tiles),
          group = div(block, *tiles);
    h = math.named(firstHead(rem(group, gridHeads())), "h");
    batch = math.named(div(group, gridHeads()), "b");
    bool padded = problem.getQLayout().getPadded();
    Value starts = startsOf(/*keys=*/false);
    firstQuery = math.named(load(starts, batch), "first");
    Index behind =
        padded ? math.named(load(starts, math.min(math.add(batch, 1), arg("batch"))), "next_first") : Index(0);
    findKeys();

    auto pad = [&](StringRef left, Index begin, Index end) {
      sharePadding(left, begin, end, *tiles, number, schedule.getQueries(), [&](Index row, Index count) {
        first = row, writeRows = count;
        storePadding();
      });
    };
    if (padded)
      pad("before", 0, load(starts, 0));
    pad("padding_end", load(starts, arg("batch")), arg("total_q"));

    Index extent = padded ? math.sub(behind, firstQuery) : lenQ;
    auto turns = [&](Keys keys) {
      q0 = enterLoop("q0", math.mul(number, schedule.getQueries()), extent, *tiles * schedule.getQueries());
      if (!boxes)
        BarrierOp::create(b, loc, /*warp=*/false); // places were another tile's
      first = math.named(math.add(firstQuery, q0), "row0");
      writeRows = math.named(math.min(math.sub(extent, q0), schedule.getQueries()), "write_rows");
      rows = padded ? math.named(math.clamp(math.sub(lenQ, q0), 0, schedule.getQueries()), "rows") : writeRows;
      if (padded)
        writeApart(rows, [&] { storePadding(); }, [&] { attend(keys); });
      else
        attend(keys);
    };
    if (!singlePass)
      return turns(Keys::Walked);
    if (!sharesSinglePass())
      return turns(Keys::Either);
    ifSinglePass(
        [&] {
          loadAllTiles(K, "k"); // values come again for each tile: they would be waited for ahead of the first queries
          turns(Keys::Held);
        },
        [&] { turns(Keys::Walked); });
  }

  //===------------------------------------------------------------------===//
  // The computation
  //===------------------------------------------------------------------===//

  /// How a tile comes to its keys: tile by tile; in one go, those being there already; or, by how many there are,
  /// either.
  enum class Keys { Walked, Held, Either };

  void attend(Keys come = Keys::Walked) {
    firstOfTile = q0;
    findArrays();
    KeyWalk walk(problem.getMask(), scope);

    // Before the loops: behind them, the compiler would write what follows a loop once for each.
    origin = perRow(math.value(q0), math.value(h), "at");
    draws = findDropoutState(schedule.getPackHeads() != 1);
    Value queryRows, queryStride, keys, values;
    auto findRows = [&] {
      queryRows = rowPointer("q", first, batch, h);
      queryStride = strideOf("q");
      keys = keyPointer("k");
      values = keyPointer("v");
    };
    // Scores that are products alone are hardly ever large. (A scale above 1 takes finite products to infinity, where a
    // row seems to have no key. Twelve warps have no registers for a repair that nothing else asks for: 0.92 of the
    // speed at d 64.)
    repairsLarge = boxes && come == Keys::Walked && problem.getModifiers().empty() &&
                   scaleOfProducts() * std::log2(std::exp(1.0)) <= 1 && (walk.hidesKeys() || schedule.getWarps() <= 8);
    bool repairs = boxes && (walk.hidesKeys() || repairsLarge);
    if (!boxes || walk.hidesKeys())
      findRows();
    Value rowsInTile = rowsOf(rows);
    Value copied =
        boxes ? copyBox(Q, "q", first, h, rows)
              : CopyAsyncOp::create(b, loc, Q, queryRows, queryStride, rowsInTile, problem.getDimQk(), Value());
    ClearOp::create(b, loc, acc);
    ClearOp::create(b, loc, row);
    WaitOp::create(b, loc, copied);
    if (problem.scaleOrDefault() < 0 && !boxes)
      ScaleOp::create(b, loc, Q, /*factor=*/llvm::APFloat(-1.0));
    if (held)
      LoadOperandOp::create(b, loc, held, Q);

    Interval queries = {q0, math.add(q0, rows)};
    std::optional<ListedWalk> listed;
    if (lists)
      listed = listedWalk(walk, /*ofKeys=*/false, tile, schedule.getQueries());
    SmallVector<KeyRun> runs = listed ? listed->runs : walk.runs(math, queries, schedule.getKvTile());
    Interval visited = {0, scope.lenK};
    if (isSplit) {
      takeShare(runs);
      visited = hullOf(math, runs);
      visited = {math.mul(visited.lo, schedule.getKvTile()),
                 math.min(math.mul(visited.hi, schedule.getKvTile()), scope.lenK)};
    }
    switch (come) {
    case Keys::Walked:
      buildLoop(walk, runs, listed, keys, values);
      break;
    case Keys::Held:
      lookAtAll(walk, /*there=*/true);
      break;
    case Keys::Either:
      ifSinglePass([&] { lookAtAll(walk, /*there=*/false); }, [&] { buildLoop(walk, runs, listed, keys, values); });
    }

    // Of a share of the keys, the first one's.
    findSink(isSplit ? std::optional(math.eq(split, 0)) : std::nullopt);
    addSink(acc, row);
    NormalizeOp::create(b, loc, acc, row, /*repaired=*/repairsLarge);
    scaleKept(acc);
    auto [dst, dstStride, lse, lseStride, sum] = results();
    // What padding gets in the end follows from its lse.
    Index written = isSplit ? rows : writeRows;
    StoreOp::create(b, loc, dst, dstStride, acc, rowsInTile, rowsOf(written), problem.getDimV());
    if (lse)
      StoreLseOp::create(b, loc, lse, sum, lseStride, row, rowsInTile, rowsOf(writeRows));
    if (repairs) {
      // To ask a list about each key would take long, but tiles that are visited are few. (Else registers are worth
      // more.)
      bool along = listed && hasListsOfMaps();
      if (!queryRows) // one loop, whose registers they would take
        findRows();
      Value firstKey = isSplit ? math.value(visited.lo) : Value();
      auto repair = RecomputeRowsOp::create(
          b, loc, acc, origin, rowsInTile, firstKey, math.value(visited.hi), queryRows, queryStride, keys,
          args["k_row"], values, args["v_row"], dst, dstStride, lse, lseStride, sum, draws,
          along ? math.value(listed->runs.front().bounds.back()) : Value(), problem.getDimQkAttr(),
          problem.getDimVAttr(), b.getF64FloatAttr(std::copysign(scaleOfProducts(), problem.scaleOrDefault())),
          dropout ? b.getI64IntegerAttr(dropout->below) : IntegerAttr(),
          dropout ? b.getF64FloatAttr(dropout->factor()) : FloatAttr(),
          along ? b.getI64IntegerAttr(schedule.getKvTile()) : IntegerAttr());
      buildTests(walk, repair.getBody());
      if (along) {
        OpBuilder::InsertionGuard guard(b);
        Block &block = repair.getAlong().emplaceBlock();
        b.setInsertionPointToStart(&block);
        YieldOp::create(b, loc, math.value(listed->tileAt(Index(block.addArgument(b.getI32Type(), loc)))));
      }
      if (auto modifiers = problem.getModifiers(); !modifiers.empty()) {
        OpBuilder before(repair);
        repair.setScale(
            APFloat(writeScore(repair.getModify(), before, scaleOfProducts(), [&](ScoreScope &scope, Score score) {
              if (problem.scaleOrDefault() < 0)
                score.value = scope.each.neg(score.value);
              score.value = productOf(scope.each, score.value);
              for (ScoreModifierInterface modifier : modifiers)
                score = settled(scope.each, modifier.emitScore(scope, score));
              return score;
            })));
      }
      if (problem.getSinkAttr())
        writeSink(repair.getSink());
    }
  }

  /// Leaves this block's part of the key tiles: equal ones, but for one tile.
  void takeShare(MutableArrayRef<KeyRun> runs) {
    Index count = countTiles(math, runs), splits = arg("splits");
    Index share = div(count, splits), longer = rem(count, splits);
    auto firstOf = [&](Index part) {
      Index equal = times(part, share);
      return math.add(equal, math.min(part, longer));
    };
    cutTiles(math, runs, firstOf(split), firstOf(math.add(split, 1)));
  }

  /// Where this block's rows of the results lie: in the problem's tensors, or in those of the parts.
  struct Results {
    Value o, stride, lse, lseStride; ///< `lseStride`: null where rows follow each other
    Value sum = {};                  ///< of the parts: `lse` is their maximum
  };
  Results results() {
    bool packs = schedule.getPackHeads() != 1;
    if (isSplit) {
      int64_t dim = problem.getDimV();
      Value o = partialPointer("partial_o", dim, split, first, batch, h), head = wide(rowsInAll());
      return {o, perRow(wide(dim), mul(head, wide(dim))), partialPointer("partial_max", 1, split, first, batch, h),
              packs ? perRow(wide(int64_t(1)), head) : Value(),
              partialPointer("partial_sum", 1, split, first, batch, h)};
    }
    Value o = rowPointer("o", first, batch, h);
    if (!problem.hasLse())
      return {o, strideOf("o"), Value(), Value()};
    return {o, strideOf("o"), lsePointer(first, batch, h),
            packs ? perRow(wide(int64_t(1)), args["lse_head"]) : Value()};
  }

  /// Near its row's last key, scores are the largest: the walk begins there.
  bool walksBackward() {
    return !lists && llvm::any_of(problem.getModifiers(), [&](ScoreModifierInterface modifier) {
      std::optional<Diagonal> peak = modifier.peak();
      return peak && reachOf(problem.getMask(), *peak).value_or(1) <= 0;
    });
  }

  /// The same walk from its end: tile j is number -1 - j.
  static SmallVector<KeyRun> reversed(IndexMath &math, ArrayRef<KeyRun> runs) {
    SmallVector<KeyRun> result;
    for (const KeyRun &run : llvm::reverse(runs)) {
      KeyRun &back = result.emplace_back();
      for (Index bound : llvm::reverse(run.bounds))
        back.bounds.push_back(math.sub(0, bound));
      back.tests.assign(run.tests.rbegin(), run.tests.rend());
    }
    return result;
  }

  void buildLoop(KeyWalk &walk, ArrayRef<KeyRun> forward, const std::optional<ListedWalk> &listed, Value keys,
                 Value values) {
    bool backward = walksBackward();
    SmallVector<KeyRun> runs = backward ? reversed(math, forward) : SmallVector<KeyRun>(forward);
    KvLoopOp loop = createLoop(runs);
    if (!loop)
      return; // no row sees any key
    Block &body = loop.getBody().front();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&body);

    Index keyTile = Index(body.getArgument(0));
    if (backward)
      keyTile = math.sub(-1, keyTile);
    if (listed)
      keyTile = listed->tileAt(keyTile);
    Index k0 = math.named(math.mul(keyTile, schedule.getKvTile()), "k0");
    auto copy = [&](Value place, StringRef tensor, Value base, int64_t dim) -> Value {
      Index left = math.sub(scope.lenK, k0);
      if (boxes)
        return copyBox(place, tensor, math.add(firstKey, k0), kvHead, left,
                       singlePass ? std::optional<int64_t>(1) : std::nullopt);
      Value stride = args[(tensor + "_row").str()];
      Value src = AdvanceOp::create(b, loc, base, mul(wide(k0), stride));
      return CopyAsyncOp::create(b, loc, place, src, stride, math.value(left), dim, Value());
    };
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };

    wait(copy(K, "k", keys, problem.getDimQk()));
    bool negated = boxes && problem.scaleOrDefault() < 0;
    wait(MmaAbtOp::create(b, loc, s, held ? held : Q, K, negated, /*recomputed=*/false).getToken());
    double scale = modifyScores(loop, k0);
    auto keep = ApplyMaskOp::create(b, loc, s, origin, math.value(k0));
    bool rising = !backward &&
                  llvm::any_of(problem.getModifiers(), [](ScoreModifierInterface modifier) { return modifier.peak(); });
    OnlineSoftmaxOp::create(b, loc, s, row, acc, b.getF64FloatAttr(scale), rising ? b.getUnitAttr() : UnitAttr(),
                            repairsLarge ? b.getUnitAttr() : UnitAttr());
    drop(s, origin, math.value(k0), draws, /*scaled=*/false);
    wait(copy(V, "v", values, problem.getDimV()));
    wait(MmaAbOp::create(b, loc, acc, s, V, /*guarded=*/!boxes, Value()).getToken());
    YieldOp::create(b, loc, ValueRange());
    buildTests(walk, keep.getBody());
  }

  int64_t keysAtOnce() { return schedule.getKvTile() * (singlePass ? int64_t(singlePass.getKvTiles()) : 1); }
  ScheduleInterface unsplit() { return isSplit ? cast<SplitKvAttr>(schedule).getOf() : schedule; }
  /// Do several tiles of a sequence's rows look at the same keys?
  bool sharesSinglePass() { return int64_t(*problem.getMaxSeqlenQ()) > schedule.getQueries() * *tiles; }

  /// Has the sequence more than one tile of keys, and no more than `look`?
  void ifSinglePass(function_ref<void()> look, function_ref<void()> walk) {
    Cond fits = math.logicalAnd(math.lt(schedule.getKvTile(), scope.lenK), math.le(scope.lenK, keysAtOnce()));
    auto branch = scf::IfOp::create(b, loc, math.value(fits), /*withElseRegion=*/true);
    for (auto [block, write] : {std::pair(branch.thenBlock(), look), std::pair(branch.elseBlock(), walk)}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(block);
      write();
    }
  }

  void loadAllTiles(Value place, StringRef tensor) {
    WaitOp::create(b, loc, copyBox(place, tensor, firstKey, kvHead, scope.lenK, singlePass.getKvTiles()));
  }

  /// All keys of such a sequence: their scores, then the softmax, then results. `there`: K is.
  void lookAtAll(KeyWalk &walk, bool there) {
    int64_t keys = keysAtOnce();
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };
    if (!there)
      loadAllTiles(K, "k");
    wait(MmaAbtOp::create(b, loc, allScores, held ? held : Q, K, /*negated=*/problem.scaleOrDefault() < 0,
                          /*recomputed=*/false)
             .getToken());
    auto test = [&] {
      auto keep = ApplyMaskOp::create(b, loc, allScores, origin, math.value(0));
      buildTests(walk, keep.getBody());
    };
    if (walk.hidesKeys()) // else what is behind the last
      test();
    else
      onlyIf(math.lt(scope.lenK, keys), test);
    OnlineSoftmaxOp::create(b, loc, allScores, row, b.getF64FloatAttr(scaleOfProducts()), /*repaired=*/UnitAttr());
    ConvertOp::create(b, loc, probabilities, allScores);
    ClearOp::create(b, loc, acc);
    loadAllTiles(V, "v");
    wait(MmaAbOp::create(b, loc, acc, probabilities, V, /*guarded=*/false, Value()).getToken());
  }

  void storePadding() {
    auto [o, stride, lse, lseStride, sum] = results(); // a part without keys need not have a sum
    if (!isSplit)
      StorePaddingOp::create(b, loc, o, stride, rowsOf(writeRows), problem.getDimV());
    if (lse)
      StorePaddingOp::create(b, loc, lse, lseStride ? lseStride : wide(int64_t(1)), rowsOf(writeRows), 1);
  }

  bool boxes;                   ///< tiles are copied as boxes of tensors, by their maps
  bool repairsLarge = false;    ///< rows of large scores are computed again, behind the loop
  bool lists;                   ///< of key tiles are there, made by kernels ahead of this one
  bool ofLong;                  ///< sequences only, whose slots are listed
  bool isSplit;                 ///< keys are shared out among CTAs
  SinglePassAttr singlePass;    ///< null: the softmax is online for all sequences
  std::optional<int64_t> tiles; ///< of each sequence, which a block then knows by its number
  Value Q, K, V, acc, row, held;
  Value allScores, probabilities; ///< of all keys, if they are looked at in one go
  Index tile = 0;                 ///< of queries: its slot, or its number in the sequence
  Index q0 = 0;                   ///< the tile's first row in its sequence
  Index first = 0;                ///< the same as a row of the tensor
  Index rows = 0;                 ///< rows to compute
  Index writeRows = 0;            ///< rows to write
  Index split = 0;                ///< which part of the keys
};

} // namespace

void attn::writeForward(ProblemOp problem, KernelOp kernel, ScheduleInterface schedule) {
  ForwardKernel(problem, kernel, schedule).build();
}
