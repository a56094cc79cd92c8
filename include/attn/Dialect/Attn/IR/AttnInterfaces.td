// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_INTERFACES
#define ATTN_INTERFACES

include "mlir/IR/OpBase.td"

def Attn_MaskInterface : AttrInterface<"MaskInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    Everything anyone wants to know about a mask. A mask is a set of visible
    pairs (query row `q`, key `k`) of one sequence, 0 <= q < lenQ, 0 <= k < lenK.

    `keeps` is the definition. Every other method is an analysis of the same set
    and is checked against it on all small shapes by `--test-mask-laws`, which
    knows no family. Analyses are written once over `IndexMath`: on constants
    they compute, on SSA values they emit `arith` on i32.

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

       InterfaceMethod<[{The keys that row `q` sees, or nullopt when they are no short list of
      intervals with non-decreasing endpoints. Within [0, lenK).}],
                       "std::optional<::attn::IntervalList>", "rowIntervals",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Index":$q), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<[{The rows that see key `k`, as `rowIntervals`. Within [0, lenQ).}],
                       "std::optional<::attn::IntervalList>", "columnIntervals",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Index":$k), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<[{For a non-empty range of rows: the keys that some row sees (never too
      few) and the keys that every row sees (never too many). The forward
      pass walks them; a tile inside `all` needs no element test.}],
                       "::attn::TileRanges", "keyRanges",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope,
                           "::attn::Interval":$queries),
                       "", [{ return ::attn::keyRangesOfRows($_attr, math, scope, queries); }]>,

       InterfaceMethod<[{For a non-empty range of keys: the rows that see some of them, and the rows
      that see all of them. The backward pass walks them.}],
                       "::attn::TileRanges", "queryRanges",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Interval":$keys),
                       "", [{ return ::attn::queryRangesOfColumns($_attr, math, scope, keys); }]>,

       InterfaceMethod<"The element test: is the pair (`q`, `k`), within bounds, visible?", "::attn::Cond", "emitKeep",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope, "::attn::Index":$q,
                           "::attn::Index":$k),
                       "", [{ return ::attn::keepOfRow($_attr, math, scope, q, k); }]>,

       InterfaceMethod<[{What is known of the tile `queries` x `keys` (neither is empty). For masks that
      know more of a single tile than fits short lists: by what arrays hold there (`scope.extremes`),
      or by remainders.}],
                       "::attn::TileTruth", "tileTruth",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope,
                           "::attn::Interval":$queries, "::attn::Interval":$keys),
                       "", [{ return ::attn::truthOfRanges($_attr, math, scope, queries, keys); }]>,

       InterfaceMethod<[{How far beyond its diagonal a row sees keys at most: of no visible pair is
      k - D larger, with D = q (`top_left`) or D = q + lenK - lenQ (`bottom_right`).
      nullopt if no such bound is known.}],
                       "std::optional<int64_t>", "reach", (ins "::attn::Diagonal":$diagonal), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<[{The run-time int32 arrays the mask reads, in the order `scope.load` and
      `point.load` count them. None for most masks.}],
                       "::llvm::SmallVector<::attn::MaskOperand>", "operands", (ins), "", [{ return {}; }]>,

       InterfaceMethod<[{The masks whose intersection this mask is; itself if it is no `and`. Loop
      segments test only the conjuncts they need.}],
                       "std::vector<::attn::MaskInterface>", "conjuncts", (ins), "",
                       [{ return {::mlir::cast<::attn::MaskInterface>(::mlir::Attribute($_attr))}; }]>,

       InterfaceMethod<"The masks this one is made of; none for a leaf.", "::llvm::ArrayRef<::attn::MaskInterface>",
                       "children", (ins), "", [{ return {}; }]>,

       InterfaceMethod<[{Adds the compares and remainders that a pair's visibility follows from.
      False if it follows from anything else: then nothing is decided about the mask
      by looking at a few pairs (`compareMasks`).}],
                       "bool", "affine", (ins "::attn::AffineTerms &":$terms), "", [{ return false; }]>,

       InterfaceMethod<[{The same set as a union of zones (bounds on q, on k and on their distance from a
      diagonal). nullopt if it is none, or of many. Lists of intersections are exact with these.}],
                       "std::optional<::attn::Zones>", "zones",
                       (ins "::attn::IndexMath &":$math, "const ::attn::MaskScope &":$scope), "",
                       [{ return std::nullopt; }]>,

       InterfaceMethod<"Does it ask which head a row is of (beyond arrays for each head, and its children)?", "bool",
                       "asksForHead", (ins), "", [{ return false; }]>,

       // What the canonical form is made with (`canonicalMask`); null: there is no such mask.
       InterfaceMethod<"The same set, said by the simplest mask there is for it.", "::attn::MaskInterface",
                       "simplified", (ins), "",
                       [{ return ::mlir::cast<::attn::MaskInterface>(::mlir::Attribute($_attr)); }]>,
       InterfaceMethod<"One mask for what is visible under this one and another leaf.", "::attn::MaskInterface",
                       "intersected", (ins "::attn::MaskInterface":$other), "", [{ return {}; }]>,
       InterfaceMethod<"One mask for what is visible under this one or another leaf.", "::attn::MaskInterface",
                       "united", (ins "::attn::MaskInterface":$other), "", [{ return {}; }]>,
       InterfaceMethod<"A mask without `not` for what is not visible under this one.", "::attn::MaskInterface",
                       "complemented", (ins), "", [{ return {}; }]>];
}

