// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warp or CTA of a sequence and of one or several kv heads: which sequence, and the padding beside it.
//
#ifndef ATTN_LIB_SCHEDULES_SHORT_PERSEQUENCEBACKWARDBODY_H
#define ATTN_LIB_SCHEDULES_SHORT_PERSEQUENCEBACKWARDBODY_H

#include "Schedules/Common/AttentionBody.h"
#include "Schedules/Common/LongWorkTiles.h"

namespace attn {

class PerSequenceBackwardBody : protected AttentionBody {
protected:
  PerSequenceBackwardBody(ProblemOp problem, tile::KernelOp kernel, std::optional<ShortLimit> limit);

  /// Finds the sequence and heads of the warp or CTA. Code built afterwards is only for those that have a sequence.
  void findUnit();
  /// Computes base pointers in the branch that uses them, since they occupy registers.
  void findKeys() { k = keyPointer("k"), v = keyPointer("v"), dk = keyPointer("dk"), dv = keyPointer("dv"); }
  mlir::Value stride(llvm::StringRef tensor) { return args[(tensor + "_row").str()]; }

  /// For packed queries or keys: the first row of the next sequence (`behind`), the first row of the first sequence,
  /// and the end of the last sequence.
  struct Ends {
    Index behind = 0, beginAll = 0, endAll = 0;
  };
  std::optional<Ends> findEnds(bool keys);
  /// Stores zeros to rows of packed queries or keys that belong to no sequence: padding after this sequence, and,
  /// distributed over all units of these heads, rows before the first sequence and after the last. `tensors`: names and
  /// columns.
  void storePadding(bool keys, llvm::ArrayRef<std::pair<const char *, int64_t>> tensors);

  std::optional<ShortLimit> limit; ///< if set, the kernel computes short sequences only
  std::optional<Cond> isShort;     ///< whether the sequence is within `limit`; none without a limit
  tile::ScheduleInterface schedule;
  int64_t groups;  ///< groups of kv heads, one for each warp or CTA
  int64_t kvHeads; ///< packed into a tile
  int64_t group;   ///< query heads of a kv head
  int64_t lanes;   ///< of a SIMT tile
  Index sequences = 0;
  std::optional<Ends> endsQ, endsKv; ///< computed once for all heads of the CTA
  mlir::Value k, v, dk, dv;          ///< the sequence's first rows

private:
  void clearLengthsOfEmptyBatch();
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_SHORT_PERSEQUENCEBACKWARDBODY_H
