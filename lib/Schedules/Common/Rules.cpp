// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Rules.h"
#include "attn/Schedules/KeyWalk.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using namespace attn::tile;

ScheduleInterface attn::inPositions(ScheduleInterface schedule, int64_t rowStride) {
  if (rowStride == 1)
    return schedule;
  return AuxiliaryAttr::get(schedule.getContext(), schedule.getQueries() * rowStride, schedule.getKvTile() * rowStride,
                            schedule.getWarps(), schedule.getCtasPerSm());
}

std::string attn::lengthsOf(ProblemOp problem) {
  return llvm::formatv("{0}({1}, {2}) and heads({3}, {4})", problem.getMaxSeqlenQ() ? "max_seqlen" : "expected_seqlen",
                       *problem.expectedQueries(), *problem.expectedKeys(), problem.getHeads(), problem.getKvHeads());
}

bool attn::readsBy(ProblemOp problem, ScoreOperand::Axis axis) {
  return llvm::any_of(scoreOperands(problem), [=](const ScoreOperand &array) { return array.has(axis); });
}

bool attn::isCostly(ProblemOp problem) {
  int64_t dim = widthOf(problem);
  unsigned many = dim > 64 && dim <= 128 ? 4 : 6; // others lose ping-pong, or up to 9 %, with one loop
  return comparesOf(problem.getMask()) >= many || problem.getModifiers().size() > 1 ||
         readsBy(problem, ScoreOperand::Key) || readsBy(problem, ScoreOperand::Table);
}

int64_t attn::expectedKeysOf(ProblemOp problem) {
  int64_t usual = problem.getQLayout().hasPieces() ? 65536 : 4096; // what needs several ranks is long
  int64_t expected = mayBeLonger(problem) ? usual : problem.getExpectedSeqlenKv().value_or(usual);
  return std::min<int64_t>(expected, problem.getMaxSeqlenKv().value_or(expected));
}

bool attn::hasFewQueries(ProblemOp problem) {
  return problem.getExpectedSeqlenQ() && areFew(*problem.getExpectedSeqlenQ(), *problem.getExpectedSeqlenKv());
}

int64_t attn::headsToPack(ProblemOp problem, int64_t rows) {
  if (dependsOnHead(problem.getMask())) // a tile has one mask
    return 1;
  int64_t queries = *problem.getExpectedSeqlenQ(), group = groupOf(problem), best = 1;
  auto tiles = [&](int64_t heads) { return group / heads * int64_t(llvm::divideCeil(queries, rows / heads)); };
  for (int64_t heads = 2; heads <= std::min(group, rows); ++heads)
    if (group % heads == 0 && tiles(heads) < tiles(best))
      best = heads;
  return best;
}

int64_t attn::headsOfListedTile(ProblemOp problem, int64_t rows, int64_t keys) {
  auto maps = boundingLists(problem.getMask());
  if (!maps || dependsOnQueryHead(problem.getMask()) || !problem.getModifiers().empty() || problem.dropoutInForce() ||
      !llvm::all_of(*maps, [&](const MaskOperand &map) { return map.lists->fixedWidth && map.lists->kv % keys == 0; }))
    return 1;
  int64_t most = 1; // with which a tile has the fewest queries, so the fewest lists
  for (int64_t heads = 1; heads <= std::min(groupOf(problem), rows); heads *= 2) {
    if (groupOf(problem) % heads)
      continue;
    most = heads;
    if (llvm::all_of(*maps, [&](const MaskOperand &map) { return map.lists->q % (rows / heads) == 0; }))
      return heads;
  }
  return most;
}

int64_t attn::kvHeadsToPack(ProblemOp problem, int64_t rows, int64_t keys) {
  int64_t most = dependsOnHead(problem.getMask()) || !problem.getModifiers().empty() ? 1 : 16 / std::max(rows, keys);
  for (; most > 1; --most)
    if (problem.getKvHeads() % most == 0 && llvm::isPowerOf2_64(most))
      return most;
  return 1;
}

// Measured on an H200 (docs/Schedules/cta_per_sequence.md).
bool attn::fillsTiles(ProblemOp problem, int64_t least) {
  int64_t rows = int64_t(problem.expectedQueries().value_or(1)) * groupOf(problem);
  int64_t keys = problem.expectedKeys().value_or(1);
  return rows > 4 || (rows >= least && kvHeadsToPack(problem, rows, keys) * std::max(rows, keys) > 8);
}

int64_t attn::ctasPerMultiprocessor(int64_t warps, int64_t registers, int64_t bytes) {
  int64_t allWarps = 65536 / (32 * registers) / 4 * 4, most = bytes ? 228 * 1024 / (bytes + 1024) : 32;
  return std::clamp<int64_t>(allWarps / warps, 1, std::clamp<int64_t>(most, 1, 32));
}

