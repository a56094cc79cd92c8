// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.gather_rows -> tile.kernel: a CTA for some rows of the result.
//
#include "GatherRows.h"
#include "Schedules/Common/KernelArguments.h"
#include "Schedules/Common/KernelBody.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
class GatherRowsKernel : KernelBody {
public:
  GatherRowsKernel(attn::GatherRowsOp op, KernelOp kernel)
      : KernelBody(kernel), op(op), rowsInTile(kernel.getSchedule().getQTile()) {}

  void build() {
    Index first = math.named(math.mul(Value(IndexOp::block(b, loc)), rowsInTile), "row0");
    Index rows = math.named(math.min(math.sub(arg("total_q"), first), rowsInTile), "rows");
    SmallVector<Value> parts, strides;
    for (int64_t part = 0; part < int64_t(op.getParts()); ++part) {
      std::string name = "part_" + std::to_string(part);
      parts.push_back(args[name]);
      strides.append({args[name + "_row"], args[name + "_head"]});
    }
    tile::GatherRowsOp::create(b, loc, args["result"], args["result_row"], args["result_head"], parts, strides,
                               args["index"], args["total_q"], math.value(first), math.value(rows), op.getHeads(),
                               op.getDim());
  }

private:
  attn::GatherRowsOp op;
  int64_t rowsInTile;
};
} // namespace

void attn::writeGatherRows(GatherRowsOp op, ProgramBuilder &program, const TargetInfo &target) {
  OpBuilder b(op);
  // A thread has some units of 16 bytes in flight, whatever the width of a row.
  int64_t units = std::max<int64_t>(1, int64_t(op.getHeads()) * int64_t(op.getDim()) / 8);
  int64_t rows = std::clamp<int64_t>(2048 / units, 1, 64);
  auto schedule = AuxiliaryAttr::get(b.getContext(), /*q_tile=*/rows, /*kv_tile=*/16, target.isHost() ? 1 : 8,
                                     /*ctas_per_sm=*/4);
  KernelGrid grid;
  grid.heads = 1;
  KernelOp kernel = KernelArguments::ofGatherRows(op).makeKernel(program, b, op.getLoc(), op.getSymName(),
                                                                 target.generic(), grid, schedule);
  GatherRowsKernel(op, kernel).build();
}
