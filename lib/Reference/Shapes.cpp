// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Shapes.h"
#include "attn-rt/ArrayChecks.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;
using namespace attn::reference;
using Axis = ProblemTensor::Axis;
using llvm::Twine;

static llvm::Error shapeError(const Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

static llvm::Error errorOf(const rt::Status &status) {
  return status ? llvm::Error::success() : shapeError(status.error().message);
}

//===--------------------------------------------------------------------===//
// Shapes agree
//===--------------------------------------------------------------------===//

/// `[batch, 128, 16, 64]`: numbers where they are known, else names.
static std::string expectedText(ProblemOp problem, const ProblemTensor &tensor, const Sizes &sizes) {
  auto text = [&](Axis axis) -> std::string {
    if (axis == Axis::LeadingDims || axis == Axis::LastLeadingDims)
      return "...";
    if (axis == Axis::Entries || axis == Axis::EntriesPlusOne)
      return axis == Axis::Entries ? "entries" : "rows of blocks + 1";
    if (int64_t extent = tensor.extentOf(axis, FixedSizes::of(problem), sizes); extent >= 0)
      return std::to_string(extent);
    if (axis == Axis::Lines)
      return "lists of tiles of " + std::to_string(tensor.entries) + " rows";
    if (axis == Axis::Batch || axis == Axis::BatchPlusOne)
      return axis == Axis::Batch ? "batch" : "batch + 1";
    if (axis == Axis::TokensQ || axis == Axis::TokensKv)
      return axis == Axis::TokensQ ? "tokens_q" : "tokens_kv";
    if (axis == Axis::Slots)
      return "slots";
    if (axis == Axis::PiecesQPlusOne || axis == Axis::PiecesKvPlusOne)
      return axis == Axis::PiecesQPlusOne ? "pieces of q + 1" : "pieces of kv + 1";
    if (axis == Axis::WholeQ || axis == Axis::WholeKv)
      return axis == Axis::WholeQ ? "queries of whole sequences" : "keys of whole sequences";
    bool packed = (axis == Axis::RowsQ ? problem.getQLayout() : problem.getKLayout()).isPacked();
    return std::string(packed ? "tokens" : "seqlen") + (axis == Axis::RowsQ ? "_q" : "_kv");
  };
  std::string shape = "[" + llvm::join(llvm::map_range(tensor.axes, text), ", ") + "]";
  if (!tensor.hasLeadingDims() || sizes.idRows < 0)
    return shape;
  return shape + " with " + (tensor.axes[0] == Axis::LastLeadingDims ? "the last " : "") + "of ids' rows " +
         shapeText(sizes.lead);
}

/// Of a problem with segments: q and k have the tokens of all rows of ids.
static llvm::Error checkIdRows(const Sizes &sizes) {
  for (auto [name, rows, tokens] :
       {std::tuple("q", sizes.rowsQ, sizes.tokensQ), std::tuple("k", sizes.rowsKv, sizes.tokensKv)})
    if (rows != sizes.idRows * tokens)
      return shapeError("expected `" + Twine(name) + "` of " + Twine(sizes.idRows * tokens) + " tokens, as " +
                        Twine(sizes.idRows) + " rows of " + Twine(tokens) + " ids have, got: " + Twine(rows));
  return llvm::Error::success();
}

llvm::Expected<Sizes>
attn::reference::deduceShapes(Computation computation,
                              llvm::function_ref<std::optional<Shape>(llvm::StringRef name)> shapeOf) {
  Sizes sizes{-1, -1, -1};
  ProblemOp problem = computation.problem;
  std::vector<ProblemTensor> list = tensorsOf(computation);
  // Results have nothing to say about sizes, so they come last.
  llvm::stable_sort(list, [](const ProblemTensor &a, const ProblemTensor &b) {
    return (a.role == ProblemTensor::Result) < (b.role == ProblemTensor::Result);
  });
  for (const ProblemTensor &tensor : list) {
    std::optional<Shape> shape = shapeOf(tensor.name);
    if (!shape && tensor.role == ProblemTensor::Result)
      continue;
    std::string expected = expectedText(problem, tensor, sizes);
    if (!shape)
      return shapeError("expected a tensor of shape " + expected + " for `" + tensor.name + "`, got: none");
    FixedSizes fixed = FixedSizes::of(problem);
    size_t own = tensor.axes.size() - tensor.hasLeadingDims(), lead = shape->size() - own; // and leading dimensions
    bool fits = tensor.hasLeadingDims() ? shape->size() >= own : shape->size() == own;
    if (fits && tensor.hasLeadingDims() && tensor.axes[0] == Axis::LastLeadingDims)
      fits = lead <= sizes.lead.size();
    if (fits)
      tensor.inferSizes(*shape, fixed, sizes);
    if (!fits || *shape != tensor.shape(fixed, sizes, lead))
      return shapeError("expected shape " + expected + " for `" + tensor.name + "`, got: " + shapeText(*shape));
    for (int64_t extent : *shape)
      if (extent < 0 || extent > INT32_MAX)
        return shapeError("expected extents within [0, 2^31) for `" + tensor.name + "`, got: " + shapeText(*shape));
  }
  if (problem.getSegments())
    if (llvm::Error failure = checkIdRows(sizes))
      return failure;
  return sizes;
}

//===--------------------------------------------------------------------===//
// Contents are sane
//===--------------------------------------------------------------------===//

std::vector<int64_t> attn::reference::rowsOfPieces(const Tensors &tensors, llvm::StringRef side) {
  const Tensor &whole = tensors.find(("cu_seqlens_" + side).str())->second;
  const Tensor &pieces = tensors.find(("pieces_" + side).str())->second;
  const int32_t *starts = whole.data<int32_t>(), *lines = pieces.data<int32_t>();
  const int64_t line = pieces.shape().back();
  std::vector<int64_t> rows(starts[whole.numElements() - 1], -1);
  for (int64_t piece = 0; piece + 1 < line; ++piece) {
    auto at = [&](PieceLine number) { return lines[number * line + piece]; };
    for (int64_t i = 0, length = lines[PieceEnds * line + piece + 1] - at(PieceEnds); i < length; ++i)
      rows[starts[at(PieceSequences)] + at(PiecePositions) + i] = at(PieceRows) + i;
  }
  return rows;
}

llvm::Error attn::reference::checkArrays(Computation computation, const Sizes &sizes,
                                         llvm::function_ref<llvm::ArrayRef<int32_t>(llvm::StringRef name)> array) {
  ProblemOp problem = computation.problem;
  auto named = [&](const std::string &name) { return rt::NamedArray{name, array(name)}; };
  auto ofSide = [&](const char *prefix, const std::string &side, bool isThere) {
    return isThere ? array(prefix + side) : llvm::ArrayRef<int32_t>();
  };
  for (auto [side, layout, rows] :
       {std::tuple("q", problem.getQLayout(), sizes.rowsQ), std::tuple("kv", problem.getKLayout(), sizes.rowsKv)}) {
    if (!layout.isPacked() || problem.getSegments())
      continue;
    std::string cu = std::string("cu_seqlens_") + side, padded = std::string("padded_offsets_") + side;
    if (layout.hasPieces()) {
      bool keys = llvm::StringRef(side) == "kv";
      int64_t whole = std::max<int64_t>(keys ? sizes.wholeKv : sizes.wholeQ, 0);
      if (llvm::Error failure =
              errorOf(rt::checkPieces(named(cu), named(piecesArray(keys)), named(firstPiecesArray(keys)), rows, whole,
                                      problem.getSinglePieces() ? 1 : 0)))
        return failure;
      continue;
    }
    bool isWritten = computation.backward || llvm::StringRef(side) == "q";
    if (llvm::Error failure = errorOf(rt::checkOffsets(
            named(cu), {padded, ofSide("padded_offsets_", side, bool(layout.getPadded()))}, rows, isWritten)))
      return failure;
  }
  LayoutAttr kv = problem.getKLayout();
  for (const ProblemTensor &tensor : tensorsOf(computation)) {
    if (tensor.lists) {
      int64_t keys = tensor.lists->lists->kv;
      if (llvm::Error failure = errorOf(rt::checkBlocks(named(tensor.name), named(tensor.lists->lists->columns),
                                                        sizes.entries.at(tensor.name),
                                                        llvm::divideCeil(sizes.keysOfBlocks(), keys), keys)))
        return failure;
    }
    if (tensor.hasParents && !problem.getSegments())
      if (llvm::Error failure =
              errorOf(rt::checkParents(named(tensor.name), ofSide("cu_seqlens_", "kv", kv.isPacked()),
                                       ofSide("padded_offsets_", "kv", bool(kv.getPadded())), sizes.rowsKv)))
        return failure;
  }
  return llvm::Error::success();
}

llvm::Expected<Sizes> attn::reference::checkTensors(Computation computation, const Tensors &tensors) {
  ProblemOp problem = computation.problem;
  if (problem.getOfHeads() || problem.getPartialIn() || problem.getPartialOut())
    return shapeError("expected a problem of all heads with complete results, got: a part of one");
  std::vector<ProblemTensor> list = tensorsOf(computation);
  llvm::StringMap<const ProblemTensor *> specs;
  for (const ProblemTensor &tensor : list)
    specs[tensor.name] = &tensor;
  for (const auto &[name, tensor] : tensors) {
    const ProblemTensor *spec = specs.lookup(name);
    if (!spec)
      return shapeError("expected one of `" +
                        llvm::join(llvm::map_range(list, [](const ProblemTensor &t) { return t.name; }), "`, `") +
                        "`, got: `" + name + "`");
    bool isArray = spec->role == ProblemTensor::Array, isInt = spec->element == ProblemTensor::Int32;
    bool fits = isInt ? tensor.dtype() == Dtype::I32 : tensor.dtype() != Dtype::I32;
    if (isArray && !isInt)
      fits = tensor.dtype() == Dtype::F32;
    if (!fits || (isArray && !tensor.isContiguous()))
      return shapeError("expected " +
                        Twine(isInt     ? "a contiguous i32 array"
                              : isArray ? "a contiguous f32 array"
                                        : "a floating-point tensor") +
                        " for `" + name + "`, got: " + toString(tensor.dtype()) +
                        (fits ? " with strides " + shapeText(tensor.strides()) : ""));
  }
  llvm::Expected<Sizes> sizes = deduceShapes(computation, [&](llvm::StringRef name) -> std::optional<Shape> {
    auto tensor = tensors.find(name);
    return tensor == tensors.end() ? std::nullopt : std::optional(Shape(tensor->second.shape()));
  });
  if (!sizes)
    return sizes;
  auto array = [&](llvm::StringRef name) {
    const Tensor &tensor = tensors.find(name)->second;
    return llvm::ArrayRef(tensor.data<int32_t>(), tensor.numElements());
  };
  if (llvm::Error failure = checkArrays(computation, *sizes, array))
    return failure;
  return sizes;
}
