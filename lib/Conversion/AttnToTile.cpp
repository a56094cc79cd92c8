// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.problem -> tile.kernel: which sizes, which arguments. The program itself is
// written by ForwardKernel, or, on strips, by StreamingKernel; that of attn.segments by
// SegmentsKernel.
//
#include "BackwardKernel.h"
#include "BlockMapKernels.h"
#include "ForwardKernel.h"
#include "KernelArguments.h"
#include "LearnedKernels.h"
#include "SegmentsKernel.h"
#include "StreamingKernel.h"
#include "TreeKernels.h"
#include "VisitKernels.h"
#include "attn/Conversion/Schedule.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILE
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Of `sm_90a`: warps that compute, in blocks that each have a warpgroup more.
static bool hasRoomForRoles(ConfigAttr config) { return config.getBlocks() <= 3 && config.getWarps() * config.getBlocks() <= 12; }

namespace {
struct ConvertAttnToTilePass : attn::impl::ConvertAttnToTileBase<ConvertAttnToTilePass> {
  using Base::Base;

  void runOnOperation() final {
    if (chipsOf(target).empty()) {
      getOperation().emitError("expected target `cpu`, `sm_80` or `sm_90a`, got: ") << target.getValue();
      return signalPassFailure();
    }
    std::optional<int64_t> chip = archOf(target, arch);
    if (!chip) {
      getOperation().emitError("expected arch ")
          << textOfChips(target) << " for target `" << target << "` (or 0, its own), got: " << arch.getValue();
      return signalPassFailure();
    }
    arch = *chip;
    if (fallback < 0) {
      getOperation().emitError("expected fallback not to be negative, got: ") << fallback.getValue();
      return signalPassFailure();
    }
    for (BackwardOp backward : llvm::make_early_inc_range(getOperation().getOps<BackwardOp>()))
      if (failed(convert(backward)))
        return signalPassFailure();
    for (ProblemOp problem : llvm::make_early_inc_range(getOperation().getOps<ProblemOp>())) {
      if (problem.isPrivate()) // described for others
        problem.erase();
      else if (failed(convert(problem)))
        signalPassFailure();
    }
    for (SegmentsOp segments : llvm::make_early_inc_range(getOperation().getOps<SegmentsOp>())) {
      ProgramBuilder program(segments, target);
      writeSegments(segments, program, target, clusterOf(target));
      program.finish(segments);
      segments.erase();
    }
  }

  LogicalResult checkDtype(Operation *op, ProblemOp problem) {
    if (llvm::is_contained(dataTypesOf(target, &getContext()), problem.getDtype()))
      return success();
    return op->emitOpError("expected dtype ") << textOfDataTypes(target) << " for target `" << target << "` (`cpu`: "
                                              << textOfDataTypes("cpu") << "), got: " << problem.getDtype();
  }

