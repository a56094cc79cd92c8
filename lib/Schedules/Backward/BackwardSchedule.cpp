// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `backward_kernels`: gradients on grids of tiles (docs/Schedules/backward_kernels.md). Registers limit the tile sizes:
// a thread has 255 (240 with setmaxnreg) for accumulators of head dim columns and two score tiles.
//
#include "ArrayGradKernels.h"
#include "GradientsKernel.h"
#include "QuerySplits.h"
#include "Schedules/Choices.h"
#include "Schedules/Common/Registry.h"
#include "Schedules/Metadata/BlockMapKernels.h"
#include "Schedules/Metadata/DerivedArrays.h"
#include "attn/Schedules/KeyWalk.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using namespace attn::tile;
using HopperSizes = llvm::SmallVector<WarpSpecializedBackwardAttr>; // in the order of trials

static WarpSpecializedBackwardAttr hopper(ProblemOp problem, int64_t qTile, int64_t kvTile, int64_t warps) {
  return WarpSpecializedBackwardAttr::get(problem.getContext(), qTile, kvTile, warps, /*ctas_per_sm=*/1);
}

// dK and accumulated dQ of wide heads: shared memory holds K, V, two stages of dS, and one or two stages of Q and dO.
// With 64 keys a tile, additions to the dQ accumulator would take as long as the products.
static WarpSpecializedBackwardAttr wideKeys(ProblemOp problem, const TargetInfo &target) {
  int64_t columns = llvm::alignTo(problem.getDimQk(), 64) + llvm::alignTo(problem.getDimV(), 64);
  auto bytes = [&](int64_t stages) { return 2 * (columns * (128 + 64 * stages) + 2 * 128 * 64); };
  return hopper(problem, /*q_tile=*/64, /*kv_tile=*/128, /*warps=*/8)
      .withSingleLoop(true)
      .withStages(bytes(2) <= target.roomForTiles() ? 2 : 1);
}

// dK, dV and accumulated dQ of head dims to 128, in the order of trials until registers suffice. Beside a dQ MMA
// warpgroup consumers have 208 registers, or 216 with 32 dQ columns at a time, which modifiers and masks of several
// runs of packed rows need.
static HopperSizes narrowKeys(ProblemOp problem, bool hasDropout, bool hasOneRun) {
  auto config = [&](int64_t qTile, int64_t dqColumns) {
    return hopper(problem, qTile, /*kv_tile=*/128, /*warps=*/8).withSingleLoop(true).withDqColumns(dqColumns);
  };
  bool plain =
      llvm::all_of(problem.getModifiers(), llvm::IsaPred<AlibiAttr>) && (hasOneRun || !problem.getKLayout().isPacked());
  if (widthOf(problem) > 64 && plain)
    return {config(64, 64), config(64, 32), config(64, 0)};
  if (widthOf(problem) > 64)
    return {config(64, 32), config(64, 0)};
  if (hasDropout)
    return {config(64, 64), config(64, 0)};
  return {config(128, 32), config(64, 64), config(128, 0), config(64, 0)};
}

// dV of wide heads in a kernel of its own: with twice the keys a tile, half as much of Q and dO is read. Query tiles of
// 128 rows read K from shared memory half as often (head dim 256, s 16384: 3332 -> 3024 us), and shared memory has room
// for one stage. Modifiers, dropout and array masks leave no registers for them, and KV-tile lists are of 64-row tiles.
static HopperSizes valuesOnly(ProblemOp problem, bool hasDropout) {
  auto config = [&](int64_t qTile, int64_t stages) {
    return hopper(problem, qTile, /*kv_tile=*/128, /*warps=*/8).withSingleLoop(true).withStages(stages);
  };
  bool plain = problem.getModifiers().empty() && !hasDropout && distinctOperands(problem.getMask()).empty() &&
               !mayListTiles(problem);
  return plain ? HopperSizes{config(128, 1), config(64, 2)} : HopperSizes{config(64, 2)};
}

