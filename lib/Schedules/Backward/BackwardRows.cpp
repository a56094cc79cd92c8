// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The row-wise kernels of a backward pass: the preprocess kernel (row statistics), and the postprocess kernel (dQ from
// its float32 accumulator).
//
#include "BackwardBody.h"
#include "GradientsKernel.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static_assert(semaphoreRows == 64, "as `tile.preprocess` clears the semaphores");

namespace {

/// Row statistics: one CTA for each tile of rows.
class PreprocessKernel : BackwardBody {
public:
  PreprocessKernel(ProblemOp problem, KernelOp kernel, int64_t exponent)
      : BackwardBody(problem, kernel), exponent(exponent) {}

  void build() {
    WorkTile workTile = findWorkTile(/*keys=*/false, statisticsTile, Order::EqualCost);
    Index mostRows = rowsOfResidue(workTile.rows, 0); // of any residue
    takeRowsOf(queryResidue, workTile);
    h = math.named(workTile.head, "h");
    // NOTE: in a work tile of padding, `first` counts from the end of another sequence.
    Value firstRow = mul(wide(workTile.number), wide(statisticsTile));
    Value statistics = rowStatisticsPointer(firstRow, h, 0);
    auto statistic = [&](StringRef name) {
      return args.contains(name) ? statisticPointer(name, workTile.row, batch, h) : Value();
    };
    Value o, oRow, grad, gradRow, delta = statistic("delta");
    if (!delta) {
      o = rowPointer("o", workTile.row, batch, h), grad = rowPointer("do", workTile.row, batch, h);
      oRow = rowStrideOf("o"), gradRow = rowStrideOf("do");
    }
    Value lse = statistic("lse"), gradLse = statistic("dlse");
    Index added = dqAccumulatorRow(workTile.row, workTile.first, h);
    Value sum = args.contains("dq_accumulator") ? dqAccumulatorPointer(added) : Value();
    Value semaphore = args.contains("dq_semaphore") ? semaphorePointer(added, h) : Value();
    PreprocessOp::create(b, loc, statistics, statisticsPitch(), o, oRow, grad, gradRow, delta, lse, gradLse,
                         rowStride == 1 ? IntegerAttr() : b.getI64IntegerAttr(rowStride), math.value(workTile.rows),
                         rowStride == 1 ? Value() : math.value(mostRows),
                         delta ? IntegerAttr() : b.getI64IntegerAttr(problem.getDimV()), sum,
                         sum ? b.getI64IntegerAttr(accumulatorColumns(problem.getDimQk())) : IntegerAttr(), semaphore,
                         exponent ? b.getI64IntegerAttr(exponent) : IntegerAttr());
  }

private:
  int64_t exponent; ///< probabilities are scaled by 2^exponent
};

/// Converts the dQ accumulator to dQ: one CTA for each query tile.
class PostprocessKernel : BackwardBody {
public:
  PostprocessKernel(ProblemOp problem, KernelOp kernel, PostprocessParameters parameters)
      : BackwardBody(problem, kernel), schedule(kernel.getSchedule()), parameters(parameters),
        mayLackKvTiles(parameters.clearedByKvTiles && !problem.getKLayout().isPacked()) {}

  void build() {
    WorkTile workTile = findWorkTile(/*keys=*/false, schedule.getQTile(), Order::Reversed);
    takeRowsOf(queryResidue, workTile);
    h = math.named(workTile.head, "h");
    auto store = [&] {
      firstQuery = findFirstQuery();
      Value dst = rowPointer("dq", workTile.row, batch, h);
      Index added = dqAccumulatorRow(workTile.row, workTile.first, h);
      Value semaphore = args.contains("dq_semaphore") ? semaphorePointer(added, h) : Value();
      Value before = args.contains("before_dq") ? rowPointer("before_dq", workTile.row, batch, h) : Value();
      OpBuilder::InsertionGuard guard(b);
      if (parameters.mayBeStored)
        skipStoredRows(semaphore, workTile);
      Index rows = mayLackKvTiles ? math.select(math.lt(0, arg("seqlen_kv")), workTile.rows, 0) : workTile.rows;
      PostprocessOp::create(b, loc, dst, rowStrideOf("dq"), dqAccumulatorPointer(added), math.value(rows),
                            math.value(workTile.written), APFloat(problem.scaleOrDefault()), problem.getDimQk(),
                            parameters.columns, parameters.fromRegisters, semaphore, before,
                            before ? args["before_dq_row"] : Value());
    };
    if (!problem.getQLayout().isPacked())
      return store();
    auto pad = [&] {
      if (problem.getKeepPadding())
        return;
      StorePaddingOp::create(b, loc, rowPointer("dq", workTile.row, batch, h), rowStrideOf("dq"),
                             math.value(workTile.written), problem.getDimQk());
    };
    branchOnPadding(workTile.rows, pad, store);
  }

private:
  /// Emits a branch for query tiles whose rows the sole writer has stored already: only their padding is written. Code
  /// emitted afterwards is in the other branch and reads the accumulator.
  void skipStoredRows(Value semaphore, const WorkTile &workTile) {
    Value none = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
    Index last = Value(LoadOp::create(b, loc, b.getI32Type(), semaphore, none, /*uniform=*/true));
    bool padded = problem.getQLayout().isPacked();
    auto isStored = scf::IfOp::create(b, loc, math.value(math.lt(last, 0)), /*withElseRegion=*/true);
    b.setInsertionPointToStart(isStored.thenBlock());
    if (padded)
      StorePaddingOp::create(
          b, loc, rowPointer("dq", math.add(workTile.row, math.mul(workTile.rows, rowStride)), batch, h),
          rowStrideOf("dq"), math.value(math.sub(workTile.written, workTile.rows)), problem.getDimQk());
    b.setInsertionPointToStart(isStored.elseBlock());
  }

  ScheduleInterface schedule;
  PostprocessParameters parameters;
  bool mayLackKvTiles;
};

} // namespace

void attn::writePreprocess(ProblemOp problem, KernelOp kernel, int64_t exponent) {
  PreprocessKernel(problem, kernel, exponent).build();
}

void attn::writePostprocess(ProblemOp problem, KernelOp kernel, PostprocessParameters parameters) {
  PostprocessKernel(problem, kernel, parameters).build();
}
