// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CacheImpl.h"
#include "Digest.h"
#include "Files.h"
#include "attn-rt/Switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <sys/stat.h>
#include <unistd.h>

using namespace attn::rt;

std::optional<uint64_t> attn::rt::parseSize(std::string_view text) {
  uint64_t value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  size_t power = unit.empty() ? 0 : std::string_view("KkMmGg").find(unit[0]) / 2 + 1;
  if (failed != std::errc() || unit.size() > 1 || power > 3 || value > (UINT64_MAX >> 10 * power))
    return std::nullopt;
  return value << 10 * power;
}

static std::vector<std::string> splitAtColons(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(':'));
    if (!part.empty())
      parts.emplace_back(part);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return parts;
}

CacheOptions CacheOptions::fromEnvironment() {
  auto get = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  CacheOptions options;
  if (options.root = get("ATTN_CACHE_DIR"); options.root.empty()) {
    if (std::string xdg = get("XDG_CACHE_HOME"); !xdg.empty())
      options.root = xdg + "/attnc";
    else if (std::string home = get("HOME"); !home.empty())
      options.root = home + "/.cache/attnc";
  }
  options.readOnlyRoots = splitAtColons(get("ATTN_CACHE_READONLY_DIRS"));
  if (std::string size = get("ATTN_CACHE_SIZE"); !size.empty()) {
    if (std::optional<uint64_t> bytes = parseSize(size))
      options.maxBytes = *bytes;
    else
      fmt::print(stderr,
                 "attnc: warning: `ATTN_CACHE_SIZE` is a number of bytes, or "
                 "with K, M, G; got: `{}`\n",
                 size);
  }
  return options;
}

std::string attn::rt::entriesOf(const std::string &root) { return fmt::format("{}/v{}", root, kCacheFormat); }

static bool isSameDirectory(const std::string &a, const std::string &b) {
  struct stat first, second;
  return a == b || (::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
                    first.st_dev == second.st_dev && first.st_ino == second.st_ino);
}

std::string attn::rt::libraryBuild() { return fmt::format("{} abi {}", ATTN_LIBRARY_BUILD, kAbiVersion); }

Cache::Cache(CacheOptions options) : impl(std::make_unique<Impl>()) {
  if (options.libraryBuild.empty())
    options.libraryBuild = attn::rt::libraryBuild();
  if (Switches::get().noCache || options.maxBytes == 0)
    options.root.clear();
  if (Switches::get().noCache)
    options.readOnlyRoots.clear();
  std::erase_if(options.readOnlyRoots, [&](const std::string &root) { return isSameDirectory(root, options.root); });
  impl->versionRoot = options.root.empty() ? "" : entriesOf(options.root);
  impl->options = std::move(options);
}

Cache::~Cache() = default;

CacheStats Cache::stats() const {
  const auto &c = impl->counters;
  return {c.memoryHits, c.diskHits, c.compiles, c.repairs, c.lostRaces, c.unpublished, c.evicted};
}

const std::string &Cache::root() const { return impl->options.root; }

/// What is noted in a folder of entries of the compiler of this name; empty if nothing is.
static std::optional<std::string> notedVersion(const Folder &entries, const std::string &entriesPath,
                                               const std::string &name) {
  Folder memos;
  if (entries)
    memos = openTrustedAt(entries.fd.get(), ".compilers", entriesPath, Missing::Fails);
  if (!memos)
    return std::nullopt;
  TrustedBytes memo = readTrustedAt(memos.fd.get(), name, entriesPath + "/.compilers");
  if (!memo.distrust.empty())
    warnOfDistrust(memo.distrust);
  else if (memo.bytes && memo.bytes->size() > 65 && sha256(memo.bytes->substr(65)) == memo.bytes->substr(0, 64))
    return memo.bytes->substr(65);
  return std::nullopt;
}

