// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the rules of several schedules ask of a problem, and what their lowerings share.
//
#ifndef ATTN_LIB_SCHEDULES_SCHEDULES_RULES_H
#define ATTN_LIB_SCHEDULES_SCHEDULES_RULES_H

#include "KernelArguments.h"
#include "SizeClasses.h"
#include "attn/Schedules/Schedule.h"

namespace attn {

/// What schedules write a program with.
class Lowering {
public:
  ProgramBuilder &program;
  const TargetInfo &target;
  mlir::ModuleOp module;
  /// The longest of the short sequences of a batch, where these have a schedule of their own.
  std::optional<ShortLimit> limit;
  /// Classes of rows of dQ that kernels share, of which short sequences' are the first.
  int64_t classesOfDq = 1;
};

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

inline int64_t widthOf(ProblemOp problem) { return std::max(problem.getDimQk(), problem.getDimV()); }
inline int64_t groupOf(ProblemOp problem) { return problem.getHeads() / problem.getKvHeads(); }
/// What says how long sequences are, and how many rows share keys: `max_seqlen(1, 16) and heads(16, 4)`.
std::string lengthsOf(ProblemOp problem);
/// Does the mask or a score read an entry along this axis for each pair?
bool readsBy(ProblemOp problem, ScoreOperand::Axis axis);
/// How many keys a sequence is expected to have.
int64_t expectedKeysOf(ProblemOp problem);
/// Query tiles alone leave most of a chip idle in a launch with few of them, unless keys are split.
bool hasFewQueries(ProblemOp problem);
/// Query heads of a group to have in one tile of `rows`: those that need the fewest tiles, since each of them reads all
/// keys.
int64_t headsToPack(ProblemOp problem, int64_t rows);
/// As many kv heads of `rows` rows and `keys` keys as fill a warp's tile: they share what a CTA costs besides reading.
int64_t kvHeadsToPack(ProblemOp problem, int64_t rows, int64_t keys);
/// From `least` rows on that read the same keys, a CTA with a tile of them is faster than SIMT rows, if it is more than
/// half full.
bool fillsTiles(ProblemOp problem, int64_t least);
/// CTAs of these warps and bytes of shared memory that a multiprocessor has at once.
int64_t blocksOf(int64_t warps, int64_t registers, int64_t bytes);

//===----------------------------------------------------------------------===//
// Short sequences
//===----------------------------------------------------------------------===//

/// Are sequences a few rows, by their maximum or expected lengths, so that reading them is all there is to do?
bool areSequencesShort(ProblemOp problem, std::string &why);
/// And are tiles of a grid that they fill faster even so?
bool fillTilesOfGrid(ProblemOp problem, const TargetInfo &target, std::string &why);
/// Do short sequences of a batch have one schedule and long ones another? Where they are expected to be short, and
/// nothing says that all are.
bool mayBeLonger(ProblemOp problem);
/// Which of the two schedules with a CTA or a warp for each sequence is the faster, with the reason.
mlir::Attribute chooseForShort(ProblemOp problem, const TargetInfo &target, std::string &why);
/// The rest: forward schedules on tiles of a grid.
mlir::Attribute chooseTiles(ProblemOp problem, const TargetInfo &target);

/// Sizes for one schedule each; they take every problem that the schedule can compute.
tile::SimtRowsAttr simtRowsFor(ProblemOp problem, const TargetInfo &target);
tile::CtaPerSequenceAttr ctaPerSequenceFor(ProblemOp problem, const TargetInfo &target);
tile::SimtRowsAttr simtRowsFor(BackwardOp backward, const TargetInfo &target);
/// Null where shared memory has no room for the tile.
tile::CtaPerSequenceAttr ctaPerSequenceFor(BackwardOp backward, const TargetInfo &target);
/// `single_pass_backward` or `stationary_q_backward`, for sequences of up to 256 rows and keys; null where other
/// kernels are faster, or these are not known to fit their registers.
tile::ScheduleInterface chooseShortOnHopper(BackwardOp backward, const TargetInfo &target);
/// Which schedule with a CTA or a warp for each sequence computes gradients; null if none does, with the reason.
tile::ScheduleInterface chooseForShort(BackwardOp backward, const TargetInfo &target, std::string &why);
/// The kernels of a backward pass on tiles. `index`: of the alternatives, where there are fewer the last.
struct BackwardChoice {
  tile::BackwardKernelsAttr kernels;
  std::string whySeparate; ///< the reason for a dQ kernel of its own; empty without one
  bool hasFallback = false, isDoubtful = false;
};
BackwardChoice chooseBackwardKernels(BackwardOp backward, const TargetInfo &target, int64_t index);
/// The same with a schedule of dK and dV that was given.
BackwardChoice backwardKernelsWith(BackwardOp backward, const TargetInfo &target, tile::ScheduleInterface dkdv);

/// The schedule for all sequences where they are short and none may be longer; null otherwise, with the reason.
mlir::Attribute chooseShort(ProblemOp problem, const TargetInfo &target, std::string &why);
/// What `refusal`s of backward schedules with a CTA or a warp for each sequence have in common.
std::optional<std::string> refusalOfSequences(BackwardOp backward, mlir::Attribute schedule);
/// And with one test for all rows that share keys.
std::optional<std::string> refusalOfHeads(BackwardOp backward, mlir::Attribute schedule);

/// The attribute if it is of this kind, or null.
template <typename ScheduleAttr> mlir::Attribute onlyIf(mlir::Attribute schedule) {
  return schedule && llvm::isa<ScheduleAttr>(schedule) ? schedule : mlir::Attribute();
}

constexpr char nothingSaid[] = "neither max_seqlen nor expected_seqlen says that sequences are short",
               noTiles[] = "head dims beyond 256 do not fit a tile",
               fewRows[] = "too few query rows share a kv head to fill half a tile",
               enoughRows[] = "enough query rows for tiles of each sequence";

//===----------------------------------------------------------------------===//
// Tiles of a grid
//===----------------------------------------------------------------------===//

/// Query tiles that a sequence has, or that a CTA computes one after the other, if its maximum length says that there
/// are one or two: the grid then has so many for each sequence, by its number. In a grid of slots half would be
/// nobody's, and to find a slot's sequence takes longer than what a short sequence needs of memory. Tiles of a
/// single-pass schedule are one CTA's. Nothing for others, and where lists say which keys a slot visits.
std::optional<int64_t> tilesOfEachSequence(ProblemOp problem, tile::ScheduleInterface schedule);
/// Do rows and keys lie packed, and scores stay as they are? Then all keys of a short sequence may be had at once.
bool mayHaveSinglePass(ProblemOp problem);
/// What `refusal`s of forward schedules on tiles have in common.
std::optional<std::string> refusalOfTiles(ProblemOp problem, tile::ScheduleInterface schedule);
/// Whether query heads may share a tile.
std::optional<std::string> refusalOfPackedHeads(ProblemOp problem, tile::ScheduleInterface schedule);
/// ptxas wants room for an instruction with all of a product as its operand before roles share registers out anew.
std::optional<std::string> refusalOfRegisters(ProblemOp problem, tile::WarpSpecializedInterface schedule, int64_t keys);
/// `tiles of packed rows, split-KV`.
std::string describeTiles(ProblemOp problem, tile::ScheduleInterface schedule);
/// Less of each: one loop, then narrower KV tiles. Null at the end.
template <typename ScheduleAttr> ScheduleAttr narrower(ScheduleAttr schedule) {
  if (schedule.getSingleLoop() && schedule.getKvTile() <= 16)
    return {};
  if (schedule.getSingleLoop() && schedule.getBlocks() == 3) // two have 216 registers a thread in place of 128
    return schedule.withBlocks(2);
  int64_t less = !schedule.getSingleLoop() ? 0 : schedule.getKvTile() >= 64 && schedule.getKvTile() % 32 == 0 ? 32 : 16;
  return schedule.withKvTile(schedule.getKvTile() - less).withSingleLoop(true);
}

/// `text` with the schedule that it is about.
std::string withSchedule(const llvm::Twine &text, mlir::Attribute schedule);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SCHEDULES_RULES_H
