// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Jit.h"
#include "attn/Reference/Segments.h"
#include "attn-rt/Driver.h"
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <mutex>

using namespace attn;

rt::Cache &attn::processCache() {
  static rt::Cache cache;
  return cache;
}

static rt::ThreadPool &processThreads() {
  static rt::ThreadPool pool;
  return pool;
}

/// One context for the process: making one costs a millisecond, a problem less.
static rt::Result<Program> compileProgram(llvm::StringRef text, llvm::StringRef problem, const Target &target,
                                          int fallback, std::optional<LaunchHint> hint = {}) {
  static std::mutex mutex;
  static Compilation *compilation =
      new Compilation; // lives as long as the process: no order of destruction to get wrong
  std::lock_guard<std::mutex> lock(mutex);
  return compilation->compile(text, problem, target, fallback, "problem", hint);
}

using ReproducerFiles = std::vector<std::pair<std::string, std::string>>;

/// `program`: of a fallback.
static rt::Result<CompiledProgram> buildThrough(rt::Cache &cache, const ReproducerFiles &files, llvm::function_ref<rt::Result<Program>(int)> program) {
  auto build = [&](const rt::Artifact &artifact) {
    return cache.get(*rt::createCompiler(artifact.target), artifact, [&] { return files; });
  };
  return buildFitting(program, build);
}

rt::Result<CompiledProgram> attn::compileThrough(rt::Cache &cache, llvm::StringRef text, llvm::StringRef problem,
                                                 const Target &target) {
  return buildThrough(cache, {{"problem.mlir", text.str()}, {"target", target.str()}},
                      [&](int fallback) { return compileProgram(text, problem, target, fallback); });
}

std::string Kernel::getSource() const {
  std::string text;
  for (const rt::Artifact &artifact : program.kernels)
    text += artifact.source;
  return text;
}

std::string Kernel::getResources() const {
  std::string text;
  for (const auto &binary : compiled)
    text += (text.empty() ? "" : "; ") +
            (compiled.size() == 1 ? "" : binary->artifact.name + ": ") + binary->report.str();
  return text;
}

rt::Status Kernel::Loaded::load(const std::shared_ptr<const rt::CompiledKernel> &binary) {
  if (binary->artifact.isHost()) {
    auto module = rt::HostModule::load(binary);
    if (!module)
      return module.error();
    host = *module;
    return {};
  }
  auto module = rt::Module::load(binary);
  if (!module)
    return module.error();
  gpu = *module;
  return {};
}

rt::Status Kernel::Loaded::launch(const rt::BoundStep &step, rt::Stream stream) const {
  if (host)
    return rt::run(*host, processThreads(), step.pointers.data(), step.blocks);
  return rt::launchHere(*gpu, step.pointers.data(), step.blocks, stream);
}

rt::Result<std::shared_ptr<Kernel>> Kernel::create(llvm::StringRef text, llvm::StringRef problem,
                                                   const Target &target) {
  rt::Result<CompiledProgram> compiled = compileThrough(processCache(), text, problem, target);
  if (!compiled)
    return compiled.error();
  return load(text, problem, target, std::move(*compiled));
}

rt::Result<std::shared_ptr<Kernel>> Kernel::load(llvm::StringRef text, llvm::StringRef problem, const Target &target, CompiledProgram compiled) {
  auto kernel = std::make_shared<Kernel>();
  kernel->text = text.str(), kernel->name = problem.str(), kernel->target = target;
  kernel->program = std::move(compiled.program);
  rt::Result<rt::ProgramCode> code = rt::ProgramCode::compile(kernel->program.steps);
  if (!code)
    return code.error();
  kernel->code = std::move(*code);
  for (const std::string &name : llvm::ArrayRef(kernel->code.sizes()).take_front(kernel->code.given()))
    kernel->sizeSources.push_back(SizeSource::of(name));
  kernel->compiled = std::move(compiled.kernels);
  for (auto &binary : kernel->compiled) {
    rt::Status status = kernel->loaded.emplace_back().load(binary);
    if (!status && status.error().isBinary && binary->origin == rt::CompiledKernel::Origin::Disk) {
      // Its checksums hold, and yet it is no such kernel: as damaged as any.
      ReproducerFiles files = {{"problem.mlir", kernel->text}, {"target", target.str()}};
      auto again = processCache().rebuild(*rt::createCompiler(binary->artifact.target), *binary, [&] { return files; });
      if (!again)
        return again.error();
      binary = std::move(*again);
      status = kernel->loaded.back().load(binary);
    }
    if (!status)
      return status.error();
  }
  return kernel;
}

