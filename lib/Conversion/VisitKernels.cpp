// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three kernels, each of one warp a tile. The first leaves the least and the largest entry of
// each key tile, the second of each 32 of these, a group. The third does the same for a query tile's
// own entries, goes along the runs that affine parts of the mask leave, and asks the mask of each of their groups,
// and of the key tiles of those that are not empty (`tileTruth`): what it knows of values it computes there, as code.
//
#include "VisitKernels.h"
#include "KernelArguments.h"
#include "SequenceBody.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

// Launching two more kernels takes as long as attending to some hundred keys.
bool attn::listsVisits(ProblemOp problem, ConfigAttr config) {
  return readsPositions(problem.getMask()) && !config.hasStrips() && !config.isSplit() &&
         config.getQueries() % 16 == 0 && problem.expectedKeys().value_or(INT32_MAX) > 1024;
}

namespace {

class VisitKernel : SequenceBody {
public:
  VisitKernel(ProblemOp problem, KernelOp kernel)
      : SequenceBody(problem, kernel), config(kernel.getConfig()), heads(kernel.getHeads()),
        perKey(rangedArrays(problem.getMask(), OperandShape::PerKey)),
        perQuery(rangedArrays(problem.getMask(), OperandShape::PerQuery)) {}

  void buildRanges() {
    Index count = findTile("kv", config.getKvTile());
    for (auto [i, array] : llvm::enumerate(perKey)) {
      auto range = entriesOf(array, position, count);
      for (OpResult value : range->getResults())
        SetOp::create(b, loc, args["key_ranges"], rangeAt(3 * i + value.getResultNumber(), firstListed, 0), value);
    }
    if (!nothing) // else each tile has some keys
      return;
    b.setInsertionPointToStart(nothing);
    const int64_t ofNone[] = {INT32_MAX, INT32_MIN, 1};
    for (int64_t value = 0, values = 3 * perKey.size(); value < values; ++value)
      SetOp::create(b, loc, args["key_ranges"], rangeAt(value, firstListed, 0), math.value(Index(ofNone[value % 3])));
  }

  /// Of each group of tiles, which may be of several sequences. Blocks for which there is none, of a grid that has one a
  /// tile, end at once.
  void buildGroups() {
    Index block = Value(BlockIndexOp::create(b, loc, Value())), tiles = numberOfTiles(config.getKvTile());
    h = math.named(div(block, tiles), "h");
    Index own = math.named(rem(block, tiles), "group");
    auto some = scf::IfOp::create(b, loc, math.value(math.lt(own, math.ceilDiv(tiles, group))), /*withElseRegion=*/false);
    b.setInsertionPointToStart(some.thenBlock());
    Index first = math.mul(own, group), count = math.min(math.sub(tiles, first), group);
    int64_t values = perKey.size();
    for (int64_t i = 0; i < values; ++i)
      for (int64_t value : {0, 1}) { // least, largest
        Value entries = AdvanceOp::create(b, loc, args["key_ranges"], rangeAt(3 * i + value, first, 0, tiles));
        auto range = EntryRangeOp::create(b, loc, entries, math.value(count), IntegerAttr());
        SetOp::create(b, loc, args["key_ranges"], rangeAt(3 * values + 2 * i + value, own, 0, tiles), range->getResult(value));
      }
  }

