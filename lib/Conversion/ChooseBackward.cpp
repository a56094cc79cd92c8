// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile sizes of backward passes: what fits. A thread has 255 registers (240 where roles share
// them out), for accumulators as wide as a head dim and for two tiles of scores.
//
#include "attn/Conversion/KeyWalk.h"
#include "attn/Conversion/Schedule.h"
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "llvm/Support/MathExtras.h"

using namespace attn;
using tile::ConfigAttr;
using Configs = llvm::SmallVector<ConfigAttr>; // what to try one after the other

// dK and sums of dQ, of wide heads: all of shared memory is K and V, a tile of dS twice, and Q and dO, twice if there is
// room. Fewer keys would add to the sums more often, which at 64 takes as long as the products.
static ConfigAttr wideKeys(ProblemOp problem) {
  int64_t columns = llvm::alignTo(problem.getDimQk(), 64) + llvm::alignTo(problem.getDimV(), 64);
  auto bytes = [&](int64_t stages) { return 2 * (columns * (128 + 64 * stages) + 2 * 128 * 64); };
  return ConfigAttr::get(problem.getContext(), /*q_tile=*/64, /*kv_tile=*/128, /*warps=*/8, /*blocks=*/1)
      .withOneBody(true)
      .withStages(bytes(2) <= roomForTiles("sm_90a", 90) ? 2 : 1, /*qStages=*/1);
}

// dK, dV and sums of dQ, of heads up to 128: what to try one after the other, until registers suffice. Beside a reducer those that compute have 208 of them,
// or 216 if it takes 32 columns at a time, which scores that are changed or tested for several runs of packed rows need.
static Configs narrowKeys(ProblemOp problem, bool drops, bool hasOneRun) {
  auto config = [&](int64_t qTile, int64_t reducer) {
    return ConfigAttr::get(problem.getContext(), qTile, /*kv_tile=*/128, /*warps=*/8, /*blocks=*/1)
        .withOneBody(true)
        .withReducer(reducer);
  };
  bool wide = std::max(problem.getDimQk(), problem.getDimV()) > 64;
  bool plain = llvm::all_of(problem.getModifiers(), llvm::IsaPred<AlibiAttr>) && (hasOneRun || !problem.getKLayout().isPacked());
  if (wide && plain)
    return {config(64, 64), config(64, 32), config(64, 0)};
  if (wide)
    return {config(64, 32), config(64, 0)};
  if (drops)
    return {config(64, 64), config(64, 0)};
  return {config(128, 32), config(64, 64), config(128, 0), config(64, 0)};
}

// dV of wide heads, in a kernel of its own: twice the keys need half as much of Q and dO, and dV is all that is added up. Query tiles of 128 rows read K from
// shared memory half as often (d 256: 3332 -> 3024 us at s 16384), and there is room for one of them; what changes scores has no registers beside theirs, and
// lists are of tiles of 64.
static Configs valuesAlone(ProblemOp problem, bool drops) {
  auto config = [&](int64_t qTile, int64_t stages) {
    return ConfigAttr::get(problem.getContext(), qTile, /*kv_tile=*/128, /*warps=*/8, /*blocks=*/1)
        .withOneBody(true)
        .withStages(stages, /*qStages=*/1);
  };
  bool plain = problem.getModifiers().empty() && !drops && distinctOperands(problem.getMask()).empty() &&
               !mayListTiles(problem);
  return plain ? Configs{config(128, 1), config(64, 2)} : Configs{config(64, 2)};
}

// A reducer of 32 columns, with four blocks a step or more, is slower by 2 to 3 % for asking; short documents gain more. Beside heads that share keys there are no
// registers to ask of every mask.
bool attn::writesAlone(ProblemOp problem, const BackwardConfigs &configs) {
  bool packed = problem.getKLayout().isPacked();
  int64_t reducer = configs.keys.getReducer();
  if (!configs.sums || !configs.together || configs.order == SumOrder::Any || !(reducer >= 64 || (reducer && packed)))
    return false;
  return someEndInFirstTile(problem.getMask(), /*someAreShort=*/packed && problem.getHeads() == problem.getKvHeads());
}

