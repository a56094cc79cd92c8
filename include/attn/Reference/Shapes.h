// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What shapes a problem's tensors (attn::tensorsOf) must have, and what their
// index arrays must hold. Two checks, since a launcher cannot look into the memory of
// a device: shapes agree (`deduceShapes`, extents alone), and host-visible
// contents are sane (`checkArrays`).
//
// Shapes, by layout: bshd [batch, seqlen, heads, dim], sbhd [seqlen, batch,
// heads, dim], bhsd [batch, heads, seqlen, dim], thd [tokens, heads, dim]; lse
// [batch, heads, seqlen_q], packed [heads, tokens_q]; a gradient as what it is of; `cu_seqlens_*` and
// `padded_offsets_*` [batch + 1]; the mask's arrays [batch], [batch, seqlen_q]
// or [batch, seqlen_kv], of packed sides [tokens]; with heads before positions if they have some; lists of
// blocks as long as they are.
//
#ifndef ATTN_REFERENCE_SHAPES_H
#define ATTN_REFERENCE_SHAPES_H

#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "attn/Reference/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace attn::reference {

using Shape = llvm::SmallVector<int64_t, 4>;
using Tensors = llvm::StringMap<Tensor>; ///< by name

/// The row of each position of all whole sequences, from the arrays of pieces of a side (`q` or `kv`), which were
/// checked; -1: no piece has it.
std::vector<int64_t> rowsOfPieces(const Tensors &tensors, llvm::StringRef side);

/// The extents behind the shapes of a call's operands and arrays; results are
/// checked where they are given. `shapeOf` returns nullopt for a tensor that is
/// not there. Errors: a missing operand or array; a shape that contradicts the
/// problem or an earlier tensor; an extent of 2^31 or more.
llvm::Expected<Sizes> deduceShapes(Computation computation,
                                   llvm::function_ref<std::optional<Shape>(llvm::StringRef name)> shapeOf);

/// The contents of the arrays that packed layouts read, by `checkOffsets`, and of lists of blocks and parents
/// (`array` is asked for each; its length is right). Other arrays of masks may hold
/// anything.
llvm::Error checkArrays(Computation computation, const Sizes &sizes,
                        llvm::function_ref<llvm::ArrayRef<int32_t>(llvm::StringRef name)> array);

/// Both checks, and the types, of tensors on the host; names that the problem
/// does not have are refused.
llvm::Expected<Sizes> checkTensors(Computation computation, const Tensors &tensors);

} // namespace attn::reference

#endif // ATTN_REFERENCE_SHAPES_H
