// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Module.h"
#include "DriverTable.h"
#include "TileQueue.h"
#include "attn-rt/Launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>

using namespace attn::rt;

/// The kernel in one context.
struct Module::Loaded {
  Context context = nullptr;
  void *module = nullptr;
  void *function = nullptr;
  int device = 0, multiprocessors = 0;
  std::unique_ptr<TileQueue> queue; ///< null: the kernel has no Queue
};

struct Module::Impl {
  const Driver *driver = nullptr;
  Context home = nullptr; ///< context of load(), for threads that have none
  size_t queueParam = 0;  ///< position of the Queue among the parameters, if there is one
  std::mutex mutex;
  std::deque<Loaded> loaded; ///< only grows, and launches use entries without the mutex
};

Module::Module(std::shared_ptr<const CompiledKernel> kernel)
    : kernel(std::move(kernel)), impl(std::make_unique<Impl>()) {
  const std::vector<Param> &params = artifact().params;
  impl->queueParam = static_cast<size_t>(
      std::find_if(params.begin(), params.end(), [](const Param &p) { return p.kind == Param::Kind::Queue; }) -
      params.begin());
}

Module::~Module() {
  if (!impl->driver)
    return;
  const DriverTable &cu = impl->driver->table();
  Context before = nullptr;
  // At the end of a process the driver may be gone already; then there is
  // nothing to unload.
  if (impl->loaded.empty() || cu.cuCtxGetCurrent(&before) != 0)
    return;
  for (const Loaded &one : impl->loaded)
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
  if (Result<Place> place = module->prepare(); !place)
    return place.error();
  return module;
}

Result<StreamContext> Module::enter(Stream stream) const {
  return StreamContext::enter(*impl->driver, stream, impl->home);
}

Result<Module::Place> Module::prepare() {
  Result<Loaded *> here = loaded();
  if (!here)
    return here.error();
  return Place{(*here)->device, (*here)->multiprocessors, *here};
}

Result<Module::Loaded> Module::loadInto(Context context) const {
  const Driver &driver = *impl->driver;
  const DriverTable &cu = driver.table();
  const Artifact &artifact = kernel->artifact;
  Loaded made;
  made.context = context;
  Result<int> device = driver.currentDevice();
  if (!device)
    return device.error();
  Result<int> arch = driver.arch(*device), most = driver.maxSharedMemory(*device);
  Result<int> multiprocessors = driver.multiprocessors(*device);
  for (const Result<int> *asked : {&arch, &most, &multiprocessors})
    if (!*asked)
      return asked->error();
  made.device = *device;
  made.multiprocessors = *multiprocessors;
  if (artifact.smemBytes > *most)
    return Error{fmt::format("`{}` needs {} bytes of shared memory per block, "
                             "the device (sm_{}) has {}",
                             artifact.name, artifact.smemBytes, *arch, *most),
                 {},
                 {}};
  if (int code = cu.cuModuleLoadData(&made.module, kernel->binary.data())) {
    Error error = driver.error("cuModuleLoadData", code);
    error.isBinary = code == cuda::errorInvalidImage;
    if (code == cuda::errorNoBinary)
      error.message =
          fmt::format("`{}` was compiled for `{}`, the device is sm_{}", artifact.name, artifact.target, *arch);
    return error;
  }
  int code = cu.cuModuleGetFunction(&made.function, made.module, artifact.entry.c_str());
  const char *name = "cuModuleGetFunction";
  if (!code && artifact.smemBytes > 48 * 1024) {
    code = cu.cuFuncSetAttribute(made.function, cuda::maxDynamicSharedSize, artifact.smemBytes);
    name = "cuFuncSetAttribute";
  }
  if (!code && artifact.clusters > 8) { // more than every chip promises
    code = cu.cuFuncSetAttribute(made.function, cuda::nonPortableCluster, 1);
    name = "cuFuncSetAttribute";
  }
  if (!code && impl->queueParam < artifact.params.size()) {
    DevicePtr counters = 0;
    size_t bytes = 0;
    code = cu.cuModuleGetGlobal_v2(&counters, &bytes, made.module, "attn_queue");
    name = "cuModuleGetGlobal` of `attn_queue";
    made.queue = std::make_unique<TileQueue>(counters, bytes / sizeof(uint32_t));
  }
  if (code) {
    cu.cuModuleUnload(made.module);
    Error error = driver.error(name, code);
    error.isBinary = code == cuda::errorNotFound;
    return error;
  }
  return made;
}

