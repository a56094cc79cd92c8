// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common to the bodies of attention kernels: the work tile and its rows, the regions of masks and score modifiers,
// dropout, copies and lists.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_ATTENTIONBODY_H
#define ATTN_LIB_SCHEDULES_COMMON_ATTENTIONBODY_H

#include "KernelBody.h"
#include "Workspace.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

class AttentionBody : protected ProblemBody {
protected:
  using ProblemBody::ProblemBody;

  /// A value for each query, or with `heads` > 1 for each pair of a query and a packed head.
  mlir::Value pairs(int64_t heads, mlir::Value query, mlir::Value head, llvm::StringRef name = "") {
    if (heads == 1)
      return query;
    mlir::Location named = name.empty() ? loc : mlir::NameLoc::get(b.getStringAttr(name), loc);
    return tile::PairsOp::create(b, named, tile::PairsType::get(b.getContext(), heads, query.getType()), query, head);
  }

  /// A copy that is not repeated in a loop.
  mlir::Value copyOnce(mlir::Value place, mlir::Value from, mlir::Value stride, mlir::Value rows, int64_t dim) {
    auto copy = tile::CopyAsyncOp::create(b, loc, place, from, stride, rows, dim, mlir::Value());
    copy.setOnce(true);
    return copy.getToken();
  }
  /// A subtile of `rows` rows and `cols` columns, from column `first` on; null: from the first column.
  mlir::Value subtileOf(mlir::Value tile, int64_t rows, int64_t cols, mlir::Value first) {
    auto type = mlir::cast<tile::SharedType>(tile.getType());
    auto part = tile::SharedType::get(b.getContext(), rows, cols, type.getElement(), type.getPitch());
    return tile::SubtileOp::create(b, loc, part, tile, first);
  }

  mlir::Value alloc(const char *name, mlir::Type type) { return tile::AllocOp::create(b, loc, type, name); }
  /// A tile of operands in shared memory. The pitch is one 16-byte unit more than the columns, an odd number of units,
  /// so eight consecutive rows start in different bank groups. Tiles that TMA fills are swizzled instead.
  mlir::Value shared(const char *name, int64_t rows, int64_t cols, bool usesTma = false) {
    int64_t pitch = usesTma ? tile::SharedType::swizzled : cols + 8;
    return alloc(name, tile::SharedType::get(b.getContext(), rows, cols, problem.getDtype(), pitch));
  }

  /// Do later rows see more keys than earlier ones?
  bool growsWithRows();

  /// The number of heads that alternate in the grid because their rows are adjacent in memory: L2 fetches 256 bytes at
  /// a time for TMA. One if a row of Q or K is a multiple of 256 bytes, two if of 128 bytes, else eight (for 96 columns
  /// four would suffice, but eight measured faster), reduced to a divisor of the number of heads. One if the rows of a
  /// head are contiguous.
  int64_t headsInLines(int64_t heads, LayoutAttr layout);

  /// The order in which the grid computes tiles. Concurrent CTAs should read the same rows.
  ///
  /// - `EqualCost`: all tiles cost the same, and tiles of a head (or of heads that share cache lines) are consecutive.
  /// - `LptAscending`, `LptDescending`: longest processing time first (LPT), so that no long tile ends alone. The
  ///   longest tile of a sequence is its first (ascending) or its last one (descending). Tiles are ordered within
  ///   groups of heads that share the L2 cache; packed work tiles are ordered across all heads.
  /// - `InterleavedHeads`, `InterleavedManyHeads`: for ordered dQ accumulation, several heads alternate, so that a CTA
  ///   seldom waits for the preceding KV tile; with `InterleavedManyHeads` more heads, where waiting costs more.
  /// - `HeadsFirst`: tiles cost the same; up to eight heads alternate.
  /// - `Reversed`: as `EqualCost`, but starts with the last tile, whose rows the preceding kernel left in caches.
  enum class Order {
    EqualCost,
    LptAscending,
    LptDescending,
    InterleavedHeads,
    InterleavedManyHeads,
    HeadsFirst,
    Reversed
  };
  /// A tile and a head; for dense layouts heads are numbered through all sequences.
  struct TileAndHead {
    Index tile = 0, head = 0;
  };
  /// The tile of a CTA, given its index in the grid, the tiles of a head, and the heads of a sequence.
  TileAndHead assignTile(Index cta, Index tiles, int64_t heads, LayoutAttr layout, Order order);

