// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tensors a program has and what their axes are. Said once, here: kernels
// take their arguments from it, launches and the reference check shapes by it.
// Plain data that outlives the problem.
//
#ifndef ATTN_DIALECT_ATTN_IR_PROBLEMTENSORS_H
#define ATTN_DIALECT_ATTN_IR_PROBLEMTENSORS_H

#include "attn-rt/Specialization.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/Support/MathExtras.h"
#include <map>

namespace attn {

/// A problem's forward or backward pass, as those take it who look at tensors and sizes.
struct Computation {
  Computation(ProblemOp problem) : problem(problem) {}
  Computation(BackwardOp backward) : problem(backward.getProblemOp()), backward(backward) {}
  /// The op that says it: `backward`, or the problem.
  mlir::Operation *getOperation() { return backward ? backward.getOperation() : problem.getOperation(); }
  llvm::StringRef getName() { return backward ? backward.getSymName() : problem.getSymName(); }

  ProblemOp problem;
  BackwardOp backward; ///< null: forward
};

/// Columns in which a backward pass adds up dQ, one pass over key tiles.
inline int64_t sumColumns(int64_t dimQk) { return dimQk <= 32 ? 32 : llvm::alignTo(dimQk, 64); }

/// What the gradient of an array is called, and what kernels leave for it.
std::string gradientOf(const ScoreOperand &array);
std::string partialGradientOf(const ScoreOperand &array);
void addGradients(BackwardOp backward, std::vector<struct ProblemTensor> &list);
void addPartialGradients(BackwardOp backward, std::vector<struct ProblemTensor> &list);
/// Of a backward pass: are there such arrays, and are other tensors called otherwise?
mlir::LogicalResult verifyDifferentiatedArrays(BackwardOp backward);

/// Rows of the tiles in which a backward pass numbers what it keeps of query rows; query
/// tiles of its kernels are these or halves of them.
constexpr int64_t statisticsTile = 128;
/// Rows of a sum of dQ that key tiles add to in turn: no query tile has fewer.
constexpr int64_t rowsOfOrderCounter = 64;

/// The extents that one call decides; -1 while not known.
struct Sizes {
  int64_t batch = 0;
  int64_t rowsQ = 0;  ///< seqlen_q, or tokens of packed q and o
  int64_t rowsKv = 0; ///< seqlen_kv, or tokens of packed k and v
  /// Of ids: the leading dimensions, whose product is the number of rows, the tokens of a
  /// row, and how many rows have positions of their own. Each row may have as many
  /// sequences as there are segments, and packed tensors have the tokens of all rows.
  llvm::SmallVector<int64_t, 4> lead;
  int64_t idRows = -1, tokensQ = -1, tokensKv = -1;
  int64_t positionRowsQ = 1, positionRowsKv = 1;
  /// By the name of an array that says itself how long it is: its last extent.
  std::map<std::string, int64_t> entries;
};

using rt::widestOfTiles; ///< sequences of wider heads are streamed, all of them

/// The extents that the problem decides.
struct FixedSizes {
  int64_t heads = 0, kvHeads = 0, dimQk = 0, dimV = 0;
  int64_t group() const { return heads / kvHeads; } ///< query heads of a kv head
  int64_t segments = 0;                             ///< of segments: ids
  int64_t qTile = 0; ///< rows of a listed tile of segments, or of one that a backward pass counts rows in
  int64_t longest = int64_t(1) << 30; ///< of all axes (`longestSequence`)
  bool packedQ = false, packedKv = false;
  bool backward = false; ///< of gradients
  static FixedSizes of(Computation computation);
  static FixedSizes of(SegmentsOp segments);
};

struct ProblemTensor {
  enum Role { Operand, Result, Array };
  enum Element { Data, Float32, Int32 }; ///< Data: the problem's dtype
  /// Lead: any number of axes. LeadEnd: the last of them, or none.
  enum Axis {
    Batch,
    BatchPlusOne,
    RowsQ,
    RowsKv,
    Heads,
    KvHeads,
    DimQk,
    DimV,
    Lead,
    LeadEnd,
    TokensQ,
    TokensKv,
    Segments,
    SegmentsPlusOne,
    Slots,
    Splits,
    DimSum,         ///< dim_qk, in whole pieces that warpgroups add
    Listing,        ///< tiles that have lists, as a launch numbers them
    Listable,       ///< tiles of the other side, numbered likewise, in whole fours of groups of 32
    Lists,          ///< entries of all lists
    TiledRowsKv,    ///< likewise of keys
    Diagonals,      ///< differences of positions that rows of tiles of all sequences have
    Numbering,      ///< what `metadata.number_tree` needs for all keys
    SlotsQ,         ///< of query tiles of any size
    SlotsKv,        ///< of key tiles of any size
    OrderCountersQ, ///< so many rows of queries (`rowsOfOrderCounter`) at a time, of each sequence
    TiledRowsQ,     ///< rows of whole tiles: of each sequence, as `tile.find_sequence` numbers its slots
    One,
    Two,
    Four,
    Eight,
    Table,
    Entries,        ///< as many as the array has
    EntriesPlusOne, ///< likewise, one or more
    BlockRows,      ///< rows of blocks that the array `lists.offsets` has lists of
    BlockWords      ///< columns of blocks that a sequence may have, a bit each
  };

