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

/// Empty: no pair is visible; Full: every pair is; Partial: some are, or it is not known.
enum class TileClass { Empty, Full, Partial };

// Defaults of MaskInterface, from `rowIntervals` and `columnIntervals`: end points are
// non-decreasing, so the first and the last row of a tile bound those in between.
// Without such lists any tile may be partially visible, and `keepOfRow` is not defined.
TileRanges keyRangesOfRows(MaskInterface mask, IndexMath &, const MaskScope &, Interval queries);
TileRanges queryRangesOfColumns(MaskInterface mask, IndexMath &, const MaskScope &, Interval keys);
Cond keepOfRow(MaskInterface mask, IndexMath &, const MaskScope &, Index q, Index k);

/// The result of `keyRanges` for a tile, without the range of entries.
TileTruth truthOfRanges(MaskInterface mask, IndexMath &, const MaskScope &, Interval queries, Interval keys);

/// Parses an attribute that is a mask.
mlir::ParseResult parseMask(mlir::AsmParser &parser, MaskInterface &mask);

/// A tile's class; all operands are numbers.
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
/// Dropout of a problem: it drops pairs whose 15 random bits are below `below`.
struct Dropout {
  static constexpr int64_t range = 1 << 15, words = 4;
  std::string seed; ///< the array of words
  int64_t below = 0;
  /// The factor of pairs that are kept.
  double factor() const { return double(range) / double(range - below); }
};

/// A mask as a rule for tokens with ids and positions.
struct SegmentRule {
  enum Family { Padding, Causal, BottomRight } family = Padding;
  std::optional<int64_t> left, right; ///< a window's bounds; `right` only of padding

  /// nullopt if positions cannot express the mask.
  static std::optional<SegmentRule> of(MaskInterface mask);
  /// Does the rule depend on positions?
  bool hasPositions() const { return family != Padding || left || right; }
};
struct ProblemTensor;
struct FixedSizes;
} // namespace attn

#include "attn/Dialect/Attn/IR/AttnOpInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnTypes.h.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.h.inc"

namespace attn {
// Common checks of ops: a mask that has a rule and the number of segments; the query rows of listed tiles.
llvm::LogicalResult verifySegmentRule(mlir::Operation *op, MaskInterface mask, int64_t segments);
llvm::LogicalResult verifyListedTile(mlir::Operation *op, int64_t queries);

/// Expands `segments(S)`: inserts an `attn.segments` of the problem's mask before the problem, and makes the
/// problem read its results.
SegmentsOp expandSegments(ProblemOp problem);

/// The complement of `mask`; for a `not`, its operand.
MaskInterface negated(MaskInterface mask);

/// The same set in a form that equal masks share if their equality is known:
/// `not` at leaves only, no part that other parts imply, parts in a fixed order.
MaskInterface canonicalMask(MaskInterface mask);

/// The attribute of an attn.problem with the mask that was given, where its mask is now the canonical form, which may
/// read fewer arrays, or others first.
constexpr llvm::StringLiteral givenMaskAttrName = "attn.given_mask";

/// Whether two masks are the same set for all lengths.
struct MaskComparison {
  enum Verdict { Equal, Different, Unknown } verdict = Unknown;
  MaskPoint where;          ///< if different: a pair that is visible under one mask only
  bool shownByFirst = true; ///< is it the first mask?
  /// The entries that the masks read there: array, position, entry.
  llvm::SmallVector<std::tuple<std::string, int64_t, int64_t>> entries;
};
/// Exact for affine masks unless more than `budget` pairs would have to be tested.
MaskComparison compareMasks(MaskInterface first, MaskInterface second, int64_t budget = 20'000'000);

/// The longest sequence for which a mask's arithmetic does not overflow: 2^30, or with predicates 2^29, since their
/// sums of positions and lengths have to fit 32 bits.
int64_t longestSequence(MaskInterface mask);
constexpr int64_t longestOfPredicates = int64_t(1) << 29;

/// Does the mask read arrays with entries for rows or keys? Their contents then decide which tiles are visible.
bool readsPositions(MaskInterface mask);

/// Should preceding kernels list the tiles to visit, because runs have tiles without a visible pair (`tileTruth`)? Yes
/// if the mask reads arrays of positions, and for predicates if an eighth of the tiles in a sample of runs are empty.
bool leavesTilesOut(MaskInterface mask);

/// The part of all pairs that is in tiles of `rows` x `keys` with a visible pair, as far as `tileTruth` knows, in a
/// sample of a long sequence. For masks that read no arrays of positions.
double partInVisibleTiles(MaskInterface mask, int64_t rows, int64_t keys);

/// Is a part of it a predicate?
bool hasPredicate(MaskInterface mask);

/// A mask under which rows and keys fall into classes by their residues: the pairs of `rest` that `strided` shows.
struct ResidueMask {
  StridedMaskAttr strided; ///< of a stride from 2 to `largestResidueStride`
  MaskInterface rest;
};
constexpr int64_t largestResidueStride = 8;
/// The classes for the largest stride up to `most` that divides the stride of a conjunct `#attn.strided`. If it is less
/// than the conjunct's own stride, the rest keeps the conjunct. None if there is no such stride above 1.
std::optional<ResidueMask> findResidues(MaskInterface mask, int64_t most = largestResidueStride);
/// The residue modulo the stride of the keys that a row sees.
Index residueOfKeys(StridedMaskAttr strided, IndexMath &math, const MaskScope &scope, Index row);

/// The least number of query heads, up to 65536, that the numbers of masks in each `#attn.heads` divide.
int64_t headsOf(MaskInterface mask);

/// How many of a problem's query heads, from the first on, show all that the mask may show in any: those of `headsOf`,
/// or all if a predicate asks for the head.
int64_t distinctHeads(MaskInterface mask, int64_t heads);

/// The number of leaves in the test of a head, at most.
unsigned leavesOf(MaskInterface mask);

/// Do rows see different keys in different heads?
bool dependsOnHead(MaskInterface mask);

/// Do they in query heads of one KV head?
bool dependsOnQueryHead(MaskInterface mask);

/// The number of keys that row `q` sees, or an upper bound from `keyRanges`. All
/// operands are numbers, not SSA values.
int64_t countKeys(MaskInterface mask, const MaskScope &scope, int64_t q);

/// Is it of letters, digits and `_`, without a leading digit?
bool isIdentifier(llvm::StringRef name);

/// `name`, with as many `_` appended as needed to differ from all symbols of the module.
std::string freeSymbol(mlir::Operation *module, const llvm::Twine &name);

/// The distinct arrays that the whole expression reads, each once, in order.
llvm::SmallVector<MaskOperand> distinctOperands(MaskInterface mask);
/// The arrays with an entry for each row (or each key) whose least and largest entries in a tile a kernel computes. An
/// array is listed once for each of its `hidden` values.
llvm::SmallVector<MaskOperand> rangedArrays(MaskInterface mask, OperandShape shape);
/// The index of a mask's array among them.
size_t rangedIndex(llvm::ArrayRef<MaskOperand> ranged, const MaskOperand &array);
/// Block maps such that each visible pair is in a block that one of them lists; nullopt if the mask has none.
std::optional<llvm::SmallVector<MaskOperand>> boundingLists(MaskInterface mask);
/// `reach` of a mask, from its conjuncts.
std::optional<int64_t> reachOf(MaskInterface mask, Diagonal diagonal);
/// The same of a problem's score modifiers.
llvm::SmallVector<ScoreOperand> scoreOperands(ProblemOp problem);
} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_ATTN_H
