// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Pipeline.h"
#include "attn/Conversion/AttnToTile.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Program/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::registerDialects(DialectRegistry &registry) {
  registry.insert<AttnDialect, tile::TileDialect, program::ProgramDialect, arith::ArithDialect, math::MathDialect,
                  scf::SCFDialect>();
}

void attn::registerPasses() {
  registerAttnPasses();
  registerConversionPasses();
  tile::registerTilePasses();
  program::registerProgramPasses();
  PassPipelineRegistration<PipelineOptions>("attn-pipeline", "from problems to kernels that can be printed",
                                            buildPipeline);
}

void attn::buildPipeline(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createCanonicalizeMasks());
  pm.addPass(createConvertAttnToTile({options.target, options.arch, options.fallback}));
  pm.addNestedPass<program::DefOp>(program::createPlaceBuffers());
  OpPassManager &kernel = pm.nest<tile::KernelOp>();
  if (options.target != "cpu") // some kernels for sm_90a are sm_80's
    kernel.addPass(tile::createPipelineKv());
  if (options.target == "sm_90a") {
    kernel.addPass(createCSEPass()); // what a test loads and a walk's bounds too is one number, to be sent
    kernel.addPass(tile::createPersist());
    kernel.addPass(tile::createAssignRoles());
    kernel.addPass(tile::createRecallWords());
    kernel.addPass(tile::createOverlapProducts());
    kernel.addPass(tile::createOverlapGradients());
  }
  kernel.addPass(tile::createSplitKvLoop());
  kernel.addPass(tile::createFuseModify());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  if (options.target == "sm_90a")
    kernel.addPass(tile::createRecallInSteps());
  int64_t arch = archOf(options.target, options.arch).value_or(0); // others convert-attn-to-tile refuses
  kernel.addPass(tile::createAllocateShared({sharedMemoryLimit(options.target, arch)}));
  kernel.addPass(tile::createVerifyAsync());
}
