// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packed batches in which most sequences are short: short sequences have a kernel with a CTA or warp each, the others
// the kernels on tiles, by lengths on the device. The former kernel reads each sequence's length; for the latter, a
// preceding kernel lists the work tiles of long sequences.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_SIZECLASSES_H
#define ATTN_LIB_SCHEDULES_COMMON_SIZECLASSES_H

#include "ProgramBuilder.h"
#include "Workspace.h"
#include "attn/Schedules/AttnToTile.h"

namespace attn {

/// The longest short sequence.
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

#endif // ATTN_LIB_SCHEDULES_COMMON_SIZECLASSES_H
