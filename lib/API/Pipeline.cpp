// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Pipeline.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Metadata/IR/Metadata.h"
#include "attn/Dialect/Plan/Transforms/Passes.h"
#include "attn/Dialect/Program/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Schedules/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::registerDialects(DialectRegistry &registry) {
  registry.insert<AttnDialect, tile::TileDialect, metadata::MetadataDialect, plan::PlanDialect, program::ProgramDialect,
                  arith::ArithDialect, math::MathDialect, scf::SCFDialect>();
}

void attn::registerPasses() {
  registerAttnPasses();
  registerSchedulesPasses();
  tile::registerTilePasses();
  program::registerProgramPasses();
  plan::registerPlanPasses();
  PassPipelineRegistration<PipelineOptions>("attn-pipeline", "from problems to kernels that can be printed",
                                            buildPipeline);
}

void attn::buildPipeline(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createCanonicalizeMasks());
  pm.addPass(createAttnChooseSchedule({options.target, options.arch, options.fallback}));
  pm.addPass(createConvertAttnToTile());
  pm.addNestedPass<program::DefOp>(program::createPlaceBuffers());
  OpPassManager &kernel = pm.nest<tile::KernelOp>();
  std::optional<TargetInfo> target =
      TargetInfo::get(options.target, options.arch); // attn-choose-schedule refuses others
  bool isHost = target && target->isHost(), specializesWarps = target && target->specializesWarps;
  if (!isHost) // a program for sm_90a also has kernels for sm_80
    kernel.addPass(tile::createPipelineKv());
  if (specializesWarps) {
    // Merges loads that mask tests and loop bounds share, so the producer publishes each value once.
    kernel.addPass(createCSEPass());
    kernel.addPass(tile::createOverlapStores());
    kernel.addPass(tile::createPersist());
    kernel.addPass(tile::createAssignRoles());
    kernel.addPass(tile::createReloadWork());
    kernel.addPass(tile::createOverlapProducts());
    kernel.addPass(tile::createOverlapGradients());
  }
  kernel.addPass(tile::createSplitKvLoop());
  kernel.addPass(tile::createFuseModify());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  if (specializesWarps)
    kernel.addPass(tile::createReloadInSteps());
  kernel.addPass(tile::createAllocateShared({target ? target->sharedMemory : 0}));
  kernel.addPass(tile::createVerifyAsync());
}