rt::Result<const Kernel *> Kernel::programFor(const Sizes &sizes) const {
  std::optional<LaunchHint> hint = hintOf(program.hintSource, program.signature.fixed, sizes);
  if (!hint)
    return this;
  auto known = [&]() -> const Kernel * {
    auto found = hinted.kernels.find(*hint);
    return found == hinted.kernels.end() ? nullptr : found->second ? found->second.get() : this;
  };
  {
    std::lock_guard<std::mutex> lock(hinted.mutex);
    if (const Kernel *kernel = known())
      return kernel;
  }
  rt::Result<Program> tried = compileProgram(text, name, target, /*fallback=*/0, hint);
  if (!tried)
    return tried.error();
  rt::Result<bool> isWorth = isWorthKernels(*tried, program, [&] { return compileProgram(text, name, target, /*fallback=*/0); });
  if (!isWorth)
    return isWorth.error();
  std::shared_ptr<Kernel> made;
  if (*isWorth) {
    auto compiled = buildThrough(processCache(), {{"problem.mlir", text}, {"target", target.str()}, {"hint", hint->str()}}, [&](int fallback) {
      return fallback ? compileProgram(text, name, target, fallback, hint) : std::move(tried);
    });
    if (!compiled)
      return compiled.error();
    auto loaded = load(text, name, target, std::move(*compiled));
    if (!loaded)
      return loaded.error();
    made = std::move(*loaded);
  }
  std::lock_guard<std::mutex> lock(hinted.mutex);
  hinted.kernels.try_emplace(*hint, std::move(made)); // unless another thread was first
  return known();
}

rt::Result<const std::string *> Kernel::getSchedule(const Sizes &sizes) const {
  rt::Result<const Kernel *> kernel = programFor(sizes);
  if (!kernel)
    return kernel.error();
  return &(*kernel)->getSchedule();
}

Kernel::SizeSource Kernel::SizeSource::of(llvm::StringRef name) {
  static constexpr std::pair<llvm::StringLiteral, int64_t Sizes::*> members[] = {
      {"batch", &Sizes::batch},
      {"seqlen_q", &Sizes::rowsQ},
      {"total_q", &Sizes::rowsQ},
      {"seqlen_kv", &Sizes::rowsKv},
      {"total_kv", &Sizes::rowsKv},
      {"id_rows", &Sizes::idRows},
      {"tokens_q", &Sizes::tokensQ},
      {"tokens_kv", &Sizes::tokensKv},
      {"positions_q_rows", &Sizes::positionRowsQ},
      {"positions_kv_rows", &Sizes::positionRowsKv}};
  for (auto [own, member] : members)
    if (own == name)
      return {member, ""};
  if (name.consume_back("_entries"))
    return {nullptr, name.str()};
  return {nullptr, ""}; // multiprocessors
}

llvm::SmallVector<int64_t, 16> Kernel::valuesOf(const Sizes &sizes, int multiprocessors) const {
  llvm::SmallVector<int64_t, 16> values(code.sizes().size());
  for (auto [source, value] : llvm::zip(sizeSources, values)) {
    if (source.member) {
      value = sizes.*source.member;
    } else if (source.array.empty()) {
      value = isHost() ? processThreads().size() : multiprocessors;
    } else {
      auto entries = sizes.entries.find(source.array);
      value = entries == sizes.entries.end() ? 0 : entries->second;
    }
  }
  code.computeSizes(values.data());
  return values;
}

/// What a launch may find where it runs, which its stream decides: multiprocessors of each device.
static const rt::Result<std::vector<int>> &multiprocessorCounts() {
  static const rt::Result<std::vector<int>> counts = []() -> rt::Result<std::vector<int>> {
    rt::Result<const rt::Driver *> driver = rt::Driver::get();
    if (!driver)
      return driver.error();
    return (*driver)->multiprocessorCounts();
  }();
  return counts;
}

rt::Result<size_t> Kernel::workspaceBytes(const Sizes &given) const {
  rt::Result<const Kernel *> kernel = programFor(given);
  if (!kernel)
    return kernel.error();
  std::vector<int> counts = {0};
  if (!isHost()) {
    if (!multiprocessorCounts())
      return multiprocessorCounts().error();
    counts = *multiprocessorCounts();
  }
  size_t most = 0;
  for (int multiprocessors : counts)
    most = std::max(most, (*kernel)->code.workspaceBytes((*kernel)->valuesOf(given, multiprocessors).data()));
  return most;
}

