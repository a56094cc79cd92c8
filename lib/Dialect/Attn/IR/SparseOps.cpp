// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops around the attention problems of sparse attention: their constraints and their tensors.
//
#include "attn/Dialect/Attn/IR/ProblemTensors.h"
#include <cmath>

using namespace mlir;
using namespace attn;
using T = ProblemTensor;
using Tensors = std::vector<ProblemTensor>;

//===--------------------------------------------------------------------===//
// Common checks
//===--------------------------------------------------------------------===//

static bool isIn(int64_t number, int64_t least, int64_t most) { return number >= least && number <= most; }

static LogicalResult verifyName(Operation *op) {
  StringRef name = SymbolTable::getSymbolName(op).getValue();
  if (!isIdentifier(name))
    return op->emitOpError("expected an identifier as its name, got: \"") << name << "\"";
  return success();
}

static LogicalResult verifyDtype(Operation *op, Type dtype) {
  if (!dtype.isBF16() && !dtype.isF16() && !dtype.isF32())
    return op->emitOpError("expected dtype bf16, f16 or f32, got: ") << dtype;
  return success();
}

static LogicalResult verifyLayout(Operation *op, LayoutAttr layout) {
  if (layout.getPadded() || layout.hasPieces())
    return op->emitOpError("expected layout bshd, sbhd, bhsd or thd, got: ") << layout.getKeywords();
  return success();
}

static LogicalResult verifyHeads(Operation *op, int64_t heads) {
  if (!isIn(heads, 1, 65536))
    return op->emitOpError("expected 1 to 65536 heads, got: ") << heads;
  return success();
}

static LogicalResult verifyDim(Operation *op, int64_t dim, int64_t most) {
  if (dim % 8 || !isIn(dim, 8, most))
    return op->emitOpError("expected a head dim that is a multiple of 8 from 8 to ") << most << ", got: " << dim;
  return success();
}

/// Windows of `length` tokens, `stride` apart.
static LogicalResult verifyWindows(Operation *op, int64_t length, int64_t stride) {
  if (!isIn(length, 1, 65536) || !isIn(stride, 1, length) || length % stride)
    return op->emitOpError("expected a length from 1 to 65536 that a positive stride divides, got: length(")
           << length << ") stride(" << stride << ")";
  return success();
}

/// Does the op of the symbol exist?
template <typename Op>
static LogicalResult verifyReference(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<Op>(op, name))
    return op->emitOpError("expected the name of an `") << Op::getOperationName() << "` in its module, got: " << name;
  return success();
}

//===--------------------------------------------------------------------===//
// Tensors
//===--------------------------------------------------------------------===//

static SmallVector<T::Axis, 4> queriesOf(LayoutAttr layout) { return axesOf(layout, T::RowsQ, T::Heads, T::DimQk); }

/// Axes of a number for each query and head, as LSEs have them.
static SmallVector<T::Axis, 4> statisticsOf(LayoutAttr layout) {
  if (layout.isPacked())
    return {T::Heads, T::RowsQ};
  return {T::Batch, T::Heads, T::RowsQ};
}

/// The number of windows of a dense sequence, or rows that have room for those of all packed sequences.
static rt::Extent windowsOf(LayoutAttr layout, int64_t length, int64_t stride) {
  if (layout.isPacked())
    return floorDiv(rt::Extent::symbol("total_kv"), stride);
  return max(floorDiv(rt::Extent::symbol("seqlen_kv") - (length - stride), stride), 0);
}

/// A tensor with a row for each window, or each tile.
static T derived(StringRef name, T::Role role, T::Element element, ArrayRef<T::Axis> axes, rt::Extent rows) {
  T tensor(name.str(), role, element, axes);
  tensor.derived = std::move(rows);
  return tensor;
}

static void appendOffsets(LayoutAttr layout, Tensors &list, T::Role ofCompressed) {
  if (!layout.isPacked())
    return;
  list.emplace_back("cu_seqlens", T::Array, T::Int32, T::BatchPlusOne);
  list.emplace_back("cu_seqlens_compressed", ofCompressed, T::Int32, T::BatchPlusOne);
}

