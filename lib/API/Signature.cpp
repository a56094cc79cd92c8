// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Signature.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace attn;
using Axis = TensorSpec::Axis;

llvm::StringRef attn::toString(Dtype dtype) {
  const char *names[] = {"bf16", "f16", "f32", "i32"};
  return names[int(dtype)];
}

llvm::SmallVector<int64_t, 4> attn::contiguousStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// q, k, v or o: axes in the order of its layout.
static TensorSpec operandSpec(const char *name, Dtype dtype, LayoutAttr layout, Axis seq, Axis tokens, Axis heads,
                              Axis dim) {
  TensorSpec spec{name, dtype, llvm::StringRef(name) == "o"};
  switch (layout.getKind()) {
  case LayoutKind::bshd:
    spec.axes = {Axis::Batch, seq, heads, dim};
    spec.batchAxis = 0, spec.rowAxis = 1, spec.headAxis = 2;
    break;
  case LayoutKind::sbhd:
    spec.axes = {seq, Axis::Batch, heads, dim};
    spec.batchAxis = 1, spec.rowAxis = 0, spec.headAxis = 2;
    break;
  case LayoutKind::bhsd:
    spec.axes = {Axis::Batch, heads, seq, dim};
    spec.batchAxis = 0, spec.rowAxis = 2, spec.headAxis = 1;
    break;
  case LayoutKind::thd:
    spec.axes = {tokens, heads, dim};
    spec.rowAxis = 0, spec.headAxis = 1;
    break;
  }
  return spec;
}

Signature Signature::of(ProblemOp problem) {
  Signature s;
  s.heads = problem.getHeads(), s.kvHeads = problem.getKvHeads();
  s.dimQk = problem.getDimQk(), s.dimV = problem.getDimV();
  LayoutAttr q = problem.getQLayout(), kv = problem.getKLayout();
  s.packedQ = q.isPacked(), s.packedKv = kv.isPacked();
  Dtype dtype = problem.getDtype().isBF16() ? Dtype::BF16 : Dtype::F16;

  s.tensors.push_back(operandSpec("q", dtype, q, Axis::SeqQ, Axis::TokensQ, Axis::Heads, Axis::DimQk));
  s.tensors.push_back(operandSpec("k", dtype, kv, Axis::SeqKv, Axis::TokensKv, Axis::KvHeads, Axis::DimQk));
  s.tensors.push_back(
      operandSpec("v", dtype, problem.getVLayout(), Axis::SeqKv, Axis::TokensKv, Axis::KvHeads, Axis::DimV));
  s.tensors.push_back(
      operandSpec("o", dtype, problem.getOLayout(), Axis::SeqQ, Axis::TokensQ, Axis::Heads, Axis::DimV));
  if (problem.hasLse()) {
    TensorSpec lse{"lse", Dtype::F32, /*result=*/true};
    if (s.packedQ) {
      lse.axes = {Axis::Heads, Axis::TokensQ};
      lse.rowAxis = 1, lse.headAxis = 0;
    } else {
      lse.axes = {Axis::Batch, Axis::Heads, Axis::SeqQ};
      lse.batchAxis = 0, lse.rowAxis = 2, lse.headAxis = 1;
    }
    s.tensors.push_back(lse);
  }
  auto array = [&](std::string name, llvm::SmallVector<Axis, 4> axes) {
    s.tensors.push_back({std::move(name), Dtype::I32, false, axes});
  };
  for (auto [side, layout] : {std::pair("q", q), std::pair("kv", kv)}) {
    if (layout.isPacked())
      array(fmt::format("cu_seqlens_{}", side), {Axis::BatchPlus1});
    if (layout.getPadded())
      array(fmt::format("padded_offsets_{}", side), {Axis::BatchPlus1});
  }
  for (const MaskOperand &operand : distinctOperands(problem.getMask())) {
    if (operand.shape == OperandShape::PerSequence)
      array(operand.name, {Axis::Batch});
    else
      array(operand.name, {Axis::Batch, operand.shape == OperandShape::PerQuery ? Axis::SeqQ : Axis::SeqKv});
  }
  return s;
}

const TensorSpec *Signature::find(llvm::StringRef name) const {
  const auto *it = llvm::find_if(tensors, [&](const TensorSpec &t) { return t.name == name; });
  return it == tensors.end() ? nullptr : it;
}

static rt::Error bad(const TensorSpec &spec, std::string expected, std::string got) {
  return {fmt::format("expected {} for `{}`, got: {}", expected, spec.name, got)};
}

static std::string list(llvm::ArrayRef<int64_t> values) {
  return fmt::format("[{}]", fmt::join(values.begin(), values.end(), ", "));
}

