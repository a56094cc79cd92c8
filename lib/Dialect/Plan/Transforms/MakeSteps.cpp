// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/Transforms/Passes.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

namespace attn::plan {
#define GEN_PASS_DEF_PLANMAKESTEPS
#include "attn/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace attn::plan

using namespace mlir;
using namespace attn::plan;

namespace {
/// Appends steps to a plan. Each rank computes some heads for the rows of its group (all heads of its own rows if
/// groups have one rank), so that queries and keys are lists: its own first, then what its neighbours sent.
class Steps {
public:
  Steps(DefOp plan, int64_t group)
      : b(OpBuilder::atBlockEnd(&plan.getBody().front())), loc(plan.getLoc()), group(group),
        groups(plan.getRanks() / group), backward(plan.getBackward()) {
    Value localQ = local(Kind::q), localKv = local(Kind::kv);
    like[0] = localQ, like[1] = localKv;
    if (group == 1) {
      queries = {localQ}, keys = {localKv};
      return;
    }
    SmallVector<Value> arrivals;
    for (int64_t round = 1; round < group; ++round)
      for (Value rows : like)
        arrivals.push_back(exchange(rows, {.offset = round, .inGroup = true, .byHeads = true}));
    queries.push_back(HeadsOp::create(b, loc, localQ.getType(), localQ, group));
    keys.push_back(HeadsOp::create(b, loc, localKv.getType(), localKv, group));
    for (auto [index, arrival] : llvm::enumerate(arrivals))
      (index % 2 ? keys : queries).push_back(wait(arrival));
  }

  /// All rounds are begun at once, and the group's own keys are attended to meanwhile.
  void gather(Which which) {
    SmallVector<SmallVector<Value>> arrivals;
    for (int64_t round = 1; round < groups; ++round)
      arrivals.push_back(exchangeAll(keys, {.offset = round * group, .which = which}));
    SmallVector<SmallVector<Value>> parts = startSums(attend(keys));
    for (auto [index, arrival] : llvm::enumerate(arrivals)) {
      SmallVector<Value> gradients = attend(waitAll(arrival));
      if (backward)
        addTo(parts, exchangeAll(gradients, {.offset = -int64_t(index + 1) * group}));
    }
    finish(parts);
  }

  /// Each rank passes on what it received in the round before, while it attends to it.
  void ring() {
    SmallVector<SmallVector<Value>> parts;
    SmallVector<Value> passing = keys, passedOn;
    for (int64_t round = 0; round < groups; ++round) {
      bool isLast = round == groups - 1;
      SmallVector<Value> onward;
      if (!isLast)
        onward = exchangeAll(passing, {.offset = group, .which = Which::all_if_needed});
      SmallVector<Value> gradients = attend(passing);
      if (round == 0) {
        parts = startSums(gradients);
      } else if (backward) {
        if (!passedOn.empty()) // the gradients of these keys from the ranks that had them before
          for (auto [gradient, before, of] : llvm::zip_equal(gradients, passedOn, passing))
            gradient = sum(of, {gradient, wait(before)});
        passedOn.clear();
        for (auto [index, gradient] : llvm::enumerate(gradients)) {
          Value sent = isLast ? Value() : onward[index];
          if (sent)
            passedOn.push_back(exchange(gradient, {.offset = group, .ifSent = sent}));
          parts[index].push_back(exchange(gradient, {.offset = -round * group, .unlessSent = sent}));
        }
      }
      if (!isLast)
        passing = waitAll(onward);
    }
    finish(parts);
  }

private:
  struct Exchange {
    int64_t offset;
    bool inGroup = false, byHeads = false;
    Which which = Which::all;
    Value ifSent = {}, unlessSent = {};
  };

  Type rowsOf(Kind kind) { return RowsType::get(b.getContext(), kind); }
  Value local(Kind kind) { return LocalOp::create(b, loc, rowsOf(kind)); }
  Value exchange(Value rows, Exchange how) {
    auto arrival = ArrivalType::get(b.getContext(), cast<RowsType>(rows.getType()).getKind());
    return ExchangeOp::create(b, loc, arrival, rows, b.getI64IntegerAttr(how.offset),
                              how.inGroup ? b.getI64IntegerAttr(group) : IntegerAttr(),
                              how.byHeads ? b.getUnitAttr() : UnitAttr(), WhichAttr::get(b.getContext(), how.which),
                              how.ifSent, how.unlessSent);
  }
  SmallVector<Value> exchangeAll(ArrayRef<Value> rows, Exchange how) {
    return llvm::map_to_vector(rows, [&](Value each) { return exchange(each, how); });
  }
  Value wait(Value arrival) {
    return WaitOp::create(b, loc, rowsOf(cast<ArrivalType>(arrival.getType()).getKind()), arrival);
  }
  SmallVector<Value> waitAll(ArrayRef<Value> arrivals) {
    return llvm::map_to_vector(arrivals, [&](Value each) { return wait(each); });
  }
  Value sum(Value of, ArrayRef<Value> parts) { return SumOp::create(b, loc, rowsOf(Kind::dkv), of, parts); }

