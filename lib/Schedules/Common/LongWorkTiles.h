// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed batches in which most sequences are short. A kernel with a CTA or a warp for each sequence computes the short
// ones; it reads each length and skips longer sequences. Kernels on tiles compute these, from a list of their work
// tiles that a preceding kernel writes.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_LONGWORKTILES_H
#define ATTN_LIB_SCHEDULES_COMMON_LONGWORKTILES_H

#include "ProgramBuilder.h"
#include "Workspace.h"
#include "attn/Schedules/Passes.h"

namespace attn {

/// The greatest lengths of a short sequence.
struct ShortLimit {
  int64_t queries, keys;
  Cond holds(IndexMath &math, Index lenQ, Index lenK) const {
    Cond few = math.le(lenQ, queries);
    return math.logicalAnd(few, math.le(lenK, keys));
  }
};

/// The work tiles of a kernel for long sequences: tiles of `rows` rows, in the `list`th of `workTileLists`.
struct LongWorkTiles {
  size_t list;
  int64_t rows;
};

/// Writes the kernel that lists work tiles, before the op.
void writeWorkTileLists(Computation computation, ProgramBuilder &program, llvm::StringRef target, ShortLimit limit,
                        llvm::ArrayRef<LongWorkTiles> lists);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_LONGWORKTILES_H
