// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

using namespace attn::rt;
using Kind = Program::Argument::Kind;
using Lead = Program::Tensor::Lead;
using Check = Program::ArrayCheck::Kind;

std::string_view attn::rt::toString(Dtype dtype) {
  constexpr std::string_view names[] = {"bf16", "f16", "f32", "i32"};
  return names[static_cast<int>(dtype)];
}

int64_t attn::rt::sizeOf(Dtype dtype) { return dtype == Dtype::BF16 || dtype == Dtype::F16 ? 2 : 4; }

void Program::setSignature(Program signature) {
  std::vector<Tensor> &given = signature.tensors;
  const int before = static_cast<int>(tensors.size()), count = static_cast<int>(given.size());
  auto renumber = [&](int &tensor) {
    if (tensor >= before) { // a buffer
      tensor += count - before;
    } else if (tensor >= 0) {
      const std::string &own = tensors[static_cast<size_t>(tensor)].name;
      auto found = std::find_if(given.begin(), given.end(), [&](const Tensor &other) { return other.name == own; });
      tensor = found == given.end() ? -1 : static_cast<int>(found - given.begin()); // which `compile` refuses
    }
  };
  for (Step &step : steps) {
    for (Argument &argument : step.arguments)
      renumber(argument.tensor);
    for (int &tensor : step.zeroed)
      renumber(tensor);
  }
  tensors = std::move(given);
  checks = std::move(signature.checks);
  maxExtent = signature.maxExtent;
}

Dtype Program::dtypeOf(int tensor) const {
  size_t i = static_cast<size_t>(tensor);
  return i < tensors.size() ? tensors[i].dtype : buffers[i - tensors.size()].dtype;
}

int Program::tensorNamed(std::string_view name) const {
  auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor &tensor) { return tensor.name == name; });
  return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

const std::string &Program::nameOf(int tensor) const {
  size_t i = static_cast<size_t>(tensor);
  return i < tensors.size() ? tensors[i].name : buffers[i - tensors.size()].name;
}

//===--------------------------------------------------------------------===//
// Sizes
//===--------------------------------------------------------------------===//

/// The size that says how many rows the leading dimensions of a tensor are.
static std::string nameOfLead(const Program::Tensor &tensor) {
  return tensor.lead == Lead::All ? "id_rows" : tensor.name + "_rows";
}

