// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InputOptions.h"
#include "OptionChecks.h"
#include "attn/Reference/Npy.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;

static std::string textOf(llvm::ArrayRef<int64_t> numbers) {
  return llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ",");
}

/// `&` of a list is of its numbers.
static llvm::ArrayRef<int64_t> numbersOf(const llvm::cl::list<int64_t> &option) { return *&option; }

static llvm::Error error(const llvm::Twine &what) { return llvm::createStringError(what); }

llvm::Error InputOptions::check() const {
  for (const Opt<int64_t> *option : {&batch, &seqlenQ, &seqlenKv, &padding})
    if (option->getNumOccurrences())
      if (llvm::Error bad = checkSizes(option->ArgStr, option->getValue()))
        return bad;
  for (const llvm::cl::list<int64_t> *option : {std::addressof(lengthsQ), std::addressof(lengthsKv)})
    if (llvm::Error bad = checkSizes(option->ArgStr, numbersOf(*option)))
      return bad;
  return llvm::Error::success();
}

// Of each option: is it about something that the problem has, and if not, what is.
llvm::Error InputOptions::checkApply(ProblemOp problem) const {
  bool segments = problem.getSegments().has_value();
  LayoutAttr q = problem.getQLayout(), kv = problem.getKLayout();
  auto refuse = [&](const llvm::cl::Option &option, const llvm::Twine &expected, LayoutAttr layout) {
    std::string with;
    llvm::raw_string_ostream os(with);
    segments ? os << "segments(" << *problem.getSegments() << ")" : os << layout;
    return error("expected " + expected + " in place of --" + option.ArgStr + ", got: --" + option.ArgStr + " with " + with);
  };
  for (auto [seqlen, lengths, layout] : {std::tuple(&seqlenQ, std::addressof(lengthsQ), q), {&seqlenKv, std::addressof(lengthsKv), kv}}) {
    if (seqlen->getNumOccurrences() && layout.isPacked() && !segments)
      return refuse(*seqlen, "--" + lengths->ArgStr, layout);
    if (!lengths->empty() && (segments || !layout.isPacked()))
      return refuse(*lengths, "--batch and --" + seqlen->ArgStr, layout);
  }
  if (padding.getNumOccurrences() && !q.getPadded() && !kv.getPadded())
    return refuse(padding, "a padded layout", q);
  if (!lengthsQ.empty() && !lengthsKv.empty() && lengthsQ.size() != lengthsKv.size())
    return error("expected as many --lengths-kv as --lengths-q, got: " + llvm::Twine(lengthsKv.size()) + " and " +
                 llvm::Twine(lengthsQ.size()));
  return llvm::Error::success();
}

// Files win, so an option that says otherwise would go unheard.
llvm::Error InputOptions::checkAgree(ProblemOp problem, const Sizes &sizes, const reference::Tensors &tensors) const {
  auto differ = [&](const llvm::cl::Option &option, llvm::ArrayRef<int64_t> has, llvm::ArrayRef<int64_t> given) -> llvm::Error {
    if (!option.getNumOccurrences() || has == given)
      return llvm::Error::success();
    return error("expected --" + option.ArgStr + "=" + textOf(has) + ", which follows from other options and files, got: --" +
                 option.ArgStr + "=" + textOf(given));
  };
  bool segments = problem.getSegments().has_value();
  if (llvm::Error bad = differ(batch, segments ? sizes.idRows : sizes.batch, batch.getValue()))
    return bad;
  for (auto [seqlen, has] : {std::pair(&seqlenQ, segments ? sizes.tokensQ : sizes.rowsQ),
                             {&seqlenKv, segments ? sizes.tokensKv : sizes.rowsKv}})
    if (llvm::Error bad = differ(*seqlen, has, seqlen->getValue()))
      return bad;
  for (auto [lengths, side] : {std::pair(std::addressof(lengthsQ), "q"), {std::addressof(lengthsKv), "kv"}})
    if (!lengths->empty())
      if (llvm::Error bad = differ(*lengths, reference::lengthsOf(tensors, side), numbersOf(*lengths)))
        return bad;
  return llvm::Error::success();
}

