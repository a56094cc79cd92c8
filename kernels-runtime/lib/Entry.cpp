// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Entry.h"
#include "Digest.h"
#include "Files.h"
#include "Trust.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn::rt;
using Json = nlohmann::ordered_json;

static std::string dump(const Json &json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string attn::rt::digestOf(const KeyFields &key) {
  std::string text = fmt::format("attnc cache {}\n", kCacheFormat);
  for (const auto &[name, value] : key)
    text += fmt::format("{} {}:{}\n", name, value.size(), value);
  return sha256(text);
}

std::string attn::rt::entryName(std::string_view kernel, std::string_view digest) {
  return safeName(kernel) + "-" + std::string(digest.substr(0, 32));
}

std::string EntryRecord::toJson() const {
  Json json = {{"format", kCacheFormat}, {"kernel", kernel}, {"digest", digest}, {"built_at", builtAt}};
  json["key"] = Json::object();
  for (const auto &[name, value] : key)
    json["key"][name] = value;
  json["report"] = {report.registers,  report.stack, report.spillStores,
                    report.spillLoads, report.smem,  int(report.serialized)};
  json["files"] = Json::array();
  for (const EntryFile &file : files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  // The record vouches for the files; this line vouches for the record.
  json["checksum"] = sha256(dump(json));
  return dump(json);
}

std::optional<EntryRecord> EntryRecord::fromJson(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return std::nullopt;
  Json checksum = json.value("checksum", Json());
  json.erase("checksum");
  // Once the checksum holds, the record is as we wrote it and its fields have
  // their types; only the format can be another.
  if (!checksum.is_string() || checksum.get<std::string>() != sha256(dump(json)))
    return std::nullopt;
  auto has = [&](const char *name, Json::value_t type) { return json.contains(name) && json[name].type() == type; };
  using Type = Json::value_t;
  if (!json.contains("format") || json["format"] != kCacheFormat || !has("kernel", Type::string) ||
      !has("digest", Type::string) || !has("key", Type::object) || !has("report", Type::array) ||
      !has("files", Type::array))
    return std::nullopt;

  EntryRecord record;
  record.kernel = json["kernel"].get<std::string>();
  record.digest = json["digest"].get<std::string>();
  if (json.contains("built_at") && json["built_at"].is_number_integer())
    record.builtAt = json["built_at"].get<int64_t>();
  for (const auto &[name, value] : json["key"].items()) {
    if (!value.is_string())
      return std::nullopt;
    record.key.emplace_back(name, value.get<std::string>());
  }
  const Json &report = json["report"];
  int serialized = 0;
  int *numbers[] = {&record.report.registers,  &record.report.stack, &record.report.spillStores,
                    &record.report.spillLoads, &record.report.smem,  &serialized};
  if (report.size() != std::size(numbers))
    return std::nullopt;
  for (size_t i = 0; i < std::size(numbers); ++i) {
    if (!report[i].is_number_integer())
      return std::nullopt;
    *numbers[i] = report[i].get<int>();
  }
  record.report.serialized = serialized != 0;
  for (const Json &file : json["files"]) {
    if (!file.is_object() || !file.value("name", Json()).is_string() ||
        !file.value("bytes", Json()).is_number_integer() || !file.value("sha256", Json()).is_string())
      return std::nullopt;
    record.files.push_back(
        {file["name"].get<std::string>(), file["bytes"].get<uint64_t>(), file["sha256"].get<std::string>()});
  }
  return record;
}

EntryContent attn::rt::readEntry(EntryFolder all, const std::string &name, std::string_view digest,
                                 std::string_view wanted, bool deep) {
  EntryContent content;
  auto refused = [&](EntryContent::State state, std::string problem) {
    content.state = state;
    content.problem = std::move(problem);
    content.file.clear();
    return content;
  };
  auto bad = [&](std::string problem) { return refused(EntryContent::State::Bad, std::move(problem)); };
  auto distrusted = [&](std::string why) { return refused(EntryContent::State::Distrusted, std::move(why)); };

  // The folder itself is open from here on, so that all files are those of one
  // entry even when the name is given to another one.
  Folder dir = openTrustedAt(all.fd, name, all.path, Missing::Fails);
  if (!dir.distrust.empty())
    return distrusted(dir.distrust);
  if (dir.error == ENOTDIR)
    return bad("not a directory");
  if (!dir) // what can't be looked at is as good as not there
    return content;
  std::string where = all.path + "/" + name;
  TrustedBytes text = readTrustedAt(dir.fd.get(), "entry.json", where);
  if (!text.distrust.empty())
    return distrusted(text.distrust);
  if (!text.bytes)
    return bad("`entry.json` is missing");
  std::optional<EntryRecord> record = EntryRecord::fromJson(*text.bytes);
  if (!record)
    return bad("`entry.json` is damaged");
  content.record = std::move(*record);
  if (!digest.empty() && content.record.digest != digest)
    return bad("`entry.json` belongs to another key");
  if (digestOf(content.record.key) != content.record.digest)
    return bad("the digest doesn't match the key");

  bool found = wanted.empty();
  for (const EntryFile &file : content.record.files) {
    bool asked = file.name == wanted;
    if (!asked && !deep)
      continue;
    TrustedBytes read = readTrustedAt(dir.fd.get(), file.name, where);
    if (!read.distrust.empty())
      return distrusted(read.distrust);
    std::optional<std::string> &bytes = read.bytes;
    if (!bytes)
      return bad(fmt::format("`{}` is missing", file.name));
    if (bytes->size() != file.bytes)
      return bad(fmt::format("`{}` is truncated: expected {} bytes, got: {}", file.name, file.bytes, bytes->size()));
    if (sha256(*bytes) != file.sha256)
      return bad(fmt::format("`{}` is altered", file.name));
    if (asked) {
      content.file = std::move(*bytes);
      found = true;
    }
  }
  if (!found)
    return bad(fmt::format("`{}` is not part of it", wanted));
  content.state = EntryContent::State::Good;
  return content;
}

void attn::rt::touchEntry(EntryFolder all, const std::string &name) {
  std::string file = name + "/entry.json";
  struct stat info;
  // Minutes are fine enough for "least recently used" and spare network file
  // systems a write per hit.
  if (::fstatat(all.fd, file.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && ::time(nullptr) - info.st_mtime >= 60)
    ::utimensat(all.fd, file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

static Error reason(int code) { return {std::strerror(code), {}, {}}; }

/// Gives `to` the directory `from`, which replaces what is there. In `from`'s
/// place is then nothing, or the old one.
static int replaceDirectory(const std::string &from, const std::string &to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS)
    return errno;
  // No exchange on this file system (NFS): for a moment there is no entry,
  // which readers survive.
  std::string old = from + ".old";
  if (::rename(to.c_str(), old.c_str()) != 0 && errno != ENOENT)
    return errno;
  int failed = ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
  removeTree(old);
  return failed;
}

/// A new folder below `.tmp`. NOTE: paths do from here on, as nobody else can
/// rename what is in folders that are checked.
static Status makeTemp(EntryFolder all, std::string &temp) {
  Folder parent = openTrustedAt(all.fd, ".tmp", all.path, Missing::IsMade);
  if (!parent)
    return Error{parent.problem(), {}, {}};
  if (int failed = makeTempDirectory(all.path + "/.tmp", "", temp)) {
    temp.clear();
    return reason(failed);
  }
  return {};
}

Result<Published> attn::rt::publishEntry(EntryFolder all, EntryRecord record,
                                         const std::vector<std::pair<std::string, std::string_view>> &files,
                                         std::string_view useless) {
  std::string temp;
  if (Status made = makeTemp(all, temp); !made)
    return made.error();
  struct Remove {
    const std::string &path;
    ~Remove() { removeTree(path); }
  } remove{temp};

  for (const auto &[name, bytes] : files) {
    if (int failed = writeNewFile(temp + "/" + name, bytes))
      return reason(failed);
    record.files.push_back({name, bytes.size(), sha256(bytes)});
  }
  if (int failed = writeNewFile(temp + "/entry.json", record.toJson()))
    return reason(failed);
  if (int failed = syncDirectory(temp))
    return reason(failed);

  std::string name = entryName(record.kernel, record.digest), target = all.path + "/" + name;
  for (int attempt = 0; attempt < 8; ++attempt) {
    if (::rename(temp.c_str(), target.c_str()) == 0) {
      syncDirectory(all.path);
      return Published::Ours;
    }
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
      return reason(errno);
    EntryContent there = readEntry(all, name, record.digest, {}, /*deep=*/true);
    const std::vector<EntryFile> &theirs = there.record.files;
    if (there.state == EntryContent::State::Good &&
        std::none_of(theirs.begin(), theirs.end(), [&](const EntryFile &file) { return file.sha256 == useless; }))
      return Published::Theirs;
    int failed = replaceDirectory(temp, target);
    if (failed == 0) {
      syncDirectory(all.path);
      return Published::Replaced;
    }
    if (failed != ENOENT && failed != ENOTEMPTY && failed != EEXIST) // those: somebody was quicker, look again
      return reason(failed);
  }
  return Error{"the entry keeps changing", {}, {}};
}

void attn::rt::removeEntry(EntryFolder all, const std::string &name) {
  std::string temp;
  std::string path = all.path + "/" + name;
  // A directory that is half gone must not be seen under its name.
  if (makeTemp(all, temp) && ::rename(path.c_str(), (temp + "/entry").c_str()) == 0)
    path = temp;
  else if (!temp.empty())
    removeTree(temp);
  removeTree(path);
}
