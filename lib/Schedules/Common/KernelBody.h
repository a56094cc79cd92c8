// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers for kernel bodies: arguments by name, index arithmetic, addresses of tensor rows.
//
#ifndef ATTN_LIB_SCHEDULES_COMMON_KERNELBODY_H
#define ATTN_LIB_SCHEDULES_COMMON_KERNELBODY_H

#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include "attn/Schedules/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// Helpers for any kernel.
class KernelBody {
protected:
  /// Writes at the end of `kernel`, whose arguments are `KernelArguments`.
  KernelBody(tile::KernelOp kernel)
      : b(mlir::OpBuilder::atBlockEnd(&kernel.getBody().front())), loc(kernel.getLoc()), math(b, loc) {
    for (auto [name, arg] :
         llvm::zip(kernel.getArgNames().getAsValueRange<mlir::StringAttr>(), kernel.getBody().getArguments()))
      args[name] = arg;
  }

  //===------------------------------------------------------------------===//
  // Arithmetic
  //===------------------------------------------------------------------===//

  Index arg(llvm::StringRef name) { return Index(args[name]); }
  Index div(Index a, Index d) {
    if (d.isConstant())
      return math.floorDiv(a, d.getNumber());
    return mlir::Value(mlir::arith::DivUIOp::create(b, loc, math.value(a), math.value(d)));
  }
  Index rem(Index a, Index d) {
    return mlir::Value(mlir::arith::RemUIOp::create(b, loc, math.value(a), math.value(d)));
  }
  /// The product of two run-time values.
  Index mulRuntime(Index a, Index c) { return mul(math.value(a), math.value(c)); }
  mlir::Value wide(Index a) { return mlir::arith::ExtSIOp::create(b, loc, b.getI64Type(), math.value(a)); }
  mlir::Value wide(int64_t a) { return mlir::arith::ConstantIntOp::create(b, loc, a, 64); }
  mlir::Value mul(mlir::Value a, mlir::Value c) { return mlir::arith::MulIOp::create(b, loc, a, c); }
  mlir::Value add(mlir::Value a, mlir::Value c) { return mlir::arith::AddIOp::create(b, loc, a, c); }

  /// A call of a device function of `header`, with values of these names.
  void callDevice(llvm::StringRef function, llvm::StringRef header, llvm::ArrayRef<std::string> written,
                  llvm::ArrayRef<std::string> others, llvm::function_ref<mlir::Value(llvm::StringRef)> find) {
    llvm::SmallVector<mlir::Value> to, from;
    for (const std::string &name : written)
      to.push_back(find(name));
    for (const std::string &name : others)
      from.push_back(find(name));
    tile::CallOp::create(b, loc, function, header, to, from);
  }

  //===------------------------------------------------------------------===//
  // Loops and branches
  //===------------------------------------------------------------------===//

  /// Opens a loop for (i = from; i < end; i += step), in which all code built afterwards is; returns i.
  Index enterLoop(llvm::StringRef name, Index from, Index end, Index step) {
    auto forLoop = mlir::scf::ForOp::create(b, loc, math.value(from), math.value(end), math.value(step));
    forLoop.getInductionVar().setLoc(mlir::NameLoc::get(b.getStringAttr(name), loc));
    b.setInsertionPointToStart(forLoop.getBody());
    return mlir::Value(forLoop.getInductionVar());
  }
  /// A loop around what `body` emits.
  void loop(llvm::StringRef name, Index from, Index end, Index step, llvm::function_ref<void(Index)> body) {
    mlir::OpBuilder::InsertionGuard guard(b);
    body(enterLoop(name, from, end, step));
  }
  void onlyIf(Cond condition, llvm::function_ref<void()> body) {
    auto branch = mlir::scf::IfOp::create(b, loc, math.value(condition));
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  mlir::OpBuilder b;
  mlir::Location loc;
  IndexMath math;
  llvm::StringMap<mlir::Value> args;
};

/// Helpers for kernels on a problem's tensors.
class ProblemBody : protected KernelBody {
protected:
  ProblemBody(ProblemOp problem, tile::KernelOp kernel)
      : KernelBody(kernel), problem(problem), rowStride(kernel.getRowStride()) {}

  //===------------------------------------------------------------------===//
  // Residues
  //===------------------------------------------------------------------===//

  // In a kernel with residues, a tile has the rows of one residue among `rowStride` times as many positions. Tiles and
  // the rows of a residue are numbered from 0 on in their sequence: row i has position i * rowStride + residue. In
  // other kernels rows are positions.

  /// The number of rows with this residue among positions from 0 to `end`.
  Index rowsOfResidue(Index end, Index residue) {
    if (rowStride == 1)
      return end;
    return math.floorDiv(math.add(math.sub(end, residue), rowStride - 1), rowStride);
  }
  Index positionOf(Index row, Index residue) { return math.add(math.mul(row, rowStride), residue); }
  /// The positions of `rows` rows from `first` on, of all residues, in a sequence of `length`.
  Interval positionsOf(Index first, Index rows, Index length) {
    Index begin = math.mul(first, rowStride);
    return {begin, math.min(math.add(begin, math.mul(rows, rowStride)), length)};
  }
  /// The stride of a tile's rows in a tensor.
  mlir::Value rowStrideOf(llvm::StringRef tensor) {
    mlir::Value stride = args[(tensor + "_row").str()];
    return rowStride == 1 ? stride : mul(stride, wide(rowStride));
  }

  LayoutAttr layoutOf(bool keys) { return keys ? problem.getKLayout() : problem.getQLayout(); }

