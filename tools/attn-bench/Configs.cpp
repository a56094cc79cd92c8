// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Configs.h"
#include "attn/Conversion/Schedule.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>

using namespace attn;
using namespace attn::bench;
using tile::ConfigAttr;

/// Registers a thread needs at least: O, S as scores and (rounded) as weights, and a few to count with.
static int64_t registersFor(ProblemOp problem, int64_t qTile, int64_t kvTile, int64_t warps, bool holdQ) {
  int64_t rows = qTile / warps; // of a warp; in 32 threads
  return rows * (2 * problem.getDimV() + 3 * kvTile + (holdQ ? problem.getDimQk() : 0)) / 64 + 8;
}

static std::vector<int64_t> multiplesOf16(int64_t from, int64_t to) {
  std::vector<int64_t> list;
  for (int64_t n = from; n <= to; n += 16)
    list.push_back(n);
  return list;
}

/// What looks at all keys that bounds speak of in one go, if the problem may.
static void addLooks(ProblemOp problem, std::vector<ConfigAttr> &configs) {
  if (!mayLook(problem) || !problem.getMaxSeqlenKv())
    return;
  for (int64_t warps : {8, 12})
    for (int64_t kvTile : multiplesOf16(16, 128)) {
      int64_t look = llvm::divideCeil(*problem.getMaxSeqlenKv(), kvTile),
              most = warps == 12 ? 192 : 256; // scores that have registers
      auto config = ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, /*blocks=*/1);
      if (look < 2 || kvTile * look > most || !tilesOfBounds(problem, config))
        continue;
      for (int64_t stages : {1, 2})
        for (int64_t qStages : {1, 2})
          configs.push_back(config.withStages(stages, qStages).withLook(look));
    }
}

static std::vector<ConfigAttr> hopperConfigs(ProblemOp problem) {
  std::vector<ConfigAttr> configs;
  for (auto [warps, blocks] : {std::pair(4, 1), {4, 2}, {4, 3}, {8, 1}, {12, 1}}) {
    for (int64_t kvTile : multiplesOf16(32, 256)) {
      // What AssignRoles has to give: the multiprocessor's registers, less the producer's.
      int64_t most = std::min<int64_t>(240, (512 / blocks - 32) / (warps / 4));
      if (registersFor(problem, 16 * warps, kvTile, warps, false) > most)
        break;
      for (int64_t stages : {2, 3, 4})
        for (int64_t qStages : {1, 2})
          for (bool turns : {false, true})
            if (warps > 4 || !turns) // one warpgroup has nobody to take turns with
              configs.push_back(ConfigAttr::get(problem.getContext(), 16 * warps, kvTile, warps, blocks)
                                    .withStages(stages, qStages)
                                    .withTurns(turns));
    }
  }
  addLooks(problem, configs);
  return configs;
}

static std::vector<ConfigAttr> ampereConfigs(ProblemOp problem) {
  std::vector<ConfigAttr> configs;
  for (int64_t warps : {2, 4, 8})
    for (int64_t qTile : {16 * warps, 32 * warps})
      for (int64_t blocks : {1, 2, 3, 4})
        for (bool holdQ : {false, true})
          for (int64_t kvTile : {32, 48, 64, 80, 96, 128}) {
            int64_t most = std::min<int64_t>(255, 2048 / (warps * blocks));
            if (qTile > 256 || registersFor(problem, qTile, kvTile, warps, holdQ) > most)
              continue;
            for (bool oneBody : {false, true})
              configs.push_back(ConfigAttr::get(problem.getContext(), qTile, kvTile, warps, blocks)
                                    .withHoldQ(holdQ)
                                    .withOneBody(oneBody));
          }
  return configs;
}

static std::vector<ConfigAttr> hostConfigs(ProblemOp problem) {
  std::vector<ConfigAttr> configs;
  for (int64_t qTile : {16, 32, 64, 128})
    for (int64_t kvTile : {16, 32, 64, 128})
      configs.push_back(ConfigAttr::get(problem.getContext(), qTile, kvTile, /*warps=*/1, /*blocks=*/1));
  return configs;
}

/// Of problems whose heuristic chooses strips.
static std::vector<ConfigAttr> stripConfigs(ProblemOp problem, ConfigAttr chosen) {
  std::vector<ConfigAttr> configs;
  int64_t pack = chosen.getPackHeads();
  for (int64_t rows : {pack, 2 * pack, 4 * pack})
    for (int64_t keys : {1, 2, 3, 4, 6, 8})
      for (int64_t lanes : {chosen.getLanes() / 2, chosen.getLanes()})
        for (int64_t warps : {4, 8})
          for (int64_t blocks : {8, 12, 16, 24, 32, 40}) // warps of a multiprocessor
            if (rows <= 16 && lanes)
              configs.push_back(ConfigAttr::ofStrips(problem.getContext(), rows, keys, pack, lanes, warps,
                                                     std::min<int64_t>(16, blocks / warps)));
  return configs;
}

std::vector<ConfigAttr> bench::configsOf(ProblemOp problem, const Target &target) {
  std::vector<ConfigAttr> configs = target.family == "sm_90a" ? hopperConfigs(problem)
                                    : target.isHost()         ? hostConfigs(problem)
                                                              : ampereConfigs(problem);
  ConfigAttr chosen = chooseConfig(problem, target.family, target.arch);
  if (chosen.hasStrips())
    return stripConfigs(problem, chosen);
  if (!chosen.isSplit() && chosen.getPackHeads() == 1)
    return configs;
  for (ConfigAttr &config : configs)
    config = config.withSplits(chosen.getSplits()).withPackHeads(std::min(config.getQTile(), chosen.getPackHeads()));
  return configs;
}

std::string bench::textOf(ConfigAttr config) {
  std::string text;
  llvm::raw_string_ostream(text) << config;
  llvm::StringRef inside = llvm::StringRef(text).split('<').second;
  return inside.drop_back().str();
}

std::string bench::fullTextOf(ConfigAttr config) {
  return fmt::format("q_tile = {}, kv_tile = {}, warps = {}, blocks = {}, hold_q = {}, one_body = {}, stages = {}, "
                     "q_stages = {}, turns = {}, splits = {}, pack_heads = {}, lanes = {}, by_sequence = {}, "
                     "heads_in_turn = {}, parts = {}, reducer = {}, look = {}",
                     config.getQTile(), config.getKvTile(), config.getWarps(), config.getBlocks(), config.getHoldQ(),
                     config.getOneBody(), config.getStages(), config.getQStages(), config.getTurns(),
                     config.getSplits(), config.getPackHeads(), config.getLanes(),
                     config.getBySequence(), config.getHeadsInTurn(), config.getParts(), config.getReducer(), config.getLook());
}
