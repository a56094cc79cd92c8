// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Files.h"
#include "Trust.h"
#include "attn-rt/Launch.h"
#include "attn-rt/Module.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace attn::rt;

static int writeAll(int fd, const std::string &bytes) {
  for (size_t at = 0; at < bytes.size();) {
    ssize_t put = ::write(fd, bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return put == 0 ? ENOSPC : errno;
    at += static_cast<size_t>(put);
  }
  return 0;
}

/// dlopen of bytes. `fd` stays open as long as the object is loaded: the loader
/// knows objects by name, and the name is the number of the descriptor, so a
/// reused number would silently give the old object.
static void *openBytes(const std::string &bytes, const std::string &name, int &fd, std::string &reason) {
  fd = ::memfd_create(name.substr(0, 200).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 && writeAll(fd, bytes) == 0) {
    ::fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE); // where there are seals
    if (void *handle = ::dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL))
      return handle;
  }
  reason = fd < 0 ? std::strerror(errno) : "";
  if (const char *text = fd >= 0 ? ::dlerror() : nullptr)
    reason = text;
  if (fd >= 0)
    ::close(fd);
  fd = -1;
  // No memfd or no /proc here: a file that is gone as soon as it is loaded.
  for (const std::string &place : temporaryPlaces()) {
    if (!openTrustedParent(place, Missing::Fails)) // somebody else could swap it
      continue;
    std::string path = fmt::format("{}/attnc-{}-{}.so", place, ::getpid(), randomName());
    void *handle =
        writeNewFile(path, bytes, /*sync=*/false) == 0 ? ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    ::unlink(path.c_str());
    if (handle)
      return handle;
  }
  return nullptr;
}

Result<std::shared_ptr<HostModule>> HostModule::load(std::shared_ptr<const CompiledKernel> kernel) {
  const Artifact &artifact = kernel->artifact;
  if (!artifact.isHost())
    return Error{
        fmt::format("expected a kernel for target `cpu`, got: `{}` for `{}`", artifact.name, artifact.target), {}, {}};
  std::shared_ptr<HostModule> module(new HostModule);
  std::string reason;
  module->handle = openBytes(kernel->binary, artifact.entry, module->fd, reason);
  if (!module->handle)
    return Error{fmt::format("cannot load `{}`: {}", artifact.name, reason), {}, kernel->directory, /*isBinary=*/true};
  std::string symbol = artifact.entry + "_block";
  module->function = reinterpret_cast<BlockFunction>(::dlsym(module->handle, symbol.c_str()));
  if (!module->function)
    return Error{
        fmt::format("`{}` has no symbol `{}`", artifact.name, symbol), {}, kernel->directory, /*isBinary=*/true};
  module->kernel = std::move(kernel);
  return module;
}

HostModule::~HostModule() {
  if (!handle)
    return;
  ::dlclose(handle);
  if (fd < 0)
    return;
  // Some objects can't be unloaded (unique symbols); their descriptor must keep
  // its number, see openBytes.
  if (void *still = ::dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_LAZY | RTLD_NOLOAD))
    ::dlclose(still);
  else
    ::close(fd);
}

Status attn::rt::run(HostModule &module, ThreadPool &pool, void *const *args, int64_t blocks) {
  if (blocks > std::numeric_limits<int>::max())
    return Error{
        fmt::format("`{}` needs {} blocks, a launch has at most 2147483647", module.artifact().name, blocks), {}, {}};
  const std::vector<Param> &params = module.artifact().params;
  unsigned counter = 0; // a launch of its own has one of its own
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].kind == Param::Kind::Queue)
      *static_cast<unsigned **>(args[i]) = &counter;
  HostModule::BlockFunction block = module.block();
  pool.forEach(blocks, [block, args](int64_t i) { block(args, static_cast<int>(i)); });
  return {};
}
