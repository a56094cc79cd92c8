// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Digest.h"
#include "EmbeddedHeaders.h"
#include "Files.h"
#include "Process.h"
#include "Processor.h"
#include "Trust.h"
#include "attn-rt/Compiler.h"
#include "attn-rt/Switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

#include <fcntl.h>
#include <unistd.h>

using namespace attn::rt;
namespace fs = std::filesystem;

static constexpr const char *temporaryPrefix = "attnc-build-";

namespace {
class HostCompiler final : public Compiler {
public:
  explicit HostCompiler(std::vector<std::string> extraFlags) : extraFlags(std::move(extraFlags)) {}

  std::string_view kind() const override { return "host"; }
  std::string_view sourceFile() const override { return "kernel.cpp"; }
  std::string_view binaryFile() const override { return "kernel.so"; }
  std::string headerDigest() const override { return hostHeaderSet.digest; }
  std::string toolPath() const override {
    // Behind a wrapper such as `ccache g++` one file isn't the compiler.
    return command().size() == 1 ? command()[0] : "";
  }
  std::string machine() const override;
  Result<std::vector<std::string>> features() const override;
  Result<std::string> version() const override;
  std::vector<std::string> flags(std::string_view target) const override;
  Result<CompileOutput> compile(const Artifact &artifact) const override;

private:
  /// Program and leading arguments; empty when there is no compiler.
  const std::vector<std::string> &command() const;
  Error noCompiler() const;
  Result<CompileOutput> compileIn(const std::string &directory, const Artifact &artifact) const;

  std::vector<std::string> extraFlags;
  mutable std::once_flag looked;
  mutable std::vector<std::string> found;
};
} // namespace

/// The words between spaces.
static std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    size_t space = std::min(text.find(' '), text.size());
    if (space != 0)
      words.emplace_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

const std::vector<std::string> &HostCompiler::command() const {
  std::call_once(looked, [&] {
    const char *given = std::getenv("ATTN_CXX");
    if (!given || !*given) {
      for (const char *name : {"c++", "g++", "clang++"})
        if (std::string path = findProgram(name); !path.empty() && found.empty())
          found = {path};
      return;
    }
    found = wordsOf(given);
    if (std::string path = found.empty() ? "" : findProgram(found[0]); !path.empty())
      found[0] = path;
    else
      found.clear();
  });
  return found;
}

Error HostCompiler::noCompiler() const {
  if (const char *given = std::getenv("ATTN_CXX"); given && *given)
    return {fmt::format("no C++ compiler for target `cpu`: `ATTN_CXX` names a "
                        "program that can be run, got: `{}`",
                        given),
            {},
            {}};
  return {"no C++ compiler for target `cpu`: none of `c++`, `g++`, `clang++` "
          "is in `PATH`, and `ATTN_CXX` is not set",
          {},
          {}};
}

Result<std::string> HostCompiler::version() const {
  if (command().empty())
    return noCompiler();
  std::string text;
  for (const char *question : {"--version", "-dumpmachine"}) {
    std::vector<std::string> argv = command();
    argv.push_back(question);
    Result<ProcessOutput> answer = runProcess(argv, {"LC_ALL=C"});
    if (!answer)
      return answer.error();
    if (answer->exitCode != 0)
      return Error{fmt::format("`{} {}` failed with status {}", argv[0], question, answer->exitCode), answer->text, {}};
    text += (text.empty() ? "" : " ") + answer->text.substr(0, answer->text.find('\n'));
  }
  return text;
}

/// -march=native means the CPU's features, so they are part of what the object
/// is good for.
std::string HostCompiler::machine() const {
  static const std::string digest = sha256(processorText());
  return digest;
}

/// Macros of a compiler, such as __AVX2__, say what its flags allow.
Result<std::vector<std::string>> HostCompiler::features() const {
  if (command().empty())
    return noCompiler();
  std::vector<std::string> argv = command(), names;
  for (std::string &flag : flags("cpu"))
    argv.push_back(std::move(flag));
  argv.insert(argv.end(), {"-dM", "-E", "-x", "c++", "/dev/null"});
  Result<ProcessOutput> macros = runProcess(argv, {"LC_ALL=C"});
  if (!macros)
    return macros.error();
  if (macros->exitCode != 0)
    return Error{fmt::format("`{}` failed with status {}", fmt::join(argv, " "), macros->exitCode), macros->text, {}};
  for (std::string &word : wordsOf(macros->text))
    if (word.starts_with("__") && word.ends_with("__"))
      names.push_back(std::move(word));
  return instructionSets(names);
}

