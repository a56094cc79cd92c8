// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths, indices and run-time arrays for the methods of a mask: for a single pair
// of the reference (`MaskPoint`) and for an analysis (`MaskScope`).
//
#ifndef ATTN_DIALECT_ATTN_IR_MASKSCOPE_H
#define ATTN_DIALECT_ATTN_IR_MASKSCOPE_H

#include "attn/Dialect/Attn/IR/IndexMath.h"
#include <functional>
#include <memory>
#include <string>

namespace attn {

/// The axes of a mask's run-time int32 array.
enum class OperandShape {
  PerSequence, ///< [batch]
  PerQuery,    ///< [batch, seqlen_q], of packed queries [tokens]; position = query row
  PerKey,      ///< [batch, seqlen_kv], of packed keys [tokens]; position = key
  PerHead,     ///< [heads], query or kv heads (`OperandHeads`)
  BlockRows,   ///< [row blocks + 1]: where the list of each row block begins in `Blocks`; the array's shape decides
  Blocks,      ///< [entries]: key blocks, of all lists; the array's shape decides
  BlockLines, ///< [row blocks, entries]: key blocks, a list of one width for each row block; of packed queries those of
              ///< all sequences, [floor(total_q / rows of a block) + batch, entries]
};

/// Has the array entries for each head? If so, heads precede positions: [batch, heads, seqlen_q], [heads, tokens].
/// An array of `PerHead` has entries for each head.
enum class OperandHeads : uint32_t;

/// What entries mean; inputs are generated accordingly.
enum class OperandEntries {
  Id,    ///< any id
  Own,   ///< the position itself
  Begin, ///< the same position or an earlier one
  End,   ///< a later position
  Parent ///< an earlier position, or -1
};

/// The lists of a block map, for its array of `BlockRows`.
struct BlockLists {
  std::string columns; ///< the array of `Blocks` or `BlockLines`
  int64_t q, kv;       ///< rows and keys of a block
  bool perSequence;    ///< does each sequence have its own lists?
  /// Are columns `BlockLines`? Then a preceding kernel writes the array of offsets. Lists of packed sequences lie one
  /// behind the other: those of sequence b begin with list floor(cu_seqlens_q[b] / q) + b.
  bool fixedWidth = false;
  bool operator==(const BlockLists &o) const {
    return columns == o.columns && q == o.q && kv == o.kv && perSequence == o.perSequence && fixedWidth == o.fixedWidth;
  }
};

struct MaskOperand {
  std::string name;
  OperandShape shape;
  OperandHeads heads = OperandHeads(0); ///< shared
  OperandEntries entries = OperandEntries::Id;
  std::optional<int32_t> hidden = std::nullopt;   ///< a position with this entry sees nothing
  std::optional<BlockLists> lists = std::nullopt; ///< for `BlockRows`
  /// The array from which a preceding kernel computes this one (`metadata.number_tree`); empty: the caller gives it.
  std::string madeOf = {};

  /// Do kernels compute it, so that the caller gives none?
  bool isComputed() const { return !madeOf.empty() || (lists && lists->fixedWidth); }
  /// Does it have an entry for each row or key?
  bool hasPositions() const { return shape == OperandShape::PerQuery || shape == OperandShape::PerKey; }
  /// Does it have a single entry for all pairs of a sequence and head?
  bool isOne() const { return shape == OperandShape::PerSequence || shape == OperandShape::PerHead; }
  /// Compares the arrays, not the meaning of their entries.
  bool operator==(const MaskOperand &o) const {
    return name == o.name && shape == o.shape && heads == o.heads && lists == o.lists;
  }
};

/// The least and the largest entry at some positions that is not `hidden` (least > largest if there is none). `whole`:
/// no entry is hidden.
struct EntryRange {
  Index least, largest;
  Cond whole;
};

/// A function of one of a mask's run-time arrays, by its number (in the order of `MaskInterface::operands`), and of a
/// position or row. Scopes are copied for each mask of an expression; the copies share one function.
template <typename> class ArrayQuery;
template <typename Answer, typename... Args> class ArrayQuery<Answer(Args...)> {
public:
  ArrayQuery(std::nullptr_t = nullptr) {}
  template <typename Ask>
    requires std::is_invocable_r_v<Answer, Ask, unsigned, Args...>
  ArrayQuery(Ask ask) : ask(std::make_shared<const Function>(std::move(ask))) {}

  Answer operator()(unsigned operand, Args... args) const { return (*ask)(first + operand, args...); }
  explicit operator bool() const { return bool(ask); }
  /// The same for a composite's child, whose arrays start at number `child`.
  ArrayQuery from(unsigned child) const {
    ArrayQuery query = *this;
    query.first += child;
    return query;
  }

private:
  using Function = std::function<Answer(unsigned, Args...)>;
  std::shared_ptr<const Function> ask;
  unsigned first = 0;
};

/// One pair of one sequence and head, for the definition.
struct MaskPoint {
  int64_t q = 0, k = 0;       ///< 0 <= q < lenQ, 0 <= k < lenK
  int64_t lenQ = 0, lenK = 0; ///< lengths of this sequence
  int64_t batch = 0, head = 0;
  int64_t heads = 1; ///< the number of query heads
  /// Entry `position` (ignored for PerSequence and PerHead) of this sequence's part of the array.
  ArrayQuery<int64_t(int64_t position)> load;
  /// For an array of `BlockRows`: does the list of row block `row` contain key block `column`?
  ArrayQuery<bool(int64_t row, int64_t column)> listed;

  /// The point of a composite's child whose arrays start at number `first`.
  MaskPoint ofChild(unsigned first) const {
    MaskPoint child = *this;
    child.load = load.from(first);
    child.listed = listed.from(first);
    return child;
  }
};

/// The same for an analysis, with constants if it computes and with SSA values if it emits code.
struct MaskScope {
  Index lenQ = 0, lenK = 0;
  Index batch = 0, head = 0;
  ArrayQuery<Index(Index position)> load;
  /// False where a list only tests keys within the sequence: its ends may then lie
  /// outside, which saves clamping them.
  bool clamps = true;
  int64_t heads = 1; ///< the number of query heads
  /// The range of the entries at a tile's positions, if it is known.
  ArrayQuery<std::optional<EntryRange>(Interval positions)> extremes;
  /// As in `MaskPoint`.
  ArrayQuery<Cond(Index row, Index column)> listed;
  /// Are some pairs of these row blocks and key blocks listed, and are all? Neither is empty. Null if not known.
  ArrayQuery<TileTruth(Interval rows, Interval columns)> listedIn;

  MaskScope withoutClamping() const {
    MaskScope scope = *this;
    scope.clamps = false;
    return scope;
  }
  /// The scope of a composite's child whose arrays start at number `first`.
  MaskScope ofChild(unsigned first) const {
    MaskScope child = *this;
    child.load = load.from(first);
    child.extremes = extremes.from(first);
    child.listed = listed.from(first);
    child.listedIn = listedIn.from(first);
    return child;
  }
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_MASKSCOPE_H