Result<ProgramCode> ProgramCode::compile(Program program) {
  ProgramCode code;
  std::vector<std::string> &names = code.names;
  auto isSize = [&](std::string_view name) {
    return std::any_of(program.sizes.begin(), program.sizes.end(),
                       [&](const Program::Size &size) { return size.name == name; });
  };
  auto give = [&](std::string_view name) {
    if (!name.empty() && !isSize(name) && std::find(names.begin(), names.end(), name) == names.end())
      names.emplace_back(name);
  };
  give("multiprocessors");
  for (const Program::Tensor &tensor : program.tensors) {
    if (tensor.lead != Lead::None)
      give(nameOfLead(tensor));
    for (const Extent &extent : tensor.extents)
      give(extent.learnedSize());
  }
  auto compileInto = [&](const Extent &extent, ExtentCode &to) -> Status {
    auto made = ExtentCode::compile(extent, names);
    if (!made)
      return made.error();
    to = std::move(*made);
    return {};
  };
  for (const Program::Size &size : program.sizes) {
    if (std::find(names.begin(), names.end(), size.name) != names.end())
      return Error{fmt::format("expected each size to be computed once, got: `{}` again", size.name), {}, {}};
    if (Status made = compileInto(size.value, code.derived.emplace_back()); !made)
      return made.error();
    names.push_back(size.name);
  }
  auto addShape = [&](const std::vector<Extent> &extents) -> Status {
    ShapeCode &shape = code.shapes.emplace_back();
    for (const Extent &extent : extents) {
      if (extent.constant().value_or(0) < 0)
        return Error{fmt::format("expected extents of 0 or more, got: {}", extent.str()), {}, {}};
      if (Status made = compileInto(extent, shape.extents.emplace_back()); !made)
        return made;
    }
    return {};
  };
  auto numberOf = [&](std::string_view name) {
    auto found = std::find(names.begin(), names.begin() + static_cast<long>(code.given()), name);
    return name.empty() || found - names.begin() >= static_cast<long>(code.given())
               ? -1
               : static_cast<int>(found - names.begin());
  };
  for (const Program::Tensor &tensor : program.tensors) {
    if (Status made = addShape(tensor.extents); !made)
      return made.error();
    for (const Extent &extent : tensor.extents)
      code.shapes.back().known.push_back(numberOf(extent.learnedSize()));
    if (tensor.lead != Lead::None)
      code.shapes.back().lead = numberOf(nameOfLead(tensor));
  }
  for (const Program::Buffer &buffer : program.buffers) {
    if (Status made = addShape(buffer.extents); !made)
      return made.error();
    code.places = std::max(code.places, buffer.place + 1);
  }
  for (const Program::Step &step : program.steps) {
    if (step.kernel >= static_cast<int>(program.kernels.size()))
      return Error{
          fmt::format("expected a kernel from 0 to {}, got: {}", program.kernels.size() - 1, step.kernel), {}, {}};
    StepCode &own = code.steps.emplace_back();
    if (Status made = compileInto(step.blocks, own.blocks); !made)
      return made.error();
    auto check = [&](int tensor, const std::vector<int> &axes) -> Status {
      if (tensor < 0 || tensor >= static_cast<int>(code.shapes.size()))
        return Error{fmt::format("expected a tensor from 0 to {}, got: {}", code.shapes.size() - 1, tensor), {}, {}};
      for (int axis : axes)
        if (axis < 0 || axis >= static_cast<int>(code.shapes[static_cast<size_t>(tensor)].extents.size()))
          return Error{fmt::format("expected axes that `{}` has, got: {}", program.nameOf(tensor), axis), {}, {}};
      return {};
    };
    for (const Program::Argument &argument : step.arguments) {
      if (Status made = compileInto(argument.extent, own.sizes.emplace_back()); !made)
        return made.error();
      bool named = argument.kind == Kind::Pointer || argument.kind == Kind::TensorMap || argument.kind == Kind::Stride;
      if (Status there = named ? check(argument.tensor, argument.axes) : Status(); !there)
        return there.error();
      size_t axes = argument.axes.size();
      if ((argument.kind == Kind::Stride && axes != 1) || (argument.kind == Kind::TensorMap && axes != 2 && axes != 3))
        return Error{fmt::format("expected 1 axis of a stride and 2 or 3 of a tensor map, got: {}", axes), {}, {}};
    }
    for (int tensor : step.zeroed)
      if (Status there = check(tensor, {}); !there)
        return there.error();
  }
  for (const Program::ArrayCheck &check : program.checks) {
    CheckCode &own = code.checks.emplace_back();
    for (auto [extent, to] : {std::pair(&check.rows, &own.rows), std::pair(&check.line, &own.line)})
      if (Status made = compileInto(*extent, *to); !made)
        return made.error();
    constexpr size_t counts[] = {2, 3, 2, 3};
    bool fits = check.arrays.size() == counts[static_cast<int>(check.kind)] && check.tile >= 0;
    for (size_t i = 0; fits && i < check.arrays.size(); ++i) {
      bool mayMiss = i > 0 && (check.kind == Check::Offsets || check.kind == Check::Parents);
      int array = check.arrays[i];
      fits = array < static_cast<int>(program.tensors.size()) && array >= (mayMiss ? -1 : 0) &&
             (array < 0 || program.tensors[static_cast<size_t>(array)].dtype == Dtype::I32);
    }
    if (!fits || (check.kind == Check::Tiles && check.tile < 1))
      return Error{"expected a check of i32 arrays that the program has", {}, {}};
  }
  code.source = std::move(program);
  return code;
}

void ProgramCode::computeSizes(int64_t *values) const {
  for (size_t i = 0; i < derived.size(); ++i)
    values[given() + i] = derived[i].evaluate(values);
}

int64_t ProgramCode::valueOf(std::string_view name, const int64_t *values) const {
  auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : values[found - names.begin()];
}

std::optional<ExpectedLengths> ProgramCode::expectedLengths(const int64_t *values) const {
  const SpecializationRule &rule = source.specialization;
  if (rule.source == SpecializationRule::Source::Nothing)
    return std::nullopt;
  return rule.expectedFor(valueOf("batch", values), valueOf(rule.packedQ ? "total_q" : "seqlen_q", values),
                          valueOf(rule.packedKv ? "total_kv" : "seqlen_kv", values));
}

int64_t ProgramCode::ShapeCode::elements(const int64_t *values) const {
  constexpr int64_t most = int64_t(1) << 44; // so that sums of bytes stay within 64 bits, whatever a file says
  int64_t count = 1;
  for (const ExtentCode &extent : extents) {
    int64_t own = std::clamp<int64_t>(extent.evaluate(values), 0, most);
    count = own == 0 ? 0 : std::min(count, most / own) * own;
  }
  return count;
}