  /// The number of listed work tiles of `rows` rows, of `total` rows in all; none if the kernel has no work-tile list.
  std::optional<Index> listedWorkTiles(Index total, int64_t rows);
  Index listedWorkTile(Index at);
  /// The buffers of split loops, if the kernel has them.
  const LoopSplits *findLoopSplits();
  /// Shares the loops of `tiles` tiles in each of `heads` heads, each with `group` times as many steps as `steps`
  /// returns for the tile, among `ctas` CTAs (`metadata.split_walks`).
  void splitLoops(const LoopSplits &names, Index tiles, Index heads, int64_t group, Index ctas, int64_t least,
                  Index slots, llvm::function_ref<Index(Index tile)> steps);
  /// What a CTA computes of a tile that several CTAs may share.
  struct TilePart {
    Index tile = 0;
    Index first = 0, end = 0;      ///< steps, counted through the tile's loop
    Index slot = 0;                ///< of its partial results among those of all heads
    Cond isWhole = Cond::of(true); ///< it computes the whole tile, and has no slot
  };
  /// Loads an entry of the list. `head`: among those of all sequences; none if tiles are numbered through all heads.
  TilePart loadTilePart(const LoopSplits &splits, Index entry, std::optional<Index> head);
  /// A tile that several CTAs share.
  struct SplitTile {
    Index tile = 0, head = 0; ///< of all sequences; 0 where tiles are numbered through all heads
    Index slot = 0;           ///< the first of its partial results among those of all heads
    Index parts = 0;
  };
  /// Split tiles of each head and slots of their partial results; `isListed`: of all heads together.
  struct SplitTiles {
    const LoopSplits &splits;
    Index count, slots;
    bool isListed;
  };
  SplitTiles loadSplitTiles(const LoopSplits &splits, bool isListed) {
    Index count = math.named(load(args[splits.counts], 1), "split_tiles");
    return {splits, count, load(args[splits.counts], 2), isListed};
  }
  /// Loads tile `number` of those of all heads.
  SplitTile loadSplitTile(const SplitTiles &all, Index number);
  /// This CTA's index among `listed` ones. Their number is not known at launch, so CTAs of a kernel that is not
  /// persistent loop over the list in grid-stride order; code built afterwards is in that loop.
  Index listedCta(Index listed);

  /// Emits a branch with `padding` for work tiles without rows, and then one with `computing` for the others. With a
  /// single branch and an else, ptxas loses track of uniform values in the loops of `computing`.
  void branchOnPadding(Index rows, llvm::function_ref<void()> padding, llvm::function_ref<void()> computing);

  /// Distributes padding rows [begin, end) of packed queries or keys over the CTAs of a grid with `tiles` tiles of
  /// `rows` rows for each sequence, this CTA being `number`. Calls `pad` with the first row and the count, at most
  /// `rows`.
  void distributePadding(llvm::StringRef name, Index begin, Index end, int64_t tiles, Index number, int64_t rows,
                         llvm::function_ref<void(Index, Index)> pad);

  /// Finds the sequence's first key and its lengths.
  void findLengths();
  /// Finds the lengths and first rows of the sequence `batch`, which masks need.
  void findSequence();
  /// Finds the run-time arrays that masks read.
  void findArrays();

  /// A piece of a sequence, or, in other layouts, the sequence.
  struct Piece {
    Index number = 0;   ///< of the piece, or of the sequence
    Index position = 0; ///< of its first row
    Index rows = 0;     ///< with pieces only
    Interval positions(IndexMath &math) const { return {position, math.add(position, rows)}; }
  };
  Piece queryPiece, keyPiece;
  /// The stationary tile belongs to piece `number`, or to this sequence. Sets `batch`, the sequence.
  void takePiece(bool ofKeys, Index number);
  /// The number of pieces that the sequence has of queries or keys.
  mlir::Value countPieces(bool ofKeys);
  /// Finds the i-th of them. Sets `queryPiece` or `keyPiece`, and `firstQuery` or `firstKey`.
  void findPiece(bool ofKeys, Index i);
  /// Loops over the pieces that the sequence has of queries or keys. Sets `queryPiece` or `keyPiece`, and `firstQuery`
  /// or `firstKey`.
  void eachPiece(bool ofKeys, llvm::function_ref<void()> body);
  /// Finds the only piece that the sequence has of queries or keys; without one, it has no rows.
  void findOnlyPiece(bool ofKeys);

  //===------------------------------------------------------------------===//
  // Masks and modifiers
  //===------------------------------------------------------------------===//

  /// Fills the region of an element test with the conditions that `walk` numbers. `transposed`: its first argument is
  /// the key.
  void buildTests(KeyWalk &walk, mlir::Region &region, bool transposed = false);

