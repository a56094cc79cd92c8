// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/Shapes.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;
using namespace attn::reference;
using Axis = Argument::Axis;
using llvm::Twine;

static llvm::Error error(const Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

//===--------------------------------------------------------------------===//
// The arguments of a problem
//===--------------------------------------------------------------------===//

static llvm::SmallVector<Axis, 4> axesOf(LayoutAttr layout, Axis rows, Axis heads, Axis dim) {
  switch (layout.getKind()) {
  case LayoutKind::bshd:
    return {Argument::Batch, rows, heads, dim};
  case LayoutKind::sbhd:
    return {rows, Argument::Batch, heads, dim};
  case LayoutKind::bhsd:
    return {Argument::Batch, heads, rows, dim};
  case LayoutKind::thd:
    return {rows, heads, dim};
  }
  llvm_unreachable("covered");
}

std::vector<Argument> attn::reference::argumentsOf(ProblemOp problem) {
  LayoutAttr q = problem.getQLayout(), kv = problem.getKLayout();
  std::vector<Argument> list = {
      {"q", Role::Operand, axesOf(q, Argument::RowsQ, Argument::Heads, Argument::DimQk)},
      {"k", Role::Operand, axesOf(kv, Argument::RowsKv, Argument::KvHeads, Argument::DimQk)},
      {"v", Role::Operand, axesOf(problem.getVLayout(), Argument::RowsKv, Argument::KvHeads, Argument::DimV)},
      {"o", Role::Result, axesOf(problem.getOLayout(), Argument::RowsQ, Argument::Heads, Argument::DimV)}};
  if (problem.hasLse() && q.isPacked())
    list.push_back({"lse", Role::Result, {Argument::Heads, Argument::RowsQ}});
  else if (problem.hasLse())
    list.push_back({"lse", Role::Result, {Argument::Batch, Argument::Heads, Argument::RowsQ}});
  for (auto [side, layout] : {std::pair("q", q), std::pair("kv", kv)}) {
    if (layout.isPacked())
      list.push_back({("cu_seqlens_" + Twine(side)).str(), Role::Array, {Argument::BatchPlusOne}});
    if (layout.getPadded())
      list.push_back({("padded_offsets_" + Twine(side)).str(), Role::Array, {Argument::BatchPlusOne}});
  }
  for (const MaskOperand &operand : distinctOperands(problem.getMask())) {
    Argument array{operand.name, Role::Array, {Argument::Batch}};
    if (operand.shape != OperandShape::PerSequence)
      array.axes.push_back(operand.shape == OperandShape::PerQuery ? Argument::RowsQ : Argument::RowsKv);
    list.push_back(array);
  }
  return list;
}

/// The extent of an axis; -1: not known yet.
static int64_t extentOf(ProblemOp problem, const Sizes &sizes, Axis axis) {
  switch (axis) {
  case Argument::Batch:
    return sizes.batch;
  case Argument::BatchPlusOne:
    return sizes.batch < 0 ? -1 : sizes.batch + 1;
  case Argument::RowsQ:
    return sizes.rowsQ;
  case Argument::RowsKv:
    return sizes.rowsKv;
  case Argument::Heads:
    return problem.getHeads();
  case Argument::KvHeads:
    return problem.getKvHeads();
  case Argument::DimQk:
    return problem.getDimQk();
  case Argument::DimV:
    return problem.getDimV();
  }
  llvm_unreachable("covered");
}

Shape Argument::shape(ProblemOp problem, const Sizes &sizes) const {
  return llvm::to_vector<4>(llvm::map_range(axes, [&](Axis axis) { return extentOf(problem, sizes, axis); }));
}

//===--------------------------------------------------------------------===//
// Shapes agree
//===--------------------------------------------------------------------===//

/// `[batch, 128, 16, 64]`: numbers where they are known, else names.
static std::string expectedText(ProblemOp problem, const Argument &argument, const Sizes &sizes) {
  auto text = [&](Axis axis) -> std::string {
    if (int64_t extent = extentOf(problem, sizes, axis); extent >= 0)
      return std::to_string(extent);
    if (axis == Argument::Batch || axis == Argument::BatchPlusOne)
      return axis == Argument::Batch ? "batch" : "batch + 1";
    bool packed = (axis == Argument::RowsQ ? problem.getQLayout() : problem.getKLayout()).isPacked();
    return std::string(packed ? "tokens" : "seqlen") + (axis == Argument::RowsQ ? "_q" : "_kv");
  };
  return "[" + llvm::join(llvm::map_range(argument.axes, text), ", ") + "]";
}

/// Lets the first tensor that has an axis say how long it is.
static void learn(const Argument &argument, llvm::ArrayRef<int64_t> shape, Sizes &sizes) {
  auto set = [](int64_t &size, int64_t extent) { size = size < 0 ? extent : size; };
  for (auto [axis, extent] : llvm::zip(argument.axes, shape)) {
    if (axis == Argument::Batch || axis == Argument::BatchPlusOne)
      set(sizes.batch, extent - (axis == Argument::BatchPlusOne));
    else if (axis == Argument::RowsQ || axis == Argument::RowsKv)
      set(axis == Argument::RowsQ ? sizes.rowsQ : sizes.rowsKv, extent);
  }
}

llvm::Expected<Sizes>
attn::reference::deduceShapes(ProblemOp problem,
                              llvm::function_ref<std::optional<Shape>(llvm::StringRef name)> shapeOf) {
  Sizes sizes{-1, -1, -1};
  std::vector<Argument> arguments = argumentsOf(problem);
  // Results have nothing to say about sizes, so they come last.
  llvm::stable_sort(arguments, [](const Argument &a, const Argument &b) {
    return (a.role == Role::Result) < (b.role == Role::Result);
  });
  for (const Argument &argument : arguments) {
    std::optional<Shape> shape = shapeOf(argument.name);
    if (!shape && argument.role == Role::Result)
      continue;
    std::string expected = expectedText(problem, argument, sizes);
    if (!shape)
      return error("expected a tensor of shape " + expected + " for `" + argument.name + "`, got: none");
    if (shape->size() == argument.axes.size())
      learn(argument, *shape, sizes);
    if (*shape != argument.shape(problem, sizes))
      return error("expected shape " + expected + " for `" + argument.name + "`, got: " + shapeText(*shape));
    for (int64_t extent : *shape)
      if (extent < 0 || extent > INT32_MAX)
        return error("expected extents within [0, 2^31) for `" + argument.name + "`, got: " + shapeText(*shape));
  }
  return sizes;
}

//===--------------------------------------------------------------------===//
// Contents are sane
//===--------------------------------------------------------------------===//

static llvm::Error checkAscending(llvm::StringRef name, llvm::ArrayRef<int32_t> values, int64_t rows) {
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] < values[i - 1])
      return error("expected `" + name + "` to ascend, got: " + Twine(values[i]) + " after " + Twine(values[i - 1]) +
                   " at index " + Twine(i));
  if (values.back() > rows)
    return error("expected the last of `" + name + "` within the buffer of " + Twine(rows) +
                 " tokens, got: " + Twine(values.back()));
  return llvm::Error::success();
}