/// Strides in 16-byte units, and rows that start at such a unit: what wide
/// loads and stores need.
static rt::Status checkMemory(const TensorSpec &spec, const TensorView &view, int64_t elements) {
  if (!view.data && elements)
    return bad(spec, "memory", "a null pointer");
  bool operand = spec.headAxis >= 0 && spec.dtype != Dtype::F32;
  uintptr_t alignment = operand ? 16 : 4;
  if (elements && uintptr_t(view.data) % alignment)
    return bad(spec, fmt::format("an address aligned to {} bytes", alignment), fmt::format("{}", view.data));
  if (view.strides.empty())
    return {};
  if (view.strides.size() != view.shape.size())
    return bad(spec, fmt::format("{} strides", view.shape.size()), list(view.strides));
  llvm::SmallVector<int64_t, 4> dense = contiguousStrides(view.shape);
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] <= 1)
      continue; // a stride that is never used
    bool free = int(i) == spec.batchAxis || int(i) == spec.headAxis || (operand && int(i) == spec.rowAxis);
    if (!free && view.strides[i] != dense[i])
      return bad(spec, fmt::format("stride {} on axis {}", dense[i], i), list(view.strides));
    if (operand && i + 1 < view.shape.size() && view.strides[i] % 8)
      return bad(spec, "strides in multiples of 8 elements (16 bytes)", list(view.strides));
  }
  return {};
}

rt::Result<Sizes> Signature::check(llvm::ArrayRef<TensorView> views) const {
  if (views.size() != tensors.size())
    return rt::Error{fmt::format("expected {} tensors, got: {}", tensors.size(), views.size())};
  Sizes sizes;
  sizes.extent.fill(-1);
  sizes.extent[Axis::Heads] = heads, sizes.extent[Axis::KvHeads] = kvHeads;
  sizes.extent[Axis::DimQk] = dimQk, sizes.extent[Axis::DimV] = dimV;
  for (auto [spec, view] : llvm::zip(tensors, views)) {
    if (view.dtype != spec.dtype)
      return bad(spec, toString(spec.dtype).str(), toString(view.dtype).str());
    if (view.shape.size() != spec.axes.size())
      return bad(spec, fmt::format("{} axes", spec.axes.size()), list(view.shape));
    llvm::SmallVector<int64_t, 4> expected;
    int64_t elements = 1;
    for (auto [axis, extent] : llvm::zip(spec.axes, view.shape)) {
      // The first tensor with an axis says how long it is.
      if (axis == Axis::BatchPlus1 && sizes.extent[Axis::Batch] < 0)
        sizes.extent[Axis::Batch] = extent - 1;
      if (axis == Axis::BatchPlus1)
        expected.push_back(sizes.extent[Axis::Batch] + 1);
      else
        expected.push_back(sizes.extent[axis] < 0 ? sizes.extent[axis] = extent : sizes.extent[axis]);
      elements *= extent;
    }
    if (llvm::ArrayRef<int64_t>(expected) != view.shape || (spec.axes[0] == Axis::BatchPlus1 && view.shape[0] < 1))
      return bad(spec, "shape " + list(expected), list(view.shape));
    for (int64_t extent : view.shape)
      if (extent < 0 || extent > int64_t(1) << 30)
        return bad(spec, "extents from 0 to 2^30", list(view.shape));
    if (rt::Status memory = checkMemory(spec, view, elements); !memory)
      return memory.error();
  }
  if (sizes.extent[Axis::Batch] < 0)
    sizes.extent[Axis::Batch] = 0;
  return sizes;
}

/// Value of the argument `<tensor>_<axis>`: a stride of that tensor.
static int64_t strideOf(const TensorSpec &spec, const TensorView &view, llvm::StringRef axis) {
  int position = axis == "batch" ? spec.batchAxis : axis == "row" ? spec.rowAxis : spec.headAxis;
  return view.strides.empty() ? contiguousStrides(view.shape)[position] : view.strides[position];
}

rt::Status attn::bind(const rt::Artifact &artifact, const Signature &signature, llvm::ArrayRef<TensorView> views,
                      const Sizes &sizes, Binding &binding) {
  binding.values.clear();
  size_t tensor = 0;
  for (const rt::Param &param : artifact.params) {
    llvm::StringRef name = param.name;
    int64_t value = 0;
    if (param.kind == rt::Param::Kind::Pointer) {
      value = reinterpret_cast<int64_t>(views[tensor++].data);
    } else if (name == "batch") {
      value = sizes[Axis::Batch];
    } else if (name == "seqlen_q") {
      value = sizes[Axis::SeqQ];
    } else if (name == "seqlen_kv") {
      value = sizes[Axis::SeqKv];
    } else if (name == "total_q") {
      value = sizes[Axis::TokensQ];
    } else {
      auto [owner, axis] = name.split('_');
      const TensorSpec *spec = signature.find(owner);
      if (!spec)
        return rt::Error{fmt::format("kernel argument `{}` belongs to no tensor", param.name)};
      value = strideOf(*spec, views[spec - signature.tensors.begin()], axis);
    }
    binding.values.push_back(value);
  }
  binding.pointers.clear();
  for (int64_t &value : binding.values)
    binding.pointers.push_back(&value); // little-endian: an i32 reads the low half
  binding.blocks = artifact.grid.blocks(sizes[Axis::Batch], sizes[signature.packedQ ? Axis::TokensQ : Axis::SeqQ]);
  if (binding.blocks > INT32_MAX)
    return rt::Error{fmt::format("expected at most 2^31 - 1 blocks, got: {}", binding.blocks)};
  return {};
}