// The test of every tile makes a dQ MMA warpgroup of 32 columns (four blocks a step or more) 2 to 3 % slower, but short
// documents gain more. With grouped-query heads registers do not suffice for the test with every mask.
bool attn::storesDqDirectly(BackwardOp backward, BackwardKernelsAttr kernels) {
  ProblemOp problem = backward.getProblemOp();
  bool packed = problem.getKLayout().isPacked();
  WarpSpecializedInterface roles = warpSpecializationOf(kernels.getDkdv());
  int64_t dqColumns = roles ? roles.getDqColumns() : 0;
  DqAccumulation order = kernels.getAccumulation();
  if (!kernels.accumulates() || kernels.getDv() || problem.getQLayout().hasPieces() || backward.getFloat32Dq() ||
      backward.getAddDq() || order == DqAccumulation::unordered || !(dqColumns >= 64 || (dqColumns && packed)))
    return false;
  return someEndInFirstTile(problem.getMask(), /*someAreShort=*/packed && problem.getHeads() == problem.getKvHeads());
}

namespace {
/// What the choice depends on.
struct BackwardTraits {
  BackwardTraits(BackwardOp backward, const TargetInfo &target)
      : backward(backward), problem(backward.getProblemOp()), target(target), dim(widthOf(problem)),
        hasDropout(problem.dropoutInForce().has_value()),
        hasManyModifierGradients(backward.getRequiresGrad() && problem.getModifiers().size() > 2),
        maskReadsArrays(!distinctOperands(problem.getMask()).empty()),
        splitQ(target.isHost() ? 0 : chooseSplitQ(problem)), walk(problem.getMask(), MaskScope()) {
    if (mayListTiles(problem) && dim <= 128) // wider heads were not timed
      blocks = boundingLists(problem.getMask());
  }

  /// Why dQ cannot be accumulated in order; null if it can: the KV tiles that precede one have to be known without
  /// lists, and to finish soon. (Work-tile lists omit whole sequences only and keep the order within a sequence.)
  const char *whyNotOrdered() {
    if (loopsOverPieces())
      return "key tiles of several pieces add to it";
    if (maskReadsArrays)
      return "arrays of the mask decide which key tiles add to it";
    if (mayListTiles(problem))
      return "lists of tiles decide which key tiles add to it";
    if (!walk.hasOneRun())
      return "the key tiles that add to it are not contiguous";
    return walk.beginsWithLongest() ? "later key tiles would wait for the first" : nullptr;
  }

  bool loopsOverPieces() { return problem.getQLayout().hasPieces() && !problem.getSinglePieces(); }

  /// Why dQ has a kernel of its own, whatever the registers; null if it has none.
  const char *whySeparate(const char *whyNotOrdered) {
    // For narrow heads with few rows or two KV tiles, recomputing the products is faster than accumulating dQ in global
    // memory, or than waiting for the order.
    int64_t most = std::max(problem.getMaxSeqlenQ().value_or(4096), problem.getMaxSeqlenKv().value_or(4096));
    if (!target.specializesWarps)
      return "the target does not accumulate dQ";
    if (loopsOverPieces()) // also where any order would do: accumulation lacks registers
      return whyNotOrdered;
    if (backward.getDeterministic() && whyNotOrdered)
      return whyNotOrdered;
    if (blocks)
      return "the query tiles that list a key tile are far apart, so the L2 cache does not hold their dQ";
    if (dim <= 64 && most <= (backward.getDeterministic() ? 192 : 64))
      return backward.getDeterministic()
                 ? "max_seqlen allows at most two KV tiles, so two more products cost less than waiting"
                 : "max_seqlen allows at most 64 rows, so two more products cost less than accumulation";
    return nullptr;
  }

  BackwardOp backward;
  ProblemOp problem;
  const TargetInfo &target;
  int64_t dim;
  bool hasDropout;                                      ///< dropout takes registers
  bool hasManyModifierGradients;                        ///< so do more than two modifiers with requires_grad
  bool maskReadsArrays;                                 ///< the mask reads arrays
  int64_t splitQ;                                       ///< the schedule's `split_q`
  std::optional<llvm::SmallVector<MaskOperand>> blocks; ///< block maps that bound the lists of tiles, if there are any
  KeyWalk walk;
};

/// Schedules of separate kernels for dK (with dV) and dQ, on Hopper.
struct Pair {
  WarpSpecializedBackwardAttr keys, queries;
};
} // namespace

