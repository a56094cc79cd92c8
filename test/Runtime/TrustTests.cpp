// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whose entries of the cache are loaded. The tests whose names begin with
// `foreign` give files to other users, so they are for root.
//
#include "Digest.h"
#include "Entry.h"
#include "Files.h"
#include "TestHelpers.h"
#include "Trust.h"
#include "attn-rt/Module.h"

#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace attn::rt;
namespace fs = std::filesystem;

static constexpr uid_t stranger = 12345, member = 23456;

static std::string entryOf(const std::string &root) {
  for (const std::string &name : namesIn(root + "/v3"))
    if (name[0] != '.')
      return root + "/v3/" + name;
  return "";
}

static void give(const std::string &path, uid_t owner) {
  EXPECT(::lchown(path.c_str(), owner, owner) == 0, "{}", path);
  if (fs::is_directory(path) && !fs::is_symlink(path))
    for (const auto &item : fs::recursive_directory_iterator(path))
      EXPECT(::lchown(item.path().c_str(), owner, owner) == 0, "{}", item.path().string());
}

static void setMode(const std::string &path, mode_t mode) { EXPECT(::chmod(path.c_str(), mode) == 0, "{}", path); }
static mode_t modeOf(const std::string &path) {
  struct stat info = {};
  EXPECT(::lstat(path.c_str(), &info) == 0, "{}", path);
  return info.st_mode & 07777;
}

/// A cache that has one good entry, and whether the next process reads it.
static std::string withEntry(const std::string &root) {
  removeTree(root);
  EXPECT(expectRight(root, FakeCompiler(), someArtifact()).compiles == 1);
  EXPECT(expectRight(root, FakeCompiler(), someArtifact()).diskHits == 1);
  return entryOf(root);
}
static bool isRead(const std::string &root) {
  CacheStats stats = expectRight(root, FakeCompiler(), someArtifact());
  EXPECT(stats.diskHits + stats.compiles == 1);
  return stats.diskHits == 1;
}
static bool isWritten(const std::string &root) {
  return expectRight(root, FakeCompiler(), someArtifact("another")).unpublished == 0;
}

/// What anybody may write to is neither read nor, where it is a folder above
/// the entries, written.
static void writable(const std::string &parent) {
  makeDirectories(parent);
  std::string root = parent + "/cache", entry = withEntry(root);
  for (const std::string &folder : {root, root + "/v3"})
    for (mode_t mode : {0770, 0707, 01777, 01770}) {
      withEntry(root);
      setMode(folder, mode);
      EXPECT(!isRead(root) && !isWritten(root), "{} {:o}", folder, mode);
      EXPECT(Cache({root}).whyPassedOver().find(folder + "` may be written") != std::string::npos);
      EXPECT(Cache({root}).list().empty() && Cache({root}).prune(0) == 0);
      FakeCompiler failing;
      failing.fails = true;
      std::string reproducer = Cache({root}).get(failing, someArtifact("bad")).error().path;
      EXPECT(!reproducer.empty() && (folder != root || reproducer.rfind(root + "/", 0) != 0), "{}", reproducer);
      setMode(folder, 0700);
      EXPECT(isRead(root), "nothing in there was touched");
    }
  withEntry(root);
  for (mode_t mode : {0775, 0757}) {
    setMode(parent, mode);
    EXPECT(!isRead(root) && !isWritten(root), "a folder above, {:o}", mode);
  }
  for (mode_t mode : {01777, 0755, 0711}) {
    setMode(parent, mode);
    EXPECT(isRead(root) && isWritten(root), "a folder above, {:o}", mode);
  }
  // One entry, which is passed over, and built anew in its place.
  for (const char *file : {"", "/entry.json", "/kernel.cubin"}) {
    withEntry(root);
    setMode(entry + file, *file ? 0620 : 0730);
    EXPECT(Cache({root}).list(/*deep=*/true)[0].problem.rfind("passed over, `" + entry, 0) == 0);
    EXPECT(!isRead(root) && isRead(root), "{}", file);
  }
}

