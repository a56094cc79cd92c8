// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InputOptions.h"
#include "attn/Reference/Npy.h"

using namespace attn;

llvm::Error InputOptions::check() const {
  std::vector<int64_t> given = {batch, seqlenQ, padding};
  if (seqlenKv.getNumOccurrences())
    given.push_back(seqlenKv);
  given.insert(given.end(), lengthsQ.begin(), lengthsQ.end());
  given.insert(given.end(), lengthsKv.begin(), lengthsKv.end());
  for (int64_t size : given)
    if (size < 0 || size > 1 << 24)
      return llvm::createStringError("expected sizes from 0 to 2^24, got: " + std::to_string(size));
  return llvm::Error::success();
}

reference::InputSizes InputOptions::sizes() const {
  reference::InputSizes sizes;
  sizes.batch = batch;
  sizes.seqlenQ = seqlenQ;
  sizes.seqlenKv = seqlenKv < 0 ? seqlenQ : seqlenKv;
  sizes.lengthsQ.assign(lengthsQ.begin(), lengthsQ.end());
  if (sizes.lengthsQ.empty())
    sizes.lengthsQ = {100, 0, 37, 219}; // an empty one, too
  sizes.lengthsKv.assign(lengthsKv.begin(), lengthsKv.end());
  if (sizes.lengthsKv.empty())
    sizes.lengthsKv = sizes.lengthsQ;
  sizes.padding = padding;
  return sizes;
}

llvm::Error InputOptions::loadFiles(Computation computation, reference::Tensors &tensors) const {
  std::vector<ProblemTensor> list = tensorsOf(computation);
  for (const std::string &text : argFiles) {
    auto [name, file] = nameAndFile(text);
    auto tensor =
        llvm::find_if(list, [&, name = name](auto &t) { return t.name == name && t.role != ProblemTensor::Result; });
    if (tensor == list.end() || file.empty())
      return llvm::createStringError("expected --arg=NAME=FILE with an input of @" + computation.getName() +
                                     ", got: " + text);
    bool array = tensor->role == ProblemTensor::Array;
    bool integers = tensor->element == ProblemTensor::Int32;
    auto values = reference::readNpy(file, integers ? reference::Dtype::I32 : reference::Dtype::F32);
    if (!values)
      return values.takeError();
    bool keeps = array || tensor->element == ProblemTensor::Float32;
    tensors[name] = keeps ? std::move(*values) : values->to(reference::dtypeOf(computation.problem));
  }
  return llvm::Error::success();
}

llvm::Expected<reference::Tensors> InputOptions::inputsOf(Computation computation) const {
  reference::Tensors tensors;
  if (computation.problem.getSegments() && (!lengthsQ.empty() || !lengthsKv.empty()))
    return llvm::createStringError("expected no lengths with segments(S), which come from `ids_q` and `ids_kv`");
  if (llvm::Error error = loadFiles(computation, tensors))
    return error;
  if (llvm::Error error = reference::addMissingInputs(computation, sizes(), seed, tensors))
    return error;
  return tensors;
}

llvm::Expected<std::pair<reference::Tensors, Sizes>> InputOptions::arraysOf(ProblemOp problem) const {
  reference::Tensors tensors;
  if (llvm::Error error = loadFiles(problem, tensors))
    return error;
  llvm::Expected<Sizes> made = reference::addMissingArrays(problem, sizes(), seed, tensors);
  if (!made)
    return made.takeError();
  // Shapes of given and made ones agree with those that the operands would have.
  llvm::Expected<Sizes> sizes = reference::deduceShapes(problem, [&](llvm::StringRef name) {
    if (auto tensor = tensors.find(name); tensor != tensors.end())
      return std::optional(reference::Shape(tensor->second.shape()));
    for (const ProblemTensor &tensor : tensorsOf(problem))
      if (tensor.name == name && tensor.role == ProblemTensor::Operand)
        return std::optional(tensor.shape(problem, *made));
    return std::optional<reference::Shape>();
  });
  if (!sizes)
    return sizes.takeError();
  auto array = [&](llvm::StringRef name) {
    const reference::Tensor &tensor = tensors.find(name)->second;
    return llvm::ArrayRef(tensor.data<int32_t>(), tensor.numElements());
  };
  if (llvm::Error error = reference::checkArrays(problem, *sizes, array))
    return error;
  return std::pair(std::move(tensors), *sizes);
}