static std::string numbered(const char *name, int64_t number) { return name + std::to_string(number); }

//===--------------------------------------------------------------------===//
// attn.compress
//===--------------------------------------------------------------------===//

LogicalResult CompressOp::verify() {
  if (!getMean()) // C1
    return emitOpError("expected `mean`, the way to compress, got: none");
  for (int64_t dim : {getDimQk(), getDimV()}) // C3
    if (failed(verifyDim(*this, dim, 512)))
      return failure();
  if (getKOnly() && getDimQk() != getDimV()) // C3
    return emitOpError("expected one head dim beside `k_only`, got: dims(")
           << int64_t(getDimQk()) << ", " << int64_t(getDimV()) << ")";
  return failure(failed(verifyWindows(*this, getLength(), getStride())) || // C2
                 failed(verifyHeads(*this, getKvHeads())) ||               // C3
                 failed(verifyDtype(*this, getDtype())) ||                 // C4
                 failed(verifyLayout(*this, getLayout())) ||               // C5
                 failed(verifyName(*this)));                               // C6
}

void CompressOp::appendTensors(Tensors &list) {
  SmallVector<std::pair<std::string, T::Axis>, 2> sides = {{"k", T::DimQk}, {"v", T::DimV}};
  if (getKOnly())
    sides.pop_back();
  for (const auto &[name, dim] : sides)
    list.emplace_back(name, T::Operand, T::Data, axesOf(getLayout(), T::RowsKv, T::KvHeads, dim));
  for (const auto &[name, dim] : sides)
    list.push_back(derived("compressed_" + name, T::Result, T::Data, axesOf(getLayout(), T::Derived, T::KvHeads, dim),
                           windowsOf(getLayout(), getLength(), getStride())));
  appendOffsets(getLayout(), list, T::Result);
}

void CompressOp::fillFixedSizes(FixedSizes &fixed) {
  fixed.kvHeads = getKvHeads(), fixed.dimQk = getDimQk(), fixed.dimV = getDimV();
  fixed.packedQ = fixed.packedKv = getLayout().isPacked();
}

Type CompressOp::getDataType() { return getDtype(); }

//===--------------------------------------------------------------------===//
// attn.compress_backward
//===--------------------------------------------------------------------===//

CompressOp CompressBackwardOp::getCompressOp() {
  return SymbolTable::lookupNearestSymbolFrom<CompressOp>(*this, getCompressAttr());
}

LogicalResult CompressBackwardOp::verifySymbolUses(SymbolTableCollection &symbols) { // C1
  if (failed(verifyReference<CompressOp>(*this, getCompressAttr(), symbols)))
    return failure();
  if (getCompressOp().getKOnly())
    return emitOpError("expected an `attn.compress` of keys and values, got: ")
           << getCompressAttr() << " with `k_only`";
  return success();
}

LogicalResult CompressBackwardOp::verify() {
  if (int64_t add = getAdd().value_or(0); !isIn(add, 0, 8)) // C2
    return emitOpError("expected 0 to 8 gradients to add, got: ") << add;
  return verifyName(*this); // C3
}

void CompressBackwardOp::appendTensors(Tensors &list) {
  CompressOp compress = getCompressOp();
  LayoutAttr layout = compress.getLayout();
  SmallVector<T::Axis, 4> k = axesOf(layout, T::RowsKv, T::KvHeads, T::DimQk),
                          v = axesOf(layout, T::RowsKv, T::KvHeads, T::DimV);
  for (auto [name, dim] : {std::pair("dcompressed_k", T::DimQk), {"dcompressed_v", T::DimV}})
    list.push_back(derived(name, T::Operand, T::Data, axesOf(layout, T::Derived, T::KvHeads, dim),
                           windowsOf(layout, compress.getLength(), compress.getStride())));
  if (!getAdd().value_or(0)) // says how many tokens there are
    list.emplace_back("k", T::Operand, T::Data, k);
  for (int64_t i = 0; i < int64_t(getAdd().value_or(0)); ++i) {
    list.emplace_back(numbered("before_dk_", i), T::Operand, T::Float32, k);
    list.emplace_back(numbered("before_dv_", i), T::Operand, T::Float32, v);
  }
  list.emplace_back("dk", T::Result, T::Data, k);
  list.emplace_back("dv", T::Result, T::Data, v);
  appendOffsets(layout, list, T::Array);
}

