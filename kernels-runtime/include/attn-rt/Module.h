// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code in memory, ready to run: a cubin in a CUDA context, or a shared object
// in this process. Loading is slow (0.1 ms and more) and may synchronise, so it
// belongs into a prepare step, before any capture or collective.
//
#ifndef ATTN_RT_MODULE_H
#define ATTN_RT_MODULE_H

#include "attn-rt/Artifact.h"
#include "attn-rt/Cache.h"
#include "attn-rt/Driver.h"
#include "attn-rt/Placement.h"
#include "attn-rt/Result.h"

#include <cstdint>
#include <memory>

namespace attn::rt {

class StreamState;

/// A kernel on GPUs. `load` puts it into the current context if there is one
/// (torch's primary context, say), else into that of device 0. A launch on a
/// stream of another context loads it there first, so one Module serves all GPUs
/// of a process. Safe from several threads.
class Module {
public:
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<const CompiledKernel> kernel);
  ~Module();

  const Artifact &artifact() const { return kernel->artifact; }
  /// Makes the context of a stream current, see Placement.h: what is called
  /// then, and a launch on this stream, is of its device.
  Result<StreamContext> enter(Stream stream) const;
  struct Loaded;
  /// The kernel in a context, its device and how many multiprocessors that has.
  struct Place {
    int device = 0, multiprocessors = 0;
    Loaded *loaded = nullptr; ///< stays as long as the module
  };
  /// Loads into the current context too, if it isn't there yet.
  Result<Place> prepare();
  /// CUfunction in the current context; makes the context of `load` current
  /// where the thread has none.
  Result<void *> function();
  /// Blocks of this kernel that fit a multiprocessor at once, for tools.
  Result<int> occupancy();

private:
  friend Status launchHere(Module &module, const Place &place, void *const *args, int64_t blocks, StreamState &stream);
  struct Impl;
  Module(std::shared_ptr<const CompiledKernel> kernel);
  Result<Loaded> loadInto(Context context) const; ///< which is the current one
  Result<Loaded *> loaded();                      ///< of the current context, as `function`; stays where it is
  std::shared_ptr<const CompiledKernel> kernel;
  std::unique_ptr<Impl> impl;
};

/// A kernel on the CPU: `<entry>_block(args, block)` of a shared object. It is
/// loaded from the checked bytes in memory (memfd), not from the cache's file,
/// so that nobody can pull the file away and no file system has to allow
/// execution.
class HostModule {
public:
  using BlockFunction = void (*)(void *const *args, int block);

  static Result<std::shared_ptr<HostModule>> load(std::shared_ptr<const CompiledKernel> kernel);
  ~HostModule();

  const Artifact &artifact() const { return kernel->artifact; }
  BlockFunction block() const { return function; }

private:
  HostModule() = default;
  std::shared_ptr<const CompiledKernel> kernel;
  BlockFunction function = nullptr;
  void *handle = nullptr;
  int fd = -1;
};

} // namespace attn::rt

#endif // ATTN_RT_MODULE_H