llvm::SmallVector<llvm::StringRef> InputOptions::getFiles() const {
  llvm::SmallVector<llvm::StringRef> files;
  for (const std::string &text : argFiles)
    files.push_back(nameAndFile(text).second);
  return files;
}

std::optional<SaidLengths> SaidLengths::of(ProblemOp problem) {
  auto size = [](uint64_t length) { return int64_t(std::min<uint64_t>(length, 1 << 24)); };
  if (problem.getTypicalQ())
    return SaidLengths{size(*problem.getTypicalQ()), size(*problem.getTypicalKv()), "typical"};
  if (problem.getBoundQ())
    return SaidLengths{size(*problem.getBoundQ()), size(*problem.getBoundKv()), "bounds"};
  return std::nullopt;
}

reference::InputSizes InputOptions::sizes(std::optional<SaidLengths> said) const {
  reference::InputSizes sizes;
  sizes.batch = batch;
  sizes.seqlenQ = seqlenQ;
  sizes.seqlenKv = seqlenKv < 0 ? seqlenQ : seqlenKv;
  if (said && !seqlenQ.getNumOccurrences()) {
    sizes.seqlenQ = said->queries;
    sizes.seqlenKv = seqlenKv < 0 ? said->keys : seqlenKv;
  }
  sizes.lengthsQ.assign(lengthsQ.begin(), lengthsQ.end());
  sizes.lengthsKv.assign(lengthsKv.begin(), lengthsKv.end());
  if (sizes.lengthsQ.empty() && sizes.lengthsKv.empty()) {
    constexpr int64_t usual[] = {100, 0, 37, 219}; // an empty one, too
    for (int64_t i = 0, count = batch.getNumOccurrences() ? batch.getValue() : 4; i < count; ++i) {
      sizes.lengthsQ.push_back(said ? said->queries : usual[i % 4]);
      sizes.lengthsKv.push_back(said ? said->keys : usual[i % 4]);
    }
  }
  if (sizes.lengthsQ.empty())
    sizes.lengthsQ = sizes.lengthsKv;
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

llvm::Expected<reference::Tensors> InputOptions::inputsOf(Computation computation) const {
  reference::Tensors tensors;
  if (llvm::Error bad = checkApply(computation.problem))
    return bad;
  if (llvm::Error bad = loadFiles(computation, tensors))
    return bad;
  bool complete = llvm::all_of(tensorsOf(computation), [&](const ProblemTensor &tensor) {
    return tensor.role == ProblemTensor::Result || tensors.count(tensor.name);
  });
  for (const llvm::cl::Option *option : {(const llvm::cl::Option *)&seed, (const llvm::cl::Option *)&padding})
    if (complete && option->getNumOccurrences())
      return error("expected inputs to make up with --" + option->ArgStr + ", got: files for all of them");
  if (llvm::Error bad = reference::addMissingInputs(computation, sizes(), seed, tensors))
    return bad;
  llvm::Expected<Sizes> sizes = reference::checkTensors(computation, tensors);
  if (!sizes)
    return sizes.takeError();
  if (llvm::Error bad = checkAgree(computation.problem, *sizes, tensors))
    return bad;
  return tensors;
}

llvm::Expected<std::pair<reference::Tensors, Sizes>> InputOptions::arraysOf(ProblemOp problem) const {
  reference::Tensors tensors;
  if (llvm::Error bad = checkApply(problem))
    return bad;
  if (llvm::Error bad = loadFiles(problem, tensors))
    return bad;
  bool complete = llvm::all_of(tensorsOf(problem), [&](const ProblemTensor &tensor) {
    return tensor.role != ProblemTensor::Array || tensors.count(tensor.name);
  });
  if (complete && seed.getNumOccurrences())
    return error("expected arrays to make up with --seed, got: none");
  llvm::Expected<Sizes> made = reference::addMissingArrays(problem, sizes(SaidLengths::of(problem)), seed, tensors);
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
  if (llvm::Error bad = reference::checkArrays(problem, *sizes, array))
    return bad;
  if (llvm::Error bad = checkAgree(problem, *sizes, tensors))
    return bad;
  return std::pair(std::move(tensors), *sizes);
}
