// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Attn/IR/ProblemTensors.h"

using namespace attn;
using Axis = ProblemTensor::Axis;
using llvm::Twine;

bool attn::readsKeyPositions(ProblemOp problem) {
  return problem.getQLayout().hasPieces() &&
         llvm::any_of(problem.getMask().operands(), [](const MaskOperand &array) { return array.lists.has_value(); });
}

FixedSizes FixedSizes::of(Computation computation) {
  ProblemOp problem = computation.problem;
  FixedSizes fixed;
  fixed.heads = problem.getHeads(), fixed.kvHeads = problem.getKvHeads();
  fixed.allHeads = problem.allHeads(), fixed.allKvHeads = problem.allKvHeads();
  fixed.dimQk = problem.getDimQk(), fixed.dimV = problem.getDimV();
  fixed.packedQ = problem.getQLayout().isPacked(), fixed.packedKv = problem.getKLayout().isPacked();
  fixed.pieces = problem.getQLayout().hasPieces(), fixed.singlePieces = problem.getSinglePieces();
  fixed.backward = bool(computation.backward);
  fixed.segments = problem.getSegments().value_or(0);
  fixed.qTile = problem.getTiles().value_or(0);
  fixed.longest = longestSequence(problem.getMask());
  for (ScoreModifierInterface modifier : problem.getModifiers())
    if (llvm::isa<ScoreFunctionAttr>(mlir::Attribute(modifier)))
      fixed.longest = std::min(fixed.longest, longestOfPredicates);
  return fixed;
}

FixedSizes FixedSizes::of(SegmentsOp op) {
  FixedSizes fixed;
  fixed.segments = int64_t(op.getSegments());
  fixed.qTile = int64_t(op.getTiles().value_or(0));
  return fixed;
}

FixedSizes FixedSizes::of(GatherRowsOp op) {
  FixedSizes fixed;
  fixed.heads = op.getHeads(), fixed.dimQk = op.getDim();
  fixed.packedQ = fixed.packedKv = true;
  return fixed;
}

ProblemTensor::ProblemTensor(std::string name, Role role, Element element, llvm::ArrayRef<Axis> axes)
    : name(std::move(name)), role(role), element(element), axes(axes) {
  if (role == Array)
    return;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (axis == Batch)
      batchAxis = i;
    else if (axis == RowsQ || axis == RowsKv || axis == OwnRows || (axis == Derived && element != Int32))
      rowAxis = i;
    else if (axis == Heads || axis == KvHeads)
      headAxis = i;
  }
}

int64_t attn::extentOf(Axis axis, const FixedSizes &fixed, const Sizes &sizes) {
  switch (axis) {
  case Axis::Batch:
    return sizes.batch;
  case Axis::BatchPlusOne:
    return sizes.batch < 0 ? -1 : sizes.batch + 1;
  case Axis::RowsQ:
    return sizes.rowsQ;
  case Axis::RowsKv:
    return sizes.rowsKv;
  case Axis::Heads:
    return fixed.heads;
  case Axis::KvHeads:
    return fixed.kvHeads;
  case Axis::DimQk:
    return fixed.dimQk;
  case Axis::DimV:
    return fixed.dimV;
  case Axis::Segments:
    return fixed.segments;
  case Axis::SegmentsPlusOne:
    return fixed.segments + 1;
  case Axis::TokensQ:
    return sizes.tokensQ;
  case Axis::TokensKv:
    return sizes.tokensKv;
  case Axis::Slots:
    return sizes.rowsQ / fixed.qTile + sizes.batch + 2;
  case Axis::One:
    return 1;
  case Axis::PiecesQPlusOne:
    return sizes.piecesQ < 0 ? -1 : sizes.piecesQ + 1;
  case Axis::PiecesKvPlusOne:
    return sizes.piecesKv < 0 ? -1 : sizes.piecesKv + 1;
  case Axis::AllHeads:
    return fixed.allHeads;
  case Axis::AllKvHeads:
    return fixed.allKvHeads;
  case Axis::WholeQ:
    return sizes.wholeQ;
  case Axis::WholeKv:
    return sizes.wholeKv;
  default: // of a tensor's own
    break;
  }
  llvm_unreachable("not an extent of the problem's");
}