  LogicalResult convert(BackwardOp backward) {
    if (failed(checkDtype(backward, backward.getProblemOp())))
      return failure();
    Attribute given = backward.getConfigAttr();
    if (std::optional<std::string> fault = faultOfConfig(given))
      return backward.emitOpError(*fault);
    if (given && backward.getRequiresGrad() &&
        ownsSequences(cast<ConfigAttr>(given))) // which needs what tiles' kernels leave
      return backward.emitOpError("expected no config of lanes, by_sequence or look with requires_grad, got: ")
             << given;
    BackwardSchedule schedule = scheduleOf(backward, target, arch, fallback);
    ProblemOp problem = backward.getProblemOp();
    ProgramBuilder program(backward, target);
    auto done = [&] {
      program.finish(backward);
      backward.erase();
      return success();
    };
    if (!schedule.tiles) {
      writeMade(backward, program);
      if (failed(stream(backward, program, schedule.streamed)))
        return failure();
      return done();
    }
    if (int64_t dim = std::max(problem.getDimQk(), problem.getDimV()); dim > widestOfTiles)
      return backward.emitOpError("expected no config but one with lanes for head dims beyond 256, got: dim ") << dim;
    BackwardConfigs configs = schedule.configs;
    ConfigAttr keys = configs.keys;
    bool roles = target == "sm_90a";
    if (keys.getKvTile() % (16 * keys.getWarps()) || statisticsTile % keys.getQTile() ||
        (roles && (keys.getWarps() % 4 || keys.getKvTile() != 16 * keys.getWarps())))
      return backward.emitOpError("expected a q_tile that divides ")
             << statisticsTile << " and a kv_tile "
             << (roles ? "of 16 rows for each of 4, 8 or 12 warps" : "in multiples of 16 * warps") << " for target `"
             << target << "`, got: " << keys;
    if (roles && !hasRoomForRoles(keys))
      return backward.emitOpError("expected at most 3 blocks and 12 warps a multiprocessor for target `sm_90a`, got: ") << keys;
    // A warpgroup has 64 rows of dQ, or half of their columns.
    if (roles && configs.sums && !keys.getReducer() && (keys.getQTile() % 64 || keys.getWarps() == 12 || keys.getQTile() > 16 * keys.getWarps()))
      return backward.emitOpError("expected a q_tile in multiples of 64, 4 or 8 warps, and a warpgroup for each 64 rows, where dQ is added up, got: ") << keys;
    if (keys.getReducer() && (!configs.sums || !configs.together))
      return backward.emitOpError("expected no reducer where ")
             << (configs.sums ? "dV has a kernel of its own" : "dQ has a kernel of its own (" + std::string(configs.whyNoSums) + ")") << ", got: " << keys;
    bool others = !roles && (keys.getStages() != 2 || keys.getQStages() != 1);
    if (keys.getHoldQ() || keys.getTurns() || keys.getSplits() != 1 || others)
      return backward.emitOpError("expected the default hold_q, turns and splits with gradients on tiles")
             << (others ? ", and stages without roles" : "") << ", got: " << keys;
    if (keys.getPackHeads() != 1)
      return backward.emitOpError("expected pack_heads = 1 with gradients on tiles, got: ") << keys;
    writeMade(backward, program);
    std::optional<ShortLimit> limit;
    bool classes = bool(schedule.streamed);
    if (classes && configs.values.getKvTile() != keys.getKvTile()) // which have one list
      configs.values = keys;
    if (classes) {
      limit = shortLimit(backward, schedule.streamed);
      if (failed(stream(backward, program, schedule.streamed, limit, writesAlone(problem, configs) ? 3 : 2)))
        return failure();
    }
    writeBackward(backward, program, target, configs, limit);
    writeLearned(backward, program, target, arch);
    return done();
  }

  /// `classesOfDq`: of rows of dQ, of which short sequences' are the first.
  LogicalResult stream(BackwardOp backward, ProgramBuilder &program, ConfigAttr config,
                       std::optional<ShortLimit> limit = std::nullopt, int64_t classesOfDq = 1) {
    ProblemOp problem = backward.getProblemOp();
    if (backward.getPartialKv()) // deltas are sums over a sequence's own keys here
      return backward.emitOpError("expected a config of tiles with partial_kv, got: ") << config;
    std::string name = backward.getSymName().str();
    if (limit)
      name = freeSymbol(getOperation(), name + "_short");
    if (config.getLook() > 1) {
      if (failed(checkLook(backward, problem, config)))
        return failure();
      writeLookBackward(backward, program, name, config, *limit, classesOfDq);
      return success();
    }
    int64_t group = problem.getHeads() / problem.getKvHeads(), dim = std::max(problem.getDimQk(), problem.getDimV());
    if (dependsOnHead(problem.getMask()))
      return backward.emitOpError("expected a config without lanes and by_sequence for a mask that differs between heads, got: ") << config;
    if (config.hasStrips() ? config.getPackHeads() != 1 : config.getPackHeads() % group)
      return backward.emitOpError("expected pack_heads = 1 with a config of lanes, and all ")
             << group << " query heads of a kv head packed with by_sequence, got: " << config;
    if (config.getBySequence() && failed(checkSides(backward, problem, config)))
      return failure();
    if (config.getBySequence() && (dim > widestOfTiles || config.getQTile() % 8))
      return backward.emitOpError("expected head dims up to 256 and a q_tile in multiples of 8 with by_sequence, got: dim ")
             << dim << " with " << config;
    if (int64_t parts = config.getParts(); parts > 1 && (problem.getDimQk() % (16 * parts) || problem.getDimV() % (16 * parts)))
      return backward.emitOpError("expected parts of columns in multiples of 16, got: dims ")
             << problem.getDimQk() << ", " << problem.getDimV() << " with " << config;
    if (config.getBySequence() && failed(checkDropped(backward, problem, config)))
      return failure();
    writeStreamingBackward(backward, program, name, generic(), onTarget(config), limit, classesOfDq);
    return success();
  }

