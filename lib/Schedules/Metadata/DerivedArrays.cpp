// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DerivedArrays.h"
#include "BlockMapKernels.h"
#include "TreeKernels.h"

using namespace attn;

void attn::writeDerivedArrays(Computation computation, Lowering &lowering, llvm::ArrayRef<MaskOperand> mapsAsLists) {
  llvm::StringRef target = lowering.target.generic();
  writeBlockMaps(computation, lowering.program, target, mapsAsLists);
  writeTrees(computation, lowering.program, target);
}
