// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forward kernel in its plain form: find the work tile, load Q, loop over KV tiles, store O and LSE. KeyWalk
// supplies what depends on the mask; later passes optimise.
//
#include "ForwardKernel.h"
#include "Schedules/Common/ForwardBody.h"
#include "Schedules/Common/Workspace.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class ForwardKernel : ForwardBody {
public:
  ForwardKernel(ProblemOp problem, KernelOp kernel, ScheduleInterface schedule, StridedMaskAttr strided)
      : ForwardBody(problem, kernel, schedule), usesTma(kernel.isPersistent()),
        hasTileLists(kernel.getArg(tileLists(false).list)), onlyLong(kernel.getLonger().has_value()),
        isSplit(schedule.splitsKv()), singlePass(dyn_cast<SinglePassAttr>(schedule)),
        tilesPerSequence(kernel.getTiles()) {
    residues = strided;
  }

  void build() {
    declareTiles();
    if (!problem.getQLayout().isPacked()) {
      findDenseTile();
      findKeys();
      return attend();
    }
    if (tilesPerSequence)
      return attendSequence();
    findPackedTile();
    findKeys();
    branchOnPadding(rows, [&] { storePadding(); }, [&] { attend(); });
  }

private:
  //===------------------------------------------------------------------===//
  // The work tile
  //===------------------------------------------------------------------===//

  void declareTiles() {
    Type dtype = problem.getDtype();
    int64_t colsQk = llvm::alignTo(problem.getDimQk(), 16), colsV = llvm::alignTo(problem.getDimV(), 16);
    auto frag = [&](const char *name, int64_t cols) {
      return alloc(name, FragType::get(b.getContext(), schedule.getQTile(), cols, schedule.getWarps()));
    };
    Q = shared("Q", schedule.getQTile(), colsQk, usesTma);
    K = shared("K", keysAtOnce(), colsQk, usesTma);
    V = shared("V", keysAtOnce(), colsV, usesTma);
    s = frag("s", schedule.getKvTile());
    acc = frag("acc", colsV);
    if (auto tiled = dyn_cast<TiledAttr>(unsplit()); tiled && tiled.getQInRegisters())
      qOperand = alloc("q_operand", RegisterOperandType::get(b.getContext(), schedule.getQTile(), colsQk, dtype,
                                                             schedule.getWarps()));
    if (int64_t keys = keysAtOnce(); singlePass) {
      allScores = frag("all_scores", keys);
      probabilities =
          alloc("P", RegisterOperandType::get(b.getContext(), schedule.getQTile(), keys, dtype, schedule.getWarps()));
    }
    row = alloc("row", SoftmaxStateType::get(b.getContext(), schedule.getQTile(), schedule.getWarps()));
  }

  /// The index of this CTA's query tile in the grid; `tiles` is the number of tiles needed, if given. Consecutive CTAs
  /// have the same split of several heads (`splitHeads`), then the next split.
  Index findTile(std::optional<Index> tiles = std::nullopt) {
    if (tiles && !isSplit)
      return listedCta(*tiles);
    Value below;
    if (tiles)
      below = mul(math.value(*tiles), args["splits"]);
    Index cta = Value(IndexOp::block(b, loc, below));
    if (!isSplit)
      return cta;
    int64_t heads = splitHeads();
    Index group = math.floorDiv(cta, heads);
    split = math.named(rem(group, arg("splits")), "split");
    Index firstTile = math.mul(div(group, arg("splits")), heads);
    return math.named(math.add(firstTile, math.rem(cta, heads)), "query_tile");
  }

  /// Heads whose splits of the same keys belong to consecutive CTAs. Their rows of K and V are adjacent in memory, so
  /// that these CTAs read whole pages of it.
  int64_t splitHeads() {
    return problem.getKLayout().getKind() == LayoutKind::bhsd ? 1 : std::gcd<int64_t>(gridHeads(), 8);
  }

  void findDenseTile() {
    const LoopSplits *splits = findLoopSplits();
    int64_t heads = gridHeads() * rowStride;
    Index seqlen = arg("seqlen_q"), tiles = 0, cta = 0;
    if (splits) {
      tiles = math.named(load(args[splits->counts], 0), "ctas");
      cta = findTile(mulRuntime(math.mul(arg("batch"), heads), tiles));
    } else {
      cta = findTile();
      tiles = math.named(math.ceilDiv(seqlen, schedule.getQueries() * rowStride), "tiles");
    }
    TileAndHead assigned = assignTile(cta, tiles, heads, problem.getQLayout(),
                                      splits            ? Order::LptAscending
                                      : isSplit         ? Order::HeadsFirst
                                      : growsWithRows() ? Order::LptDescending
                                                        : Order::EqualCost);
    Index head = math.named(assigned.head, "sequence_head");
    if (splits)
      part = loadTilePart(*splits, assigned.tile, head);
    tile = splits ? part->tile : assigned.tile;
    findHead(rem(head, heads));
    batch = math.named(div(head, heads), "b");
    q0 = math.named(math.mul(tile, schedule.getQueries()), "q0");
    rows = writeRows =
        math.named(math.min(math.sub(rowsOfResidue(seqlen, queryResidue), q0), schedule.getQueries()), "rows");
    lenQ = seqlen;
    first = rowStride == 1 ? q0 : math.named(positionOf(q0, queryResidue), "row0");
  }

  /// Finds the first query head and the residue of a group of heads of the grid.
  void findHead(Index head) {
    if (rowStride != 1) {
      queryResidue = math.named(div(head, gridHeads()), "query_residue");
      head = rem(head, gridHeads());
    }
    h = math.named(firstHead(head), "h");
  }

  void findPackedTile() {
    int64_t positions = schedule.getQueries() * rowStride;
    std::optional<Index> listed = listedWorkTiles(arg("total_q"), positions);
    Index cta = findTile(listed ? std::optional(math.mul(*listed, gridHeads())) : std::nullopt);
    Index workTiles = listed ? *listed : math.named(workTileCount(positions), "work_tiles");
    // `metadata.list_query_tiles` or the caller sorts tiles by cost, `metadata.list_work_tiles` does not.
    bool sorted = listed && !onlyLong;
    Order order = isSplit            ? Order::HeadsFirst
                  : !growsWithRows() ? Order::EqualCost
                  : sorted           ? Order::LptAscending
                                     : Order::LptDescending;
    TileAndHead assigned = assignTile(cta, workTiles, gridHeads() * rowStride, problem.getQLayout(), order);
    findHead(assigned.head);
    tile = assigned.tile;
    if (listed)
      tile = listedWorkTile(tile);
    Value offsets = startsOf(/*keys=*/false);
    auto find = FindSequenceOp::create(b, loc, math.value(tile), lengthsOf(/*keys=*/false), offsets,
                                       math.value(sequenceCount(/*keys=*/false)), args["total_q"], positions);
    takePiece(/*ofKeys=*/false, Value(find.getB()));
    q0 = find.getQ0();
    rows = find.getRows();
    writeRows = problem.getKeepPadding() ? rows : find.getWriteRows();
    firstQuery = find.getFirst();
    first = math.named(math.add(firstQuery, math.add(q0, queryResidue)), "row0");
    if (rowStride != 1) {
      q0 = math.named(math.floorDiv(q0, rowStride), "q0");
      rows = math.named(rowsOfResidue(rows, queryResidue), "rows");
      writeRows = math.named(rowsOfResidue(writeRows, queryResidue), "write_rows");
    }
  }

  /// Computes this CTA's query tiles of its sequence: one tile, if the sequence is within max_seqlen.
  void attendSequence() {
    Index cta = Value(IndexOp::block(b, loc)), number = *tilesPerSequence == 1 ? Index(0) : rem(cta, *tilesPerSequence),
          group = div(cta, *tilesPerSequence);
    h = math.named(firstHead(rem(group, gridHeads())), "h");
    batch = math.named(div(group, gridHeads()), "b");
    bool padded = problem.getQLayout().getPadded();
    Value starts = startsOf(/*keys=*/false);
    firstQuery = math.named(load(starts, batch), "first");
    Index behind =
        padded ? math.named(load(starts, math.min(math.add(batch, 1), arg("batch"))), "next_first") : Index(0);
    findKeys();

    auto pad = [&](StringRef left, Index begin, Index end) {
      distributePadding(left, begin, end, *tilesPerSequence, number, schedule.getQueries(),
                        [&](Index row, Index count) {
                          first = row, writeRows = count;
                          storePadding();
                        });
    };
    if (padded)
      pad("before", 0, load(starts, 0));
    pad("padding_end", load(starts, arg("batch")), arg("total_q"));

    Index extent = padded ? math.sub(behind, firstQuery) : lenQ;
    auto attendTiles = [&](Keys keys) {
      q0 = enterLoop("q0", math.mul(number, schedule.getQueries()), extent, *tilesPerSequence * schedule.getQueries());
      if (!usesTma)
        BarrierOp::create(b, loc, /*warp=*/false); // shared memory is reused from another tile
      first = math.named(math.add(firstQuery, q0), "row0");
      writeRows = math.named(math.min(math.sub(extent, q0), schedule.getQueries()), "write_rows");
      rows = padded ? math.named(math.clamp(math.sub(lenQ, q0), 0, schedule.getQueries()), "rows") : writeRows;
      if (padded)
        branchOnPadding(rows, [&] { storePadding(); }, [&] { attend(keys); });
      else
        attend(keys);
    };
    if (!singlePass)
      return attendTiles(Keys::Streamed);
    if (!sharesSinglePass())
      return attendTiles(Keys::Either);
    ifSinglePass(
        [&] {
          loadAllTiles(K, "k"); // V is reloaded for each query tile: a wait before the loop would delay the first tile
          attendTiles(Keys::SinglePass);
        },
        [&] { attendTiles(Keys::Streamed); });
  }

  //===------------------------------------------------------------------===//
  // The computation
  //===------------------------------------------------------------------===//

  /// How a query tile gets its keys: streamed tile by tile; in a single pass, with K loaded already; or one of both, by
  /// the number of keys.
  enum class Keys { Streamed, SinglePass, Either };

  void attend(Keys mode = Keys::Streamed) {
    firstOfTile = math.mul(q0, rowStride);
    findArrays();
    KeyWalk walk(problem.getMask(), scope);

    // Built before the loops: after them, the compiler would duplicate this code for each loop.
    Index position = math.add(queryPiece.position, q0);
    origin = perRow(math.value(position), math.value(h), "at");
    dropoutState = findDropoutState(schedule.getPackHeads() != 1);
    Value queryRows, queryStride, keys, values;
    auto findRows = [&] {
      queryRows = rowPointer("q", first, batch, h);
      queryStride = strideOf("q");
      keys = hasPieces() ? rowPointer("k", 0, batch, kvHead) : keyPointer("k");
      values = hasPieces() ? rowPointer("v", 0, batch, kvHead) : keyPointer("v");
    };
    // Recompute rows with large scores, which are rare without modifiers. (A scale above 1 can take finite products to
    // infinity, so that a row seems to have no key. Twelve warps lack registers for recomputation that the mask does
    // not need: 0.92 of the speed at head dim 64.)
    recomputesLarge = usesTma && mode == Keys::Streamed && problem.getModifiers().empty() &&
                      scaleOfProducts() * std::log2(std::exp(1.0)) <= 1 &&
                      (walk.hidesKeys() || schedule.getWarps() <= 8);
    bool recomputes = usesTma && (walk.hidesKeys() || recomputesLarge), hasRows = !usesTma || walk.hidesKeys();
    if (hasRows)
      findRows();
    Value rowsInTile = rowsOf(rows);
    Value copied =
        usesTma ? copyTma(Q, "q", first, h, math.sub(math.mul(rows, rowStride), rowStride - 1))
                : CopyAsyncOp::create(b, loc, Q, queryRows, queryStride, rowsInTile, problem.getDimQk(), Value());
    ClearOp::create(b, loc, acc);
    ClearOp::create(b, loc, row);
    if (problem.getPartialIn()) {
      auto [o, stride, max, sum] = before();
      ResumeOp::create(b, loc, acc, row, o, stride, max, sum, math.value(rows), problem.getDimV());
    }
    WaitOp::create(b, loc, copied);
    if (problem.scaleOrDefault() < 0 && !usesTma)
      ScaleOp::create(b, loc, Q, /*factor=*/llvm::APFloat(-1.0));
    if (qOperand)
      LoadOperandOp::create(b, loc, qOperand, Q);

    Interval queries = rowStride == 1 ? Interval{position, math.add(position, rows)}
                                      : positionsOf(q0, schedule.getQueries(), scope.lenQ);
    std::optional<ListedWalk> listed;
    if (hasTileLists)
      listed = listedWalk(walk, /*ofKeys=*/false, tile, schedule.getQueries() * rowStride);
    SmallVector<KeyRun> runs;
    if (!hasPieces())
      runs = listed ? listed->runs : walk.runs(math, queries, schedule.getKvTile() * rowStride);
    Interval visited = {0, keyRows};
    if (part)
      cutTiles(math, runs, part->first, part->end);
    if (isSplit)
      restrictToSplit(runs);
    if (isSplit || part) {
      visited = hullOf(math, runs);
      visited = {math.mul(visited.lo, schedule.getKvTile()),
                 math.min(math.mul(visited.hi, schedule.getKvTile()), scope.lenK)};
    }
    switch (mode) {
    case Keys::Streamed:
      if (hasPieces())
        loopOverPieces(walk, queries);
      else
        buildLoop(walk, runs, listed, keys, values);
      break;
    case Keys::SinglePass:
      attendSinglePass(walk, /*isKLoaded=*/true);
      break;
    case Keys::Either:
      ifSinglePass([&] { attendSinglePass(walk, /*isKLoaded=*/false); },
                   [&] { buildLoop(walk, runs, listed, keys, values); });
    }

    // With split-KV, the first split adds the sink.
    findSink(isSplit ? std::optional(math.eq(split, 0)) : part ? std::optional(math.eq(part->first, 0)) : std::nullopt);
    addSink(acc, row);
    NormalizeOp::create(b, loc, acc, row, /*rows_recomputed=*/recomputesLarge);
    if (!problem.getPartialOut())
      scaleKept(acc);
    auto finish = [&](const Results &results) {
      auto [dst, dstStride, lse, lseStride, sum] = results;
      // The LSE of padding determines what the combine kernel stores there.
      Index written = sum && !problem.getPartialOut() ? rows : writeRows;
      StoreOp::create(b, loc, dst, dstStride, acc, rowsInTile, rowsOf(written), problem.getDimV());
      if (lse)
        StoreLseOp::create(b, loc, lse, sum, lseStride, row, rowsInTile, rowsOf(writeRows));
      if (!recomputes)
        return;
      // With block maps, recomputation visits the listed tiles only, instead of testing each key against the lists.
      // (With other masks this would take registers for little gain.)
      bool followsList = listed && hasListsOfMaps();
      Value ranges;
      if (followsList)
        ranges = math.value(listed->runs.front().bounds.back());
      else if (hasPieces())
        ranges = countPieces(/*ofKeys=*/true);
      if (!hasRows) // not earlier: they would occupy registers during the loop
        findRows();
      Before continued = problem.getPartialIn() ? before() : Before();
      Value firstVisited = isSplit || part ? math.value(visited.lo) : Value();
      auto recompute = RecomputeRowsOp::create(
          b, loc, acc, origin, rowsInTile, firstVisited, math.value(visited.hi), queryRows, queryStride, keys,
          rowStrideOf("k"), values, rowStrideOf("v"), dst, dstStride, lse, lseStride, sum, continued.o,
          continued.stride, continued.max, continued.sum, dropoutState, ranges, problem.getDimQkAttr(),
          problem.getDimVAttr(), b.getF64FloatAttr(std::copysign(scaleOfProducts(), problem.scaleOrDefault())),
          dropout ? b.getI64IntegerAttr(dropout->below) : IntegerAttr(),
          dropout ? b.getF64FloatAttr(problem.getPartialOut() ? 1 : dropout->factor()) : FloatAttr());
      buildTests(walk, recompute.getBody());
      if (ranges) {
        OpBuilder::InsertionGuard guard(b);
        Block &block = recompute.getAlong().emplaceBlock();
        b.setInsertionPointToStart(&block);
        Index number = Index(block.addArgument(b.getI32Type(), loc));
        Index begin = 0, end = 0, row = 0;
        if (followsList) {
          begin = row = math.mul(listed->tileAt(number), schedule.getKvTile());
          end = math.min(math.add(begin, schedule.getKvTile()), visited.hi);
        } else {
          findPiece(/*ofKeys=*/true, number);
          begin = keyPiece.position, end = math.add(begin, keyPiece.rows), row = firstKey;
        }
        YieldOp::create(b, loc, ValueRange{math.value(begin), math.value(end), math.value(row)});
      }
      if (auto modifiers = problem.getModifiers(); !modifiers.empty()) {
        OpBuilder before(recompute);
        recompute.setScale(
            APFloat(writeScore(recompute.getModify(), before, scaleOfProducts(), [&](ScoreScope &scope, Score score) {
              if (problem.scaleOrDefault() < 0)
                score.value = scope.each.neg(score.value);
              score.value = productOf(scope.each, score.value);
              for (ScoreModifierInterface modifier : modifiers)
                score = settled(scope.each, modifier.emitScore(scope, score));
              return score;
            })));
      }
      if (problem.getSinkAttr())
        writeSink(recompute.getSink());
    };
    storeResults(finish);
  }

  /// Restricts the runs to this CTA's split. Splits differ by one KV tile at most.
  void restrictToSplit(MutableArrayRef<KeyRun> runs) {
    Index count = countTiles(math, runs), splits = arg("splits");
    Index equalShare = div(count, splits), longer = rem(count, splits);
    auto firstOf = [&](Index part) {
      Index equal = mulRuntime(part, equalShare);
      return math.add(equal, math.min(part, longer));
    };
    cutTiles(math, runs, firstOf(split), firstOf(math.add(split, 1)));
  }

  /// Where this CTA's results are stored: in the problem's tensors, or as those of a part of the keys.
  struct Results {
    Value o, stride, lse, lseStride; ///< `lseStride`: null where rows are contiguous
    Value sum = {};                  ///< row sums of a part; `lse` is then the row maximum
  };
  Results results() {
    bool isStrided = schedule.getPackHeads() != 1 || rowStride != 1;
    Value o = rowPointer("o", first, batch, h);
    if (problem.getPartialOut())
      return {o, strideOf("o"), statisticPointer("row_max", first, batch, h), Value(),
              statisticPointer("row_sum", first, batch, h)};
    if (!problem.hasLse())
      return {o, strideOf("o"), Value(), Value()};
    return {o, strideOf("o"), lsePointer(first, batch, h),
            isStrided ? perRow(wide(rowStride), args["lse_head"]) : Value()};
  }

  /// The partial result from which the tile's rows continue.
  struct Before {
    Value o, stride, max, sum;
  };
  Before before() {
    return {rowPointer("before_o", first, batch, h), args["before_o_row"],
            statisticPointer("before_row_max", first, batch, h), statisticPointer("before_row_sum", first, batch, h)};
  }

  /// Those of a split.
  Results partialResults() {
    int64_t dim = problem.getDimV();
    Value o = partialPointer("partial_o", dim, split, first, batch, h), head = wide(rowsInAll());
    return {o, perRow(wide(dim), mul(head, wide(dim))), partialPointer("partial_max", 1, split, first, batch, h),
            schedule.getPackHeads() != 1 ? perRow(wide(int64_t(1)), head) : Value(),
            partialPointer("partial_sum", 1, split, first, batch, h)};
  }

  /// The slot of a CTA that shares its query tile with others.
  Results slotResults() {
    int64_t dim = problem.getDimV(), qTile = schedule.getQTile();
    Value from = mul(wide(part->slot), wide(qTile));
    auto slots = [&](const char *name, int64_t width) -> Value {
      return AdvanceOp::create(b, loc, args[name], mul(from, wide(width)));
    };
    return {slots("slots_o", dim), wide(dim), slots("slots_max", 1), Value(), slots("slots_sum", 1)};
  }

  /// Calls `store` with the place of the results. Where only a launch knows whether this CTA has all keys of its rows,
  /// it is called once for each of the two places.
  void storeResults(function_ref<void(const Results &)> store) {
    if (!part && !isSplit)
      return store(results());
    if (isSplit && !mayBeUnsplit(schedule))
      return store(partialResults());
    Cond isWhole = part ? part->isWhole : math.eq(arg("splits"), 1);
    onlyIf(isWhole, [&] { store(results()); });
    onlyIf(math.logicalNot(isWhole), [&] { store(part ? slotResults() : partialResults()); });
  }

  /// With modifiers whose scores are largest near the last key of a row, the loop runs backward.
  bool loopsBackward() {
    return !hasTileLists && llvm::any_of(problem.getModifiers(), [&](ScoreModifierInterface modifier) {
      std::optional<Diagonal> peak = modifier.peak();
      return peak && reachOf(problem.getMask(), *peak).value_or(1) <= 0;
    });
  }

  /// The runs in reverse order: tile j has index -1 - j.
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

  void loopOverPieces(KeyWalk &walk, Interval queries) {
    eachPiece(/*ofKeys=*/true, [&] {
      keyRows = keyPiece.rows;
      walk.restrictKeys(keyPiece.positions(math));
      buildLoop(walk, walk.runs(math, queries, schedule.getKvTile()), /*listed=*/std::nullopt, keyPointer("k"),
                keyPointer("v"));
    });
    walk.restrictKeys(std::nullopt);
  }

  void buildLoop(KeyWalk &walk, ArrayRef<KeyRun> forward, const std::optional<ListedWalk> &listed, Value keys,
                 Value values) {
    bool backward = loopsBackward();
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
      if (usesTma) {
        Index position = positionOf(k0, keyResidue);
        return copyTma(place, tensor, math.add(firstKey, position), kvHead,
                       math.sub(hasPieces() ? keyRows : scope.lenK, position),
                       singlePass ? std::optional<int64_t>(1) : std::nullopt);
      }
      Index left = math.sub(keyRows, k0);
      Value stride = rowStrideOf(tensor);
      Value src = AdvanceOp::create(b, loc, base, mul(wide(k0), stride));
      return CopyAsyncOp::create(b, loc, place, src, stride, math.value(left), dim, Value());
    };
    auto wait = [&](Value token) { WaitOp::create(b, loc, token); };

    wait(copy(K, "k", keys, problem.getDimQk()));
    Step step = {.walk = walk, .q = qOperand ? qOperand : Q, .k = K, .scores = s, .row = row, .acc = acc};
    step.k0 = math.add(keyPiece.position, k0);
    step.negated = usesTma && problem.scaleOrDefault() < 0;
    step.rising = !backward &&
                  llvm::any_of(problem.getModifiers(), [](ScoreModifierInterface modifier) { return modifier.peak(); });
    step.recomputed = recomputesLarge;
    step.loop = loop;
    emitScoresAndSoftmax(step);
    dropProbabilities(step);
    wait(copy(V, "v", values, problem.getDimV()));
    accumulateValues(acc, s, V, /*guarded=*/!usesTma);
    YieldOp::create(b, loc, ValueRange());
  }

  int64_t keysAtOnce() { return schedule.getKvTile() * (singlePass ? int64_t(singlePass.getKvTiles()) : 1); }
  ScheduleInterface unsplit() {
    auto split = dyn_cast<SplitKvAttr>(schedule);
    return split ? split.getOf() : schedule;
  }
  /// Do several query tiles of a CTA read the same keys?
  bool sharesSinglePass() { return int64_t(*problem.getMaxSeqlenQ()) > schedule.getQueries() * *tilesPerSequence; }

  /// Branches on whether the sequence has more than one KV tile but not more than a single pass has keys.
  void ifSinglePass(function_ref<void()> singlePass, function_ref<void()> stream) {
    Cond fits = math.logicalAnd(math.lt(schedule.getKvTile(), scope.lenK), math.le(scope.lenK, keysAtOnce()));
    auto branch = scf::IfOp::create(b, loc, math.value(fits), /*withElseRegion=*/true);
    for (auto [block, write] : {std::pair(branch.thenBlock(), singlePass), std::pair(branch.elseBlock(), stream)}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(block);
      write();
    }
  }

  void loadAllTiles(Value place, StringRef tensor) {
    WaitOp::create(b, loc, copyTma(place, tensor, firstKey, kvHead, scope.lenK, singlePass.getKvTiles()));
  }

  /// A single pass over all keys: scores, one softmax, product with V.
  void attendSinglePass(KeyWalk &walk, bool isKLoaded) {
    if (!isKLoaded)
      loadAllTiles(K, "k");
    Step step = {.walk = walk, .q = qOperand ? qOperand : Q, .k = K, .scores = allScores, .row = row};
    step.negated = problem.scaleOrDefault() < 0;
    if (!walk.hidesKeys()) // then the mask hides only keys beyond the sequence's last
      step.tested = math.lt(scope.lenK, keysAtOnce());
    emitScoresAndSoftmax(step);
    ConvertOp::create(b, loc, probabilities, allScores);
    ClearOp::create(b, loc, acc);
    loadAllTiles(V, "v");
    accumulateValues(acc, probabilities, V, /*guarded=*/false);
  }

  void storePadding() {
    if (problem.getKeepPadding())
      return;
    storeResults([&](const Results &results) {
      auto [o, stride, lse, lseStride, sum] = results;
      if (!sum || problem.getPartialOut()) // the combine kernel reads neither O nor the sum of a split without keys
        StorePaddingOp::create(b, loc, o, stride, rowsOf(writeRows), problem.getDimV());
      if (lse)
        StorePaddingOp::create(b, loc, lse, lseStride ? lseStride : wide(int64_t(1)), rowsOf(writeRows), 1);
    });
  }

  bool usesTma;                            ///< tiles are copied by TMA
  bool recomputesLarge = false;            ///< rows with large scores are recomputed after the loop
  bool hasTileLists;                       ///< KV-tile lists exist
  bool onlyLong;                           ///< computes long sequences only, from a work-tile list
  bool isSplit;                            ///< split-KV
  SinglePassAttr singlePass;               ///< null: the softmax is online for all sequences
  std::optional<int64_t> tilesPerSequence; ///< query tiles of each sequence; none with a grid of work tiles
  Value Q, K, V, acc, row, qOperand;
  Value allScores, probabilities; ///< of a single pass
  Index tile = 0;                 ///< query tile: its work tile, or its index in the sequence
  Index q0 = 0;                   ///< the tile's first row in its sequence, or among the rows of its residue
  Index first = 0;                ///< the tile's first row in the tensor
  Index rows = 0;                 ///< rows to compute
  Index writeRows = 0;            ///< rows to write
  Index split = 0;                ///< index of the split
  std::optional<TilePart> part;   ///< of a query tile that several CTAs may share
};

} // namespace

void attn::writeForward(ProblemOp problem, KernelOp kernel, ScheduleInterface schedule, StridedMaskAttr residues) {
  ForwardKernel(problem, kernel, schedule, residues).build();
}