// Measured on an H200 (docs/Schedules/trials/short-sequences.md): with a CTA or a warp for each sequence, a sequence
// takes 0.03 ns for each score; in a grid of tiles, 28 ns for each tile of 128 keys, however few its rows. Neither is
// faster than reading the data. Beyond the first tile, tiles approach the latter as well, unless a single lane group
// has all rows. Head dims beyond 256 have no tiles in any case.
bool attn::areSequencesShort(ProblemOp problem, std::string &why) {
  auto judged = [&](bool isShort) {
    why = lengthsOf(problem) + (isShort ? ": short sequences" : ": long sequences");
    return isShort;
  };
  if (problem.getTiles()) {
    why = "the order of tiles is given";
    return false;
  }
  if (widthOf(problem) > widestOfTiles) {
    why = noTiles;
    return true;
  }
  std::optional<int64_t> queries = problem.expectedQueries(), keys = problem.expectedKeys();
  if (!queries) {
    why = nothingSaid;
    return false;
  }
  int64_t rows = *queries * groupOf(problem); // rows that read the same keys
  if (rows > 64)                              // five or six warps with all keys in a tile
    return judged(rows <= 96 && *keys <= 96 && widthOf(problem) <= 128);
  return judged(*keys <= 128 ? rows <= 64 : *keys < 1024 && rows <= 4);
}

bool attn::mayBeLonger(ProblemOp problem) {
  std::string why;
  return areSequencesShort(problem, why) && !problem.getMaxSeqlenQ() && problem.getQLayout().isPacked() &&
         problem.getKLayout().isPacked() && widthOf(problem) <= widestOfTiles;
}

std::optional<int64_t> attn::tilesOfEachSequence(ProblemOp problem, ScheduleInterface schedule) {
  constexpr int64_t most = 2;
  if (!problem.getQLayout().isPacked() || problem.getQLayout().hasPieces() || !problem.getMaxSeqlenQ() ||
      problem.getTiles() || schedule.isPerSequence() || schedule.splitsKv() || schedule.getPackHeads() != 1 ||
      hasTileLists(problem, schedule))
    return std::nullopt;
  int64_t tiles = llvm::divideCeil(std::max<int64_t>(*problem.getMaxSeqlenQ(), 1), schedule.getQueries());
  if (tiles > most)
    return std::nullopt;
  return schedule.hasWholeSequence() ? 1 : tiles;
}

bool attn::mayHaveSinglePass(ProblemOp problem) {
  LayoutAttr q = problem.getQLayout();
  return q.isPacked() && !q.hasPieces() && problem.getKLayout().isPacked() && problem.getModifiers().empty() &&
         !problem.dropoutInForce();
}

std::string attn::withSchedule(const llvm::Twine &text, mlir::Attribute schedule) {
  std::string whole = text.str();
  llvm::raw_string_ostream(whole) << schedule;
  return whole;
}

std::optional<std::string> attn::refusalOfPackedHeads(ProblemOp problem, ScheduleInterface schedule, bool ofGrid) {
  int64_t group = groupOf(problem), pack = schedule.getPackHeads();
  if (group % pack)
    return withSchedule(llvm::formatv("expected pack_heads to divide the {0} query heads of a kv head, got: ", group),
                        schedule);
  if (pack != 1 && (ofGrid ? dependsOnQueryHead(problem.getMask()) : dependsOnHead(problem.getMask())))
    return withSchedule("expected pack_heads = 1 with a mask that differs between heads, got: ", schedule);
  return std::nullopt;
}

std::optional<std::string> attn::refusalOfTiles(ProblemOp problem, ScheduleInterface schedule) {
  if (std::optional<int64_t> listed = problem.getTiles(); listed && *listed != schedule.getQueries())
    return withSchedule(llvm::formatv("expected tiles({0}), the queries of a tile of the schedule in force (or another "
                                      "schedule), got: tiles({1}) with ",
                                      schedule.getQueries(), *listed),
                        schedule);
  if (std::optional<std::string> refusal = refusalOfPackedHeads(problem, schedule, /*ofGrid=*/true))
    return refusal;
  if (problem.getQLayout().hasPieces() && (schedule.getPackHeads() != 1 || schedule.splitsKv()))
    return withSchedule("expected pack_heads = 1 with layout(thd pieces), got: ", schedule);
  if (int64_t dim = widthOf(problem); dim > widestOfTiles)
    return withSchedule(llvm::formatv("expected #tile.simt_rows for head dims beyond 256, got: dim {0} with ", dim),
                        schedule);
  return std::nullopt;
}

std::optional<std::string> attn::refusalOfRegisters(ProblemOp problem, WarpSpecializedInterface schedule,
                                                    int64_t keys) {
  int64_t wide = std::max<int64_t>(keys, problem.getDimV()), atLaunch = schedule.getRegistersAtLaunch();
  if (wide / 2 + 30 <= atLaunch)
    return std::nullopt;
  return withSchedule(
      llvm::formatv("expected at most {0} keys a tile and columns of v, since a thread is launched with {1} "
                    "registers, got: {2} with ",
                    (atLaunch - 30) * 2, atLaunch, wide),
      schedule);
}

std::string attn::describeTiles(ProblemOp problem, ScheduleInterface schedule) {
  std::string text = warpSpecializationOf(schedule) ? "warp-specialized tiles" : "tiles";
  if (problem.getQLayout().isPacked() || problem.getKLayout().isPacked())
    text += tilesOfEachSequence(problem, schedule) ? " of each sequence" : " of packed rows";
  if (schedule.splitsKv())
    text += ", split-KV";
  if (schedule.getLeastKvTiles())
    text += ", long loops over keys split among CTAs";
  if (schedule.getPackHeads() > 1)
    text += ", " + std::to_string(schedule.getPackHeads()) + " query heads packed";
  return text;
}
