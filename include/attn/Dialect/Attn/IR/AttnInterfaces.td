// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_INTERFACES
#define ATTN_INTERFACES

include "mlir/IR/OpBase.td"

def Attn_MaskInterface : AttrInterface<"MaskInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    Definition and analyses of a mask. A mask is a set of visible
    pairs (query row `q`, key `k`) of one sequence, 0 <= q < lenQ, 0 <= k < lenK.

    `keeps` is the definition. Every other method is an analysis of the same set,
    which `--test-mask-laws` compares with `keeps` on all small shapes. Analyses are
    written once over `IndexMath`: on constants they compute, on SSA values they emit
    `arith` on i32.

    A leaf whose visible keys form, for each row, a short sorted list of
    intervals with non-decreasing endpoints (row to row) implements
    `rowIntervals` and `columnIntervals`; everything else then has a default.
    Other leaves implement `emitKeep`, and `keyRanges` and `queryRanges` where more is
    known than that any tile may be visible in part. Lists are sorted by their lower
    end; empty intervals may stand anywhere.
  }];
  let methods =
      [InterfaceMethod<"The definition: does query row `point.q` see key `point.k`?", "bool", "keeps",
                       (ins "const ::attn::MaskPoint &":$point)>,

       InterfaceMethod<[{The keys that row `q` sees, within [0, lenK); nullopt if they are not a short
      list of intervals with non-decreasing endpoints.}],
                       "std::optional<::attn::IntervalList>", "rowIntervals",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Index":$q), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<[{The rows that see key `k`, as `rowIntervals`. Within [0, lenQ).}],
                       "std::optional<::attn::IntervalList>", "columnIntervals",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Index":$k), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<[{For a non-empty range of rows: the keys that some row sees (never too
      few) and the keys that every row sees (never too many). They are the KV loop of a
      forward pass; a tile inside `all` needs no element test.}],
                       "::attn::TileRanges", "keyRanges",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope,
                           "::attn::Interval":$queries),
                       "", [{ return ::attn::keyRangesOfRows($_attr, math, scope, queries); }]>,

       InterfaceMethod<[{For a non-empty range of keys: the rows that see some of them, and the rows
      that see all of them. They are the loop of a KV tile in a backward pass.}],
                       "::attn::TileRanges", "queryRanges",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Interval":$keys),
                       "", [{ return ::attn::queryRangesOfColumns($_attr, math, scope, keys); }]>,

       InterfaceMethod<"The element test: is the pair (`q`, `k`), within bounds, visible?", "::attn::Cond", "emitKeep",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Index":$q,
                           "::attn::Index":$k),
                       "", [{ return ::attn::keepOfRow($_attr, math, scope, q, k); }]>,

       InterfaceMethod<[{Are some pairs of the tile `queries` x `keys` (neither is empty) visible, and are all?
      Masks implement it where short lists are less exact: where the entries of arrays in the tile decide
      (`scope.extremes`), or remainders.}],
                       "::attn::TileTruth", "tileTruth",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope,
                           "::attn::Interval":$queries, "::attn::Interval":$keys),
                       "", [{ return ::attn::truthOfRanges($_attr, math, scope, queries, keys); }]>,

       InterfaceMethod<[{The largest k - D of a visible pair, with D = q (`top_left`) or D = q + lenK - lenQ
      (`bottom_right`), or an upper bound of it. nullopt if no bound is known.}],
                       "std::optional<int64_t>", "reach", (ins "::attn::Diagonal":$diagonal), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<[{The run-time int32 arrays that the mask reads, in the order in which `scope.load`
      and `point.load` number them. None for most masks.}],
                       "::llvm::SmallVector<::attn::MaskOperand>", "operands", (ins), "", [{ return {}; }]>,

       InterfaceMethod<[{The masks whose intersection this mask is; the mask itself if it is not an `and`.
      Segments of a KV loop test only the conjuncts that they need.}],
                       "std::vector<::attn::MaskInterface>", "conjuncts", (ins), "",
                       [{ return {::mlir::cast<::attn::MaskInterface>(::mlir::Attribute($_attr))}; }]>,

       InterfaceMethod<"The operand masks; none for a leaf.", "::llvm::ArrayRef<::attn::MaskInterface>", "children",
                       (ins), "", [{ return {}; }]>,

       InterfaceMethod<[{Adds the compares and remainders on which a pair's visibility depends. Returns
      false if it depends on anything else; then `compareMasks` cannot decide by testing a
      few pairs.}],
                       "bool", "affine", (ins "::attn::AffineTerms &":$terms), "", [{ return false; }]>,

       InterfaceMethod<[{The same set as a union of zones (bounds on q, on k and on their distance from a
      diagonal). nullopt if it is not a union of few zones. With zones, lists of intersections are exact.}],
                       "std::optional<::attn::Zones>", "zones",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<"Does visibility depend on the head number itself (arrays and children not counted)?", "bool",
                       "asksForHead", (ins), "", [{ return false; }]>,

       // Rules of the canonical form (`canonicalMask`); null: there is no such mask.
       InterfaceMethod<"The simplest mask of the same set.", "::attn::MaskInterface", "simplified", (ins), "",
                       [{ return ::mlir::cast<::attn::MaskInterface>(::mlir::Attribute($_attr)); }]>,
       InterfaceMethod<"One mask for the intersection with another leaf.", "::attn::MaskInterface", "intersected",
                       (ins "::attn::MaskInterface":$other), "", [{ return {}; }]>,
       InterfaceMethod<"One mask for the union with another leaf.", "::attn::MaskInterface", "united",
                       (ins "::attn::MaskInterface":$other), "", [{ return {}; }]>,
       InterfaceMethod<"A mask without `not` for the complement.", "::attn::MaskInterface", "complemented", (ins), "",
                       [{ return {}; }]>];
}

