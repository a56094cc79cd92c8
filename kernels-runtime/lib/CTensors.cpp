// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/CTensors.h"

#include <fmt/format.h>

using namespace attn::rt;

Status attn::rt::readTensors(const Program &program, const attnTensor *tensors, Given given,
                             std::vector<TensorView> &views) {
  views.clear();
  if (!tensors)
    return Error{"expected tensors, got: NULL", {}, {}};
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const Program::Tensor &tensor = program.tensors[i];
    const attnTensor &t = tensors[i];
    if (tensor.isResult() && given == Given::Inputs) {
      views.push_back({t.data, tensor.dtype, {}, {}});
      continue;
    }
    if (t.dtype < attnBF16 || t.dtype > attnI32)
      return Error{
          fmt::format("expected an attnDtype for `{}`, got: {}", tensor.name, static_cast<int>(t.dtype)), {}, {}};
    if (t.rank < 0 || t.rank > attnMaxRank || (t.rank && !t.shape))
      return Error{fmt::format("expected a rank from 0 to {} and a shape for `{}`, got: {}{}",
                               static_cast<int>(attnMaxRank), tensor.name, t.rank, t.shape ? "" : " and NULL"),
                   {},
                   {}};
    const size_t rank = static_cast<size_t>(t.rank);
    views.push_back({t.data, static_cast<Dtype>(t.dtype), {t.shape, rank}, {}});
    if (t.strides)
      views.back().strides = {t.strides, rank};
  }
  return {};
}

Status attn::rt::inferShapes(const ProgramCode &code, attnTensor *tensors, int64_t (*extents)[attnMaxRank]) {
  std::vector<TensorView> views;
  if (Status read = readTensors(code.program(), tensors, Given::Inputs, views); !read)
    return read;
  if (!extents)
    return Error{"expected where to put the extents, got: NULL", {}, {}};
  std::vector<int64_t> sizes = code.makeSizes();
  if (Status read = code.readSizes(views, Given::Inputs, sizes.data()); !read)
    return read;
  for (size_t i = 0; i < views.size(); ++i) {
    if (!code.program().tensors[i].isResult())
      continue;
    std::vector<int64_t> shape = code.shapeOf(views, i, sizes.data());
    if (shape.size() > attnMaxRank)
      return Error{fmt::format("expected at most {} axes of `{}`, got: {}", static_cast<int>(attnMaxRank),
                               code.program().tensors[i].name, shape.size()),
                   {},
                   {}};
    std::copy(shape.begin(), shape.end(), extents[i]);
    tensors[i].dtype = static_cast<attnDtype>(views[i].dtype);
    tensors[i].rank = static_cast<int32_t>(shape.size());
    tensors[i].shape = extents[i], tensors[i].strides = nullptr;
  }
  return {};
}