  //===------------------------------------------------------------------===//
  // Pieces
  //===------------------------------------------------------------------===//

  bool hasPieces() { return problem.getQLayout().hasPieces(); }
  /// May a sequence have several of them?
  bool loopsOverPieces() { return hasPieces() && !problem.getSinglePieces(); }
  /// A line of `pieces_q` or `pieces_kv`.
  mlir::Value pieceLine(bool keys, PieceLine line) {
    mlir::Value all = args[piecesArray(keys)];
    if (line == 0)
      return all;
    Index entries = math.add(arg(keys ? "piece_count_kv" : "piece_count_q"), 1);
    return tile::AdvanceOp::create(b, loc, all, wide(math.mul(entries, line)));
  }
  /// The number of packed sequences, or pieces, of queries or keys.
  Index sequenceCount(bool keys) { return arg(!hasPieces() ? "batch" : keys ? "piece_count_kv" : "piece_count_q"); }
  /// The prefix sums of their lengths.
  mlir::Value lengthsOf(bool keys) {
    return hasPieces() ? pieceLine(keys, PieceEnds) : args[keys ? "cu_seqlens_kv" : "cu_seqlens_q"];
  }

  /// The offsets of packed sequences, or pieces, of queries or keys.
  mlir::Value startsOf(bool keys) {
    if (hasPieces())
      return pieceLine(keys, PieceRows);
    return args[std::string(layoutOf(keys).getPadded() ? "padded_offsets_" : "cu_seqlens_") + (keys ? "kv" : "q")];
  }
  /// The number of tokens of queries or keys if these are packed, else the length of a sequence.
  Index extentOf(bool keys) {
    if (layoutOf(keys).isPacked())
      return arg(keys ? "total_kv" : "total_q");
    return arg(keys ? "seqlen_kv" : "seqlen_q");
  }
  /// Tiles of `rows` rows: the work tiles of all sequences if packed, the tiles of each if dense.
  Index tilesOf(bool keys, int64_t rows) {
    return layoutOf(keys).isPacked() ? workTileCount(extentOf(keys), rows, keys) : math.ceilDiv(extentOf(keys), rows);
  }
  /// Work tiles of `rows` rows in the grid of a packed problem (tilesOfRows).
  Index workTileCount(int64_t rows) { return workTileCount(arg("total_q"), rows, /*keys=*/false); }
  Index workTileCount(Index total, int64_t rows, bool keys) {
    return math.add(math.add(math.floorDiv(total, rows), sequenceCount(keys)), 2);
  }
  /// The work tile of the first tile of a sequence, or piece, given its first row among all tokens.
  Index firstWorkTile(Index firstRow, Index number, int64_t rows) {
    return math.add(math.add(math.floorDiv(firstRow, rows), number), 1);
  }

  //===------------------------------------------------------------------===//
  // Addresses
  //===------------------------------------------------------------------===//

  /// The pointer to row `row` (of the sequence, or of all tokens if packed) of a head.
  mlir::Value rowPointer(llvm::StringRef tensor, Index row, Index batch, Index head) {
    mlir::Value offset = mul(wide(head), args[(tensor + "_head").str()]);
    if (!row.is(0))
      offset = add(mul(wide(row), args[(tensor + "_row").str()]), offset);
    if (mlir::Value stride = args.lookup((tensor + "_batch").str()))
      offset = add(mul(wide(batch), stride), offset);
    mlir::Location named = mlir::NameLoc::get(b.getStringAttr(tensor + "_rows"), loc);
    return tile::AdvanceOp::create(b, named, args[tensor], offset);
  }

  /// The pointer to row `row` of a head in lse or its gradient.
  mlir::Value statisticPointer(llvm::StringRef tensor, Index row, Index batch, Index head) {
    mlir::Value offset = add(mul(wide(head), args[(tensor + "_head").str()]), wide(row));
    if (mlir::Value stride = args.lookup((tensor + "_batch").str()))
      offset = add(mul(wide(batch), stride), offset);
    return tile::AdvanceOp::create(b, loc, args[tensor], offset);
  }
  mlir::Value lsePointer(Index row, Index batch, Index head) { return statisticPointer("lse", row, batch, head); }

  /// The number of rows of all sequences: rows of `partial_o`, `partial_max`, `partial_sum` and, without residues,
  /// `dq_accumulator` for each head.
  Index rowsInAll() {
    return problem.getQLayout().isPacked() ? arg("total_q") : mulRuntime(arg("batch"), arg("seqlen_q"));
  }

  /// The index of a row (of the sequence, or of all tokens if packed) among the rows of all sequences.
  Index rowInAll(Index row, Index batch) {
    return problem.getQLayout().isPacked() ? row : math.add(mulRuntime(batch, arg("seqlen_q")), row);
  }

  /// The pointer to a row in the results of a split, a contiguous [splits, heads, rows, width].
  mlir::Value partialPointer(llvm::StringRef tensor, int64_t width, Index split, Index row, Index batch, Index head) {
    mlir::Value heads = add(mul(wide(split), wide(int64_t(problem.getHeads()))), wide(head));
    mlir::Value offset = add(mul(heads, wide(rowsInAll())), wide(rowInAll(row, batch)));
    mlir::Location named = mlir::NameLoc::get(b.getStringAttr(tensor + "_rows"), loc);
    return tile::AdvanceOp::create(b, named, args[tensor], mul(offset, wide(width)));
  }

  ProblemOp problem;
  const int64_t rowStride; ///< the distance of a tile's rows in positions: the number of residues, or 1
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULES_COMMON_KERNELBODY_H
