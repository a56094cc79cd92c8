// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RankSteps.h"
#include "llvm/ADT/StringSet.h"
#include <fmt/format.h>

using namespace attn;

std::string attn::textOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, mlir::OpPrintingFlags().assumeVerified());
  return text + "\n";
}

rt::Result<std::shared_ptr<PlanKernels>> PlanKernels::create(ProblemOp problem, BackwardOp backward,
                                                             const Target &target) {
  std::shared_ptr<PlanKernels> kernels(new PlanKernels);
  kernels->target = target;
  if (std::string why = plan::whyNoPieces(problem); !why.empty())
    return rt::Error{
        fmt::format("no kernels share the tokens of @{} among ranks: {}", problem.getSymName().str(), why)};
  mlir::OwningOpRef<ProblemOp> part = plan::ofPieces(problem);
  part->setSymName("part");
  mlir::SymbolTable::setSymbolVisibility(*part, mlir::SymbolTable::Visibility::Public);
  part->removeScheduleAttr(), part->removeScheduleReasonAttr(), part->removeNoLseAttr();
  kernels->problem = textOf(*part);
  kernels->isAlike = problem.getModifiers().empty() && !problem.getDropoutAttr() && !problem.getSinkAttr() &&
                     problem.getMask().operands().empty() && distinctHeads(problem.getMask(), problem.getHeads()) == 1;
  kernels->kvHeads = problem.getKvHeads();
  kernels->queryHeadBytes = 4 * int64_t(problem.getHeads()) / kernels->kvHeads * int64_t(problem.getDimQk());
  if (backward) {
    mlir::OwningOpRef<BackwardOp> of = backward.clone();
    of->setSymName("part_grads");
    of->setProblem("part");
    of->setDeterministic(true), of->setPartialKv(true), of->setAddArrayGrads(bool(of->getRequiresGrad()));
    of->removeScheduleAttr(), of->removeScheduleReasonAttr();
    kernels->backward = textOf(*of);
  }
  llvm::StringSet<> ofSteps; // operands that are another launch's results
  if (backward)
    for (const ScoreOperand &array : backward.getDifferentiatedArrays())
      ofSteps.insert(gradientBefore(array));
  rt::Status isValid;
  withCompilation([&](Compilation &compilation) {
    auto parsed = compilation.parse(kernels->problem + kernels->backward, "plan");
    isValid = parsed ? rt::Status() : parsed.status();
    if (!parsed)
      return;
    for (mlir::Operation &op : *(*parsed)->getBody()) {
      rt::Program signature, whole = *signatureOf(&op);
      for (rt::Program::Tensor &tensor : whole.tensors) // a plan itself has the arrays of pieces
        if (llvm::StringRef name = tensor.name; !name.starts_with("cu_seqlens_") && !name.contains("pieces_") &&
                                                name != keyPositionsArray && !ofSteps.contains(name))
          signature.tensors.push_back(std::move(tensor));
      kernels->signatures[llvm::isa<BackwardOp>(op)] = std::move(signature);
    }
  });
  if (!isValid)
    return isValid.error();
  return kernels;
}

PlanKernels::Made PlanKernels::make(const std::string &key, llvm::StringRef name,
                                    llvm::function_ref<rt::Result<std::string>()> text) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (auto found = made.find(key); found != made.end())
      return found->second;
  }
  rt::Result<std::string> written = text();
  if (!written)
    return written.error();
  Made kernel = Kernel::lower(*written, name, target);
  if (!kernel)
    return kernel;
  std::lock_guard<std::mutex> lock(mutex);
  return made.try_emplace(key, *kernel).first->second;
}

/// The text of a problem and of its backward pass after `edit`.
static rt::Result<std::string> edited(const std::string &text, llvm::function_ref<void(ProblemOp, BackwardOp)> edit) {
  rt::Result<std::string> result = rt::Error{};
  withCompilation([&](Compilation &compilation) {
    auto module = compilation.parse(text, "plan");
    if (!module) {
      result = module.error();
      return;
    }
    auto passes = (**module).getOps<BackwardOp>();
    edit(*(**module).getOps<ProblemOp>().begin(), passes.empty() ? BackwardOp() : *passes.begin());
    std::string changed;
    for (mlir::Operation &op : *(**module).getBody())
      changed += textOf(&op);
    result = changed;
  });
  return result;
}

