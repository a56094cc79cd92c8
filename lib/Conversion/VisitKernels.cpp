// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two kernels, each of one warp a tile. The first leaves the least and the largest entry of
// each key tile. The second does the same for a query tile's own entries, goes along the runs
// that affine parts of the mask leave, and asks the mask of each of their key tiles
// (`tileTruth`): what it knows of values it computes there, as code.
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
        SetOp::create(b, loc, args["key_ranges"], rangeAt(3 * i + value.getResultNumber(), tile), value);
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

    if (problem.getKLayout().isPacked()) // as the ranges' slots are numbered
      firstListed = firstSlot(load(args["cu_seqlens_kv"], batch), batch, config.getKvTile());
    Value row = listRow(tile, config.getQueries());
    Index capacity = listCapacity(config.getKvTile()), full = 0, partial = 0;
    Value list = mul(row, wide(capacity));
    for (const KeyRun &run : KeyWalk(problem.getMask(), scope).runs(math, queries, config.getKvTile())) {
      auto select = SelectTilesOp::create(b, loc, args["visited_tiles"], list, math.value(capacity), math.value(full),
                                          math.value(partial), math.value(run.bounds.front()),
                                          math.value(run.bounds.back()));
      full = Index(select.getFull()), partial = Index(select.getPartial());
      Block &body = select.getBody().emplaceBlock();
      Index j = Value(body.addArgument(b.getI32Type(), loc));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&body);
      TileTruth truth = truthOf(queries, j, own);
      YieldOp::create(b, loc, ValueRange{math.value(truth.some), math.value(truth.all)});
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
      auto some = scf::IfOp::create(b, loc, math.value(math.lt(0, count)), /*withElseRegion=*/false);
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

  /// Where value `value` of a key tile's ranges stands: [heads, values, tiles].
  Value rangeAt(int64_t value, Index listed) {
    Index total = problem.getKLayout().isPacked()
                      ? numberOfSlots(arg("total_kv"), config.getKvTile())
                      : math.ceilDiv(arg("seqlen_kv"), config.getKvTile());
    Value tiles = wide(total), at = wide(listed);
    if (!problem.getKLayout().isPacked()) {
      at = add(mul(wide(batch), tiles), at);
      tiles = mul(wide(arg("batch")), tiles);
    }
    Value line = heads == 1 ? wide(value) : add(mul(wide(h), wide(3 * int64_t(perKey.size()))), wide(value));
    return add(mul(line, tiles), at);
  }

  TileTruth truthOf(Interval queries, Index j, ArrayRef<EntryRange> own) {
    Index k0 = math.named(math.mul(j, config.getKvTile()), "k0"), behind = math.add(k0, config.getKvTile());
    Interval keys = {k0, math.min(behind, scope.lenK)};
    Index listed = math.add(firstListed, j);
    MaskScope known = scope;
    known.extremes = [&, operands = problem.getMask().operands()](unsigned operand,
                                                                   Interval) -> std::optional<EntryRange> {
      const MaskOperand &array = operands[operand];
      if (array.shape == OperandShape::PerQuery)
        return own[rangedIndex(perQuery, array)];
      int64_t first = 3 * int64_t(rangedIndex(perKey, array));
      auto entry = [&](int64_t value) {
        return Index(Value(LoadOp::create(b, loc, b.getI32Type(), args["key_ranges"], rangeAt(first + value, listed),
                                          /*uniform=*/false)));
      };
      return EntryRange{entry(0), entry(1), math.lt(0, entry(2))};
    };
    TileTruth truth = problem.getMask().tileTruth(math, known, queries, keys);
    return {truth.some, math.logicalAnd(truth.all, math.le(behind, scope.lenK))};
  }

  ConfigAttr config;
  int64_t heads;
  SmallVector<MaskOperand> perKey, perQuery;
  Index tile = 0;     ///< of the side that this kernel is about: a slot, or a number in its sequence
  Index position = 0; ///< its first row or key
  Index firstListed = 0; ///< where ranges of the sequence's key tiles begin among those of all, if keys are packed
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
  if (!rangedArrays(problem.getMask(), OperandShape::PerKey).empty())
    VisitKernel(problem, make("_ranges", {"key_ranges"}, problem.getKLayout(), true)).buildRanges();
  VisitKernel(problem, make("_visits", {"key_ranges", "visited_tiles", "visit_counts"}, problem.getQLayout(), false))
      .buildLists();
}
