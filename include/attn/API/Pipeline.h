// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every tool registers, and the passes from a problem to a kernel that can
// be printed.
//
#ifndef ATTN_API_PIPELINE_H
#define ATTN_API_PIPELINE_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace attn {

void registerDialects(mlir::DialectRegistry &registry);
void registerPasses();

struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("`cpu`, `sm_80` or `sm_90a`"), llvm::cl::init("sm_80")};
  Option<int64_t> arch{*this, "arch", llvm::cl::desc("compute capability times ten; 0: the target's own"),
                       llvm::cl::init(0)};
  Option<int64_t> fallback{
      *this, "fallback",
      llvm::cl::desc(
          "which alternative for kernels that do not fit their registers, 0: none; where there are fewer, the last"),
      llvm::cl::init(0)};
};

/// All passes from problems to kernels that can be printed, in the order of Pipeline.cpp; docs/generated/Passes.md
/// describes each. As a command: `attn-opt --attn-pipeline="target=... arch=..."`.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options);

} // namespace attn

#endif // ATTN_API_PIPELINE_H
