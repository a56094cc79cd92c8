// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two kernels write lists of KV tiles for query tiles, or lists of query tiles for KV tiles. The first kernel stores
// the least and the largest array entry of each tile that may be listed, and of each group of 32 tiles. The second
// kernel finds the least and largest entries of each tile that has a list, loops over the runs that the affine parts of
// the mask leave, and evaluates the mask (`tileTruth`) on each group of tiles, and on each tile of groups that may be
// visible. Range conditions are computed as generated code.
//
#include "TileListKernels.h"
#include "Schedules/Common/AttentionBody.h"
#include "Schedules/Common/KernelArguments.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn;
using namespace attn::metadata;
using namespace attn::tile;

namespace {

/// CTAs of the first kernel, which loop over all groups, or over all tile numbers.
constexpr int64_t ctasOfRanges = 1024, ctasOfNumbers = 64;

/// The kernels for lists of KV tiles, or of query tiles (`ofKeys`).
class TileListKernel : AttentionBody {
public:
  TileListKernel(ProblemOp problem, KernelOp kernel, bool ofKeys)
      : AttentionBody(problem, kernel), schedule(kernel.getSchedule()), heads(kernel.getHeads()), ofKeys(ofKeys),
        names(tileLists(ofKeys)), own(rangedArrays(problem.getMask(), shapeOf(ofKeys))),
        others(rangedArrays(problem.getMask(), shapeOf(!ofKeys))) {}

  /// Stores the ranges of each tile that may be listed and of groups, which may span sequences. Warps share the tiles
  /// of a group.
  void buildRanges() {
    Value first = IndexOp::block(b, loc);
    Index across = this->across();
    if (others.empty()) { // only tile numbers
      Value slice = math.value(enterLoop("slice", first, math.ceilDiv(across, 512), ctasOfNumbers));
      InitListsOp::create(b, loc, args[names.list], args[names.used], math.value(across), slice);
      return;
    }
    Index tiles = math.named(tilesOfAll(!ofKeys), "tiles");
    Index groups = math.named(math.ceilDiv(tiles, group), "groups");
    InitListsOp::create(b, loc, args[names.list], args[names.used], math.value(across), Value());
    Index unit = enterLoop("item", first, math.mul(groups, heads), ctasOfRanges);
    if (heads != 1)
      findHead(div(unit, groups));
    Index number = heads == 1 ? unit : math.named(rem(unit, groups), "group");
    Index from = math.mul(number, group), count = math.min(math.sub(tiles, from), group);
    Index warp = Value(IndexOp::create(b, loc, IndexKind::warp));
    loop("i", warp, count, int64_t(schedule.getWarps()),
         [&](Index i) { buildRangesOf(math.named(math.add(from, i), "tile")); });
    BarrierOp::create(b, loc, /*warp=*/false);
    // Values alternate between least and largest, and warps share them.
    loop("value", warp, int64_t(2 * others.size()), int64_t(schedule.getWarps()), [&](Index value) {
      Value entries = AdvanceOp::create(b, loc, args[names.ranges], add(rangesAt(from), wide(value)));
      auto range =
          EntryRangeOp::create(b, loc, entries, math.value(count), group, valuesOfRanges(others), IntegerAttr());
      Index own = math.select(math.eq(math.rem(value, 2), 0), Value(range.getLeast()), Value(range.getLargest()));
      StoreEntryOp::create(b, loc, args[names.ranges], add(rangesOfGroupAt(number), wide(value)), math.value(own));
    });
  }

  void buildLists() {
    Index cta = Value(IndexOp::block(b, loc));
    Index tiles = tilesOfAll(ofKeys);
    if (heads != 1)
      findHead(div(cta, tiles));
    Tile rest = findTile(ofKeys, heads == 1 ? cta : rem(cta, tiles), /*forRows=*/true);
    if (!layoutOf(ofKeys).isPacked())
      return buildListsOf(rest);
    onlyIf(math.lt(0, rest.count), [&] { buildListsOf(rest); });
  }

private:
  /// Sets the query head whose mask is evaluated, given a head with lists of its own.
  void findHead(Index head) {
    listHead = math.named(head, heads == int64_t(problem.getHeads()) ? "h" : "kv_head");
    h = math.mul(listHead, int64_t(problem.getHeads()) / heads);
  }
  static OperandShape shapeOf(bool keys) { return keys ? OperandShape::PerKey : OperandShape::PerQuery; }
  int64_t tileOf(bool keys) { return keys ? schedule.getKvTile() : schedule.getQTile(); }

