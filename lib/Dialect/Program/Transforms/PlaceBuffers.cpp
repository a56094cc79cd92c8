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
/// Numbers of the first and the last step that access a buffer.
struct Life {
  size_t first, last;
  bool meets(const Life &other) const { return first <= other.last && other.first <= last; }
};

struct PlaceBuffersPass : attn::program::impl::PlaceBuffersBase<PlaceBuffersPass> {
  void runOnOperation() final {
    llvm::MapVector<Value, Life> lives = livesOf(getOperation());
    auto buffers = llvm::to_vector(getOperation().getOps<BufferOp>());
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
    size_t number = 0, firstAgain = SIZE_MAX; // the first step that a later call runs
    auto access = [&](Value tensor) {
      auto [life, isFirst] = lives.try_emplace(tensor, Life{number, number});
      life->second.last = number;
    };
    llvm::SmallPtrSet<Value, 8> left, wanted; // by reusable launches, for others
    llvm::SmallPtrSet<Operation *, 8> reusable = reusableLaunches(program);
    for (Operation &step : *program.getBody().begin()) {
      if (auto clear = dyn_cast<ClearOp>(step))
        access(clear.getTensor());
      auto launch = dyn_cast<LaunchOp>(step);
      for (TensorAccess use : launch ? accessesOf(launch) : SmallVector<TensorAccess>()) {
        if (use.argument.reads() || use.argument.writes())
          access(use.tensor);
        if (use.argument.writes() && reusable.contains(launch))
          left.insert(use.tensor);
        if (use.argument.reads() && !reusable.contains(launch))
          wanted.insert(use.tensor);
      }
      bool isStep = launch || isa<ClearOp>(step);
      if (isStep && !reusable.contains(&step))
        firstAgain = std::min(firstAgain, number);
      number += isStep;
    }
    for (auto &[tensor, life] : lives)
      if (left.contains(tensor) && wanted.contains(tensor))
        life = {std::min(life.first, firstAgain), number};
    return lives;
  }
};
} // namespace
