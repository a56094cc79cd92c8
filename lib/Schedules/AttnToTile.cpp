// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers attn.problem, attn.backward and attn.segments to kernels through their schedules.
//
#include "Schedules/Common/Rules.h"
#include "Schedules/Link.h"
#include "Schedules/Metadata/GatherRows.h"
#include "Schedules/Metadata/SegmentsKernel.h"
#include "Schedules/Sparse/Lowerings.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILE
#include "attn/Schedules/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
struct ConvertAttnToTilePass : attn::impl::ConvertAttnToTileBase<ConvertAttnToTilePass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto written = module->getAttrOfType<TargetAttr>(targetAttrName);
    if (!written) {
      module.emitError("expected a target, which attn-choose-schedule writes on a module, got: none");
      return signalPassFailure();
    }
    TargetInfo target = *TargetInfo::get(written.getFamily(), written.getChip());
    std::vector<LinkedProgram> programs; // from ops that are replaced below
    for (auto program : module.getOps<attn::ProgramOp>()) {
      FailureOr<LinkedProgram> linked = link(program);
      if (failed(linked))
        return signalPassFailure();
      programs.push_back(std::move(*linked));
    }
    llvm::StringSet<> called = calleesOf(module);
    llvm::StringMap<program::DefOp> definitions;
    llvm::SmallVector<program::DefOp> unused; // of private callees, once they are inlined
    auto define = [&](mlir::Operation *op, const ProgramBuilder &program) {
      definitions[SymbolTable::getSymbolName(op)] = program.getProgram();
      if (SymbolTable::getSymbolVisibility(op) == SymbolTable::Visibility::Private)
        unused.push_back(program.getProgram());
    };
    for (BackwardOp backward : llvm::make_early_inc_range(module.getOps<BackwardOp>()))
      if (failed(convert(backward, target, define)))
        return signalPassFailure();
    for (ProblemOp problem : llvm::make_early_inc_range(module.getOps<ProblemOp>())) {
      if (problem.isPrivate() && !called.contains(problem.getSymName())) // only described, for use by others
        problem.erase();
      else if (failed(convert(problem, target, define)))
        return signalPassFailure();
    }
    for (SegmentsOp segments : llvm::make_early_inc_range(module.getOps<SegmentsOp>())) {
      ProgramBuilder program(segments, target.name);
      writeSegments(segments, program, target);
      program.finish(segments);
      segments.erase();
    }
    for (attn::GatherRowsOp rows : llvm::make_early_inc_range(module.getOps<attn::GatherRowsOp>())) {
      ProgramBuilder program(rows, target.name);
      writeGatherRows(rows, program, target);
      define(rows, program);
      program.finish(rows);
      rows.erase();
    }
    // A kernel has the name of its op and comes before it, so that ops which name others are converted before those.
    auto computations = llvm::to_vector(module.getOps<ComputationInterface>());
    std::stable_partition(computations.begin(), computations.end(),
                          [](ComputationInterface op) { return isa<SymbolUserOpInterface>(op.getOperation()); });
    for (ComputationInterface op : computations) {
      StringRef name = SymbolTable::getSymbolName(op);
      if (SymbolTable::getSymbolVisibility(op) == SymbolTable::Visibility::Private && !called.contains(name))
        continue; // only described, for use by others
      ProgramBuilder program(op, target.name);
      if (failed(writeComputation(op, program, target)))
        return signalPassFailure();
      define(op, program);
      program.finish(op);
    }
    for (LinkedProgram &program : programs) {
      inlineCalls(program, [&](StringRef callee) { return definitions.lookup(callee); });
      program.op.erase();
    }
    for (program::DefOp definition : unused)
      definition.erase();
    // Backward ops name their forward ops, which therefore live until all are converted.
    for (ComputationInterface op : llvm::make_early_inc_range(module.getOps<ComputationInterface>()))
      op.erase();
    module->removeAttr(targetAttrName); // kernels have targets of their own
  }

  /// Checks that the schedule is one that attn-choose-schedule sets.
  static LogicalResult check(Computation of, Attribute schedule, const TargetInfo &target) {
    Operation *op = of.getOperation();
    if (!schedule)
      return op->emitOpError("expected a schedule, which attn-choose-schedule writes, got: none");
    if (std::optional<std::string> fault = faultOfSchedule(of))
      return op->emitOpError(*fault);
    if (Attribute whole = scheduleOf(of, schedule)->complete(of, target, schedule); whole != schedule)
      return op->emitOpError("expected a schedule as attn-choose-schedule completes it, ")
             << whole << ", got: " << schedule;
    if (std::optional<std::string> refusal = refusalOfSchedule(of, target))
      return op->emitOpError(*refusal);
    return verifyArrayNames(of);
  }

  using Define = llvm::function_ref<void(mlir::Operation *, const ProgramBuilder &)>;

  LogicalResult convert(BackwardOp backward, const TargetInfo &target, Define define) {
    Attribute schedule = backward.getScheduleAttr();
    if (failed(check(backward, schedule, target)))
      return failure();
    ProgramBuilder program(backward, target.name);
    Lowering lowering{program, target, getOperation(), std::nullopt};
    scheduleOf(backward, schedule)->lower(backward, schedule, lowering);
    define(backward, program);
    program.finish(backward);
    backward.erase();
    return success();
  }

  LogicalResult convert(ProblemOp problem, const TargetInfo &target, Define define) {
    Attribute schedule = problem.getScheduleAttr();
    if (failed(check(problem, schedule, target)))
      return failure();
    ProgramBuilder program(problem, target.name);
    SegmentsOp segments = problem.getSegments() ? expandSegments(problem) : SegmentsOp();
    if (segments)
      writeSegments(segments, program, target, problem);
    Lowering lowering{program, target, getOperation(), std::nullopt};
    scheduleOf(problem, schedule)->lower(problem, schedule, lowering);
    if (segments && problem.getSinkAttr() && problem.hasLse())
      writeSinks(problem, program, segments, target.generic());
    define(problem, program);
    program.finish(problem);
    if (segments)
      segments.erase();
    problem.erase();
    return success();
  }
};
} // namespace
