// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Workload.h"
#include <cmath>
#include <numeric>

using namespace attn;
using namespace attn::bench;

static int64_t total(const std::vector<int64_t> &lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
}

std::optional<double> bench::flopsOf(ProblemOp problem, const reference::InputSizes &sizes) {
  MaskInterface mask = problem.getMask();
  if (!distinctOperands(mask).empty())
    return std::nullopt;
  bool packedQ = problem.getQLayout().isPacked(), packedKv = problem.getKLayout().isPacked();
  int64_t batch = packedQ ? sizes.lengthsQ.size() : packedKv ? sizes.lengthsKv.size() : sizes.batch;
  double pairs = 0, before = 0;
  for (int64_t b = 0, lastQ = -1, lastKv = -1; b < batch; ++b, pairs += before) {
    int64_t lenQ = packedQ ? sizes.lengthsQ[b] : sizes.seqlenQ, lenKv = packedKv ? sizes.lengthsKv[b] : sizes.seqlenKv;
    if (lenQ == lastQ && lenKv == lastKv)
      continue;
    MaskScope scope{Index::position(lenQ), Index::position(lenKv), 0, 0, {}};
    before = 0, lastQ = lenQ, lastKv = lenKv;
    for (int64_t q = 0; q < lenQ; ++q)
      before += countKeys(mask, scope, q);
  }
  return 2 * pairs * problem.getHeads() * (problem.getDimQk() + problem.getDimV());
}

/// Values that look random: a block of normal ones, repeated (a prime
/// length, so that rows differ).
static reference::Tensor randomTensor(reference::Dtype dtype, llvm::ArrayRef<int64_t> shape, uint64_t seed) {
  reference::Tensor tensor(dtype, shape), block(dtype, {std::min<int64_t>(tensor.numElements(), 1048573)});
  block.fillNormal(seed);
  auto bytes = tensor.bytes();
  for (size_t at = 0; at < bytes.size(); at += block.bytes().size())
    std::copy_n(block.bytes().data(), std::min(block.bytes().size(), bytes.size() - at), bytes.data() + at);
  return tensor;
}

static rt::Error asError(llvm::Error error) { return {llvm::toString(std::move(error))}; }

rt::Status Workload::findMemory(const Kernel &kernel) {
  if (kernel.isHost())
    return {};
  auto found = rt::Driver::get();
  if (found)
    driver = *found;
  return found.status();
}

/// The array of queries in whose memory an array of keys may lie.
static std::string queriesOf(llvm::StringRef name) {
  return name.consume_back("_kv") ? (name + "_q").str() : name.str();
}

rt::Result<std::unique_ptr<Workload>> Workload::create(const Kernel &kernel,
                                                       const llvm::StringMap<reference::Tensor> &inputs) {
  std::unique_ptr<Workload> work(new Workload);
  if (rt::Status found = work->findMemory(kernel); !found)
    return found.error();
  const std::vector<rt::Program::Tensor> &tensors = kernel.getTensors();
  llvm::SmallVector<TensorView> given;
  for (const rt::Program::Tensor &spec : tensors) {
    auto it = inputs.find(spec.name);
    if (it == inputs.end())
      it = inputs.find(queriesOf(spec.name));
    if (!spec.isResult() && it == inputs.end())
      return rt::Error{"expected a tensor `" + spec.name + "`, got: none"};
    given.push_back({nullptr, spec.dtype, {}, {}});
    if (!spec.isResult())
      given.back().shape = it->second.shape();
  }
  rt::Result<std::vector<std::vector<int64_t>>> shapes = kernel.shapesOf(given);
  if (!shapes)
    return shapes.error();
  for (auto [spec, shape] : llvm::zip_equal(tensors, *shapes)) {
    auto it = inputs.find(spec.name);
    if (!spec.isResult() && it == inputs.end()) {
      int other = kernel.indexOf(queriesOf(spec.name));
      work->shapes.push_back(work->shapes[other]);
      work->views.push_back(work->views[other]);
      continue;
    }
    reference::Tensor result;
    if (spec.isResult()) {
      result = reference::Tensor(reference::Dtype::I32, shape);
      llvm::fill(result.bytes(), char(0x5a));
    }
    if (rt::Status s = work->add(spec, spec.isResult() ? result : it->second); !s)
      return s.error();
  }
  for (auto [view, shape] : llvm::zip(work->views, work->shapes))
    view.shape = shape;
  return work;
}