// Lists of blocks. Tiles have no more rows and keys than blocks, or a tile would visit what two blocks list. Two CTAs
// of a multiprocessor hide each other's loads and exponentials: 64 keys and 32 queries leave a CTA registers for that.
static Pair pairOfBlocks(ProblemOp problem, llvm::ArrayRef<MaskOperand> blocks) {
  int64_t dim = widthOf(problem);
  auto fit = [&](bool keys) {
    return llvm::all_of(blocks,
                        [=](const MaskOperand &map) { return (keys ? map.lists->kv : map.lists->q) % 128 == 0; });
  };
  auto narrow = [&](int64_t qTile, int64_t stages) {
    return WarpSpecializedBackwardAttr::get(problem.getContext(), qTile, /*kv_tile=*/64, /*warps=*/4, /*ctas_per_sm=*/2)
        .withStages(stages);
  };
  return {fit(/*keys=*/true) ? hopper(problem, dim <= 64 ? 64 : 32, 128, 8).withStages(4)
          : dim <= 64        ? narrow(/*q_tile=*/64, /*stages=*/2)
                             : narrow(/*q_tile=*/32, /*stages=*/3),
          fit(/*keys=*/false) ? hopper(problem, 128, 64, 8) : narrow(/*q_tile=*/64, /*stages=*/2)};
}

// Wide heads have one loop with a branch: with separate loops for full and masked tiles, ptxas runs out of registers at
// 128, and one loop is as fast. Otherwise two loops are faster, by up to 5 % to 128 columns, but may not fit; for wide
// heads whose mask reads arrays, one loop may not fit either (narrower tiles take up to 29 % longer).
static llvm::SmallVector<Pair> separatePairs(BackwardTraits &traits) {
  ProblemOp problem = traits.problem;
  int64_t dim = traits.dim, streamed = traits.hasDropout ? 32 : 64; // rows of a streamed tile, for wide heads
  bool wide = dim > 128;
  WarpSpecializedBackwardAttr keys = dim <= 64    ? hopper(problem, 64, 128, 8)
                                     : dim <= 128 ? hopper(problem, 32, 128, 8)
                                                  : hopper(problem, streamed, 64, 4);
  WarpSpecializedBackwardAttr queries = dim <= 128 ? hopper(problem, 128, traits.hasManyModifierGradients ? 32 : 64, 8)
                                                   : hopper(problem, 64, streamed, 4);
  bool one = wide ? traits.maskReadsArrays : dim > 64 && traits.hasManyModifierGradients;
  auto loops = [&](bool ofKeys, bool ofQueries) {
    return Pair{keys.withSingleLoop(ofKeys), queries.withSingleLoop(ofQueries)};
  };
  llvm::SmallVector<Pair> pairs = {loops(one, wide && one)};
  if (wide && !traits.maskReadsArrays)
    pairs.append({loops(true, true), loops(true, false), loops(false, true)});
  else
    pairs.push_back(loops(!one, wide && one));
  if (wide)
    keys = hopper(problem, 32, 64, 4), queries = hopper(problem, 64, 32, 4);
  pairs.push_back(loops(true, true));
  if (traits.loopsOverPieces()) { // a loop over pieces has scalars of its own
    keys = dim <= 64    ? hopper(problem, 32, 128, 8)
           : dim <= 128 ? hopper(problem, 16, 128, 8)
                        : hopper(problem, 16, 64, 4);
    pairs.append({loops(false, wide), loops(true, wide)});
  }
  if (traits.blocks)
    pairs.insert(pairs.begin(), pairOfBlocks(problem, *traits.blocks));
  return pairs;
}

