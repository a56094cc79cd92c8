// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SizeClasses.h"
#include "KernelArguments.h"
#include "SequenceBody.h"
#include "SequenceKernel.h"
#include "ShortBackward.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

// Measured on an H200 (docs/Schedules/by_length.md). A turn of a block of one warp takes a sixteenth of what the other
// kernels take for a tile of 128 rows and keys, a pair of a row and a key on SIMT tiles a thousandth: so there may be
// four turns over rows and four over keys, or a thousand pairs. Beyond 64 rows the others are ahead in any case.
ShortLimit attn::shortLimit(ProblemOp problem, ScheduleInterface schedule) {
  if (auto tiles = dyn_cast<CtaPerSequenceAttr>(schedule)) {
    int64_t queries = tiles.getFragmentRows() / schedule.getPackHeads(), keys = llvm::alignTo(schedule.getKvTile(), 16);
    return {std::clamp<int64_t>(4 * queries, 16, std::max<int64_t>(64, queries)),
            std::clamp<int64_t>(4 * keys / kvHeadsOf(problem, schedule), 16, 128)};
  }
  return problem.expectedKeys().value_or(1) <= 128 ? ShortLimit{8, 128} : ShortLimit{4, 1023};
}

// What does not fit a tile is on SIMT tiles, where a pair takes 0.13 ns and the other kernels 60 ns a sequence and
// head.
ShortLimit attn::shortLimit(BackwardOp backward, ScheduleInterface schedule) {
  ProblemOp problem = backward.getProblemOp();
  if (warpSpecializationOf(schedule))
    return {schedule.getQTile(), keysOfAll(schedule)};
  if (isa<CtaPerSequenceAttr>(schedule))
    return {std::max<int64_t>(schedule.getQueries(), 16),
            std::max<int64_t>(schedule.getKvTile() / kvHeadsOf(problem, schedule), 16)};
  return {8, 64};
}

namespace {

class WorkTileListsKernel : SequenceBody {
public:
  WorkTileListsKernel(ProblemOp problem, KernelOp kernel) : SequenceBody(problem, kernel) {}

  void list(const WorkTileList &list, int64_t rows, ShortLimit limit) {
    LayoutAttr layout = list.keys ? problem.getKLayout() : problem.getQLayout();
    std::string offsets =
        (layout.getPadded() ? "padded_offsets_" : "cu_seqlens_") + std::string(list.keys ? "kv" : "q");
    auto op = metadata::ListWorkTilesOp::create(b, loc, args[list.name], args[list.count], args[offsets], args["batch"],
                                                b.getI64IntegerAttr(rows));
    OpBuilder::InsertionGuard guard(b);
    Block &body = op.getBody().emplaceBlock();
    Index sequence = Value(body.addArgument(b.getI32Type(), loc));
    b.setInsertionPointToStart(&body);
    auto entry = [&](StringRef array, Index at) {
      return Index(Value(LoadOp::create(b, loc, args[array], math.value(at), /*uniform=*/false)));
    };
    auto length = [&](StringRef array) {
      return math.sub(entry(array, math.add(sequence, 1)), entry(array, sequence));
    };
    Cond isShort = limit.holds(math, length("cu_seqlens_q"), length("cu_seqlens_kv"));
    YieldOp::create(b, loc, math.value(math.logicalNot(isShort)));
  }
};

} // namespace

void attn::writeWorkTileLists(Computation computation, ProgramBuilder &program, StringRef target, ShortLimit limit,
                              ArrayRef<LongWorkTiles> lists) {
  Operation *op = computation.getOperation();
  OpBuilder b(op);
  ArrayRef<WorkTileList> all = workTileLists(bool(computation.backward));
  SmallVector<TensorUse> results;
  for (LongWorkTiles slots : lists)
    results.append({{all[slots.list].name, program::Effect::write}, {all[slots.list].count, program::Effect::write}});
  KernelGrid grid;
  grid.cluster = b.getI64IntegerAttr(1);
  auto schedule = AuxiliaryAttr::get(b.getContext(), /*q_tile=*/128, /*kv_tile=*/128, /*warps=*/16, /*blocks=*/1);
  std::string name = freeSymbol(op->getParentOp(), (computation.getName() + "_work_tiles").str());
  KernelOp kernel = KernelArguments::ofTileLists(computation.problem, results)
                        .makeKernel(program, b, op->getLoc(), name, target, grid, schedule);
  WorkTileListsKernel body(computation.problem, kernel);
  for (LongWorkTiles slots : lists)
    body.list(all[slots.list], slots.rows, limit);
}