int64_t ProblemTensor::extentOf(Axis axis, const FixedSizes &fixed, const Sizes &sizes) const {
  auto ownOf = [&](const std::string &array) {
    auto own = sizes.entries.find(array);
    return own == sizes.entries.end() ? -1 : own->second;
  };
  switch (axis) {
  case Table:
    return entries;
  case Lines:
    if (sizes.rowsQ < 0 || sizes.batch < 0)
      return -1;
    return fixed.packedQ ? sizes.rowsQ / entries + sizes.batch : llvm::divideCeil(sizes.rowsQ, entries);
  case Entries:
  case OwnRows:
    return ownOf(name);
  case EntriesPlusOne:
    return ownOf(name) ? ownOf(name) : -1;
  default:
    return attn::extentOf(axis, fixed, sizes);
  }
}

llvm::SmallVector<int64_t, 4> ProblemTensor::shape(const FixedSizes &fixed, const Sizes &sizes,
                                                   size_t lastLeadingDims) const {
  llvm::SmallVector<int64_t, 4> shape;
  for (Axis axis : axes) {
    if (axis == LeadingDims)
      llvm::append_range(shape, sizes.lead);
    else if (axis == LastLeadingDims)
      llvm::append_range(shape, llvm::ArrayRef(sizes.lead).take_back(lastLeadingDims));
    else
      shape.push_back(extentOf(axis, fixed, sizes));
  }
  return shape;
}

void ProblemTensor::inferSizes(llvm::ArrayRef<int64_t> shape, const FixedSizes &fixed, Sizes &sizes) const {
  auto set = [](int64_t &size, int64_t extent) { size = size < 0 ? extent : size; };
  llvm::ArrayRef<Axis> own = axes;
  if (hasLeadingDims()) {
    own = own.drop_front();
    llvm::ArrayRef<int64_t> lead = shape.drop_back(own.size());
    shape = shape.take_back(own.size());
    const int64_t most = int64_t(1) << 31; // more are refused, as many as they may be
    int64_t rows = 1;
    for (int64_t extent : lead)
      rows = std::min(rows * std::min(extent, most), most);
    if (axes[0] == LastLeadingDims) {
      (own[0] == TokensQ ? sizes.positionRowsQ : sizes.positionRowsKv) = rows;
    } else if (sizes.idRows < 0) {
      sizes.idRows = rows, sizes.batch = rows * fixed.segments;
      sizes.lead.assign(lead.begin(), lead.end());
    }
  }
  for (auto [axis, extent] : llvm::zip_equal(own, shape)) {
    if (axis == Batch || axis == BatchPlusOne)
      set(sizes.batch, extent - (axis == BatchPlusOne));
    else if (axis == RowsQ || axis == RowsKv)
      set(axis == RowsQ ? sizes.rowsQ : sizes.rowsKv, extent);
    else if (axis == PiecesQPlusOne || axis == PiecesKvPlusOne)
      set(axis == PiecesQPlusOne ? sizes.piecesQ : sizes.piecesKv, extent - 1);
    else if (axis == WholeQ || axis == WholeKv)
      set(axis == WholeQ ? sizes.wholeQ : sizes.wholeKv, extent);
    else if (axis == Entries || axis == EntriesPlusOne || axis == OwnRows)
      sizes.entries.try_emplace(name, extent);
    else if (axis == TokensQ || axis == TokensKv) {
      set(axis == TokensQ ? sizes.tokensQ : sizes.tokensKv, extent);
      set(axis == TokensQ ? sizes.rowsQ : sizes.rowsKv, sizes.idRows * extent);
    }
  }
}

