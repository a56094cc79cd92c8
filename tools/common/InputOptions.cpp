// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InputOptions.h"
#include "attn/Reference/Npy.h"

using namespace attn;

static llvm::Error error(const llvm::Twine &what) { return llvm::createStringError(what); }

reference::InputRequest InputOptions::request() const {
  reference::InputRequest request;
  request.areKeys = false;
  for (auto [option, number] : {std::pair(&batch, &request.batch),
                                {&seqlenQ, &request.seqlenQ},
                                {&seqlenKv, &request.seqlenKv},
                                {&padding, &request.padding}})
    if (option->getNumOccurrences())
      *number = option->getValue();
  request.lengthsQ.assign(lengthsQ.begin(), lengthsQ.end());
  request.lengthsKv.assign(lengthsKv.begin(), lengthsKv.end());
  if (seed.getNumOccurrences())
    request.seed = seed.getValue();
  return request;
}

llvm::Error InputOptions::check() const { return reference::checkRanges(request()); }

llvm::SmallVector<llvm::StringRef> InputOptions::getFiles() const {
  llvm::SmallVector<llvm::StringRef> files;
  for (const std::string &text : argFiles)
    files.push_back(nameAndFile(text).second);
  return files;
}

llvm::Error InputOptions::loadFiles(Computation computation, reference::Tensors &tensors) const {
  std::vector<ProblemTensor> list = tensorsOf(computation);
  for (const std::string &text : argFiles) {
    auto [name, file] = nameAndFile(text);
    auto tensor =
        llvm::find_if(list, [&, name = name](auto &t) { return t.name == name && t.role != ProblemTensor::Result; });
    if (tensor == list.end() || file.empty())
      return error("expected --arg=NAME=FILE with an input of @" + computation.getName() + ", got: " + text);
    if (tensors.count(name))
      return error("expected each input once, got: --arg=" + text + " as well");
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

llvm::Expected<reference::InputRequest> InputOptions::requestFor(Computation computation) const {
  reference::InputRequest request = this->request();
  if (llvm::Error bad = reference::checkApplies(computation.problem, request))
    return bad;
  if (llvm::Error bad = loadFiles(computation, request.tensors))
    return bad;
  return request;
}

llvm::Expected<reference::InputRequest> InputOptions::requestFor(llvm::StringRef name, const rt::Program &signature,
                                                                 bool exact) const {
  reference::InputRequest request = this->request();
  for (const std::string &text : argFiles) {
    auto [own, file] = nameAndFile(text);
    int number = signature.tensorNamed(own.str());
    if (number < 0 || signature.tensors[number].isResult() || file.empty())
      return error("expected --arg=NAME=FILE with an input of @" + name + ", got: " + text);
    if (request.tensors.count(own))
      return error("expected each input once, got: --arg=" + text + " as well");
    reference::Dtype dtype = reference::dtypeOf(signature.tensors[number].dtype);
    bool integers = dtype == reference::Dtype::I32;
    auto values = reference::readNpy(file, integers ? dtype : exact ? reference::Dtype::F64 : reference::Dtype::F32);
    if (!values)
      return values.takeError();
    request.tensors[own] = integers || exact ? std::move(*values) : values->to(dtype);
  }
  return request;
}

llvm::Expected<reference::Tensors> InputOptions::inputsOf(Computation computation) const {
  llvm::Expected<reference::InputRequest> request = requestFor(computation);
  return request ? reference::inputsOf(computation, std::move(*request)) : request.takeError();
}
