// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors of a call, held against those of a program.
//
#include "attn-rt/ArrayChecks.h"
#include "attn-rt/Program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <map>

using namespace attn::rt;
using Tensor = Program::Tensor;
using Extents = std::span<const int64_t>;

static Error expected(const Tensor &tensor, std::string_view what, std::string_view got) {
  return Error{fmt::format("expected {} for `{}`, got: {}", what, tensor.name, got), {}, {}};
}

static std::string textOf(Extents extents) { return fmt::format("[{}]", fmt::join(extents, ", ")); }

/// `2^30`, or the number where it is no power of 2.
static std::string textOfLimit(int64_t limit) {
  uint64_t bits = static_cast<uint64_t>(limit);
  return std::has_single_bit(bits) ? fmt::format("2^{}", std::countr_zero(bits)) : std::to_string(limit);
}

//===--------------------------------------------------------------------===//
// Shapes
//===--------------------------------------------------------------------===//

Status ProgramCode::readShape(size_t number, const TensorView &view, Extents &lead, int64_t *values) const {
  const Tensor &tensor = source.tensors[number];
  const ShapeCode &code = shapes[number];
  if (view.dtype != tensor.dtype)
    return expected(tensor, toString(tensor.dtype), toString(view.dtype));
  const size_t own = code.extents.size(), rank = view.shape.size();
  const bool isLed = tensor.lead != Tensor::Lead::None;
  if (isLed ? rank < own : rank != own)
    return expected(tensor, fmt::format("{} axes{}", own, isLed ? " or more" : ""), textOf(view.shape));
  Extents ahead = view.shape.first(rank - own), rest = view.shape.subspan(rank - own);
  if (tensor.lead == Tensor::Lead::Last && ahead.size() > lead.size())
    return expected(tensor, fmt::format("at most the {} leading dimensions {} of ids", lead.size(), textOf(lead)),
                    textOf(view.shape));
  for (int64_t extent : view.shape)
    if (extent < 0 || extent > source.maxExtent)
      return expected(tensor, "extents from 0 to " + textOfLimit(source.maxExtent), textOf(view.shape));
  if (isLed) {
    constexpr int64_t most = int64_t(1) << 31; // more are refused, as many as they may be
    int64_t rows = 1;
    for (int64_t extent : ahead)
      rows = std::min(rows * extent, most);
    bool isFirst = values[code.lead] < 0;
    if (isFirst)
      values[code.lead] = rows;
    if (isFirst && tensor.lead == Tensor::Lead::All)
      lead = ahead;
  }
  for (size_t i = 0; i < own; ++i) {
    if (code.known[i] < 0)
      continue;
    const Extent &extent = tensor.extents[i];
    const bool isMax = extent.op() == Extent::Op::Max, isAdd = extent.op() == Extent::Op::Add;
    if (rest[i] < (isMax || isAdd ? 1 : 0))
      return expected(tensor, isMax ? "at least one entry" : extent.str() + " entries", textOf(view.shape));
    int64_t &size = values[code.known[i]];
    size = size < 0 ? rest[i] - isAdd : size;
  }
  return {};
}

Status ProgramCode::checkShape(size_t number, const TensorView &view, Extents lead, const int64_t *values) const {
  const Tensor &tensor = source.tensors[number];
  const std::vector<ExtentCode> &extents = shapes[number].extents;
  const size_t ahead = view.shape.size() - extents.size();
  bool fits = tensor.lead != Tensor::Lead::All || ahead == lead.size();
  for (size_t i = 0; fits && i < ahead; ++i)
    fits = view.shape[i] == lead[lead.size() - ahead + i];
  size_t other = 0;
  while (other < extents.size() && view.shape[ahead + other] == extents[other].evaluate(values))
    ++other;
  if (fits && other == extents.size())
    return {};
  Extents front = tensor.lead == Tensor::Lead::All ? lead : lead.last(std::min(ahead, lead.size()));
  std::vector<int64_t> shape(front.begin(), front.end());
  for (const ExtentCode &extent : extents)
    shape.push_back(extent.evaluate(values));
  std::string what = "shape " + textOf(shape);
  if (tensor.lead != Tensor::Lead::None && tensor.role == Tensor::Role::Array)
    what += " beside ids of rows " + textOf(lead);
  std::vector<std::string> named, rules;
  if (other < extents.size())
    tensor.extents[other].collectSymbols(named);
  for (const Program::Size &size : source.sizes)
    if (std::find(named.begin(), named.end(), size.name) != named.end())
      rules.push_back(fmt::format("{} = {}", size.name, size.value.str()));
  if (!rules.empty())
    what += fmt::format(" ({})", fmt::join(rules, ", "));
  return expected(tensor, what, textOf(view.shape));
}