Result<Module::Loaded *> Module::loaded() {
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
  for (Loaded &one : impl->loaded)
    if (one.context == context)
      return &one;
  Result<Loaded> made = loadInto(context);
  if (!made)
    return made.error();
  return &impl->loaded.emplace_back(*std::move(made));
}

Result<void *> Module::function() {
  Result<Loaded *> here = loaded();
  if (!here)
    return here.error();
  return (*here)->function;
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

Status StreamState::ask(const Driver &driver) {
  const DriverTable &cu = driver.table();
  int capture = cuda::captureNone;
  if (int code = cu.cuStreamIsCapturing(stream, &capture))
    return driver.error("cuStreamIsCapturing", code);
  isCaptured = capture != cuda::captureNone;
  if (unsigned long long answer = 0; !isCaptured && cu.cuStreamGetId) {
    if (int code = cu.cuStreamGetId(stream, &answer))
      return driver.error("cuStreamGetId", code);
    id = answer;
  }
  isKnown = true;
  return {};
}

Status attn::rt::launch(Module &module, void *const *args, int64_t blocks, Stream stream) {
  Result<StreamContext> context = module.enter(stream);
  if (!context)
    return context.status();
  Result<Module::Place> place = module.prepare();
  StreamState state(stream);
  return place ? launchHere(module, *place, args, blocks, state) : place.status();
}

Status attn::rt::launchHere(Module &module, const Module::Place &place, void *const *args, int64_t blocks,
                            StreamState &stream) {
  if (blocks <= 0)
    return {};
  const Artifact &artifact = module.artifact();
  const Module::Loaded &here = *place.loaded;
  const Driver &driver = *module.impl->driver;
  int64_t started = artifact.blocksToStart(blocks, here.multiprocessors);
  if (int64_t most = std::max(blocks, started); most > std::numeric_limits<int32_t>::max())
    return Error{fmt::format("`{}` needs {} blocks, a launch has at most 2147483647", artifact.name, most), {}, {}};
  if (here.queue) {
    if (Status asked = stream.isKnown ? Status() : stream.ask(driver); !asked)
      return asked;
    DevicePtr counter = stream.isCaptured ? here.queue->forCapture() // 0 if all are in use
                                          : here.queue->forStream(StreamKey::of(stream.stream, stream.id));
    if (!counter && artifact.clusterPerBlock)
      return Error{
          fmt::format("`{}` needs a counter for each stream and captured launch, and all are in use", artifact.name),
          {},
          {}};
    *static_cast<DevicePtr *>(args[module.impl->queueParam]) = counter;
  }
  bool early = artifact.follows && driver.version() >= 12030; // which captures it, too
  cuda::LaunchAttribute attribute = {cuda::launchEarly, {}};
  attribute.value.programmaticStreamSerialization = 1;
  cuda::LaunchConfig config = {static_cast<unsigned>(started),
                               1,
                               1,
                               static_cast<unsigned>(artifact.threads),
                               1,
                               1,
                               static_cast<unsigned>(artifact.smemBytes),
                               stream.stream,
                               &attribute,
                               early};
  if (int code = driver.table().cuLaunchKernelEx(&config, here.function, const_cast<void **>(args), nullptr))
    return driver.error("cuLaunchKernelEx", code);
  return {};
}
