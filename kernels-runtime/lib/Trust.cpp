// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn::rt;

std::optional<std::vector<uid_t>> attn::rt::parseOwners(std::string_view text) {
  std::vector<uid_t> owners;
  for (bool more = true; more;) {
    size_t comma = text.find(',');
    std::string_view one = text.substr(0, comma);
    uint32_t uid = 0;
    auto [end, failed] = std::from_chars(one.data(), one.data() + one.size(), uid);
    if (failed != std::errc() || end != one.data() + one.size() || uid == UINT32_MAX) // which is no user
      return std::nullopt;
    owners.push_back(uid);
    more = comma != std::string_view::npos;
    text.remove_prefix(more ? comma + 1 : text.size());
  }
  return owners;
}

static const std::vector<uid_t> &namedOwners() {
  static const std::vector<uid_t> named = []() -> std::vector<uid_t> {
    const char *text = std::getenv("ATTN_CACHE_TRUST");
    if (!text || !*text)
      return {};
    if (auto owners = parseOwners(text))
      return *owners;
    fmt::print(stderr,
               "attnc: warning: expected user ids with commas between them in `ATTN_CACHE_TRUST`, got: `{}`; "
               "nobody more is trusted\n",
               text);
    return {};
  }();
  return named;
}

/// A short file of /proc; empty if there is none.
static std::string procText(const char *path) {
  char text[4096] = {};
  Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  ssize_t got = fd ? ::read(fd.get(), text, sizeof(text) - 1) : 0;
  return std::string(text, static_cast<size_t>(std::max<ssize_t>(got, 0)));
}

