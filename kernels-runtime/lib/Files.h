// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// POSIX files, for a cache that must notice every failed write. Functions that
// can fail return 0 or an errno, as the caller mostly wants to go on.
//
#ifndef ATTN_RT_LIB_FILES_H
#define ATTN_RT_LIB_FILES_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

/// A descriptor that closes itself.
class Fd {
public:
  explicit Fd(int fd = -1) : fd(fd) {}
  Fd(Fd &&other) noexcept : fd(other.release()) {}
  Fd(const Fd &) = delete;
  Fd &operator=(const Fd &) = delete;
  ~Fd();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }
  int release() {
    int old = fd;
    fd = -1;
    return old;
  }

private:
  int fd;
};

/// The directory itself, so that later reads see one entry even when the name
/// is given to another one.
Fd openDirectory(const std::string &path);

/// Whole content of a regular file below `directory` (AT_FDCWD: a path); empty
/// if it can't be read.
std::optional<std::string> readFileAt(int directory, const char *name);
std::optional<std::string> readFile(const std::string &path);

/// Creates the file, which must not exist, and writes all of it; on disk when
/// it returns if `sync`.
int writeNewFile(const std::string &path, std::string_view bytes, bool sync = true);
/// Makes renames and new names in the directory durable; file systems that
/// can't sync directories are fine.
int syncDirectory(const std::string &path);
/// mkdir -p.
int makeDirectories(const std::string &path);
/// A new directory `<parent>/<prefix><pid>-<where>-<random>`; `path` gets its
/// name.
int makeTempDirectory(const std::string &parent, std::string_view prefix, std::string &path);
/// rm -rf, silently.
void removeTree(const std::string &path);
/// Removes what dead processes made by makeTempDirectory with this prefix.
/// Names from other machines or containers (their pids mean nothing here) go
/// when they are a day old.
void sweepTemporaries(const std::string &parent, std::string_view prefix);
/// Names in a directory except "." and "..", sorted.
std::vector<std::string> namesIn(const std::string &directory);

/// Size, inode and time of the file behind a path: changes when the file does.
/// Empty if there is none.
std::string fileIdentity(const std::string &path);
/// Directories for temporary files, best first: $TMPDIR, /tmp, /var/tmp,
/// /dev/shm.
std::vector<std::string> temporaryPlaces();
/// Letters, digits, '_', '-' and '.' stay, others become '_'; at most 80
/// characters.
std::string safeName(std::string_view name);
std::string randomName();

} // namespace attn::rt

#endif // ATTN_RT_LIB_FILES_H