/// Has it rows of head dims, which kernels read and write 16 bytes at a time? These have axes with strides; gates have
/// none, and are read one by one. Float32 tensors of rows are those of partial results and sums beside narrower
/// operands.
static bool isOfRows(const Program &program, const Program::Tensor &tensor) {
  auto isNarrow = [](const Program::Tensor &other) { return other.dtype == Dtype::BF16 || other.dtype == Dtype::F16; };
  if (tensor.strided.empty())
    return false;
  if (isNarrow(tensor))
    return true;
  return tensor.dtype == Dtype::F32 && tensor.extents.size() >= 3 && tensor.extents.back().constant().value_or(1) > 1 &&
         std::any_of(program.tensors.begin(), program.tensors.end(), isNarrow);
}

/// Strides in 16-byte units, and rows that start at such a unit: what wide loads and stores need.
Status ProgramCode::checkMemory(size_t number, const TensorView &view, Given given) const {
  const Tensor &tensor = source.tensors[number];
  const bool isEmpty = view.isEmpty(), isData = isOfRows(source, tensor);
  if (given == Given::Memory && !isEmpty) {
    const uintptr_t alignment = isData ? 16 : static_cast<uintptr_t>(sizeOf(tensor.dtype));
    if (!view.data)
      return expected(tensor, "memory", "a null pointer");
    if (reinterpret_cast<uintptr_t>(view.data) % alignment)
      return expected(tensor, fmt::format("an address aligned to {} bytes", alignment), fmt::format("{}", view.data));
  }
  if (view.strides.empty())
    return {};
  if (view.strides.size() != view.shape.size())
    return expected(tensor, fmt::format("{} strides", view.shape.size()), textOf(view.strides));
  if (isEmpty)
    return {}; // numpy gives empty arrays strides of 0
  int64_t dense = 1;
  for (size_t i = view.shape.size(); i-- > 0; dense *= view.shape[i]) {
    const int64_t stride = view.strides[i];
    if (view.shape[i] <= 1)
      continue; // a stride that is never used
    if (tensor.isResult() && stride == 0)
      return expected(tensor, "strides other than 0, since each entry of a result is written", textOf(view.strides));
    const std::vector<int> &strided = tensor.strided;
    if (std::find(strided.begin(), strided.end(), static_cast<int>(i)) == strided.end() && stride != dense)
      return expected(tensor, fmt::format("stride {} on axis {}", dense, i), textOf(view.strides));
    if (isData && i + 1 < view.shape.size() && view.shape.back() > 1 && stride % 8)
      return expected(tensor, "strides in multiples of 8 elements (16 bytes)", textOf(view.strides));
  }
  return {};
}

Status ProgramCode::readSizes(std::span<const TensorView> tensors, Given given, int64_t *values,
                              const Table *tables) const {
  if (tensors.size() != source.tensors.size())
    return Error{fmt::format("expected {} tensors, got: {}", source.tensors.size(), tensors.size()), {}, {}};
  for (size_t i = machineSizes; i < this->given(); ++i)
    values[i] = -1;
  auto isLooked = [&](size_t i) { return given != Given::Inputs || !source.tensors[i].isResult(); };
  Extents lead;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (Status read = isLooked(i) ? readShape(i, tensors[i], lead, values) : Status(); !read)
      return read;
  computeSizes(values, tables);
  for (size_t i = 0; i < source.sizes.size(); ++i)
    if (int64_t value = values[this->given() + i]; value > INT32_MAX)
      return Error{
          fmt::format("expected {} = {} below 2^31, got: {}", source.sizes[i].name, source.sizes[i].value.str(), value),
          {},
          {}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!isLooked(i))
      continue;
    if (Status fits = checkShape(i, tensors[i], lead, values); !fits)
      return fits;
    if (Status fits = checkMemory(i, tensors[i], given); !fits)
      return fits;
  }
  return {};
}

