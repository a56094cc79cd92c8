// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by what counts from a diagonal: masks (causal, band, chunk, strided) and
// ALiBi. Row q meets key q + shift there; an absent bound does not limit.
//
#ifndef ATTN_LIB_DIALECT_ATTN_MASKS_DIAGONAL_H
#define ATTN_LIB_DIALECT_ATTN_MASKS_DIAGONAL_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

using Bound = std::optional<int64_t>;

/// The key where the point's row meets the diagonal.
inline int64_t diagonalOf(const MaskPoint &p, Diagonal diagonal) {
  return p.q + (diagonal == Diagonal::bottom_right ? p.lenK - p.lenQ : 0);
}

inline Index diagonalShift(IndexMath &math, const MaskScope &scope, Diagonal diagonal) {
  return diagonal == Diagonal::bottom_right ? math.sub(scope.lenK, scope.lenQ) : Index(0);
}

/// [x + shift - before, x + shift + after] for a position x >= 0; with `clamps` within [0, extent).
inline IntervalList around(IndexMath &math, Index x, Index shift, Bound before, Bound after, Index extent,
                           bool clamps) {
  // What cannot be negative needs no clamping at 0.
  auto at = [&](int64_t offset) {
    // Sequences and offsets go up to 2^30, and the rows of the last tile a bit beyond.
    // Where a sum would not fit 32 bits, the largest number is behind all keys too.
    constexpr int64_t largest = INT32_MAX, longest = (int64_t(1) << 30) + 4096;
    Index position = math.add(x, shift);
    Index end = math.add(offset > largest - longest ? math.min(position, largest - offset) : position, offset);
    if (!clamps)
      return end;
    return math.min(shift.is(0) && offset >= 0 ? end : math.max(end, 0), extent);
  };
  return {{before ? at(-*before) : Index(0), after ? at(*after + 1) : extent}};
}

inline IntervalList diagonalRow(IndexMath &math, const MaskScope &scope, Diagonal diagonal, Bound left, Bound right,
                                Index q) {
  return around(math, q, diagonalShift(math, scope, diagonal), left, right, scope.lenK, scope.clamps);
}

inline IntervalList diagonalColumn(IndexMath &math, const MaskScope &scope, Diagonal diagonal, Bound left, Bound right,
                                   Index k) {
  return around(math, k, math.sub(0, diagonalShift(math, scope, diagonal)), right, left, scope.lenQ, scope.clamps);
}

/// What causal masks and bands are: keys from D - left to D + right.
struct DiagonalBounds {
  Bound left, right;
  Diagonal diagonal;

  /// None of other masks.
  static std::optional<DiagonalBounds> of(MaskInterface mask);
  /// The simplest mask for it.
  MaskInterface mask(mlir::MLIRContext *context) const;
};
MaskInterface intersectBounds(MaskInterface a, MaskInterface b);
MaskInterface uniteBounds(MaskInterface a, MaskInterface b);
MaskInterface complementBounds(MaskInterface mask);
bool diagonalTerms(AffineTerms &terms, const DiagonalBounds &bounds);
Zones diagonalZones(const DiagonalBounds &bounds);

/// ` <kind>` printing and parsing: top_left is the default and not printed.
/// `others`: what else may stand there, for the message.
mlir::ParseResult parseDiagonal(mlir::AsmParser &parser, Diagonal &diagonal, llvm::StringRef others = "");

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_MASKS_DIAGONAL_H
