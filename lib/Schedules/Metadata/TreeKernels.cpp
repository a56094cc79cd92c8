// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One CTA numbers the tree of one sequence; with more sequences than CTAs, these loop in grid-stride order. Long
// sequences, which would keep one CTA busy after the others, are numbered by cooperative CTAs.
//
#include "TreeKernels.h"
#include "Schedules/Common/AttentionBody.h"
#include "Schedules/Common/KernelArguments.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"

using namespace mlir;
using namespace attn;
using namespace attn::metadata;
using namespace attn::tile;

namespace {

constexpr int64_t threads = 512; // of a CTA; with more, kernels lack registers
constexpr int64_t ctas = 120;    // co-resident CTAs
constexpr int64_t runs = 3584;   // in shared memory; GPUs from sm_80 on have at least 99 KB for a CTA

class TreeKernel : AttentionBody {
public:
  TreeKernel(ProblemOp problem, KernelOp kernel) : AttentionBody(problem, kernel) {}

  void build(StringRef parents, bool cooperative) {
    if (cooperative)
      treeRuns = alloc("tree_runs", TreeRunsType::get(b.getContext(), runs));
    Index longest = cooperative ? math.named(longestOfOneCta(), "longest") : Index(0);
    {
      OpBuilder::InsertionGuard guard(b);
      batch = enterLoop("b", Value(IndexOp::block(b, loc)), arg("batch"), ctas);
      findSequence();
      if (cooperative)
        onlyIf(math.le(scope.lenK, longest), [&] { number(parents, Value()); });
      else
        number(parents, Value());
    }
    if (!cooperative)
      return;
    Value lengths = problem.getKLayout().isPacked() ? args["cu_seqlens_kv"] : args["seqlen_kv"];
    auto cooperativeLoop =
        CooperativeLoopOp::create(b, loc, args["queue"], lengths, args["batch"], math.value(longest));
    Block &body = cooperativeLoop.getBody().emplaceBlock();
    Value ctasOfSequence = body.addArgument(CooperativeCtasType::get(b.getContext()), loc);
    batch = Value(body.addArgument(b.getI32Type(), loc));
    b.setInsertionPointToStart(&body);
    findSequence();
    number(parents, ctasOfSequence);
  }

private:
  /// The longest sequence that a single CTA numbers. A CTA takes up to 30 ns for each key; cooperative CTAs take 80 us,
  /// and little more for ten times as many keys, during which they number no other sequence (measured on an H200).
  Index longestOfOneCta() {
    if (!problem.getKLayout().isPacked()) // the same rule for equal lengths: each is 1 / batch of all
      return math.select(math.lt(arg("batch"), 3), 4096, math.select(math.lt(arg("batch"), 16), 32768, INT32_MAX));
    Index total = arg("total_kv");
    return math.max(math.max(math.floorDiv(total, 16), math.min(math.floorDiv(total, 3), 32768)), 4096);
  }

  void number(StringRef parents, Value ctasOfSequence) {
    llvm::SmallVector<MaskOperand> nodeArrays = distinctOperands(problem.getMask());
    llvm::erase_if(nodeArrays, [&](const MaskOperand &operand) { return operand.madeOf != parents; });
    const MaskOperand &node = nodeArrays[0], &first = nodeArrays[1], &end = nodeArrays[2];
    NumberTreeOp::create(b, loc, args[node.name], args[first.name], args[end.name], args[numberingOf(parents)],
                         args[parents], startOf(node), math.value(scope.lenQ), startOf(first), math.value(scope.lenK),
                         treeRuns, ctasOfSequence);
  }

  Value treeRuns; ///< null on a CPU
};

} // namespace

void attn::writeTrees(Computation computation, ProgramBuilder &program, StringRef target) {
  ProblemOp problem = computation.problem;
  Operation *op = computation.getOperation();
  OpBuilder b(op);
  bool cooperative = target != "cpu";
  KernelGrid grid;
  grid.packed = problem.getKLayout().isPacked();
  grid.keys = true;
  grid.most = ctas;
  auto schedule =
      AuxiliaryAttr::get(b.getContext(), 64, 64, /*warps=*/cooperative ? threads / 32 : 1, /*ctas_per_sm=*/1);
  for (const ProblemTensor &array : tensorsOf(problem)) {
    if (!array.hasParents)
      continue;
    std::string name = freeSymbol(op->getParentOp(), (computation.getName() + "_tree").str());
    KernelOp kernel = KernelArguments::ofTree(problem, array.name, cooperative)
                          .makeKernel(program, b, op->getLoc(), name, target, grid, schedule);
    TreeKernel(problem, kernel).build(array.name, cooperative);
  }
}