/// Version text by the identity of the compiler's file, so that a warm start
/// neither opens NVRTC (8 ms and more) nor forks.
Result<std::string> Cache::Impl::versionOf(const Compiler &compiler) {
  std::string tool = compiler.toolPath();
  std::string identity = fileIdentity(tool);
  if (identity.empty())
    return compiler.version();
  identity = fmt::format("{} {} {}", compiler.kind(), tool, identity);
  {
    std::lock_guard lock(mutex);
    if (auto known = versions.find(identity); known != versions.end())
      return known->second;
  }
  auto remember = [&](std::string version) {
    std::lock_guard lock(mutex);
    return versions[identity] = std::move(version);
  };
  std::string name = sha256(identity), path = versionRoot + "/.compilers/" + name;
  if (std::optional<std::string> noted = notedVersion(openEntries(Missing::Fails), versionRoot, name))
    return remember(*noted);
  for (const std::string &root : options.readOnlyRoots)
    if (std::optional<std::string> noted = notedVersion(findEntriesOf(root, Missing::Fails), entriesOf(root), name))
      return remember(*noted);
  Result<std::string> version = compiler.version();
  if (!version)
    return version;
  if (Folder entries = openEntries(Missing::IsMade))
    if (openTrustedAt(entries.fd.get(), ".compilers", versionRoot, Missing::IsMade)) {
      std::string temp = path + "." + randomName();
      if (writeNewFile(temp, sha256(*version) + "\n" + *version) != 0 || ::rename(temp.c_str(), path.c_str()) != 0)
        ::unlink(temp.c_str());
    }
  return remember(*std::move(version));
}

Result<KeyFields> Cache::Impl::keyOf(const Compiler &compiler, const Artifact &artifact) {
  Result<std::string> version = versionOf(compiler);
  if (!version)
    return version.error();
  return KeyFields{{"kind", std::string(compiler.kind())},
                   {"compiler", *version},
                   {"target", artifact.target},
                   {"flags", fmt::format("{}", fmt::join(compiler.flags(artifact.target), " "))},
                   {"machine", compiler.machine()},
                   {"headers", compiler.headerDigest()},
                   {"library", options.libraryBuild},
                   {"source", sha256(artifact.source)}};
}

Folder attn::rt::findEntriesOf(const std::string &root, Missing missing) {
  Folder folder = openTrusted(root, missing);
  if (!folder)
    return folder;
  return openTrustedAt(folder.fd.get(), fmt::format("v{}", kCacheFormat), root, missing);
}

Folder Cache::Impl::findEntries(Missing missing) const {
  return versionRoot.empty() ? Folder() : findEntriesOf(options.root, missing);
}

Folder Cache::Impl::openEntries(Missing missing) const {
  Folder entries = findEntries(missing);
  if (!entries.distrust.empty())
    warnOfDistrust(entries.distrust);
  return entries;
}

std::optional<Cache::Impl::Found> Cache::Impl::findReadOnly(const std::string &name, std::string_view digest,
                                                            std::string_view wanted,
                                                            std::vector<std::string> &passedOver) const {
  for (const std::string &root : options.readOnlyRoots) {
    std::string path = entriesOf(root), directory = path + "/" + name;
    Folder entries = findEntriesOf(root, Missing::Fails);
    EntryContent content;
    if (entries)
      content = readEntry({entries.fd.get(), path}, name, digest, wanted, /*deep=*/false);
    if (content.state == EntryContent::State::Good)
      return Found{std::move(content), std::move(directory)};
    if (std::string why = entries.distrust.empty() ? content.problem : entries.distrust; !why.empty())
      passedOver.push_back(fmt::format("{} (read-only) is passed over: {}", entries ? directory : root, why));
    if (!entries.distrust.empty())
      warnOfDistrust(entries.distrust);
    else if (content.state == EntryContent::State::Distrusted)
      warnOfDistrust(content.problem);
  }
  return std::nullopt;
}

std::string Cache::whyPassedOver() const { return impl->findEntries(Missing::Fails).distrust; }

void Cache::Impl::warnOnce(std::string_view why) {
  if (!warned.exchange(true))
    fmt::print(stderr,
               "attnc: warning: cannot write the kernel cache `{}`: {}; "
               "kernels stay in memory\n",
               options.root, why);
}

/// Everything that can tell two requests apart, without hashing or files. The
/// source goes last: it is the long part.
static std::string requestOf(const Compiler &compiler, const Artifact &a) {
  std::string request = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|", compiler.kind(), compiler.toolPath(),
                                    a.target, fmt::join(compiler.flags(a.target), " "), a.name, a.entry, a.threads,
                                    a.smemBytes, a.minBlocks, a.clusters, a.follows, a.persistent, a.clusterPerBlock);
  for (const Param &param : a.params)
    request += static_cast<char>('0' + static_cast<int>(param.kind));
  return request + "|" + a.source;
}

Result<std::shared_ptr<const CompiledKernel>> Cache::get(const Compiler &compiler, const Artifact &artifact,
                                                         const Reproducer &extra) {
  return impl->obtain(compiler, artifact, extra, nullptr);
}

