// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ProblemExtents.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include "attn/Schedules/Signature.h"

using namespace attn;
using rt::Extent;
using Axis = ProblemTensor::Axis;

Extent ProblemExtents::rows(bool keys) const {
  bool packed = keys ? fixed.packedKv : fixed.packedQ;
  return sizeNamed(keys ? (packed ? "total_kv" : "seqlen_kv") : (packed ? "total_q" : "seqlen_q"));
}

Extent ProblemExtents::sequences(bool keys) const {
  return sizeNamed(!fixed.pieces ? "batch" : keys ? "piece_count_kv" : "piece_count_q");
}

Extent attn::tilesOfRows(bool packed, const Extent &batch, const Extent &rows, int64_t tile) {
  return packed ? floorDiv(rows, tile) + batch + 2 : batch * ceilDiv(rows, tile);
}

Extent ProblemExtents::linesOfLists(int64_t tile, bool keys) const {
  bool packed = keys ? fixed.packedKv : fixed.packedQ;
  return packed ? floorDiv(rows(keys), tile) + sizeNamed("batch") : ceilDiv(rows(keys), tile);
}

Extent ProblemExtents::tilesOf(bool keys, int64_t tile) const {
  return tilesOfRows(keys ? fixed.packedKv : fixed.packedQ, sequences(keys), rows(keys), tile);
}

Extent ProblemExtents::extentOf(Axis axis, const ProblemTensor &tensor) const {
  auto entries = [](const std::string &name) { return sizeNamed(name + "_entries"); };
  switch (axis) {
  case ProblemTensor::Batch:
    return sizeNamed("batch");
  case ProblemTensor::BatchPlusOne:
    return sizeNamed("batch") + 1;
  case ProblemTensor::RowsQ:
    return rows(false);
  case ProblemTensor::RowsKv:
    return rows(true);
  case ProblemTensor::Heads:
    return fixed.heads;
  case ProblemTensor::KvHeads:
    return fixed.kvHeads;
  case ProblemTensor::DimQk:
    return fixed.dimQk;
  case ProblemTensor::DimV:
    return fixed.dimV;
  case ProblemTensor::TokensQ:
    return sizeNamed("tokens_q");
  case ProblemTensor::TokensKv:
    return sizeNamed("tokens_kv");
  case ProblemTensor::Segments:
    return fixed.segments;
  case ProblemTensor::SegmentsPlusOne:
    return fixed.segments + 1;
  case ProblemTensor::Slots:
    return tilesOf(false, fixed.qTile);
  case ProblemTensor::One:
    return 1;
  case ProblemTensor::PiecesQPlusOne:
    return sizeNamed("piece_count_q") + 1;
  case ProblemTensor::PiecesKvPlusOne:
    return sizeNamed("piece_count_kv") + 1;
  case ProblemTensor::AllHeads:
    return fixed.allHeads;
  case ProblemTensor::AllKvHeads:
    return fixed.allKvHeads;
  case ProblemTensor::WholeQ:
    return sizeNamed("whole_q");
  case ProblemTensor::WholeKv:
    return sizeNamed("whole_kv");
  case ProblemTensor::Table:
    return tensor.entries;
  case ProblemTensor::Derived:
    return tensor.derived;
  case ProblemTensor::Lines:
    return linesOfLists(tensor.entries);
  case ProblemTensor::OwnRows:
    return sizeNamed(tensor.name + "_rows");
  case ProblemTensor::Entries:
    return entries(tensor.name);
  case ProblemTensor::EntriesPlusOne: // at least one entry
    return max(entries(tensor.name), 1);
  case ProblemTensor::LeadingDims:
  case ProblemTensor::LastLeadingDims:
    break;
  }
  llvm_unreachable("covered");
}

std::vector<Extent> ProblemExtents::of(const ProblemTensor &tensor) const {
  std::vector<Extent> extents;
  for (Axis axis : llvm::ArrayRef(tensor.axes).drop_front(tensor.hasLeadingDims()))
    extents.push_back(extentOf(axis, tensor));
  return extents;
}

/// The caller's tensors as a program describes them.
static std::vector<rt::Program::Tensor> describe(llvm::ArrayRef<ProblemTensor> tensors, const ProblemExtents &extents,
                                                 rt::Dtype data) {
  using Tensor = rt::Program::Tensor;
  const Tensor::Role roles[] = {Tensor::Role::Operand, Tensor::Role::Result,
                                Tensor::Role::Array};                // as ProblemTensor::Role
  const rt::Dtype dtypes[] = {data, rt::Dtype::F32, rt::Dtype::I32}; // as ProblemTensor::Element
  std::vector<Tensor> list;
  for (const ProblemTensor &tensor : tensors) {
    Tensor::Lead lead = !tensor.hasLeadingDims()              ? Tensor::Lead::None
                        : tensor.axes[0] == Axis::LeadingDims ? Tensor::Lead::All
                                                              : Tensor::Lead::Last;
    std::vector<int> strided;
    for (int axis : {tensor.batchAxis, tensor.rowAxis, tensor.headAxis})
      if (axis >= 0 && (axis != tensor.rowAxis || tensor.hasRowStride()))
        strided.push_back(axis);
    llvm::sort(strided);
    list.push_back(
        {tensor.name, roles[tensor.role], dtypes[tensor.element], lead, extents.of(tensor), std::move(strided)});
  }
  return list;
}

