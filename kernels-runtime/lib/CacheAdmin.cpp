// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CacheImpl.h"
#include "Files.h"
#include "attn-rt/Switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <sys/stat.h>

using namespace attn::rt;

namespace {
struct Usage {
  std::string name;
  uint64_t bytes = 0;
  struct timespec usedAt = {};
};
} // namespace

/// Directories of entries with size and time, least recently used first;
/// nothing is opened.
static std::vector<Usage> usageOf(const std::string &versionRoot) {
  std::vector<Usage> all;
  for (const std::string &name : namesIn(versionRoot)) {
    if (name[0] == '.')
      continue;
    Usage usage{name, 0, {}};
    std::string directory = versionRoot + "/" + name;
    struct stat info;
    if (::lstat(directory.c_str(), &info) != 0)
      continue;
    usage.usedAt = info.st_mtim;
    if (!S_ISDIR(info.st_mode)) {
      all.push_back(std::move(usage)); // bad, and to be removed
      continue;
    }
    for (const std::string &file : namesIn(directory))
      if (::lstat((directory + "/" + file).c_str(), &info) == 0) {
        usage.bytes += static_cast<uint64_t>(info.st_size);
        if (file == "entry.json")
          usage.usedAt = info.st_mtim;
      }
    all.push_back(std::move(usage));
  }
  std::stable_sort(all.begin(), all.end(), [](const Usage &a, const Usage &b) {
    return std::pair(a.usedAt.tv_sec, a.usedAt.tv_nsec) < std::pair(b.usedAt.tv_sec, b.usedAt.tv_nsec);
  });
  return all;
}

int Cache::Impl::evict(uint64_t maxBytes, const std::string &keep) {
  Folder entries = openEntries(Missing::Fails);
  if (!entries)
    return 0;
  std::vector<Usage> all = usageOf(versionRoot);
  uint64_t total = 0;
  for (const Usage &usage : all)
    total += usage.bytes;
  int removed = 0;
  for (const Usage &usage : all) {
    if (total <= maxBytes)
      break;
    if (usage.name == keep)
      continue;
    removeEntry({entries.fd.get(), versionRoot}, usage.name);
    total -= usage.bytes;
    ++removed;
    if (Switches::get().verbose)
      fmt::print(stderr, "attnc: {}: evicted, {} bytes\n", usage.name, usage.bytes);
  }
  return removed;
}

int Cache::prune(uint64_t maxBytes) { return impl->evict(maxBytes, ""); }

static std::vector<EntryInfo> listFolder(const Folder &folder, const std::string &path, bool deep) {
  std::vector<EntryInfo> entries;
  if (!folder)
    return entries;
  for (const Usage &usage : usageOf(path)) {
    EntryInfo info;
    info.directory = path + "/" + usage.name;
    info.bytes = usage.bytes;
    info.usedAt = usage.usedAt.tv_sec;
    EntryContent content = readEntry({folder.fd.get(), path}, usage.name, {}, {}, deep);
    info.problem =
        content.state == EntryContent::State::Distrusted ? "passed over, " + content.problem : content.problem;
    info.kernel = content.record.kernel.empty() ? usage.name.substr(0, usage.name.rfind('-')) : content.record.kernel;
    info.digest = content.record.digest;
    info.builtAt = content.record.builtAt;
    info.report = content.record.report;
    info.key = content.record.key;
    if (info.problem.empty() && entryName(info.kernel, info.digest) != usage.name)
      info.problem = "the directory has the name of another entry";
    entries.push_back(std::move(info));
  }
  return entries;
}

std::vector<EntryInfo> Cache::list(bool deep) const {
  return listFolder(impl->openEntries(Missing::Fails), impl->versionRoot, deep);
}

std::vector<CacheRoot> Cache::roots(bool deep) const {
  std::vector<CacheRoot> all;
  if (!root().empty())
    all.push_back({root(), false, whyPassedOver(), list(deep)});
  for (const std::string &path : impl->options.readOnlyRoots) {
    Folder entries = findEntriesOf(path, Missing::Fails);
    // A root without entries of this format is fine.
    std::string problem = entries.distrust.empty() ? openTrusted(path, Missing::Fails).problem() : entries.distrust;
    all.push_back({path, true, std::move(problem), listFolder(entries, entriesOf(path), deep)});
  }
  return all;
}

int Cache::removeBad() {
  int removed = 0;
  Folder folder = impl->openEntries(Missing::Fails);
  if (!folder)
    return 0;
  for (const EntryInfo &entry : list(/*deep=*/true))
    if (!entry.problem.empty()) {
      removeEntry({folder.fd.get(), impl->versionRoot}, entry.directory.substr(impl->versionRoot.size() + 1));
      ++removed;
    }
  if (openTrustedAt(folder.fd.get(), ".tmp", impl->versionRoot, Missing::Fails))
    sweepTemporaries(impl->versionRoot + "/.tmp", "");
  return removed;
}

static std::vector<std::string> differences(const KeyFields &ours, const KeyFields &theirs) {
  std::vector<std::string> names;
  for (const auto &[name, value] : ours) {
    auto other = std::find_if(theirs.begin(), theirs.end(), [&](const auto &field) { return field.first == name; });
    if (other == theirs.end() || other->second != value)
      names.push_back(name);
  }
  return names;
}

/// The entry of the same kernel with the fewest differing fields, the latest of
/// equals; null if there is none.
static const EntryInfo *nearest(const std::string &kernel, const KeyFields &key, const std::string &except,
                                const std::vector<EntryInfo> &all) {
  const EntryInfo *best = nullptr;
  size_t fewest = 0;
  for (const EntryInfo &entry : all) {
    if (entry.kernel != kernel || !entry.problem.empty() || entry.directory == except)
      continue;
    size_t count = differences(key, entry.key).size();
    if (!best || count < fewest || (count == fewest && entry.builtAt >= best->builtAt)) {
      best = &entry;
      fewest = count;
    }
  }
  return best;
}