  /// Whether a block may look at all pairs of a sequence: each warpgroup has 64 rows of them, and 64 keys of the sums.
  LogicalResult checkLook(BackwardOp backward, ProblemOp problem, ConfigAttr config) {
    bool fits = target == "sm_90a" && mayLookBackward(problem);
    // Products read 64 rows of Q and dO for each warpgroup: what those lack is some of the places behind them, and of K that is enough.
    auto isBetween = [](int64_t rows, int64_t least, int64_t most) { return rows >= least && rows <= most && rows % 16 == 0; };
    int64_t rows = config.getQTile(), keys = config.getKvTile() * config.getLook();
    bool tiles = passesKeys(config) ? (config.getWarps() == 12 ? isBetween(rows, 144, 192) : config.getWarps() == 8 && isBetween(rows, 208, 256)) &&
                                          isBetween(config.getKvTile(), 48, 64) && keys <= 256
                                    : config.getWarps() == 8 && isBetween(rows, 80, 128) && isBetween(keys, 80, 128);
    bool others = config.getHoldQ() || config.getTurns() || config.getSplits() != 1 || config.getReducer() || config.getPackHeads() != 1 || config.getOneBody();
    if (fits && tiles && !others)
      return success();
    return backward.emitOpError("expected look = 1 but for target `sm_90a`, rows and keys both packed or both dense, as many kv heads, dims to 128, no score modifiers and block maps, "
                                "and with it 8 warps, q_tile and kv_tile * look from 80 to 128, or 12 warps and q_tile from 144 to 192 or 8 and from 208 to 256, with kv_tile of 48 or 64 and kv_tile "
                                "* look to 256, nothing else but blocks and stages, got: ")
           << config;
  }

  /// The target of what is not for Hopper alone.
  StringRef generic() { return target == "sm_90a" ? StringRef("sm_80") : StringRef(target.getValue()); }

  /// What kernels read in place of the caller's arrays. `whole`: block maps that they read themselves.
  void writeMade(Computation computation, ProgramBuilder &program, ArrayRef<MaskOperand> whole = {}) {
    writeBlockMaps(computation, program, generic(), whole);
    writeTrees(computation, program, generic());
  }

  /// What a config is on a CPU: there are no registers to hold Q in, and no lanes; a strip is a thread's.
  ConfigAttr onTarget(ConfigAttr config) {
    if (target != "cpu")
      return config;
    if (config.hasStrips())
      return ConfigAttr::ofStrips(&getContext(), config.getQTile(), config.getKvTile(), config.getPackHeads(),
                                  /*lanes=*/32, /*warps=*/1, /*blocks=*/1);
    if (config.getBySequence()) // a unit is a block, and that a thread
      return config.withWarps(1);
    return config.withHoldQ(false);
  }