/// Symbolic links in the place of what is read; above the cache they are fine.
static void links(const std::string &parent) {
  makeDirectories(parent);
  std::string root = parent + "/cache", entry = withEntry(root), away = parent + "/away";
  for (const std::string &path : {entry + "/kernel.cubin", entry + "/entry.json", entry, root + "/v3"}) {
    withEntry(root);
    removeTree(away);
    EXPECT(::rename(path.c_str(), away.c_str()) == 0 && ::symlink(away.c_str(), path.c_str()) == 0);
    EXPECT(!isRead(root), "{}", path);
    EXPECT(isRead(root) == (path != root + "/v3"), "{}", path);
    EXPECT(fs::exists(away), "what a link leads to is not ours");
    ::unlink(path.c_str());
  }
  withEntry(root);
  std::string link = parent + "/link", relative = parent + "/relative";
  EXPECT(::symlink(root.c_str(), link.c_str()) == 0 && ::symlink("../links/cache", relative.c_str()) == 0);
  EXPECT(isRead(link) && isRead(link + "/../cache/.") && isRead(relative) == (fs::path(parent).filename() == "links"));
  EXPECT(::symlink("loop", (parent + "/loop").c_str()) == 0 && !isRead(parent + "/loop"));
  // A hard link to a file of ours is that file.
  withEntry(root);
  EXPECT(::link((entry + "/kernel.cubin").c_str(), (parent + "/twin").c_str()) == 0 && isRead(root));
  setMode(parent + "/twin", 0666);
  EXPECT(!isRead(root), "whoever may write the one writes the other");
}

/// Everything that is written, whatever the umask.
static void modes(const std::string &parent) {
  makeDirectories(parent);
  for (mode_t mask : {0, 022, 0277, 0777}) {
    mode_t before = ::umask(mask);
    std::string root = fmt::format("{}/{:o}/deep/cache", parent, mask);
    expectRight(root, FakeCompiler(), someArtifact());
    FakeCompiler failing;
    failing.fails = true;
    EXPECT(!Cache({root}).get(failing, someArtifact("bad")));
    struct Named : FakeCompiler { // whose version is noted in .compilers
      std::string toolPath() const override { return "/proc/self/exe"; }
    };
    expectRight(root, Named(), someArtifact());
    ::umask(before);
    int files = 0;
    for (const auto &item : fs::recursive_directory_iterator(fmt::format("{}/{:o}", parent, mask))) {
      EXPECT(modeOf(item.path()) == (item.is_directory() ? 0700 : 0600), "{} {:o}", item.path().string(),
             modeOf(item.path()));
      files += item.is_regular_file();
    }
    EXPECT(files == 5 + 1 + 3, "{}", files);
  }
}

/// Files and folders of others.
static void foreignOwners(const std::string &parent) {
  makeDirectories(parent);
  std::string root = parent + "/cache", entry = withEntry(root);
  for (const std::string &path : {entry, entry + "/entry.json", entry + "/kernel.cubin"}) {
    withEntry(root);
    EXPECT(::chown(path.c_str(), stranger, stranger) == 0);
    EXPECT(!isRead(root) && isRead(root), "{}", path);
  }
  for (const std::string &path : {root, root + "/v3", parent}) {
    withEntry(root);
    EXPECT(::chown(path.c_str(), stranger, stranger) == 0);
    EXPECT(!isRead(root) && !isWritten(root), "{}", path);
    EXPECT(::chown(path.c_str(), 0, 0) == 0 && isRead(root));
  }
  // A hard link to somebody else's file.
  withEntry(root);
  std::string theirs = parent + "/theirs", file = entry + "/kernel.cubin";
  fs::copy_file(file, theirs);
  give(theirs, stranger);
  EXPECT(::unlink(file.c_str()) == 0 && ::link(theirs.c_str(), file.c_str()) == 0 && !isRead(root));
  // A link on the way that somebody else made.
  withEntry(root);
  std::string link = parent + "/link";
  EXPECT(::symlink(root.c_str(), link.c_str()) == 0 && isRead(link));
  give(link, stranger);
  EXPECT(!isRead(link));
  // What was there before somebody cleaned up the modes: notes and temporaries.
  withEntry(root);
  makeDirectories(root + "/v3/.tmp/theirs");
  give(root + "/v3/.tmp", stranger);
  EXPECT(!isWritten(root) && fs::exists(root + "/v3/.tmp/theirs"));
}

/// Entries of root and of this user, for one who is not root, and those of
/// $ATTN_CACHE_TRUST, which is `trusted`.
static void foreignReader(bool trusted) {
  std::string root = "/tmp/attnc-test-" + randomName(); // which everybody can reach
  for (uid_t owner : {uid_t(0), stranger, member}) {
    withEntry(root);
    for (const auto &item : fs::recursive_directory_iterator(root))
      setMode(item.path(), item.is_directory() ? 0755 : 0644);
    setMode(root, 0755);
    give(root, owner);
    std::fflush(nullptr);
    pid_t child = ::fork();
    if (child == 0) {
      EXPECT(::setgid(member) == 0 && ::setuid(member) == 0);
      ::_exit(isRead(root) ? 0 : 3);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == (owner != stranger || trusted ? 0 : 3), "owner {}", owner);
    EXPECT(isRead(root) == (owner == 0 || (trusted && owner == stranger)), "as root, owner {}", owner);
  }
  removeTree(root);
}