  /// The largest number of tiles that a sequence may list, plus one.
  Index across() { return math.named(math.add(math.ceilDiv(extentOf(!ofKeys), tileOf(!ofKeys)), 1), "across"); }

  /// Positions of a tile, and its index in its sequence, or its work tile if packed.
  struct Tile {
    Index number = 0, position = 0, count = 0;
  };
  /// Tiles of all sequences, of one head.
  Index tilesOfAll(bool keys) {
    Index tiles = tilesOf(keys, tileOf(keys));
    return layoutOf(keys).isPacked() ? tiles : mulRuntime(arg("batch"), tiles);
  }
  /// Finds a tile and sets its sequence. `forRows`: packed tiles are numbered as in the attention kernels, by padded
  /// offsets; otherwise by prefix sums, which ascend whatever the order of padded offsets.
  Tile findTile(bool keys, Index number, bool forRows) {
    Tile tile;
    StringRef side = keys ? "kv" : "q";
    int64_t size = tileOf(keys);
    if (layoutOf(keys).isPacked()) {
      bool padded = forRows && layoutOf(keys).getPadded();
      Value cuSeqlens = args[("cu_seqlens_" + side).str()];
      Value offsets = padded ? args[("padded_offsets_" + side).str()] : cuSeqlens;
      auto find = FindSequenceOp::create(b, loc, math.value(number), cuSeqlens, offsets, args["batch"],
                                         math.value(extentOf(keys)), size);
      batch = find.getB();
      tile = {number, Value(find.getQ0()), Value(find.getRows())};
    } else {
      Index extent = extentOf(keys), tiles = math.named(math.ceilDiv(extent, size), "tiles");
      batch = math.named(div(number, tiles), "b");
      tile.number = rem(number, tiles);
      if (forRows && !keys) // the last rows, which may see most, come first
        tile.number = math.sub(math.sub(tiles, 1), tile.number);
      tile.number = math.named(tile.number, "tile");
      tile.position = math.named(math.mul(tile.number, size), keys ? "k0" : "q0");
      tile.count = math.named(math.min(math.sub(extent, tile.position), size), "rows");
    }
    return tile;
  }

  //===------------------------------------------------------------------===//
  // Ranges
  //===------------------------------------------------------------------===//

  void buildRangesOf(Index number) {
    Tile tile = findTile(!ofKeys, number, /*forRows=*/false);
    auto leave = [&](int64_t array, llvm::function_ref<Value(int64_t)> value) {
      for (int64_t i = 0; i < (others[array].hidden ? 3 : 2); ++i)
        StoreEntryOp::create(b, loc, args[names.ranges], add(rangesAt(number), wide(valueOf(array, i))), value(i));
    };
    onlyIf(math.lt(0, tile.count), [&] {
      findSequence();
      SmallVector<EntryRangeOp> ranges; // all loads precede all stores
      for (const MaskOperand &array : others)
        ranges.push_back(entriesOf(array, tile.position, tile.count, tileOf(!ofKeys)));
      for (auto [i, range] : llvm::enumerate(ranges))
        leave(i, [&](int64_t value) { return range->getResult(value); });
    });
    if (!layoutOf(!ofKeys).isPacked()) // no tile is empty
      return;
    onlyIf(math.le(tile.count, 0), [&] {
      const int64_t ofNone[] = {INT32_MAX, INT32_MIN, 1};
      for (size_t i = 0; i < others.size(); ++i)
        leave(i, [&](int64_t value) { return math.value(Index(ofNone[value])); });
    });
  }

  EntryRangeOp entriesOf(const MaskOperand &array, Index position, Index count, int64_t most) {
    Value entries = AdvanceOp::create(b, loc, args[array.name], add(startOf(array), wide(position)));
    return EntryRangeOp::create(b, loc, entries, math.value(count), most, /*by=*/1,
                                array.hidden ? b.getI32IntegerAttr(*array.hidden) : IntegerAttr());
  }

