// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `attn` dialect: masks, layouts, problems. See AttnDialect.td.
//
#ifndef ATTN_DIALECT_ATTN_IR_ATTN_H
#define ATTN_DIALECT_ATTN_IR_ATTN_H

#include "attn/Dialect/Attn/IR/AffineMask.h"
#include "attn/Dialect/Attn/IR/ScoreScope.h"
#include "attn/Dialect/Attn/IR/Zones.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

namespace attn {
class MaskInterface;

/// Empty: no pair is visible; Full: every pair is; Partial: don't know, or some.
enum class TileClass { Empty, Full, Partial };

// Defaults of MaskInterface, from `rowIntervals` and `columnIntervals`: end points are
// non-decreasing, so the first and the last row of a tile bound everything in between.
// Without such lists any tile may be visible in part, and there is no `keepOfRow`.
TileRanges keyRangesOfRows(MaskInterface mask, IndexMath &, const MaskScope &, Interval queries);
TileRanges queryRangesOfColumns(MaskInterface mask, IndexMath &, const MaskScope &, Interval keys);
Cond keepOfRow(MaskInterface mask, IndexMath &, const MaskScope &, Index q, Index k);

/// What `keyRanges` says of a tile, whatever is known of entries.
TileTruth truthOfRanges(MaskInterface mask, IndexMath &, const MaskScope &, Interval queries, Interval keys);

/// An attribute that is a mask.
mlir::ParseResult parseMask(mlir::AsmParser &parser, MaskInterface &mask);

/// A tile's class; all numbers.
TileClass classify(MaskInterface mask, const MaskScope &, Interval queries, Interval keys);

/// Where the arrays of each mask start in the list of all, and their total.
llvm::SmallVector<unsigned> firstArrays(llvm::ArrayRef<MaskInterface> masks);
} // namespace attn

#include "attn/Dialect/Attn/IR/AttnEnums.h.inc"
#include "attn/Dialect/Attn/IR/AttnInterfaces.h.inc"

#include "attn/Dialect/Attn/IR/AttnDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.h.inc"

namespace attn {
/// What a problem drops: pairs of which 15 random bits are below `below`.
struct Dropout {
  static constexpr int64_t range = 1 << 15, words = 4;
  std::string seed; ///< the array of words
  int64_t below = 0;
  /// What is kept is multiplied by it.
  double factor() const { return double(range) / double(range - below); }
};

/// What a mask says of tokens with ids and positions.
struct SegmentRule {
  enum Family { Padding, Causal, BottomRight } family = Padding;
  std::optional<int64_t> left, right; ///< a window's bounds; `right` only of padding

  /// None if the mask cannot be said of positions.
  static std::optional<SegmentRule> of(MaskInterface mask);
  /// Do positions count?
  bool hasPositions() const { return family != Padding || left || right; }
};
} // namespace attn

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.h.inc"

namespace attn {
/// The same of any op: a mask with a rule, and a number of segments; query tiles of a list.
llvm::LogicalResult verifySegmentRule(mlir::Operation *op, MaskInterface mask, int64_t segments);
llvm::LogicalResult verifyListedTile(mlir::Operation *op, int64_t queries);

/// Writes what `segments(S)` stands for: before the problem an `attn.segments` of its mask, and the
/// problem over its results.
SegmentsOp expandSegments(ProblemOp problem);

/// Visible where `mask` is not; of a `not`, the mask in it.
MaskInterface negated(MaskInterface mask);

/// The same set in a form that equal masks share as far as they are known to be equal:
/// `not` at leaves only, nothing that other parts imply, parts in a fixed order.
MaskInterface canonicalMask(MaskInterface mask);

/// Whether two masks are the same set for all lengths.
struct MaskComparison {
  enum Verdict { Equal, Different, Unknown } verdict = Unknown;
  MaskPoint where;          ///< of different ones: a pair that one shows and the other hides
  bool shownByFirst = true; ///< which one
  /// What the masks read there of their arrays: name, position, entry.
  llvm::SmallVector<std::tuple<std::string, int64_t, int64_t>> entries;
};
/// Exact for affine masks unless that takes more than `budget` pairs to look at.
MaskComparison compareMasks(MaskInterface first, MaskInterface second, int64_t budget = 20'000'000);

/// Sequences that a mask is right for: up to 2^30, or with predicates, whose sums of positions
/// and lengths have to fit 32 bits, 2^29.
int64_t longestSequence(MaskInterface mask);
constexpr int64_t longestOfPredicates = int64_t(1) << 29;

/// Does it read arrays with entries for rows or keys? What tiles see then follows from their
/// contents.
bool readsPositions(MaskInterface mask);

/// Should the tiles that are visited be listed ahead, since runs have tiles without a visible pair (`tileTruth`)? Yes
/// if the mask reads arrays of positions, and for predicates, if an eighth of the tiles in a sample of runs are empty.
bool leavesTilesOut(MaskInterface mask);

/// Is a part of it a predicate?
bool hasPredicate(MaskInterface mask);

/// A number of query heads that masks for each head cut evenly: the least, up to 65536.
int64_t headsOf(MaskInterface mask);

/// How many masks without parts a head's test is made of, at most.
unsigned leavesOf(MaskInterface mask);

/// Is what a row sees another matter for other heads?
bool dependsOnHead(MaskInterface mask);

/// How many keys row `q` sees (at most: as many as `keyRanges` cannot rule out); all
/// numbers, no SSA values.
int64_t countKeys(MaskInterface mask, const MaskScope &scope, int64_t q);

/// Letters, digits and `_`, no digit first.
bool isIdentifier(llvm::StringRef name);

/// `name`, or that with `_` behind it so often that no symbol of the module has it.
std::string freeSymbol(mlir::Operation *module, const llvm::Twine &name);

/// The distinct arrays that the whole expression reads, each once, in order.
llvm::SmallVector<MaskOperand> distinctOperands(MaskInterface mask);
/// The arrays with an entry for each position of a side whose least and largest entries in a tile a kernel computes: an
/// array once for each value that hides.
llvm::SmallVector<MaskOperand> rangedArrays(MaskInterface mask, OperandShape shape);
/// Which of them the mask's array is.
size_t rangedIndex(llvm::ArrayRef<MaskOperand> ranged, const MaskOperand &array);
/// Block maps with the property that each visible pair is in a block that one of them lists; nothing if the mask has
/// none.
std::optional<llvm::SmallVector<MaskOperand>> boundingLists(MaskInterface mask);
/// `reach` of a mask, from its conjuncts.
std::optional<int64_t> reachOf(MaskInterface mask, Diagonal diagonal);
/// The same of a problem's score modifiers.
llvm::SmallVector<ScoreOperand> scoreOperands(ProblemOp problem);
} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ATTN_H