/// Code of a stranger with the right checksums: its constructor must not run.
static void foreignCode(const std::string &root) {
  std::string marker = root + "/marker";
  auto codeOf = [&](const std::string &more) {
    Artifact artifact = someArtifact(more + "extern \"C\" void probe_block(void *const *, int) {}\n", "probe");
    artifact.target = "cpu";
    return artifact;
  };
  std::string cache = root + "/cache";
  std::unique_ptr<Compiler> compiler = createCompiler("cpu");
  Artifact good = codeOf("");
  Artifact evil = codeOf(fmt::format("#include <fcntl.h>\n__attribute__((constructor)) static void planted() {{ "
                                     "open(\"{}\", O_CREAT | O_WRONLY, 0600); }}\n",
                                     marker));
  std::string planted = (*compiler->compile(evil)).binary;
  EXPECT((*Cache({cache}).get(*compiler, good))->origin == CompiledKernel::Origin::Compiled);
  std::string entry = entryOf(cache), record = *readFile(entry + "/entry.json");
  EntryRecord plain = *EntryRecord::fromJson(record);
  for (EntryFile &file : plain.files)
    if (file.name == "kernel.so")
      file.bytes = planted.size(), file.sha256 = sha256(planted);
  auto plant = [&](const std::string &into) {
    for (const auto &[name, bytes] : {std::pair("kernel.so", planted), {"entry.json", plain.toJson()}}) {
      ::unlink((into + "/" + name).c_str());
      EXPECT(writeNewFile(into + "/" + name, bytes, /*sync=*/false) == 0);
    }
    give(into, stranger);
  };
  auto load = [&] {
    auto kernel = Cache({cache}).get(*compiler, good);
    EXPECT(kernel.ok() && HostModule::load(*kernel).ok());
    EXPECT(!fs::exists(marker), "the code of a stranger ran");
    return (*kernel)->origin;
  };
  plant(entry);
  EXPECT(load() == CompiledKernel::Origin::Compiled);
  // In a folder that all may write to, as /tmp is.
  plant(entry);
  setMode(cache, 01777);
  setMode(cache + "/v3", 01777);
  EXPECT(load() == CompiledKernel::Origin::Compiled);
  setMode(cache, 0700);
  setMode(cache + "/v3", 0700);
  EXPECT(load() == CompiledKernel::Origin::Compiled && load() == CompiledKernel::Origin::Disk);
  // Swapped when the folder has been looked at, or its description.
  std::string other = root + "/other", name = entry.substr(entry.rfind('/') + 1);
  for (const std::string &when : {name, std::string("entry.json"), std::string("kernel.so")}) {
    removeTree(other);
    fs::copy(entry, other);
    plant(other);
    bool swapped = false;
    afterOpen = [&](const std::string &opened) {
      if (opened == when && !std::exchange(swapped, true))
        EXPECT(::renameat2(AT_FDCWD, other.c_str(), AT_FDCWD, entry.c_str(), RENAME_EXCHANGE) == 0);
    };
    EXPECT(load() == CompiledKernel::Origin::Disk, "the entry that was checked");
    afterOpen = {};
    EXPECT(swapped && load() == CompiledKernel::Origin::Compiled && load() == CompiledKernel::Origin::Disk);
  }
  // Its files, one after the other.
  for (const char *when : {"entry.json", "kernel.so"}) {
    removeTree(other);
    fs::copy(entry, other);
    plant(other);
    afterOpen = [&](const std::string &opened) {
      if (opened == when)
        ::renameat2(AT_FDCWD, (other + "/kernel.so").c_str(), AT_FDCWD, (entry + "/kernel.so").c_str(),
                    RENAME_EXCHANGE);
    };
    load();
    afterOpen = {};
    load();
  }
}

