// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Signature.h"
#include "llvm/Support/MathExtras.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace attn;

llvm::StringRef attn::toString(Dtype dtype) {
  const char *names[] = {"bf16", "f16", "f32", "i32"};
  return names[int(dtype)];
}

int64_t attn::sizeOf(Dtype dtype) { return dtype == Dtype::BF16 || dtype == Dtype::F16 ? 2 : 4; }

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
  for (ProblemTensor &tensor : scratchOf(computation))
    s.scratch.push_back({std::move(tensor), dtypes[tensor.element]});
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
  return index && *index < tensors.size() ? &tensors[*index] : nullptr;
}

std::optional<size_t> Signature::indexOf(llvm::StringRef name) const {
  for (size_t i = 0; i < tensors.size() + scratch.size(); ++i)
    if ((*this)[i].name == name)
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
      return bad(spec, toString(spec.dtype).str(), toString(view.dtype).str());
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

static llvm::SmallVector<int64_t, 4> stridesOf(const TensorView &view) {
  return view.strides.empty() ? contiguousStrides(view.shape) : llvm::SmallVector<int64_t, 4>(view.strides);
}

/// Value of the argument `<tensor>_<axis>`: a stride of that tensor.
static int64_t strideOf(const TensorSpec &spec, const TensorView &view, llvm::StringRef axis) {
  int position = axis == "kind" ? 0 : axis == "batch" ? spec.batchAxis : axis == "row" ? spec.rowAxis : spec.headAxis;
  return stridesOf(view)[position];
}

rt::Result<rt::TensorMapSpec> attn::mapOf(const rt::Param &param, const TensorSpec &spec, const TensorView &view) {
  if (spec.element != ProblemTensor::Data || spec.rowAxis < 0 || spec.headAxis < 0)
    return bad(spec, "rows and heads of 2-byte elements (of which there can be a tensor map)",
               toString(spec.dtype).str());
  rt::TensorMapSpec map;
  map.boxRows = param.boxRows;
  map.boxCols = param.boxCols;
  map.boxHeads = param.boxHeads;
  map.bf16 = spec.dtype == Dtype::BF16;
  map.packed = spec.batchAxis < 0;
  bool elements = !llvm::is_contained(view.shape, 0);
  // Nothing is copied from a tensor without elements, but its map has to be one.
  map.address = elements ? reinterpret_cast<rt::DevicePtr>(view.data) : 4096;
  map.extents[0] = std::max<int64_t>(view.shape.back(), 1);
  const int64_t unused = llvm::alignTo(map.extents[0], 8); // for strides that nobody takes, any legal one
  llvm::SmallVector<int64_t, 4> strides = stridesOf(view);
  const int axes[] = {spec.rowAxis, spec.headAxis, spec.batchAxis};
  for (auto [i, axis] : llvm::enumerate(axes)) {
    map.extents[i + 1] = axis < 0 ? 1 : std::max<int64_t>(view.shape[axis], 1);
    map.strides[i] = elements && map.extents[i + 1] > 1 ? strides[axis] : unused;
    if (map.strides[i] < 0 || map.strides[i] >= rt::kTensorMapStrideLimit)
      return bad(spec, "strides from 0 to below 2^39 elements (a tensor map has no others)", list(strides));
  }
  return map;
}

Workspace::Workspace(const Signature &signature, const Sizes &sizes) {
  auto bytesOf = [](const Piece &piece) { return elementsOf(piece.shape) * sizeOf(piece.dtype); };
  size_t passing = 0;
  const Piece *longest = nullptr; // list
  pieces.reserve(signature.scratch.size());
  for (const TensorSpec &spec : signature.scratch) {
    const Piece &piece = pieces.emplace_back(Piece{spec.dtype, spec.shape(signature.fixed, sizes), 0});
    if (spec.isPassing())
      passing = std::max(passing, bytesOf(piece));
    else if (spec.isList() && (!longest || bytesOf(piece) > bytesOf(*longest)))
      longest = &piece;
  }
  for (auto [spec, piece] : llvm::zip(signature.scratch, pieces)) {
    if (spec.isPassing())
      continue;
    piece.offset = llvm::alignTo(size, 16);
    size = piece.offset + (&piece == longest ? std::max(bytesOf(piece), passing) : bytesOf(piece));
  }
  if (!passing)
    return;
  size_t room = longest ? longest->offset : llvm::alignTo(size, 16);
  size = std::max(size, room + passing);
  for (auto [spec, piece] : llvm::zip(signature.scratch, pieces))
    if (spec.isPassing())
      piece.offset = room;
}

rt::Status Workspace::use(void *memory, llvm::SmallVectorImpl<TensorView> &tensors) const {
  if (!memory && size)
    return rt::Error{fmt::format("expected a workspace of {} bytes (attnWorkspaceSize), got: NULL", size)};
  if (size && uintptr_t(memory) % 16)
    return rt::Error{fmt::format("expected a workspace aligned to 16 bytes, got: {}", memory)};
  for (const Piece &piece : pieces)
    tensors.push_back({size ? static_cast<char *>(memory) + piece.offset : nullptr, piece.dtype, piece.shape, {}});
  return {};
}

/// Value of the argument `<tensor>_rows`, `<tensor>_words` or `<tensor>_entries`: of the last axis but one, or the last.
static std::optional<int64_t> extentNamed(const Signature &signature, llvm::ArrayRef<TensorView> views,
                                          llvm::StringRef name) {
  bool rows = name.consume_back("_rows");
  if (!rows && !name.consume_back("_words") && !name.consume_back("_entries"))
    return std::nullopt;
  std::optional<size_t> index = signature.indexOf(name);
  if (!index)
    return std::nullopt;
  return views[*index].shape[views[*index].shape.size() - 1 - rows];
}

rt::Status attn::bind(const rt::Artifact &artifact, const Signature &signature, llvm::ArrayRef<TensorView> views,
                      const Sizes &sizes, Binding &binding,
                      rt::Result<rt::TensorMap> (*encode)(const rt::TensorMapSpec &)) {
  using Kind = rt::Param::Kind;
  auto foreign = [](const rt::Param &param) {
    return rt::Error{fmt::format("kernel argument `{}` belongs to no tensor", param.name)};
  };
  int64_t parts = artifact.grid.splits == 1 ? 1 : sizes.splits;
  int64_t batch = artifact.grid.sequences(sizes.batch, sizes.rowsQ, sizes.rowsKv);
  if (artifact.grid.rows) // of ids; without any, one block has the whole batch
    batch = sizes.idRows < 0 ? 1 : sizes.idRows;
  binding.blocks = artifact.grid.blocks(batch, artifact.grid.keys ? sizes.rowsKv : sizes.rowsQ, parts);
  if (binding.blocks > INT32_MAX)
    return rt::Error{fmt::format("expected at most 2^31 - 1 blocks, got: {}", binding.blocks)};
  if (int64_t warps = binding.blocks * artifact.grid.warps; artifact.grid.sequenceTiles && warps > INT32_MAX)
    return rt::Error{fmt::format("expected at most 2^31 - 1 warps of a streaming kernel, got: {}", warps)};
  binding.values.clear();
  size_t maps = 0;
  for (const rt::Param &param : artifact.params) {
    llvm::StringRef name = param.name;
    int64_t value = 0;
    if (param.kind == Kind::Pointer) {
      std::optional<size_t> index = signature.indexOf(name);
      if (!index)
        return foreign(param);
      value = reinterpret_cast<int64_t>(views[*index].data);
    } else if (param.kind == Kind::TensorMap) {
      std::optional<size_t> index = name.consume_back("_map") ? signature.indexOf(name) : std::nullopt;
      if (!index)
        return foreign(param);
      if (maps == binding.maps.size())
        return rt::Error{fmt::format("expected at most {} tensor maps, got: `{}` as well", maps, param.name)};
      rt::Result<rt::TensorMapSpec> map = mapOf(param, signature[*index], views[*index]);
      if (!map)
        return map.error();
      rt::Result<rt::TensorMap> encoded = encode(*map);
      if (!encoded)
        return rt::Error{fmt::format("kernel argument `{}`: {}", param.name, encoded.error().message)};
      binding.maps[maps++] = *encoded;
    } else if (param.kind == Kind::Queue) {
      // launch knows the counters
    } else if (name == "blocks") {
      value = binding.blocks;
    } else if (name == "splits") {
      value = sizes.splits;
    } else if (name == "batch") {
      value = sizes.batch;
    } else if (name == "id_rows") {
      value = sizes.idRows;
    } else if (name == "tokens_q" || name == "tokens_kv") {
      value = name.ends_with("_q") ? sizes.tokensQ : sizes.tokensKv;
    } else if (name == "position_rows_q" || name == "position_rows_kv") {
      value = name.ends_with("_q") ? sizes.positionRowsQ : sizes.positionRowsKv;
    } else if (name == "seqlen_q" || name == "total_q") {
      value = sizes.rowsQ;
    } else if (name == "seqlen_kv" || name == "total_kv") {
      value = sizes.rowsKv;
    } else if (std::optional<int64_t> extent = extentNamed(signature, views, name)) {
      value = *extent;
    } else {
      auto [owner, axis] = name.split('_');
      std::optional<size_t> index = signature.indexOf(owner);
      if (!index)
        return foreign(param);
      value = strideOf(signature[*index], views[*index], axis);
    }
    binding.values.push_back(value);
  }
  binding.pointers.clear();
  rt::TensorMap *map = binding.maps.data();
  for (auto [param, value] : llvm::zip_equal(artifact.params, binding.values)) {
    void *place = &value; // little-endian: an i32 reads the low half
    binding.pointers.push_back(param.kind == Kind::TensorMap ? map++ : place);
  }
  return {};
}
