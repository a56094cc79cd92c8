// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDKERNEL_H
#define ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDKERNEL_H

#include "Schedules/Common/SizeClasses.h"

namespace attn {

/// Writes the kernels of a backward pass, before the op: the preprocess kernel (`<name>_preprocess`), dK and dV with
/// stationary KV tiles (`<name>`; dV in `<name>_dv` if a thread lacks registers for both), dQ with stationary query
/// tiles (`<name>_dq`) or by accumulation (`<name>_postprocess`). With a limit, for sequences beyond it, preceded by a
/// kernel that lists their work tiles (`<name>_work_tiles`).
void writeBackward(BackwardOp backward, ProgramBuilder &program, const TargetInfo &target,
                   tile::BackwardKernelsAttr kernels, std::optional<ShortLimit> limit = std::nullopt);

/// The results of a gradients kernel.
struct GradientResults {
  bool dq = false, dk = false, dv = false;
  tile::DqAccumulation order = tile::DqAccumulation::separate; ///< how KV tiles accumulate dQ
  bool alone = false;                                          ///< dQ rows that one KV tile sees are stored directly
  bool clears = false;                                         ///< clears the dQ accumulator for a later kernel

  /// Does the kernel accumulate dQ?
  bool sums() const { return order != tile::DqAccumulation::separate; }
  /// Does the first CTA of a query tile store dQ instead of adding it?
  bool firstCtaStores() const { return sums() && order != tile::DqAccumulation::unordered; }
};
/// Writes the gradients of queries, or else of keys.
void writeGradients(ProblemOp problem, tile::KernelOp kernel, GradientResults results);
/// Columns of a 64-row block of the dQ accumulator: as many as the dQ MMA warpgroup computes at a time, or, without it,
/// so many that each warpgroup has one block.
int64_t sumFragmentColumns(ProblemOp problem, tile::ScheduleInterface schedule);
/// Is dQ added to the accumulator from registers? Always for wide heads, which have no shared memory for staging
/// (`together` is false: dV has a kernel of its own). Of narrow heads only with ordered accumulation, where that shared
/// memory is worth more for the next K tile: head dim 64 at s 1024 reaches 0.98 instead of 0.89 of the speed of
/// unordered accumulation. (Head dim 128: the same at s 1024, but 0.95 of the staged speed at s 16384.)
bool addsFromRegisters(ProblemOp problem, tile::ScheduleInterface schedule, tile::DqAccumulation order, bool together);

/// Parameters of the postprocess kernel, as `PostprocessOp` defines them.
struct RoundedSums {
  int64_t columns;    ///< of the accumulated fragments
  bool held;          ///< added from registers, in fragment layout
  bool clearedByKeys; ///< CTAs of KV tiles clear the accumulator; there may be no such CTA
  bool mayBeDone;     ///< rows may be stored already (`GradientResults::alone`)
};
/// Exponent e: kernels that keep float16 probabilities for the products scale them by 2^e. Below 2^-14 float16 is
/// subnormal, and mean probabilities are as small with 16384 keys or more; scaled by 2^12 they are normal down to
/// 2^-26. (0 with modifiers, whose slopes may be large.)
int64_t exponentOfProbabilities(ProblemOp problem, llvm::StringRef target);
/// Does the CTA of a KV tile store dQ rows that only its tile sees, bypassing the accumulator?
bool storesDqDirectly(ProblemOp problem, tile::BackwardKernelsAttr kernels);
void writePreprocess(ProblemOp problem, tile::KernelOp kernel, int64_t exponent);
void writePostprocess(ProblemOp problem, tile::KernelOp kernel, RoundedSums sums);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_BACKWARD_BACKWARDKERNEL_H
