// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn.combine, attn.combine_backward and attn.add: one kernel over rows each.
//
#include "CallKernel.h"
#include "Lowerings.h"

using namespace mlir;
using namespace attn;
using Names = llvm::SmallVector<std::string>;

static constexpr const char *header = "attn/combine_branches.h";

/// LSEs of so many rows of a head are a sector of memory (32 bytes), which one CTA then writes.
static constexpr int64_t rowsOfStatistics = 8;

/// The rows of all sequences, and the length of one, by a name; packed tensors are one sequence.
static std::pair<rt::Extent, std::string> rowsOf(LayoutAttr layout) {
  if (layout.isPacked())
    return {rt::Extent::symbol("total_q"), "total_q"};
  return {rt::Extent::symbol("batch") * rt::Extent::symbol("seqlen_q"), "seqlen_q"};
}

/// A thread has about two units of 16 bytes.
static int64_t rowsInCta(const CallKernel &kernel, int64_t heads, int64_t dim) {
  return std::clamp<int64_t>(2 * kernel.threads() * 8 / (heads * dim), 1, 64);
}

static void finish(CallKernel &kernel, LayoutAttr layout, int64_t heads, int64_t dim, Names &others,
                   int64_t leastRows = 1) {
  auto [rows, length] = rowsOf(layout);
  kernel.setRows(std::max(rowsInCta(kernel, heads, dim), leastRows), rows);
  others.append({length, "first", "rows"});
}

LogicalResult attn::writeCombine(CombineOp op, ProgramBuilder &program, const TargetInfo &target) {
  CallKernel kernel(op, program, target);
  const int64_t branches = op.getBranches();
  Names others;
  appendStrides(others, "o");
  appendPointers(others, "o_", branches);
  appendStridesOf(others, "o_", branches);
  if (op.getSigmoid())
    others.push_back("gates");
  finish(kernel, op.getLayout(), op.getHeads(), op.getDim(), others);
  kernel.call(functionOf("combine_branches", branches, op.getHeads(), op.getDim(), op.getSigmoid(),
                         op.getGatesType().isF32(), kernel.threads()),
              {"o"}, others);
  kernel.build(header);
  return success();
}

LogicalResult attn::writeCombineBackward(CombineBackwardOp op, ProgramBuilder &program, const TargetInfo &target) {
  CombineOp combine = op.getCombineOp();
  CallKernel kernel(op, program, target);
  const int64_t branches = combine.getBranches();
  Names written, others;
  appendPointers(written, "delta_", branches);
  appendPointers(written, "gated_lse_", branches);
  if (combine.getSigmoid())
    written.push_back("dgates");
  appendPointers(others, "o_", branches);
  appendPointers(others, "lse_", branches);
  if (combine.getSigmoid())
    others.push_back("gates");
  others.push_back("do");
  appendStridesOf(others, "o_", branches);
  appendStrides(others, "do");
  for (const char *prefix : {"lse_", "delta_", "gated_lse_"})
    for (int64_t i = 0; i < branches; ++i)
      for (const char *axis : {".batch", ".head"})
        others.push_back(prefix + std::to_string(i) + axis);
  finish(kernel, combine.getLayout(), combine.getHeads(), combine.getDim(), others, rowsOfStatistics);
  kernel.call(functionOf("combine_branches_backward", branches, combine.getHeads(), combine.getDim(),
                         combine.getSigmoid(), kernel.threads()),
              written, others);
  kernel.build(header);
  return success();
}

LogicalResult attn::writeAdd(AddOp op, ProgramBuilder &program, const TargetInfo &target) {
  CallKernel kernel(op, program, target);
  const int64_t parts = op.getParts();
  Names others;
  appendStrides(others, "result");
  appendPointers(others, "part_", parts);
  appendStridesOf(others, "part_", parts);
  finish(kernel, op.getLayout(), op.getHeads(), op.getDim(), others);
  kernel.call(
      functionOf("add_parts_of_rows", parts, op.getHeads(), op.getDim(), op.getPartType().isF32(), kernel.threads()),
      {"result"}, others);
  kernel.build(header);
  return success();
}