  void buildLists() {
    Index count = findTile("q", config.getQueries());
    Interval queries = {position, math.add(position, count)};
    llvm::SmallVector<EntryRange> own;
    for (const MaskOperand &array : perQuery) {
      auto range = entriesOf(array, position, count);
      own.push_back({Value(range.getLeast()), Value(range.getLargest()), math.lt(0, Index(range.getWhole()))});
    }

    firstListed = problem.getKLayout().isPacked() // as the ranges' slots are numbered
                      ? firstSlot(load(args["cu_seqlens_kv"], batch), batch, config.getKvTile())
                      : firstOfSequence(config.getKvTile());
    firstListed = math.named(firstListed, "first_listed");
    Value row = listRow(tile, config.getQueries());
    Index capacity = listCapacity(config.getKvTile()), full = 0, partial = 0;
    Value list = mul(row, wide(capacity));
    for (const KeyRun &run : KeyWalk(problem.getMask(), scope).runs(math, queries, config.getKvTile())) {
      auto select = SelectTilesOp::create(b, loc, args["visited_tiles"], list, math.value(capacity), math.value(full),
                                          math.value(partial), math.value(run.bounds.front()),
                                          math.value(run.bounds.back()), math.value(firstListed));
      full = Index(select.getFull()), partial = Index(select.getPartial());
      auto yield = [&](Region &region, llvm::function_ref<SmallVector<Value>(Index)> conditions) {
        Block &body = region.emplaceBlock();
        Index number = Value(body.addArgument(b.getI32Type(), loc));
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(&body);
        YieldOp::create(b, loc, conditions(number));
      };
      yield(select.getBody(), [&](Index j) -> SmallVector<Value> {
        TileTruth truth = truthOfTile(queries, j, own);
        return {math.value(truth.some), math.value(truth.all)};
      });
      yield(select.getGroups(),
            [&](Index g) -> SmallVector<Value> { return {math.value(truthOfGroup(queries, g, own).some)}; });
    }
    Value counts = mul(row, wide(int64_t(2)));
    SetOp::create(b, loc, args["visit_counts"], counts, math.value(full));
    SetOp::create(b, loc, args["visit_counts"], add(counts, wide(int64_t(1))), math.value(partial));
  }

private:
  /// Which tile, head and sequence this block has; returns how many rows of the side there are. Behind it,
  /// code is for tiles that have some.
  Index findTile(StringRef side, int64_t size) {
    bool keys = side == "kv", packed = (keys ? problem.getKLayout() : problem.getQLayout()).isPacked();
    Index block = Value(BlockIndexOp::create(b, loc, Value())), count = 0;
    if (packed) {
      Index total = arg(keys ? "total_kv" : "total_q"), slots = numberOfSlots(total, size);
      h = math.named(div(block, slots), "h");
      tile = math.named(rem(block, slots), "slot");
      // Of keys, padded offsets may come in any order; their prefix sums ascend.
      bool padded = !keys && problem.getQLayout().getPadded();
      Value cuSeqlens = args[("cu_seqlens_" + side).str()];
      auto find = FindSequenceOp::create(b, loc, math.value(tile), cuSeqlens, padded ? args["padded_offsets_q"] : cuSeqlens,
                                         args["batch"], math.value(total), size);
      batch = find.getB(), position = find.getQ0(), count = find.getRows();
      if (!keys)
        firstQuery = find.getFirst();
      if (keys)
        firstListed = tile;
      auto some = scf::IfOp::create(b, loc, math.value(math.lt(0, count)), /*withElseRegion=*/keys);
      nothing = keys ? some.elseBlock() : nullptr;
      b.setInsertionPointToStart(some.thenBlock());
    } else {
      Index extent = arg(keys ? "seqlen_kv" : "seqlen_q"), tiles = math.named(math.ceilDiv(extent, size), "tiles");
      Index line = math.named(div(block, tiles), "line");
      tile = math.sub(math.sub(tiles, 1), rem(block, tiles)); // the last ones, that may see most, begin first
      tile = math.named(tile, "tile");
      h = math.named(div(line, arg("batch")), "h");
      batch = math.named(rem(line, arg("batch")), "b");
      position = math.named(math.mul(tile, size), keys ? "k0" : "q0");
      count = math.named(math.min(math.sub(extent, position), size), "rows");
      if (keys)
        firstListed = math.add(firstOfSequence(size), tile);
    }
    lenQ = problem.getQLayout().isPacked() ? Index(0) : arg("seqlen_q");
    kvHead = math.floorDiv(h, int64_t(problem.getHeads()) / int64_t(problem.getKvHeads()));
    findLengths();
    findArrays();
    return count;
  }

  EntryRangeOp entriesOf(const MaskOperand &array, Index position, Index count) {
    Value entries = AdvanceOp::create(b, loc, args[array.name], add(startOf(array), wide(position)));
    return EntryRangeOp::create(b, loc, entries, math.value(count),
                                array.hidden ? b.getI32IntegerAttr(*array.hidden) : IntegerAttr());
  }

  /// Key tiles of a head, those of all sequences.
  Index numberOfTiles(int64_t size) {
    if (problem.getKLayout().isPacked())
      return numberOfSlots(arg("total_kv"), size);
    return times(arg("batch"), math.ceilDiv(arg("seqlen_kv"), size));
  }
  /// The number of a dense sequence's first tile among them.
  Index firstOfSequence(int64_t size) { return times(batch, math.ceilDiv(arg("seqlen_kv"), size)); }

  /// Where value `value` of tile `first + j`, or of a group, stands: [heads, values, tiles].
  Value rangeAt(int64_t value, Index first, Index j) {
    return rangeAt(value, first, j, numberOfTiles(config.getKvTile()));
  }
  Value rangeAt(int64_t value, Index first, Index j, Index tiles) {
    Value line = heads == 1 ? wide(value) : add(mul(wide(h), wide(5 * int64_t(perKey.size()))), wide(value));
    return add(mul(line, wide(tiles)), wide(math.add(first, j)));
  }

