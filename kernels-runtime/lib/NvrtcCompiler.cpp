// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EmbeddedHeaders.h"
#include "Files.h"
#include "NvrtcLibrary.h"
#include "attn-rt/Compiler.h"
#include "attn-rt/Switches.h"

#include <fmt/format.h>

#include <mutex>

#include <sys/stat.h>

using namespace attn::rt;

namespace {
class NvrtcCompiler final : public Compiler {
public:
  explicit NvrtcCompiler(std::vector<std::string> extraFlags) : extraFlags(std::move(extraFlags)) {}

  std::string_view kind() const override { return "nvrtc"; }
  std::string_view sourceFile() const override { return "kernel.cu"; }
  std::string_view binaryFile() const override { return "kernel.cubin"; }
  std::string headerDigest() const override { return deviceHeaderSet.digest; }

  std::string toolPath() const override {
    std::call_once(looked, [&] { path = findNvrtc(searched); });
    return path;
  }

  Result<std::string> version() const override {
    Result<const NvrtcLibrary *> lib = library();
    if (!lib)
      return lib.error();
    int major = 0, minor = 0;
    (*lib)->version(&major, &minor);
    // Updates within one minor version report the same number; the size tells
    // them apart.
    struct stat info;
    bool known = !path.empty() && ::stat(path.c_str(), &info) == 0;
    return fmt::format("{}.{} ({} bytes)", major, minor, known ? static_cast<long long>(info.st_size) : 0);
  }

  std::vector<std::string> flags(std::string_view target) const override {
    std::vector<std::string> all = {fmt::format("-arch={}", target), "-std=c++20", "--ptxas-options=-v"};
    if (Switches::get().lineInfo)
      all.push_back("-lineinfo");
    all.insert(all.end(), extraFlags.begin(), extraFlags.end());
    return all;
  }

  Result<CompileOutput> compile(const Artifact &artifact) const override;

private:
  Result<const NvrtcLibrary *> library() const {
    std::string where = toolPath();
    return NvrtcLibrary::open(where, searched);
  }

  std::vector<std::string> extraFlags;
  mutable std::once_flag looked;
  mutable std::string path;
  mutable std::vector<std::string> searched;
};
} // namespace

Result<CompileOutput> NvrtcCompiler::compile(const Artifact &artifact) const {
  Result<const NvrtcLibrary *> opened = library();
  if (!opened)
    return opened.error();
  const NvrtcLibrary &nvrtc = **opened;

  std::vector<const char *> texts, names, options;
  for (const EmbeddedHeader *header = deviceHeaderSet.headers; header->name; ++header) {
    names.push_back(header->name);
    texts.push_back(header->text);
  }
  std::vector<std::string> optionTexts = flags(artifact.target);
  for (const std::string &option : optionTexts)
    options.push_back(option.c_str());

  auto failure = [&](const char *what, int code, std::string log) {
    return Error{fmt::format("NVRTC failed to {} `{}` for `{}`: {}", what, artifact.entry, artifact.target,
                             nvrtc.errorString(code)),
                 std::move(log),
                 {}};
  };
  void *program = nullptr;
  std::string file = artifact.name + ".cu";
  if (int code = nvrtc.createProgram(&program, artifact.source.c_str(), file.c_str(), static_cast<int>(names.size()),
                                     texts.data(), names.data()))
    return failure("read", code, {});
  struct Destroy {
    const NvrtcLibrary &nvrtc;
    void *&program;
    ~Destroy() { nvrtc.destroyProgram(&program); }
  } destroy{nvrtc, program};

  CompileOutput output;
  int code = nvrtc.compileProgram(program, static_cast<int>(options.size()), options.data());
  size_t size = 0;
  if (nvrtc.logSize(program, &size) == 0 && size > 1) {
    output.log.resize(size);
    nvrtc.log(program, output.log.data());
    output.log.resize(size - 1); // its NUL
  }
  if (code)
    return failure("compile", code, std::move(output.log));
  size = 0;
  code = nvrtc.cubinSize(program, &size);
  // No cubin comes from virtual architectures such as compute_80.
  if (code || size == 0)
    return failure("make a cubin of", code, std::move(output.log));
  output.binary.resize(size);
  if ((code = nvrtc.cubin(program, output.binary.data())))
    return failure("make a cubin of", code, std::move(output.log));
  output.report = ResourceReport::parse(output.log, artifact.entry);
  return output;
}

std::unique_ptr<Compiler> attn::rt::createNvrtcCompiler(std::vector<std::string> extraFlags) {
  return std::make_unique<NvrtcCompiler>(std::move(extraFlags));
}
