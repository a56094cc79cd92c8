// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays of which a backward pass computes gradients, and the tensors that there are for it.
//
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace attn;
using T = ProblemTensor;

std::string attn::gradientOf(const ScoreOperand &array) { return "d" + array.name; }
std::string attn::gradientBefore(const ScoreOperand &array) { return "before_" + gradientOf(array); }

void attn::addGradients(BackwardOp backward, std::vector<ProblemTensor> &list) {
  for (const ScoreOperand &array : backward.getDifferentiatedArrays()) {
    T gradient = tensorOf(array); // contiguous, too
    gradient.name = gradientOf(array);
    gradient.role = T::Result;
    if (backward.getProblemOp().getOfHeads()) // as the array
      std::replace(gradient.axes.begin(), gradient.axes.end(), T::Heads, T::AllHeads);
    list.push_back(gradient);
    if (backward.getAddArrayGrads()) {
      gradient.name = gradientBefore(array), gradient.role = T::Operand;
      list.push_back(std::move(gradient));
    }
  }
}

SmallVector<ScoreOperand> BackwardOp::getDifferentiatedArrays() {
  SmallVector<ScoreOperand> learned;
  if (std::optional<ArrayAttr> names = getRequiresGrad())
    for (ScoreOperand &array : scoreOperands(getProblemOp()))
      if (llvm::is_contained(*names, StringAttr::get(getContext(), array.name)))
        learned.push_back(std::move(array));
  return learned;
}

LogicalResult attn::verifyDifferentiatedArrays(BackwardOp backward) {
  if (!backward.getRequiresGrad())
    return success();
  ProblemOp problem = backward.getProblemOp();
  auto refuse = [&](const char *expected, const auto &got) -> LogicalResult {
    InFlightDiagnostic error = backward.emitOpError("expected ") << expected << ", got: " << got;
    error.attachNote(problem.getLoc()) << "problem declared here";
    return error;
  };
  llvm::StringSet<> asked;
  for (auto name : backward.getRequiresGrad()->getAsRange<StringAttr>()) { // C6
    bool known = llvm::any_of(scoreOperands(problem), [&](const ScoreOperand &array) { return array.name == name; });
    if (!known || !asked.insert(name).second)
      return refuse("names of arrays of score modifiers or sinks in `requires_grad`, each once", name);
  }
  if (problem.getQLayout().hasPieces()) // C8
    for (const ScoreOperand &array : backward.getDifferentiatedArrays())
      if (problem.isSinkArray(array))
        return refuse("arrays of score modifiers in `requires_grad` with layout(thd pieces)", "sinks");
  llvm::StringSet<> taken;
  for (const ProblemTensor &tensor : tensorsOf(backward))
    if (!taken.insert(tensor.name).second)
      return refuse("another name for an array: a gradient has the name of another tensor", tensor.name);
  return success();
}