static BackwardChoice chooseOnHopper(BackwardTraits &traits, int64_t index) {
  ProblemOp problem = traits.problem;
  mlir::MLIRContext *context = problem.getContext();
  bool wide = traits.dim > 128;
  const char *whyNotOrdered = traits.whyNotOrdered(), *whySeparate = traits.whySeparate(whyNotOrdered);
  HopperSizes values = valuesOnly(problem, traits.hasDropout);
  HopperSizes sums = wide ? HopperSizes(values.size(), wideKeys(problem, traits.target))
                          : narrowKeys(problem, traits.hasDropout, traits.walk.hasOneRun());
  if (whySeparate)
    sums.clear();
  else if (index >= int64_t(sums.size()))
    whySeparate = "registers do not suffice for accumulation";
  ScheduleInterface dv =
      wide ? ScheduleInterface(values[std::min<int64_t>(index, values.size() - 1)]) : ScheduleInterface();
  llvm::SmallVector<Pair> pairs = separatePairs(traits);
  int64_t left = std::min<int64_t>(index - int64_t(sums.size()), pairs.size() - 1);
  BackwardChoice choice;
  choice.hasFallback = left + 1 < int64_t(pairs.size());
  choice.mayNotFit =
      choice.hasFallback &&
      (isCostly(problem) || (traits.dim <= 64 ? !problem.getModifiers().empty() : traits.maskReadsArrays));
  if (whySeparate) {
    choice.whySeparate = whySeparate;
    if (dv && mayListTiles(problem))
      dv = pairs[left].keys; // lists are of one tile size
    choice.kernels = BackwardKernelsAttr::get(context, DqAccumulation::separate, pairs[left].keys, dv,
                                              pairs[left].queries, traits.splitQ);
    return choice;
  }
  // `ordered` and `first_stores` need no cleared accumulator, since the first CTA stores, and waiting only for that one
  // costs less. (For wide heads the dV kernel clears the accumulator beside its products. Where CTAs share KV tiles of
  // grouped heads, the first KV tile has the longest loop of each head, and others would wait long for it.)
  bool waitsLong = traits.splitQ && problem.getHeads() != problem.getKvHeads();
  DqAccumulation order = whyNotOrdered                        ? DqAccumulation::unordered
                         : traits.backward.getDeterministic() ? DqAccumulation::ordered
                         : wide || waitsLong                  ? DqAccumulation::unordered
                                                              : DqAccumulation::first_stores;
  choice.kernels = BackwardKernelsAttr::get(context, order, sums[index], dv, ScheduleInterface(), traits.splitQ);
  return choice;
}

static BackwardChoice chooseTiled(BackwardTraits &traits, int64_t index) {
  ProblemOp problem = traits.problem;
  auto tiled = [&](int64_t qTile, int64_t kvTile, int64_t warps) {
    return TiledBackwardAttr::get(problem.getContext(), qTile, kvTile, warps, /*ctas_per_sm=*/1);
  };
  BackwardChoice choice;
  TiledBackwardAttr keys, queries, values;
  if (traits.target.isHost()) {
    keys = queries = tiled(64, 64, 1);
  } else {
    // Four tiles in shared memory, two stationary and two streamed: these have as many rows as registers and shared
    // memory have room for.
    int64_t streamed = traits.dim <= 64                                                             ? 64
                       : (traits.hasDropout || traits.hasManyModifierGradients) && traits.dim > 192 ? 16
                                                                                                    : 32,
            limit = traits.target.sharedMemory - 1024;
    while (streamed > 16 && 2 * 2 * (64 + streamed) * int64_t(llvm::alignTo(traits.dim, 16) + 8) > limit)
      streamed /= 2;
    for (; index > 0 && streamed > 16; --index)
      streamed /= 2;
    choice.hasFallback = streamed > 16;
    keys = tiled(streamed, 64, 4), queries = tiled(64, streamed, 4);
    if (traits.dim > 128) // no registers for both dK and dV
      values = keys;
  }
  choice.whySeparate = traits.whySeparate(traits.whyNotOrdered());
  choice.kernels =
      BackwardKernelsAttr::get(problem.getContext(), DqAccumulation::separate, keys,
                               values ? ScheduleInterface(values) : ScheduleInterface(), queries, traits.splitQ);
  return choice;
}

BackwardChoice attn::chooseBackwardKernels(BackwardOp backward, const TargetInfo &target, int64_t index) {
  BackwardTraits traits(backward, target);
  return target.specializesWarps ? chooseOnHopper(traits, index) : chooseTiled(traits, index);
}

BackwardChoice attn::backwardKernelsWith(BackwardOp backward, const TargetInfo &target, ScheduleInterface dkdv) {
  BackwardChoice choice = chooseBackwardKernels(backward, target, /*index=*/0);
  BackwardKernelsAttr kernels = choice.kernels;
  choice.kernels =
      BackwardKernelsAttr::get(kernels.getContext(), kernels.getAccumulation(), dkdv,
                               kernels.getDv() ? dkdv : ScheduleInterface(), kernels.getDq(), kernels.getSplitQ());
  choice.hasFallback = false;
  return choice;
}

