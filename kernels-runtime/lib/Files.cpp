// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Files.h"
#include "Digest.h"
#include "Random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <filesystem>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn::rt;

Fd::~Fd() {
  if (fd >= 0)
    ::close(fd);
}

std::optional<std::string> attn::rt::readWhole(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    ssize_t got = ::read(fd, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return std::nullopt;
    at += static_cast<size_t>(got);
  }
  return bytes;
}

std::optional<std::string> attn::rt::readFile(const std::string &path) {
  // O_NONBLOCK: a FIFO of that name must not make us wait.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd ? readWhole(fd.get()) : std::nullopt;
}

/// Some file systems have nothing to sync to and say so.
static int syncResult(int result) {
  return result == 0 || errno == EINVAL || errno == ENOTSUP || errno == ENOSYS ? 0 : errno;
}

int attn::rt::writeNewFile(const std::string &path, std::string_view bytes, bool sync) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd || ::fchmod(fd.get(), 0600) != 0) // the umask may have taken bits away
    return errno;
  while (!bytes.empty()) {
    ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return put == 0 ? ENOSPC : errno;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (int failed = sync ? syncResult(::fsync(fd.get())) : 0)
    return failed;
  // NOTE: NFS reports a full disk here.
  return ::close(fd.release()) == 0 ? 0 : errno;
}

int attn::rt::syncDirectory(const std::string &path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd ? syncResult(::fsync(fd.get())) : errno;
}

/// mkdir with mode 0700, of which the umask may take bits away.
static int makeDirectory(const std::string &path) {
  if (::mkdir(path.c_str(), 0700) != 0)
    return errno;
  return ::chmod(path.c_str(), 0700) == 0 ? 0 : errno;
}

int attn::rt::makeDirectories(const std::string &path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed))
    return 0;
  std::string parent = std::filesystem::path(path).parent_path();
  if (!parent.empty() && parent != path)
    if (int code = makeDirectories(parent))
      return code;
  int code = makeDirectory(path);
  return code == EEXIST ? (std::filesystem::is_directory(path, failed) ? 0 : ENOTDIR) : code;
}

std::string attn::rt::randomName() { return fmt::format("{:016x}", randomBits()); }

/// Where process ids mean what they mean here: this boot of this machine, this
/// pid namespace.
static const std::string &place() {
  static const std::string name = [] {
    // Files of /proc have no size, so they aren't for readFile.
    char text[128] = {};
    Fd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    std::string identity;
    if (fd && ::read(fd.get(), text, sizeof(text) - 1) > 0)
      identity = text;
    char link[128] = {};
    if (::readlink("/proc/self/ns/pid", link, sizeof(link) - 1) > 0)
      identity += link;
    if (::gethostname(text, sizeof(text) - 1) == 0)
      identity += text;
    return sha256(identity).substr(0, 8);
  }();
  return name;
}

int attn::rt::makeTempDirectory(const std::string &parent, std::string_view prefix, std::string &path) {
  path = fmt::format("{}/{}{}-{}-{}", parent, prefix, ::getpid(), place(), randomName());
  return makeDirectory(path);
}

void attn::rt::removeTree(const std::string &path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void attn::rt::sweepTemporaries(const std::string &parent, std::string_view prefix) {
  for (const std::string &name : namesIn(parent)) {
    std::string_view rest = name;
    if (rest.substr(0, prefix.size()) != prefix)
      continue;
    rest.remove_prefix(prefix.size());
    long pid = 0;
    auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    std::string path = parent + "/" + name;
    struct stat info;
    if (failed != std::errc() || pid <= 0 || rest.size() < 10 || rest[0] != '-' || ::lstat(path.c_str(), &info) != 0 ||
        !S_ISDIR(info.st_mode))
      continue;
    bool here = rest.substr(1, 8) == place();
    bool dead =
        here ? ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH : ::time(nullptr) - info.st_mtime > 86400;
    if (dead && info.st_uid == ::geteuid())
      removeTree(path);
  }
}

std::vector<std::string> attn::rt::namesIn(const std::string &directory) {
  std::vector<std::string> names;
  if (DIR *dir = ::opendir(directory.c_str())) {
    while (const dirent *item = ::readdir(dir)) {
      std::string_view name = item->d_name;
      if (name != "." && name != "..")
        names.emplace_back(name);
    }
    ::closedir(dir);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string attn::rt::fileIdentity(const std::string &path) {
  struct stat info;
  if (path.empty() || ::stat(path.c_str(), &info) != 0)
    return {};
  return fmt::format("{} {} {}.{}", info.st_size, info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

std::vector<std::string> attn::rt::temporaryPlaces() {
  std::vector<std::string> places;
  if (const char *dir = std::getenv("TMPDIR"); dir && *dir)
    places.emplace_back(dir);
  for (const char *dir : {"/tmp", "/var/tmp", "/dev/shm"})
    places.emplace_back(dir);
  return places;
}

std::string attn::rt::safeName(std::string_view name) {
  std::string safe(name.substr(0, 80));
  for (char &c : safe)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '-' &&
        c != '.')
      c = '_';
  if (safe.empty() || safe[0] == '.')
    safe = "_" + safe;
  return safe;
}
