// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The row-wise kernels of a backward pass: the preprocess kernel (row statistics), and the postprocess kernel (dQ from
// its float32 accumulator).
//
#include "BackwardBody.h"
#include "BackwardKernel.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static_assert(rowsOfOrderCounter == 64, "as `tile.preprocess` clears their counters");

namespace {

/// Row statistics: one CTA for each tile of rows.
class PreprocessKernel : BackwardBody {
public:
  PreprocessKernel(ProblemOp problem, KernelOp kernel, int64_t exponent)
      : BackwardBody(problem, kernel), exponent(exponent) {}

  void build() {
    Slot slot = slotOf(/*keys=*/false, statisticsTile, Order::Alike);
    h = math.named(slot.head, "h");
    // NOTE: in a work tile of padding, `first` counts from the end of another sequence.
    Value firstRow = mul(wide(slot.number), wide(statisticsTile));
    Value statistics = statisticsPointer(firstRow, h, 0);
    Value o = rowPointer("o", slot.row, batch, h), grad = rowPointer("do", slot.row, batch, h);
    Value lse = statisticPointer("lse", slot.row, batch, h), gradLse;
    if (args.contains("dlse"))
      gradLse = statisticPointer("dlse", slot.row, batch, h);
    Index added = sumRow(slot.row, h);
    Value sum = args.contains("dq_accumulator") ? sumPointer(added) : Value();
    Value turns = args.contains("dq_semaphore") ? turnPointer(added, h) : Value();
    PreprocessOp::create(b, loc, statistics, statisticsPitch(), o, args["o_row"], grad, args["do_row"], lse, gradLse,
                         math.value(slot.rows), problem.getDimV(), sum,
                         sum ? b.getI64IntegerAttr(sumColumns(problem.getDimQk())) : IntegerAttr(), turns,
                         exponent ? b.getI64IntegerAttr(exponent) : IntegerAttr());
  }

private:
  int64_t exponent; ///< probabilities are scaled by 2^exponent
};

/// Converts the dQ accumulator to dQ: one CTA for each query tile.
class PostprocessKernel : BackwardBody {
public:
  PostprocessKernel(ProblemOp problem, KernelOp kernel, RoundedSums sums)
      : BackwardBody(problem, kernel), schedule(kernel.getSchedule()), sums(sums),
        mayLack(sums.clearedByKeys && !problem.getKLayout().isPacked()) {}

  void build() {
    Slot slot = slotOf(/*keys=*/false, schedule.getQTile(), Order::LastFirst);
    h = math.named(slot.head, "h");
    auto store = [&] {
      firstQuery = findFirstQuery();
      Value dst = rowPointer("dq", slot.row, batch, h);
      Index added = sumRow(slot.row, h);
      Value turn = args.contains("dq_semaphore") ? turnPointer(added, h) : Value();
      OpBuilder::InsertionGuard guard(b);
      if (sums.mayBeDone)
        leaveWhatIsDone(turn, slot);
      Index rows = mayLack ? math.select(math.lt(0, arg("seqlen_kv")), slot.rows, 0) : slot.rows;
      PostprocessOp::create(b, loc, dst, args["dq_row"], sumPointer(added), math.value(rows), math.value(slot.written),
                            APFloat(problem.scaleOrDefault()), problem.getDimQk(), sums.columns, sums.held, turn);
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
  /// Emits code for rows that the sole writer has stored already: only their padding is written. What follows handles
  /// the accumulator.
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

  ScheduleInterface schedule;
  RoundedSums sums;
  bool mayLack;
};

} // namespace

void attn::writePreprocess(ProblemOp problem, KernelOp kernel, int64_t exponent) {
  PreprocessKernel(problem, kernel, exponent).build();
}

void attn::writePostprocess(ProblemOp problem, KernelOp kernel, RoundedSums sums) {
  PostprocessKernel(problem, kernel, sums).build();
}
