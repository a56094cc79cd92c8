// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_BACKWARD_GRADIENTSKERNEL_H
#define ATTN_LIB_SCHEDULES_BACKWARD_GRADIENTSKERNEL_H

#include "Schedules/Common/LongWorkTiles.h"

namespace attn {

class Lowering;

/// Writes the kernels of a backward pass, before the op: the preprocess kernel (`<name>_preprocess`), dK and dV with
/// stationary KV tiles (`<name>`; dV in `<name>_dv` if a thread lacks registers for both), dQ with stationary query
/// tiles (`<name>_dq`) or by accumulation (`<name>_postprocess`). With a limit, for sequences beyond it, preceded by a
/// kernel that lists their work tiles (`<name>_work_tiles`). With residues, for tiles of one residue each.
/// `mapsAsLists`: block maps that are read as lists instead of bits (`mapsReadAsLists`).
void writeBackward(BackwardOp backward, tile::BackwardKernelsAttr kernels, Lowering &lowering,
                   llvm::ArrayRef<MaskOperand> mapsAsLists);

/// Which results a gradients kernel computes, and how it accumulates dQ.
struct GradientResults {
  bool dq = false, dk = false, dv = false;
  tile::DqAccumulation order = tile::DqAccumulation::separate; ///< how KV tiles accumulate dQ
  bool hasSoleWriters = false;    ///< dQ rows that only one KV tile contributes to bypass the accumulator
  bool clearsAccumulator = false; ///< clears the dQ accumulator for a later kernel

  /// Does the kernel accumulate dQ?
  bool accumulatesDq() const { return order != tile::DqAccumulation::separate; }
  /// Does the first CTA of a query tile store dQ instead of adding it?
  bool firstCtaStores() const { return accumulatesDq() && order != tile::DqAccumulation::unordered; }
};
/// Writes a kernel that computes dQ with stationary query tiles, or dK and dV with stationary KV tiles. `residues`: in
/// a kernel with residues, which keys each residue of rows sees.
void writeGradients(ProblemOp problem, tile::KernelOp kernel, GradientResults results, StridedMaskAttr residues = {});
/// Columns of a 64-row block of the dQ accumulator: as many as the dQ MMA warpgroup computes at a time, or, without
/// such a warpgroup, as many as give each consumer warpgroup one block.
int64_t dqFragmentColumns(ProblemOp problem, tile::ScheduleInterface schedule);
/// Is dQ added to the accumulator from registers? Always for wide heads, which have no shared memory for staging
/// (`withDv` is false: dV has a kernel of its own). For narrow heads, dQ is added from registers only with ordered
/// accumulation, where that shared memory is worth more for the next K tile: head dim 64 at s 1024 reaches 0.98 instead
/// of 0.89 of the speed of unordered accumulation. (At head dim 128 both are equally fast at s 1024, but adding from
/// registers reaches 0.95 of the staged speed at s 16384.)
bool addsFromRegisters(ProblemOp problem, tile::ScheduleInterface schedule, tile::DqAccumulation order, bool withDv);

/// Parameters of the postprocess kernel, as `PostprocessOp` defines them.
struct PostprocessParameters {
  int64_t columns;       ///< columns of a 64-row block (`dqFragmentColumns`)
  bool fromRegisters;    ///< dQ is added from registers, so the accumulator is in fragment layout
  bool clearedByKvTiles; ///< CTAs of KV tiles clear the accumulator; without keys there is no such CTA
  bool mayBeStored;      ///< rows may be stored already (`GradientResults::hasSoleWriters`)
};
/// Exponent e: kernels that keep float16 probabilities for the products scale them by 2^e. Below 2^-14 float16 is
/// subnormal, and mean probabilities are as small with 16384 keys or more; scaled by 2^12 they are normal down to
/// 2^-26. (0 with modifiers, whose slopes may be large.)
int64_t exponentOfProbabilities(ProblemOp problem, llvm::StringRef target);
/// Does the CTA of a KV tile store dQ rows that only its tile sees, bypassing the accumulator?
bool storesDqDirectly(BackwardOp backward, tile::BackwardKernelsAttr kernels);
void writePreprocess(ProblemOp problem, tile::KernelOp kernel, int64_t exponent);
void writePostprocess(ProblemOp problem, tile::KernelOp kernel, PostprocessParameters parameters);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARD_GRADIENTSKERNEL_H