def Attn_ScoreModifierInterface : AttrInterface<"ScoreModifierInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    A function of a score `scale * dot(q, k)`, its row, key, head and sequence, applied
    before the softmax. Its result for an invisible pair does not matter. It does not depend
    on the mask, except that `ScoreScope::reach` says how far beyond the diagonal rows see.

    `modify` is the definition. `emitScore` is the same as IR on f32. Small scores, which
    most scores are, may have a cheaper formula: `smallBelow` and `smallScore`. Tests compare
    the derivatives for backward passes, `derivative` and `emitDerivative`, with finite
    differences of the definition.
  }];
  let methods =
      [InterfaceMethod<"The definition: the modified score, in natural units, in double.", "double", "modify",
                       (ins "const ::attn::ScorePoint &":$point, "double":$score)>,

       InterfaceMethod<[{The modified score, as IR. A NaN stays one. The error is a few float32 roundings
      of the largest score.}],
                       "::attn::Score", "emitScore", (ins "::attn::ScoreScope &":$scope, "::attn::Score":$score)>,

       InterfaceMethod<[{The bound B: `smallScore` and `smallDerivative` may replace the general formulas where
      |value| < B, with an error in the score of at most `error`, in natural units (`error` 0: the accuracy of the
      general formula). Scores are value * `factor`. 0 if there is no cheaper formula.}],
                       "double", "smallBelow", (ins "double":$factor, "double":$error), "", [{ return 0; }]>,

       InterfaceMethod<[{The modified score of the value `smallBelow`, in natural units, if the formula is odd,
      increasing and depends on the score alone; otherwise 0.}],
                       "double", "smallBecomes", (ins "double":$factor), "", [{ return 0; }]>,

       InterfaceMethod<[{The modified small score, in natural units, with x = value / `smallBelow`: x times a
      polynomial over x^2, whose coefficients these are, the constant first. `emitScore` then leaves the factor of
       exponents, ln 2.}],
                       "::llvm::SmallVector<double>", "smallScore", (ins "double":$factor, "double":$error), "",
                       [{ return {}; }]>,

       InterfaceMethod<"The derivative of `modify` by the score, in natural units, in double.", "double", "derivative",
                       (ins "const ::attn::ScorePoint &":$point, "double":$score)>,

       InterfaceMethod<[{The derivative of any score, as IR on f32, in natural units: `score` is what
      `emitScore` gets. Null: 1, for modifiers that only add. 0 where the score is infinite.}],
                       "::mlir::Value", "emitDerivative", (ins "::attn::ScoreScope &":$scope, "::attn::Score":$score)>,

       InterfaceMethod<
           [{The same of small scores, with x = value / `smallBelow`: the coefficients of a polynomial over x^2, the
               constant first.}],
           "::llvm::SmallVector<double>", "smallDerivative", (ins "double":$factor, "double":$error), "",
           [{ return {}; }]>,

       InterfaceMethod<[{The derivative of `modify` by the entry of operand number `operand` that belongs to the
      score, in natural units, in double.}],
                       "double", "entryDerivative",
                       (ins "const ::attn::ScorePoint &":$point, "double":$score, "unsigned":$operand), "",
                       [{ return 0; }]>,

       InterfaceMethod<
           "The same as IR on f32: `score` is what `emitScore` gets. Null: 1.", "::mlir::Value", "emitEntryDerivative",
           (ins "::attn::ScoreScope &":$scope, "::attn::Score":$score, "unsigned":$operand), "", [{ return {}; }]>,

       InterfaceMethod<[{The diagonal, if any, near which modified scores are by far the largest. The KV loop
      then begins there, so that later tiles do not raise the maximum.}],
                       "std::optional<::attn::Diagonal>", "peak", (ins), "", [{ return std::nullopt; }]>,

       InterfaceMethod<"The run-time float32 arrays it reads. None for most modifiers.",
                       "::llvm::SmallVector<::attn::ScoreOperand>", "operands", (ins), "", [{ return {}; }]>,

       InterfaceMethod<"May a problem have several of this kind?", "bool", "mayRepeat", (ins), "",
                       [{ return false; }]>];
}

#endif // ATTN_INTERFACES