  /// The index, among a tile's values, of the least (0) or largest (1) entry of an array, or of whether no entry hides
  /// (2).
  int64_t valueOf(int64_t array, int64_t value) {
    if (value < 2)
      return 2 * array + value;
    return 2 * others.size() + llvm::count_if(ArrayRef(others).take_front(array),
                                              [](const MaskOperand &o) { return o.hidden.has_value(); });
  }
  /// The first value of a head's tiles; those of groups follow those of all tiles.
  Value startOfRanges(bool ofGroups) {
    int64_t line = ofGroups ? valuesOfRanges(others) : 0;
    Value number = heads == 1 ? wide(line) : add(mul(wide(listHead), wide(linesOfRanges(others))), wide(line));
    return mul(number, wide(math.mul(math.ceilDiv(tilesOfAll(!ofKeys), 4 * group),
                                     4 * group))); // four groups are read together
  }
  Value rangesAt(Index number) { return add(startOfRanges(false), mul(wide(number), wide(valuesOfRanges(others)))); }
  Value rangesOfGroupAt(Index number) {
    return add(startOfRanges(true), mul(wide(number), wide(int64_t(2 * others.size()))));
  }
  /// Loads the stored ranges of a tile, or of a group.
  SmallVector<Index> rangesOf(Index number, bool ofGroup) {
    if (others.empty())
      return {};
    SmallVector<Type> types(ofGroup ? 2 * others.size() : valuesOfRanges(others), b.getI32Type());
    Value array = args[names.ranges];
    if (heads != 1 || ofGroup)
      array = AdvanceOp::create(b, loc, array, startOfRanges(ofGroup));
    auto values = LoadRangesOp::create(b, loc, types, array, math.value(number)).getValues();
    return SmallVector<Index>(values.begin(), values.end());
  }

  //===------------------------------------------------------------------===//
  // Lists
  //===------------------------------------------------------------------===//

  void buildListsOf(const Tile &rest) {
    findSequence();
    findArrays();
    Interval at = {rest.position, math.add(rest.position, rest.count)};
    llvm::SmallVector<EntryRange> ranges;
    for (const MaskOperand &array : own) {
      auto range = entriesOf(array, rest.position, rest.count, tileOf(ofKeys));
      ranges.push_back({Value(range.getLeast()), Value(range.getLargest()), math.lt(0, Index(range.getWhole()))});
    }
    int64_t tile = tileOf(!ofKeys);
    firstListed = layoutOf(!ofKeys).isPacked() // numbered like the stored ranges
                      ? firstWorkTile(load(args[ofKeys ? "cu_seqlens_q" : "cu_seqlens_kv"], batch), batch, tile)
                      : mulRuntime(batch, tilesOf(!ofKeys, tile));
    firstListed = math.named(firstListed, "first_tile");
    KeyWalk walk(problem.getMask(), scope);
    Interval run = hullOf(math, ofKeys ? walk.queryRuns(math, at, tile) : walk.runs(math, at, tile));
    auto select =
        SelectTilesOp::create(b, loc, args[names.positions], args[names.list], args[names.used],
                              listRow(ofKeys, rest.number, tileOf(ofKeys)), args[std::string(names.list) + "_entries"],
                              math.value(across()), math.value(run.lo), math.value(run.hi), math.value(firstListed));
    auto fill = [&](Region &region, int arguments, llvm::function_ref<SmallVector<Value>(Block &)> body) {
      Block &block = region.emplaceBlock();
      for (int i = 0; i < arguments; ++i)
        block.addArgument(b.getI32Type(), loc);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&block);
      YieldOp::create(b, loc, body(block));
    };
    fill(select.getBody(), 1, [&](Block &block) -> SmallVector<Value> {
      TileTruth truth = truthOfTile(at, Value(block.getArgument(0)), ranges);
      return {math.value(truth.some), math.value(truth.all)};
    });
    fill(select.getInner(), 1, [&](Block &block) -> SmallVector<Value> {
      TileTruth truth = truthInside(at, Value(block.getArgument(0)), ranges);
      return {math.value(truth.some), math.value(truth.all)};
    });
    fill(select.getGroups(), 1,
         [&](Block &block) -> SmallVector<Value> { return truthOfGroup(at, Value(block.getArgument(0)), ranges); });
    fill(select.getChunk(), 2, [&](Block &block) -> SmallVector<Value> {
      gatherBlocks(at, block.getArgument(0), block.getArgument(1));
      return {};
    });
  }

