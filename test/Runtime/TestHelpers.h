// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiler that is quick and knows the right answer, and faults to order.
//
#ifndef ATTN_TEST_RUNTIME_TESTHELPERS_H
#define ATTN_TEST_RUNTIME_TESTHELPERS_H

#include "attn-rt/Cache.h"
#include "attn-rt/Compiler.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include <unistd.h>

namespace attn::rt {

#define EXPECT(condition, ...)                                                                                         \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fmt::print(stderr, "{}:{}: expected {}", __FILE__, __LINE__, #condition);                                        \
      fmt::print(stderr, "  " __VA_ARGS__);                                                                            \
      fmt::print(stderr, "\n");                                                                                        \
      std::fflush(nullptr);                                                                                            \
      ::_exit(1);                                                                                                      \
    }                                                                                                                  \
  } while (false)

/// "Compiles" a text to 60 KB made of it. `during` runs in the middle of a
/// compile.
struct FakeCompiler : Compiler {
  std::string name = "1.0";
  std::vector<std::string> options = {"-O3"};
  std::function<void()> during;
  bool fails = false;

  std::string_view kind() const override { return "fake"; }
  Result<std::string> version() const override { return name; }
  std::string toolPath() const override { return ""; }
  std::string headerDigest() const override { return "h1"; }
  std::vector<std::string> flags(std::string_view) const override { return options; }
  std::string_view sourceFile() const override { return "kernel.cu"; }
  std::string_view binaryFile() const override { return "kernel.cubin"; }
  static std::string right(const std::string &source) {
    std::string binary;
    while (binary.size() < 60000)
      binary += source;
    return binary;
  }
  Result<CompileOutput> compile(const Artifact &artifact) const override {
    if (during)
      during();
    if (fails)
      return Error{"the fake compiler failed", "kernel.cu(1): error: no\n", {}};
    return CompileOutput{right(artifact.source), "made it\n", {168, 0, 0, 0, 0}};
  }
};

inline Artifact someArtifact(std::string source = "void k() {} // a kernel\n", std::string name = "dense_causal") {
  Artifact artifact;
  artifact.name = std::move(name);
  artifact.entry = artifact.name;
  artifact.target = "sm_80";
  artifact.source = std::move(source);
  artifact.params = {{"q", Param::Kind::Pointer}, {"scale", Param::Kind::F32}};
  artifact.threads = 128;
  artifact.smemBytes = 69632;
  return artifact;
}

/// A fresh Cache (an empty process, so to speak) must give the right binary;
/// says what it took.
inline CacheStats expectRight(const std::string &root, const Compiler &compiler, const Artifact &artifact) {
  CacheOptions options;
  options.root = root;
  Cache cache(options);
  auto kernel = cache.get(compiler, artifact);
  EXPECT(kernel.ok(), "{}", kernel.error().str());
  EXPECT((*kernel)->binary == FakeCompiler::right(artifact.source));
  EXPECT((*kernel)->report.registers == 168);
  return cache.stats();
}

/// What the next calls of write, fsync, rename, renameat2, mkdir, chmod and
/// open-for-writing of this process do: after `after` of them, `kill` (SIGKILL
/// to ourselves) or fail with `error`. They count from the moment that this is
/// set; -1 is off.
struct Fault {
  long after = -1;
  bool kill = false;
  int error = 0;
  long seen = 0;
  bool once = false; ///< only that call, the ones after it work
};
extern Fault fault;
/// What happens behind each openat, which gets a name; off where empty.
extern std::function<void(const std::string &)> afterOpen;

int cacheTest(const std::string &name, const std::string &root);
int compilerTest(const std::string &name, const std::string &argument);
int readOnlyTest(const std::string &name, const std::string &dir);
int trustTest(const std::string &name, const std::string &root);
int launchTest(const std::string &name);
int packTest(const std::string &name);
int programTest(const std::string &name);

/// Holds that a program's text with `to` instead of the first `from` is refused, and prints why.
void refuseProgram(std::string json, const std::string &from, const std::string &to);
int stepTest(const std::string &name, const std::string &argument);

} // namespace attn::rt

#endif // ATTN_TEST_RUNTIME_TESTHELPERS_H