/// Sets the heads of a part, if it has not all of them.
static void setHeads(ProblemOp problem, const PlanHeads &heads) {
  int64_t all = problem.getHeads(), allKv = problem.getKvHeads();
  if (heads.count == all)
    return;
  problem.setOfHeads(llvm::ArrayRef<int64_t>{heads.first, all, allKv});
  problem.setHeads(heads.count), problem.setKvHeads(heads.kvCount);
}

int64_t PlanKernels::mostKvHeads(int64_t queries, int64_t keys) const {
  constexpr int64_t mostBytes = int64_t(512) << 20, keyTile = 128, leastTiles = 1024;
  if (dividesHeads)
    return 1;
  int64_t fit = std::max<int64_t>(1, mostBytes / std::max<int64_t>(1, queries * queryHeadBytes));
  fit = llvm::divideCeil(kvHeads, llvm::divideCeil(kvHeads, fit)); // parts of about the same size
  return fit * (keys / keyTile) < leastTiles ? kvHeads : fit;
}

/// Heads that are alike have one kernel.
PlanHeads PlanKernels::named(PlanHeads heads) const {
  if (isAlike)
    heads.first = 0;
  return heads;
}

PlanKernels::Made PlanKernels::attend(const PlanHeads &given, bool continues, bool isPartial, bool keepsPadding) {
  const PlanHeads heads = named(given);
  std::string key = fmt::format("attend {} {} {} {} {} {}", heads.first, heads.count, heads.kvCount, continues,
                                isPartial, keepsPadding);
  return make(key, "part", [&] {
    return edited(problem, [&](ProblemOp part, BackwardOp) {
      setHeads(part, heads);
      part.setPartialIn(continues), part.setPartialOut(isPartial), part.setKeepPadding(keepsPadding);
      if (isPartial) // it is added where results are complete
        part.removeSinkAttr();
    });
  });
}

PlanKernels::Made PlanKernels::differentiate(const PlanHeads &given, bool adds, bool isComplete, bool isSingle) {
  const PlanHeads heads = named(given);
  std::string key = fmt::format("differentiate {} {} {} {} {} {}", heads.first, heads.count, heads.kvCount, adds,
                                isComplete, isSingle);
  return make(key, "part_grads", [&] {
    return edited(problem + backward, [&](ProblemOp part, BackwardOp of) {
      setHeads(part, heads);
      part.setSinglePieces(isSingle), part.setKeepPadding(isSingle);
      of.setAddDq(adds), of.setFloat32Dq(!isComplete), of.setFloat32Dkv(true);
    });
  });
}

bool PlanKernels::splitsPieces() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (splits)
      return *splits;
  }
  bool accumulates = false;
  if (target.info().specializesWarps && haveBackward()) {
    rt::Result<std::string> text = edited(
        problem + backward, [&](ProblemOp part, BackwardOp) { part.setSinglePieces(true), part.setKeepPadding(true); });
    Made kernel = text ? Kernel::lower(*text, "part_grads", target) : Made(text.error());
    accumulates = kernel && (*kernel)->getProgram().hasBuffer("dq_accumulator");
  }
  std::lock_guard<std::mutex> lock(mutex);
  splits = accumulates;
  return accumulates;
}

PlanKernels::Made PlanKernels::gatherRows(int64_t parts, int64_t heads, int64_t dim, Dtype dtype, Dtype from) {
  std::string text = fmt::format("attn.gather_rows @rows parts({}) heads({}) dim({}) dtype({})", parts, heads, dim,
                                 rt::toString(dtype));
  if (from != dtype)
    text += fmt::format(" from({})", rt::toString(from));
  return make(text, "rows", [&] { return rt::Result<std::string>(text); });
}
