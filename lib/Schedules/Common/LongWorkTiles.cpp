// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LongWorkTiles.h"
#include "AttentionBody.h"
#include "KernelArguments.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class WorkTileListsKernel : AttentionBody {
public:
  WorkTileListsKernel(ProblemOp problem, KernelOp kernel) : AttentionBody(problem, kernel) {}

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
  for (LongWorkTiles tiles : lists)
    results.append({{all[tiles.list].name, program::Effect::write}, {all[tiles.list].count, program::Effect::write}});
  KernelGrid grid;
  grid.cluster = b.getI64IntegerAttr(1);
  auto schedule = AuxiliaryAttr::get(b.getContext(), /*q_tile=*/128, /*kv_tile=*/128, /*warps=*/16, /*ctas_per_sm=*/1);
  std::string name = freeSymbol(op->getParentOp(), (computation.getName() + "_work_tiles").str());
  KernelOp kernel = KernelArguments::ofTileLists(computation.problem, results)
                        .makeKernel(program, b, op->getLoc(), name, target, grid, schedule);
  WorkTileListsKernel body(computation.problem, kernel);
  for (LongWorkTiles tiles : lists)
    body.list(all[tiles.list], tiles.rows, limit);
}
