// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a kernel, which follow from the problem. Kernel bodies find them by name; `program.launch` describes
// each to the launcher, and the runtime fills it in (kernels-runtime/lib/ProgramBind.cpp).
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_KERNELARGUMENTS_H
#define ATTN_LIB_SCHEDULES_COMMON_KERNELARGUMENTS_H

#include "ProgramBuilder.h"
#include "Workspace.h"
#include "attn/Schedules/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace attn {

/// An argument of a kernel, and what its launch passes.
struct KernelArgument {
  std::string name;
  mlir::Type type;
  program::ArgumentAttr launched; ///< for an extent of a tensor: without the extent
  std::string tensor;             ///< empty if no tensor is named
  int axisFromEnd = 0;            ///< for an extent of a tensor: which axis, 1 for the last
};

/// A tensor that a kernel uses, and how.
struct TensorUse {
  llvm::StringRef name;
  program::Effect effect = program::Effect::read;
};

/// Does a launch decide how many splits there are? With a single one, the kernel of splits stores the problem's
/// results, and the combine kernel is not launched.
inline bool mayBeUnsplit(tile::ScheduleInterface schedule) {
  return schedule.splitsKv() && !schedule.getKvSplits().value_or(0);
}

/// The grid of a kernel's launch, as in `tile.kernel`.
struct KernelGrid {
  bool packed = false;
  int64_t heads = 1;
  bool keys = false;              ///< tiles are of keys, heads are kv heads
  mlir::IntegerAttr tiles;        ///< CTAs or warps for each sequence; null for grids of tiles
  mlir::IntegerAttr cluster;      ///< CTAs of a cluster; null except in kernels for rows of ids or for the whole batch
  bool ofIds = false;             ///< one cluster for each row of ids; else a single one
  mlir::DenseI64ArrayAttr longer; ///< lengths beyond which sequences are computed; null: all
  int64_t most = 0;               ///< CTAs that loop over the work; 0: one for each unit of work
  /// `parts` kernels share the result rows by classes, such as those of short and of long sequences. This kernel writes
  /// class `part`.
  int64_t part = 0, parts = 1;
  /// The same for dq, and for dk and dv, if it differs.
  std::optional<std::pair<int64_t, int64_t>> partOfDq, partOfDkDv;
  bool splitsLoops = false; ///< several CTAs may share the loop of a tile
  /// There are CTAs only in launches with several splits. Each of the two kernels, parts 0 and 1 of 2, then writes all
  /// rows or none.
  bool ifSplit = false;
  std::optional<rt::Extent> blocks; ///< CTAs, where neither tiles nor sequences decide
  int64_t residues = 1;             ///< rows of a tile are so many positions apart, and `heads` counts residues as well
};