/// Why a schedule of dK and dV, or of dV alone, is invalid.
static std::optional<std::string> refusalOfKeys(BackwardKernelsAttr kernels, ScheduleInterface keys,
                                                const TargetInfo &target) {
  WarpSpecializedInterface roles = warpSpecializationOf(keys);
  bool isKnown =
      target.specializesWarps ? llvm::isa<WarpSpecializedBackwardAttr>(keys) : llvm::isa<TiledBackwardAttr>(keys);
  if (!isKnown)
    return withSchedule("expected #tile." +
                            llvm::Twine(target.specializesWarps ? "warp_specialized_backward" : "tiled_backward") +
                            " for target `" + target.name + "`, got: ",
                        keys);
  if (keys.getKvTile() % (16 * keys.getWarps()) || statisticsTile % keys.getQTile() ||
      (roles && keys.getKvTile() != 16 * keys.getWarps()))
    return withSchedule(llvm::formatv("expected a q_tile that divides {0} and a kv_tile {1}, got: ", statisticsTile,
                                      roles ? "of 16 rows for each warp" : "in multiples of 16 * warps"),
                        keys);
  if (!roles || keys != kernels.getDkdv())
    return std::nullopt;
  // Without a dQ MMA warpgroup, each consumer warpgroup computes 64 rows of dQ, or half of their columns.
  if (kernels.accumulates() && !roles.getDqColumns() &&
      (keys.getQTile() % 64 || keys.getWarps() == 12 || keys.getQTile() > 16 * keys.getWarps()))
    return withSchedule(
        "expected a q_tile in multiples of 64, 4 or 8 warps, and a warpgroup for each 64 rows, where dQ is "
        "accumulated, got: ",
        keys);
  if (roles.getDqColumns() && !kernels.accumulates())
    return withSchedule("expected no dq_columns where dQ has a kernel of its own, got: ", keys);
  if (roles.getDqColumns() && kernels.getDv())
    return withSchedule("expected no dq_columns where dV has a kernel of its own, got: ", keys);
  return std::nullopt;
}

/// Why a schedule of dQ is invalid.
static std::optional<std::string> refusalOfQueries(ScheduleInterface queries, const TargetInfo &target) {
  bool isKnown =
      target.specializesWarps ? llvm::isa<WarpSpecializedBackwardAttr>(queries) : llvm::isa<TiledBackwardAttr>(queries);
  if (!isKnown || queries.getQTile() % (16 * queries.getWarps()) || statisticsTile % queries.getQTile() ||
      (target.specializesWarps && queries.getQTile() != 16 * queries.getWarps()))
    return withSchedule(
        llvm::formatv("expected for dq #tile.{0} with a q_tile that divides {1}, {2}, got: ",
                      target.specializesWarps ? "warp_specialized_backward" : "tiled_backward", statisticsTile,
                      target.specializesWarps ? "of 16 rows for each warp" : "in multiples of 16 * warps"),
        queries);
  return std::nullopt;
}

namespace {
class BackwardKernelsSchedule : public Schedule {
public:
  bool owns(mlir::Attribute schedule) const override {
    return llvm::isa<BackwardKernelsAttr, TiledBackwardAttr, WarpSpecializedBackwardAttr>(schedule);
  }
  bool takesPieces() const override { return true; }

  std::vector<ChosenSchedule> alternatives(Computation of, const TargetInfo &target, std::string &why) const override {
    std::vector<ChosenSchedule> all;
    BackwardChoice choice;
    do {
      choice = chooseBackwardKernels(of.backward, target, int64_t(all.size()));
      std::string separate = choice.whySeparate.empty() ? "" : "; dQ has a kernel of its own: " + choice.whySeparate;
      all.push_back({choice.kernels, why + separate, choice.mayNotFit});
    } while (choice.hasFallback);
    return all;
  }

  mlir::Attribute complete(Computation of, const TargetInfo &target, mlir::Attribute schedule) const override {
    if (llvm::isa<BackwardKernelsAttr>(schedule))
      return schedule;
    return backwardKernelsWith(of.backward, target, llvm::cast<ScheduleInterface>(schedule)).kernels;
  }