std::vector<int64_t> ProgramCode::shapeOf(int tensor, const int64_t *values) const {
  std::vector<int64_t> shape;
  for (const ExtentCode &extent : shapes[static_cast<size_t>(tensor)].extents)
    shape.push_back(extent.evaluate(values));
  return shape;
}

//===--------------------------------------------------------------------===//
// The workspace
//===--------------------------------------------------------------------===//

static int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }

int64_t ProgramCode::placeBuffers(const int64_t *values, std::vector<int64_t> &offsets) const {
  std::vector<int64_t> sizes(static_cast<size_t>(places), 0); // of each place: that of its longest buffer
  for (size_t i = 0; i < source.buffers.size(); ++i) {
    int64_t &size = sizes[static_cast<size_t>(source.buffers[i].place)];
    size = std::max(size, shapes[source.tensors.size() + i].elements(values) * sizeOf(source.buffers[i].dtype));
  }
  int64_t bytes = 0;
  for (int64_t size : sizes) {
    offsets.push_back(aligned(bytes));
    bytes = offsets.back() + size;
  }
  return bytes;
}

size_t ProgramCode::workspaceBytes(const int64_t *values) const {
  std::vector<int64_t> offsets;
  return static_cast<size_t>(placeBuffers(values, offsets));
}

//===--------------------------------------------------------------------===//
// Arguments
//===--------------------------------------------------------------------===//

Result<TensorMapSpec> attn::rt::mapOf(const Program::Argument &argument, std::string_view name, Dtype dtype,
                                      const TensorView &memory) {
  TensorMapSpec map;
  map.boxRows = argument.boxRows, map.boxCols = argument.boxCols, map.boxHeads = argument.boxHeads;
  map.bf16 = dtype == Dtype::BF16;
  map.packed = argument.axes.size() == 2;
  bool elements = !memory.isEmpty();
  // Nothing is copied from a tensor without elements, but its map has to be one.
  map.address = elements ? reinterpret_cast<DevicePtr>(memory.data) : 4096;
  map.extents[0] = std::max<int64_t>(memory.shape.back(), 1);
  const int64_t unused = (map.extents[0] + 7) / 8 * 8; // for strides that nobody takes, any legal one
  for (size_t i = 0; i < 3; ++i) {
    int axis = i < argument.axes.size() ? argument.axes[i] : -1;
    map.extents[i + 1] = axis < 0 ? 1 : std::max<int64_t>(memory.shape[static_cast<size_t>(axis)], 1);
    map.strides[i] = elements && map.extents[i + 1] > 1 ? memory.strideOf(axis) : unused;
    if (map.strides[i] < 0 || map.strides[i] >= kTensorMapStrideLimit) {
      std::vector<int64_t> strides;
      for (int a = 0; a < memory.rank(); ++a)
        strides.push_back(memory.strideOf(a));
      return Error{
          fmt::format("expected strides from 0 to below 2^39 elements (a tensor map has no others) for `{}`, got: [{}]",
                      name, fmt::join(strides, ", ")),
          {},
          {}};
    }
  }
  return map;
}

/// The runs of contiguous bytes of a tensor, appended.
static void appendRuns(const TensorView &memory, int64_t element, std::vector<std::pair<void *, size_t>> &runs) {
  if (memory.isEmpty())
    return;
  int axis = memory.rank(); // from which on it is contiguous
  int64_t run = 1;
  while (axis > 0 && (memory.shape[static_cast<size_t>(axis - 1)] == 1 || memory.strideOf(axis - 1) == run))
    run *= memory.shape[static_cast<size_t>(--axis)];
  std::vector<int64_t> index(static_cast<size_t>(axis), 0);
  for (bool more = true; more;) {
    int64_t offset = 0;
    for (int i = 0; i < axis; ++i)
      offset += index[static_cast<size_t>(i)] * memory.strideOf(i);
    runs.emplace_back(static_cast<char *>(memory.data) + offset * element, static_cast<size_t>(run * element));
    more = false;
    for (int i = axis - 1; i >= 0 && !more; --i) {
      more = ++index[static_cast<size_t>(i)] < memory.shape[static_cast<size_t>(i)];
      if (!more)
        index[static_cast<size_t>(i)] = 0;
    }
  }
}