BackwardConfigs attn::chooseBackwardConfigs(BackwardOp backward, llvm::StringRef target, int64_t arch,
                                            int64_t fallback) {
  ProblemOp problem = backward.getProblemOp();
  mlir::MLIRContext *context = backward.getContext();
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  auto config = [&](int64_t qTile, int64_t kvTile, int64_t warps) {
    return ConfigAttr::get(context, qTile, kvTile, warps, /*blocks=*/1);
  };
  bool drops = problem.dropoutInForce().has_value(); // random numbers take registers, too
  bool learns = backward.getRequiresGrad() && problem.getModifiers().size() > 2; // so do derivatives
  BackwardConfigs configs;
  configs.together = target == "cpu" || dim <= 128;
  configs.prepare = ConfigAttr::get(context, /*q_tile=*/128, /*kv_tile=*/16, /*warps=*/8, /*blocks=*/4);
  // Narrow products of a few rows, or of two key tiles, take less than to add up and round sums in memory, or to wait for turns.
  int64_t most = std::max(problem.getMaxSeqlenQ().value_or(4096), problem.getMaxSeqlenKv().value_or(4096));
  KeyWalk walk(problem.getMask(), MaskScope());
  bool fewTiles = dim <= 64 && most <= (backward.getDeterministic() ? 192 : 64);
  // In turns: where the tiles that add before a tile are known without lists, and come soon.
  // (Lists of slots leave out whole sequences, and have those of a sequence in order.)
  bool reads = !distinctOperands(problem.getMask()).empty();
  const char *whyNoTurns = reads ? "deterministic, and arrays of the mask decide which key tiles add to it"
                           : mayListTiles(problem)
                               ? "deterministic, and lists of tiles decide which key tiles add to it"
                           : !walk.hasOneRun() ? "deterministic, and the key tiles that add to it are not contiguous"
                           : walk.beginsWithLongest() ? "deterministic, and later key tiles would wait for the first"
                                                      : nullptr;
  Configs values = valuesAlone(problem, drops);
  Configs sums = dim > 128 ? Configs(values.size(), wideKeys(problem)) : narrowKeys(problem, drops, walk.hasOneRun());
  // A warpgroup's part of dQ has 64 columns or a multiple of that, or all there are.
  configs.whyNoSums = target != "sm_90a"                                   ? "the target does not accumulate dQ"
                      : backward.getDeterministic() && whyNoTurns          ? whyNoTurns
                      : fewTiles                                           ? "max_seqlen allows two key tiles at most"
                      : dim > 128 && sumColumns(problem.getDimQk()) == 192 ? "warpgroups cannot divide its columns"
                                                                           : nullptr;
  if (configs.whyNoSums)
    sums.clear();
  else if (fallback >= int64_t(sums.size()))
    configs.whyNoSums = "registers do not suffice for accumulation";
  configs.sums = !configs.whyNoSums;
  if (configs.sums && !whyNoTurns) // in either order nothing is cleared; to wait for the first alone costs less. (Wide ones are cleared beside products.)
    configs.order = backward.getDeterministic() ? SumOrder::InTurns : configs.together ? SumOrder::AfterFirst : SumOrder::Any;
  if (target == "cpu") {
    configs.keys = configs.queries = config(64, 64, 1);
  } else if (target == "sm_90a") {
    // One body: with two, ptxas runs out of registers at 128, and that of a full tile is as fast with a branch.
    int64_t passing = drops ? 32 : 64; // of wide heads
    ConfigAttr keys = dim <= 64 ? config(64, 128, 8) : dim <= 128 ? config(32, 128, 8) : config(passing, 64, 4);
    ConfigAttr queries = dim <= 128 ? config(128, learns ? 32 : 64, 8) : config(64, passing, 4);
    // Without sums two bodies are quicker, by up to 5 % up to 128 columns, but they may not fit, and where tests read arrays they do not for wide heads, of which
    // neither may one body (narrower tiles take up to 29 % longer).
    bool wide = dim > 128, one = wide ? reads : dim > 64 && learns;
    struct Alone {
      ConfigAttr keys, queries;
    };
    auto bodies = [&](bool ofKeys, bool ofQueries) { return Alone{keys.withOneBody(ofKeys), queries.withOneBody(ofQueries)}; };
    llvm::SmallVector<Alone> alone = {bodies(one, wide && one)};
    if (wide && !reads)
      alone.append({bodies(true, true), bodies(true, false), bodies(false, true)});
    else
      alone.push_back(bodies(!one, wide && one));
    if (wide)
      keys = config(32, 64, 4), queries = config(64, 32, 4);
    alone.push_back(bodies(true, true));
    int64_t left = std::min<int64_t>(fallback - int64_t(sums.size()), alone.size() - 1);
    configs.keys = configs.sums ? sums[fallback] : alone[left].keys;
    configs.queries = alone[std::max<int64_t>(left, 0)].queries;
    configs.hasFallback = left + 1 < int64_t(alone.size());
    configs.isDoubtful = configs.hasFallback && (isCostly(problem) || (dim <= 64 ? !problem.getModifiers().empty() : reads));
  } else {
    // Four tiles in shared memory, two at rest and two that pass by: of these as many rows as
    // registers and shared memory have room for.
    int64_t passing = dim <= 64 ? 64 : (drops || learns) && dim > 192 ? 16 : 32, limit = sharedMemoryLimit(target, arch) - 1024;
    while (passing > 16 && 2 * 2 * (64 + passing) * int64_t(llvm::alignTo(dim, 16) + 8) > limit)
      passing /= 2;
    for (; fallback > 0 && passing > 16; --fallback)
      passing /= 2;
    configs.hasFallback = passing > 16;
    configs.keys = config(passing, 64, 4);
    configs.queries = config(64, passing, 4);
  }
  if (auto given = llvm::dyn_cast_or_null<ConfigAttr>(backward.getConfigAttr()); given && !ownsSequences(given))
    configs.keys = given;
  configs.values = target == "sm_90a" && dim > 128 && !backward.getConfigAttr() ? values[std::min<int64_t>(fallback, values.size() - 1)] : configs.keys;
  return configs;
}
