// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a kernel: which there are follows from the problem, and their
// names are the contract with the launcher (lib/API binds them).
//
#ifndef ATTN_LIB_SCHEDULES_KERNELARGUMENTS_H
#define ATTN_LIB_SCHEDULES_KERNELARGUMENTS_H

#include "ProgramBuilder.h"
#include "Workspace.h"
#include "attn/Schedules/AttnToTile.h"
#include "llvm/ADT/StringMap.h"

namespace attn {

/// An argument of a kernel, and what its launch gives for it.
struct KernelArgument {
  std::string name;
  mlir::Type type;
  program::ArgumentAttr launched; ///< of an extent of a tensor: without the extent
  std::string tensor;             ///< empty of those that name none
  int axisFromEnd = 0;            ///< of an extent of a tensor: which, 1 for the last
};

/// A tensor that a kernel has, and what it does there.
struct TensorUse {
  llvm::StringRef name;
  program::Effect effect = program::Effect::read;
};

/// How many blocks a kernel's launch has, as `tile.kernel` says it.
struct KernelGrid {
  bool packed = false;
  int64_t heads = 1;
  bool keys = false;              ///< tiles are of keys, heads are kv heads
  mlir::IntegerAttr tiles;        ///< null but for kernels on SIMT tiles
  mlir::IntegerAttr cluster;      ///< null but for rows
  bool ofIds = false;             ///< of rows: of ids; else there is one
  mlir::DenseI64ArrayAttr longer; ///< null: for all sequences
  int64_t most = 0;               ///< blocks, which then go along a loop; 0: as many as there is work
  /// Which class of rows of results it writes, of how many.
  int64_t part = 0, parts = 1;
  /// The same of dq alone, if it differs.
  std::optional<std::pair<int64_t, int64_t>> partOfDq;
};

/// Names and types, in order. Tensors: `q`, `k`, `v`, `o` (pointers to the
/// problem's dtype), `lse` (float32). Arrays (int32): `cu_seqlens_q` and
/// `padded_offsets_q` of packed layouts, likewise `_kv`, and the mask's own.
/// Sizes (i32): `batch`; `total_q` (tokens) if q is packed, else `seqlen_q`;
/// `seqlen_kv` if keys are dense, `total_kv` if they are packed and the mask has arrays for
/// each of them and heads. Strides in elements (i64): `<tensor>_batch`
/// (dense only), `<tensor>_row`, `<tensor>_head`; the row stride of lse is 1. Of a
/// persistent kernel with tiles of `boxes` also `q_map`, `k_map`, `v_map`, the
/// number of `blocks` (i32) that the grid would have, and the `queue`.
///
/// Where keys are shared out, the kernel that computes has `partial_o` and
/// `partial_max`, `partial_sum` (pointers to float32, in the launch's workspace) for its results
/// instead of the problem's, and the number of `splits` (i32); the one that merges has
/// these, the problem's results and q's sizes.
struct KernelArguments {
  /// `lists`: with those of the tiles to visit, and `total_kv` of packed keys. `slots`: with the list of those it is
  /// for. `whole`: of these block maps the lists and not bits.
  static KernelArguments ofForward(ProblemOp problem, tile::ScheduleInterface schedule, bool boxes, bool lists = false,
                                   bool slots = false, llvm::ArrayRef<MaskOperand> whole = {});
  static KernelArguments ofCombine(ProblemOp problem);
  /// Of kernels that find out which tiles there are: all arrays, `results`, of lists how long they are, the sizes of
  /// both sides.
  static KernelArguments ofTileLists(ProblemOp problem, llvm::ArrayRef<TensorUse> results,
                                     llvm::ArrayRef<MaskOperand> whole = {});
  /// Of the kernel that makes bits of a block map: `<offsets>`, `<columns>`, `<columns>_entries`, `<offsets>_bits`,
  /// `<offsets>_bits_rows`, `<offsets>_bits_words`, `batch`, the number of `blocks`. Kernels that ask for blocks have
  /// the bits and their extents in place of the lists; or these (`wholeMaps`), with `<offsets>_entries` and
  /// `<columns>_entries`.
  static KernelArguments ofBlockMap(ProblemOp problem, const MaskOperand &lists);
  /// Of the kernel that numbers a tree: all arrays, where it works, the sizes of both sides; `teams`: of its blocks,
  /// with the `queue`.
  static KernelArguments ofTree(ProblemOp problem, llvm::StringRef parents, bool teams);
  /// Of a backward pass, a kernel that has these of its tensors, in the order of
  /// `tensorsOf` and `scratchOf`, with all arrays and the sizes of both sides. With `boxes`
  /// those that are only read are `<tensor>_map`s: of `rows(tensor)` rows.
  static KernelArguments ofBackward(BackwardOp backward, llvm::ArrayRef<TensorUse> tensors, bool boxes,
                                    llvm::function_ref<int64_t(llvm::StringRef)> rows);
  /// Tensors (int32), `id_rows`, `tokens_q`, `tokens_kv`, with positions `position_rows_q`
  /// and `position_rows_kv`, the `queue`. `problem`: what it is made for (`expandSegments`), null if for the caller.
  static KernelArguments ofSegments(SegmentsOp segments, ProblemOp problem = {});

  /// For the kernel that gives their lse to tokens that see a sink alone: lse, ids and positions of q, the sinks,
  /// lengths and offsets of q, sizes.
  static KernelArguments ofSinks(ProblemOp problem, SegmentsOp segments);

  /// A kernel with these arguments and an empty body, and its launch in the program.
  tile::KernelOp makeKernel(ProgramBuilder &program, mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef name,
                            llvm::StringRef target, const KernelGrid &grid, tile::ScheduleInterface schedule) const;

  llvm::SmallVector<KernelArgument> list;

private:
  KernelArguments(mlir::MLIRContext *context) : context(context) {}

  /// `effect`: on those that are results or buffers; others are read.
  void addPointers(ProblemOp problem, llvm::ArrayRef<ProblemTensor> tensors,
                   llvm::function_ref<program::Effect(llvm::StringRef)> effect = {});
  /// What kernels ahead make of the mask's arrays. Of `whole` block maps they make nothing. Trees of these parents are
  /// made here.
  void addMade(ProblemOp problem, llvm::ArrayRef<MaskOperand> whole = {}, llvm::StringRef parents = "");
  void addPartial(program::Effect effect);
  /// Pointers to integers.
  void addIntegers(llvm::ArrayRef<TensorUse> uses);
  void addLists(ProblemOp problem, bool ofKeys);
  void addSizes(ProblemOp problem, bool keys, bool totalKeys = false);
  void addStrides(ProblemOp problem, llvm::ArrayRef<ProblemTensor> tensors);
  void addPointer(llvm::StringRef tensor, mlir::Type element, program::Effect effect);
  void addMap(llvm::StringRef tensor, mlir::Type map, const ProblemTensor &of);
  void addStride(llvm::StringRef tensor, llvm::StringRef axisName, int axis);
  void addSize(llvm::StringRef name) { addSize(name, name); }
  void addSize(llvm::StringRef name, llvm::StringRef size);
  void addExtent(llvm::StringRef tensor, llvm::StringRef axisName, int axisFromEnd);
  void addBlocks();
  void addCounter();

  mlir::MLIRContext *context;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_KERNELARGUMENTS_H
