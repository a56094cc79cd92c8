// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What bodies of kernels have in common that attend: which sequence a block works on and
// where its rows lie, what masks and score modifiers ask, the regions they fill.
//
#ifndef ATTN_LIB_SCHEDULES_SEQUENCEBODY_H
#define ATTN_LIB_SCHEDULES_SEQUENCEBODY_H

#include "KernelBody.h"
#include "attn/Schedules/KeyWalk.h"

namespace attn {

class SequenceBody : protected ProblemBody {
protected:
  using ProblemBody::ProblemBody;

  /// A number for rows that are queries, or pairs of a query and one of `heads`.
  mlir::Value pairs(int64_t heads, mlir::Value query, mlir::Value head, llvm::StringRef name = "") {
    if (heads == 1)
      return query;
    mlir::Location named = name.empty() ? loc : mlir::NameLoc::get(b.getStringAttr(name), loc);
    return tile::PairsOp::create(b, named, tile::PairsType::get(b.getContext(), heads, query.getType()), query, head);
  }

  /// The copy of a tile that no loop asks for again.
  mlir::Value copyOnce(mlir::Value place, mlir::Value from, mlir::Value stride, mlir::Value rows, int64_t dim) {
    auto copy = tile::CopyAsyncOp::create(b, loc, place, from, stride, rows, dim, mlir::Value());
    copy.setOnce(true);
    return copy.getToken();
  }
  /// Of a tile, so many rows and columns, from the column `first` on; null: from the first.
  mlir::Value partOf(mlir::Value tile, int64_t rows, int64_t cols, mlir::Value first) {
    auto type = mlir::cast<tile::SharedType>(tile.getType());
    auto part = tile::SharedType::get(b.getContext(), rows, cols, type.getElement(), type.getPitch());
    return tile::SubtileOp::create(b, loc, part, tile, first);
  }

  mlir::Value place(const char *name, mlir::Type type) { return tile::AllocOp::create(b, loc, type, name); }
  /// A tile of operands. Its rows are one 16-byte unit longer than their columns: an odd number of
  /// units, so eight consecutive rows start in eight different groups of banks. Boxes are swizzled
  /// to the same end.
  mlir::Value shared(const char *name, int64_t rows, int64_t cols, bool isBox = false) {
    int64_t pitch = isBox ? tile::SharedType::swizzled : cols + 8;
    return place(name, tile::SharedType::get(b.getContext(), rows, cols, problem.getDtype(), pitch));
  }

  /// Do later rows see more keys than earlier ones?
  bool growsWithRows();

  /// Heads whose rows lie side by side share what is fetched for one of them: the TMA unit has L2 fetch 256 bytes at a
  /// time. So many take turns: one whose rows of Q or K are whole pieces of 256 bytes, two of whole lines of 128, else
  /// eight (of 96 columns four would do, but eight were measured to be faster), or as many of these as divide the
  /// heads. Where a head's rows follow each other, one.
  int64_t headsInLines(int64_t heads, LayoutAttr layout);

  /// In which order blocks have tiles. Blocks that run at the same time should read the same rows.
  /// Where all tiles cost the same, those of a head (or of heads that share lines) follow each other. Else the longest
  /// come first, or the last blocks would run alone: those of a group of heads (as many as share the L2 cache), then
  /// the next; of slots, which are of several sequences, those of all heads. Where tiles of a head wait for each other,
  /// those of several heads take turns in any case, of more heads (`Far`) where it costs more to wait. Who reads what
  /// the kernel before has written begins with the last, which caches still have.
  enum class Order { Alike, FirstIsLongest, LastIsLongest, Interleaved, GridStride, LastFirst };
  /// A tile and a head; heads count on from sequence to sequence where these are not packed.
  struct Deal {
    Index tile = 0, head = 0;
  };
  Deal deal(Index block, Index tiles, int64_t heads, LayoutAttr layout, Order order);

