// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `attn.segments` means: its results by their definition, pair by pair of
// tokens. Slow on purpose; every kernel is held against it.
//
#ifndef ATTN_REFERENCE_SEGMENTS_H
#define ATTN_REFERENCE_SEGMENTS_H

#include "attn/Reference/Shapes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>

namespace attn::reference {

/// The sizes behind the shapes of ids and positions. Errors: one is missing, is no
/// i32, or contradicts an earlier one.
llvm::Expected<Sizes> sizesOf(SegmentsOp op, const Tensors &inputs);

/// What `segments(S)` stands for: a problem over arrays, and tensors that have them.
struct Expanded {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ProblemOp problem;
  Tensors inputs;
  Tensor status;
  std::vector<int64_t> alone; ///< tokens of q, of all rows, with an id and in no sequence
};
llvm::Expected<Expanded> expand(ProblemOp problem, const Tensors &inputs);

/// All results, by name. Those behind the `tile_count`th of `tiles_q` are `unused`.
llvm::Expected<Tensors> interpret(SegmentsOp op, const Tensors &inputs, int32_t unused = 0);

/// Calls `visit(row, query, key)` for each pair of tokens that see each other: same
/// id, by the positions and within the window. Tokens are numbered within their row.
using TileListPair = std::function<void(int64_t row, int64_t query, int64_t key)>;
void visiblePairs(SegmentsOp op, const Tensors &inputs, const Sizes &sizes, TileListPair visit);
/// The pairs that an attention kernel visits with the results' sequences and the
/// op's mask. Tokens are numbered through all rows.
void sequencePairs(SegmentsOp op, const Tensors &results, std::function<void(int64_t query, int64_t key)> visit);

/// What the bits of a row's `status` say.
std::string statusText(int64_t status);

} // namespace attn::reference

#endif // ATTN_REFERENCE_SEGMENTS_H