  /// Applies the mask to the scores of a tile: rows from `row0` and columns from `col0` on. `tested`: only if it holds.
  void maskScores(KeyWalk &walk, mlir::Value scores, mlir::Value row0, mlir::Value col0, bool transposed = false,
                  std::optional<Cond> tested = std::nullopt);

  /// What a modifier may use for the score that `inside` computes.
  ScoreScope scoreScope(const MaskScope &sequence, mlir::OpBuilder &once, mlir::OpBuilder &inside, Index q, Index k,
                        Index from, Index base, mlir::Value ahead);

  /// Applies modifiers to a score. `slope` is the derivative by the score, null if it is 1; with `by`, the derivative
  /// by the entry of that array, null if it is 0.
  Score modified(ScoreScope &of, Score score, llvm::ArrayRef<ScoreModifierInterface> modifiers, mlir::Value &slope,
                 const ScoreOperand *by);

  /// One step of a backward pass: scores of a tile become probabilities P = exp(S - LSE).
  struct ProbabilityStep {
    KeyWalk &walk;
    mlir::Value scores, statistics;
    mlir::Value row0, col0;           ///< of the tile; pairs with packed heads
    bool transposed = false;          ///< rows are keys
    std::optional<Cond> tested = {};  ///< the mask is applied only if it holds
    bool wantsSlope = true;           ///< is P times the slope of score modifiers needed, for dS?
    bool hasSmall = false;            ///< also emit the modifiers' formula for small scores, if there is one
    bool separateSlopes = false;      ///< store slopes apart from P
    const ScoreOperand *by = nullptr; ///< slopes are derivatives by entries of this array
    mlir::Operation *loop = nullptr;  ///< what depends on no score is computed before it
    llvm::function_ref<mlir::Value(tile::ProbabilitiesOp)>
        gradFactor; ///< where P times slopes, the factor of dP - delta, is stored, if there are slopes
  };
  /// Emits mask, score modifiers and exponentials of a step. Where the op has `weighted`, that is P times the slopes.
  tile::ProbabilitiesOp recomputeProbabilities(const ProbabilityStep &step);

  /// The dropout state of this sequence, for the current head or, with packed heads, all; null without dropout.
  mlir::Value findDropoutState(bool packs = false);
  /// Zeroes the elements of dropped scores of the tile at (`row0`, `col0`); nothing without dropout. `scaled`: kept
  /// elements are multiplied by the factor. `marks`: dropped elements become negative instead.
  void drop(mlir::Value place, mlir::Value row0, mlir::Value col0, mlir::Value dropoutState, bool scaled,
            bool transposed = false, bool marks = false);
  /// Multiplies an accumulator by the dropout factor.
  void scaleKept(mlir::Value acc);

  /// The absolute scale; its sign is applied to Q or to products. For a scale of 0 the least float, which makes
  /// products 0 but keeps scores of -inf.
  double scaleOfProducts();
  /// The product as the first modifier receives it: exactly 0 for a scale of 0, since a modifier may have a step or
  /// kink there.
  mlir::Value productOf(FloatMath &math, mlir::Value product);
  /// The tolerable error of a score in a backward pass: half the rounding error of its probability; 0 if another
  /// modifier could amplify it.
  double errorOfScores() { return problem.getDtype().isBF16() && problem.getModifiers().size() == 1 ? 0x1p-10 : 0; }

  /// Finds the residue of the keys that rows of `queryResidue` see; needs the sequence's lengths.
  void findKeyResidue();

  /// The KV loop over the runs, with an empty body; null without runs.
  tile::KvLoopOp createLoop(llvm::ArrayRef<KeyRun> runs);

  //===------------------------------------------------------------------===//
  // Addresses and run-time numbers
  //===------------------------------------------------------------------===//

