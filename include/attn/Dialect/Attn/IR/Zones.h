// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sets of pairs between bounds of q, of k and of the distance of k from a diagonal, and before, within or
// behind the chunk of their diagonal. Affine masks without remainders are unions of these. Of such a set it is
// known exactly which keys the rows of a tile see (of a tile in no more than two chunks); of an intersection
// of lists it is not, where some rows are beyond the bounds of q, or bounds of the distance cross.
//
#ifndef ATTN_DIALECT_ATTN_IR_ZONES_H
#define ATTN_DIALECT_ATTN_IR_ZONES_H

#include "attn/Dialect/Attn/IR/MaskScope.h"

namespace attn {
enum class Diagonal : uint32_t;

struct Zone {
  /// [lo, hi), of q and k within their sequence without a `hi`.
  struct Range {
    Index lo = 0;
    std::optional<Index> hi = std::nullopt;
  };
  /// k - D within [lo, hi), with D the diagonal's key.
  struct Band {
    std::optional<int64_t> lo = std::nullopt, hi = std::nullopt;
  };
  /// Where k is beside the chunk of its row's place on the diagonal; rows whose diagonal lies before the
  /// first key have the chunk before the first.
  struct Chunk {
    enum Place { Before, Within, Behind } place;
    int64_t length;
    Diagonal diagonal;
  };
  Range q, k;
  Band bands[2]; ///< by diagonal
  llvm::SmallVector<Chunk, 0> chunks;

  Band &band(Diagonal diagonal) { return bands[uint32_t(diagonal)]; }
  const Band &band(Diagonal diagonal) const { return bands[uint32_t(diagonal)]; }
};
/// Their union.
using Zones = llvm::SmallVector<Zone, 2>;

/// nullopt where it is a union of more than lists have intervals.
std::optional<Zones> intersect(IndexMath &math, llvm::ArrayRef<Zone> a, llvm::ArrayRef<Zone> b);
std::optional<Zones> unite(llvm::ArrayRef<Zone> a, llvm::ArrayRef<Zone> b);
std::optional<Zones> complement(IndexMath &math, llvm::ArrayRef<Zone> zones);

enum class Lines { Rows, Columns };
/// Does an intersection of what single masks say of some lines (rows, or columns) say the same of each zone?
bool linesAreEnough(llvm::ArrayRef<Zone> zones, Lines lines);
/// What some of these rows see (or, of columns, who sees some of these keys): no more and no less.
IntervalList seenBySome(IndexMath &math, const MaskScope &scope, llvm::ArrayRef<Zone> zones, Lines lines,
                        Interval which);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ZONES_H