  using RangeOfOthers = llvm::function_ref<EntryRange(int64_t array)>;
  /// Evaluates a mask on a tile. `blocks`: the truth of the i-th block map. `mask`: the problem's, or a part of it.
  TileTruth truthOf(Interval at, Interval other, ArrayRef<EntryRange> ranges, RangeOfOthers ofOthers,
                    llvm::function_ref<TileTruth(int64_t)> blocks, MaskInterface mask) {
    MaskScope known = scope;
    SmallVector<MaskOperand> operands = mask.operands(), all = problem.getMask().operands(), maps = blockMaps();
    known.load = [&](unsigned operand, Index position) {
      return scope.load(llvm::find(all, operands[operand]) - all.begin(), position);
    };
    known.extremes = [&](unsigned operand, Interval) -> std::optional<EntryRange> {
      const MaskOperand &array = operands[operand];
      return array.shape == shapeOf(ofKeys) ? ranges[rangedIndex(own, array)] : ofOthers(rangedIndex(others, array));
    };
    known.listedIn = [&](unsigned operand, Interval, Interval) {
      return blocks(llvm::find(maps, operands[operand]) - maps.begin());
    };
    return mask.tileTruth(math, known, ofKeys ? other : at, ofKeys ? at : other);
  }

  TileTruth truthOfTile(Interval at, Index j, ArrayRef<EntryRange> ranges) {
    int64_t size = tileOf(!ofKeys);
    Index length = ofKeys ? scope.lenQ : scope.lenK;
    Index first = math.named(math.mul(j, size), ofKeys ? "q0" : "k0"), behind = math.add(first, size);
    TileTruth truth = truthOfTile(at, j, {first, math.min(behind, length)}, ranges, problem.getMask());
    if (ofKeys) // rows beyond the last have probability 0
      return truth;
    return {truth.some, math.logicalAnd(truth.all, math.le(behind, length))};
  }

  /// The same for a tile on which only array conditions are open.
  TileTruth truthInside(Interval at, Index j, ArrayRef<EntryRange> ranges) {
    Index first = math.mul(j, tileOf(!ofKeys));
    return truthOfTile(at, j, {first, math.add(first, tileOf(!ofKeys))}, ranges, ofArrays());
  }

  TileTruth truthOfTile(Interval at, Index j, Interval other, ArrayRef<EntryRange> ranges, MaskInterface mask) {
    SmallVector<Index> values = rangesOf(math.add(firstListed, j), /*ofGroup=*/false);
    auto ofOthers = [&](int64_t array) {
      auto value = [&](int64_t i) { return values[valueOf(array, i)]; };
      return EntryRange{value(0), value(1), others[array].hidden ? math.lt(0, value(2)) : Cond::of(true)};
    };
    auto ofBlocks = [&](int64_t map) {
      auto known = GatheredOp::create(b, loc, b.getI1Type(), b.getI1Type(), map, math.value(j));
      return TileTruth{Cond::of(known.getSome()), Cond::of(known.getAll())};
    };
    return truthOf(at, other, ranges, ofOthers, ofBlocks, mask);
  }

  /// The conjunction of the conjuncts that read arrays.
  MaskInterface ofArrays() {
    SmallVector<MaskInterface> parts;
    for (MaskInterface part : problem.getMask().conjuncts())
      if (!part.operands().empty())
        parts.push_back(part);
    return parts.size() == 1 ? parts.front() : cast<MaskInterface>(Attribute(AndMaskAttr::get(b.getContext(), parts)));
  }
  Cond isInside(Interval at, Interval other) {
    Cond all = Cond::of(true);
    for (MaskInterface part : problem.getMask().conjuncts())
      if (part.operands().empty())
        all = math.logicalAnd(all, part.tileTruth(math, scope, ofKeys ? other : at, ofKeys ? at : other).all);
    return all;
  }

