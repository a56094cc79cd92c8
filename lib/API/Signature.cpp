// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Signature.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace attn;

size_t attn::elementsOf(llvm::ArrayRef<int64_t> shape) {
  size_t count = 1;
  for (int64_t extent : shape)
    count *= size_t(extent);
  return count;
}

llvm::SmallVector<int64_t, 4> attn::contiguousStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Signature Signature::of(Computation computation) {
  Signature s;
  s.fixed = FixedSizes::of(computation);
  const Dtype dtypes[] = {computation.problem.getDtype().isBF16() ? Dtype::BF16 : Dtype::F16, Dtype::F32, Dtype::I32};
  for (ProblemTensor &tensor : tensorsOf(computation))
    s.tensors.push_back({std::move(tensor), dtypes[tensor.element]});
  return s;
}

Signature Signature::of(SegmentsOp segments) {
  Signature s;
  s.fixed = FixedSizes::of(segments);
  for (ProblemTensor &tensor : tensorsOf(segments))
    s.tensors.push_back({std::move(tensor), Dtype::I32});
  return s;
}

const TensorSpec *Signature::find(llvm::StringRef name) const {
  std::optional<size_t> index = indexOf(name);
  return index ? &tensors[*index] : nullptr;
}

std::optional<size_t> Signature::indexOf(llvm::StringRef name) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name)
      return i;
  return std::nullopt;
}

const TensorSpec *Signature::twinOf(const TensorSpec &spec) const {
  llvm::StringRef name = spec.name;
  return spec.isLed() && name.consume_back("_kv") ? find((name + "_q").str()) : nullptr;
}

static rt::Error bad(const TensorSpec &spec, std::string expected, std::string got) {
  return {fmt::format("expected {} for `{}`, got: {}", expected, spec.name, got)};
}

static std::string list(llvm::ArrayRef<int64_t> values) {
  return fmt::format("[{}]", fmt::join(values.begin(), values.end(), ", "));
}

/// Strides in 16-byte units, and rows that start at such a unit: what wide
/// loads and stores need.
static rt::Status checkMemory(const TensorSpec &spec, const TensorView &view) {
  bool elements = !llvm::is_contained(view.shape, 0);
  if (!view.data && elements)
    return bad(spec, "memory", "a null pointer");
  bool operand = spec.element == ProblemTensor::Data;
  uintptr_t alignment = operand ? 16 : 4;
  if (elements && uintptr_t(view.data) % alignment)
    return bad(spec, fmt::format("an address aligned to {} bytes", alignment), fmt::format("{}", view.data));
  if (view.strides.empty())
    return {};
  if (view.strides.size() != view.shape.size())
    return bad(spec, fmt::format("{} strides", view.shape.size()), list(view.strides));
  if (!elements)
    return {}; // numpy gives empty arrays strides of 0
  llvm::SmallVector<int64_t, 4> dense = contiguousStrides(view.shape);
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] <= 1)
      continue; // a stride that is never used
    if (spec.isResult() && view.strides[i] == 0)
      return bad(spec, "strides other than 0, since each entry of a result is written", list(view.strides));
    bool free = int(i) == spec.batchAxis || int(i) == spec.headAxis || (operand && int(i) == spec.rowAxis);
    if (!free && view.strides[i] != dense[i])
      return bad(spec, fmt::format("stride {} on axis {}", dense[i], i), list(view.strides));
    if (operand && i + 1 < view.shape.size() && view.strides[i] % 8)
      return bad(spec, "strides in multiples of 8 elements (16 bytes)", list(view.strides));
  }
  return {};
}

rt::Status Signature::checkApart(llvm::ArrayRef<TensorView> views) const {
  auto elements = [](const TensorView &view) { return !llvm::is_contained(view.shape, 0); };
  for (auto [i, spec] : llvm::enumerate(tensors))
    for (size_t j = 0; spec.isResult() && elements(views[i]) && j < tensors.size(); ++j)
      if (j != i && views[j].data == views[i].data && elements(views[j]))
        return bad(spec, "memory of its own", fmt::format("that of `{}`", tensors[j].name));
  return {};
}

/// What leading dimensions are compared with.
static std::string beside(const TensorSpec &spec, const Sizes &sizes) {
  return spec.isLed() && spec.role == ProblemTensor::Array ? fmt::format(" beside ids of rows {}", list(sizes.lead)) : "";
}

rt::Result<Sizes> Signature::check(llvm::ArrayRef<TensorView> views) const {
  if (views.size() != tensors.size())
    return rt::Error{fmt::format("expected {} tensors, got: {}", tensors.size(), views.size())};
  Sizes sizes{-1, -1, -1};
  for (auto [spec, view] : llvm::zip(tensors, views)) {
    if (view.dtype != spec.dtype)
      return bad(spec, std::string(toString(spec.dtype)), std::string(toString(view.dtype)));
    size_t own = spec.axes.size() - spec.isLed(); // and leading dimensions
    if (spec.isLed() ? view.shape.size() < own : view.shape.size() != own)
      return bad(spec, fmt::format("{} axes{}", own, spec.isLed() ? " or more" : ""), list(view.shape));
    size_t leadEnd = view.shape.size() - own;
    if (spec.isLed() && spec.axes[0] == ProblemTensor::LeadEnd && leadEnd > sizes.lead.size())
      return bad(spec, fmt::format("at most the {} leading dimensions {} of ids", sizes.lead.size(), list(sizes.lead)),
                 list(view.shape));
    spec.learn(view.shape, fixed, sizes);
    llvm::SmallVector<int64_t, 4> expected = spec.shape(fixed, sizes, leadEnd);
    if (llvm::ArrayRef<int64_t>(expected) != view.shape)
      return bad(spec,
                 !llvm::is_contained(expected, -1) ? "shape " + list(expected) + beside(spec, sizes)
                 : spec.ownsEntries()              ? "at least one entry"
                                                   : "batch + 1 entries",
                 list(view.shape));
    for (int64_t extent : view.shape)
      if (extent < 0 || extent > fixed.longest)
        return bad(spec, fmt::format("extents from 0 to 2^{}", llvm::Log2_64(fixed.longest)), list(view.shape));
    if (rt::Status memory = checkMemory(spec, view); !memory)
      return memory.error();
  }
  if (!fixed.segments)
    return sizes;
  if (llvm::Error error = checkIdRows(sizes))
    return rt::Error{llvm::toString(std::move(error))};
  // Offsets are of tokens of all rows.
  for (auto [name, count] : {std::pair("tokens of q", sizes.tokensQ), std::pair("tokens of kv", sizes.tokensKv),
                             std::pair("segments", fixed.segments)})
    if (sizes.idRows > 0 && count > INT32_MAX / sizes.idRows)
      return rt::Error{fmt::format("expected fewer than 2^31 {} in all rows, got: {} x {}", name, sizes.idRows, count)};
  return sizes;
}