  /// Of `total` rows in tiles of `rows`, how many slots the list has that says which this kernel is for;
  /// nothing without a list. And one of them.
  std::optional<Index> listedWorkTiles(Index total, int64_t rows);
  Index listedWorkTile(Index at);
  /// This block's number, of those below `listed`. Where slots are of long sequences only, a launch does not know how
  /// few there are, so blocks take turns if they are no persistent kernel's: behind it, code is in that loop.
  Index listedBlock(Index listed);

  /// What is written where the block's slot has rows to compute, and where it stands for padding.
  /// That comes first, and not as the other branch: the GPU compiler then loses track of what is
  /// uniform in the loops of this one.
  void writeApart(Index rows, llvm::function_ref<void()> padding, llvm::function_ref<void()> computing);

  /// Rows [begin, end) of a packed side that are no sequence's, of which there may be many: shared out among the blocks
  /// of a grid that deals so many `tiles` of `rows` rows to each sequence, this one being its `number`. `pad` gets the
  /// first row and how many, of `rows` at most.
  void sharePadding(llvm::StringRef name, Index begin, Index end, int64_t tiles, Index number, int64_t rows,
                    llvm::function_ref<void(Index, Index)> pad);

  /// Where the keys of the sequence lie and how many there are; how many queries.
  void findLengths();
  /// All that masks ask about the sequence `batch`.
  void findSequence();
  /// The run-time arrays that masks ask about.
  void findArrays();

  //===------------------------------------------------------------------===//
  // Masks and modifiers
  //===------------------------------------------------------------------===//

  /// The region of an element test: the conditions that `walk` numbers. `turned`: it gets
  /// the key first.
  void buildTests(KeyWalk &walk, mlir::Region &region, bool turned = false);

  /// What a modifier may ask, of the score that `inside` works on.
  ScoreScope scoreScope(const MaskScope &sequence, mlir::OpBuilder &once, mlir::OpBuilder &inside, Index q, Index k,
                        Index from, Index base, mlir::Value ahead);

  /// What modifiers make of a score. `slope`: by how much more it changes then, null if by as much; or, with `by`, by
  /// how much it changes with the entry of that array, null if it does not.
  Score modified(ScoreScope &of, Score score, llvm::ArrayRef<ScoreModifierInterface> modifiers, mlir::Value &slope,
                 const ScoreOperand *by);

  /// Fills the region in which `op` gets from products to scores, and sets its scale. `before`: for what
  /// depends on no score. `turned`: columns are queries; `packs`: rows are pairs of a query and a
  /// head. Returns whether the region has a slope to give, if one is wanted: `by` an array's entry it always has.
  /// `hasSmall`: with one for small scores, if there is a formula. Slopes are given apart if the op has an attribute
  /// for them.
  bool writeModified(tile::ProbabilitiesOp op, mlir::OpBuilder before, bool turned, bool packs, bool wantsSlope,
                     bool hasSmall = false, const ScoreOperand *by = nullptr);

  /// The random numbers of this sequence, of the head at hand or, where rows are pairs, of all; null if nothing is
  /// dropped.
  mlir::Value findDropoutState(bool packs = false);
  /// What belongs to dropped pairs of the tile at (`row0`, `col0`) becomes 0, if anything is dropped. `scaled`: what is
  /// kept is multiplied. `marks`: it becomes negative.
  void drop(mlir::Value place, mlir::Value row0, mlir::Value col0, mlir::Value draws, bool scaled, bool turned = false,
            bool marks = false);
  /// The same factor on all of a sum.
  void scaleKept(mlir::Value acc);

  /// Positive: the sign is in Q by now. A scale of 0 makes every product 0, and
  /// so does the least float; but a score of -inf has to stay one.
  double scaleOfProducts();
  /// The product as the first modifier gets it: with a scale of 0 it is 0, not only next to it, since a function may
  /// have a step or a kink there.
  mlir::Value productOf(FloatMath &math, mlir::Value product);
  /// Of a score in a backward pass, which does not matter: half of what rounding its probability is. None of what
  /// another modifier may make more of.
  double errorOfScores() { return problem.getDtype().isBF16() && problem.getModifiers().size() == 1 ? 0x1p-10 : 0; }

