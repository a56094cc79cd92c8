// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DerivedArrays.h"
#include "BlockMapKernels.h"
#include "TreeKernels.h"

using namespace attn;

void attn::writeDerivedArrays(Computation computation, Lowering &lowering, llvm::ArrayRef<MaskOperand> whole) {
  llvm::StringRef target = lowering.target.generic();
  writeBlockMaps(computation, lowering.program, target, whole);
  writeTrees(computation, lowering.program, target);
}
