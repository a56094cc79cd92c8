// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common to the rules and lowerings of several schedules.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_RULES_H
#define ATTN_LIB_SCHEDULES_COMMON_RULES_H

#include "KernelArguments.h"
#include "LongWorkTiles.h"
#include "attn/Schedules/Schedule.h"

namespace attn {

/// The context in which schedules write a program.
class Lowering {
public:
  ProgramBuilder &program;
  const TargetInfo &target;
  mlir::ModuleOp module;
  /// The limit of short sequences, where these have a schedule of their own.
  std::optional<ShortLimit> limit;
  /// Classes of dQ rows, each written by another kernel; short sequences are the first class.
  int64_t classesOfDq = 1;
  /// With `by_residue`: which keys each residue of rows sees. The problem's mask is then the rest.
  StridedMaskAttr residues = {};

  /// The distance of a tile's rows in positions: the number of residues, or 1.
  int64_t rowStride() const { return residues ? residues.getStride() : 1; }
};

/// The sizes of a schedule's tiles in positions, for kernels that list tiles.
tile::ScheduleInterface inPositions(tile::ScheduleInterface schedule, int64_t rowStride);

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

inline int64_t widthOf(ProblemOp problem) { return std::max(problem.getDimQk(), problem.getDimV()); }
inline int64_t groupOf(ProblemOp problem) { return problem.getHeads() / problem.getKvHeads(); }
/// The problem's lengths and heads as text: `max_seqlen(1, 16) and heads(16, 4)`.
std::string lengthsOf(ProblemOp problem);
/// Does the mask or a modifier read an array entry along this axis for each score?
bool readsBy(ProblemOp problem, ScoreOperand::Axis axis);
/// The expected number of keys of a sequence.
int64_t expectedKeysOf(ProblemOp problem);
/// Do query tiles alone leave most of the GPU idle, unless keys are split?
bool hasFewQueries(ProblemOp problem);
/// Query heads of a group to pack into a tile of `rows`: the number that needs the fewest tiles, since each tile reads
/// all keys.
int64_t headsToPack(ProblemOp problem, int64_t rows);
/// Query heads to pack into a tile, where all lists of blocks that bound the mask have one width: the fewest with which
/// the tile's queries share a list, or, if no number of heads does that, as many as there may be. 1 for other masks.
int64_t headsOfListedTile(ProblemOp problem, int64_t rows, int64_t keys);
/// Kv heads of `rows` rows and `keys` keys to pack into a warp's tile: they share the fixed cost of a CTA.
int64_t kvHeadsToPack(ProblemOp problem, int64_t rows, int64_t keys);
/// Is a CTA with a tile of rows faster than SIMT rows? Yes from `least` rows on that read the same keys, if the tile is
/// more than half full.
bool fillsTiles(ProblemOp problem, int64_t least);
/// Co-resident CTAs of a multiprocessor with these warps, registers and bytes of shared memory.
int64_t ctasPerMultiprocessor(int64_t warps, int64_t registers, int64_t bytes);

//===----------------------------------------------------------------------===//
// Short sequences
//===----------------------------------------------------------------------===//

/// Are sequences so short, by their maximum or expected lengths, that the kernel is bound by reading them?
bool areSequencesShort(ProblemOp problem, std::string &why);
/// Do short and long sequences of a batch have separate schedules? Yes if they are expected to be short, but no maximum
/// guarantees it.
bool mayBeLonger(ProblemOp problem);

/// The attribute if it is of this kind, or null.
template <typename ScheduleAttr> mlir::Attribute ifKind(mlir::Attribute schedule) {
  return schedule && llvm::isa<ScheduleAttr>(schedule) ? schedule : mlir::Attribute();
}

constexpr char nothingSaid[] = "neither max_seqlen nor expected_seqlen says that sequences are short",
               noTiles[] = "head dims beyond 256 do not fit a tile",
               fewRows[] = "too few query rows share a kv head to fill half a tile",
               enoughRows[] = "enough query rows for tiles of each sequence";

//===----------------------------------------------------------------------===//
// Tiles of a grid
//===----------------------------------------------------------------------===//

/// Query tiles of each sequence, or of each CTA's loop, if max_seqlen allows one or two: the grid then has so many CTAs
/// for each sequence. In a grid of work tiles half would be empty, and finding a work tile's sequence takes longer than
/// loading a short sequence. The tiles of a single-pass schedule belong to one CTA. None for other problems, and with
/// KV-tile lists.
std::optional<int64_t> tilesOfEachSequence(ProblemOp problem, tile::ScheduleInterface schedule);
/// Are rows and keys packed and scores unmodified? Then a single pass over a short sequence's keys is possible.
bool mayHaveSinglePass(ProblemOp problem);
/// Common `refusal` of forward schedules on tiles.
std::optional<std::string> refusalOfTiles(ProblemOp problem, tile::ScheduleInterface schedule);
/// Why query heads cannot be packed into a tile. `ofGrid`: tiles are of one kv head each, so masks of kv heads may
/// differ.
std::optional<std::string> refusalOfPackedHeads(ProblemOp problem, tile::ScheduleInterface schedule,
                                                bool ofGrid = false);
/// Why registers do not suffice: before setmaxnreg, ptxas needs room for an instruction with a whole product as its
/// operand.
std::optional<std::string> refusalOfRegisters(ProblemOp problem, tile::WarpSpecializedInterface schedule, int64_t keys);
/// `tiles of packed rows, split-KV`.
std::string describeTiles(ProblemOp problem, tile::ScheduleInterface schedule);
/// Smaller sizes: first a single loop, then narrower KV tiles. Null at the end.
template <typename ScheduleAttr> ScheduleAttr narrower(ScheduleAttr schedule) {
  if (schedule.getSingleLoop() && schedule.getKvTile() <= 16)
    return {};
  if (schedule.getSingleLoop() && schedule.getCtasPerSm() == 3) // two CTAs have 216 registers a thread instead of 128
    return schedule.withCtasPerSm(2);
  int64_t less = !schedule.getSingleLoop() ? 0 : schedule.getKvTile() >= 64 && schedule.getKvTile() % 32 == 0 ? 32 : 16;
  return schedule.withKvTile(schedule.getKvTile() - less).withSingleLoop(true);
}

/// `text` with the schedule appended.
std::string withSchedule(const llvm::Twine &text, mlir::Attribute schedule);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_RULES_H