Result<std::shared_ptr<const CompiledKernel>> Cache::rebuild(const Compiler &compiler, const CompiledKernel &useless,
                                                             const Reproducer &extra) {
  return impl->obtain(compiler, useless.artifact, extra, &useless);
}

Cache::Impl::Made Cache::Impl::obtain(const Compiler &compiler, const Artifact &artifact, const Reproducer &extra,
                                      const CompiledKernel *useless) {
  std::string request = requestOf(compiler, artifact);
  std::shared_ptr<Slot> slot;
  bool ours = false;
  {
    std::lock_guard lock(mutex);
    std::shared_ptr<Slot> &place = slots[request];
    bool orphaned = place && !place->done && place->maker != ::getpid();
    // What is done has its result for good, so it may be read here.
    bool isUseless = place && useless && place->done && *place->result && (**place->result).get() == useless;
    if (!place || orphaned || isUseless) {
      place = std::make_shared<Slot>();
      ours = true;
    }
    slot = place;
  }
  if (!ours) {
    std::unique_lock lock(slot->mutex);
    slot->ready.wait(lock, [&] { return slot->result.has_value(); });
    if (*slot->result)
      ++counters.memoryHits;
    return *slot->result;
  }
  Made made = make(compiler, artifact, extra, useless);
  if (!made) { // the next caller may have more luck
    std::lock_guard lock(mutex);
    slots.erase(request);
  }
  {
    std::lock_guard lock(slot->mutex);
    slot->result = made;
    slot->done = true;
  }
  slot->ready.notify_all();
  return made;
}

static void dumpSource(const std::string &to, const Compiler &compiler, const Artifact &artifact,
                       const std::string &name) {
  if (to == "1") {
    fmt::print(stderr, "// ---- {} ({})\n{}\n", name, artifact.target, artifact.source);
    return;
  }
  std::string_view file = compiler.sourceFile();
  std::string path = fmt::format("{}/{}{}", to, name, file.substr(file.rfind('.')));
  ::unlink(path.c_str());
  if (makeDirectories(to) != 0 || writeNewFile(path, artifact.source, /*sync=*/false) != 0)
    fmt::print(stderr, "attnc: warning: cannot write `{}`\n", path);
}

Cache::Impl::Made Cache::Impl::make(const Compiler &compiler, const Artifact &artifact, const Reproducer &extra,
                                    const CompiledKernel *useless) {
  Result<KeyFields> key = keyOf(compiler, artifact);
  if (!key)
    return key.error();
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->artifact = artifact;
  kernel->digest = digestOf(*key);
  std::string name = entryName(artifact.name, kernel->digest);
  const Switches &switches = Switches::get();
  if (!switches.dumpSource.empty())
    dumpSource(switches.dumpSource, compiler, artifact, name);

  auto hit = [&](EntryContent content, std::string directory) {
    ++counters.diskHits;
    kernel->binary = std::move(content.file);
    kernel->report = content.record.report;
    kernel->directory = std::move(directory);
    kernel->origin = CompiledKernel::Origin::Disk;
    return std::shared_ptr<const CompiledKernel>(kernel);
  };
  std::string why; // it is compiled; only for people who asked
  std::vector<std::string> passedOver;
  if (useless) {
    ++counters.repairs;
    why = "rebuilding, the binary cannot be loaded";
  } else {
    EntryContent content;
    if (Folder entries = openEntries(Missing::Fails)) {
      EntryFolder all{entries.fd.get(), versionRoot};
      content = readEntry(all, name, kernel->digest, compiler.binaryFile(), /*deep=*/false);
      if (content.state == EntryContent::State::Good) {
        touchEntry(all, name);
        return hit(std::move(content), versionRoot + "/" + name);
      }
      if (content.state == EntryContent::State::Distrusted)
        warnOfDistrust(content.problem);
    }
    if (auto found = findReadOnly(name, kernel->digest, compiler.binaryFile(), passedOver))
      return hit(std::move(found->content), std::move(found->directory));
    if (content.state != EntryContent::State::Missing) {
      ++counters.repairs;
      why = "rebuilding, " + content.problem;
    }
  }
  if (switches.verbose && hasDisk()) {
    for (const std::string &line : passedOver)
      fmt::print(stderr, "attnc: {}: {}\n", name, line);
    fmt::print(stderr, "attnc: {}: {}\n", name, why.empty() ? whyMissing(artifact, *key) : why);
  }

  auto begin = std::chrono::steady_clock::now();
  ++counters.compiles;
  Result<CompileOutput> output = compiler.compile(artifact);
  if (!output)
    return failed(compiler, artifact, name, output.error(), extra);
  if (switches.verbose)
    fmt::print(stderr, "attnc: {}: compiled for {} in {:.0f} ms, {}\n", name, artifact.target,
               std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(),
               output->report.str());
  kernel->binary = std::move(output->binary);
  kernel->log = std::move(output->log);
  kernel->report = output->report;
  if (!versionRoot.empty())
    publish(compiler, *kernel, *key, name, useless);
  return std::shared_ptr<const CompiledKernel>(kernel);
}

