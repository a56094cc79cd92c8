// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/LoadedProgram.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <optional>

using namespace attn::rt;

bool attn::rt::checksArrays() {
  static const bool asked = [] {
    const char *value = std::getenv("ATTN_CHECK_ARRAYS");
    return value && *value && std::string_view(value) != "0";
  }();
  return asked;
}

static ThreadPool &processThreads() {
  static ThreadPool pool;
  return pool;
}

//===--------------------------------------------------------------------===//
// Code
//===--------------------------------------------------------------------===//

Status LoadedProgram::Code::load(const Kernel &kernel) {
  if (kernel->artifact.isHost()) {
    auto module = HostModule::load(kernel);
    if (module)
      host = *module;
    return module.status();
  }
  auto module = Module::load(kernel);
  if (module)
    gpu = *module;
  return module.status();
}

Status LoadedProgram::Code::launch(const BoundStep &step, const Module::Place &place, StreamState &stream) const {
  if (host)
    return run(*host, processThreads(), step.pointers.data(), step.blocks);
  return launchHere(*gpu, place, step.pointers.data(), step.blocks, stream);
}

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::load(Program program, std::vector<Kernel> kernels,
                                                                 const Repair &repair) {
  if (kernels.empty() || kernels.size() != program.kernels.size())
    return Error{
        fmt::format("expected {} kernels of a program, got: {}", program.kernels.size(), kernels.size()), {}, {}};
  auto loaded = std::make_shared<LoadedProgram>();
  Result<ProgramCode> code = ProgramCode::compile(std::move(program));
  if (!code)
    return code.error();
  loaded->programCode = std::move(*code);
  for (Kernel &kernel : kernels) {
    Code &own = loaded->modules.emplace_back();
    Status status = own.load(kernel);
    if (!status && status.error().isBinary && repair) {
      Result<Kernel> other = repair(*kernel);
      if (!other)
        return other.error();
      kernel = std::move(*other);
      status = own.load(kernel);
    }
    if (!status)
      return status.error();
  }
  loaded->binaries = std::move(kernels);
  loaded->reached = std::max(loaded->code().program().tensorNamed("q"), 0); // segments alone have none
  return std::shared_ptr<const LoadedProgram>(std::move(loaded));
}

//===--------------------------------------------------------------------===//
// Sizes
//===--------------------------------------------------------------------===//

/// What a launch may find where it runs, which its stream decides: multiprocessors of each device.
static const Result<std::vector<int>> &multiprocessorCounts() {
  static const Result<std::vector<int>> counts = []() -> Result<std::vector<int>> {
    Result<const Driver *> driver = Driver::get();
    if (!driver)
      return driver.error();
    return (*driver)->multiprocessorCounts();
  }();
  return counts;
}

Result<size_t> attn::rt::workspaceBytes(const ProgramCode &code, bool isHost, std::span<const TensorView> tensors,
                                        int multiprocessors) {
  std::vector<int64_t> sizes = code.makeSizes();
  if (Status read = code.readSizes(tensors, Given::Inputs, sizes.data()); !read)
    return read.error();
  if (multiprocessors < 0)
    return Error{fmt::format("expected a number of multiprocessors, or 0, got: {}", multiprocessors), {}, {}};
  auto bytesFor = [&](int64_t count) {
    sizes[0] = count;
    code.computeSizes(sizes.data());
    return code.workspaceBytes(sizes.data());
  };
  if (isHost || multiprocessors)
    return bytesFor(isHost ? processThreads().size() : multiprocessors);
  if (!multiprocessorCounts())
    return multiprocessorCounts().error();
  size_t most = 0;
  for (int count : *multiprocessorCounts())
    most = std::max(most, bytesFor(count));
  return most;
}

//===--------------------------------------------------------------------===//
// Launch
//===--------------------------------------------------------------------===//

Status LoadedProgram::prepare() const {
  for (const Code &own : modules)
    if (own.gpu)
      if (Result<Module::Place> place = own.gpu->prepare(); !place)
        return place.status();
  return {};
}