void CompressBackwardOp::fillFixedSizes(FixedSizes &fixed) { getCompressOp().fillFixedSizes(fixed); }

Type CompressBackwardOp::getDataType() { return getCompressOp().getDtype(); }

//===--------------------------------------------------------------------===//
// attn.select
//===--------------------------------------------------------------------===//

double SelectOp::scaleOrDefault() {
  return getScale() ? getScale()->convertToDouble() : 1.0 / std::sqrt(double(getDim()));
}

int64_t SelectOp::getListHeads() { return getPerHead() ? getHeads() : getKvHeads(); }

int64_t SelectOp::getWindowLength() {
  return getLength().value_or(getScorer() == BlockScorer::mean_key ? getBlock() : 1);
}

int64_t SelectOp::getWindowStride() {
  return getStride().value_or(getScorer() == BlockScorer::mean_key ? getBlock() : 1);
}

int64_t SelectOp::getWidth() { return getCount() + std::max<int64_t>(int64_t(getRows()) / int64_t(getBlock()) - 1, 0); }

LogicalResult SelectOp::verify() {
  if (!getScorer()) // C1
    return emitOpError("expected `prob`, `mean_key` or `max`, the importance of blocks, got: none");
  int64_t block = getBlock(), rows = getRows(), count = getCount(), first = getFirst(), local = getLocal();
  if (getScorer() == BlockScorer::prob) {
    if (!getLength() || !getStride()) // C1
      return emitOpError("expected `length` and `stride` beside `prob`, got: ") << (getLength()   ? "`length`"
                                                                                    : getStride() ? "`stride`"
                                                                                                  : "none");
    if (failed(verifyWindows(*this, *getLength(), *getStride()))) // C2
      return failure();
    if (!isIn(block, 1, 65536) || block % int64_t(*getStride())) // C2
      return emitOpError("expected blocks of 1 to 65536 keys that the stride divides, got: block(")
             << block << ") stride(" << int64_t(*getStride()) << ")";
  } else {
    for (auto [name, isGiven] : {std::pair("length", getLength().has_value()),
                                 {"stride", getStride().has_value()},
                                 {"scale", getScale().has_value()}})
      if (isGiven) // C1
        return emitOpError("expected `") << name << "` beside `prob` only, got: `" << stringifyEnum(*getScorer())
                                         << "`";
    if (!isIn(block, 1, 65536)) // C2
      return emitOpError("expected blocks of 1 to 65536 keys, got: block(") << block << ")";
  }
  if (first < 0 || !isIn(local, 1, 1024) || !isIn(count, 1, 1024) || count - local < first) // C3
    return emitOpError("expected first(0) or more, local(1) or more, and count up to 1024 with room for both, got: "
                       "count(")
           << count << ") first(" << first << ") local(" << local << ")";
  if (!isIn(rows, 1, 65536) || (rows % block && block % rows)) // C4
    return emitOpError("expected 1 to 65536 rows that divide a block or that it divides, got: rows(")
           << rows << ") block(" << block << ")";
  int64_t heads = getHeads(), kvHeads = getKvHeads();
  if (!isIn(heads, 1, 65536) || kvHeads < 1 || heads % kvHeads) // C5
    return emitOpError("expected 1 to 65536 heads that are a multiple of 1 or more kv heads, got: ")
           << heads << " and " << kvHeads;
  if (failed(verifyDim(*this, getDim(), 256))) // C5, before the scale, whose default follows from it
    return failure();
  double size = std::abs(scaleOrDefault());
  if (!(size >= 0x1p-100 && size <= 0x1p100)) // C8
    return emitOpError("expected a scale of a size from 2^-100 to 2^100, got: ") << scaleOrDefault();
  return failure(failed(verifyDtype(*this, getDtype())) ||   // C6
                 failed(verifyLayout(*this, getLayout())) || // C7
                 failed(verifyName(*this)));                 // C9
}