std::vector<int64_t> ProgramCode::shapeOf(std::span<const TensorView> tensors, size_t number,
                                          const int64_t *values) const {
  const Tensor &tensor = source.tensors[number];
  if (!tensor.isResult())
    return {tensors[number].shape.begin(), tensors[number].shape.end()};
  std::vector<int64_t> shape;
  for (size_t i = 0; tensor.lead == Tensor::Lead::All && i < tensors.size(); ++i) // results have all of them
    if (source.tensors[i].lead == Tensor::Lead::All && !source.tensors[i].isResult()) {
      Extents lead = tensors[i].shape.first(tensors[i].shape.size() - shapes[i].extents.size());
      shape.assign(lead.begin(), lead.end());
      break;
    }
  for (int64_t extent : shapeOf(static_cast<int>(number), values))
    shape.push_back(extent);
  return shape;
}

/// May a result be the memory of an operand that it continues from (`partial(in)`, `add_dq`)? Tiles read their rows
/// before they write them.
static bool continues(const Program::Tensor &result, const TensorView &written, const Program::Tensor &operand,
                      const TensorView &read) {
  if (operand.name != "before_" + result.name || read.dtype != written.dtype || read.rank() != written.rank())
    return false;
  for (int axis = 0; axis < read.rank(); ++axis)
    if (read.strideOf(axis) != written.strideOf(axis))
      return false;
  return true;
}

Status ProgramCode::checkApart(std::span<const TensorView> tensors) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!source.tensors[i].isResult() || tensors[i].isEmpty())
      continue;
    for (size_t j = 0; j < tensors.size(); ++j)
      if (j != i && tensors[j].data == tensors[i].data && !tensors[j].isEmpty() &&
          !continues(source.tensors[i], tensors[i], source.tensors[j], tensors[j]))
        return expected(source.tensors[i], "memory of its own", fmt::format("that of `{}`", source.tensors[j].name));
  }
  return {};
}

//===--------------------------------------------------------------------===//
// Contents
//===--------------------------------------------------------------------===//

Status ProgramCode::checkArrays(const ReadArray &read, const int64_t *values) const {
  using Check = Program::ArrayCheck;
  std::map<int, std::vector<int32_t>> contents;
  for (size_t i = 0; i < source.checks.size(); ++i) {
    const Check &check = source.checks[i];
    for (int array : check.arrays)
      if (array >= 0 && !contents.count(array)) {
        Result<std::vector<int32_t>> held = read(array);
        if (!held)
          return held.error();
        contents[array] = std::move(*held);
      }
    auto named = [&](size_t n) {
      int array = check.arrays[n];
      return array < 0 ? NamedArray{} : NamedArray{source.nameOf(array), contents[array]};
    };
    const int64_t rows = checks[i].rows.evaluate(values);
    const size_t needed = check.kind == Check::Kind::Offsets  ? 1
                          : check.kind == Check::Kind::Tiles  ? 3
                          : check.kind == Check::Kind::Pieces ? 3
                                                              : 0;
    for (size_t n = 0; n < needed; ++n)
      if (named(n).values.empty())
        return Error{fmt::format("expected entries in `{}`, got: none", named(n).name), {}, {}};
    Status status;
    switch (check.kind) {
    case Check::Kind::Offsets:
      status = checkOffsets(named(0), named(1), rows, check.isWritten);
      break;
    case Check::Kind::Tiles:
      status = checkTiles(named(0), contents[check.arrays[1]][0], named(2).values, rows, check.tile);
      break;
    case Check::Kind::Blocks:
      status = checkBlocks(named(0), named(1), std::max<int64_t>(checks[i].line.evaluate(values), 1), rows, check.tile);
      break;
    case Check::Kind::Parents:
      status = checkParents(named(0), named(1).values, named(2).values, rows);
      break;
    case Check::Kind::Pieces:
      status = checkPieces(named(0), named(1), named(2), rows, checks[i].line.evaluate(values), check.tile);
      break;
    }
    if (!status)
      return status;
  }
  return {};
}
