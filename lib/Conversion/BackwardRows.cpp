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
    Slot slot = querySlot(statisticsTile, Order::Alike);
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
  /// `columns`: of the fragments that were added. `clearedByKeys`: by blocks of key tiles, of which there may be none. `rounds`: who completed a sum may
  /// have rounded it.
  RoundSumsKernel(ProblemOp problem, KernelOp kernel, int64_t columns, bool clearedByKeys, bool rounds)
      : BackwardBody(problem, kernel), config(kernel.getConfig()), columns(columns),
        mayLack(clearedByKeys && !problem.getKLayout().isPacked()), rounds(rounds) {}

  void build() {
    Value acc = place("dQ", FragType::get(b.getContext(), config.getQTile(), sumColumns(problem.getDimQk()),
                                          config.getWarps()));
    Slot slot = querySlot(config.getQTile(), Order::LastFirst);
    h = math.named(slot.head, "h");
    auto store = [&] {
      firstQuery = findFirstQuery();
      Value turn = args.contains("dq_turns") ? turnPointer(firstTiledRow(), h, slot.first) : Value();
      if (!rounds)
        return roundSum(acc, slot, turn);
      Index state = math.named(load(turn, 0), "state");
      when(math.le(0, state), [&] { roundSum(acc, slot, turn); });
      if (problem.getQLayout().isPacked())
        when(math.lt(state, 0), [&] { storePadding(slot, slot.rows); });
    };
    if (!problem.getQLayout().isPacked())
      return store();
    writeApart(slot.rows, [&] { storePadding(slot, 0); }, store);
  }

private:
  void roundSum(Value acc, const Slot &slot, Value turn) {
    Value dst = rowPointer("dq", slot.row, batch, h);
    Value sum = sumPointer(firstTiledRow(), h, slot.first);
    auto load = [&] { LoadSumOp::create(b, loc, acc, sum, columns, turn); };
    if (mayLack) {
      ClearOp::create(b, loc, acc);
      when(math.lt(0, arg("seqlen_kv")), load);
    } else {
      load();
    }
    ScaleOp::create(b, loc, acc, b.getF64FloatAttr(problem.scaleOrDefault()));
    StoreOp::create(b, loc, dst, args["dq_row"], acc, math.value(slot.rows), math.value(slot.written), problem.getDimQk());
  }

  /// Behind the first `rows` rows of a slot.
  void storePadding(const Slot &slot, Index rows) {
    StorePaddingOp::create(b, loc, rowPointer("dq", math.add(slot.row, rows), batch, h), args["dq_row"], math.value(math.sub(slot.written, rows)),
                           problem.getDimQk());
  }

  void when(Cond condition, function_ref<void()> body) {
    auto branch = scf::IfOp::create(b, loc, math.value(condition), /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  ConfigAttr config;
  int64_t columns;
  bool mayLack, rounds;
};

} // namespace

void attn::writePrepare(ProblemOp problem, KernelOp kernel) { PrepareKernel(problem, kernel).build(); }

void attn::writeRoundSums(ProblemOp problem, KernelOp kernel, int64_t columns, bool clearedByKeys, bool rounds) {
  RoundSumsKernel(problem, kernel, columns, clearedByKeys, rounds).build();
}