  /// The walk over runs of tiles, its body yet empty; null if there are no runs.
  tile::KvLoopOp createLoop(llvm::ArrayRef<KeyRun> runs);

  //===------------------------------------------------------------------===//
  // Addresses and run-time numbers
  //===------------------------------------------------------------------===//

  /// The place's rows of a head, from `row` (of the sequence, or of all tokens when packed) on, where so many are
  /// `left` of the sequence; zeros behind them. `boxes` of the tensor's map, if the place has room for several.
  mlir::Value copyBox(mlir::Value place, llvm::StringRef tensor, Index row, Index head, Index left,
                      std::optional<int64_t> boxes = std::nullopt);
  Index load(mlir::Value array, Index at) {
    return mlir::Value(tile::LoadOp::create(b, loc, array, math.value(at), /*uniform=*/true));
  }
  /// NOTE: a batch of 0 has slots too (its padding), but one prefix sum only.
  Index lengthIn(llvm::StringRef prefixSums) {
    Index behind = math.min(math.add(batch, 1), arg("batch"));
    return math.sub(load(args[prefixSums], behind), load(args[prefixSums], batch));
  }
  /// In the element test of a tile, the column of blocks of its first key, if all of its keys are of that one
  /// and the 31 behind it; else null.
  mlir::Value firstColumn(int64_t keys);
  /// Where in an array with an entry for each position this sequence's and head's are; of a block map in its bits, or
  /// in its offsets if the kernel has no bits.
  mlir::Value startOf(const MaskOperand &array);
  /// The list of a row of blocks, in a kernel that has lists.
  struct ListOfRow {
    mlir::Value offsets, rows, columns, entries, row;
  };
  ListOfRow listOfRow(const MaskOperand &map, Index row);
  /// Has the kernel lists of some map, and not its bits?
  bool hasListsOfMaps() {
    return llvm::any_of(distinctOperands(problem.getMask()),
                        [&](const MaskOperand &map) { return map.lists && args.contains(map.name); });
  }

  /// Which row of `visits` (`tileLists`) a tile of `rows` rows or keys has, by its slot or its number in the sequence.
  mlir::Value listRow(bool ofKeys, Index tile, int64_t rows);
  /// The walk along the list of a tile: which runs it has, and the tile that is number j of it.
  struct ListedWalk {
    llvm::SmallVector<KeyRun> runs;
    std::function<Index(Index j)> tileAt;
  };
  ListedWalk listedWalk(KeyWalk &walk, bool ofKeys, Index tile, int64_t rows);

  /// The first key of the sequence.
  mlir::Value keyPointer(llvm::StringRef tensor) { return rowPointer(tensor, firstKey, batch, kvHead); }

  Index batch = 0, h = 0, kvHead = 0;
  Index lenQ = 0;
  Index firstQuery = 0, firstKey = 0; ///< where the sequence begins, in packed tensors
  /// Of a tile of queries at rest: the first, and whether tiles are visited that may not be listed, since lists were
  /// full.
  Index firstOfTile = 0;
  std::optional<Cond> tileListsHull;
  MaskScope scope;
  std::optional<Dropout> dropout = problem.dropoutInForce();

private:
  /// Is the block of a tile of keys on the list of the tile at rest? Blocks are whole tiles: of visited ones they are,
  /// but for a hull's.
  Cond isOnList(const MaskOperand &map, Index column);
  /// The entry of a modifier's array that belongs to the score of q and k.
  mlir::Value loadEntry(const ScoreOperand &operand, mlir::OpBuilder &at, const MaskScope &sequence, Index q, Index k,
                        Index entry);
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SEQUENCEBODY_H
