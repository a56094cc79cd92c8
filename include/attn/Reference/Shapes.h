// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tensors a problem has, what shapes they must have, and what their index
// arrays must hold. Two checks, since a launcher cannot look into the memory of
// a device: shapes agree (`deduceShapes`, extents alone), and host-visible
// contents are sane (`checkArrays`).
//
// Shapes, by layout: bshd [batch, seqlen, heads, dim], sbhd [seqlen, batch,
// heads, dim], bhsd [batch, heads, seqlen, dim], thd [tokens, heads, dim]; lse
// [batch, heads, seqlen_q], packed [heads, tokens_q]; `cu_seqlens_*` and
// `padded_offsets_*` [batch + 1]; the mask's arrays [batch], [batch, seqlen_q]
// or [batch, seqlen_kv].
//
#ifndef ATTN_REFERENCE_SHAPES_H
#define ATTN_REFERENCE_SHAPES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Reference/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace attn::reference {

using Shape = llvm::SmallVector<int64_t, 4>;
using Tensors = llvm::StringMap<Tensor>; ///< by name

/// The run-time extents of one call.
struct Sizes {
  int64_t batch = 0;
  int64_t rowsQ = 0;  ///< seqlen_q, or tokens of packed q and o
  int64_t rowsKv = 0; ///< seqlen_kv, or tokens of packed k and v
};

enum class Role { Operand, Result, Array };

/// One tensor of a problem.
struct Argument {
  enum Axis { Batch, BatchPlusOne, RowsQ, RowsKv, Heads, KvHeads, DimQk, DimV };

  std::string name; ///< as in the kernel's arguments: `q`, `k`, `v`, `o`, `lse`, `cu_seqlens_q`, ...
  Role role;        ///< arrays are int32, the others floating point
  llvm::SmallVector<Axis, 4> axes;

  Shape shape(ProblemOp problem, const Sizes &sizes) const;
};

/// q, k, v, o, lse if asked for, the layouts' arrays, the mask's arrays.
std::vector<Argument> argumentsOf(ProblemOp problem);

/// The extents behind the shapes of a call's operands and arrays; results are
/// checked where they are given. `shapeOf` returns nullopt for a tensor that is
/// not there. Errors: a missing operand or array; a shape that contradicts the
/// problem or an earlier tensor; an extent of 2^31 or more.
llvm::Expected<Sizes> deduceShapes(ProblemOp problem,
                                   llvm::function_ref<std::optional<Shape>(llvm::StringRef name)> shapeOf);

/// The contents of the arrays that packed layouts read (`array` is asked for
/// each; its length is right): `cu_seqlens` starts at 0, ascends and, unless
/// padded, ends within the buffer; `padded_offsets` start at 0 or later, ascend,
/// leave each sequence a slot at least as long as it is, and end within the
/// buffer. Arrays of masks may hold anything.
llvm::Error checkArrays(ProblemOp problem, const Sizes &sizes,
                        llvm::function_ref<llvm::ArrayRef<int32_t>(llvm::StringRef name)> array);

/// Both checks, and the types, of tensors on the host; names that the problem
/// does not have are refused.
llvm::Expected<Sizes> checkTensors(ProblemOp problem, const Tensors &tensors);

} // namespace attn::reference

#endif // ATTN_REFERENCE_SHAPES_H
