// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The combine kernel of split-KV. It needs neither masks nor sequences: each row of q, padding included, has a row
// maximum in each split, which tells whether there is anything to combine.
//
#include "CombineKernel.h"
#include "Schedules/Common/KernelBody.h"
#include "Schedules/Forward/ForwardKernel.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

// One warp for each row: it waits for memory three times and computes little. With sixteen rows a warp, combining took
// longer than the attention itself.
ScheduleInterface attn::combineSchedule(MLIRContext *context) {
  return AuxiliaryAttr::get(context, /*q_tile=*/4, /*kv_tile=*/16, /*warps=*/4, /*ctas_per_sm=*/4);
}

namespace {
class CombineKernel : ProblemBody {
public:
  CombineKernel(ProblemOp problem, KernelOp kernel, double scale)
      : ProblemBody(problem, kernel), packed(kernel.getPacked()), rowsInTile(kernel.getSchedule().getQTile()),
        scale(scale) {}

  void build(bool launchesEarly) {
    if (launchesEarly)
      GridDependencySyncOp::create(b, loc);
    Index cta = Value(IndexOp::block(b, loc));
    Index extent = extentOf(/*keys=*/false);
    // Work tiles beyond the last row of a packed grid find no row.
    Index tiles = math.named(tilesOf(/*keys=*/false, rowsInTile), "tiles");
    Index row = math.named(math.mul(rem(cta, tiles), rowsInTile), "row0"), head = div(cta, tiles), batch = 0;
    if (!packed) {
      batch = math.named(div(head, problem.getHeads()), "b");
      head = rem(head, problem.getHeads());
    }
    head = math.named(head, "h");
    Index rows = math.named(math.min(math.sub(extent, row), rowsInTile), "rows");
    Value o = rowPointer("o", row, batch, head), lse = problem.hasLse() ? lsePointer(row, batch, head) : Value();
    Value partialO = partialPointer("partial_o", problem.getDimV(), 0, row, batch, head);
    Value partialMax = partialPointer("partial_max", 1, 0, row, batch, head);
    Value partialSum = partialPointer("partial_sum", 1, 0, row, batch, head);
    Value pitch = mul(wide(rowsInAll()), wide(int64_t(problem.getHeads())));
    tile::CombineOp::create(b, loc, o, args["o_row"], lse, partialO, partialMax, partialSum, args["splits"], pitch,
                            math.value(rows), problem.getDimV(), APFloat(scale));
  }

private:
  bool packed;
  int64_t rowsInTile;
  double scale;
};
} // namespace

void attn::writeCombine(ProblemOp problem, KernelOp kernel, double scale, const TargetInfo &target) {
  CombineKernel(problem, kernel, scale).build(/*launchesEarly=*/target.specializesWarps);
}