  std::optional<std::string> refusal(Computation of, const TargetInfo &target,
                                     mlir::Attribute schedule) const override {
    auto kernels = llvm::cast<BackwardKernelsAttr>(schedule);
    if (int64_t dim = widthOf(of.problem); dim > widestOfTiles)
      return withSchedule(llvm::formatv("expected #tile.simt_rows for head dims beyond 256, got: dim {0} with ", dim),
                          schedule);
    if (kernels.accumulates() && !target.specializesWarps)
      return withSchedule("expected a separate dQ kernel for target `" + target.name + "`, got: ", schedule);
    BackwardTraits traits(of.backward, target);
    if (traits.loopsOverPieces() && kernels.accumulates())
      return withSchedule("expected separate dQ accumulation with several pieces of a sequence, got: ", schedule);
    bool mustBeOrdered = of.backward.getDeterministic(),
         isUnordered = kernels.getAccumulation() == DqAccumulation::unordered;
    if (const char *why = traits.whyNotOrdered(); why && kernels.accumulates() && (mustBeOrdered || !isUnordered))
      return withSchedule(
          llvm::formatv("expected {0}separate dQ accumulation ({1}), got: ", mustBeOrdered ? "" : "unordered or ", why),
          schedule);
    if (of.backward.getDeterministic() && kernels.accumulates() && kernels.getAccumulation() != DqAccumulation::ordered)
      return withSchedule("expected ordered or separate dQ accumulation in a deterministic pass, got: ", schedule);
    if (const char *why = kernels.getSplitQ() ? whyNotSplitQ(of.problem) : nullptr)
      return withSchedule(llvm::formatv("expected no split_q with {0}, got: ", why), schedule);
    for (ScheduleInterface keys : {kernels.getDkdv(), kernels.getDv()})
      if (kernels.getSplitQ() && keys && keys.getKvTile() > splitRows)
        return withSchedule(llvm::formatv("expected a kv_tile to {0} with split_q, got: ", splitRows), schedule);
    if (kernels.getSplitQ() && mayListTiles(of.problem) && hasSplitsOfDv(kernels))
      return withSchedule("expected dv tiles of the same size as dkdv tiles with split_q and lists of tiles, got: ",
                          schedule);
    if (!kernels.getDv() && widthOf(of.problem) > 128 && !target.isHost())
      return withSchedule("expected a dv kernel of its own for head dims beyond 128, got: ", schedule);
    for (ScheduleInterface keys : {kernels.getDkdv(), kernels.getDv()})
      if (keys)
        if (std::optional<std::string> refusal = refusalOfKeys(kernels, keys, target))
          return refusal;
    return kernels.getDq() ? refusalOfQueries(kernels.getDq(), target) : std::nullopt;
  }

  std::string describe(Computation of, mlir::Attribute schedule) const override {
    auto kernels = llvm::cast<BackwardKernelsAttr>(schedule);
    std::string tiles = warpSpecializationOf(kernels.getDkdv()) ? "warp-specialized tiles" : "tiles";
    if (of.problem.getQLayout().isPacked() || of.problem.getKLayout().isPacked())
      tiles += " of packed rows";
    return tiles +
           (!kernels.accumulates()                                 ? ", separate dQ kernel"
            : kernels.getAccumulation() == DqAccumulation::ordered ? ", ordered dQ accumulation"
                                                                   : ", unordered dQ accumulation") +
           (kernels.getSplitQ() ? ", long loops over queries split among CTAs" : "");
  }

  void lower(Computation of, mlir::Attribute schedule, Lowering &lowering) const override {
    auto kernels = llvm::cast<BackwardKernelsAttr>(schedule);
    if (lowering.limit)
      kernels = kernels.withSplitQ(0); // long sequences have CTAs enough
    llvm::SmallVector<MaskOperand> mapsAsLists;
    if (!lowering.limit) { // otherwise the kernel of short sequences reads the derived arrays, too
      mapsAsLists = mapsReadAsLists(of.backward, kernels);
      writeDerivedArrays(of, lowering, mapsAsLists);
    } else if (kernels.getDv() &&
               kernels.getDv().getKvTile() != kernels.getDkdv().getKvTile()) // dV and dK share one list of work tiles
      kernels = BackwardKernelsAttr::get(kernels.getContext(), kernels.getAccumulation(), kernels.getDkdv(),
                                         kernels.getDkdv(), kernels.getDq(), kernels.getSplitQ());
    writeBackward(of.backward, kernels, lowering, mapsAsLists);
    writeArrayGrads(of.backward, lowering.program, lowering.target);
  }
};
} // namespace

const Schedule &attn::backwardKernels() {
  static const BackwardKernelsSchedule schedule;
  return schedule;
}