std::vector<std::string> HostCompiler::flags(std::string_view) const {
  std::vector<std::string> all = {"-std=c++20",
                                  "-O3",
                                  "-march=native",
                                  "-shared",
                                  "-fPIC",
                                  "-fno-math-errno",
                                  "-fno-trapping-math",
                                  "-ffp-contract=fast",
                                  "-fopenmp-simd"};
  if (Switches::get().lineInfo)
    all.push_back("-g");
  if (const char *given = std::getenv("ATTN_CXXFLAGS"))
    for (std::string &flag : wordsOf(given))
      all.push_back(std::move(flag));
  all.insert(all.end(), extraFlags.begin(), extraFlags.end());
  return all;
}

Result<CompileOutput> HostCompiler::compileIn(const std::string &directory, const Artifact &artifact) const {
  auto unwritable = [&](const std::string &path, int code) {
    return Error{fmt::format("cannot write `{}`: {}", path, std::strerror(code)), {}, {}};
  };
  for (const EmbeddedHeader *header = hostHeaderSet.headers; header->name; ++header) {
    std::string path = directory + "/" + header->name;
    if (int failed = makeDirectories(path.substr(0, path.rfind('/'))))
      return unwritable(path, failed);
    if (int failed = writeNewFile(path, header->text, /*sync=*/false))
      return unwritable(path, failed);
  }
  std::string source = directory + "/kernel.cpp", object = directory + "/kernel.so";
  if (int failed = writeNewFile(source, artifact.source, /*sync=*/false))
    return unwritable(source, failed);

  std::vector<std::string> argv = command();
  for (std::string &flag : flags(artifact.target))
    argv.push_back(std::move(flag));
  argv.insert(argv.end(), {"-I" + directory, source, "-o", object});
  Result<ProcessOutput> run = runProcess(argv, {"TMPDIR=" + directory, "LC_ALL=C"});
  if (!run)
    return run.error();
  CompileOutput output;
  output.log = fmt::format("{}\n{}", fmt::join(argv, " "), run->text);
  std::optional<std::string> binary = readFile(object);
  if (run->exitCode != 0 || !binary || binary->empty())
    return Error{
        fmt::format("`{}` failed to compile `{}` for `cpu` with status {}", argv[0], artifact.entry, run->exitCode),
        std::move(output.log),
        {}};
  output.binary = std::move(*binary);
  return output;
}

Result<CompileOutput> HostCompiler::compile(const Artifact &artifact) const {
  if (command().empty())
    return noCompiler();
  std::string directory, failures;
  auto unusable = [&](const std::string &place, const std::string &why) {
    failures += fmt::format("{}`{}`: {}", failures.empty() ? "" : "; ", place, why);
  };
  for (const std::string &place : temporaryPlaces()) {
    // Where others may rename our directory, they choose the headers and the
    // object.
    if (Folder folder = openTrustedParent(place, Missing::Fails); !folder) {
      unusable(place, folder.problem());
      continue;
    }
    // What builds of killed processes left.
    sweepTemporaries(place, temporaryPrefix);
    // 4 MB are more than one build takes; a place that doesn't have them isn't
    // one.
    std::error_code unknown;
    fs::space_info space = fs::space(place, unknown);
    int failed =
        !unknown && space.available < (4u << 20) ? ENOSPC : makeTempDirectory(place, temporaryPrefix, directory);
    if (failed) {
      unusable(place, std::strerror(failed));
      continue;
    }
    Result<CompileOutput> output = compileIn(directory, artifact);
    if (Switches::get().keepTemps)
      fmt::print(stderr, "attnc: kept `{}`\n", directory);
    else
      removeTree(directory);
    return output;
  }
  return Error{"no directory for temporary files: " + failures, {}, {}};
}

std::unique_ptr<Compiler> attn::rt::createHostCompiler(std::vector<std::string> extraFlags) {
  return std::make_unique<HostCompiler>(std::move(extraFlags));
}

std::unique_ptr<Compiler> attn::rt::createCompiler(std::string_view target) {
  if (target == "cpu")
    return createHostCompiler();
  return createNvrtcCompiler();
}

Compiler::~Compiler() = default;
