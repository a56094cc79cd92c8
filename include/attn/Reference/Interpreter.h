// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a problem means: attention by its definition, row by row, in double.
// Slow on purpose; every kernel is judged against it.
//
#ifndef ATTN_REFERENCE_INTERPRETER_H
#define ATTN_REFERENCE_INTERPRETER_H

#include "attn/Reference/Shapes.h"
#include <functional>

namespace attn::reference {

/// One row of scores: query row `row` of sequence `sequence`, as head `head` sees it.
struct Row {
  int64_t sequence = 0, head = 0, row = 0;
};

struct Outputs {
  Tensor o;   ///< f64, in the shape of the problem's o
  Tensor lse; ///< f64, [batch, heads, seqlen_q], packed [heads, tokens_q]; also if the problem has no lse
  /// i32, in the shape of lse: 1 where o and lse are known, that is for padding
  /// rows and all rows asked for. Elsewhere o and lse are NaN.
  Tensor known;
  Tensor status; ///< i32, of a problem with segments; else empty
};

/// Evaluates the problem on host tensors, by name: `q`, `k`, `v` (any floating
/// type; the values count as they are, so round them to the problem's dtype
/// first) and the arrays. Errors are those of `checkTensors`.
///
/// Rows without visible keys, or whose visible scores are all -inf: o = 0, lse =
/// -inf. Padding rows likewise. NaN and infinities in a tensor reach the rows
/// that may see them and no others. Works on all CPU cores.
llvm::Expected<Outputs> interpret(ProblemOp problem, const Tensors &inputs);

/// The same for some rows, where a problem is too big to evaluate all of them.
llvm::Expected<Outputs> interpret(ProblemOp problem, const Tensors &inputs, std::function<bool(const Row &)> wanted);

/// The gradients `dq`, `dk` and `dv` of a backward pass (f64) from tensors by name, as
/// above: of its operands the values count as they are, o and lse too. `only`: these and no others, if any are named.
llvm::Expected<Tensors> interpret(BackwardOp backward, const Tensors &inputs,
                                  llvm::ArrayRef<llvm::StringRef> only = {});

/// Gradients of some rows.
struct Gradients {
  Tensors values; ///< f64, by name
  /// i32, of `dq`, `dk` and `dv`, in their shape without the last axis: 1 where a row is known, that is for padding
  /// rows and all rows asked for. Elsewhere gradients hold parts of their sums.
  Tensors known;
};

/// The gradients `dq` of the query rows and `dk` and `dv` of the key rows that are wanted (the head of a row of keys is
/// a kv head). Gradients of arrays are sums over all pairs: where the pass has some, all rows are evaluated.
llvm::Expected<Gradients> interpret(BackwardOp backward, const Tensors &inputs,
                                    std::function<bool(const Row &)> wantedQueries,
                                    std::function<bool(const Row &)> wantedKeys);

/// About one row in n (>= 1), other rows in other heads and sequences.
std::function<bool(const Row &)> oneRowIn(int64_t n);

} // namespace attn::reference

#endif // ATTN_REFERENCE_INTERPRETER_H
