// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the steps of a rank.
//
#include "RankSteps.h"
#include "attn-rt/Driver.h"
#include <cstring>
#include <fmt/format.h>

using namespace attn;

size_t PlacedTensor::bytes() const {
  size_t all = rt::sizeOf(dtype);
  for (int64_t extent : shape)
    all *= extent;
  return all;
}

rt::Result<RankSteps::Steps::Resolved> RankSteps::Steps::resolve(const PlacedTensor &tensor, const Given &given,
                                                                 char *workspace) const {
  Resolved made;
  made.dtype = tensor.dtype;
  if (!tensor.isCallers()) {
    made.data = workspace + tensor.offset + (tensor.memory == PlacedTensor::Memory::Values ? integerBytes() : 0);
    made.shape.assign(tensor.shape.begin(), tensor.shape.end());
    made.strides.assign(made.shape.size(), 1);
    for (size_t axis = made.shape.size(); axis-- > 1;)
      made.strides[axis - 1] = made.strides[axis] * made.shape[axis];
  } else {
    auto found = given.find(tensor.name);
    if (found == given.end())
      return rt::Error{fmt::format("expected a tensor `{}`, got: none", tensor.name)};
    const TensorView &own = found->second;
    made.data = own.data, made.dtype = own.dtype;
    made.shape.assign(own.shape.begin(), own.shape.end());
    for (int axis = 0; axis < own.rank(); ++axis)
      made.strides.push_back(own.strideOf(axis));
    size_t rank = tensor.isStatistic ? 2 : 3;
    if (tensor.heads >= 0 && made.shape.size() != rank)
      return rt::Error{fmt::format("expected `{}` to be {}, got: {} axes", tensor.name,
                                   tensor.isStatistic ? "[heads, rows]" : "[rows, heads, dim]", made.shape.size())};
  }
  size_t axis = tensor.isStatistic ? 0 : 1;
  if (tensor.heads >= 0) {
    if (tensor.firstHead + tensor.heads > made.shape[axis])
      return rt::Error{fmt::format("expected {} heads or more in `{}`, got: {}", tensor.firstHead + tensor.heads,
                                   tensor.name, made.shape[axis])};
    made.data = static_cast<char *>(made.data) + tensor.firstHead * made.strides[axis] * rt::sizeOf(made.dtype);
    made.shape[axis] = tensor.heads;
  }
  if (tensor.asRows) {
    std::swap(made.shape[0], made.shape[1]), std::swap(made.strides[0], made.strides[1]);
    made.shape.push_back(1), made.strides.push_back(1);
  }
  return made;
}

rt::Result<std::vector<RankSteps::Steps::Resolved>>
RankSteps::Steps::resolve(llvm::ArrayRef<PlacedTensor> tensors, const Given &given, char *workspace) const {
  std::vector<Resolved> all;
  for (const PlacedTensor &tensor : tensors) {
    rt::Result<Resolved> made = resolve(tensor, given, workspace);
    if (!made)
      return made.error();
    all.push_back(std::move(*made));
  }
  return all;
}

static std::vector<TensorView> viewsOf(llvm::ArrayRef<RankSteps::Steps::Resolved> tensors) {
  std::vector<TensorView> views;
  for (const RankSteps::Steps::Resolved &tensor : tensors)
    views.push_back(tensor.view());
  return views;
}

rt::Result<std::unique_ptr<RankSteps>> RankSteps::create(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                                         const plan::CallSequences &sequences,
                                                         const plan::Tables &tables, int64_t rank,
                                                         std::shared_ptr<PlanKernels> kernels) {
  auto steps = std::make_unique<Steps>();
  steps->isHost = kernels->getTarget().isHost();
  BackwardOp pass = plan.getBackward() ? backward : BackwardOp();
  if (plan.getBackward() && !(backward && kernels->haveBackward()))
    return rt::Error{"expected an attn.backward for a plan of gradients, got: none"};
  for (bool ofKeys : {false, true})
    if (int64_t all = llvm::sum_of(sequences.lengths[ofKeys], int64_t(0)); all > INT32_MAX)
      return rt::Error{
          fmt::format("expected up to {} {} of all sequences, got: {}", INT32_MAX, ofKeys ? "keys" : "queries", all)};
  if (rt::Status built = planRank(plan, problem, pass, sequences, tables, rank, *kernels, *steps); !built)
    return built.error();
  return std::unique_ptr<RankSteps>(new RankSteps(std::move(steps)));
}

RankSteps::RankSteps(std::unique_ptr<Steps> steps) : steps(std::move(steps)) {}
RankSteps::~RankSteps() = default;

size_t RankSteps::valueBytes() const { return steps->integerBytes() + steps->values; }

rt::Result<size_t> RankSteps::workspaceBytes(const std::map<std::string, TensorView> &tensors) const {
  size_t most = 0;
  for (const auto &action : steps->actions) {
    const auto *launch = std::get_if<Steps::Launch>(&action);
    if (!launch)
      continue;
    auto memory = steps->resolve(launch->tensors, tensors, nullptr);
    if (!memory)
      return memory.error();
    rt::Result<size_t> bytes = launch->kernel->workspaceBytes(viewsOf(*memory));
    if (!bytes)
      return bytes.error();
    most = std::max(most, *bytes);
  }
  return valueBytes() + most;
}

rt::Status RankSteps::run(const std::map<std::string, TensorView> &tensors, void *workspace, rt::Stream stream,
                          Transport &transport) const {
  char *memory = static_cast<char *>(workspace);
  size_t bytes = steps->integers.size() * sizeof(int32_t);
  if (steps->isHost) {
    std::memcpy(memory, steps->integers.data(), bytes);
  } else if (bytes) {
    rt::Result<const rt::Driver *> driver = rt::Driver::get();
    if (!driver)
      return driver.error();
    if (rt::Status copied = (*driver)->copyToDeviceAsync(rt::DevicePtr(memory), steps->integers.data(), bytes, stream);
        !copied)
      return copied;
  }
  auto messageOf = [&](llvm::ArrayRef<PlacedTensor> parts) -> rt::Result<std::vector<MessagePart>> {
    auto resolved = steps->resolve(parts, tensors, memory);
    if (!resolved)
      return resolved.error();
    std::vector<MessagePart> message;
    for (auto [part, own] : llvm::zip_equal(parts, *resolved))
      message.push_back({own.data, part.bytes()});
    return message;
  };
  for (const auto &action : steps->actions) {
    rt::Status done;
    if (const auto *launch = std::get_if<Steps::Launch>(&action)) {
      auto own = steps->resolve(launch->tensors, tensors, memory);
      if (!own)
        return own.error();
      done = launch->kernel->launch(viewsOf(*own), memory + valueBytes(), stream);
    } else if (const auto *post = std::get_if<Steps::Post>(&action)) {
      auto sent = messageOf(post->sent), received = messageOf(post->received);
      if (!sent || !received)
        return sent ? received.status() : sent.status();
      done = transport.post(post->number, post->to, *sent, post->from, *received, stream);
    } else {
      done = transport.wait(std::get<Steps::Wait>(action).number, stream);
    }
    if (!done)
      return done;
  }
  return transport.finish(stream);
}