static llvm::Error checkSide(const Twine &side, LayoutAttr layout, int64_t rows,
                             llvm::function_ref<llvm::ArrayRef<int32_t>(llvm::StringRef name)> array) {
  if (!layout.isPacked())
    return llvm::Error::success();
  std::string lengthsName = ("cu_seqlens_" + side).str(), offsetsName = ("padded_offsets_" + side).str();
  llvm::ArrayRef<int32_t> cuSeqlens = array(lengthsName);
  if (cuSeqlens[0] != 0)
    return error("expected `" + lengthsName + "` to start at 0, got: " + Twine(cuSeqlens[0]));
  if (llvm::Error failure = checkAscending(lengthsName, cuSeqlens, rows))
    return failure;
  if (!layout.getPadded())
    return llvm::Error::success();
  llvm::ArrayRef<int32_t> offsets = array(offsetsName);
  if (offsets[0] < 0)
    return error("expected `" + offsetsName + "` to start at 0 or later, got: " + Twine(offsets[0]));
  if (llvm::Error failure = checkAscending(offsetsName, offsets, rows))
    return failure;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    int32_t slot = offsets[b + 1] - offsets[b], length = cuSeqlens[b + 1] - cuSeqlens[b];
    if (slot < length)
      return error("expected a slot of at least " + Twine(length) + " tokens for sequence " + Twine(b) + " in `" +
                   offsetsName + "`, got: " + Twine(slot));
  }
  return llvm::Error::success();
}

llvm::Error
attn::reference::checkArrays(ProblemOp problem, const Sizes &sizes,
                             llvm::function_ref<llvm::ArrayRef<int32_t>(llvm::StringRef name)> array) {
  if (llvm::Error failure = checkSide("q", problem.getQLayout(), sizes.rowsQ, array))
    return failure;
  return checkSide("kv", problem.getKLayout(), sizes.rowsKv, array);
}

llvm::Expected<Sizes> attn::reference::checkTensors(ProblemOp problem, const Tensors &tensors) {
  std::vector<Argument> arguments = argumentsOf(problem);
  llvm::StringMap<Role> roles;
  for (const Argument &argument : arguments)
    roles[argument.name] = argument.role;
  for (const auto &[name, tensor] : tensors) {
    auto role = roles.find(name);
    if (role == roles.end())
      return error("expected one of `" +
                   llvm::join(llvm::map_range(arguments, [](const Argument &a) { return a.name; }), "`, `") +
                   "`, got: `" + name + "`");
    bool isArray = role->second == Role::Array;
    if (isArray != (tensor.dtype() == Dtype::I32) || (isArray && !tensor.isContiguous()))
      return error("expected " + Twine(isArray ? "a contiguous i32 array" : "a floating-point tensor") + " for `" +
                   name + "`, got: " + toString(tensor.dtype()));
  }
  llvm::Expected<Sizes> sizes = deduceShapes(problem, [&](llvm::StringRef name) -> std::optional<Shape> {
    auto tensor = tensors.find(name);
    return tensor == tensors.end() ? std::nullopt : std::optional(Shape(tensor->second.shape()));
  });
  if (!sizes)
    return sizes;
  auto array = [&](llvm::StringRef name) {
    const Tensor &tensor = tensors.find(name)->second;
    return llvm::ArrayRef(tensor.data<int32_t>(), tensor.numElements());
  };
  if (llvm::Error failure = checkArrays(problem, *sizes, array))
    return failure;
  return sizes;
}