void ProgramCode::findZeroed(const Program::Step &step, const TensorView *tensors, void *const *buffers,
                             const int64_t *values, BoundStep &bound) const {
  for (int number : step.zeroed) {
    size_t tensor = static_cast<size_t>(number), given = source.tensors.size();
    int64_t element = sizeOf(source.dtypeOf(number));
    if (tensor < given)
      appendRuns(tensors[tensor], element, bound.zeroed);
    else if (int64_t bytes = shapes[tensor].elements(values) * element)
      bound.zeroed.emplace_back(buffers[tensor - given], static_cast<size_t>(bytes));
  }
}

Status ProgramCode::bindStep(size_t number, const TensorView *tensors, void *const *buffers, const int64_t *values,
                             BoundStep &bound, Result<TensorMap> (*encode)(const TensorMapSpec &)) const {
  const Program::Step &step = source.steps[number];
  const StepCode &code = steps[number];
  bound.blocks = code.blocks.evaluate(values);
  if (bound.blocks > INT32_MAX)
    return Error{fmt::format("expected at most 2^31 - 1 blocks, got: {}", bound.blocks), {}, {}};
  if (bound.blocks > step.mostBlocks)
    return Error{fmt::format("expected at most 2^31 - 1 warps of a streaming kernel, got: {}",
                             bound.blocks * (int64_t(INT32_MAX) / step.mostBlocks)),
                 {},
                 {}};
  bound.zeroed.clear();
  if (bound.blocks == 0 || step.kernel < 0)
    findZeroed(step, tensors, buffers, values, bound);
  const size_t count = step.arguments.size(), given = source.tensors.size();
  bound.values.assign(count, 0);
  bound.pointers.resize(count);
  bound.maps.clear();
  for (size_t i = 0; i < count; ++i) {
    const Program::Argument &argument = step.arguments[i];
    size_t tensor = static_cast<size_t>(argument.tensor);
    int64_t &value = bound.values[i];
    switch (argument.kind) {
    case Kind::Pointer:
      value = reinterpret_cast<int64_t>(tensor < given ? tensors[tensor].data : buffers[tensor - given]);
      break;
    case Kind::Stride:
      if (tensor < given) {
        value = tensors[tensor].strideOf(argument.axes[0]);
        break;
      }
      value = 1;
      for (size_t axis = static_cast<size_t>(argument.axes[0]) + 1; axis < shapes[tensor].extents.size(); ++axis)
        value *= shapes[tensor].extents[axis].evaluate(values);
      break;
    case Kind::Size:
      value = code.sizes[i].evaluate(values);
      break;
    case Kind::Blocks:
      value = bound.blocks;
      break;
    case Kind::Counter: // the launch knows it
      break;
    case Kind::TensorMap: {
      auto map = mapOf(argument, source.nameOf(argument.tensor), source.dtypeOf(argument.tensor), tensors[tensor]);
      if (!map)
        return map.error();
      auto encoded = encode(*map);
      if (!encoded)
        return Error{
            fmt::format("tensor map of `{}`: {}", source.nameOf(argument.tensor), encoded.error().message), {}, {}};
      bound.maps.push_back(*encoded);
      break;
    }
    }
  }
  size_t map = 0;                    // the maps stay where they are from here on
  for (size_t i = 0; i < count; ++i) // little-endian: an i32 reads the low half
    bound.pointers[i] =
        step.arguments[i].kind == Kind::TensorMap ? static_cast<void *>(&bound.maps[map++]) : &bound.values[i];
  return {};
}

Status ProgramCode::bind(const TensorView *tensors, void *workspace, const int64_t *values,
                         std::vector<BoundStep> &bound, Result<TensorMap> (*encode)(const TensorMapSpec &)) const {
  std::vector<int64_t> offsets;
  int64_t bytes = placeBuffers(values, offsets);
  if (!workspace && bytes)
    return Error{fmt::format("expected a workspace of {} bytes (attnWorkspaceSize), got: NULL", bytes), {}, {}};
  if (bytes && reinterpret_cast<uintptr_t>(workspace) % 16)
    return Error{fmt::format("expected a workspace aligned to 16 bytes, got: {}", workspace), {}, {}};
  std::vector<void *> buffers;
  for (const Program::Buffer &buffer : source.buffers)
    buffers.push_back(bytes ? static_cast<char *>(workspace) + offsets[static_cast<size_t>(buffer.place)] : nullptr);
  bound.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    if (Status status = bindStep(i, tensors, buffers.data(), values, bound[i], encode); !status)
      return status;
  return {};
}
