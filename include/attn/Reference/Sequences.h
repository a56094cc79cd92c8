// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the sequences of a problem lie in tensors on the host, and what its mask
// reads of its arrays for each.
//
#ifndef ATTN_REFERENCE_SEQUENCES_H
#define ATTN_REFERENCE_SEQUENCES_H

#include "attn/Reference/Shapes.h"

namespace attn::reference {

/// Rows [start, start + length) of a tensor (dense: of its batch entry). With pieces: positions of all whole sequences.
struct Span {
  int64_t start = 0, length = 0;
};

/// Leads into the tensors, which were checked and stay.
class Sequences {
public:
  Sequences(ProblemOp problem, const Tensors &inputs, const Sizes &sizes);

  int64_t size() const { return queries.size(); }
  Span queriesOf(int64_t sequence) const { return queries[sequence]; }
  Span keysOf(int64_t sequence) const { return keys[sequence]; }
  /// The row of a position in a tensor (dense: in its batch entry); -1: no piece has it.
  int64_t queryRow(int64_t sequence, int64_t position) const {
    return hasPieces ? rowsOfPieces[0][queries[sequence].start + position] : queries[sequence].start + position;
  }
  int64_t keyRow(int64_t sequence, int64_t position) const {
    return hasPieces ? rowsOfPieces[1][keys[sequence].start + position] : keys[sequence].start + position;
  }

  /// For the definition; its row and key are still to be set.
  MaskPoint point(int64_t sequence, int64_t head) const;
  /// For an analysis, in numbers.
  MaskScope scope(int64_t sequence, int64_t head) const;

private:
  Span spanOf(llvm::StringRef side, LayoutAttr layout, int64_t rows, int64_t sequence, const Tensors &inputs) const;
  int64_t load(unsigned operand, int64_t position, int64_t sequence, int64_t head) const;

  /// What a block map's lists say, a flag for each pair of blocks of each line (sequence, head).
  struct BlockMap {
    int64_t rows = 0, columns = 0;
    std::vector<bool> listed;
  };
  static BlockMap mapOf(const MaskOperand &operand, const Tensors &inputs, int64_t rowsKv);
  bool listed(unsigned operand, int64_t row, int64_t column, int64_t sequence, int64_t head) const;

  std::vector<int64_t> numbersOf(const MaskOperand &operand, int64_t sequence) const;

  std::vector<std::pair<const Tensor *, MaskOperand>> arrays; ///< as masks count; of what is made, what it is made of
  std::vector<BlockMap> maps;                                 ///< likewise
  std::vector<std::vector<std::vector<int64_t>>> made; ///< likewise, by sequence, what arrays hold that kernels make
  bool packedQ, packedKv, hasPieces;
  std::vector<int64_t> rowsOfPieces[2]; ///< of each position of all whole sequences, of queries and of keys
  int64_t heads, kvHeads;
  std::vector<Span> queries, keys; ///< by sequence
  std::vector<int64_t> firstRows;  ///< cu_seqlens_q of each sequence; 0 if queries are dense
};

} // namespace attn::reference

#endif // ATTN_REFERENCE_SEQUENCES_H