  using RangeOfKeys = llvm::function_ref<EntryRange(int64_t array)>;
  TileTruth truthOf(Interval queries, Interval keys, ArrayRef<EntryRange> own, RangeOfKeys ofKeys) {
    MaskScope known = scope;
    known.extremes = [&, operands = problem.getMask().operands()](unsigned operand,
                                                                   Interval) -> std::optional<EntryRange> {
      const MaskOperand &array = operands[operand];
      return array.shape == OperandShape::PerQuery ? own[rangedIndex(perQuery, array)]
                                                   : ofKeys(rangedIndex(perKey, array));
    };
    return problem.getMask().tileTruth(math, known, queries, keys);
  }

  Index rangeValue(int64_t value, Index first, Index j) {
    return Value(LoadOp::create(b, loc, b.getI32Type(), args["key_ranges"], rangeAt(value, first, j), /*uniform=*/false));
  }

  TileTruth truthOfTile(Interval queries, Index j, ArrayRef<EntryRange> own) {
    Index k0 = math.named(math.mul(j, config.getKvTile()), "k0"), behind = math.add(k0, config.getKvTile());
    TileTruth truth = truthOf(queries, {k0, math.min(behind, scope.lenK)}, own, [&](int64_t array) {
      auto value = [&](int64_t number) { return rangeValue(3 * array + number, firstListed, j); };
      return EntryRange{value(0), value(1), math.lt(0, value(2))};
    });
    return {truth.some, math.logicalAnd(truth.all, math.le(behind, scope.lenK))};
  }

  /// Of those of its tiles that are the sequence's. What they hold is known of all of the group, so nothing wrong is said.
  TileTruth truthOfGroup(Interval queries, Index g, ArrayRef<EntryRange> own) {
    Index first = math.sub(math.mul(g, group), firstListed);
    Index k0 = math.named(math.mul(math.max(first, 0), config.getKvTile()), "k0");
    // Tiles behind the sequence's last one might be too many for 32 bits of keys.
    Index behind = math.mul(math.min(math.add(first, group), math.ceilDiv(scope.lenK, config.getKvTile())), config.getKvTile());
    return truthOf(queries, {k0, math.min(behind, scope.lenK)}, own, [&](int64_t array) {
      auto value = [&](int64_t number) { return rangeValue(3 * int64_t(perKey.size()) + 2 * array + number, g, 0); };
      return EntryRange{value(0), value(1), Cond::of(false)};
    });
  }

  static constexpr int64_t group = 32; ///< tiles of a group (attn::Group)
  ConfigAttr config;
  int64_t heads;
  SmallVector<MaskOperand> perKey, perQuery;
  Index tile = 0;     ///< of the side that this kernel is about: a slot, or a number in its sequence
  Index position = 0; ///< its first row or key
  Index firstListed = 0; ///< the number of the sequence's first key tile among all, or of this kernel's own
  Block *nothing = nullptr; ///< for tiles of packed keys that have none
};

} // namespace

void attn::writeVisits(ProblemOp problem, StringRef target, ConfigAttr config) {
  OpBuilder b(problem);
  Operation *module = problem->getParentOp();
  int64_t heads = dependsOnHead(problem.getMask()) ? int64_t(problem.getHeads()) : 1;
  auto tiles = ConfigAttr::get(b.getContext(), config.getQueries(), config.getKvTile(), /*warps=*/1, /*blocks=*/16);
  auto make = [&](const char *suffix, ArrayRef<StringRef> results, LayoutAttr layout, bool keys) {
    KernelGrid grid;
    grid.packed = layout.isPacked(), grid.heads = heads, grid.keys = keys;
    return KernelArguments::ofVisits(problem, results)
        .makeKernel(b, problem.getLoc(), freeSymbol(module, problem.getSymName() + suffix), target, grid, tiles);
  };
  if (!rangedArrays(problem.getMask(), OperandShape::PerKey).empty()) {
    VisitKernel(problem, make("_ranges", {"key_ranges"}, problem.getKLayout(), true)).buildRanges();
    VisitKernel(problem, make("_groups", {"key_ranges"}, problem.getKLayout(), true)).buildGroups();
  }
  VisitKernel(problem, make("_visits", {"key_ranges", "visited_tiles", "visit_counts"}, problem.getQLayout(), false))
      .buildLists();
}
