// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roots of the cache that are only read. They must be as they were after each
// test: root can write to what is read-only by mode, so contents and times are
// compared, changes of an inode included.
//
#include "Files.h"
#include "TestHelpers.h"

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

using namespace attn::rt;
namespace fs = std::filesystem;

static std::string entryOf(const std::string &root) {
  for (const std::string &name : namesIn(root + "/v3"))
    if (name[0] != '.')
      return root + "/v3/" + name;
  return "";
}

/// Everything that a write, a rename, a chmod or a touch changes below a root.
static std::string stateOf(const std::string &root) {
  std::string state;
  auto add = [&](const fs::path &path) {
    struct stat info = {};
    EXPECT(::lstat(path.c_str(), &info) == 0, "{}", path.string());
    state += fmt::format("{} {} {:o} {} {}.{} {}.{}\n", path.string(), info.st_ino, info.st_mode, info.st_size,
                         info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
    if (S_ISREG(info.st_mode))
      state += *readFile(path);
  };
  add(root);
  for (const auto &item : fs::recursive_directory_iterator(root))
    add(item.path());
  return state;
}

/// An image's cache with these sources, used long ago, so that a touch would show.
static void fill(const std::string &root, const std::vector<std::string> &sources) {
  removeTree(root);
  for (const std::string &source : sources)
    EXPECT(expectRight(root, FakeCompiler(), someArtifact(source)).compiles == 1);
  timespec times[2] = {{::time(nullptr) - 10000, 0}, {::time(nullptr) - 10000, 0}};
  for (const auto &item : fs::recursive_directory_iterator(root))
    EXPECT(::utimensat(AT_FDCWD, item.path().c_str(), times, 0) == 0);
}

static CacheOptions with(const std::string &root, std::vector<std::string> readOnly) {
  CacheOptions options;
  options.root = root;
  options.readOnlyRoots = std::move(readOnly);
  return options;
}

/// The kernel of `source`, which must be right, from a new Cache.
static std::shared_ptr<const CompiledKernel> get(Cache &cache, const std::string &source) {
  auto kernel = cache.get(FakeCompiler(), someArtifact(source));
  EXPECT(kernel.ok(), "{}", kernel.error().str());
  EXPECT((*kernel)->binary == FakeCompiler::right(source) && (*kernel)->report.registers == 168);
  return *kernel;
}
/// The root that it came from; "compiled" if from none.
static std::string origin(const CacheOptions &options, const std::string &source) {
  Cache cache(options);
  std::string directory = get(cache, source)->directory;
  CacheStats stats = cache.stats();
  EXPECT(stats.diskHits + stats.compiles == 1);
  return stats.compiles ? "compiled" : directory.substr(0, directory.find("/v3/"));
}

/// The user's root, then the others in order; what none has is built into the
/// user's, which need not be there.
static void order(const std::string &dir) {
  std::string user = dir + "/user", first = dir + "/first", second = dir + "/second";
  fill(first, {"a"});
  fill(second, {"a", "b"});
  std::string before = stateOf(first) + stateOf(second);
  CacheOptions options = with(user, {dir + "/missing", first, second});

  fault = {0, false, EROFS}; // a hit makes no call that writes, of which the first would fail
  EXPECT(origin(options, "a") == first && origin(options, "b") == second && fault.seen == 0);
  fault = {};
  EXPECT(!fs::exists(user) && !fs::exists(dir + "/missing"), "a hit makes no folders");
  EXPECT(origin(options, "c") == "compiled" && origin(options, "c") == user);
  EXPECT(expectRight(user, FakeCompiler(), someArtifact("a")).compiles == 1, "hits are not copied");
  EXPECT(origin(options, "a") == user);
  {
    Cache cache(options);
    EXPECT(get(cache, "b")->origin == CompiledKernel::Origin::Disk);
    EXPECT(get(cache, "b") && cache.stats().memoryHits == 1 && cache.stats().compiles == 0);
  }
  // The user's is damaged, and one below has it.
  {
    Cache cache(options);
    EXPECT(::truncate((get(cache, "a")->directory + "/kernel.cubin").c_str(), 5) == 0);
  }
  EXPECT(origin(options, "a") == first && origin(options, "c") == user && Cache(options).removeBad() == 1);

  // The bound, and what tools remove, are of the user's root alone.
  options.maxBytes = 1;
  EXPECT(origin(options, "d") == "compiled" && origin(options, "b") == second);
  Cache cache(options);
  EXPECT(cache.list().size() == 1 && cache.roots().size() == 4);
  EXPECT(cache.removeBad() == 0 && cache.prune(0) == 1 && cache.list().empty());
  EXPECT(cache.roots()[2].entries.size() == 1 && cache.roots()[3].entries.size() == 2 && cache.roots()[3].readOnly);
  EXPECT(cache.roots()[1].problem == "No such file or directory" && cache.roots()[2].problem.empty());

  // A user's root that is none, or off.
  EXPECT(writeNewFile(dir + "/file", "", false) == 0);
  EXPECT(origin(with(dir + "/file", {first}), "a") == first && origin(with("", {first}), "a") == first);
  EXPECT(origin(with(dir + "/file", {first}), "b") == "compiled" && origin(with("", {first}), "b") == "compiled");
  options.maxBytes = 0;
  EXPECT(origin(options, "a") == first && origin(options, "e") == "compiled" && Cache(options).root().empty());
  // A failed compile leaves its reproducer elsewhere.
  FakeCompiler failing;
  failing.fails = true;
  auto failed = Cache(with("", {first})).get(failing, someArtifact("bad"));
  EXPECT(!failed && failed.error().path.rfind(first, 0) != 0);
  EXPECT(stateOf(first) + stateOf(second) == before);

  // The user's root itself is written.
  EXPECT(Cache(with(first, {dir + "/first/../first", second})).roots().size() == 2);
  EXPECT(origin(with(first, {first}), "b") == "compiled" && stateOf(first) + stateOf(second) != before);
}

/// Entries that are no good stay as they are, and good ones are built into the
/// user's root.
static void damage(const std::string &dir) {
  std::string user = dir + "/user", image = dir + "/image", spare = dir + "/spare";
  CacheOptions options = with(user, {image, spare});
  auto isPassedOver = [&](const char *what, const std::function<void(const std::string &)> &spoil) {
    removeTree(user);
    fill(image, {"a"});
    fill(spare, {"a"});
    spoil(image);
    std::string before = stateOf(image);
    EXPECT(origin(options, "a") == spare, "{}: the next one has it", what);
    spoil(spare);
    before += stateOf(spare);
    Cache cache(options);
    EXPECT(get(cache, "a")->directory.rfind(user + "/", 0) == 0, "{}", what);
    EXPECT(cache.stats().compiles == 1 && cache.stats().repairs == 0 && cache.stats().unpublished == 0, "{}", what);
    EXPECT(origin(options, "a") == user, "{}", what);
    EXPECT(stateOf(image) + stateOf(spare) == before, "{}", what);
  };
  auto with = [](const char *file, const std::function<void(const std::string &)> &change) {
    return [=](const std::string &root) { change(file[0] == '/' ? root + file : entryOf(root) + "/" + file); };
  };
  auto cut = [](const std::string &path) { EXPECT(::truncate(path.c_str(), 100) == 0); };
  auto gone = [](const std::string &path) { EXPECT(::unlink(path.c_str()) == 0); };
  auto flip = [](const std::string &path) {
    std::string bytes = *readFile(path);
    bytes[bytes.size() / 2] ^= 1;
    ::unlink(path.c_str());
    EXPECT(writeNewFile(path, bytes, false) == 0);
  };
  auto open = [](const std::string &path) { EXPECT(::chmod(path.c_str(), 0777) == 0); };
  for (const char *file : {"kernel.cubin", "entry.json"}) {
    isPassedOver("truncated", with(file, cut));
    isPassedOver("missing", with(file, gone));
    isPassedOver("altered", with(file, flip));
    isPassedOver("writable by all", with(file, open));
  }
  for (const char *folder : {"", "/", "/v3"})
    isPassedOver("a folder that is writable by all", with(folder, open));
  isPassedOver("a symbolic link", [](const std::string &root) {
    removeTree(root + "-away");
    EXPECT(::rename((root + "/v3").c_str(), (root + "-away").c_str()) == 0);
    EXPECT(::symlink((root + "-away").c_str(), (root + "/v3").c_str()) == 0);
  });
  EXPECT(Cache(options).roots(/*deep=*/true)[1].problem.find("is a symbolic link") != std::string::npos);
  if (::geteuid() == 0)
    for (const char *path : {"kernel.cubin", "entry.json", "", "/", "/v3"})
      isPassedOver("somebody else's",
                   with(path, [](const std::string &path) { EXPECT(::chown(path.c_str(), 12345, 12345) == 0); }));

  // Another build of the library.
  removeTree(user);
  fill(image, {"a"});
  fill(spare, {"b"});
  std::string before = stateOf(image);
  options.libraryBuild = "another";
  EXPECT(origin(options, "a") == "compiled" && origin(options, "a") == user);
  // A binary that can't be loaded though its checksums hold.
  options.libraryBuild.clear();
  Cache cache(options);
  auto useless = get(cache, "a");
  EXPECT(useless->directory.rfind(image, 0) == 0);
  auto again = cache.rebuild(FakeCompiler(), *useless);
  EXPECT(again.ok() && (*again)->directory.rfind(user, 0) == 0 && cache.stats().repairs == 1);
  EXPECT(origin(options, "a") == user && stateOf(image) == before);
}

/// Why a kernel was compiled, and where the versions of compilers are noted.
static void explain(const std::string &dir) {
  std::string user = dir + "/user", image = dir + "/image", spare = dir + "/spare";
  struct Noted : FakeCompiler {
    mutable int asked = 0;
    std::string toolPath() const override { return "/proc/self/exe"; }
    Result<std::string> version() const override {
      ++asked;
      return name;
    }
  } compiler;
  removeTree(image);
  EXPECT(Cache(with(image, {})).get(compiler, someArtifact("a")).ok() && compiler.asked == 1);
  std::string before = stateOf(image);
  CacheOptions options = with(user, {image, spare});
  fmt::print("{}", *Cache(options).explain(compiler, someArtifact("a")));
  EXPECT(Cache(options).get(compiler, someArtifact("a")).ok() && compiler.asked == 1, "its version is noted there");
  fmt::print("{}", *Cache(options).explain(compiler, someArtifact("b")));
  fmt::print("{}", *Cache(options).explain(compiler, someArtifact("a", "another")));
  EXPECT(stateOf(image) == before && !fs::exists(user));
  EXPECT(Cache(options).get(compiler, someArtifact("b")).ok());
  EXPECT(::chmod(image.c_str(), 0777) == 0);
  fmt::print("{}", *Cache(options).explain(compiler, someArtifact("a")));
}

/// A hit in a root on a file system that can't be written, below a user's root
/// that can't be made.
static void mounted(const std::string &image) {
  CacheOptions options = with("/proc/attnc", {image});
  EXPECT(origin(options, someArtifact().source) == image && origin(options, "not there") == "compiled");
  options = with(image, {});
  EXPECT(origin(options, someArtifact().source) == image);
}

int attn::rt::readOnlyTest(const std::string &name, const std::string &dir) {
  const std::pair<const char *, void (*)(const std::string &)> tests[] = {{"readonly-order", order},
                                                                          {"readonly-damage", damage},
                                                                          {"readonly-explain", explain},
                                                                          {"readonly-mounted", mounted}};
  for (const auto &[test, body] : tests)
    if (name == test) {
      makeDirectories(dir);
      body(dir);
      return 0;
    }
  return -1;
}