  /// Whether some tile of the group that belongs to the sequence may be visible, and whether the group is settled.
  /// Array ranges hold for the whole group, so the answer is conservative. A group is settled if all is visible or one
  /// block map alone decides: then its tiles need no evaluation.
  SmallVector<Value> truthOfGroup(Interval at, Index g, ArrayRef<EntryRange> ranges) {
    int64_t size = tileOf(!ofKeys);
    Index length = ofKeys ? scope.lenQ : scope.lenK;
    Index tile = math.sub(math.mul(g, group), firstListed);
    Index first = math.named(math.mul(math.max(tile, 0), size), ofKeys ? "q0" : "k0");
    Index tiles = math.ceilDiv(length, size);
    // Clamped, since positions beyond the sequence's last tile could exceed 32 bits.
    Index behind = math.mul(math.min(math.add(tile, group), tiles), size);
    SmallVector<Index> values = rangesOf(g, /*ofGroup=*/true);
    auto ofOthers = [&](int64_t array) {
      return EntryRange{values[2 * array], values[2 * array + 1], Cond::of(false)};
    };
    size_t maps = blockMaps().size();
    SmallVector<Value> bits(2, math.value(Index(-1)));
    Cond listed = Cond::of(true);
    if (maps == 1) {
      auto known = GatheredOp::create(b, loc, b.getI32Type(), b.getI32Type(), 0, math.value(tile));
      bits = {known.getSome(), known.getAll()};
      listed = math.logicalNot(math.eq(Index(known.getSome()), 0));
    }
    auto truthWith = [&](Cond some, Cond all) {
      return truthOf(
          at, {first, math.min(behind, length)}, ranges, ofOthers, [&](int64_t) { return TileTruth{some, all}; },
          problem.getMask());
    };
    TileTruth known = truthWith(listed, Cond::of(false));
    Cond settled = truthWith(Cond::of(true), Cond::of(true)).all;
    if (maps)
      settled = math.logicalAnd(settled, math.logicalNot(truthWith(Cond::of(false), Cond::of(false)).some));
    // A group that spans sequences or extends beyond the end is evaluated tile by tile.
    Cond whole = math.logicalAnd(math.le(0, tile), math.le(math.add(tile, group), math.floorDiv(length, size)));
    settled = math.logicalAnd(settled, whole);
    Cond inside = math.logicalAnd(isInside(at, {first, math.min(behind, length)}), whole);
    if (maps > 1)
      settled = Cond::of(false);
    return {math.value(known.some), math.value(settled), math.value(inside), bits[0], bits[1]};
  }

  SmallVector<MaskOperand> blockMaps() {
    SmallVector<MaskOperand> maps;
    for (MaskOperand &operand : distinctOperands(problem.getMask()))
      if (operand.lists)
        maps.push_back(std::move(operand));
    return maps;
  }

  /// Gathers the blocks of the stationary tile within the streamed tiles `from` to `to`.
  void gatherBlocks(Interval at, Value from, Value to) {
    for (auto [i, map] : llvm::enumerate(blockMaps())) {
      std::string bits = bitsOf(map);
      int64_t size = ofKeys ? map.lists->kv : map.lists->q, otherSize = ofKeys ? map.lists->q : map.lists->kv;
      if (!args.contains(bits)) {
        Index block = math.floorDiv(at.lo, size);
        ListOfRow list = ofKeys ? listOfBlock(map, block) : listOfRow(map, block);
        GatherTilesOp::create(b, loc, i, list.offsets, list.rows, list.columns, list.entries, list.row, /*end=*/Value(),
                              from, to, tileOf(!ofKeys), otherSize, /*transposed=*/false);
        continue;
      }
      Value own = AdvanceOp::create(b, loc, args[bits], startOf(map));
      GatherTilesOp::create(b, loc, i, own, rowsOfBits(map), /*columns=*/Value(), args[bits + "_words"],
                            math.value(math.floorDiv(at.lo, size)), math.value(math.ceilDiv(at.hi, size)), from, to,
                            tileOf(!ofKeys), otherSize, ofKeys);
    }
  }