  LogicalResult convert(ProblemOp problem) {
    if (failed(checkDtype(problem, problem)))
      return failure();
    if (std::optional<std::string> fault = faultOfConfig(problem.getConfigAttr()))
      return problem.emitOpError(*fault);
    Schedule schedule = scheduleOf(problem, target, arch, fallback);
    ConfigAttr config = onTarget(schedule.tiles ? schedule.tiles : schedule.streamed);
    if (failed(checkConfig(problem, config)))
      return failure();
    ProgramBuilder program(problem, target);
    SegmentsOp segments = problem.getSegments() ? expandSegments(problem) : SegmentsOp();
    if (segments)
      writeSegments(segments, program, target, clusterOf(target), problem);
    auto done = [&] {
      program.finish(problem);
      if (segments)
        segments.erase();
      problem.erase();
      return success();
    };
    bool hasSinkAlone = segments && problem.getSinkAttr() && problem.hasLse();
    bool lists = !config.streams() && listsVisits(problem, config);
    bool classes = schedule.tiles && schedule.streamed;
    SmallVector<MaskOperand> whole;
    if (lists && !classes) // short sequences have no lists
      whole = wholeMaps(problem, config);
    writeMade(problem, program, whole);
    OpBuilder b(problem);
    if (config.streams()) {
      writeStreamed(problem, program, problem.getSymName(), config, std::nullopt);
      if (hasSinkAlone)
        writeSinks(problem, program, segments, generic());
      return done();
    }
    bool boxes = target == "sm_90a";
    bool packed = problem.getQLayout().isPacked();
    Location loc = problem.getLoc();
    if (lists)
      writeVisits(problem, program, generic(), config, /*ofKeys=*/false, whole);
    KernelGrid grid = {packed, int64_t(problem.getHeads()) / config.getPackHeads()};
    if (classes) {
      ShortLimit limit = shortLimit(problem, schedule.streamed);
      writeSlotLists(problem, program, generic(), limit, LongSlots{0, config.getQueries()});
      grid.longer = b.getDenseI64ArrayAttr({limit.queries, limit.keys});
      grid.part = 1, grid.parts = 2;
    }
    if (std::optional<int64_t> tiles = tilesOfBounds(problem, config))
      grid.tiles = b.getI64IntegerAttr(*tiles);
    KernelOp forward = KernelArguments::ofForward(problem, config, boxes, lists, /*slots=*/classes, whole)
                           .makeKernel(program, b, loc, problem.getSymName(), target, grid, config);
    writeForward(problem, forward, config);
    if (classes)
      writeStreamed(problem, program, freeSymbol(getOperation(), problem.getSymName() + "_short"),
                    onTarget(schedule.streamed), shortLimit(problem, schedule.streamed));
    if (config.isSplit()) {
      std::string name = freeSymbol(getOperation(), problem.getSymName() + "_merge");
      writeMerge(problem,
                 KernelArguments::ofMerge(problem).makeKernel(program, b, loc, name, generic(),
                                                              {packed, int64_t(problem.getHeads())},
                                                              mergeConfig(&getContext())),
                 forward.getSoftmaxScale());
    }
    if (hasSinkAlone)
      writeSinks(problem, program, segments, generic());
    return done();
  }

  void writeStreamed(ProblemOp problem, ProgramBuilder &program, StringRef name, ConfigAttr config,
                     std::optional<ShortLimit> limit) {
    OpBuilder b(problem);
    KernelGrid grid = streamingGrid(problem, config);
    grid.parts = limit ? 2 : 1;
    writeStreaming(problem,
                   KernelArguments::ofForward(problem, config, /*boxes=*/false)
                       .makeKernel(program, b, problem.getLoc(), name, generic(), grid, config),
                   config, limit);
  }

  /// Random bits come for 16 rows and keys at a time.
  LogicalResult checkDropped(Operation *op, ProblemOp problem, ConfigAttr config) {
    bool whole = config.getKvTile() % 16 == 0 && (config.getPackHeads() > 1 || config.getQTile() % 16 == 0);
    if (problem.dropoutInForce() && !whole)
      return op->emitOpError("expected a q_tile and a kv_tile in multiples of 16 with dropout, got: ") << config;
    return success();
  }

  /// Whether kv heads may lie side by side in a tile.
  LogicalResult checkSides(Operation *op, ProblemOp problem, ConfigAttr config) {
    int64_t group = problem.getHeads() / problem.getKvHeads(), sides = config.getPackHeads() / group;
    if (group % config.getPackHeads() == 0)
      return success();
    if (config.getPackHeads() % group || problem.getKvHeads() % sides || config.getKvTile() % sides ||
        !problem.getModifiers().empty())
      return op->emitOpError("expected pack_heads to be ")
             << group << ", the query heads of a kv head, or, without score modifiers, a multiple of it of which there are "
             << "whole tiles of heads and in each whole keys, got: " << config;
    return success();
  }

