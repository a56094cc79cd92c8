// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Program/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace attn::program {
#define GEN_PASS_DEF_PLACEBUFFERS
#include "attn/Dialect/Program/Transforms/Passes.h.inc"
} // namespace attn::program

using namespace mlir;
using namespace attn::program;

namespace {
/// Numbers of the first and the last step that access a buffer; steps are numbered in the order of the text.
struct Life {
  size_t first, last;
  bool meets(const Life &other) const { return first <= other.last && other.first <= last; }
};

struct PlaceBuffersPass : attn::program::impl::PlaceBuffersBase<PlaceBuffersPass> {
  void runOnOperation() final {
    llvm::MapVector<Value, Life> lives = livesOf(getOperation());
    SmallVector<BufferOp> buffers;
    getOperation().walk<WalkOrder::PreOrder>([&](BufferOp buffer) { buffers.push_back(buffer); });
    llvm::stable_sort(buffers, [&](BufferOp a, BufferOp b) {
      const Life &x = lives.find(a.getTensor())->second, &y = lives.find(b.getTensor())->second;
      return x.last - x.first > y.last - y.first;
    });
    SmallVector<SmallVector<Life>> places;
    for (BufferOp buffer : buffers) {
      const Life &life = lives.find(buffer.getTensor())->second;
      auto *place = llvm::find_if(
          places, [&](auto &there) { return llvm::none_of(there, [&](Life &o) { return o.meets(life); }); });
      if (place == places.end())
        place = &places.emplace_back();
      place->push_back(life);
      buffer.setPlace(place - places.begin());
    }
  }

private:
  static llvm::MapVector<Value, Life> livesOf(DefOp program) {
    llvm::MapVector<Value, Life> lives;
    Aliases aliases(program);
    llvm::DenseMap<Operation *, Life> steps; // their numbers, and of repeats the last of their bodies
    size_t number = 0;
    auto numberSteps = [&](auto &self, Block &body) -> void {
      for (Operation &op : body) {
        if (isa<TensorOp, TableOp, SizeOp, BufferOp, YieldOp>(op))
          continue;
        size_t first = number++;
        for (Region &inside : op.getRegions())
          self(self, inside.front());
        steps[&op] = {first, isa<RepeatOp>(op) ? number - 1 : first};
      }
    };
    numberSteps(numberSteps, program.getBody().front());
    auto accessOne = [&](Value memory, Operation *step) {
      Life own = steps.find(step)->second;
      for (RepeatOp repeat : repeatsAround(step)) // memory from outside of it is there in all iterations
        if (!repeat.getBody().isAncestor(memory.getParentRegion()))
          own = steps.find(repeat)->second;
      auto [life, isFirst] = lives.try_emplace(memory, own);
      life->second = {std::min(life->second.first, own.first), std::max(life->second.last, own.last)};
    };
    auto access = [&](Value value, Operation *step) {
      for (Value memory : aliases.of(value))
        accessOne(memory, step);
    };
    llvm::SmallPtrSet<Value, 8> left, wanted; // by reusable launches, for others
    llvm::SmallPtrSet<Operation *, 8> reusable = reusableLaunches(program);
    SmallVector<ExchangeOp> exchanges;
    size_t firstAgain = SIZE_MAX; // the first step that a later call runs
    program.walk<WalkOrder::PreOrder>([&](Operation *op) {
      auto step = steps.find(op);
      if (step == steps.end())
        return;
      if (!reusable.contains(op))
        firstAgain = std::min(firstAgain, step->second.first);
      auto launch = dyn_cast<LaunchOp>(op);
      for (TensorAccess use : launch ? accessesOf(launch) : SmallVector<TensorAccess>()) {
        if (use.argument.reads() || use.argument.writes())
          access(use.tensor, op);
        if (use.argument.writes() && reusable.contains(op))
          left.insert(use.tensor);
        if (use.argument.reads() && !reusable.contains(op))
          wanted.insert(use.tensor);
      }
      if (!launch)
        for (Value value : op->getOperands())
          access(value, op);
      if (auto exchange = dyn_cast<ExchangeOp>(op))
        exchanges.push_back(exchange);
      if (auto wait = dyn_cast<WaitOp>(op)) // until then the sources are read
        for (ExchangeOp exchange : exchanges)
          if (llvm::any_of(aliases.of(exchange.getDestination()),
                           [&](Value memory) { return llvm::is_contained(aliases.of(wait.getDestination()), memory); }))
            access(exchange.getSource(), op);
    });
    for (auto &[memory, life] : lives)
      if (left.contains(memory) && wanted.contains(memory))
        life = {std::min(life.first, firstAgain), number};
    return lives;
  }
};
} // namespace
