// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Conversion/Schedule.h"
#include "attn/Conversion/KeyWalk.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include <numeric>

using namespace attn;
using tile::ConfigAttr;

static void place(Schedule &schedule, ConfigAttr config, bool streams) { (streams ? schedule.streamed : schedule.tiles) = config; }

std::optional<int64_t> attn::tilesOfBounds(ProblemOp problem, ConfigAttr config) {
  constexpr int64_t most = 2;
  if (!problem.getQLayout().isPacked() || !problem.getMaxSeqlenQ() || problem.getTiles() || config.streams() ||
      config.isSplit() || config.getPackHeads() != 1 || listsVisits(problem, config))
    return std::nullopt;
  int64_t tiles = llvm::divideCeil(std::max<int64_t>(*problem.getMaxSeqlenQ(), 1), config.getQueries());
  if (tiles > most)
    return std::nullopt;
  return config.getLook() > 1 ? 1 : tiles;
}

bool attn::mayLook(ProblemOp problem) {
  return problem.getQLayout().isPacked() && problem.getKLayout().isPacked() && problem.getModifiers().empty() && !problem.dropoutInForce();
}

bool attn::mayLookBackward(ProblemOp problem) {
  bool lists = llvm::any_of(problem.getMask().operands(), [](const MaskOperand &array) { return array.lists.has_value(); });
  return problem.getQLayout().isPacked() == problem.getKLayout().isPacked() && problem.getModifiers().empty() && !lists && problem.getHeads() == problem.getKvHeads() &&
         std::max(problem.getDimQk(), problem.getDimV()) <= 128;
}

int64_t attn::bytesAtRest(ProblemOp problem, ConfigAttr config, bool outputs) {
  constexpr int64_t chunk = 64; // columns that a box has; tiles of P and dS have one
  int64_t ofQk = llvm::alignTo(problem.getDimQk(), chunk), ofV = llvm::alignTo(problem.getDimV(), chunk), rows = config.getQTile();
  return 2 * ((ofQk + ofV) * (config.getQStages() * rows + config.getStages() * config.getKvTile()) + (outputs ? ofV * rows : 0) + 2 * chunk * rows);
}

bool attn::bringsOutputs(ProblemOp problem, ConfigAttr config) {
  if (problem.dropoutInForce() && dividesRows(problem.getMask())) // 160 and 176 rows of 64 columns have no register for one more ring
    return false;
  return bytesAtRest(problem, config, /*outputs=*/true) <= roomForTiles("sm_90a", 90) / config.getBlocks();
}

static std::string nameOf(const Schedule &schedule, ProblemOp problem, llvm::StringRef target, bool bySequence) {
  std::string streamed, tiles;
  if (schedule.streamed)
    streamed = schedule.streamed.hasStrips()      ? "SIMT rows"
               : schedule.streamed.getLook() == 1 ? "one CTA per sequence"
               : passesKeys(schedule.streamed)    ? "one CTA per sequence, Q stationary"
                                                  : "one CTA per sequence, single pass";
  if (ConfigAttr config = schedule.tiles) {
    tiles = target == "sm_90a" ? "warp-specialized tiles" : "tiles";
    if (problem.getQLayout().isPacked() || problem.getKLayout().isPacked())
      tiles += bySequence ? " of each sequence" : " of packed rows";
    if (config.isSplit())
      tiles += ", split-KV";
    if (config.getPackHeads() > 1)
      tiles += ", " + std::to_string(config.getPackHeads()) + " query heads packed";
  }
  return tiles.empty() ? streamed : streamed.empty() ? tiles : streamed + " for short sequences, " + tiles + " for long ones";
}

std::optional<std::string> attn::faultOfConfig(mlir::Attribute given) {
  if (!given || llvm::isa<ConfigAttr>(given))
    return std::nullopt;
  std::string text = "expected a #tile.config as its config, got: ";
  llvm::raw_string_ostream(text) << given;
  return text;
}

/// A config, and what there is to try in its place, one after the other.
static llvm::SmallVector<ConfigAttr> withFallbacks(ConfigAttr config) {
  llvm::SmallVector<ConfigAttr> all;
  for (; config; config = fallbackOf(config))
    all.push_back(config);
  return all;
}

Schedule attn::scheduleOf(ProblemOp problem, llvm::StringRef target, int64_t arch, int64_t fallback) {
  Schedule schedule;
  if (auto given = llvm::dyn_cast_or_null<ConfigAttr>(problem.getConfigAttr())) {
    place(schedule, given, given.streams());
    schedule.why = "the config is given";
  } else {
    ConfigAttr config = chooseConfig(problem, target, arch, &schedule.why);
    llvm::SmallVector<ConfigAttr> configs = withFallbacks(config), ofShort = {ConfigAttr()};
    if (hasSizeClasses(problem)) {
      std::string how;
      ofShort = withFallbacks(chooseStreamed(problem, &how));
      schedule.why += ", and " + how + "; without max_seqlen some sequences may be longer";
    }
    // Of a program for both each of one with each of the other: who does not fit is known after the first try, and passed over.
    int64_t last = int64_t(configs.size() * ofShort.size()) - 1, at = std::min(fallback, last);
    schedule.hasFallback = at < last;
    place(schedule, configs[at / ofShort.size()], config.streams());
    if (ConfigAttr streamed = ofShort[at % ofShort.size()])
      schedule.streamed = streamed;
  }
  schedule.name = nameOf(schedule, problem, target, schedule.tiles && tilesOfBounds(problem, schedule.tiles));
  return schedule;
}

BackwardSchedule attn::scheduleOf(BackwardOp backward, llvm::StringRef target, int64_t arch, int64_t fallback) {
  ProblemOp problem = backward.getProblemOp();
  BackwardSchedule schedule;
  if (auto given = llvm::dyn_cast_or_null<ConfigAttr>(backward.getConfigAttr())) {
    place(schedule, given, ownsSequences(given));
    schedule.why = "the config is given";
  } else {
    schedule.streamed = chooseStreamedBackward(backward, target, arch, &schedule.why);
    if (schedule.streamed && backward.getRequiresGrad()) {
      schedule.streamed = {};
      schedule.why = "requires_grad needs what the tiled kernels store";
    }
    int64_t columns = std::gcd(problem.getDimQk(), problem.getDimV());
    // Of a program for both, the kernels on tiles are what fallbacks are for: a look is chosen where it is known to fit.
    for (; fallback > 0 && schedule.streamed && !hasSizeClasses(backward, schedule.streamed) &&
           mayFallBackward(schedule.streamed);
         --fallback)
      if (schedule.streamed = fallbackOf(schedule.streamed, columns); !schedule.streamed)
        schedule.why += ", but registers do not suffice";
  }
  std::string dq;
  if (!schedule.streamed || hasSizeClasses(backward, schedule.streamed)) {
    const BackwardConfigs &configs = schedule.configs =
        chooseBackwardConfigs(backward, target, arch, fallback);
    schedule.tiles = configs.keys;
    dq = configs.order == SumOrder::InTurns ? ", ordered dQ accumulation"
         : configs.sums                     ? ", unordered dQ accumulation"
                                            : std::string(", separate dQ kernel (") + configs.whyNoSums + ")";
    if (schedule.streamed && !problem.getMaxSeqlenQ())
      schedule.why += "; without max_seqlen some sequences may be longer";
  }
  if (!backward.getConfigAttr())
    schedule.hasFallback = schedule.tiles ? schedule.configs.hasFallback : mayFallBackward(schedule.streamed);
  schedule.name = nameOf(schedule, problem, target, /*bySequence=*/false) + dq;
  return schedule;
}
