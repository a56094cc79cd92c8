// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Jit.h"
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
                                          int fallback) {
  static std::mutex mutex;
  static Compilation *compilation =
      new Compilation; // lives as long as the process: no order of destruction to get wrong
  std::lock_guard<std::mutex> lock(mutex);
  return compilation->compile(text, problem, target, fallback);
}

rt::Result<CompiledProgram> attn::compileThrough(rt::Cache &cache, llvm::StringRef text, llvm::StringRef problem,
                                                 const Target &target) {
  auto reproducer = [&] {
    return std::vector<std::pair<std::string, std::string>>{{"problem.mlir", text.str()}, {"target", target.str()}};
  };
  auto both = buildFitting([&](int fallback) { return compileProgram(text, problem, target, fallback); },
                           [&](const rt::Artifact &artifact) {
                             return cache.get(*rt::createCompiler(artifact.target), artifact, reproducer);
                           });
  if (!both)
    return both.error();
  return CompiledProgram{std::move(both->first), std::move(both->second)};
}

rt::Result<std::shared_ptr<Kernel>> Kernel::create(llvm::StringRef text, llvm::StringRef problem,
                                                   const Target &target) {
  rt::Result<CompiledProgram> compiled = compileThrough(processCache(), text, problem, target);
  if (!compiled)
    return compiled.error();
  auto kernel = std::make_shared<Kernel>();
  kernel->program = std::move(compiled->program);
  kernel->compiled = compiled->binary;
  if (target.isHost()) {
    auto module = rt::HostModule::load(kernel->compiled);
    if (!module)
      return module.error();
    kernel->host = *module;
  } else {
    auto module = rt::Module::load(kernel->compiled);
    if (!module)
      return module.error();
    kernel->gpu = *module;
  }
  return kernel;
}

rt::Status Kernel::launch(llvm::ArrayRef<TensorView> tensors, rt::Stream stream) const {
  rt::Result<Sizes> sizes = program.signature.check(tensors);
  if (!sizes)
    return sizes.error();
  static const bool asked = [] {
    const char *value = std::getenv("ATTN_CHECK_ARRAYS");
    return value && llvm::StringRef(value) != "" && llvm::StringRef(value) != "0";
  }();
  if (asked || host) // host memory costs nothing to look at
    if (rt::Status status = checkArrays(tensors, *sizes); !status)
      return status;
  if (gpu) // tensor maps are encoded for a context, which a new thread has not
    if (rt::Status status = gpu->prepare(); !status)
      return status;
  Binding binding;
  if (rt::Status status = bind(program.artifact, program.signature, tensors, *sizes, binding); !status)
    return status;
  if (binding.blocks == 0)
    return clearResults(tensors, stream);
  if (host)
    return rt::run(*host, processThreads(), binding.pointers.data(), binding.blocks);
  return rt::launch(*gpu, binding.pointers.data(), binding.blocks, stream);
}

rt::Status Kernel::clearResults(llvm::ArrayRef<TensorView> tensors, rt::Stream stream) const {
  for (auto [spec, view] : llvm::zip_equal(program.signature.tensors, tensors)) {
    size_t bytes = spec.dtype == Dtype::BF16 || spec.dtype == Dtype::F16 ? 2 : 4;
    for (int64_t extent : view.shape)
      bytes *= size_t(extent);
    if (!spec.isResult() || bytes == 0)
      continue;
    if (host) {
      std::memset(view.data, 0, bytes);
      continue;
    }
    rt::Result<const rt::Driver *> driver = rt::Driver::get();
    if (!driver)
      return driver.error();
    if (rt::Status status = (*driver)->fill(reinterpret_cast<rt::DevicePtr>(view.data), 0, bytes, stream); !status)
      return status;
  }
  return {};
}

rt::Status Kernel::checkArrays(llvm::ArrayRef<TensorView> tensors, const Sizes &sizes) const {
  auto contents = [&](std::string name, std::vector<int32_t> &values) -> rt::Status {
    const TensorSpec *spec = program.signature.find(name);
    if (!spec || spec->isResult()) // nothing is in there yet
      return {};
    const TensorView &view = tensors[spec - program.signature.tensors.begin()];
    values.resize(view.shape[0]);
    if (host) {
      std::copy_n(static_cast<const int32_t *>(view.data), values.size(), values.begin());
      return {};
    }
    rt::Result<const rt::Driver *> driver = rt::Driver::get();
    if (!driver)
      return driver.error();
    return (*driver)->copyToHost(values.data(), reinterpret_cast<rt::DevicePtr>(view.data), values.size() * 4);
  };
  for (auto [side, rows] : {std::pair("q", sizes.rowsQ), std::pair("kv", sizes.rowsKv)}) {
    std::vector<int32_t> cu, offsets;
    if (rt::Status s = contents(fmt::format("cu_seqlens_{}", side), cu); !s)
      return s;
    if (rt::Status s = contents(fmt::format("padded_offsets_{}", side), offsets); !s)
      return s;
    if (cu.empty())
      continue; // dense
    if (llvm::Error bad = checkOffsets(side, cu, offsets, rows))
      return rt::Error{llvm::toString(std::move(bad))};
  }
  return {};
}
