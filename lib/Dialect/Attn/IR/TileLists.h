// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of tiles (`TileLists`): which tensors they are.
//
#ifndef ATTN_LIB_DIALECT_ATTN_IR_TILELISTS_H
#define ATTN_LIB_DIALECT_ATTN_IR_TILELISTS_H

#include "attn/Dialect/Attn/IR/ProblemTensors.h"

namespace attn {

/// Tiles of one side, as a launch numbers them.
inline int64_t tilesOf(bool packed, int64_t batch, int64_t rows, int64_t tile) {
  return packed ? rows / tile + batch + 2 : batch * int64_t(llvm::divideCeil(rows, tile));
}
/// Appends what kernels ahead of others leave where masks read arrays of positions.
void addLists(ProblemOp problem, bool ofKeys, std::vector<ProblemTensor> &list);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_TILELISTS_H
