// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors of a program and their axes. Kernels take their arguments from this list;
// launches and the reference check shapes with it. It is plain data that outlives the problem.
//
#ifndef ATTN_DIALECT_ATTN_IR_PROBLEMTENSORS_H
#define ATTN_DIALECT_ATTN_IR_PROBLEMTENSORS_H

#include "attn-rt/Extent.h"
#include "attn-rt/Specialization.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/Support/MathExtras.h"
#include <map>

namespace attn {

/// A forward or a backward pass, for functions that work on either.
struct Computation {
  Computation(ProblemOp problem) : problem(problem) {}
  Computation(BackwardOp backward) : problem(backward.getProblemOp()), backward(backward) {}
  /// The op of the pass: `backward`, or the problem.
  mlir::Operation *getOperation() { return backward ? backward.getOperation() : problem.getOperation(); }
  llvm::StringRef getName() { return backward ? backward.getSymName() : problem.getSymName(); }

  ProblemOp problem;
  BackwardOp backward; ///< null: forward
};

/// The name of the gradient of an array.
std::string gradientOf(const ScoreOperand &array);
/// The operand that `add_array_grads` adds to it.
std::string gradientBefore(const ScoreOperand &array);
void addGradients(BackwardOp backward, std::vector<struct ProblemTensor> &list);
/// Do the arrays of `requires_grad` exist, and has no other tensor the name of a gradient?
mlir::LogicalResult verifyDifferentiatedArrays(BackwardOp backward);

/// The extents that a call's tensors decide; -1 while not known.
struct Sizes {
  int64_t batch = 0;
  int64_t rowsQ = 0;  ///< seqlen_q, or tokens of packed q and o
  int64_t rowsKv = 0; ///< seqlen_kv, or tokens of packed k and v
  /// For ids: the leading dimensions, whose product is the number of rows, the tokens of a
  /// row, and the number of rows that have positions of their own. Each row may have as many
  /// sequences as there are segments, and packed tensors have the tokens of all rows.
  llvm::SmallVector<int64_t, 4> lead;
  int64_t idRows = -1, tokensQ = -1, tokensKv = -1;
  int64_t positionRowsQ = 1, positionRowsKv = 1;
  /// With pieces: their numbers, and the tokens of whole sequences (known from arrays that have positions).
  int64_t piecesQ = -1, piecesKv = -1, wholeQ = -1, wholeKv = -1;
  /// As many keys as a sequence may have at most, where block maps are read.
  int64_t keysOfBlocks() const { return piecesKv < 0 ? rowsKv : wholeKv; }
  /// The last extent of each array whose length its own shape decides, by name.
  std::map<std::string, int64_t> entries;
};

using rt::widestOfTiles; ///< wider heads have no tiles: `simt_rows` computes them

/// The extents that the problem decides.
struct FixedSizes {
  int64_t heads = 0, kvHeads = 0, dimQk = 0, dimV = 0;
  int64_t allHeads = 0, allKvHeads = 0; ///< of arrays
  int64_t segments = 0;                 ///< of segments: ids
  int64_t qTile = 0;                    ///< query rows of the tiles in `tiles_q`
  int64_t longest = int64_t(1) << 30;   ///< of all axes (`longestSequence`)
  bool packedQ = false, packedKv = false;
  bool pieces = false, singlePieces = false;
  bool backward = false; ///< of gradients
  static FixedSizes of(Computation computation);
  static FixedSizes of(SegmentsOp segments);
  static FixedSizes of(GatherRowsOp rows);
  static FixedSizes of(ComputationInterface op) {
    FixedSizes fixed;
    op.fillFixedSizes(fixed);
    return fixed;
  }
};

struct ProblemTensor {
  enum Role { Operand, Result, Array };
  enum Element { Data, Float32, Int32 }; ///< Data: the problem's dtype
  /// LeadingDims: any number of axes. LastLeadingDims: the last of them, or none.
  enum Axis {
    Batch,
    BatchPlusOne,
    RowsQ,
    RowsKv,
    Heads,
    KvHeads,
    DimQk,
    DimV,
    LeadingDims,
    LastLeadingDims,
    TokensQ,
    TokensKv,
    Segments,
    SegmentsPlusOne,
    Slots, ///< work tiles of `qTile` rows
    One,
    Table,
    PiecesQPlusOne,
    PiecesKvPlusOne,
    WholeQ, ///< positions of whole sequences, with pieces
    WholeKv,
    OwnRows,
    AllHeads, ///< of a problem of which the tensors have some heads
    AllKvHeads,
    Entries,        ///< as many as the array has
    EntriesPlusOne, ///< likewise, one or more
    Derived,        ///< `derived`, which follows from other sizes
    Lines           ///< lists of blocks, for tiles of `entries` query rows (`OperandShape::BlockLines`)
  };