/// Names and types, in order. Tensors: `q`, `k`, `v`, `o` (pointers to the
/// problem's dtype), `lse` (float32). Arrays (int32): `cu_seqlens_q` and
/// `padded_offsets_q` of packed layouts, likewise `_kv`, and the mask's own.
/// Sizes (i32): `batch`; `total_q` (tokens) if q is packed, else `seqlen_q`;
/// `seqlen_kv` if keys are dense, `total_kv` if they are packed and the mask has arrays for
/// each of them and heads. Strides in elements (i64): `<tensor>_batch`
/// (dense only), `<tensor>_row`, `<tensor>_head`; the row stride of lse is 1. A
/// persistent kernel, whose tiles are loaded by TMA, also has `q_map`, `k_map`, `v_map`, the number of `blocks` (i32)
/// that the grid would have, and the `queue`.
///
/// With split-KV, the attention kernel has `partial_o`, `partial_max` and `partial_sum` (pointers to float32 in the
/// workspace), and the number of `splits` (i32). It has the problem's results as well if a launch may have one split
/// (`mayBeUnsplit`). The combine kernel has these, the problem's results and q's sizes.
struct KernelArguments {
  /// `usesTma`: with tensor maps, of every `rowStride`-th row. `hasTileLists`: with KV-tile lists, and `total_kv` of
  /// packed keys. `mapsAsLists`: block maps that are passed as lists instead of bits.
  static KernelArguments ofForward(ProblemOp problem, tile::ScheduleInterface schedule, bool usesTma,
                                   bool hasTileLists = false, bool hasWorkTileList = false,
                                   llvm::ArrayRef<MaskOperand> mapsAsLists = {}, int64_t rowStride = 1);
  static KernelArguments ofCombine(ProblemOp problem);
  /// For the kernel that combines the results of split loops over keys.
  static KernelArguments ofCombineLoops(ProblemOp problem);
  /// For kernels that list tiles: all arrays, `results`, the capacity of lists, the sizes of both sides. `transposed`:
  /// with transposed lists instead of `mapsAsLists` themselves.
  static KernelArguments ofTileLists(ProblemOp problem, llvm::ArrayRef<TensorUse> results,
                                     llvm::ArrayRef<MaskOperand> mapsAsLists = {}, bool transposed = false);
  /// For the kernel that computes the bits of a block map: `<offsets>`, `<columns>`, `<columns>_entries`,
  /// `<offsets>_bits`, `<offsets>_bits_rows`, `<offsets>_bits_words`, `batch`, the number of `blocks`. Kernels that
  /// test blocks have the bits and their extents instead of the lists, or the lists (`mapsReadAsLists`) with
  /// `<offsets>_entries` and `<columns>_entries`.
  static KernelArguments ofBlockMap(ProblemOp problem, const MaskOperand &lists);
  /// For the kernel that writes the offsets of lists of one width: them, `<offsets>_entries` of a head or sequence,
  /// `<columns>_width`, and `offsets`, those of all.
  static KernelArguments ofOffsets(ProblemOp problem, const MaskOperand &map);
  /// For kernels that transpose lists of one width: these `uses`, prefix sums of packed sequences, `batch`, `lines`
  /// (lists of a dense sequence, or of all packed ones of a head), `<columns>_width`, `key_blocks` (likewise),
  /// `all_blocks` of a head, and the number of `blocks`, which are CTAs.
  static KernelArguments ofTransposed(ProblemOp problem, const MaskOperand &map, llvm::ArrayRef<TensorUse> uses);
  /// For the kernel that numbers a tree: all arrays, its scratch buffer, the sizes of both sides; `cooperative`: for
  /// cooperative CTAs, with the `queue`.
  static KernelArguments ofTree(ProblemOp problem, llvm::StringRef parents, bool cooperative);
  /// For the kernel of `metadata.split_walks`: `results`, lists of query tiles if there are any, the sizes of both
  /// sides, `multiprocessors`, and for each of the `partial` buffers `<buffer>_slots`.
  static KernelArguments ofLoopSplits(ProblemOp problem, llvm::ArrayRef<TensorUse> results,
                                      llvm::ArrayRef<TensorUse> partial, bool hasTileLists);
  /// For a backward kernel with these tensors, in the order of `tensorsOf` and `workspaceOf`, with all arrays and the
  /// sizes of both sides, and the number of `blocks` if that is among them. With `usesTma`, read-only tensors are
  /// passed as `<tensor>_map` for tiles of `rows(tensor)` rows, `rowStride` apart.
  static KernelArguments ofBackward(BackwardOp backward, llvm::ArrayRef<TensorUse> tensors, bool usesTma,
                                    llvm::function_ref<int64_t(llvm::StringRef)> rows, int64_t rowStride = 1,
                                    llvm::ArrayRef<MaskOperand> mapsAsLists = {});
  /// For the segments kernel: tensors (int32), `id_rows`, `tokens_q`, `tokens_kv`, with positions `position_rows_q` and
  /// `position_rows_kv`, the `queue`. `problem`: the problem it is expanded for (`expandSegments`), null if its results
  /// are the caller's.
  static KernelArguments ofSegments(SegmentsOp segments, ProblemOp problem = {});

