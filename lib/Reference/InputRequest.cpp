// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Reference/InputRequest.h"
#include "attn/Reference/NumberChecks.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;
using namespace attn::reference;

static llvm::Error requestError(const llvm::Twine &what) { return llvm::createStringError(what); }

static std::string textOf(llvm::ArrayRef<int64_t> numbers) {
  return llvm::join(llvm::map_range(numbers, [](int64_t n) { return std::to_string(n); }), ",");
}

std::string InputRequest::spell(llvm::StringRef key, llvm::StringRef value) const {
  if (areKeys)
    return ("`" + key + (value.empty() ? "`" : "` = ") + value).str();
  std::string option = key.str();
  llvm::replace(option, '_', '-');
  return ("--" + option + (value.empty() ? "" : "=") + value).str();
}

std::optional<ExpectedLengths> ExpectedLengths::of(ProblemOp problem) {
  auto size = [](uint64_t length) { return int64_t(std::min<uint64_t>(length, 1 << 24)); };
  if (problem.getExpectedSeqlenQ())
    return ExpectedLengths{size(*problem.getExpectedSeqlenQ()), size(*problem.getExpectedSeqlenKv()),
                           "expected_seqlen"};
  if (problem.getMaxSeqlenQ())
    return ExpectedLengths{size(*problem.getMaxSeqlenQ()), size(*problem.getMaxSeqlenKv()), "max_seqlen"};
  return std::nullopt;
}

llvm::Error reference::checkRanges(const InputRequest &request) {
  auto spelled = [&](const char *key) { return request.spell(key); };
  for (auto [key, size] : {std::pair("batch", request.batch),
                           {"seqlen_q", request.seqlenQ},
                           {"seqlen_kv", request.seqlenKv},
                           {"padding", request.padding}})
    if (size)
      if (llvm::Error bad = checkSizes(spelled(key), *size))
        return bad;
  for (auto [key, lengths] : {std::pair("lengths_q", &request.lengthsQ), {"lengths_kv", &request.lengthsKv}})
    if (llvm::Error bad = checkSizes(spelled(key), *lengths))
      return bad;
  return llvm::Error::success();
}

llvm::Error reference::checkApplies(ProblemOp problem, const InputRequest &request) {
  bool segments = problem.getSegments().has_value();
  LayoutAttr q = problem.getQLayout(), kv = problem.getKLayout();
  auto spelled = [&](llvm::StringRef key) { return request.spell(key); };
  auto refuse = [&](llvm::StringRef key, const llvm::Twine &expected, LayoutAttr layout) {
    std::string with;
    llvm::raw_string_ostream os(with);
    segments ? os << "segments(" << *problem.getSegments() << ")" : os << layout;
    return requestError("expected " + expected + " in place of " + spelled(key) + ", got: " + spelled(key) + " with " +
                        with);
  };
  for (auto [side, seqlen, lengths, layout] :
       {std::tuple("q", request.seqlenQ, &request.lengthsQ, q), {"kv", request.seqlenKv, &request.lengthsKv, kv}}) {
    std::string seqlenKey = std::string("seqlen_") + side, lengthsKey = std::string("lengths_") + side;
    if (seqlen && layout.isPacked() && !segments)
      return refuse(seqlenKey, spelled(lengthsKey), layout);
    if (!lengths->empty() && (segments || !layout.isPacked()))
      return refuse(lengthsKey, spelled("batch") + " and " + spelled(seqlenKey), layout);
  }
  if (request.padding && !q.getPadded() && !kv.getPadded() && !q.hasPieces())
    return refuse("padding", "a padded layout", q);
  if (!request.lengthsQ.empty() && !request.lengthsKv.empty() && request.lengthsQ.size() != request.lengthsKv.size())
    return requestError("expected as many " + spelled("lengths_kv") + " as " + spelled("lengths_q") + ", got: " +
                        llvm::Twine(request.lengthsKv.size()) + " and " + llvm::Twine(request.lengthsQ.size()));
  return llvm::Error::success();
}

/// Given tensors decide, so an option that says otherwise would have no effect.
static llvm::Error checkAgrees(ProblemOp problem, const Sizes &sizes, const Tensors &tensors,
                               const InputRequest &request) {
  auto differ = [&](llvm::StringRef key, llvm::ArrayRef<int64_t> has, llvm::ArrayRef<int64_t> given) -> llvm::Error {
    if (given.empty() || has == given)
      return llvm::Error::success();
    return requestError("expected " + request.spell(key, textOf(has)) + ", which follows from other options" +
                        (request.areKeys ? "" : " and files") + ", got: " + request.spell(key, textOf(given)));
  };
  auto numbers = [](const std::optional<int64_t> &given) {
    return given ? llvm::ArrayRef(*given) : llvm::ArrayRef<int64_t>();
  };
  bool segments = problem.getSegments().has_value();
  if (llvm::Error bad = differ("batch", segments ? sizes.idRows : sizes.batch, numbers(request.batch)))
    return bad;
  if (llvm::Error bad = differ("seqlen_q", segments ? sizes.tokensQ : sizes.rowsQ, numbers(request.seqlenQ)))
    return bad;
  if (llvm::Error bad = differ("seqlen_kv", segments ? sizes.tokensKv : sizes.rowsKv, numbers(request.seqlenKv)))
    return bad;
  for (auto [key, side, lengths] :
       {std::tuple("lengths_q", "q", &request.lengthsQ), {"lengths_kv", "kv", &request.lengthsKv}})
    if (!lengths->empty())
      if (llvm::Error bad = differ(key, lengthsOf(tensors, side), *lengths))
        return bad;
  return llvm::Error::success();
}

