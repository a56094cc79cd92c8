// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warp or block that has a sequence, for kv heads of its own: which, and the rows beside the sequence.
//
#ifndef ATTN_SCHEDULES_SEQUENCETILE_H
#define ATTN_SCHEDULES_SEQUENCETILE_H

#include "Schedules/Common/SequenceBody.h"
#include "Schedules/Common/SizeClasses.h"

namespace attn {

class SequenceTile : protected SequenceBody {
protected:
  SequenceTile(ProblemOp problem, tile::KernelOp kernel, std::optional<ShortLimit> limit);

  /// The sequence and its heads, by the unit's number. What is built next is of units that have one.
  void findUnit();
  /// In the branch that uses them: ahead of others, they would take registers there.
  void findKeys() { k = keyPointer("k"), v = keyPointer("v"), dk = keyPointer("dk"), dv = keyPointer("dv"); }
  mlir::Value stride(llvm::StringRef tensor) { return args[(tensor + "_row").str()]; }

  /// Of a packed side: where the next sequence begins, the first one, and where the last one's rows end.
  struct Ends {
    Index behind = 0, beginAll = 0, endAll = 0;
  };
  std::optional<Ends> findEnds(bool keys);
  /// Zeros for rows of a packed side, of tensors of so many columns, that belong to no sequence: behind this one, and,
  /// shared out among all units of these heads, before the first and behind the last.
  void storePadding(bool keys, llvm::ArrayRef<std::pair<const char *, int64_t>> tensors);

  std::optional<ShortLimit> limit; ///< none: of all sequences
  std::optional<Cond> isShort;     ///< the sequence; none: all are this kernel's
  tile::ScheduleInterface schedule;
  int64_t groups;  ///< of kv heads, one a warp or block
  int64_t kvHeads; ///< side by side in a tile
  int64_t group;   ///< query heads of a kv head
  int64_t lanes;   ///< of a SIMT tile
  Index sequences = 0;
  std::optional<Ends> endsQ, endsKv; ///< once they are known to all heads of the block
  mlir::Value k, v, dk, dv;          ///< the sequence's first

private:
  void leaveNoRowsWithoutSequences();
};

} // namespace attn

#endif // ATTN_SCHEDULES_SEQUENCETILE_H