void SelectOp::appendTensors(Tensors &list) {
  bool packed = getLayout().isPacked();
  const bool ofKeys = getScorer() == BlockScorer::max;
  list.emplace_back("q", T::Operand, T::Data, queriesOf(getLayout()));
  // As many windows as its caller has: packed, some rows may be unused.
  list.emplace_back(ofKeys ? "k" : "compressed_k", T::Operand, T::Data,
                    axesOf(getLayout(), ofKeys ? T::RowsQ : T::RowsKv, T::KvHeads, T::DimQk));
  SmallVector<T::Axis, 4> lists = {T::Batch, getPerHead() ? T::Heads : T::KvHeads, T::Derived, T::Table};
  if (packed)
    lists.erase(lists.begin());
  if (getScorer() == BlockScorer::prob)
    list.emplace_back("lse", T::Operand, T::Float32, statisticsOf(getLayout()));
  using rt::Extent;
  Extent lines = packed ? floorDiv(Extent::symbol("total_q"), int64_t(getRows())) + Extent::symbol("batch")
                        : ceilDiv(Extent::symbol("seqlen_q"), int64_t(getRows()));
  list.push_back(derived("blocks", T::Result, T::Int32, lists, std::move(lines)));
  list.back().entries = getWidth();
  if (!ofKeys)
    appendOffsets(getLayout(), list, T::Array);
  else if (packed)
    list.emplace_back("cu_seqlens", T::Array, T::Int32, T::BatchPlusOne);
}

void SelectOp::fillFixedSizes(FixedSizes &fixed) {
  fixed.heads = getHeads(), fixed.kvHeads = getKvHeads(), fixed.dimQk = getDim();
  fixed.packedQ = fixed.packedKv = getLayout().isPacked();
}

Type SelectOp::getDataType() { return getDtype(); }

//===--------------------------------------------------------------------===//
// attn.combine
//===--------------------------------------------------------------------===//

Type CombineOp::getGatesType() { return getGates().value_or(Float32Type::get(getContext())); }

LogicalResult CombineOp::verify() {
  if (getSigmoid() == getUniform()) // C1
    return emitOpError("expected one of `sigmoid` and `uniform`, got: ") << (getSigmoid() ? "both" : "none");
  if (getUniform() && getGates()) // C1
    return emitOpError("expected `gates` beside `sigmoid` only, got: `uniform`");
  if (int64_t branches = getBranches(); !isIn(branches, 1, 8)) // C2
    return emitOpError("expected 1 to 8 branches, got: ") << branches;
  if (Type gates = getGatesType(); gates != getDtype() && !gates.isF32()) // C4
    return emitOpError("expected gates of ") << getDtype() << " or f32, got: " << gates;
  return failure(failed(verifyHeads(*this, getHeads())) ||   // C3
                 failed(verifyDim(*this, getDim(), 512)) ||  // C3
                 failed(verifyDtype(*this, getDtype())) ||   // C4
                 failed(verifyLayout(*this, getLayout())) || // C5
                 failed(verifyName(*this)));                 // C6
}

/// The gates, or their gradient.
static T gatesOf(CombineOp combine, StringRef name, T::Role role) {
  SmallVector<T::Axis, 4> axes = {T::Batch, T::RowsQ, T::Heads, T::Table};
  if (combine.getLayout().isPacked())
    axes.erase(axes.begin());
  T gates(name.str(), role, combine.getGatesType() == combine.getDtype() ? T::Data : T::Float32, axes);
  gates.entries = combine.getBranches();
  gates.batchAxis = gates.rowAxis = gates.headAxis = -1; // contiguous
  return gates;
}