rt::Status Kernel::launch(llvm::ArrayRef<TensorView> given, void *memory, rt::Stream stream, bool again) const {
  rt::Result<Sizes> sizes = program.signature.check(given);
  if (!sizes)
    return sizes.error();
  if (rt::Status apart = program.signature.checkApart(given); !apart)
    return apart.error();
  std::optional<rt::Result<rt::StreamContext>> context; // current until all is done
  if (!isHost())
    if (context.emplace(main().gpu->enter(stream)); !*context)
      return context->error();
  rt::Result<const Kernel *> kernel = programFor(*sizes);
  if (!kernel)
    return kernel.error();
  return (*kernel)->launch(given, std::move(*sizes), memory, stream, again);
}

rt::Status Kernel::launch(llvm::ArrayRef<TensorView> given, Sizes sizes, void *memory, rt::Stream stream,
                          bool again) const {
  static const bool asked = [] {
    const char *value = std::getenv("ATTN_CHECK_ARRAYS");
    return value && llvm::StringRef(value) != "" && llvm::StringRef(value) != "0";
  }();
  rt::Module::Place place = {};
  for (const Loaded &kernel : loaded) // tensor maps are encoded for a context, which a new thread has not
    if (kernel.gpu) {
      rt::Result<rt::Module::Place> found = kernel.gpu->prepare();
      if (!found)
        return found.error();
      place = *found;
    }
  if (!isHost())
    if (rt::Status status = checkReach(given, /*all=*/asked, place.device); !status)
      return status;
  if (asked || isHost()) // host memory costs nothing to look at
    if (rt::Status status = checkArrays(given, sizes); !status)
      return status;
  llvm::SmallVector<int64_t, 16> values = valuesOf(sizes, place.multiprocessors);
  if (asked && !isHost() && code.workspaceBytes(values.data()))
    if (rt::Status status = checkReach({memory, Dtype::F32, {}, {}}, "workspace", place.device); !status)
      return status;
  llvm::SmallVector<rt::TensorMemory, 24> tensors;
  for (const TensorView &view : given)
    tensors.push_back(
        {view.data, view.shape.data(), view.strides.empty() ? nullptr : view.strides.data(), int(view.shape.size())});
  static thread_local std::vector<rt::BoundStep> steps; // which keep their memory
  // All of them first: what fails, fails before anything runs.
  if (rt::Status status = code.bind(tensors.data(), memory, values.data(), steps); !status)
    return status;
  for (auto [step, bound] : llvm::zip_equal(program.steps.steps, steps)) {
    if (again && step.reusable)
      continue;
    bool launches = step.kernel >= 0 && bound.blocks;
    if (rt::Status status = launches ? loaded[step.kernel].launch(bound, stream) : zero(bound, stream); !status)
      return status;
  }
  if (rt::Status status = asked ? checkStatus(given) : rt::Status(); !status)
    return status;
  return validate(given, sizes);
}

rt::Status Kernel::checkReach(const TensorView &view, llvm::StringRef name, int device) const {
  if (elementsOf(view.shape) == 0)
    return {};
  rt::Result<const rt::Driver *> driver = rt::Driver::get();
  if (!driver)
    return driver.status();
  return rt::checkReach(**driver, reinterpret_cast<rt::DevicePtr>(view.data), device, name);
}

rt::Status Kernel::checkReach(llvm::ArrayRef<TensorView> tensors, bool all, int device) const {
  if (!all) {
    size_t q = program.signature.indexOf("q").value_or(0); // segments alone have none
    return checkReach(tensors[q], program.signature.tensors[q].name, device);
  }
  for (auto [spec, view] : llvm::zip_equal(program.signature.tensors, tensors))
    if (rt::Status status = checkReach(view, spec.name, device); !status)
      return status;
  return {};
}

rt::Status Kernel::zero(const rt::BoundStep &step, rt::Stream stream) const {
  for (auto [data, bytes] : step.zeroed) {
    if (isHost()) {
      std::memset(data, 0, bytes);
      continue;
    }
    rt::Result<const rt::Driver *> driver = rt::Driver::get();
    if (!driver)
      return driver.error();
    if (rt::Status status = (*driver)->fill(reinterpret_cast<rt::DevicePtr>(data), 0, bytes, stream); !status)
      return status;
  }
  return {};
}

