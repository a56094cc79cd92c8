// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a mask may ask about its surroundings, in the two worlds it lives in: a
// single pair of the reference (`MaskPoint`) and an analysis (`MaskScope`).
//
#ifndef ATTN_DIALECT_ATTN_IR_MASKSCOPE_H
#define ATTN_DIALECT_ATTN_IR_MASKSCOPE_H

#include "attn/Dialect/Attn/IR/IndexMath.h"
#include <functional>
#include <memory>
#include <string>

namespace attn {

/// What a mask's run-time int32 array has one entry of.
enum class OperandShape {
  PerSequence, ///< [batch]
  PerQuery,    ///< [batch, seqlen_q], of packed queries [tokens]; position = query row
  PerKey,      ///< [batch, seqlen_kv], of packed keys [tokens]; position = key
  PerHead,     ///< nothing but heads, query or kv (`OperandHeads`): [heads]
  BlockRows,   ///< [rows of blocks + 1]: where the list of each begins among `Blocks`; as many as the array has
  Blocks,      ///< [entries]: columns of blocks, of all lists; as many as the array has
};

/// For which heads. Of several, heads stand before positions: [batch, heads, seqlen_q], [heads, tokens].
/// An array of `PerHead` is of several.
enum class OperandHeads : uint32_t;

/// What its entries are, for whoever makes some up: a name of some set; the number of
/// the position itself; a position at or before it; a position behind it; one before it, or none.
enum class OperandEntries { Id, Own, Begin, End, Parent };

/// A block map: of `BlockRows`, what their lists are of.
struct BlockLists {
  std::string columns; ///< the array of `Blocks`
  int64_t q, kv;       ///< rows and keys of a block
  bool perSequence;    ///< has each sequence lists of its own?
  bool operator==(const BlockLists &o) const {
    return columns == o.columns && q == o.q && kv == o.kv && perSequence == o.perSequence;
  }
};

struct MaskOperand {
  std::string name;
  OperandShape shape;
  OperandHeads heads = OperandHeads(0); ///< shared
  OperandEntries entries = OperandEntries::Id;
  std::optional<int32_t> hidden = std::nullopt;   ///< an entry with which a position sees nothing
  std::optional<BlockLists> lists = std::nullopt; ///< of `BlockRows`
  /// The array that a kernel ahead makes this one of (`metadata.number_tree`); empty: the caller has it.
  std::string madeOf = {};

  /// Has it an entry for each row or key?
  bool hasPositions() const { return shape == OperandShape::PerQuery || shape == OperandShape::PerKey; }
  /// Has it one entry for all of a sequence's pairs, as a head sees them?
  bool isOne() const { return shape == OperandShape::PerSequence || shape == OperandShape::PerHead; }
  /// The same array, whatever is in it.
  bool operator==(const MaskOperand &o) const {
    return name == o.name && shape == o.shape && heads == o.heads && lists == o.lists;
  }
};

/// What is known of the entries at some positions: the least and the largest one, those that
/// are `hidden` left out (if all are: the least is larger); were none?
struct EntryRange {
  Index least, largest;
  Cond whole;
};

/// Asks one of a mask's run-time arrays, by its number (as `MaskInterface::operands` counts them); a position or a
/// row follows. Scopes are copied for each mask of an expression: their copies share one function.
template <typename> class ArrayQuery;
template <typename Answer, typename... Args> class ArrayQuery<Answer(Args...)> {
public:
  ArrayQuery(std::nullptr_t = nullptr) {}
  template <typename Ask>
    requires std::is_invocable_r_v<Answer, Ask, unsigned, Args...>
  ArrayQuery(Ask ask) : ask(std::make_shared<const Function>(std::move(ask))) {}

  Answer operator()(unsigned operand, Args... args) const { return (*ask)(first + operand, args...); }
  explicit operator bool() const { return bool(ask); }
  /// The same of a composite's child, whose arrays start at number `child`.
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
  int64_t heads = 1; ///< how many query heads there are
  /// Entry `position` (ignored for PerSequence and PerHead) of this sequence's part of the array.
  ArrayQuery<int64_t(int64_t position)> load;
  /// Of an array of `BlockRows`: does row `row` of blocks list `column`?
  ArrayQuery<bool(int64_t row, int64_t column)> listed;

  /// The point of a composite's child whose arrays start at number `first`.
  MaskPoint ofChild(unsigned first) const {
    MaskPoint child = *this;
    child.load = load.from(first);
    child.listed = listed.from(first);
    return child;
  }
};

/// The same for an analysis: constants when it answers, SSA values when it emits.
struct MaskScope {
  Index lenQ = 0, lenK = 0;
  Index batch = 0, head = 0;
  ArrayQuery<Index(Index position)> load;
  /// False where a list only tests keys within the sequence: its ends may then lie
  /// outside, which saves cutting them off.
  bool cut = true;
  int64_t heads = 1; ///< how many query heads there are
  /// What is known of entries, where it is; positions are some tile's.
  ArrayQuery<std::optional<EntryRange>(Interval positions)> extremes;
  /// As a pair's (`MaskPoint`).
  ArrayQuery<Cond(Index row, Index column)> listed;
  /// Of rows and columns of blocks, neither none: are some pairs of them listed, are all? Null where nobody can tell.
  ArrayQuery<TileTruth(Interval rows, Interval columns)> listedIn;

  MaskScope uncut() const {
    MaskScope scope = *this;
    scope.cut = false;
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
