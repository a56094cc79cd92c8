// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

namespace attn::plan {
#define GEN_PASS_DEF_PLANMAKESTEPS
#include "attn/Dialect/Plan/Transforms/Passes.h.inc"
} // namespace attn::plan

using namespace mlir;
using namespace attn::plan;

namespace {
/// Appends steps to a plan.
class Steps {
public:
  explicit Steps(DefOp plan)
      : b(OpBuilder::atBlockEnd(&plan.getBody().front())), loc(plan.getLoc()), ranks(plan.getRanks()),
        backward(plan.getBackward()) {
    q = local(Kind::q), kv = local(Kind::kv);
  }

  /// All rounds are begun at once, and the rank's own keys are attended to meanwhile.
  void gather(Which which) {
    SmallVector<Value> arrivals, gradients;
    for (int64_t round = 1; round < ranks; ++round)
      arrivals.push_back(exchange(kv, round, which));
    Value own = attend(kv);
    for (Value arrival : arrivals) {
      Value gradient = attend(wait(arrival));
      if (backward)
        gradients.push_back(exchange(gradient, -int64_t(gradients.size() + 1), Which::all));
    }
    finish(own, gradients);
  }

  /// Each rank passes on what it received in the round before, while it attends to it.
  void ring() {
    SmallVector<Value> homeward;
    Value keys = kv, own, passedOn;
    for (int64_t round = 0; round < ranks; ++round) {
      int64_t hops = ranks - 1 - round;
      Value onward = hops ? exchange(keys, 1, Which::onward, hops) : Value();
      Value gradient = attend(keys);
      if (round == 0) {
        own = gradient;
      } else if (backward) {
        if (passedOn) // the gradients of these keys from the ranks that had them before
          gradient = sum(keys, {gradient, wait(passedOn)});
        passedOn = hops ? exchange(gradient, 1, Which::onward, hops) : Value();
        homeward.push_back(exchange(gradient, -round, Which::all, 0, onward));
      }
      if (hops)
        keys = wait(onward);
    }
    finish(own, homeward);
  }

private:
  Value local(Kind kind) { return LocalOp::create(b, loc, RowsType::get(b.getContext(), kind)); }
  Value exchange(Value rows, int64_t offset, Which which, int64_t hops = 0, Value unless = {}) {
    auto arrival = ArrivalType::get(b.getContext(), cast<RowsType>(rows.getType()).getKind());
    return ExchangeOp::create(b, loc, arrival, rows, b.getI64IntegerAttr(offset), /*within=*/IntegerAttr(),
                              WhichAttr::get(b.getContext(), which), hops ? b.getI64IntegerAttr(hops) : IntegerAttr(),
                              unless);
  }
  Value wait(Value arrival) {
    auto rows = RowsType::get(b.getContext(), cast<ArrivalType>(arrival.getType()).getKind());
    return WaitOp::create(b, loc, rows, arrival);
  }
  Value sum(Value like, ArrayRef<Value> parts) {
    return SumOp::create(b, loc, RowsType::get(b.getContext(), Kind::dkv), like, parts);
  }

  /// Attention to keys, or gradients of queries and of these keys; returns the latter.
  Value attend(Value keys) {
    auto rowsOf = [&](Kind kind) -> Type { return RowsType::get(b.getContext(), kind); };
    if (!backward) {
      result = AttendOp::create(b, loc, rowsOf(Kind::partial), q, keys, result);
      return {};
    }
    auto grads = GradsOp::create(b, loc, rowsOf(Kind::dq), TypeRange(rowsOf(Kind::dkv)), q, keys, result);
    result = grads.getDq();
    return grads.getDkv().front();
  }

  void finish(Value own, ArrayRef<Value> homeward) {
    if (!backward) {
      StoreOp::create(b, loc, result);
      return;
    }
    SmallVector<Value> parts = {own};
    for (Value arrival : homeward)
      parts.push_back(wait(arrival));
    StoreOp::create(b, loc, ValueRange{result, sum(kv, parts)});
  }

  OpBuilder b;
  Location loc;
  int64_t ranks;
  bool backward;
  Value q, kv, result;
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
    Steps steps(plan);
    if (strategy == "ring")
      steps.ring();
    else
      steps.gather(strategy == "cast" ? Which::needed : Which::all);
  }
};
} // namespace