/// Checks of the contents of integer arrays.
static std::vector<rt::Program::ArrayCheck> checksOf(llvm::ArrayRef<ProblemTensor> tensors,
                                                     const ProblemExtents &extents) {
  using Check = rt::Program::ArrayCheck;
  auto numberOf = [&](const llvm::Twine &name) {
    std::string own = name.str();
    const ProblemTensor *found = llvm::find_if(tensors, [&](const ProblemTensor &t) { return t.name == own; });
    bool isThere = found != tensors.end() && found->role == ProblemTensor::Array; // results have no contents yet
    return isThere ? int(found - tensors.begin()) : -1;
  };
  auto isResult = [&](llvm::StringRef name) { return llvm::any_of(tensors, [&](auto &t) { return t.name == name; }); };
  std::vector<Check> checks;
  for (const ProblemTensor &tensor : tensors)
    if (tensor.lists)
      checks.push_back({.kind = Check::Kind::Blocks,
                        .arrays = {numberOf(tensor.name), numberOf(tensor.lists->lists->columns)},
                        .rows = ceilDiv(extents.keysOfBlocks(), tensor.lists->lists->kv),
                        .line = sizeNamed(tensor.name + "_entries"),
                        .tile = tensor.lists->lists->kv});
  if (int cu = numberOf("cu_seqlens"); cu >= 0) { // of computations that are no problems
    bool ofKeys =
        llvm::none_of(tensors, [](const ProblemTensor &t) { return llvm::is_contained(t.axes, Axis::RowsQ); });
    checks.push_back(
        {.kind = Check::Kind::Offsets, .arrays = {cu, -1}, .rows = extents.rows(ofKeys), .isWritten = true});
  }
  for (bool keys : {false, true}) {
    llvm::StringRef side = keys ? "kv" : "q";
    int cu = numberOf("cu_seqlens_" + side), padded = numberOf("padded_offsets_" + side);
    if (cu < 0)
      continue; // dense, or computed on the device
    if (int pieces = numberOf(piecesArray(keys)); pieces >= 0) {
      bool isIndexed = llvm::any_of(tensors, [&](const ProblemTensor &tensor) {
        return llvm::is_contained(tensor.axes, keys ? Axis::WholeKv : Axis::WholeQ);
      });
      checks.push_back({.kind = Check::Kind::Pieces,
                        .arrays = {cu, pieces, numberOf(firstPiecesArray(keys))},
                        .rows = extents.rows(keys),
                        .line = isIndexed ? sizeNamed(keys ? "whole_kv" : "whole_q") : Extent(0),
                        .tile = extents.fixed.singlePieces ? 1 : 0});
      continue;
    }
    checks.push_back({.kind = Check::Kind::Offsets,
                      .arrays = {cu, padded},
                      .rows = extents.rows(keys),
                      .isWritten = !keys || isResult("dk")});
    if (int tiles = numberOf("tiles_" + side); tiles >= 0)
      checks.push_back({.kind = Check::Kind::Tiles,
                        .arrays = {tiles, numberOf("tile_count"), padded < 0 ? cu : padded},
                        .rows = extents.rows(keys),
                        .tile = extents.fixed.qTile});
  }
  int cu = numberOf("cu_seqlens_kv");
  for (const ProblemTensor &tensor : tensors)
    if (tensor.hasParents && (cu >= 0 || !extents.fixed.packedKv)) // offsets of segments are not known yet
      checks.push_back({.kind = Check::Kind::Parents,
                        .arrays = {numberOf(tensor.name), cu, numberOf("padded_offsets_kv")},
                        .rows = extents.rows(true)});
  return checks;
}

static rt::Program signatureOf(llvm::ArrayRef<ProblemTensor> tensors, const ProblemExtents &extents, rt::Dtype data) {
  rt::Program program;
  program.tensors = describe(tensors, extents, data);
  program.checks = checksOf(tensors, extents);
  program.maxExtent = extents.fixed.longest;
  if (extents.fixed.segments) {
    Extent rows = sizeNamed("id_rows");
    program.sizes = {{"batch", rows * Extent(extents.fixed.segments)},
                     {"total_q", rows * sizeNamed("tokens_q")},
                     {"total_kv", rows * sizeNamed("tokens_kv")}};
  }
  return program;
}

rt::Program attn::signatureOf(Computation computation) {
  return ::signatureOf(tensorsOf(computation), {FixedSizes::of(computation)}, dtypeOf(computation.problem.getDtype()));
}

rt::Program attn::signatureOf(GatherRowsOp rows) {
  rt::Program program = ::signatureOf(tensorsOf(rows), {FixedSizes::of(rows)}, dtypeOf(rows.getDtype()));
  program.sizes = {{"batch", 1}};
  return program;
}

rt::Program attn::signatureOf(ComputationInterface op) {
  return ::signatureOf(tensorsOf(op), {FixedSizes::of(op)}, dtypeOf(op.getDataType()));
}

rt::Program attn::signatureOf(SegmentsOp segments) {
  ProblemExtents extents{FixedSizes::of(segments)};
  extents.fixed.packedQ = extents.fixed.packedKv = true;
  return ::signatureOf(tensorsOf(segments), extents, rt::Dtype::F16);
}
