// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NvrtcLibrary.h"
#include "Files.h"
#include "Process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

using namespace attn::rt;
namespace fs = std::filesystem;

static constexpr const char *sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

namespace {
/// Looks into one place after the other until a library turns up.
struct Search {
  std::vector<std::string> &searched;
  std::string found;

  void directory(const std::string &path) {
    if (!found.empty())
      return;
    searched.push_back(path);
    for (const char *name : sonames)
      if (::access((path + "/" + name).c_str(), R_OK) == 0) {
        found = path + "/" + name;
        return;
      }
  }
  void toolkit(const std::string &root) {
    for (const char *lib : {"/lib64", "/lib"})
      if (found.empty())
        directory(root + lib);
  }
  /// `nvidia` is the folder of NVIDIA's wheels: nvidia/cu13/lib,
  /// nvidia/cuda_nvrtc/lib.
  void wheels(const std::string &nvidia) {
    if (!found.empty())
      return;
    searched.push_back(nvidia + "/*/lib");
    for (const char *soname : sonames) // newest first, whatever its folder is called
      for (const std::string &name : namesIn(nvidia)) {
        std::string file = fmt::format("{}/{}/lib/{}", nvidia, name, soname);
        if (found.empty() && ::access(file.c_str(), R_OK) == 0)
          found = file;
      }
  }
  /// A Python prefix: lib/python3.*/site-packages (Debian: dist-packages).
  void prefix(const std::string &root) {
    if (!found.empty() || root.empty())
      return;
    for (const std::string &python : namesIn(root + "/lib"))
      if (python.rfind("python3", 0) == 0)
        for (const char *packages : {"site-packages", "dist-packages"})
          wheels(fmt::format("{}/lib/{}/{}/nvidia", root, python, packages));
  }
};
} // namespace

static std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// The file that has this code inside, libattnc.so or a program; its directory.
static fs::path ownDirectory() {
  Dl_info info;
  link_map *map = nullptr;
  if (!::dladdr1(reinterpret_cast<void *>(&findNvrtc), &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) || !map)
    return {};
  std::error_code failed;
  fs::path file = *map->l_name ? fs::path(map->l_name) : fs::read_symlink("/proc/self/exe", failed);
  return fs::absolute(file, failed).parent_path();
}

static bool isDirectory(const std::string &path) {
  std::error_code failed;
  return fs::is_directory(path, failed);
}

std::string attn::rt::findNvrtc(std::vector<std::string> &searched) {
  Search search{searched, {}};
  // The user's word: nothing else will do, and opening it says what is wrong with it.
  if (std::string given = environment("ATTN_NVRTC"); !given.empty()) {
    if (isDirectory(given)) {
      search.directory(given);
      search.toolkit(given);
    }
    return search.found.empty() ? given : search.found;
  }
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = environment(name); !root.empty())
      search.toolkit(root);

  if (std::string given = environment("ATTN_PYTHON_NVIDIA"); !given.empty()) {
    search.wheels(given);
    search.wheels(given + "/nvidia");
  }
  search.prefix(environment("VIRTUAL_ENV"));
  fs::path own = ownDirectory();
  if (std::optional<std::string> venv = readFile(own / "nvrtc-venv.txt")) // a build tree's
    search.prefix((own / *venv).lexically_normal());
  // Installed as a wheel ourselves: site-packages/attnc/libattnc.so beside
  // site-packages/nvidia.
  if (!own.empty())
    search.wheels(own.parent_path().string() + "/nvidia");

  search.toolkit("/usr/local/cuda");
  std::vector<std::string> names = namesIn("/usr/local");
  for (auto name = names.rbegin(); name != names.rend(); ++name) // newest first
    if (name->rfind("cuda-", 0) == 0)
      search.toolkit("/usr/local/" + *name);

  if (std::string python = findProgram("python3"); !python.empty() && search.found.empty()) {
    std::error_code failed;
    fs::path real = fs::canonical(python, failed);
    if (!failed)
      search.prefix(real.parent_path().parent_path().string());
  }
  if (std::string home = environment("HOME"); !home.empty())
    search.prefix(home + "/.local");
  return search.found;
}

static Result<NvrtcLibrary> openNow(const std::string &path, const std::vector<std::string> &searched) {
  void *handle = nullptr;
  std::string reason;
  if (!path.empty()) {
    // NVRTC opens its builtins by name and can miss them outside the loader's
    // path, so they come first.
    std::string directory = fs::path(path).parent_path().string();
    for (const std::string &name : namesIn(directory))
      if (name.rfind("libnvrtc-builtins.so.", 0) == 0)
        ::dlopen((directory + "/" + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
    handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
      reason = ::dlerror();
  } else {
    for (const char *name : sonames)
      if (!handle)
        handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  }
  if (!handle && path.empty())
    return Error{fmt::format("NVRTC was not found; set `ATTN_NVRTC` to libnvrtc.so or "
                             "`CUDA_HOME` to a CUDA Toolkit. Searched: {}, and the "
                             "loader's path for {}",
                             fmt::join(searched, ", "), fmt::join(sonames, ", ")),
                 {},
                 {}};
  if (!handle && path == environment("ATTN_NVRTC")) {
    if (isDirectory(path))
      reason = fmt::format("no {} in it, its lib64 or its lib", fmt::join(sonames, ", "));
    return Error{
        fmt::format("expected `libnvrtc.so` or its folder in `ATTN_NVRTC`, got: `{}` ({})", path, reason), {}, {}};
  }
  if (!handle)
    return Error{fmt::format("cannot open NVRTC `{}`: {}", path, reason), {}, {}};

  NvrtcLibrary lib = {};
  const char *missing = nullptr;
  auto bind = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (!function && !missing)
      missing = name;
  };
  bind(lib.version, "nvrtcVersion");
  bind(lib.errorString, "nvrtcGetErrorString");
  bind(lib.createProgram, "nvrtcCreateProgram");
  bind(lib.destroyProgram, "nvrtcDestroyProgram");
  bind(lib.compileProgram, "nvrtcCompileProgram");
  bind(lib.logSize, "nvrtcGetProgramLogSize");
  bind(lib.log, "nvrtcGetProgramLog");
  bind(lib.cubinSize, "nvrtcGetCUBINSize");
  bind(lib.cubin, "nvrtcGetCUBIN");
  if (missing)
    return Error{fmt::format("NVRTC `{}` has no `{}`; version 11.8 or later is needed", path, missing), {}, {}};
  return lib;
}

Result<const NvrtcLibrary *> NvrtcLibrary::open(const std::string &path, const std::vector<std::string> &searched) {
  static std::mutex mutex;
  static std::map<std::string, NvrtcLibrary> libraries; // node-based: addresses stay
  std::lock_guard lock(mutex);
  auto known = libraries.find(path);
  if (known == libraries.end()) {
    Result<NvrtcLibrary> lib = openNow(path, searched);
    if (!lib)
      return lib.error();
    known = libraries.emplace(path, *lib).first;
  }
  return &known->second;
}
