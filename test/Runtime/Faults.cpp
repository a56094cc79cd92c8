// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// System calls of this program go through here: the linker takes our
// definitions before libc's.
//
#include "TestHelpers.h"

#include <cerrno>
#include <csignal>
#include <cstdarg>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

attn::rt::Fault attn::rt::fault;
std::function<void(const std::string &)> attn::rt::afterOpen;

/// Whether this call has to fail.
static bool strikes() {
  attn::rt::Fault &fault = attn::rt::fault;
  if (fault.after < 0 || fault.seen++ < fault.after)
    return false;
  if (fault.once && fault.seen > fault.after + 1)
    return false;
  if (fault.kill)
    ::kill(::getpid(), SIGKILL);
  errno = fault.error;
  return true;
}

template <typename F> static F *real(const char *name) { return reinterpret_cast<F *>(::dlsym(RTLD_NEXT, name)); }

extern "C" {
ssize_t write(int fd, const void *bytes, size_t n) {
  static auto *next = real<ssize_t(int, const void *, size_t)>("write");
  if (fd > 2 && strikes()) {
    // A disk that fills up takes a part first.
    return n > 1 && !attn::rt::fault.once && attn::rt::fault.seen == attn::rt::fault.after + 1 ? next(fd, bytes, n / 2)
                                                                                               : -1;
  }
  return next(fd, bytes, n);
}
int fsync(int fd) {
  static auto *next = real<int(int)>("fsync");
  return strikes() ? -1 : next(fd);
}
int rename(const char *from, const char *to) noexcept {
  static auto *next = real<int(const char *, const char *)>("rename");
  return strikes() ? -1 : next(from, to);
}
int renameat2(int fromDir, const char *from, int toDir, const char *to, unsigned flags) noexcept {
  static auto *next = real<int(int, const char *, int, const char *, unsigned)>("renameat2");
  return strikes() ? -1 : next(fromDir, from, toDir, to, flags);
}
int mkdir(const char *path, mode_t mode) noexcept {
  static auto *next = real<int(const char *, mode_t)>("mkdir");
  return strikes() ? -1 : next(path, mode);
}
int mkdirat(int parent, const char *name, mode_t mode) noexcept {
  static auto *next = real<int(int, const char *, mode_t)>("mkdirat");
  return strikes() ? -1 : next(parent, name, mode);
}
int fchmod(int fd, mode_t mode) noexcept {
  static auto *next = real<int(int, mode_t)>("fchmod");
  return strikes() ? -1 : next(fd, mode);
}
int fchmodat(int parent, const char *name, mode_t mode, int flags) noexcept {
  static auto *next = real<int(int, const char *, mode_t, int)>("fchmodat");
  return strikes() ? -1 : next(parent, name, mode, flags);
}
int chmod(const char *path, mode_t mode) noexcept {
  static auto *next = real<int(const char *, mode_t)>("chmod");
  return strikes() ? -1 : next(path, mode);
}
int openat(int parent, const char *name, int flags, ...) { // the cache never creates with it
  static auto *next = real<int(int, const char *, int, ...)>("openat");
  va_list list;
  va_start(list, flags);
  int fd = next(parent, name, flags, flags & O_CREAT ? va_arg(list, mode_t) : 0);
  va_end(list);
  if (attn::rt::afterOpen)
    attn::rt::afterOpen(name);
  return fd;
}
int open(const char *path, int flags, ...) {
  static auto *next = real<int(const char *, int, ...)>("open");
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
  va_end(list);
  return flags & O_CREAT && strikes() ? -1 : next(path, flags, mode);
}
}