  ProblemTensor(std::string name, Role role, Element element, llvm::ArrayRef<Axis> axes);

  std::string name; ///< `q`, `k`, `v`, `o`, `lse`, `cu_seqlens_q`, ...
  Role role;
  Element element;
  llvm::SmallVector<Axis, 4> axes;
  int64_t entries = 0; ///< of an axis Table
  /// Of lists of blocks and what is made of them: the operand of `OperandShape::BlockRows`.
  std::optional<MaskOperand> lists;
  bool hasParents = false; ///< a kernel ahead makes numbers of it
  /// Of lists of tiles: are they key tiles', and what bounds them, if anything does (`boundingLists`).
  bool listsOfKeys = false;
  std::vector<MaskOperand> boundedBy;
  std::optional<int64_t> visits; ///< as the problem says, keys of a row
  /// Positions of batch, row and head among the axes, or -1; -1 for arrays.
  int batchAxis = -1, rowAxis = -1, headAxis = -1;

  /// Has it leading dimensions, first of its axes?
  bool isLed() const { return !axes.empty() && (axes[0] == Lead || axes[0] == LeadEnd); }
  /// Does the array say itself how long it is?
  bool ownsEntries() const { return !axes.empty() && (axes.back() == Entries || axes.back() == EntriesPlusOne); }
  /// -1: not known yet.
  int64_t extentOf(Axis axis, const FixedSizes &fixed, const Sizes &sizes) const;
  /// -1 where an extent is not known yet. `leadEnd`: how many leading dimensions a LeadEnd has.
  llvm::SmallVector<int64_t, 4> shape(const FixedSizes &fixed, const Sizes &sizes, size_t leadEnd = 0) const;
  llvm::SmallVector<int64_t, 4> shape(Computation computation, const Sizes &sizes) const {
    return shape(FixedSizes::of(computation), sizes);
  }
  /// Sets the sizes that are still -1 from a tensor's shape, which has its rank (or
  /// more, where it is led): the first tensor that has an axis says how long it is.
  void learn(llvm::ArrayRef<int64_t> shape, const FixedSizes &fixed, Sizes &sizes) const;
};

/// The extent of an axis that depends on no tensor; -1: not known yet.
int64_t extentOf(ProblemTensor::Axis axis, const FixedSizes &fixed, const Sizes &sizes);

ProblemTensor tensorOf(const ScoreOperand &operand);

/// q, k, v, o, lse if asked for, the layouts' arrays, the mask's, the score modifiers'.
/// Backward q, k, v, o, lse, do, dlse if asked for, dq, dk, dv, and the same arrays.
std::vector<ProblemTensor> tensorsOf(Computation computation);

/// ids and positions, then results in the order of the op's description.
std::vector<ProblemTensor> tensorsOf(SegmentsOp segments);

/// What the kernels of a problem may leave for each other, in memory of the caller: o and
/// lse of each part of the keys, both float32; of masks that read arrays of positions, what these
/// hold in tiles of one side, and for each tile of the other those to visit (`TileLists`); where some
/// sequences have a kernel of their own, the slots of the others (`workTileLists`).
std::vector<ProblemTensor> scratchOf(Computation computation);

/// What says which tiles of the other side the tiles of one visit: the least and largest entries of arrays there, the
/// lists, where each tile's is (as `metadata.select_tiles` has it), and how much of the lists is taken.
struct TileLists {
  const char *ranges, *list, *visits, *taken;
};
/// Of query tiles, or of key tiles.
const TileLists &tileLists(bool ofKeys);
/// How many values `ranges` has of each tile, side by side: the least and the largest of each array, and for those with
/// an entry that hides whether none does; behind all tiles', least and largest of groups of 32 of them. And how many
/// values a tile that takes.
int64_t valuesOfRanges(llvm::ArrayRef<MaskOperand> arrays);
int64_t linesOfRanges(llvm::ArrayRef<MaskOperand> arrays);

/// Where `metadata.number_tree` works, of parents of this name.
std::string numberingOf(llvm::StringRef parents);

/// A list of slots of tiles of one side that a kernel is for: its name, and that of how many there are.
struct WorkTileList {
  const char *name, *count;
  bool keys;
};
/// All that a forward or a backward pass may have. Backward those of rows ahead of gradients, of keys, and of dQ.
llvm::ArrayRef<WorkTileList> workTileLists(bool backward);

/// The name of the bits that are made of a block map's lists.
std::string bitsOf(const MaskOperand &lists);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_PROBLEMTENSORS_H