  static constexpr int64_t group = 32; ///< tiles of a group (attn::Group)
  ScheduleInterface schedule;
  int64_t heads;      ///< with lists of their own
  Index listHead = 0; ///< one of them
  bool ofKeys;        ///< KV tiles have lists of query tiles
  const TileLists &names;
  SmallVector<MaskOperand> own, others; ///< arrays whose ranges are compared
  Index firstListed = 0;                ///< the index of the sequence's first listed tile among all tiles
};

} // namespace

/// Co-resident CTAs of four warps that registers allow (CTAs of sixteen warps: half as many): masks of several arrays,
/// with many terms or with a predicate, and blocks that are no multiples of tiles, need more registers.
static int64_t ctasPerMultiprocessorFor(ProblemOp problem, ScheduleInterface schedule,
                                        ArrayRef<MaskOperand> mapsAsLists) {
  auto fits = [](int64_t block, int64_t tile) {
    int64_t larger = std::max(block, tile), smaller = std::min(block, tile);
    return larger % smaller == 0 && llvm::isPowerOf2_64(larger / smaller) && tile / block <= 8;
  };
  SmallVector<MaskOperand> operands = problem.getMask().operands();
  bool isShort = operands.size() <= 3 && leavesOf(problem.getMask()) < 5 && !hasPredicate(problem.getMask());
  bool fit = llvm::all_of(operands, [&](const MaskOperand &operand) {
    return !operand.lists || llvm::is_contained(mapsAsLists, operand) ||
           (fits(operand.lists->q, schedule.getQueries()) && fits(operand.lists->kv, schedule.getKvTile()));
  });
  return isShort && fit ? 8 : 4;
}

void attn::writeTileLists(Computation computation, ProgramBuilder &program, StringRef target,
                          ScheduleInterface schedule, bool ofKeys, ArrayRef<MaskOperand> mapsAsLists) {
  ProblemOp problem = computation.problem;
  Operation *op = computation.getOperation();
  OpBuilder b(op);
  const TileLists &names = tileLists(ofKeys);
  KernelGrid grid;
  grid.heads = headsOfTileLists(problem);
  auto make = [&](const char *suffix, ArrayRef<TensorUse> results, bool keys, int64_t warps) {
    grid.packed = (keys ? problem.getKLayout() : problem.getQLayout()).isPacked(), grid.keys = keys;
    int64_t rows = keys ? schedule.getKvTile() : schedule.getQueries();
    while (warps > 1 && warps != 16 && rows % (16 * warps)) // as many warps as these tile sizes allow
      warps /= 2;
    auto tiles = AuxiliaryAttr::get(
        b.getContext(), schedule.getQueries(), schedule.getKvTile(), target == "cpu" ? 1 : warps,
        /*ctas_per_sm=*/warps == 16
            ? ctasPerMultiprocessorFor(problem, schedule, mapsAsLists) / 2
            : std::min<int64_t>(4 * ctasPerMultiprocessorFor(problem, schedule, mapsAsLists) / warps, 16));
    std::string name = freeSymbol(op->getParentOp(), computation.getName() + suffix);
    return KernelArguments::ofTileLists(problem, results, mapsAsLists, /*transposed=*/ofKeys)
        .makeKernel(program, b, op->getLoc(), name, target, grid, tiles);
  };
  using program::Effect;
  program.setListed(ofKeys, schedule.getQueries(), schedule.getKvTile());
  bool anyRanges = !rangedArrays(problem.getMask(), ofKeys ? OperandShape::PerQuery : OperandShape::PerKey).empty();
  grid.most = anyRanges ? ctasOfRanges : ctasOfNumbers;
  KernelOp ranges =
      make(ofKeys ? "_ranges_q" : "_ranges",
           {{names.ranges, Effect::write}, {names.list, Effect::write}, {names.used, Effect::write}}, !ofKeys, 16);
  TileListKernel(problem, ranges, ofKeys).buildRanges();
  grid.most = 0;
  KernelOp lists = make(
      ofKeys ? "_q_tile_lists" : "_kv_tile_lists",
      {{names.ranges}, {names.list, Effect::update}, {names.positions, Effect::write}, {names.used, Effect::update}},
      ofKeys, 2);
  TileListKernel(problem, lists, ofKeys).buildLists();
}