void CombineOp::appendTensors(Tensors &list) {
  for (int64_t i = 0; i < int64_t(getBranches()); ++i)
    list.emplace_back(numbered("o_", i), T::Operand, T::Data, queriesOf(getLayout()));
  if (getSigmoid())
    list.push_back(gatesOf(*this, "gates", T::Operand));
  list.emplace_back("o", T::Result, T::Data, queriesOf(getLayout()));
}

void CombineOp::fillFixedSizes(FixedSizes &fixed) {
  fixed.heads = getHeads(), fixed.dimQk = getDim();
  fixed.packedQ = fixed.packedKv = getLayout().isPacked();
}

Type CombineOp::getDataType() { return getDtype(); }

//===--------------------------------------------------------------------===//
// attn.combine_backward
//===--------------------------------------------------------------------===//

CombineOp CombineBackwardOp::getCombineOp() {
  return SymbolTable::lookupNearestSymbolFrom<CombineOp>(*this, getCombineAttr());
}

LogicalResult CombineBackwardOp::verifySymbolUses(SymbolTableCollection &symbols) { // C1
  return verifyReference<CombineOp>(*this, getCombineAttr(), symbols);
}

LogicalResult CombineBackwardOp::verify() { return verifyName(*this); } // C2

void CombineBackwardOp::appendTensors(Tensors &list) {
  CombineOp combine = getCombineOp();
  SmallVector<T::Axis, 4> axes = queriesOf(combine.getLayout()), statistics = statisticsOf(combine.getLayout());
  auto append = [&](const char *prefix, T::Role role, T::Element element, ArrayRef<T::Axis> axes) {
    for (int64_t i = 0; i < int64_t(combine.getBranches()); ++i)
      list.emplace_back(numbered(prefix, i), role, element, axes);
  };
  append("o_", T::Operand, T::Data, axes);
  append("lse_", T::Operand, T::Float32, statistics);
  if (combine.getSigmoid())
    list.push_back(gatesOf(combine, "gates", T::Operand));
  list.emplace_back("do", T::Operand, T::Data, axes);
  append("delta_", T::Result, T::Float32, statistics);
  append("gated_lse_", T::Result, T::Float32, statistics);
  if (combine.getSigmoid())
    list.push_back(gatesOf(combine, "dgates", T::Result));
}

void CombineBackwardOp::fillFixedSizes(FixedSizes &fixed) { getCombineOp().fillFixedSizes(fixed); }

Type CombineBackwardOp::getDataType() { return getCombineOp().getDtype(); }

//===--------------------------------------------------------------------===//
// attn.add
//===--------------------------------------------------------------------===//

LogicalResult AddOp::verify() {
  if (int64_t parts = getParts(); !isIn(parts, 1, 8)) // C1
    return emitOpError("expected 1 to 8 parts, got: ") << parts;
  if (failed(verifyHeads(*this, getHeads())) || failed(verifyDim(*this, getDim(), 512)) || // C2
      failed(verifyDtype(*this, getDtype())))                                              // C3
    return failure();
  if (Type from = getPartType(); from != getDtype() && !from.isF32()) // C3
    return emitOpError("expected parts of ") << getDtype() << " or f32, got: " << from;
  return failure(failed(verifyLayout(*this, getLayout())) || // C4
                 failed(verifyName(*this)));                 // C5
}

void AddOp::appendTensors(Tensors &list) {
  T::Element element = getPartType() == getDtype() ? T::Data : T::Float32;
  for (int64_t i = 0; i < int64_t(getParts()); ++i)
    list.emplace_back(numbered("part_", i), T::Operand, element, queriesOf(getLayout()));
  list.emplace_back("result", T::Result, T::Data, queriesOf(getLayout()));
}

void AddOp::fillFixedSizes(FixedSizes &fixed) {
  fixed.heads = getHeads(), fixed.dimQk = getDim();
  fixed.packedQ = fixed.packedKv = getLayout().isPacked();
}

Type AddOp::getDataType() { return getDtype(); }