//===--------------------------------------------------------------------===//
// The tensors of a problem
//===--------------------------------------------------------------------===//

llvm::SmallVector<Axis, 4> attn::axesOf(LayoutAttr layout, Axis rows, Axis heads, Axis dim) {
  switch (layout.getKind()) {
  case LayoutKind::bshd:
    return {Axis::Batch, rows, heads, dim};
  case LayoutKind::sbhd:
    return {rows, Axis::Batch, heads, dim};
  case LayoutKind::bhsd:
    return {Axis::Batch, heads, rows, dim};
  case LayoutKind::thd:
    return {rows, heads, dim};
  }
  llvm_unreachable("covered");
}

/// ids and positions, then results in the order of `attn.segments`' description.
static std::vector<ProblemTensor> tensorsOfRule(SegmentRule rule, bool maps, bool tiles);

ProblemTensor attn::tensorOf(const ScoreOperand &operand) {
  const Axis axisOf[] = {Axis::Batch, Axis::Heads, Axis::RowsQ, Axis::RowsKv, Axis::Table};
  llvm::SmallVector<Axis, 4> axes;
  for (ScoreOperand::Axis axis : operand.axes)
    axes.push_back(axisOf[axis]);
  ProblemTensor tensor(operand.name, ProblemTensor::Array, ProblemTensor::Float32, axes);
  tensor.entries = operand.entries;
  return tensor;
}

llvm::SmallVector<Axis, 4> attn::leadingAxesOf(const MaskOperand &operand, LayoutAttr q, LayoutAttr kv) {
  llvm::SmallVector<Axis, 4> axes;
  bool packed = (operand.shape == OperandShape::PerQuery ? q : kv).isPacked();
  bool packsLists = operand.shape == OperandShape::BlockLines || (operand.lists && operand.lists->fixedWidth);
  bool perSequence = packsLists      ? !q.isPacked()
                     : operand.lists ? operand.lists->perSequence
                                     : !operand.hasPositions() || !packed;
  if (perSequence && operand.shape != OperandShape::Blocks && operand.shape != OperandShape::PerHead)
    axes.push_back(Axis::Batch);
  if (operand.heads != OperandHeads::shared)
    axes.push_back(operand.heads == OperandHeads::per_head ? Axis::Heads : Axis::KvHeads);
  return axes;
}

