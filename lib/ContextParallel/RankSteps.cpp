// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the steps of a rank.
//
#include "RankSteps.h"
#include "attn-rt/Placement.h"
#include <atomic>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>
#include <thread>

using namespace attn;

size_t PlacedTensor::bytes() const {
  size_t all = rt::sizeOf(dtype);
  for (int64_t extent : shape)
    all *= extent;
  return all;
}

rt::Result<RankSteps::Steps::Resolved> RankSteps::Steps::resolve(const PlacedTensor &tensor, const Given &given,
                                                                 char *values) const {
  Resolved made;
  made.dtype = tensor.dtype;
  if (!tensor.isCallers()) {
    char *own =
        driver ? reinterpret_cast<char *>(onDevice) : reinterpret_cast<char *>(const_cast<int32_t *>(integers.data()));
    made.data = (tensor.memory == PlacedTensor::Memory::Values ? values : own) + tensor.offset;
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

rt::Result<std::vector<RankSteps::Steps::Resolved>> RankSteps::Steps::resolve(llvm::ArrayRef<PlacedTensor> tensors,
                                                                              const Given &given, char *values) const {
  std::vector<Resolved> all;
  for (const PlacedTensor &tensor : tensors) {
    rt::Result<Resolved> made = resolve(tensor, given, values);
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

// A caller may drop a plan while a stream is captured, where neither memory nor modules can be freed: this waits for
// the next plan that is made.
static std::mutex retiredMutex;
static std::vector<std::unique_ptr<RankSteps::Steps>> &retired() {
  static auto *steps = new std::vector<std::unique_ptr<RankSteps::Steps>>; // what is left at exit goes with the process
  return *steps;
}

static constexpr int64_t mostRows = int64_t(1) << 30; ///< of a tensor (attn-c/Tensor.h)

static void freeRetired() {
  std::vector<std::unique_ptr<RankSteps::Steps>> all;
  std::lock_guard<std::mutex> lock(retiredMutex);
  all.swap(retired());
}

rt::Result<std::unique_ptr<RankSteps>> RankSteps::lower(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                                                        const plan::CallSequences &sequences,
                                                        const plan::Tables &tables, int64_t rank,
                                                        std::shared_ptr<PlanKernels> kernels) {
  freeRetired();
  auto steps = std::make_unique<Steps>();
  BackwardOp pass = plan.getBackward() ? backward : BackwardOp();
  if (plan.getBackward() && !(backward && kernels->haveBackward()))
    return rt::Error{"expected an attn.backward for a plan of gradients, got: none"};
  for (bool ofKeys : {false, true})
    if (int64_t all = llvm::sum_of(sequences.lengths[ofKeys], int64_t(0)); all > INT32_MAX)
      return rt::Error{
          fmt::format("expected up to {} {} of all sequences, got: {}", INT32_MAX, ofKeys ? "keys" : "queries", all)};
  for (bool ofKeys : {false, true})
    if (const plan::Shard &shard = tables.shardOf(ofKeys, rank); shard.rows > mostRows)
      return rt::Error{fmt::format("expected up to {} rows of a rank, got: {}", mostRows, shard.rows)};
  if (rt::Status built = planRank(plan, problem, pass, sequences, tables, rank, *kernels, *steps); !built)
    return built.error();
  if (!kernels->getTarget().isHost())
    if (rt::Status placed = steps->place(); !placed)
      return placed.error();
  return std::unique_ptr<RankSteps>(new RankSteps(std::move(steps)));
}

bool RankSteps::isBuilt() const {
  return llvm::all_of(steps->actions, [](const auto &action) {
    const auto *launch = std::get_if<Steps::Launch>(&action);
    return !launch || launch->kernel->isBuilt();
  });
}

rt::Status RankSteps::build() { return steps->build(); }

RankSteps::RankSteps(std::unique_ptr<Steps> steps) : steps(std::move(steps)) {}

RankSteps::~RankSteps() {
  if (!steps->driver)
    return;
  std::lock_guard<std::mutex> lock(retiredMutex);
  retired().push_back(std::move(steps));
}

static std::string shapeText(llvm::ArrayRef<int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

rt::Status RankSteps::Steps::checkShapes(const Given &given) const {
  for (const auto &[name, tensor] : given)
    if (auto found = shapes.find(name); found != shapes.end())
      if (llvm::ArrayRef<int64_t> own(tensor.shape.data(), tensor.shape.size()), expected = found->second;
          own != expected)
        return rt::Error{fmt::format("expected `{}` to be {}, the rows of rank {}, got: {}", name, shapeText(expected),
                                     rank, shapeText(own))}
            .as(rt::ErrorKind::Tensor);
  return {};
}

rt::Status RankSteps::Steps::place() {
  rt::Result<const rt::Driver *> opened = rt::Driver::get();
  if (!opened)
    return opened.error();
  rt::Result<rt::Context> current = (*opened)->ensureContext();
  rt::Result<rt::DevicePtr> memory = (*opened)->alloc(integers.size() * sizeof(int32_t));
  if (!current || !memory)
    return current ? memory.status() : current.status();
  driver = *opened, context = *current, onDevice = *memory;
  if (rt::Status copied = driver->copyToDevice(onDevice, integers.data(), integers.size() * sizeof(int32_t)); !copied)
    return copied;
  return driver->synchronize(nullptr); // other streams do not wait for such a copy
}

/// Compiling a kernel takes a second or two. Kernels are loaded, too: where ranks are threads of one process, a rank
/// that loads one in a run holds others up, and its context waits for messages that these would send.
rt::Status RankSteps::Steps::build() const {
  std::vector<const Kernel *> kernels;
  for (const auto &action : actions)
    if (const auto *launch = std::get_if<Launch>(&action))
      if (!llvm::is_contained(kernels, launch->kernel.get()))
        kernels.push_back(launch->kernel.get());
  std::vector<rt::Status> built(kernels.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    std::optional<rt::Result<rt::StreamContext>> inside;
    if (driver)
      inside.emplace(rt::StreamContext::enter(*driver, nullptr, context));
    for (size_t i; (i = next++) < kernels.size();) {
      built[i] = kernels[i]->isBuilt() ? rt::Status() : kernels[i]->build();
      if (built[i])
        built[i] = kernels[i]->prepare();
    }
  };
  size_t unbuilt = llvm::count_if(kernels, [](const Kernel *kernel) { return !kernel->isBuilt(); });
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(unbuilt, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  for (const rt::Status &status : built)
    if (!status)
      return status;
  return {};
}

RankSteps::Steps::~Steps() {
  if (!onDevice)
    return;
  auto inside = rt::StreamContext::enter(*driver, nullptr, context);
  (void)driver->free(onDevice);
}

rt::Status RankSteps::Steps::clear(const TensorView &tensor, rt::Stream stream) const {
  int64_t numbers = 1;
  for (int axis = tensor.rank(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strideOf(axis) != numbers)
      return rt::Error{fmt::format("expected a contiguous gradient of an array, got: stride {} of axis {} of {}",
                                   tensor.strideOf(axis), axis, tensor.rank())}
          .as(rt::ErrorKind::Tensor);
    numbers *= tensor.shape[axis];
  }
  const size_t bytes = numbers * rt::sizeOf(tensor.dtype);
  if (driver)
    return driver->fill(reinterpret_cast<rt::DevicePtr>(tensor.data), 0, bytes, stream);
  std::memset(tensor.data, 0, bytes);
  return {};
}

ReceivePlan RankSteps::Steps::receivePlan() const {
  ReceivePlan plan;
  plan.bytes = values;
  for (const auto &action : actions)
    if (const auto *post = std::get_if<Post>(&action); post && !post->received.empty()) {
      plan.messages.push_back({post->number, post->from, {}});
      for (const PlacedTensor &part : post->received)
        plan.messages.back().offsets.push_back(part.offset);
    }
  return plan;
}

size_t RankSteps::valueBytes() const { return steps->values; }

rt::Result<size_t> RankSteps::workspaceBytes(const std::map<std::string, TensorView> &tensors) const {
  if (rt::Status right = steps->checkShapes(tensors); !right)
    return right.error();
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
  return most + (route ? 0 : steps->values);
}

rt::Status RankSteps::run(const std::map<std::string, TensorView> &tensors, void *workspace, rt::Stream stream,
                          Transport &transport) const {
  if (rt::Status right = steps->checkShapes(tensors); !right)
    return right;
  if (reinterpret_cast<uintptr_t>(workspace) % 256)
    return rt::Error{fmt::format("expected a workspace aligned to 256 bytes, got: {}", workspace)};
  if (rt::Result<size_t> bytes = workspace ? rt::Result<size_t>(0) : workspaceBytes(tensors); !bytes || *bytes)
    return bytes ? rt::Error{fmt::format("expected a workspace of {} bytes, got: NULL", *bytes)} : bytes.error();
  std::optional<rt::Result<rt::StreamContext>> inside;
  if (steps->driver) {
    inside.emplace(rt::StreamContext::enter(*steps->driver, stream, steps->context));
    if (!*inside)
      return inside->error();
  }
  rt::Result<void *> begun = transport.begin(steps->names, route.get(), stream);
  if (!begun)
    return begun.error();
  rt::Status done = runSteps(tensors, static_cast<char *>(*begun), static_cast<char *>(workspace), stream, transport);
  if (done)
    done = transport.finish(stream);
  if (!done)
    transport.abandon(done.error());
  return done;
}

rt::Status RankSteps::runSteps(const std::map<std::string, TensorView> &tensors, char *values, char *workspace,
                               rt::Stream stream, Transport &transport) const {
  if (!values)
    values = workspace, workspace += steps->values;
  auto messageOf = [&](llvm::ArrayRef<PlacedTensor> parts) -> rt::Result<std::vector<MessagePart>> {
    auto resolved = steps->resolve(parts, tensors, values);
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
      auto own = steps->resolve(launch->tensors, tensors, values);
      if (!own)
        return own.error();
      done = launch->kernel->launch(viewsOf(*own), workspace, stream);
    } else if (const auto *post = std::get_if<Steps::Post>(&action)) {
      auto sent = messageOf(post->sent), received = messageOf(post->received);
      if (!sent || !received)
        return sent ? received.status() : sent.status();
      done = transport.post(post->number, post->to, *sent, post->from, *received, stream);
    } else if (const auto *wait = std::get_if<Steps::Wait>(&action)) {
      done = transport.wait(wait->number, wait->from, wait->to, stream);
    } else {
      auto own = steps->resolve(std::get<Steps::Clear>(action).tensor, tensors, values);
      done = own ? steps->clear(own->view(), stream) : own.status();
    }
    if (!done)
      return done;
  }
  return {};
}
