// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed batches in which most sequences are short: those that are have a kernel that streams
// them, the others the kernels on tiles, and lengths on the device say who is who. The first kernel
// asks each sequence for its length; for the others, a kernel ahead lists which slots they have.
//
#ifndef ATTN_LIB_SCHEDULES_SIZECLASSES_H
#define ATTN_LIB_SCHEDULES_SIZECLASSES_H

#include "ProgramBuilder.h"
#include "Workspace.h"
#include "attn/Schedules/AttnToTile.h"

namespace attn {

/// The most that a short sequence has.
struct ShortLimit {
  int64_t queries, keys;
  Cond holds(IndexMath &math, Index lenQ, Index lenK) const {
    Cond few = math.le(lenQ, queries);
    return math.logicalAnd(few, math.le(lenK, keys));
  }
};

/// Which slots a kernel has in a program whose short sequences are streamed: those of tiles of `rows` rows,
/// by the `list`th of `workTileLists`.
struct LongWorkTiles {
  size_t list;
  int64_t rows;
};

/// Writes the kernel that lists them, before the op.
void writeWorkTileLists(Computation computation, ProgramBuilder &program, llvm::StringRef target, ShortLimit limit,
                        llvm::ArrayRef<LongWorkTiles> lists);

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SIZECLASSES_H
