// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of a pass, written as its kernels are: tensors of the caller, buffers at their first use, launches in
// the order of the kernels.
//
#ifndef ATTN_LIB_SCHEDULES_PROGRAMBUILDER_H
#define ATTN_LIB_SCHEDULES_PROGRAMBUILDER_H

#include "Workspace.h"
#include "attn-rt/Program.h"
#include "attn/Dialect/Program/IR/Program.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/StringMap.h"

namespace attn {

struct KernelGrid;
struct KernelArguments;

/// Blocks of a kernel that goes along a list of slots, which take several each if there are more: more than any chip
/// has at once.
constexpr int64_t ctasOfListedWorkTiles = 2048;

class ProgramBuilder {
public:
  /// Opens the program of a pass ahead of the op that says it. Its tensors are those before segments are expanded.
  ProgramBuilder(Computation computation, llvm::StringRef target);
  ProgramBuilder(SegmentsOp segments, llvm::StringRef target);

  /// Sizes of the tiles of which there are lists, before any list is used.
  void setListed(bool ofKeys, int64_t queries, int64_t keys) { extents.listed[ofKeys] = {queries, keys}; }
  /// Appends a launch of a kernel with these arguments.
  void launch(tile::KernelOp kernel, const KernelArguments &arguments, const KernelGrid &grid);
  /// All launches are there: says which results a launch without blocks leaves to be zeroed, and moves the program
  /// ahead of `before`, which is behind all kernels.
  void finish(mlir::Operation *before);

private:
  ProgramBuilder(mlir::Operation *op, llvm::StringRef name, llvm::StringRef target);
  void addSignature(const rt::Program &signature);
  mlir::Value tensor(llvm::StringRef name);
  rt::Extent blocksOf(tile::KernelOp kernel, const KernelGrid &grid, int64_t most) const;
  void addSplits(tile::KernelOp kernel, const KernelGrid &grid);
  void addSize(llvm::StringRef name, const rt::Extent &value);
  mlir::MLIRContext *context() const { return loc.getContext(); }

  mlir::OpBuilder b;
  mlir::Location loc;
  program::DefOp def;
  ProblemExtents extents;
  bool isHost = false;
  rt::Dtype data = rt::Dtype::F16;
  llvm::StringMap<mlir::Value> values;
  std::vector<WorkspaceBuffer> workspace;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_PROGRAMBUILDER_H