  /// Copies rows of a head from `row` (of the sequence, or of all tokens if packed) on by TMA; rows beyond the
  /// next `left` positions become zeros. `boxCount`: the number of TMA boxes, if the tile has room for several.
  mlir::Value copyTma(mlir::Value place, llvm::StringRef tensor, Index row, Index head, Index left,
                      std::optional<int64_t> boxCount = std::nullopt);
  Index load(mlir::Value array, Index at, bool isUniform = true) {
    return mlir::Value(tile::LoadOp::create(b, loc, array, math.value(at), isUniform));
  }
  /// NOTE: a batch of 0 also has work tiles (padding), but a single prefix sum.
  Index lengthIn(llvm::StringRef prefixSums) {
    Index behind = math.min(math.add(batch, 1), arg("batch"));
    return math.sub(load(args[prefixSums], behind), load(args[prefixSums], batch));
  }
  /// The element test that is being written, if there is one, and whether all its scores are in one row of blocks of
  /// the map, and in one column.
  struct BlocksOfScores {
    tile::ApplyMaskOp mask;
    bool inRow = false, inColumn = false;
  };
  BlocksOfScores blocksOfScores(const MaskOperand &map);
  /// In the element test of a tile, the block column of its first key, if all its keys are in that column and the next
  /// 31; else null.
  mlir::Value firstColumn(int64_t keys);
  /// The pointer to the entries of this sequence and head in a per-position array; for a block map into its bits, or
  /// into its offsets if the kernel has no bits.
  mlir::Value startOf(const MaskOperand &array);
  /// Do the lists of packed sequences lie one behind the other, without room for the longest?
  bool packsLists(const MaskOperand &map);
  /// The number of the sequence's first list, if they do.
  Index firstList(const MaskOperand &map);
  /// Rows of bits from the sequence's first one on.
  mlir::Value rowsOfBits(const MaskOperand &map);
  /// The list of a block row, in a kernel that reads lists.
  struct ListOfRow {
    mlir::Value offsets, rows, columns, entries, row;
  };
  ListOfRow listOfRow(const MaskOperand &map, Index row);
  /// The list of the tiles of rows that list a block of keys, in a kernel that reads transposed lists.
  ListOfRow listOfBlock(const MaskOperand &map, Index block);
  /// Does the kernel read the lists of some block map instead of its bits?
  bool hasListsOfMaps() {
    return llvm::any_of(distinctOperands(problem.getMask()),
                        [&](const MaskOperand &map) { return map.lists && args.contains(map.name); });
  }

  /// The row of `positions` (`tileLists`) of a tile, given its work tile or its index in the sequence.
  mlir::Value listRow(bool ofKeys, Index tile, int64_t rows);
  /// The loop along the list of a tile: its runs, and the tile at index j.
  struct ListedWalk {
    llvm::SmallVector<KeyRun> runs;
    std::function<Index(Index j)> tileAt;
  };
  /// `isUniform`: all threads of a warp have the same tile.
  ListedWalk listedWalk(KeyWalk &walk, bool ofKeys, Index tile, int64_t rows, bool isUniform = true);

  /// The row of the sequence's first key, of `keyResidue`.
  mlir::Value keyPointer(llvm::StringRef tensor) {
    return rowPointer(tensor, math.add(firstKey, keyResidue), batch, kvHead);
  }

  /// The number of query head `h`, and of kv head `kvHead`, among all heads of the problem.
  Index numberOfHead() { return math.add(h, problem.firstHead()); }
  Index numberOfKvHead() { return math.add(kvHead, problem.firstKvHead()); }

  Index batch = 0, h = 0, kvHead = 0;
  Index lenQ = 0;
  Index firstQuery = 0, firstKey = 0; ///< the first rows of the sequence, or of its piece, in packed tensors
  /// The first query of the stationary query tile of a forward pass, and whether the loop may visit unlisted tiles,
  /// because the lists were full.
  std::optional<Index> firstOfTile;
  std::optional<Cond> tileListsHull;
  MaskScope scope;
  std::optional<Dropout> dropout = problem.dropoutInForce();
  /// In a kernel with residues: which keys each residue of rows sees, and the residues of the tile's queries and keys.
  StridedMaskAttr residues;
  Index queryResidue = 0, keyResidue = 0;

private:
  /// Fills the region in which `op` computes scores from products, and sets its scale. `before`: for values that depend
  /// on no score. `transposed`: columns are queries; `packs`: rows are pairs of a query and a head. Returns whether the
  /// region yields a slope, if one is wanted; with `by` it always does. `hasSmall`: also fills the region for small
  /// scores, if there is a formula. Slopes are yielded separately if the op has an attribute for them.
  bool writeModified(tile::ProbabilitiesOp op, mlir::OpBuilder before, bool transposed, bool packs, bool wantsSlope,
                     bool hasSmall, const ScoreOperand *by);
  /// Is the block at `column` on the list of the tile's rows? Blocks are whole tiles, so each
  /// visited tile is listed, unless the loop runs over all tiles from the first listed one to the last.
  Cond isOnList(const MaskOperand &map, Index column);
  /// The entry of a modifier's array for the score of q and k.
  mlir::Value loadEntry(const ScoreOperand &operand, mlir::OpBuilder &at, const MaskScope &sequence, Index q, Index k,
                        Index entry);
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_ATTENTIONBODY_H
