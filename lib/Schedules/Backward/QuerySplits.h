// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `split_q`: several CTAs share the loop of a KV tile over query tiles and heads. A kernel before the gradients lists
// what each CTA computes, and a kernel after them adds up partial dK and dV.
//
#ifndef ATTN_LIB_SCHEDULES_BACKWARD_QUERYSPLITS_H
#define ATTN_LIB_SCHEDULES_BACKWARD_QUERYSPLITS_H

#include "Schedules/Common/KernelArguments.h"

namespace attn {

/// Why loops over query tiles cannot be split; null if they can.
const char *whyNotSplitQ(ProblemOp problem);
/// The `split_q` of a schedule: 0 unless it is worth two more kernels, because some loops are much longer than others,
/// or because there are few KV tiles, each with a loop over many query heads.
int64_t chooseSplitQ(ProblemOp problem);
/// Has the kernel of dV a list of its own, as it has query tiles of another size?
inline bool hasSplitsOfDv(tile::BackwardKernelsAttr kernels) {
  return kernels.getDv() && (kernels.getDv().getQTile() != kernels.getDkdv().getQTile() ||
                             kernels.getDv().getKvTile() != kernels.getDkdv().getKvTile());
}
/// Writes the kernel that splits loops (`<name>_q_splits`), before the pass.
void writeQuerySplits(BackwardOp backward, ProgramBuilder &program, llvm::StringRef target,
                      tile::BackwardKernelsAttr kernels);
/// Writes the body of the kernel that adds up partial dK and dV (`<name>_combine`).
void writeCombineSums(ProblemOp problem, tile::KernelOp kernel, tile::BackwardKernelsAttr kernels);
/// Rows that a CTA of that kernel adds up at a time.
constexpr int64_t combinedRows = 8;

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARD_QUERYSPLITS_H
