// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What values of a program are, and what launches do with them.
//
#include "Verifier.h"

using namespace mlir;
using namespace attn::program;

TensorInfo TensorInfo::of(Value tensor) {
  StringAttr name; // as it is carried
  for (llvm::SmallPtrSet<Value, 4> seen; seen.insert(tensor).second;) {
    if (auto given = tensor.getDefiningOp<TensorOp>())
      return {name ? name : given.getNameAttr(), given.getElement(), given.getExtents(),
              name ? std::nullopt : std::optional(given.getRole())};
    if (auto buffer = tensor.getDefiningOp<BufferOp>())
      return {name ? name : buffer.getNameAttr(), buffer.getElement(), buffer.getExtents(), std::nullopt};
    std::optional<Carried> carried = Carried::of(tensor);
    if (!carried)
      break;
    if (!name)
      name = cast<StringAttr>(carried->repeat.getNames()[carried->number]);
    tensor = carried->repeat.getInitial()[carried->number];
  }
  MLIRContext *context = tensor.getContext(); // of another dialect, or of itself, which the program refuses
  return {StringAttr::get(context, "?"), NoneType::get(context), ArrayAttr::get(context, {}), std::nullopt};
}

std::optional<Carried> Carried::of(Value value) {
  if (auto result = dyn_cast<OpResult>(value))
    if (auto repeat = dyn_cast<RepeatOp>(result.getOwner()))
      return Carried{repeat, result.getResultNumber()};
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto repeat = dyn_cast<RepeatOp>(argument.getOwner()->getParentOp()))
      return Carried{repeat, argument.getArgNumber()};
  return std::nullopt;
}

Aliases::Aliases(DefOp program) {
  SmallVector<RepeatOp> repeats;
  program.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto repeat = dyn_cast<RepeatOp>(op))
      repeats.push_back(repeat);
    else if (isa<TensorOp, BufferOp>(op))
      memory[op->getResult(0)].push_back(op->getResult(0));
  });
  auto add = [&](Value to, Value from) {
    bool changed = false;
    for (Value one : SmallVector<Value, 1>(memory[from]))
      if (!llvm::is_contained(memory[to], one))
        memory[to].push_back(one), changed = true;
    return changed;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (RepeatOp repeat : repeats)
      for (auto [argument, result, initial, next] :
           llvm::zip_equal(repeat.getBody().getArguments(), repeat.getLast(), repeat.getInitial(),
                           repeat.getBody().front().getTerminator()->getOperands())) {
        changed |= add(argument, initial);
        changed |= add(argument, next);
        changed |= add(result, argument);
      }
  }
}

ArrayRef<Value> Aliases::of(Value value) const { return memory.find(value)->second; }

SmallVector<RepeatOp, 2> attn::program::repeatsAround(Operation *op) {
  SmallVector<RepeatOp, 2> repeats;
  for (Operation *parent = op->getParentOp(); parent && !isa<DefOp>(parent); parent = parent->getParentOp())
    if (auto repeat = dyn_cast<RepeatOp>(parent))
      repeats.push_back(repeat);
  return repeats;
}

SmallVector<TensorAccess> attn::program::accessesOf(LaunchOp launch) {
  SmallVector<TensorAccess> accesses;
  auto tensor = launch.getTensors().begin();
  for (auto [number, argument] : llvm::enumerate(launch.getArguments().getAsRange<ArgumentAttr>()))
    if (argument.hasTensor())
      accesses.push_back({*tensor++, argument, unsigned(number)});
  return accesses;
}

llvm::SmallPtrSet<Operation *, 8> attn::program::reusableLaunches(DefOp program) {
  llvm::SmallPtrSet<Operation *, 8> reusable;
  for (auto launch : program.getOps<LaunchOp>())
    reusable.insert(launch);
  auto isLeftByThese = [&](Value buffer) { // every step that writes it is one of them
    return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
      auto launch = dyn_cast<LaunchOp>(user);
      auto writes = [&](const TensorAccess &use) { return use.tensor == buffer && use.argument.writes(); };
      return launch && (reusable.contains(launch) || llvm::none_of(accessesOf(launch), writes));
    });
  };
  auto isReusable = [&](LaunchOp launch) {
    return llvm::all_of(accessesOf(launch), [&](const TensorAccess &use) {
      std::optional<Role> role = TensorInfo::of(use.tensor).role;
      bool accesses = use.argument.reads() || use.argument.writes();
      return !accesses || use.argument.getEffect() == Effect::scratch ||
             (role ? *role == Role::array : isLeftByThese(use.tensor));
    });
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto launch : program.getOps<LaunchOp>())
      if (reusable.contains(launch) && !isReusable(launch))
        changed = reusable.erase(launch);
  }
  return reusable;
}

std::string attn::program::sizeOfLead(TensorOp tensor) {
  return tensor.getLead() == Lead::all ? "id_rows" : (tensor.getName() + "_rows").str();
}
