// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Entry.h"
#include "Digest.h"
#include "Files.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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
  json["report"] = {report.registers, report.stack, report.spillStores, report.spillLoads, report.smem, int(report.serialized)};
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
  int *numbers[] = {&record.report.registers, &record.report.stack, &record.report.spillStores,
                    &record.report.spillLoads, &record.report.smem, &serialized};
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

EntryContent attn::rt::readEntry(const std::string &directory, std::string_view digest, std::string_view wanted,
                                 bool deep) {
  EntryContent content;
  Fd dir = openDirectory(directory);
  if (!dir) {
    struct stat info;
    // A file where the directory should be is bad; anything that can't be
    // looked at is as good as not there.
    if (::lstat(directory.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
      content.state = EntryContent::State::Bad;
      content.problem = "not a directory";
    }
    return content;
  }
  auto bad = [&](std::string problem) {
    content.state = EntryContent::State::Bad;
    content.problem = std::move(problem);
    content.file.clear();
    return content;
  };
  std::optional<std::string> text = readFileAt(dir.get(), "entry.json");
  if (!text)
    return bad("`entry.json` is missing");
  std::optional<EntryRecord> record = EntryRecord::fromJson(*text);
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
    std::optional<std::string> bytes = readFileAt(dir.get(), file.name.c_str());
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

void attn::rt::touchEntry(const std::string &directory) {
  std::string path = directory + "/entry.json";
  struct stat info;
  // Minutes are fine enough for "least recently used" and spare network file
  // systems a write per hit.
  if (::stat(path.c_str(), &info) == 0 && ::time(nullptr) - info.st_mtime >= 60)
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
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

Result<Published> attn::rt::publishEntry(const std::string &versionRoot, EntryRecord record,
                                         const std::vector<std::pair<std::string, std::string_view>> &files) {
  std::string temp;
  if (int failed = makeTempDirectory(versionRoot + "/.tmp", "", temp))
    return reason(failed);
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

  std::string target = versionRoot + "/" + entryName(record.kernel, record.digest);
  for (int attempt = 0; attempt < 8; ++attempt) {
    if (::rename(temp.c_str(), target.c_str()) == 0) {
      syncDirectory(versionRoot);
      return Published::Ours;
    }
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
      return reason(errno);
    if (readEntry(target, record.digest, {}, /*deep=*/true).state == EntryContent::State::Good)
      return Published::Theirs;
    int failed = replaceDirectory(temp, target);
    if (failed == 0) {
      syncDirectory(versionRoot);
      return Published::Replaced;
    }
    if (failed != ENOENT && failed != ENOTEMPTY && failed != EEXIST) // those: somebody was quicker, look again
      return reason(failed);
  }
  return Error{"the entry keeps changing", {}, {}};
}

void attn::rt::removeEntry(const std::string &versionRoot, const std::string &name) {
  std::string temp;
  std::string path = versionRoot + "/" + name;
  // A directory that is half gone must not be seen under its name.
  if (makeTempDirectory(versionRoot + "/.tmp", "", temp) == 0 && ::rename(path.c_str(), (temp + "/entry").c_str()) == 0)
    path = temp;
  else if (!temp.empty())
    removeTree(temp);
  removeTree(path);
}