Status LoadedProgram::launch(std::span<const TensorView> tensors, void *workspace, Stream stream, bool again) const {
  static thread_local std::vector<int64_t> sizes; // which keep their memory
  static thread_local std::vector<BoundStep> steps;
  static thread_local std::vector<Module::Place> places;
  if (code().hasExchanges() || !code().program().tables.empty())
    return Error{fmt::format("expected a program without exchanges and tables, since this launch has neither a "
                             "communicator nor tables, got: `{}`",
                             code().program().name),
                 {},
                 {}};
  code().startSizes(sizes);
  if (Status read = code().readSizes(tensors, Given::Memory, sizes.data()); !read)
    return read;
  if (Status apart = code().checkApart(tensors); !apart)
    return apart;
  std::optional<Result<StreamContext>> context; // current until all is done
  places.assign(modules.size(), {});
  if (!isHost()) {
    if (context.emplace(modules.front().gpu->enter(stream)); !*context)
      return context->status();
    for (size_t i = 0; i < modules.size(); ++i) { // tensor maps are encoded for a context, which a new thread has not
      Result<Module::Place> found = modules[i].gpu->prepare();
      if (!found)
        return found.status();
      places[i] = *found;
    }
  }
  const bool asked = checksArrays();
  for (int i = 0; !isHost() && i < static_cast<int>(tensors.size()); ++i)
    if (asked || i == reached)
      if (Status reach = checkReach(tensors[static_cast<size_t>(i)], code().program().nameOf(i), places[0].device);
          !reach)
        return reach;
  sizes[0] = isHost() ? processThreads().size() : places[0].multiprocessors;
  code().computeSizes(sizes.data());
  auto read = [&](int tensor) { return contentsOf(tensors[static_cast<size_t>(tensor)], stream); };
  if (asked || isHost()) // host memory costs nothing to look at
    if (Status fits = code().checkArrays(read, sizes.data()); !fits)
      return fits;
  if (asked && !isHost() && code().workspaceBytes(sizes.data()))
    if (Status reach = checkReach({workspace, Dtype::F32, {}, {}}, "workspace", places[0].device); !reach)
      return reach;
  // All of them first: what fails, fails before anything runs.
  if (Status bound = code().bind(tensors.data(), workspace, sizes.data(), steps); !bound)
    return bound;
  StreamState state(stream);
  for (const BoundStep &step : steps) {
    if (again && step.reusable)
      continue;
    const size_t kernel = static_cast<size_t>(std::max(step.kernel, 0));
    bool launches = step.kind == BoundStep::Kind::Launch;
    Status status = launches ? modules[kernel].launch(step, places[kernel], state) : zero(step, stream);
    if (!status)
      return status;
  }
  return {};
}

Status LoadedProgram::checkReach(const TensorView &view, std::string_view name, int device) const {
  if (view.isEmpty())
    return {};
  Result<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.status();
  return attn::rt::checkReach(**driver, reinterpret_cast<DevicePtr>(view.data), device, name);
}

Status LoadedProgram::zero(const BoundStep &step, Stream stream) const {
  for (auto [data, bytes] : step.zeroed) {
    if (isHost()) {
      std::memset(data, 0, bytes);
      continue;
    }
    Result<const Driver *> driver = Driver::get();
    if (!driver)
      return driver.status();
    if (Status status = (*driver)->fill(reinterpret_cast<DevicePtr>(data), 0, bytes, stream); !status)
      return status;
  }
  return {};
}

//===--------------------------------------------------------------------===//
// Contents
//===--------------------------------------------------------------------===//

Status LoadedProgram::copyToHost(void *bytes, size_t count, const TensorView &view, Stream stream) const {
  if (count == 0)
    return {};
  if (isHost()) {
    std::memcpy(bytes, view.data, count);
    return {};
  }
  Result<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.status();
  Result<StreamContext> context = modules.front().gpu->enter(stream);
  if (!context)
    return context.status();
  if (Status done = (*driver)->synchronizeContext(); !done)
    return done;
  return (*driver)->copyToHost(bytes, reinterpret_cast<DevicePtr>(view.data), count);
}

Result<std::vector<int32_t>> LoadedProgram::contentsOf(const TensorView &view, Stream stream) const {
  std::vector<int32_t> values(static_cast<size_t>(view.elements()));
  Status copied = copyToHost(values.data(), values.size() * sizeof(int32_t), view, stream);
  if (!copied)
    return copied.error();
  return values;
}