/// Whether `uid` may stand for any owner that has no number in this user
/// namespace.
static bool standsForUnmapped(uid_t uid) {
  static const bool allMapped = [] {
    unsigned inside = 1, outside = 0, count = 0;
    std::string map = procText("/proc/self/uid_map");
    return std::sscanf(map.c_str(), "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && count == UINT32_MAX;
  }();
  static const uid_t overflow = [] {
    std::string text = procText("/proc/sys/kernel/overflowuid");
    uid_t number = 65534;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }();
  return !allMapped && uid == overflow;
}

static bool isTrusted(uid_t owner) {
  const std::vector<uid_t> &named = namedOwners();
  if (std::find(named.begin(), named.end(), owner) != named.end())
    return true;
  return (owner == 0 || owner == ::geteuid()) && !standsForUnmapped(owner);
}

static std::string foreign(const struct stat &info, const std::string &path) {
  return fmt::format("`{}` belongs to user {}{}", path, info.st_uid,
                     standsForUnmapped(info.st_uid) ? " (who has no number in this container)" : "");
}

static std::string writable(const struct stat &info, const std::string &path) {
  const char *who = info.st_mode & S_IWOTH ? "everybody" : "its group";
  return fmt::format("`{}` may be written by {} (mode {:04o})", path, who, info.st_mode & 07777);
}

static constexpr mode_t writableByOthers = S_IWGRP | S_IWOTH;

std::string attn::rt::distrustOfFile(const struct stat &info, const std::string &path) {
  if (!isTrusted(info.st_uid))
    return foreign(info, path);
  return info.st_mode & writableByOthers ? writable(info, path) : "";
}

/// The same for a folder (or a symbolic link) above ours.
static std::string distrustAbove(const struct stat &info, const std::string &path) {
  if (!isTrusted(info.st_uid) && !standsForUnmapped(info.st_uid))
    return foreign(info, path);
  bool open = S_ISDIR(info.st_mode) && (info.st_mode & writableByOthers) && !(info.st_mode & S_ISVTX);
  return open ? writable(info, path) : "";
}

std::string Folder::problem() const {
  return !distrust.empty() ? distrust : error ? std::string(std::strerror(error)) : "";
}

static Folder failure(int error) { return {Fd(), error, ""}; }
static Folder refusal(std::string why) { return {Fd(), 0, std::move(why)}; }

/// The thing of this name itself, if need be a new folder. Nothing is followed.
static int openItself(int parent, const std::string &name, Missing missing, Fd &fd, struct stat &info) {
  fd = Fd(::openat(parent, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno == ENOENT && missing == Missing::IsMade) {
    if (::mkdirat(parent, name.c_str(), 0700) == 0) {
      if (::fchmodat(parent, name.c_str(), 0700, 0) != 0) // the umask may have taken bits away
        return errno;
    } else if (errno != EEXIST) {
      return errno;
    }
    fd = Fd(::openat(parent, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  }
  return fd && ::fstat(fd.get(), &info) == 0 ? 0 : errno;
}

/// A descriptor to read the folder that `fd` only names.
static Folder forReading(const Fd &fd) {
  Fd readable(::openat(fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return readable ? Folder{std::move(readable), 0, ""} : failure(errno);
}

Folder attn::rt::openTrustedAt(int parent, const std::string &name, const std::string &where, Missing missing) {
  Fd fd;
  struct stat info;
  if (int error = openItself(parent, name, missing, fd, info))
    return failure(error);
  std::string path = where + "/" + name;
  if (S_ISLNK(info.st_mode))
    return refusal(fmt::format("`{}` is a symbolic link", path));
  if (!S_ISDIR(info.st_mode))
    return failure(ENOTDIR);
  if (std::string why = distrustOfFile(info, path); !why.empty())
    return refusal(std::move(why));
  return forReading(fd);
}

static void pushFront(std::deque<std::string> &names, std::string_view path) {
  std::vector<std::string> more;
  while (!path.empty()) {
    size_t slash = path.find('/');
    if (std::string_view name = path.substr(0, slash); !name.empty() && name != ".")
      more.emplace_back(name);
    path = slash == std::string_view::npos ? "" : path.substr(slash + 1);
  }
  names.insert(names.begin(), more.begin(), more.end());
}

/// `asParent`: the folder itself is one above ours.
static Folder openPath(const std::string &path, Missing missing, bool asParent) {
  std::deque<std::string> names;
  pushFront(names, path);
  if (path.empty() || path[0] != '/') {
    char here[4096];
    if (path.empty() || !::getcwd(here, sizeof(here)))
      return failure(path.empty() ? ENOENT : errno);
    pushFront(names, here);
  }
  Fd fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string reached;
  struct stat info;
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return failure(errno);
  for (int links = 0;;) {
    std::string why = names.empty() && !asParent ? distrustOfFile(info, reached.empty() ? "/" : reached)
                                                 : distrustAbove(info, reached.empty() ? "/" : reached);
    if (!why.empty())
      return refusal(std::move(why));
    if (names.empty())
      return forReading(fd);
    std::string name = std::move(names.front());
    names.pop_front();
    Fd next;
    if (int error = openItself(fd.get(), name, missing, next, info))
      return failure(error);
    if (S_ISLNK(info.st_mode)) {
      if (why = distrustAbove(info, reached + "/" + name); !why.empty())
        return refusal(std::move(why));
      char target[4096];
      ssize_t length = ::readlinkat(next.get(), "", target, sizeof(target));
      if (length < 0 || ++links > 40)
        return failure(length < 0 ? errno : ELOOP);
      pushFront(names, std::string_view(target, static_cast<size_t>(length)));
      if (target[0] == '/') {
        fd = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
        reached.clear();
      }
      if (::fstat(fd.get(), &info) != 0)
        return failure(errno);
      continue;
    }
    if (!S_ISDIR(info.st_mode))
      return failure(ENOTDIR);
    reached += "/" + name;
    fd = std::move(next);
  }
}

Folder attn::rt::openTrusted(const std::string &path, Missing missing) {
  return openPath(path, missing, /*asParent=*/false);
}

Folder attn::rt::openTrustedParent(const std::string &path, Missing missing) {
  return openPath(path, missing, /*asParent=*/true);
}

TrustedBytes attn::rt::readTrustedAt(int directory, const std::string &name, const std::string &where) {
  // O_NONBLOCK: a FIFO of that name must not make us wait.
  Fd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat info;
  if (!fd && errno == ELOOP)
    return {{}, fmt::format("`{}/{}` is a symbolic link", where, name)};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return {};
  if (std::string why = distrustOfFile(info, where + "/" + name); !why.empty())
    return {{}, std::move(why)};
  return {readWhole(fd.get()), ""};
}

void attn::rt::warnOfDistrust(const std::string &why) {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true))
    fmt::print(stderr,
               "attnc: warning: passed over in the kernel cache: {}; it has to belong to user {} or root, and nobody "
               "else may write to it. To share a cache on purpose let root own it, or name its owner in "
               "`ATTN_CACHE_TRUST=<uid,...>`\n",
               why, ::geteuid());
}
