// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What kernels on the scores of a problem are written with, whatever their schedule:
// where keys lie, the walk over them, what masks and score modifiers become.
//
#ifndef ATTN_LIB_CONVERSION_ATTENTIONBODY_H
#define ATTN_LIB_CONVERSION_ATTENTIONBODY_H

#include "KernelBody.h"
#include "attn/Conversion/KeyWalk.h"

namespace attn {

class AttentionBody : protected ProblemBody {
protected:
  AttentionBody(ProblemOp problem, tile::KernelOp kernel, tile::ConfigAttr config)
      : ProblemBody(problem, kernel), config(config) {}

  mlir::Value place(const char *name, mlir::Type type) { return tile::PlaceOp::create(b, loc, type, name); }

  //===------------------------------------------------------------------===//
  // Rows
  //===------------------------------------------------------------------===//

  /// Heads that have tiles of their own.
  int64_t gridHeads() { return int64_t(problem.getHeads()) / config.getPackHeads(); }
  Index firstHead(Index gridHead) { return math.mul(gridHead, config.getPackHeads()); }
  /// The same of rows: where heads share a tile, a number for queries and one for heads.
  mlir::Value perRow(mlir::Value query, mlir::Value head, llvm::StringRef name = "");
  mlir::Value strideOf(llvm::StringRef tensor) {
    return perRow(args[(tensor + "_row").str()], args[(tensor + "_head").str()]);
  }
  mlir::Value rowsOf(Index queries) { return math.value(math.mul(queries, config.getPackHeads())); }

  //===------------------------------------------------------------------===//
  // Keys
  //===------------------------------------------------------------------===//

  /// Where this block's keys lie and how many there are.
  void findKeys();
  /// The run-time arrays that masks ask about.
  void findArrays();
  /// The first key of the sequence.
  mlir::Value keyPointer(llvm::StringRef tensor) { return rowPointer(tensor, firstKey, batch, kvHead); }

  /// A walk over the runs without a body yet; null if no row sees any key.
  tile::KvLoopOp makeLoop(llvm::ArrayRef<KeyRun> runs);

  //===------------------------------------------------------------------===//
  // Scores
  //===------------------------------------------------------------------===//

  /// An op for each score modifier, on the tile of keys from `k0` on, and before `loop` what
  /// does not depend on keys; returns by what scores are still to be multiplied.
  double modifyScores(tile::KvLoopOp loop, Index k0);
  /// The region of a score: what `emit` makes of the product, which is to be multiplied
  /// by `factor`. Returns by what the result is.
  double writeScore(mlir::Region &region, mlir::OpBuilder &before, double factor,
                    llvm::function_ref<Score(ScoreScope &, Score)> emit);
  /// The region of an element test: the conditions that `walk` numbers.
  void buildTests(KeyWalk &walk, mlir::Region &region);
  /// Positive: the sign is in Q by now. A scale of 0 makes every product 0, and
  /// so does the least float; but a score of -inf has to stay one.
  double scaleOfProducts();

  //===------------------------------------------------------------------===//
  // Run-time numbers
  //===------------------------------------------------------------------===//

  Index load(mlir::Value array, Index at) {
    return mlir::Value(tile::LoadOp::create(b, loc, array, math.value(at), /*uniform=*/true));
  }
  /// NOTE: a batch of 0 has slots too (its padding), but one prefix sum only.
  Index lengthIn(llvm::StringRef prefixSums) {
    Index behind = math.min(math.add(batch, 1), arg("batch"));
    return math.sub(load(args[prefixSums], behind), load(args[prefixSums], batch));
  }

  tile::ConfigAttr config;
  mlir::Value s;      ///< scores
  mlir::Value origin; ///< where the tile's rows begin
  Index batch = 0, h = 0, kvHead = 0;
  Index lenQ = 0;
  Index firstQuery = 0, firstKey = 0; ///< where the sequence begins, in packed tensors
  MaskScope scope;

private:
  /// The entry of a modifier's array that belongs to the score whose region `block` is.
  mlir::Value loadEntry(const ScoreOperand &operand, mlir::OpBuilder &at, const MaskScope &sequence,
                        mlir::Block &block, Index entry);
  /// Where in an array with an entry for each position this sequence's and head's are.
  mlir::Value startOf(const MaskOperand &array);
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTENTIONBODY_H