def Attn_ScoreModifierInterface : AttrInterface<"ScoreModifierInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    Something that is done to the scores, `scale * dot(q, k)`, before the softmax:
    a function of the score, its row, key, head and sequence. Masks know nothing of
    it; what it makes of an invisible pair does not matter, and of the mask it may ask
    how far a row sees at most (`ScoreScope::reach`).

    `modify` is the definition. `emitScore` is the same as IR on f32. Scores that
    are small, as almost all are, may have a cheaper formula: `smallBelow` and
    `smallScore`. What the backward pass needs, `derivative` and `emitDerivative`,
    is held against finite differences of the definition.
  }];
  let methods =
      [InterfaceMethod<"The definition: what becomes of a score, in natural units, in double.", "double", "modify",
                       (ins "const ::attn::ScorePoint &":$point, "double":$score)>,

       InterfaceMethod<[{What becomes of any score, as IR. A NaN stays one; an error is at most
      some of float32's own, of the largest score.}],
                       "::attn::Score", "emitScore", (ins "::attn::ScoreScope &":$scope, "::attn::Score":$score)>,

       InterfaceMethod<[{The bound B: `smallScore` and `smallDerivative` may replace the general formulas where
      |value| < B, with an error in the score of at most `error`, in natural units (`error` 0: the accuracy of the
      general formula). Scores are value * `factor`. 0 if there is no cheaper formula.}],
                       "double", "smallBelow", (ins "double":$factor, "double":$error), "", [{ return 0; }]>,

       InterfaceMethod<[{The modified score of the value `smallBelow`, in natural units, if the formula is odd,
      increasing and depends on the score alone; otherwise 0.}],
                       "double", "smallBecomes", (ins "double":$factor), "", [{ return 0; }]>,

       InterfaceMethod<[{What becomes of a small score, in natural units, with x = value / `smallBelow`: x times a
      polynomial over x^2, whose coefficients these are, the constant first. `emitScore` then leaves the factor of
       exponents, ln 2.}],
                       "::llvm::SmallVector<double>", "smallScore", (ins "double":$factor, "double":$error), "",
                       [{ return {}; }]>,

       InterfaceMethod<"The derivative of `modify` by the score, in natural units, in double.", "double", "derivative",
                       (ins "const ::attn::ScorePoint &":$point, "double":$score)>,

       InterfaceMethod<[{The derivative of any score, as IR on f32, in natural units: `score` is what
      `emitScore` gets. Null: 1, as of those that only add something. 0 where the score is infinite.}],
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

       InterfaceMethod<[{Near which diagonal, if any, it makes scores the largest by far. A walk over
      keys then begins there, lest each tile raise the maximum.}],
                       "std::optional<::attn::Diagonal>", "peak", (ins), "", [{ return std::nullopt; }]>,

       InterfaceMethod<"The run-time float32 arrays it reads. None for most modifiers.",
                       "::llvm::SmallVector<::attn::ScoreOperand>", "operands", (ins), "", [{ return {}; }]>,

       InterfaceMethod<"May a problem have several of this kind?", "bool", "mayRepeat", (ins), "",
                       [{ return false; }]>];
}

#endif // ATTN_INTERFACES