std::vector<ProblemTensor> attn::tensorsOf(Computation computation) {
  using T = ProblemTensor;
  ProblemOp problem = computation.problem;
  LayoutAttr q = problem.getQLayout(), kv = problem.getKLayout();
  llvm::SmallVector<Axis, 4> axesQ = axesOf(q, T::RowsQ, T::Heads, T::DimQk);
  llvm::SmallVector<Axis, 4> axesK = axesOf(kv, T::RowsKv, T::KvHeads, T::DimQk);
  llvm::SmallVector<Axis, 4> axesV = axesOf(problem.getVLayout(), T::RowsKv, T::KvHeads, T::DimV);
  llvm::SmallVector<Axis, 4> axesO = axesOf(problem.getOLayout(), T::RowsQ, T::Heads, T::DimV);
  llvm::SmallVector<Axis, 4> statistics = {T::Batch, T::Heads, T::RowsQ};
  if (q.isPacked())
    statistics.erase(statistics.begin());
  T::Role results = computation.backward ? T::Operand : T::Result;
  bool isPartial = !computation.backward && problem.getPartialOut();
  auto roundedUnless = [](bool isWide) { return isWide ? T::Float32 : T::Data; };
  std::vector<T> list = {
      {"q", T::Operand, T::Data, axesQ}, {"k", T::Operand, T::Data, axesK}, {"v", T::Operand, T::Data, axesV}};
  if (!computation.backward || !computation.backward.getDelta())
    list.emplace_back("o", results, isPartial ? T::Float32 : T::Data, axesO);
  if (problem.hasLse())
    list.emplace_back("lse", results, T::Float32, statistics);
  if (isPartial)
    for (const char *name : {"row_max", "row_sum"})
      list.emplace_back(name, T::Result, T::Float32, statistics);
  if (!computation.backward && problem.getPartialIn()) {
    list.emplace_back("before_o", T::Operand, T::Float32, axesO);
    for (const char *name : {"before_row_max", "before_row_sum"})
      list.emplace_back(name, T::Operand, T::Float32, statistics);
  }
  if (computation.backward && computation.backward.getAddDq())
    list.emplace_back("before_dq", T::Operand, T::Float32, axesQ);
  if (computation.backward) {
    list.emplace_back("do", T::Operand, T::Data, axesO);
    if (computation.backward.getDlse())
      list.emplace_back("dlse", T::Operand, T::Float32, statistics);
    if (computation.backward.getDelta())
      list.emplace_back("delta", T::Operand, T::Float32, statistics);
    list.emplace_back("dq", T::Result, roundedUnless(computation.backward.getFloat32Dq()), axesQ);
    list.emplace_back("dk", T::Result, roundedUnless(computation.backward.getFloat32Dkv()), axesK);
    list.emplace_back("dv", T::Result, roundedUnless(computation.backward.getFloat32Dkv()), axesV);
    addGradients(computation.backward, list);
  }

  auto array = [&](const Twine &name, llvm::ArrayRef<Axis> axes) {
    list.emplace_back(name.str(), T::Array, T::Int32, axes);
  };
  if (ProblemOp problem = computation.problem; problem.getSegments())
    for (ProblemTensor &tensor : tensorsOfRule(*SegmentRule::of(problem.getMask()), /*maps=*/false, /*tiles=*/false))
      if (tensor.role == T::Array || tensor.name == "status")
        list.push_back(std::move(tensor));
  for (auto [side, layout] : {std::pair("q", q), std::pair("kv", kv)}) {
    if (problem.getSegments())
      break; // of these, arrays are scratch
    if (layout.isPacked())
      array(Twine("cu_seqlens_") + side, T::BatchPlusOne);
    if (layout.getPadded())
      array(Twine("padded_offsets_") + side, T::BatchPlusOne);
    if (layout.hasPieces()) {
      bool keys = llvm::StringRef(side) == "kv";
      array(piecesArray(keys), {T::Table, keys ? T::PiecesKvPlusOne : T::PiecesQPlusOne});
      list.back().entries = PieceLines;
      array(firstPiecesArray(keys), T::BatchPlusOne);
    }
  }
  if (readsKeyPositions(problem))
    array(keyPositionsArray, T::WholeKv);
  if (problem.getTiles()) {
    array("tiles_q", T::Slots);
    array("tile_count", T::One);
  }
  llvm::SmallVector<MaskOperand> operands = distinctOperands(problem.getMask());
  for (const MaskOperand &operand : operands) {
    if (operand.isComputed())
      continue;
    llvm::SmallVector<Axis, 4> axes = leadingAxesOf(operand, q, kv);
    switch (operand.shape) {
    case OperandShape::PerSequence:
    case OperandShape::PerHead:
      break;
    case OperandShape::PerQuery:
    case OperandShape::PerKey:
      if (q.hasPieces())
        axes.push_back(operand.shape == OperandShape::PerQuery ? T::WholeQ : T::WholeKv);
      else
        axes.push_back(operand.shape == OperandShape::PerQuery ? T::RowsQ : T::RowsKv);
      break;
    case OperandShape::BlockLines:
      llvm::append_range(axes, llvm::ArrayRef{T::Lines, T::Entries});
      break;
    case OperandShape::BlockRows:
    case OperandShape::Blocks:
      axes.push_back(operand.lists ? T::EntriesPlusOne : T::Entries);
    }
    array(operand.name, axes);
    if (operand.lists)
      list.back().lists = operand;
    if (operand.shape == OperandShape::BlockLines)
      for (const MaskOperand &offsets : operands)
        if (offsets.lists && offsets.lists->columns == operand.name)
          list.back().entries = offsets.lists->q;
    list.back().hasParents =
        llvm::any_of(operands, [&](const MaskOperand &made) { return made.madeOf == operand.name; });
  }
  for (const ScoreOperand &operand : scoreOperands(problem))
    list.push_back(tensorOf(operand));
  if (std::optional<Dropout> dropout = problem.dropoutInForce()) {
    list.emplace_back(dropout->seed, T::Array, T::Int32, T::Table);
    list.back().entries = Dropout::words;
  }
  if (problem.getOfHeads())
    for (T &tensor : list)
      for (Axis &axis : tensor.axes)
        if (tensor.role == T::Array)
          axis = axis == T::Heads ? T::AllHeads : axis == T::KvHeads ? T::AllKvHeads : axis;
  return list;
}