rt::Result<std::unique_ptr<Workload>> Workload::create(const Kernel &kernel, Computation computation,
                                                       const reference::InputSizes &wanted) {
  std::unique_ptr<Workload> work(new Workload);
  if (rt::Status found = work->findMemory(kernel); !found)
    return found.error();
  ProblemOp problem = computation.problem;
  LayoutAttr q = problem.getQLayout(), k = problem.getKLayout();
  Sizes sizes{wanted.batch, wanted.seqlenQ, wanted.seqlenKv};
  for (auto [layout, lengths, rows] :
       {std::tuple(q, &wanted.lengthsQ, &sizes.rowsQ), std::tuple(k, &wanted.lengthsKv, &sizes.rowsKv)})
    if (layout.isPacked())
      sizes.batch = lengths->size(), *rows = total(*lengths);
  reference::Tensors tensors;
  uint64_t seed = 1;
  // Where padding lies is not known yet. Of gradients, o and lse are made up, too: the time does not depend on them.
  for (const ProblemTensor &spec : tensorsOf(computation))
    if (spec.role == ProblemTensor::Operand && !(spec.name == "k" || spec.name == "v" ? k : q).getPadded())
      tensors[spec.name] =
          randomTensor(spec.element == ProblemTensor::Data ? reference::dtypeOf(problem) : reference::Dtype::F32,
                       spec.shape(computation, sizes), seed++);
  if (llvm::Error error = reference::addMissingInputs(computation, wanted, seed, tensors))
    return asError(std::move(error));
  auto made = reference::checkTensors(computation, tensors);
  if (!made)
    return asError(made.takeError());
  for (auto &result : reference::poisonedResults(computation, *made))
    tensors[result.getKey()] = std::move(result.getValue());
  for (const rt::Program::Tensor &spec : kernel.getTensors()) {
    if (spec.name == "o")
      work->output = tensors[spec.name], work->outputIndex = work->shapes.size();
    if (rt::Status s = work->add(spec, tensors[spec.name]); !s)
      return s.error();
  }
  for (auto [view, shape] : llvm::zip(work->views, work->shapes))
    view.shape = shape;
  return work;
}

Workload::~Workload() {
  for (rt::DevicePtr ptr : device)
    (void)driver->free(ptr);
  if (deviceWorkspace)
    (void)driver->free(deviceWorkspace);
}

rt::Status Workload::launch(const Kernel &kernel, rt::Stream stream) const {
  rt::Result<size_t> needed = kernel.workspaceBytes(views);
  if (!needed)
    return needed.status();
  if (*needed > workspaceSize) { // not in the middle of what is timed: a kernel's first launch warms up
    if (deviceWorkspace)
      (void)driver->free(deviceWorkspace);
    deviceWorkspace = 0, workspaceSize = 0;
    if (driver) {
      rt::Result<rt::DevicePtr> made = driver->alloc(*needed);
      if (!made)
        return made.status();
      deviceWorkspace = *made;
    } else {
      hostWorkspace.resize(*needed);
    }
    workspaceSize = *needed;
  }
  return kernel.launch(views, driver ? reinterpret_cast<void *>(deviceWorkspace) : hostWorkspace.data(), stream);
}

rt::Status Workload::add(const rt::Program::Tensor &spec, const reference::Tensor &tensor) {
  llvm::ArrayRef<char> from = tensor.bytes();
  void *data = nullptr;
  if (driver) {
    auto ptr = driver->alloc(from.size());
    if (!ptr)
      return ptr.status();
    device.push_back(*ptr);
    if (rt::Status s = driver->copyToDevice(*ptr, from.data(), from.size()); !s)
      return s;
    data = reinterpret_cast<void *>(*ptr);
  } else {
    host.emplace_back(from.begin(), from.end());
    data = host.back().data();
  }
  bytes += from.size();
  shapes.emplace_back(tensor.shape());
  views.push_back({data, spec.dtype, {}, {}});
  return {};
}

rt::Result<reference::Tensor> Workload::outputOf(const Kernel &kernel) const {
  reference::Tensor tensor = output;
  llvm::MutableArrayRef<char> bytes = tensor.bytes();
  if (!driver) {
    char *data = static_cast<char *>(views[outputIndex].data);
    llvm::copy(bytes, data);
    if (rt::Status s = launch(kernel, nullptr); !s)
      return s.error();
    std::copy_n(data, bytes.size(), bytes.data());
    return tensor;
  }
  rt::DevicePtr data = device[outputIndex];
  rt::Status status = driver->copyToDevice(data, bytes.data(), bytes.size());
  if (status)
    status = launch(kernel, nullptr);
  if (status)
    status = driver->synchronizeContext();
  if (status)
    status = driver->copyToHost(bytes.data(), data, bytes.size());
  if (!status)
    return status.error();
  return tensor;
}

double bench::distance(const reference::Tensor &actual, const reference::Tensor &expected) {
  int64_t elements = expected.numElements(), step = (elements >> 18) | 1;
  double apart = 0, size = 0;
  for (int64_t i = 0; i < elements; i += step) {
    double x = actual.load(i), y = expected.load(i);
    apart += (x - y) * (x - y), size += y * y;
  }
  return std::isfinite(apart) ? size ? std::sqrt(apart / size) : apart : INFINITY;
}
