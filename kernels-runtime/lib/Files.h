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
#include <utility>
#include <vector>

namespace attn::rt {

/// A descriptor that closes itself.
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) : fd(fd) {}
  Fd(Fd &&other) noexcept : fd(other.release()) {}
  Fd(const Fd &) = delete;
  Fd &operator=(Fd &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Fd();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }
  int release() {
    int old = fd;
    fd = -1;
    return old;
  }

private:
  int fd = -1;
};

/// Whole content of an open regular file; empty if it can't be read.
std::optional<std::string> readWhole(int fd);
/// The same of a path. What is read back from the disk to be used goes through
/// Trust.h.
std::optional<std::string> readFile(const std::string &path);

/// Creates the file, which must not exist, with mode 0600 whatever the umask,
/// and writes all of it; on disk when it returns if `sync`.
int writeNewFile(const std::string &path, std::string_view bytes, bool sync = true);
/// Makes renames and new names in the directory durable; file systems that
/// can't sync directories are fine.
int syncDirectory(const std::string &path);
/// mkdir -p; what is made has mode 0700 whatever the umask.
int makeDirectories(const std::string &path);
/// A new directory `<parent>/<prefix><pid>-<where>-<random>` of mode 0700;
/// `path` gets its name. The parent is there.
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
/// /dev/shm. Whether nobody can swap what we make there Trust.h knows.
std::vector<std::string> temporaryPlaces();
/// Letters, digits, '_', '-' and '.' stay, others become '_'; at most 80
/// characters.
std::string safeName(std::string_view name);
std::string randomName();

} // namespace attn::rt

#endif // ATTN_RT_LIB_FILES_H