std::vector<ProblemTensor> attn::tensorsOfSegments(ProblemOp problem) {
  std::vector<ProblemTensor> list = tensorsOfRule(*SegmentRule::of(problem.getMask()), /*maps=*/false, /*tiles=*/false);
  llvm::erase_if(list, [](const ProblemTensor &tensor) {
    return tensor.role != ProblemTensor::Result || tensor.name == "status";
  });
  return list;
}

std::vector<ProblemTensor> attn::tensorsOf(GatherRowsOp op) {
  using T = ProblemTensor;
  std::vector<ProblemTensor> list;
  T::Element element = op.getPartType() == op.getDtype() ? T::Data : T::Float32;
  for (int64_t part = 0; part < int64_t(op.getParts()); ++part)
    list.emplace_back("part_" + std::to_string(part), T::Operand, element,
                      llvm::ArrayRef<Axis>{T::OwnRows, T::Heads, T::DimQk});
  list.emplace_back("result", T::Result, T::Data, llvm::ArrayRef<Axis>{T::RowsQ, T::Heads, T::DimQk});
  list.emplace_back("index", T::Array, T::Int32, llvm::ArrayRef<Axis>{T::Table, T::RowsQ});
  list.back().entries = op.getParts();
  return list;
}

std::vector<ProblemTensor> attn::tensorsOf(SegmentsOp op) {
  return tensorsOfRule(op.getRule(), op.getMaps(), op.getTiles().has_value());
}

static std::vector<ProblemTensor> tensorsOfRule(SegmentRule rule, bool maps, bool tiles) {
  using T = ProblemTensor;
  std::vector<ProblemTensor> list;
  auto add = [&](const Twine &name, T::Role role, llvm::ArrayRef<Axis> axes) {
    list.emplace_back(name.str(), role, T::Int32, axes);
  };
  const std::pair<const char *, Axis> sides[] = {{"_q", T::TokensQ}, {"_kv", T::TokensKv}};
  for (auto [side, rows] : sides) {
    add(Twine("ids") + side, T::Array, {T::LeadingDims, rows});
    if (rule.hasPositions())
      add(Twine("positions") + side, T::Array, {T::LastLeadingDims, rows});
  }
  for (auto [side, rows] : sides)
    add(Twine("seqlens") + side, T::Result, {T::LeadingDims, T::Segments});
  for (auto [side, rows] : sides)
    add(Twine("offsets") + side, T::Result, {T::LeadingDims, T::SegmentsPlusOne});
  add("status", T::Result, T::LeadingDims);
  if (maps)
    for (auto [side, rows] : sides)
      add(Twine("segments") + side, T::Result, {T::LeadingDims, rows});
  for (auto [side, rows] : sides) {
    add(Twine("cu_seqlens") + side, T::Result, T::BatchPlusOne);
    add(Twine("padded_offsets") + side, T::Result, T::BatchPlusOne);
  }
  if (tiles) {
    add("tiles_q", T::Result, T::Slots);
    add("tile_count", T::Result, T::One);
  }
  return list;
}
