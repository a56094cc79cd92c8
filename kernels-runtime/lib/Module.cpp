// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Module.h"
#include "DriverTable.h"
#include "attn-rt/Launch.h"

#include <fmt/format.h>

#include <limits>
#include <mutex>
#include <vector>

using namespace attn::rt;

struct Module::Impl {
  struct Loaded {
    Context context;
    void *module;
    void *function;
  };
  const Driver *driver = nullptr;
  Context home = nullptr; ///< context of load(), for threads that have none
  std::mutex mutex;
  std::vector<Loaded> loaded;
};

Module::Module(std::shared_ptr<const CompiledKernel> kernel)
    : kernel(std::move(kernel)), impl(std::make_unique<Impl>()) {}

Module::~Module() {
  if (!impl->driver)
    return;
  const DriverTable &cu = impl->driver->table();
  Context before = nullptr;
  // At the end of a process the driver may be gone already; then there is
  // nothing to unload.
  if (impl->loaded.empty() || cu.cuCtxGetCurrent(&before) != 0)
    return;
  for (const Impl::Loaded &one : impl->loaded)
    if (cu.cuCtxSetCurrent(one.context) == 0)
      cu.cuModuleUnload(one.module);
  cu.cuCtxSetCurrent(before);
}

Result<std::shared_ptr<Module>> Module::load(std::shared_ptr<const CompiledKernel> kernel) {
  if (kernel->artifact.isHost())
    return Error{fmt::format("expected a GPU kernel, got: `{}` for target `cpu`", kernel->artifact.name), {}, {}};
  Result<const Driver *> driver = Driver::get();
  if (!driver)
    return driver.error();
  Result<Context> context = (*driver)->ensureContext();
  if (!context)
    return context.error();
  std::shared_ptr<Module> module(new Module(std::move(kernel)));
  module->impl->driver = *driver;
  module->impl->home = *context;
  if (Status status = module->prepare(); !status)
    return status.error();
  return module;
}

Status Module::prepare() { return function().status(); }

static Result<std::pair<void *, void *>> loadInto(const Driver &driver, const CompiledKernel &kernel) {
  const DriverTable &cu = driver.table();
  const Artifact &artifact = kernel.artifact;
  Result<int> device = driver.currentDevice();
  if (!device)
    return device.error();
  Result<int> arch = driver.arch(*device), most = driver.maxSharedMemory(*device);
  if (!arch || !most)
    return arch ? most.error() : arch.error();
  if (artifact.smemBytes > *most)
    return Error{fmt::format("`{}` needs {} bytes of shared memory per block, "
                             "the device (sm_{}) has {}",
                             artifact.name, artifact.smemBytes, *arch, *most),
                 {},
                 {}};
  void *module = nullptr, *function = nullptr;
  if (int code = cu.cuModuleLoadData(&module, kernel.binary.data())) {
    Error error = driver.error("cuModuleLoadData", code);
    if (code == cuda::errorNoBinary)
      error.message =
          fmt::format("`{}` was compiled for `{}`, the device is sm_{}", artifact.name, artifact.target, *arch);
    return error;
  }
  int code = cu.cuModuleGetFunction(&function, module, artifact.entry.c_str());
  const char *name = "cuModuleGetFunction";
  if (!code && artifact.smemBytes > 48 * 1024) {
    code = cu.cuFuncSetAttribute(function, cuda::maxDynamicSharedSize, artifact.smemBytes);
    name = "cuFuncSetAttribute";
  }
  if (code) {
    cu.cuModuleUnload(module);
    return driver.error(name, code);
  }
  return std::pair(module, function);
}

Result<void *> Module::function() {
  const DriverTable &cu = impl->driver->table();
  Context context = nullptr;
  if (int code = cu.cuCtxGetCurrent(&context))
    return impl->driver->error("cuCtxGetCurrent", code);
  if (!context) {
    context = impl->home;
    if (int code = cu.cuCtxSetCurrent(context))
      return impl->driver->error("cuCtxSetCurrent", code);
  }
  std::lock_guard lock(impl->mutex);
  for (const Impl::Loaded &one : impl->loaded)
    if (one.context == context)
      return one.function;
  Result<std::pair<void *, void *>> made = loadInto(*impl->driver, *kernel);
  if (!made)
    return made.error();
  impl->loaded.push_back({context, made->first, made->second});
  return made->second;
}

Result<int> Module::occupancy() {
  Result<void *> f = function();
  if (!f)
    return f.error();
  int blocks = 0;
  if (int code = impl->driver->table().cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, *f, artifact().threads, static_cast<size_t>(artifact().smemBytes)))
    return impl->driver->error("cuOccupancyMaxActiveBlocksPerMultiprocessor", code);
  return blocks;
}

Status attn::rt::launch(Module &module, void *const *args, int64_t blocks, Stream stream) {
  if (blocks <= 0)
    return {};
  const Artifact &artifact = module.artifact();
  if (artifact.clusters > 1)
    blocks = (blocks + artifact.clusters - 1) / artifact.clusters * artifact.clusters;
  if (blocks > std::numeric_limits<int32_t>::max())
    return Error{fmt::format("`{}` needs {} blocks, a launch has at most 2147483647", artifact.name, blocks), {}, {}};
  Result<void *> function = module.function();
  if (!function)
    return function.error();
  Result<const Driver *> driver = Driver::get();
  if (int code = (*driver)->table().cuLaunchKernel(
          *function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(artifact.threads), 1, 1,
          static_cast<unsigned>(artifact.smemBytes), stream, const_cast<void **>(args), nullptr))
    return (*driver)->error("cuLaunchKernel", code);
  return {};
}
