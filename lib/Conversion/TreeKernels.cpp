// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block has a sequence. If there are more than that, blocks take several turns.
//
#include "TreeKernels.h"
#include "KernelArguments.h"
#include "SequenceBody.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class TreeKernel : SequenceBody {
public:
  TreeKernel(ProblemOp problem, KernelOp kernel) : SequenceBody(problem, kernel) {}

  void build(StringRef parents) {
    constexpr int64_t most = 128; // blocks that run at the same time
    batch = enterLoop("b", Value(BlockIndexOp::create(b, loc, Value())), arg("batch"), most);
    findSequence();
    llvm::SmallVector<MaskOperand> made = distinctOperands(problem.getMask());
    llvm::erase_if(made, [&](const MaskOperand &operand) { return operand.madeOf != parents; });
    const MaskOperand &node = made[0], &first = made[1], &end = made[2];
    NumberTreeOp::create(b, loc, args[node.name], args[first.name], args[end.name], args[numberingOf(parents)],
                         args[parents], startOf(node), math.value(scope.lenQ), startOf(first),
                         math.value(scope.lenK));
  }
};

} // namespace

void attn::writeTrees(ProblemOp problem, Operation *program, StringRef target) {
  OpBuilder b(program);
  KernelGrid grid;
  grid.packed = problem.getQLayout().isPacked();
  auto config = ConfigAttr::get(b.getContext(), 64, 64, /*warps=*/target == "cpu" ? 1 : 32, /*blocks=*/1);
  for (const ProblemTensor &array : tensorsOf(problem)) {
    if (!array.hasParents)
      continue;
    std::string name = freeSymbol(program->getParentOp(), SymbolTable::getSymbolName(program).getValue() + "_tree");
    KernelOp kernel =
        KernelArguments::ofTree(problem, array.name).makeKernel(b, program->getLoc(), name, target, grid, config);
    TreeKernel(problem, kernel).build(array.name);
  }
}