static std::string valueOf(const KeyFields &key, const std::string &name) {
  for (const auto &[field, value] : key)
    if (field == name)
      return value;
  return "(absent)";
}

/// First line in which two texts differ, for a person.
static std::string firstDifference(std::string_view a, std::string_view b) {
  for (int line = 1; !a.empty() || !b.empty(); ++line) {
    std::string_view x = a.substr(0, a.find('\n')), y = b.substr(0, b.find('\n'));
    if (x != y)
      return fmt::format("  first at line {}\n    was: {}\n    now: {}\n", line, y, x);
    a.remove_prefix(std::min(a.size(), x.size() + 1));
    b.remove_prefix(std::min(b.size(), y.size() + 1));
  }
  return {};
}

static std::string sourceIn(const std::string &directory) {
  for (const char *name : {"/kernel.cu", "/kernel.cpp"})
    if (std::optional<std::string> text = readFile(directory + name))
      return *text;
  return {};
}

static std::string describe(const KeyFields &key, const std::string &source, const EntryInfo &other) {
  std::string text = fmt::format("nearest entry: {}\n", other.directory);
  for (const std::string &name : differences(key, other.key)) {
    if (name == "source")
      text += "`source` differs\n" + firstDifference(source, sourceIn(other.directory));
    else
      text +=
          fmt::format("`{}` differs\n    was: {}\n    now: {}\n", name, valueOf(other.key, name), valueOf(key, name));
  }
  return text;
}

std::string Cache::compare(const EntryInfo &entry, const std::vector<EntryInfo> &all) const {
  const EntryInfo *other = nearest(entry.kernel, entry.key, entry.directory, all);
  return other ? describe(entry.key, sourceIn(entry.directory), *other) : "";
}

std::vector<EntryInfo> Cache::Impl::entriesNamed(std::string_view kernel) const {
  std::vector<EntryInfo> same;
  auto look = [&](const Folder &folder, const std::string &path) {
    for (const std::string &name : folder ? namesIn(path) : std::vector<std::string>())
      if (name.rfind(safeName(kernel) + "-", 0) == 0) {
        EntryContent content = readEntry({folder.fd.get(), path}, name, {}, {}, /*deep=*/false);
        EntryInfo info;
        info.directory = path + "/" + name;
        info.kernel = content.record.kernel;
        info.builtAt = content.record.builtAt;
        info.key = content.record.key;
        info.problem = content.problem;
        same.push_back(std::move(info));
      }
  };
  look(openEntries(Missing::Fails), versionRoot);
  for (const std::string &root : options.readOnlyRoots)
    look(findEntriesOf(root, Missing::Fails), entriesOf(root));
  return same;
}

std::string Cache::Impl::whyMissing(const Artifact &artifact, const KeyFields &key) const {
  // NOTE: reads every entry of the kernel, so only for people who asked.
  std::vector<EntryInfo> same = entriesNamed(artifact.name);
  std::string roots = options.readOnlyRoots.empty()
                          ? ""
                          : fmt::format(" (nor in {}, read-only)", fmt::join(options.readOnlyRoots, ", "));
  const EntryInfo *other = nearest(artifact.name, key, "", same);
  if (!other)
    return fmt::format("not cached{}, no other entry of this kernel", roots);
  return fmt::format("not cached{}, differs from {} in: {}", roots, other->directory,
                     fmt::join(differences(key, other->key), ", "));
}

Result<KeyFields> Cache::keyOf(const Compiler &compiler, const Artifact &artifact) const {
  return impl->keyOf(compiler, artifact);
}

Result<std::string> Cache::explain(const Compiler &compiler, const Artifact &artifact) const {
  Result<KeyFields> key = impl->keyOf(compiler, artifact);
  if (!key)
    return key.error();
  if (!impl->hasDisk())
    return std::string("the disk cache is off\n");
  Folder folder = impl->openEntries(Missing::Fails);
  std::string digest = digestOf(*key), name = entryName(artifact.name, digest);
  std::string directory = impl->versionRoot + "/" + name;
  EntryContent content;
  if (folder)
    content = readEntry({folder.fd.get(), impl->versionRoot}, name, digest, compiler.binaryFile(), /*deep=*/false);
  if (content.state == EntryContent::State::Good)
    return fmt::format("cached in {}\n", directory);
  std::vector<std::string> passedOver;
  if (auto found = impl->findReadOnly(name, digest, compiler.binaryFile(), passedOver))
    return fmt::format("cached in {} (read-only)\n", found->directory);
  std::string text;
  for (const std::string &line : passedOver)
    text += line + "\n";
  if (!folder.distrust.empty())
    return text + fmt::format("the disk cache is passed over: {}\n", folder.distrust);
  if (content.state == EntryContent::State::Distrusted)
    return text + fmt::format("{} is passed over and will be rebuilt: {}\n", directory, content.problem);
  if (content.state == EntryContent::State::Bad)
    return text + fmt::format("{} is bad and will be rebuilt: {}\n", directory, content.problem);
  std::vector<EntryInfo> all = impl->entriesNamed(artifact.name);
  if (const EntryInfo *other = nearest(artifact.name, *key, "", all))
    return text + describe(*key, artifact.source, *other);
  std::vector<std::string> roots = impl->options.readOnlyRoots;
  if (!impl->versionRoot.empty())
    roots.insert(roots.begin(), impl->versionRoot);
  return text + fmt::format("never compiled here: {} {} no entry of `{}`\n", fmt::join(roots, ", "),
                            roots.size() == 1 ? "has" : "have", artifact.name);
}