  /// For the kernel that stores the LSE of tokens that see only a sink: lse, ids and positions of q, the sinks, lengths
  /// and offsets of q, sizes.
  static KernelArguments ofSinks(ProblemOp problem, SegmentsOp segments);

  /// For the kernel of `attn.gather_rows`: the parts, the result and the index, `total_q`, strides of rows and heads.
  static KernelArguments ofGatherRows(GatherRowsOp rows);

  /// For a kernel that calls functions: pointers to tensors, of which some are `written`, sizes, numbers of rows
  /// `<tensor>_rows`, and strides `<tensor>_batch`, `<tensor>_row`, `<tensor>_head` of those axes that the tensors
  /// have.
  static KernelArguments ofCalls(ComputationInterface op, ProgramBuilder &program,
                                 llvm::ArrayRef<llvm::StringRef> tensors, llvm::ArrayRef<llvm::StringRef> written,
                                 llvm::ArrayRef<llvm::StringRef> sizes, llvm::ArrayRef<llvm::StringRef> rowsOf);
  /// A number that follows from sizes, i32.
  void addNumber(llvm::StringRef name, const rt::Extent &extent);

  /// Creates a kernel with these arguments and an empty body, and its launch in the program.
  tile::KernelOp makeKernel(ProgramBuilder &program, mlir::OpBuilder &b, mlir::Location loc, llvm::StringRef name,
                            llvm::StringRef target, const KernelGrid &grid, tile::ScheduleInterface schedule) const;

  /// The same for a kernel of one CTA, of 16 warps.
  tile::KernelOp makeKernelOfOneCta(ProgramBuilder &program, mlir::OpBuilder &b, mlir::Location loc,
                                    llvm::StringRef name, llvm::StringRef target) const;

  llvm::SmallVector<KernelArgument> list;

private:
  KernelArguments(mlir::MLIRContext *context) : context(context) {}

  /// `effect`: the effect on results and buffers; other tensors are read.
  void addPointers(ProblemOp problem, llvm::ArrayRef<ProblemTensor> tensors,
                   llvm::function_ref<program::Effect(llvm::StringRef)> effect = {});
  /// Arrays that preceding kernels derive from the mask's; the block maps `mapsAsLists` are passed themselves, or their
  /// transposed lists. This kernel itself writes the arrays of trees with these parents.
  void addDerivedArrays(ProblemOp problem, llvm::ArrayRef<MaskOperand> mapsAsLists = {}, llvm::StringRef parents = "",
                        bool transposed = false);
  /// The columns of a block map, and how many entries they have.
  void addColumns(ProblemOp problem, const MaskOperand &map);
  void addPartial(program::Effect effect);
  void addSlots(program::Effect effect);
  /// Pointers to integers.
  void addIntegers(llvm::ArrayRef<TensorUse> uses);
  void addLists(ProblemOp problem, bool ofKeys);
  void addSizes(ProblemOp problem, bool keys, bool totalKeys = false);
  void addStrides(llvm::ArrayRef<ProblemTensor> tensors);
  void addPointer(llvm::StringRef tensor, mlir::Type element, program::Effect effect);
  /// A tensor map for tiles of `rows` rows, `rowStride` apart, with `heads` packed heads.
  void addMap(ProblemOp problem, const ProblemTensor &tensor, int64_t rows, int64_t rowStride, int64_t heads = 1);
  void addStride(llvm::StringRef tensor, llvm::StringRef axisName, int axis);
  void addSize(llvm::StringRef name) { addSize(name, name); }
  void addSize(llvm::StringRef name, llvm::StringRef size);
  void addExtent(llvm::StringRef tensor, llvm::StringRef axisName, int axisFromEnd);
  void addBlocks();
  void addCounter();

  mlir::MLIRContext *context;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_KERNELARGUMENTS_H