  /// What a target makes of a config that was given by hand.
  LogicalResult checkConfig(ProblemOp problem, ConfigAttr config) {
    if (problem.getTiles() && config.streams())
      return problem.emitOpError("expected a config without lanes and by_sequence with tiles, got: ") << config;
    if (std::optional<int64_t> listed = problem.getTiles(); listed && *listed != config.getQueries())
      return problem.emitOpError("expected tiles(")
             << config.getQueries()
             << "), the queries of a tile of the config in force (or another config), got: tiles(" << *listed
             << ") with " << config;
    if (config.getLook() > 1 && (target != "sm_90a" || !mayLook(problem) || !tilesOfBounds(problem, config)))
      return problem.emitOpError("expected look = 1 but for target `sm_90a`, packed keys and bounds of two query tiles at most, without score modifiers, dropout, lists, packed heads and splits, got: ")
             << config;
    if (config.getReducer())
      return problem.emitOpError("expected no reducer, which a backward pass alone has, got: ") << config;
    int64_t group = problem.getHeads() / problem.getKvHeads();
    if (config.getBySequence() && config.getPackHeads() > group) {
      if (failed(checkSides(problem, problem, config)))
        return failure();
    } else if (group % config.getPackHeads())
      return problem.emitOpError("expected pack_heads to divide the ")
             << group << " query heads of a kv head, got: " << config;
    bool sharesWarps = config.hasStrips() && config.getLanes() != 32;
    if ((config.getPackHeads() != 1 || sharesWarps) && dependsOnHead(problem.getMask()))
      return problem.emitOpError("expected pack_heads = 1 and, if any, 32 lanes with a mask that differs between heads, got: ")
             << config;
    if (config.hasStrips())
      return success();
    if (int64_t dim = std::max(problem.getDimQk(), problem.getDimV()); dim > widestOfTiles)
      return problem.emitOpError("expected a config with lanes for head dims beyond 256, got: dim ")
             << dim << " with " << config;
    if (config.getBySequence()) {
      if (int64_t parts = config.getParts(); parts > 1 && problem.getDimV() % (16 * parts))
        return problem.emitOpError("expected parts of v's columns in multiples of 16, got: dim ") << problem.getDimV() << " with " << config;
      return checkDropped(problem, problem, config);
    }
    if (config.getQTile() == config.getWarps())
      return problem.emitOpError("expected a q_tile in multiples of 16 * warps, got: ") << config;
    if (target != "sm_90a") {
      if (config.getWarps() > 8)
        return problem.emitOpError("expected 1, 2, 4 or 8 warps for target `")
               << target << "`, got: " << config.getWarps();
      if (config.getStages() != 2 || config.getQStages() != 1 || config.getTurns())
        return problem.emitOpError("expected the default stages, q_stages and turns for target `")
               << target << "`, which has no roles, got: " << config;
      return success();
    }
    if (config.getWarps() % 4 || config.getQTile() != 16 * config.getWarps())
      return problem.emitOpError("expected 4, 8 or 12 warps of 16 rows each for target `sm_90a`, got: ") << config;
    if (config.getStages() < 2 && config.getLook() == 1)
      return problem.emitOpError("expected 2 stages at least, got: ") << config;
    if (config.getTurns() && config.getWarps() == 4)
      return problem.emitOpError("expected turns of two or three warpgroups, got: ") << config;
    if (!hasRoomForRoles(config) || config.getHoldQ())
      return problem.emitOpError(
                 "expected at most 3 blocks and 12 warps a multiprocessor and no hold_q for target `sm_90a`, got: ")
             << config;
    // ptxas wants room for an instruction with all of a product as its operand before roles share registers out anew.
    int64_t wide = std::max<int64_t>(config.getKvTile() * config.getLook(), problem.getDimV()), atLaunch = config.getRegistersAtLaunch();
    if (wide / 2 + 30 > atLaunch)
      return problem.emitOpError("expected at most ")
             << (atLaunch - 30) * 2 << " keys a tile and columns of v, since a thread is launched with " << atLaunch << " registers, got: " << wide
             << " with " << config;
    return success();
  }
};

} // namespace