rt::Status Kernel::copyToHost(llvm::MutableArrayRef<char> bytes, const TensorView &view) const {
  if (bytes.empty())
    return {};
  if (isHost()) {
    std::memcpy(bytes.data(), view.data, bytes.size());
    return {};
  }
  rt::Result<const rt::Driver *> driver = rt::Driver::get();
  if (!driver)
    return driver.error();
  if (rt::Status done = (*driver)->synchronizeContext(); !done)
    return done;
  return (*driver)->copyToHost(bytes.data(), reinterpret_cast<rt::DevicePtr>(view.data), bytes.size());
}

rt::Result<std::vector<int32_t>> Kernel::contentsOf(const TensorView &view) const {
  std::vector<int32_t> values(elementsOf(view.shape));
  rt::Status copied = copyToHost({reinterpret_cast<char *>(values.data()), values.size() * sizeof(int32_t)}, view);
  if (!copied)
    return copied.error();
  return values;
}

rt::Status Kernel::checkStatus(llvm::ArrayRef<TensorView> tensors) const {
  const TensorSpec *spec = program.signature.find("status");
  if (!spec)
    return {};
  rt::Result<std::vector<int32_t>> status = contentsOf(tensors[spec - program.signature.tensors.begin()]);
  if (!status)
    return status.error();
  for (auto [row, bits] : llvm::enumerate(*status))
    if (bits)
      return rt::Error{fmt::format("expected `status` 0 of row {}, got: {} ({})", row, bits, reference::statusText(bits))};
  return {};
}

rt::Status Kernel::checkArrays(llvm::ArrayRef<TensorView> tensors, const Sizes &sizes) const {
  auto contents = [&](std::string name, std::vector<int32_t> &values) -> rt::Status {
    const TensorSpec *spec = program.signature.find(name);
    if (!spec || spec->isResult()) // nothing is in there yet
      return {};
    rt::Result<std::vector<int32_t>> held = contentsOf(tensors[spec - program.signature.tensors.begin()]);
    if (held)
      values = std::move(*held);
    return held.status();
  };
  for (const TensorSpec &spec : program.signature.tensors) {
    if (!spec.lists)
      continue;
    std::vector<int32_t> offsets, columns;
    if (rt::Status s = contents(spec.name, offsets); !s)
      return s;
    if (rt::Status s = contents(spec.lists->lists->columns, columns); !s)
      return s;
    if (llvm::Error bad = checkBlocks(*spec.lists, offsets, columns, sizes.entries.at(spec.name), sizes.rowsKv))
      return rt::Error{llvm::toString(std::move(bad))};
  }
  for (auto [side, rows] : {std::pair("q", sizes.rowsQ), std::pair("kv", sizes.rowsKv)}) {
    std::vector<int32_t> cu, offsets;
    if (rt::Status s = contents(fmt::format("cu_seqlens_{}", side), cu); !s)
      return s;
    if (rt::Status s = contents(fmt::format("padded_offsets_{}", side), offsets); !s)
      return s;
    if (cu.empty())
      continue; // dense
    if (llvm::Error bad = checkOffsets(side, cu, offsets, rows, /*writesKv=*/program.signature.find("dk")))
      return rt::Error{llvm::toString(std::move(bad))};
    std::vector<int32_t> tiles, count;
    if (rt::Status s = contents(fmt::format("tiles_{}", side), tiles); !s)
      return s;
    if (tiles.empty())
      continue;
    if (rt::Status s = contents("tile_count", count); !s)
      return s;
    if (llvm::Error bad = checkTiles(tiles, count[0], offsets.empty() ? cu : offsets, rows, program.signature.fixed.qTile))
      return rt::Error{llvm::toString(std::move(bad))};
  }
  for (const TensorSpec &spec : program.signature.tensors) {
    if (!spec.hasParents)
      continue;
    std::vector<int32_t> parents, cu, offsets;
    for (auto [name, values] : {std::pair<llvm::StringRef, std::vector<int32_t> *>(spec.name, &parents),
                                {"cu_seqlens_kv", &cu}, {"padded_offsets_kv", &offsets}})
      if (rt::Status s = contents(name.str(), *values); !s)
        return s;
    if (program.signature.fixed.packedKv && cu.empty()) // of segments, of which nobody knows yet where they begin
      continue;
    if (llvm::Error bad = checkParents(spec.name, parents, cu, offsets, sizes.rowsKv))
      return rt::Error{llvm::toString(std::move(bad))};
  }
  return {};
}