void Cache::Impl::publish(const Compiler &compiler, CompiledKernel &kernel, const KeyFields &key,
                          const std::string &name, const CompiledKernel *useless) {
  Folder entries = openEntries(Missing::IsMade);
  if (!entries) {
    ++counters.unpublished;
    return entries.distrust.empty() ? warnOnce(entries.problem()) : void();
  }
  EntryFolder all{entries.fd.get(), versionRoot};
  if (!swept.exchange(true))
    sweepTemporaries(versionRoot + "/.tmp", "");
  EntryRecord record;
  record.kernel = kernel.artifact.name;
  record.digest = kernel.digest;
  record.builtAt = ::time(nullptr);
  record.key = key;
  record.report = kernel.report;
  std::string json = kernel.artifact.toJson(/*withSource=*/false);
  Result<Published> published = publishEntry(all, std::move(record),
                                             {{std::string(compiler.binaryFile()), kernel.binary},
                                              {std::string(compiler.sourceFile()), kernel.artifact.source},
                                              {"artifact.json", json},
                                              {"build.log", kernel.log}},
                                             useless ? sha256(useless->binary) : "");
  if (!published) {
    ++counters.unpublished;
    return warnOnce(published.error().message);
  }
  kernel.directory = versionRoot + "/" + name;
  if (*published == Published::Theirs)
    ++counters.lostRaces;
  counters.evicted += static_cast<uint64_t>(evict(options.maxBytes, name));
}

/// Failures of long ago are of no use to anybody.
static void keepNewest(const std::string &parent, size_t count) {
  std::vector<std::pair<int64_t, std::string>> all;
  for (const std::string &name : namesIn(parent)) {
    struct stat info;
    std::string path = parent + "/" + name;
    if (name[0] != '.' && ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      all.emplace_back(info.st_mtime, path);
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i + count < all.size(); ++i)
    removeTree(all[i].second);
}

/// Leaves what is needed to see the failure again and puts its place into the
/// error.
Error Cache::Impl::failed(const Compiler &compiler, const Artifact &artifact, const std::string &name, Error error,
                          const Reproducer &extra) {
  std::vector<std::pair<std::string, std::string>> files = {{"artifact.json", artifact.toJson(/*withSource=*/false)},
                                                            {std::string(compiler.sourceFile()), artifact.source},
                                                            {"build.log", error.message + "\n" + error.log}};
  if (extra)
    for (auto &file : extra())
      files.push_back({safeName(file.first), std::move(file.second)});

  std::vector<std::string> parents;
  if (!options.root.empty() && openTrusted(options.root, Missing::IsMade))
    parents.push_back(options.root + "/failures");
  for (const std::string &place : temporaryPlaces())
    parents.push_back(fmt::format("{}/attnc-failures-{}", place, ::geteuid()));
  // Those names can be guessed, and taken.
  for (const std::string &place : temporaryPlaces())
    parents.push_back(fmt::format("{}/attnc-failures-{}-{}", place, ::geteuid(), randomName()));
  for (const std::string &parent : parents) {
    std::string temp, directory = parent + "/" + name;
    Folder folder = openTrusted(parent, Missing::IsMade);
    if (!folder)
      continue;
    int failed = makeTempDirectory(parent, ".", temp);
    for (const auto &[file, text] : files)
      if (!failed)
        failed = writeNewFile(temp + "/" + file, text, /*sync=*/false);
    if (!failed && ::rename(temp.c_str(), directory.c_str()) != 0) {
      removeTree(directory); // of an earlier time
      failed = ::rename(temp.c_str(), directory.c_str()) == 0 ? 0 : errno;
    }
    if (!failed) {
      error.path = directory;
      keepNewest(parent, 50);
      break;
    }
    removeTree(temp);
  }
  return error;
}