static InputSizes sizesOf(const InputRequest &request, std::optional<ExpectedLengths> expected) {
  InputSizes sizes;
  sizes.batch = request.batch.value_or(2);
  sizes.seqlenQ = request.seqlenQ ? *request.seqlenQ : expected ? expected->queries : 256;
  bool expectsKeys = expected && !request.seqlenQ;
  sizes.seqlenKv = request.seqlenKv ? *request.seqlenKv : expectsKeys ? expected->keys : sizes.seqlenQ;
  sizes.lengthsQ = request.lengthsQ, sizes.lengthsKv = request.lengthsKv;
  if (sizes.lengthsQ.empty() && sizes.lengthsKv.empty()) {
    constexpr int64_t usual[] = {100, 0, 37, 219}; // an empty one, too
    for (int64_t i = 0, count = request.batch.value_or(4); i < count; ++i) {
      sizes.lengthsQ.push_back(expected ? expected->queries : usual[i % 4]);
      sizes.lengthsKv.push_back(expected ? expected->keys : usual[i % 4]);
    }
  }
  if (sizes.lengthsQ.empty())
    sizes.lengthsQ = sizes.lengthsKv;
  if (sizes.lengthsKv.empty())
    sizes.lengthsKv = sizes.lengthsQ;
  sizes.padding = request.padding.value_or(5);
  return sizes;
}

llvm::Expected<Tensors> reference::inputsOf(Computation computation, InputRequest request) {
  if (llvm::Error bad = checkApplies(computation.problem, request))
    return bad;
  Tensors tensors = std::move(request.tensors);
  bool complete = llvm::all_of(tensorsOf(computation), [&](const ProblemTensor &tensor) {
    return tensor.role == ProblemTensor::Result || tensors.count(tensor.name);
  });
  for (auto [key, given] : {std::pair("seed", request.seed.has_value()), {"padding", request.padding.has_value()}})
    if (complete && given)
      return requestError("expected inputs to make up with " + request.spell(key) + ", got: files for all of them");
  if (llvm::Error bad =
          addMissingInputs(computation, sizesOf(request, std::nullopt), request.seed.value_or(1), tensors))
    return bad;
  llvm::Expected<Sizes> sizes = checkTensors(computation, tensors);
  if (!sizes)
    return sizes.takeError();
  if (llvm::Error bad = checkAgrees(computation.problem, *sizes, tensors, request))
    return bad;
  return tensors;
}

llvm::Expected<std::pair<Tensors, Sizes>> reference::arraysOf(ProblemOp problem, InputRequest request) {
  if (llvm::Error bad = checkApplies(problem, request))
    return bad;
  Tensors tensors = std::move(request.tensors);
  bool complete = llvm::all_of(tensorsOf(problem), [&](const ProblemTensor &tensor) {
    return tensor.role != ProblemTensor::Array || tensors.count(tensor.name);
  });
  if (complete && request.seed)
    return requestError("expected arrays to make up with " + request.spell("seed") + ", got: none");
  llvm::Expected<Sizes> made = addMissingArrays(problem, sizesOf(request, ExpectedLengths::of(problem)),
                                                request.seed.value_or(1), tensors, /*withFloats=*/false);
  if (!made)
    return made.takeError();
  // Shapes of given and made ones agree with those that the other tensors would have.
  llvm::Expected<Sizes> sizes = deduceShapes(problem, [&](llvm::StringRef name) {
    if (auto tensor = tensors.find(name); tensor != tensors.end())
      return std::optional(Shape(tensor->second.shape()));
    for (const ProblemTensor &tensor : tensorsOf(problem))
      if (tensor.name == name && tensor.role != ProblemTensor::Result)
        return std::optional(tensor.shape(problem, *made));
    return std::optional<Shape>();
  });
  if (!sizes)
    return sizes.takeError();
  auto array = [&](llvm::StringRef name) {
    const Tensor &tensor = tensors.find(name)->second;
    return llvm::ArrayRef(tensor.data<int32_t>(), tensor.numElements());
  };
  if (llvm::Error bad = checkArrays(problem, *sizes, array))
    return bad;
  if (llvm::Error bad = checkAgrees(problem, *sizes, tensors, request))
    return bad;
  return std::pair(std::move(tensors), *sizes);
}
