// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Files.h"
#include "TestHelpers.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace attn::rt;

using Clock = std::chrono::steady_clock;
static double ms(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

/// Runs a function in a child; its wait status.
static int inChild(const std::function<void()> &body) {
  std::fflush(nullptr);
  pid_t pid = ::fork();
  if (pid == 0) {
    body();
    std::fflush(nullptr);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

static std::string entryOf(const std::string &root) {
  for (const std::string &name : namesIn(root + "/v3"))
    if (name[0] != '.')
      return root + "/v3/" + name;
  return "";
}

static bool noTemporaries(const std::string &root) { return namesIn(root + "/v3/.tmp").empty(); }

static CacheOptions at(const std::string &root) {
  CacheOptions options;
  options.root = root;
  return options;
}

/// Memory in front of disk in front of the compiler; every part of the key
/// counts; names a file system wouldn't like.
static void basics(const std::string &root) {
  FakeCompiler compiler;
  Artifact artifact = someArtifact();
  EXPECT(expectRight(root, compiler, artifact).compiles == 1);
  EXPECT(expectRight(root, compiler, artifact).diskHits == 1);
  for (const char *file : {"kernel.cu", "kernel.cubin", "artifact.json", "build.log", "entry.json"})
    EXPECT(readFile(entryOf(root) + "/" + file).has_value(), "{}", file);

  Cache cache(at(root));
  EXPECT(cache.get(compiler, artifact).ok());
  Clock::time_point begin = Clock::now();
  for (int i = 0; i < 1000; ++i)
    EXPECT(cache.get(compiler, artifact).ok());
  EXPECT(ms(begin) < 100, "a lookup in memory took {} us", ms(begin));
  EXPECT(cache.stats().memoryHits == 1000);

  compiler.options.push_back("-g");
  EXPECT(expectRight(root, compiler, artifact).compiles == 1);
  compiler.name = "1.1";
  EXPECT(expectRight(root, compiler, artifact).compiles == 1);
  artifact.target = "sm_90a";
  EXPECT(expectRight(root, compiler, artifact).compiles == 1);
  artifact.source += "\n";
  EXPECT(expectRight(root, compiler, artifact).compiles == 1);
  CacheOptions other = at(root);
  other.libraryBuild = "another";
  EXPECT(Cache(other).get(compiler, artifact).ok() && Cache(other).list().size() == 6);
  // The launch's side of an artifact is the caller's even if the code is
  // shared.
  artifact.smemBytes = 1024;
  EXPECT((*cache.get(compiler, artifact))->artifact.smemBytes == 1024);
  EXPECT(expectRight(root, compiler, someArtifact("x", "../../weird name/\n" + std::string(300, 'x'))).compiles == 1);
  EXPECT(Cache(at(root)).list(/*deep=*/true).size() == 7 && Cache(at(root)).removeBad() == 0);
}

/// Two processes build one entry fifty times over, with threads of their own.
static void race(const std::string &root) {
  for (int round = 0; round < 50; ++round) {
    std::string dir = fmt::format("{}/{}", root, round);
    FakeCompiler compiler;
    compiler.during = [] { ::usleep(2000); };
    pid_t children[2];
    std::fflush(nullptr);
    for (pid_t &child : children)
      if ((child = ::fork()) == 0) {
        Cache cache(at(dir));
        std::thread threads[2];
        for (std::thread &thread : threads)
          thread = std::thread([&] {
            auto kernel = cache.get(compiler, someArtifact());
            EXPECT(kernel.ok() && (*kernel)->binary == FakeCompiler::right(someArtifact().source));
          });
        for (std::thread &thread : threads)
          thread.join();
        EXPECT(cache.stats().compiles <= 1 && cache.stats().unpublished == 0 && cache.stats().repairs == 0);
        ::_exit(0);
      }
    for (pid_t child : children) {
      int status = 1;
      ::waitpid(child, &status, 0);
      EXPECT(status == 0, "round {}", round);
    }
    EXPECT(expectRight(dir, compiler, someArtifact()).diskHits == 1);
    EXPECT(noTemporaries(dir) && Cache(at(dir)).list(/*deep=*/true).size() == 1);
  }
}

/// kill -9 while compiling, at every step of publishing and at every step of
/// replacing a bad entry; after each, the next process is right, and one more
/// finds a good entry on disk.
static void killed(const std::string &root) {
  FakeCompiler killedIn, compiler;
  killedIn.during = [] { ::kill(::getpid(), SIGKILL); };
  EXPECT(WIFSIGNALED(inChild([&] { expectRight(root + "/c", killedIn, someArtifact()); })));
  EXPECT(expectRight(root + "/c", compiler, someArtifact()).compiles == 1);

  for (bool damaged : {false, true}) {
    int step = 0;
    for (bool finished = false; !finished; ++step) {
      EXPECT(step < 200, "publishing has no end");
      std::string dir = fmt::format("{}/{}{}", root, damaged, step);
      if (damaged) {
        expectRight(dir, compiler, someArtifact());
        EXPECT(::truncate((entryOf(dir) + "/kernel.cubin").c_str(), 100) == 0);
      }
      int status = inChild([&] {
        fault = {step, /*kill=*/true, 0, 0};
        expectRight(dir, compiler, someArtifact());
      });
      finished = status == 0;
      EXPECT(finished || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
      // What is under its final name is whole, whenever we died.
      CacheStats next = expectRight(dir, compiler, someArtifact());
      EXPECT(damaged || next.repairs == 0, "step {}", step);
      EXPECT(expectRight(dir, compiler, someArtifact()).diskHits == 1, "step {}", step);
      Cache(at(dir)).removeBad();
      EXPECT(noTemporaries(dir), "step {}", step);
    }
    EXPECT(step > 10, "faults were not injected: {} steps", step);
  }
}

/// No space (or an I/O error) from the n-th call on, for every n: right at
/// once, from memory; right again and on disk once there is room.
static void full(const std::string &root) {
  FakeCompiler compiler;
  for (int error : {ENOSPC, EIO, EROFS, -ENOSPC}) { // negative: one call only
    bool hit = true;
    for (int step = 0; hit; ++step) {
      std::string dir = fmt::format("{}/{}-{}", root, error, step);
      int status = inChild([&] {
        fault = {step, false, std::abs(error), 0, error < 0};
        CacheStats stats = expectRight(dir, compiler, someArtifact());
        EXPECT(stats.compiles == 1);
        ::_exit(fault.seen > step ? 7 : 0);
      });
      EXPECT(WIFEXITED(status) && (WEXITSTATUS(status) == 7 || WEXITSTATUS(status) == 0));
      hit = WEXITSTATUS(status) == 7;
      // A failed write leaves nothing, rather than something bad.
      EXPECT(expectRight(dir, compiler, someArtifact()).repairs == 0);
      EXPECT(expectRight(dir, compiler, someArtifact()).diskHits == 1, "errno {} step {}", error, step);
    }
  }
}

/// Each file missing, empty, cut, one bit flipped in many places, longer;
/// entries swapped; junk for a directory.
static void damage(const std::string &root) {
  FakeCompiler compiler;
  Artifact artifact = someArtifact();
  expectRight(root, compiler, artifact);
  std::string entry = entryOf(root);
  auto rebuilt = [&](const char *what, const std::string &file, bool needed) {
    CacheStats stats = expectRight(root, compiler, artifact);
    EXPECT(!needed || (stats.repairs == 1 && stats.compiles == 1), "{} {}", what, file);
    Cache cache(at(root));
    EXPECT(needed || cache.list(/*deep=*/true)[0].problem != "", "{} {}", what, file);
    if (!needed)
      EXPECT(cache.removeBad() == 1);
    expectRight(root, compiler, artifact);
    EXPECT(expectRight(root, compiler, artifact).diskHits == 1 && Cache(at(root)).list(true)[0].problem == "");
  };
  for (std::string name : {"entry.json", "kernel.cubin", "kernel.cu", "artifact.json", "build.log"}) {
    bool needed = name == "entry.json" || name == "kernel.cubin";
    std::string file = entry + "/" + name;
    ::unlink(file.c_str());
    rebuilt("missing", file, needed);
    EXPECT(::truncate(file.c_str(), 0) == 0);
    rebuilt("empty", file, needed);
    EXPECT(::truncate(file.c_str(), static_cast<off_t>(readFile(file)->size() / 2)) == 0);
    rebuilt("truncated", file, needed);
    ::unlink(file.c_str());
    ::mkdir(file.c_str(), 0777);
    rebuilt("a directory", file, needed);
    ::unlink(file.c_str());
    ::mkfifo(file.c_str(), 0666);
    rebuilt("a fifo", file, needed);
  }
  for (const char *name : {"kernel.cubin", "entry.json"}) {
    std::string file = entry + "/" + name, good = *readFile(file);
    for (size_t i = 0; i < 40; ++i) {
      std::string bad = good;
      bad[bad.size() * i / 40] ^= static_cast<char>(1 << i % 7);
      ::unlink(file.c_str());
      writeNewFile(file, bad, false);
      // White space of entry.json may change without harm; the answer must be
      // right in any case.
      expectRight(root, compiler, artifact);
      EXPECT(expectRight(root, compiler, artifact).diskHits == 1);
      good = *readFile(file);
    }
  }
  // A digit of the report changes: still JSON, still nonsense.
  std::string record = *readFile(entry + "/entry.json");
  record.replace(record.find("168"), 3, "169");
  ::unlink((entry + "/entry.json").c_str());
  writeNewFile(entry + "/entry.json", record, false);
  rebuilt("altered", "entry.json", true);
  // Another kernel's entry under this name is whole and still wrong.
  std::string other = root + "-other";
  expectRight(other, compiler, someArtifact("another"));
  removeTree(entry);
  ::rename(entryOf(other).c_str(), entry.c_str());
  rebuilt("swapped", entry, true);
  removeTree(entry);
  writeNewFile(entry, "junk", false);
  rebuilt("a file for an entry", entry, true);
}

/// Directories that don't work: `root` is one already (a read-only mount, a
/// small tmpfs), or one of our own making.
static void useless(const std::string &root) {
  FakeCompiler compiler;
  Cache cache(at(root));
  for (int i = 0; i < 3; ++i) { // three kernels, one warning
    auto kernel = cache.get(compiler, someArtifact(fmt::format("source {}", i)));
    EXPECT(kernel.ok() && (*kernel)->binary == FakeCompiler::right(fmt::format("source {}", i)) &&
           (*kernel)->directory.empty());
  }
  EXPECT(cache.stats().unpublished == 3);
  compiler.fails = true;
  auto failed = cache.get(compiler, someArtifact("bad"));
  EXPECT(!failed && readFile(failed.error().path + "/kernel.cu") == "bad", "{}", failed.error().path);
}

/// A directory that can be read: hits are hits, what is bad or missing is
/// compiled.
static void readonly(const std::string &root) {
  FakeCompiler compiler;
  EXPECT(expectRight(root, compiler, someArtifact()).diskHits == 1);
  EXPECT(expectRight(root, compiler, someArtifact("not there")).compiles == 1);
}

/// Entries of other formats are neither read nor harmed.
static void versions(const std::string &root) {
  FakeCompiler compiler;
  expectRight(root, compiler, someArtifact());
  std::string name = entryOf(root).substr(root.size() + 4);
  makeDirectories(root + "/v0/" + name);
  makeDirectories(root + "/v2");
  EXPECT(::rename(entryOf(root).c_str(), (root + "/v2/" + name).c_str()) == 0);
  EXPECT(expectRight(root, compiler, someArtifact()).compiles == 1);
  EXPECT(Cache(at(root)).prune(0) == 1 && readFile(root + "/v2/" + name + "/kernel.cubin"));
}

/// Least recently used goes first; a hit counts as use; what was just built
/// stays.
static void bound(const std::string &root) {
  FakeCompiler compiler;
  CacheOptions options = at(root);
  options.maxBytes = 200000; // three entries
  auto age = [&](const std::string &directory, int seconds) {
    timespec times[2] = {{::time(nullptr) - seconds, 0}, {::time(nullptr) - seconds, 0}};
    ::utimensat(AT_FDCWD, (directory + "/entry.json").c_str(), times, 0);
  };
  std::vector<std::string> directories;
  for (int i = 0; i < 3; ++i) {
    Cache cache(options);
    directories.push_back((*cache.get(compiler, someArtifact(fmt::format("{}", i))))->directory);
    age(directories.back(), 1000 - 100 * i);
  }
  EXPECT(expectRight(root, compiler, someArtifact("0")).diskHits == 1);
  Cache cache(options);
  EXPECT(cache.get(compiler, someArtifact("3")).ok() && cache.stats().evicted == 1);
  EXPECT(readFile(directories[0] + "/kernel.cu") && !readFile(directories[1] + "/kernel.cu"));
  EXPECT(Cache(options).prune(0) == 3 && Cache(options).list().empty() && noTemporaries(root));
}

/// Why was this recompiled; and the reproducer of a failure, with the caller's
/// file in it.
static void explain(const std::string &root) {
  FakeCompiler compiler;
  Cache cache(at(root));
  fmt::print("{}", *cache.explain(compiler, someArtifact()));
  EXPECT(cache.get(compiler, someArtifact()).ok());
  fmt::print("{}", *cache.explain(compiler, someArtifact()));
  compiler.name = "1.1";
  fmt::print("{}", *cache.explain(compiler, someArtifact("void k() {} // a kernel\nint x;\n")));
  EXPECT(cache.get(compiler, someArtifact("void k() {} // a kernel\nint x;\n")).ok());

  compiler.fails = true;
  for (int i = 0; i < 2; ++i) { // not remembered, not in the way of itself
    auto failed = cache.get(compiler, someArtifact("int main("), [] {
      return std::vector<std::pair<std::string, std::string>>{{"problem.mlir", "attn.kernel\n"}};
    });
    EXPECT(!failed);
    fmt::print("{}\n", failed.error().str());
    EXPECT(readFile(failed.error().path + "/problem.mlir") == "attn.kernel\n");
    EXPECT(readFile(failed.error().path + "/build.log")->find("error: no") != std::string::npos);
  }
  compiler.fails = false;
  EXPECT(cache.get(compiler, someArtifact("int main(")).ok());
}

/// A half-written kernel of this process, killed by the script in a loop:
/// `attn-rt-test torture <dir>`.
static void torture(const std::string &root) {
  ::alarm(600); // the script may be dead
  FakeCompiler compiler;
  for (int i = 0;; ++i)
    expectRight(root, compiler, someArtifact(fmt::format("{}", i % 40)));
}

/// After the torture: whatever is there, forty right answers, and then a clean
/// directory.
static void recover(const std::string &root) {
  FakeCompiler compiler;
  for (int i = 0; i < 40; ++i)
    expectRight(root, compiler, someArtifact(fmt::format("{}", i)));
  Cache cache(at(root));
  cache.removeBad();
  EXPECT(noTemporaries(root) && cache.list(/*deep=*/true).size() == 40);
}

int attn::rt::cacheTest(const std::string &name, const std::string &root) {
  const std::pair<const char *, void (*)(const std::string &)> tests[] = {
      {"basics", basics}, {"race", race},       {"killed", killed},     {"full", full},
      {"damage", damage}, {"useless", useless}, {"readonly", readonly}, {"versions", versions},
      {"bound", bound},   {"explain", explain}, {"torture", torture},   {"recover", recover}};
  for (const auto &[test, body] : tests)
    if (name == test) {
      EXPECT(!root.empty(), "give a directory");
      body(root);
      return 0;
    }
  return -1;
}