  /// Attention to keys, or gradients of queries and of these keys; returns the latter.
  SmallVector<Value> attend(ArrayRef<Value> to) {
    if (!backward) {
      results = llvm::to_vector_of<Value>(AttendOp::create(b, loc, queries, to, results).getPartials());
      return {};
    }
    auto grads = GradsOp::create(b, loc, queries, to, results);
    results = llvm::to_vector_of<Value>(grads.getDq());
    return llvm::to_vector_of<Value>(grads.getDkv());
  }

  /// The gradients of each of the group's keys, of which more arrive.
  static SmallVector<SmallVector<Value>> startSums(ArrayRef<Value> gradients) {
    return llvm::map_to_vector(gradients, [](Value own) { return SmallVector<Value>{own}; });
  }
  static void addTo(SmallVector<SmallVector<Value>> &parts, ArrayRef<Value> arrivals) {
    for (auto [list, arrival] : llvm::zip_equal(parts, arrivals))
      list.push_back(arrival);
  }
  Value summed(Value of, ArrayRef<Value> ownAndArrivals) {
    if (ownAndArrivals.size() == 1 && group > 1)
      return ownAndArrivals[0];
    SmallVector<Value> parts = {ownAndArrivals[0]};
    llvm::append_range(parts, waitAll(ownAndArrivals.drop_front()));
    return sum(of, parts);
  }

  /// Results of neighbours' rows go home.
  SmallVector<Value> sendHome(ArrayRef<Value> each) {
    SmallVector<Value> found = {each[0]};
    for (int64_t round = 1; round < group; ++round)
      found.push_back(exchange(each[round], {.offset = -round, .inGroup = true}));
    return found;
  }

  void finish(ArrayRef<SmallVector<Value>> parts) {
    SmallVector<Value> gradients;
    for (auto [of, list] : llvm::zip(keys, parts))
      gradients.push_back(summed(of, list));
    SmallVector<Value> stored = {results[0]};
    if (group > 1) {
      SmallVector<Value> home = sendHome(results);
      if (backward)
        gradients = sendHome(gradients);
      SmallVector<Value> joined = {home[0]};
      llvm::append_range(joined, waitAll(ArrayRef(home).drop_front()));
      stored = {JoinHeadsOp::create(b, loc, home[0].getType(), like[0], joined)};
      if (backward)
        gradients = {summed(like[1], gradients)};
    }
    llvm::append_range(stored, gradients);
    StoreOp::create(b, loc, stored);
  }

  OpBuilder b;
  Location loc;
  int64_t group, groups;
  bool backward;
  Value like[2]; ///< the rank's own queries and keys, with all heads
  SmallVector<Value> queries, keys, results;
};

struct MakeSteps : attn::plan::impl::PlanMakeStepsBase<MakeSteps> {
  using PlanMakeStepsBase::PlanMakeStepsBase;

  void runOnOperation() final {
    DefOp plan = getOperation();
    if (!plan.getBody().front().empty())
      return;
    if (strategy != "gather" && strategy != "cast" && strategy != "ring") {
      plan.emitOpError("expected a strategy `gather`, `cast` or `ring`, got: ") << strategy;
      return signalPassFailure();
    }
    int64_t ranks = plan.getRanks(), group = headGroup == 0 ? ranks : int64_t(headGroup);
    if (group < 1 || ranks % group) {
      plan.emitOpError() << "expected a head-group that divides " << ranks << " ranks, got: " << group;
      return signalPassFailure();
    }
    Steps steps(plan, group);
    if (strategy == "ring")
      steps.ring();
    else
      steps.gather(strategy == "cast" ? Which::needed : Which::all);
  }
};
} // namespace

LogicalResult attn::plan::makeSteps(DefOp plan, StringRef options) {
  std::unique_ptr<Pass> pass = createPlanMakeSteps();
  if (failed(pass->initializeOptions(options,
                                     [&](const Twine &message) -> LogicalResult { return plan.emitOpError(message); })))
    return failure();
  PassManager passes(plan.getContext(), DefOp::getOperationName());
  passes.addPass(std::move(pass));
  return passes.run(plan);
}

std::vector<std::string> attn::plan::stepsFor(int64_t ranks, int64_t heads) {
  std::vector<std::string> steps;
  for (int64_t group : {1, 2, 4, 8}) {
    if (group > 1 && (group >= ranks || ranks % group || group > heads))
      continue;
    for (StringRef strategy : {"cast", "ring", "gather"})
      steps.push_back(("strategy=" + strategy + (group > 1 ? " head-group=" + Twine(group) : Twine())).str());
  }
  if (ranks <= heads)
    steps.push_back("head-group=0");
  return steps;
}
