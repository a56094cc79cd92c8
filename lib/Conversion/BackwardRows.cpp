// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of a backward pass that go along rows: statistics ahead of the gradients, and
// dQ from its sums behind them.
//
#include "BackwardBody.h"
#include "BackwardKernel.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static_assert(rowsOfTurn == 64, "as `tile.prepare` clears their counters");

namespace {

/// What rows need to know: one block for each tile of statistics.
class PrepareKernel : BackwardBody {
public:
  PrepareKernel(ProblemOp problem, KernelOp kernel) : BackwardBody(problem, kernel) {}

  void build() {
    Slot slot = slotOf(/*keys=*/false, statisticsTile, Order::Alike);
    h = math.named(slot.head, "h");
    // NOTE: of a slot that stands for padding, `first` counts from another sequence's end.
    Value firstRow = mul(wide(slot.number), wide(statisticsTile));
    Value statistics = statisticsPointer(firstRow, h, 0);
    Value o = rowPointer("o", slot.row, batch, h), grad = rowPointer("do", slot.row, batch, h);
    Value lse = statisticPointer("lse", slot.row, batch, h), gradLse;
    if (args.contains("dlse"))
      gradLse = statisticPointer("dlse", slot.row, batch, h);
    Value sum = args.contains("dq_sum") ? sumPointer(firstRow, h, 0) : Value();
    Value turns = args.contains("dq_turns") ? turnPointer(firstRow, h, 0) : Value();
    PrepareOp::create(b, loc, statistics, statisticsPitch(), o, args["o_row"], grad, args["do_row"], lse, gradLse,
                      math.value(slot.rows), problem.getDimV(), sum,
                      sum ? b.getI64IntegerAttr(sumColumns(problem.getDimQk())) : IntegerAttr(), turns);
  }
};

/// dQ from its sums, rounded: one block for each tile that key tiles added to.
class RoundSumsKernel : BackwardBody {
public:
  /// `columns`: of the fragments that were added. `clearedByKeys`: by blocks of key tiles, of which there may be none.
  RoundSumsKernel(ProblemOp problem, KernelOp kernel, int64_t columns, bool clearedByKeys, bool mayBeDone)
      : BackwardBody(problem, kernel), config(kernel.getConfig()), columns(columns),
        mayLack(clearedByKeys && !problem.getKLayout().isPacked()), mayBeDone(mayBeDone) {}

  void build() {
    Value acc = place("dQ", FragType::get(b.getContext(), config.getQTile(), sumColumns(problem.getDimQk()),
                                          config.getWarps()));
    Slot slot = slotOf(/*keys=*/false, config.getQTile(), Order::LastFirst);
    h = math.named(slot.head, "h");
    auto store = [&] {
      firstQuery = findFirstQuery();
      Value dst = rowPointer("dq", slot.row, batch, h);
      Value turn = args.contains("dq_turns") ? turnPointer(firstTiledRow(), h, slot.first) : Value();
      Value sum = sumPointer(firstTiledRow(), h, slot.first);
      OpBuilder::InsertionGuard guard(b);
      if (mayBeDone)
        leaveWhatIsDone(turn, slot);
      auto load = [&] { LoadSumOp::create(b, loc, acc, sum, columns, turn); };
      if (mayLack)
        loadIfAnyKeys(acc, load);
      else
        load();
      ScaleOp::create(b, loc, acc, b.getF64FloatAttr(problem.scaleOrDefault()));
      StoreOp::create(b, loc, dst, args["dq_row"], acc, math.value(slot.rows), math.value(slot.written),
                      problem.getDimQk());
    };
    if (!problem.getQLayout().isPacked())
      return store();
    auto pad = [&] {
      StorePaddingOp::create(b, loc, rowPointer("dq", slot.row, batch, h), args["dq_row"], math.value(slot.written),
                             problem.getDimQk());
    };
    writeApart(slot.rows, pad, store);
  }

private:
  void loadIfAnyKeys(Value acc, function_ref<void()> load) {
    ClearOp::create(b, loc, acc);
    auto any = scf::IfOp::create(b, loc, math.value(math.lt(0, arg("seqlen_kv"))), /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(any.thenBlock());
    load();
  }

  /// What follows is for sums. Of rows that are written, padding is left.
  void leaveWhatIsDone(Value turn, const Slot &slot) {
    Value none = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
    Index last = Value(LoadOp::create(b, loc, b.getI32Type(), turn, none, /*uniform=*/true));
    bool padded = problem.getQLayout().isPacked();
    auto done = scf::IfOp::create(b, loc, math.value(math.lt(last, 0)), /*withElseRegion=*/true);
    b.setInsertionPointToStart(done.thenBlock());
    if (padded)
      StorePaddingOp::create(b, loc, rowPointer("dq", math.add(slot.row, slot.rows), batch, h), args["dq_row"],
                             math.value(math.sub(slot.written, slot.rows)), problem.getDimQk());
    b.setInsertionPointToStart(done.elseBlock());
  }

  ConfigAttr config;
  int64_t columns;
  bool mayLack, mayBeDone;
};

} // namespace

void attn::writePrepare(ProblemOp problem, KernelOp kernel) { PrepareKernel(problem, kernel).build(); }

void attn::writeRoundSums(ProblemOp problem, KernelOp kernel, int64_t columns, bool clearedByKeys, bool mayBeDone) {
  RoundSumsKernel(problem, kernel, columns, clearedByKeys, mayBeDone).build();
}
