// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of a call, over the caller's tensors and a workspace.
//
#include "ProgramBinder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace attn::rt;
using Kind = Program::Argument::Kind;
using StepKind = Program::Step::Kind;

//===--------------------------------------------------------------------===//
// Arguments
//===--------------------------------------------------------------------===//

Result<TensorMapSpec> attn::rt::mapOf(const Program::Argument &argument, std::string_view name, Dtype dtype,
                                      const TensorView &memory) {
  TensorMapSpec map;
  map.boxRows = argument.boxRows, map.boxCols = argument.boxCols, map.boxHeads = argument.boxHeads;
  map.rowStep = argument.rowStep;
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

void ProgramCode::Binder::findZeroed(const Program::Step &step, BoundStep &bound) const {
  for (int number : step.zeroed) {
    size_t memory = of(number);
    int64_t element = sizeOf(code.source.dtypeOf(static_cast<int>(memory)));
    if (memory < given())
      appendRuns(tensors[memory], element, bound.zeroed);
    else if (int64_t bytes = code.shapes[memory].elements(values, tables) * element)
      bound.zeroed.emplace_back(dataOf(memory), static_cast<size_t>(bytes));
  }
}

TensorView ProgramCode::Binder::bufferMemory(size_t memory, std::vector<int64_t> &shape) const {
  shape = code.shapeOf(static_cast<int>(memory), values, tables);
  return {dataOf(memory), code.source.dtypeOf(static_cast<int>(memory)), shape, {}};
}

Status ProgramCode::Binder::launch(const Program::Step &step, const StepCode &own, BoundStep &bound) const {
  bound.blocks = own.count.evaluate(values, tables);
  if (bound.blocks > INT32_MAX)
    return Error{fmt::format("expected at most 2^31 - 1 blocks, got: {}", bound.blocks), {}, {}};
  if (bound.blocks > step.mostBlocks)
    return Error{fmt::format("expected at most 2^31 - 1 warps of a SIMT-rows kernel, got: {}",
                             bound.blocks * (int64_t(INT32_MAX) / step.mostBlocks)),
                 {},
                 {}};
  bool launches = bound.blocks > 0 && step.kind == StepKind::Launch;
  bound.kind = launches ? BoundStep::Kind::Launch : BoundStep::Kind::Zero;
  bound.kernel = step.kernel;
  bound.reusable = step.reusable;
  bound.zeroed.clear();
  if (!launches)
    findZeroed(step, bound);
  const size_t count = step.arguments.size();
  bound.values.assign(count, 0);
  bound.pointers.resize(count);
  bound.maps.clear();
  std::vector<int64_t> shape; // of a buffer
  for (size_t i = 0; i < count; ++i) {
    const Program::Argument &argument = step.arguments[i];
    int64_t &value = bound.values[i];
    switch (argument.kind) {
    case Kind::Pointer:
      value = reinterpret_cast<int64_t>(dataOf(of(argument.tensor)));
      break;
    case Kind::Stride: {
      size_t memory = of(argument.tensor);
      if (memory < given()) {
        value = tensors[memory].strideOf(argument.axes[0]);
        break;
      }
      value = 1;
      const std::vector<ExtentCode> &extents = code.shapes[memory].extents;
      for (size_t axis = static_cast<size_t>(argument.axes[0]) + 1; axis < extents.size(); ++axis)
        value *= extents[axis].evaluate(values, tables);
      break;
    }
    case Kind::Size:
      value = own.sizes[i].evaluate(values, tables);
      break;
    case Kind::Blocks:
      value = bound.blocks;
      break;
    case Kind::Counter: // the launch knows it
      break;
    case Kind::TensorMap: {
      size_t memory = of(argument.tensor);
      TensorView buffer = memory < given() ? TensorView() : bufferMemory(memory, shape);
      auto map = mapOf(argument, nameOf(memory), code.source.dtypeOf(static_cast<int>(memory)),
                       memory < given() ? tensors[memory] : buffer);
      if (!map)
        return map.error();
      auto encoded = encode(*map);
      if (!encoded)
        return Error{fmt::format("tensor map of `{}`: {}", nameOf(memory), encoded.error().message), {}, {}};
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
                         std::vector<BoundStep> &bound, Encode encode, const Table *tables) const {
  for (size_t i = 0; i < lengths.size(); ++i)
    if (int64_t length = lengths[i].evaluate(values, tables); !tables || tables[i].count != length)
      return Error{fmt::format("expected {} numbers in the table `{}`, got: {}", length, tableNames[i],
                               tables ? tables[i].count : 0),
                   {},
                   {}};
  std::vector<int64_t> offsets;
  int64_t bytes = placeBuffers(values, tables, offsets);
  if (!workspace && bytes)
    return Error{fmt::format("expected a workspace of {} bytes (attnWorkspaceSize), got: NULL", bytes), {}, {}};
  if (bytes && reinterpret_cast<uintptr_t>(workspace) % 16)
    return Error{fmt::format("expected a workspace aligned to 16 bytes, got: {}", workspace), {}, {}};
  std::vector<void *> buffers;
  for (const Program::Buffer &buffer : source.buffers)
    buffers.push_back(bytes ? static_cast<char *>(workspace) + offsets[static_cast<size_t>(buffer.place)] : nullptr);
  Binder binder{*this, tensors, buffers.data(), values, tables, encode};
  if (nested)
    return unroll(binder, bound);
  bound.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    if (Status status = binder.launch(source.steps[i], steps[i], bound[i]); !status)
      return status;
  return {};
}
