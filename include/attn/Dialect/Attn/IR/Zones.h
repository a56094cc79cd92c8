// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Zones: sets of pairs given by bounds of q, of k and of the distance of k from a diagonal, and by whether k lies
// before, within or after the chunk of its row's diagonal. Affine masks without remainders are unions of zones. The
// keys that the rows of a tile see are known exactly for a zone (if the tile spans at most two chunks). An intersection
// of lists is not exact where some rows are outside the bounds of q, or bounds of the distance cross.
//
#ifndef ATTN_DIALECT_ATTN_IR_ZONES_H
#define ATTN_DIALECT_ATTN_IR_ZONES_H

#include "attn/Dialect/Attn/IR/MaskScope.h"

namespace attn {
enum class Diagonal : uint32_t;

struct Zone {
  /// [lo, hi); without `hi` up to the end of the sequence.
  struct Range {
    Index lo = 0;
    std::optional<Index> hi = std::nullopt;
  };
  /// k - D within [lo, hi), with D the diagonal's key.
  struct Band {
    std::optional<int64_t> lo = std::nullopt, hi = std::nullopt;
  };
  /// The position of k relative to the chunk in which its row meets the diagonal. Rows whose diagonal lies before the
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

// nullopt if the result has more zones than a list may have intervals.
std::optional<Zones> intersect(IndexMath &math, llvm::ArrayRef<Zone> a, llvm::ArrayRef<Zone> b);
std::optional<Zones> unite(llvm::ArrayRef<Zone> a, llvm::ArrayRef<Zone> b);
std::optional<Zones> complement(IndexMath &math, llvm::ArrayRef<Zone> zones);

enum class Lines { Rows, Columns };
/// Is the intersection of the single masks' lists for some lines (rows, or columns) exact for each zone?
bool linesAreEnough(llvm::ArrayRef<Zone> zones, Lines lines);
/// Exactly the keys that some of these rows see (or, for columns, the rows that see some of these keys).
IntervalList seenBySome(IndexMath &math, const MaskScope &scope, llvm::ArrayRef<Zone> zones, Lines lines,
                        Interval which);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ZONES_H