/// Places for temporary files whose names others have taken, or may rename.
static void temporaries(const std::string &parent) {
  makeDirectories(parent);
  setMode(parent, 0777);
  ::setenv("TMPDIR", parent.c_str(), 1);
  Artifact probe = someArtifact("extern \"C\" void probe_block(void *const *, int) {}\n", "probe");
  probe.target = "cpu";
  bool seen = false;
  afterOpen = [&](const std::string &) {
    for (const std::string &name : namesIn(parent))
      seen |= name.rfind("attnc-", 0) == 0;
  };
  EXPECT(createCompiler("cpu")->compile(probe).ok() && !seen, "others could swap the compiler's folder");
  setMode(parent, 01777);
  Result<CompileOutput> output = createCompiler("cpu")->compile(probe);
  EXPECT(output.ok() && output->log.find("-I" + parent + "/attnc-build-") != std::string::npos, "a sticky folder does");
  afterOpen = {};
  // Reproducers.
  FakeCompiler failing;
  failing.fails = true;
  auto reproducer = [&] { return Cache(CacheOptions{}).get(failing, someArtifact("bad")).error().path; };
  std::string taken = fmt::format("{}/attnc-failures-{}", parent, ::geteuid());
  EXPECT(reproducer().rfind(taken + "/", 0) == 0);
  removeTree(taken);
  std::string away = parent + "/away";
  makeDirectories(away);
  setMode(away, 01777);
  EXPECT(::symlink(away.c_str(), taken.c_str()) == 0);
  EXPECT(!reproducer().empty() && namesIn(away).empty(), "a name that others have taken");
}

/// Code of ours without the symbol is as damaged as any.
static void noSymbol(const std::string &root) {
  std::unique_ptr<Compiler> compiler = createCompiler("cpu");
  Artifact good = someArtifact("extern \"C\" void probe_block(void *const *, int) {}\n", "probe"), empty = good;
  good.target = empty.target = "cpu";
  empty.source = "int nothing;\n";
  EXPECT(Cache({root}).get(*compiler, good).ok());
  std::string useless = (*compiler->compile(empty)).binary, entry = entryOf(root);
  EntryRecord record = *EntryRecord::fromJson(*readFile(entry + "/entry.json"));
  for (EntryFile &file : record.files)
    if (file.name == "kernel.so")
      file.bytes = useless.size(), file.sha256 = sha256(useless);
  for (const auto &[name, bytes] : {std::pair("kernel.so", useless), {"entry.json", record.toJson()}}) {
    ::unlink((entry + "/" + name).c_str());
    EXPECT(writeNewFile(entry + "/" + name, bytes, /*sync=*/false) == 0);
  }
  Cache cache({root});
  auto kernel = cache.get(*compiler, good);
  EXPECT(kernel.ok() && (*kernel)->origin == CompiledKernel::Origin::Disk);
  auto module = HostModule::load(*kernel);
  EXPECT(!module && module.error().isBinary);
  auto again = cache.rebuild(*compiler, **kernel);
  EXPECT(again.ok() && HostModule::load(*again).ok() && cache.stats().repairs == 1);
  EXPECT(*cache.get(*compiler, good) == *again && *cache.rebuild(*compiler, **kernel) == *again, "once is enough");
  EXPECT(HostModule::load(*Cache({root}).get(*compiler, good)).ok(), "the next process finds the new one");
  EXPECT(Cache({root}).list(/*deep=*/true)[0].problem.empty());
}

static void owners(const std::string &) {
  EXPECT(parseOwners("7") == std::vector<uid_t>{7} && (parseOwners("0,65534,4294967294")->size() == 3));
  for (const char *text : {"", ",", "1,", ",1", "1,,2", "-1", "alice", "1 ", "0x1", "4294967295", "4294967296", "1;2"})
    EXPECT(!parseOwners(text), "{}", text);
}

int attn::rt::trustTest(const std::string &name, const std::string &root) {
  const std::pair<const char *, std::function<void()>> tests[] = {
      {"owners", [&] { owners(root); }},
      {"writable", [&] { writable(root); }},
      {"links", [&] { links(root); }},
      {"modes", [&] { modes(root); }},
      {"temporaries", [&] { temporaries(root); }},
      {"no-symbol", [&] { noSymbol(root); }},
      {"is-read", [&] { fmt::print("{}\n", isRead(root) ? "read" : "passed over"); }},
      {"foreign-owners", [&] { foreignOwners(root); }},
      {"foreign-code", [&] { foreignCode(root); }},
      {"foreign-reader", [&] { foreignReader(/*trusted=*/false); }},
      {"foreign-trusted", [&] { foreignReader(/*trusted=*/true); }}};
  for (const auto &[test, body] : tests)
    if (name == test) {
      body();
      return 0;
    }
  return -1;
}