  ProblemTensor(std::string name, Role role, Element element, llvm::ArrayRef<Axis> axes);

  std::string name; ///< `q`, `k`, `v`, `o`, `lse`, `cu_seqlens_q`, ...
  Role role;
  Element element;
  llvm::SmallVector<Axis, 4> axes;
  int64_t entries = 0; ///< of an axis Table; of Lines, rows of a tile
  rt::Extent derived;  ///< of an axis Derived
  /// The mask operand (`OperandShape::BlockRows`), for an array with lists of blocks.
  std::optional<MaskOperand> lists;
  bool hasParents = false; ///< a preceding kernel numbers the tree of these parents
  /// Positions of batch, row and head among the axes, or -1; -1 for arrays.
  int batchAxis = -1, rowAxis = -1, headAxis = -1;

  /// Do rows have a stride of their own, since an axis of columns follows?
  bool hasRowStride() const { return rowAxis >= 0 && rowAxis + 1 < int64_t(axes.size()); }
  /// Are leading dimensions the first axis?
  bool hasLeadingDims() const { return !axes.empty() && (axes[0] == LeadingDims || axes[0] == LastLeadingDims); }
  /// Does the array's own shape decide its length?
  bool ownsEntries() const { return !axes.empty() && (axes.back() == Entries || axes.back() == EntriesPlusOne); }
  /// -1: not known yet.
  int64_t extentOf(Axis axis, const FixedSizes &fixed, const Sizes &sizes) const;
  /// -1 where an extent is not known yet. `lastLeadingDims`: how many leading dimensions `LastLeadingDims` has.
  llvm::SmallVector<int64_t, 4> shape(const FixedSizes &fixed, const Sizes &sizes, size_t lastLeadingDims = 0) const;
  llvm::SmallVector<int64_t, 4> shape(Computation computation, const Sizes &sizes) const {
    return shape(FixedSizes::of(computation), sizes);
  }
  /// Sets the sizes that are still -1 from a tensor's shape, which has the tensor's rank
  /// (or more, with leading dimensions): the first tensor that has an axis decides its extent.
  void inferSizes(llvm::ArrayRef<int64_t> shape, const FixedSizes &fixed, Sizes &sizes) const;
};

/// The extent of an axis that depends on no tensor; -1: not known yet.
int64_t extentOf(ProblemTensor::Axis axis, const FixedSizes &fixed, const Sizes &sizes);

ProblemTensor tensorOf(const ScoreOperand &operand);

/// The array of the pieces of queries or keys, and that of the first piece of each sequence.
inline const char *piecesArray(bool keys) { return keys ? "pieces_kv" : "pieces_q"; }
inline const char *firstPiecesArray(bool keys) { return keys ? "first_pieces_kv" : "first_pieces_q"; }
/// With pieces and block maps: the positions of the keys of whole sequences. Their number bounds the blocks of keys.
inline constexpr const char *keyPositionsArray = "positions_kv";
bool readsKeyPositions(ProblemOp problem);
/// The lines of `pieces_q` and `pieces_kv`.
enum PieceLine { PieceRows, PieceEnds, PiecePositions, PieceSequences, PieceOrder, PieceLines };

/// Forward: q, k, v, o, lse if it is an output, and the arrays of layouts, mask and score modifiers.
/// Backward: q, k, v, o, lse, do, dlse with that clause, dq, dk, dv, and the same arrays.
std::vector<ProblemTensor> tensorsOf(Computation computation);

/// ids and positions, then results in the order of the op's description.
std::vector<ProblemTensor> tensorsOf(SegmentsOp segments);
/// The parts, the result and the index.
std::vector<ProblemTensor> tensorsOf(GatherRowsOp rows);
inline std::vector<ProblemTensor> tensorsOf(ComputationInterface op) {
  std::vector<ProblemTensor> list;
  op.appendTensors(list);
  return list;
}
/// The axes of a tensor of this layout.
llvm::SmallVector<ProblemTensor::Axis, 4> axesOf(LayoutAttr layout, ProblemTensor::Axis rows, ProblemTensor::Axis heads,
                                                 ProblemTensor::Axis dim);
/// For a problem with ids: the results of `attn.segments` for its kernels. The status is the caller's tensor.
std::vector<ProblemTensor> tensorsOfSegments(ProblemOp problem);

/// The axes of a mask's array before that of positions or lists.
llvm::SmallVector<ProblemTensor::Axis, 4> leadingAxesOf(const MaskOperand &operand, LayoutAttr q, LayoutAttr kv);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_PROBLEMTENSORS_H
