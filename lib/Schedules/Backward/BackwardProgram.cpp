// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of a backward pass, and the tensors that each reads and writes.
//
#include "GradientsKernel.h"
#include "QuerySplits.h"
#include "Schedules/Common/Rules.h"
#include "Schedules/Metadata/TileListKernels.h"
#include "attn/Schedules/KeyWalk.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void attn::writeBackward(BackwardOp backward, BackwardKernelsAttr kernels, Lowering &lowering,
                         ArrayRef<MaskOperand> mapsAsLists) {
  ProgramBuilder &program = lowering.program;
  const TargetInfo &target = lowering.target;
  const std::optional<ShortLimit> &limit = lowering.limit;
  const int64_t rowStride = lowering.rowStride();
  ProblemOp problem = backward.getProblemOp();
  OpBuilder b(backward);
  Location loc = backward.getLoc();
  auto module = backward->getParentOfType<ModuleOp>();
  auto nameOf = [&](StringRef suffix) {
    return suffix.empty() ? backward.getSymName().str() : freeSymbol(module, backward.getSymName() + suffix);
  };
  StringRef generic = target.generic();
  ScheduleInterface dkdv = kernels.getDkdv();
  bool accumulates = kernels.accumulates();
  int64_t dqRows = accumulates ? dkdv.getQTile() : kernels.getDq().getQTile();
  const LongWorkTiles lists[] = {{0, statisticsTile}, {1, dkdv.getKvTile()}, {2, dqRows}};
  bool listsWorkTiles = limit && problem.getQLayout().isPacked(); // dense sequences are all long or all short
  if (listsWorkTiles)
    writeWorkTileLists(backward, program, generic, *limit, lists);
  bool listsTiles = hasTileLists(problem, dkdv);
  if (listsTiles)
    writeTileLists(backward, program, generic, inPositions(dkdv, rowStride), /*ofKeys=*/true, mapsAsLists);
  if (listsTiles && !accumulates)
    writeTileLists(backward, program, generic, inPositions(kernels.getDq(), rowStride), /*ofKeys=*/false, mapsAsLists);
  bool hasSoleWriters = storesDqDirectly(backward, kernels), splitsQ = kernels.getSplitQ() > 0;
  if (splitsQ)
    writeQuerySplits(backward, program, generic, kernels);
  using program::Effect;
  auto make = [&](StringRef suffix, ArrayRef<TensorUse> tensors, bool keys, bool usesTma, ScheduleInterface schedule) {
    SmallVector<TensorUse> all(tensors);
    if (listsWorkTiles)
      all.push_back({workTileLists(true)[keys ? 1 : suffix == "_preprocess" ? 0 : 2].name});
    auto rows = [&](StringRef tensor) {
      return tensor == "k" || tensor == "v" ? schedule.getKvTile() : schedule.getQTile();
    };
    auto arguments = KernelArguments::ofBackward(backward, all, usesTma, rows, rowStride, mapsAsLists);
    LayoutAttr layout = keys ? problem.getKLayout() : problem.getQLayout();
    int64_t heads = keys ? problem.getKvHeads() : problem.getHeads();
    KernelGrid grid = {layout.isPacked(), heads * rowStride, keys};
    grid.residues = rowStride;
    if (limit)
      grid.longer = b.getDenseI64ArrayAttr({limit->queries, limit->keys});
    // Other kernels compute short sequences; dQ rows that a single KV tile sees are written by that tile's CTA.
    grid.part = limit ? 1 : 0, grid.parts = limit ? 2 : 1;
    if (hasSoleWriters)
      grid.partOfDq = {grid.part + (keys ? 0 : 1), grid.parts + 1};
    if (splitsQ && keys) { // the combine kernel writes tiles that several CTAs share
      bool combines = suffix == "_combine";
      grid.splitsLoops = !combines, grid.partOfDkDv = {grid.part + combines, grid.parts + 1};
      grid.most = combines ? ctasOfListedWorkTiles : 0;
    }
    return arguments.makeKernel(program, b, loc, nameOf(suffix), usesTma ? target.name : generic, grid, schedule);
  };
  SmallVector<TensorUse> preprocessTensors =
      backward.getDelta() ? SmallVector<TensorUse>{{"lse"}, {"delta"}} : SmallVector<TensorUse>{{"o"}, {"lse"}, {"do"}};
  preprocessTensors.append({{"row_statistics", Effect::write}, {"row_statistics_head"}, {"row_statistics_kind"}});
  if (backward.getDlse())
    preprocessTensors.push_back({"dlse"});
  DqAccumulation order = kernels.getAccumulation();
  bool firstStores = accumulates && order != DqAccumulation::unordered; // the first CTA of a query tile stores dQ
  // The dV kernel clears the accumulator, if the grid covers all work tiles.
  bool clearsAccumulator = accumulates && kernels.getDv() && !limit && !firstStores;
  if (accumulates && !clearsAccumulator)
    preprocessTensors.push_back({firstStores ? "dq_semaphore" : "dq_accumulator", Effect::write});
  writePreprocess(
      problem,
      make("_preprocess", preprocessTensors, false, false,
           AuxiliaryAttr::get(b.getContext(), /*q_tile=*/128, /*kv_tile=*/16, /*warps=*/8, /*ctas_per_sm=*/4)),
      exponentOfProbabilities(problem, target.name));
  auto gradients = [&](StringRef suffix, GradientResults results, ScheduleInterface schedule) {
    SmallVector<TensorUse> tensors = {
        {"q"}, {"k"}, {"do"}, {"row_statistics"}, {"row_statistics_head"}, {"row_statistics_kind"}};
    auto add = [&](bool wanted, StringRef tensor, Effect effect = Effect::write) {
      if (wanted)
        tensors.push_back({tensor, effect});
    };
    add(results.dk || results.dq, "v", Effect::read);
    add(results.dq || results.hasSoleWriters, "dq");
    add(results.dq && backward.getAddDq(), "before_dq", Effect::read);
    add(results.dk, "dk");
    add(results.dv, "dv");
    add(results.accumulatesDq(), "dq_accumulator",
        firstStores ? Effect::write : Effect::update); // the first KV tile stores, the others add
    add(results.clearsAccumulator, "dq_accumulator");
    add(results.firstCtaStores(), "dq_semaphore", Effect::update);
    if (splitsQ && !results.dq) {
      const LoopSplits &splits = querySplits(results.dv && !results.dk && hasSplitsOfDv(kernels));
      tensors.append({{splits.list}, {splits.counts}});
      add(results.dk, "partial_dk");
      add(results.dv, "partial_dv");
    }
    bool ofKeys = !results.dq; // lists exist for one tile size only
    if (listsTiles && (!ofKeys || (schedule.getKvTile() == dkdv.getKvTile() && schedule.getQTile() == dkdv.getQTile())))
      tensors.push_back({tileLists(ofKeys).list});
    writeGradients(problem, make(suffix, tensors, /*keys=*/!results.dq, target.specializesWarps, schedule), results,
                   lowering.residues);
  };
  if (kernels.getDv()) {
    gradients("_dv", {.dv = true, .clearsAccumulator = clearsAccumulator}, kernels.getDv());
    gradients("", {.dk = true, .order = order}, dkdv);
  } else {
    gradients("", {.dk = true, .dv = true, .order = order, .hasSoleWriters = hasSoleWriters}, dkdv);
  }
  if (splitsQ) {
    auto schedule = AuxiliaryAttr::get(b.getContext(), /*q_tile=*/combinedRows, /*kv_tile=*/combinedRows,
                                       /*warps=*/combinedRows, /*ctas_per_sm=*/4);
    SmallVector<TensorUse> tensors = {
        {"dk", Effect::write}, {"dv", Effect::write}, {"partial_dk"}, {"partial_dv"}, {"blocks"}};
    for (bool ofDv : {false, true})
      if (!ofDv || hasSplitsOfDv(kernels))
        tensors.append({{querySplits(ofDv).counts}, {querySplits(ofDv).split}});
    writeCombineSums(problem, make("_combine", tensors, /*keys=*/true, false, schedule), kernels);
  }
  if (accumulates) {
    int64_t ctas = accumulatorColumns(problem.getDimQk()) > 128 ? 3 : 4; // as many CTAs as registers allow
    auto schedule = AuxiliaryAttr::get(b.getContext(), dqRows, 16, dqRows / 16, ctas);
    SmallVector<TensorUse> tensors = {{"dq", Effect::write}, {"dq_accumulator"}, {"row_statistics_head"}};
    if (backward.getAddDq())
      tensors.push_back({"before_dq"});
    if (firstStores)
      tensors.push_back({"dq_semaphore"});
    PostprocessParameters parameters = {dqFragmentColumns(problem, dkdv),
                                        addsFromRegisters(problem, dkdv, order, !kernels.getDv()), clearsAccumulator,
                                        hasSoleWriters};
    writePostprocess(problem, make("_postprocess", tensors, false, false, schedule), parameters);
  } else {
    gradients("_dq", {.dq = true}, kernels.getDq());
  }
}
