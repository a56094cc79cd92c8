// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of a pass, written together with its kernels: the caller's tensors, buffers at their first use, launches
// in the order of the kernels.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_PROGRAMBUILDER_H
#define ATTN_LIB_SCHEDULES_COMMON_PROGRAMBUILDER_H

#include "Workspace.h"
#include "attn-rt/Program.h"
#include "attn/Dialect/Program/IR/Program.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/StringMap.h"

namespace attn {

struct KernelGrid;
struct KernelArguments;

/// CTAs of a kernel that loops over a work-tile list in grid-stride order: more than any GPU runs at once.
constexpr int64_t ctasOfListedWorkTiles = 2048;

class ProgramBuilder {
public:
  /// Starts the program of a pass before its op. Its tensors are those before segments are expanded.
  ProgramBuilder(Computation computation, llvm::StringRef target);
  ProgramBuilder(SegmentsOp segments, llvm::StringRef target);
  ProgramBuilder(GatherRowsOp rows, llvm::StringRef target);
  ProgramBuilder(ComputationInterface op, llvm::StringRef target);

  program::DefOp getProgram() const { return def; }
  /// Sets the sizes of tiles that have KV-tile lists, before any list is used.
  void setListed(bool ofKeys, int64_t queries, int64_t keys) { extents.listed[ofKeys] = {queries, keys}; }
  /// Is there a tensor or buffer of this name?
  bool hasTensor(llvm::StringRef name) const { return values.count(name); }
  mlir::Type elementOf(llvm::StringRef tensor);
  std::vector<rt::Extent> extentsOf(llvm::StringRef tensor);
  /// The extent of a tensor's axis of rows.
  rt::Extent rowsOf(llvm::StringRef tensor) { return extentsOf(tensor)[rowAxes.lookup(tensor)]; }
  /// Appends a launch of a kernel with these arguments.
  void launch(tile::KernelOp kernel, const KernelArguments &arguments, const KernelGrid &grid);
  /// Ends the program: marks results that a launch without CTAs leaves to be zeroed, and moves the program before
  /// `before`, which follows all kernels.
  void finish(mlir::Operation *before);

private:
  ProgramBuilder(mlir::Operation *op, llvm::StringRef name, llvm::StringRef target);
  void addSignature(const rt::Program &signature);
  mlir::Value tensor(llvm::StringRef name);
  rt::Extent ctasOf(tile::KernelOp kernel, const KernelGrid &grid, int64_t most) const;
  void addSplits(tile::KernelOp kernel, const KernelGrid &grid);
  void addSize(llvm::StringRef name, const rt::Extent &value);

  mlir::OpBuilder b;
  mlir::Location loc;
  program::DefOp def;
  ProblemExtents extents;
  bool isHost = false;
  rt::Dtype data = rt::Dtype::F16;
  llvm::StringMap<mlir::Value> values;
  std::vector<WorkspaceBuffer> workspace;
  llvm::StringMap<int> rowAxes; ///< of a computation's tensors
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_PROGRAMBUILDER_H
