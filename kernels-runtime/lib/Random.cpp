// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Random.h"

#include <atomic>
#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

using namespace attn::rt;

static bool fromKernel(uint64_t &bits) {
  ssize_t got;
  do
    got = ::getrandom(&bits, sizeof(bits), 0);
  while (got < 0 && errno == EINTR);
  if (got == sizeof(bits))
    return true;
  // A sandbox may refuse the system call.
  int fd = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  got = fd < 0 ? -1 : ::read(fd, &bits, sizeof(bits));
  if (fd >= 0)
    ::close(fd);
  return got == sizeof(bits);
}

uint64_t attn::rt::randomBits() {
  uint64_t bits = 0;
  if (fromKernel(bits))
    return bits;
  // Names need only be new; whoever makes a file under one notices if it is not.
  static std::atomic<uint64_t> calls{0};
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t seed = static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
  return (seed ^ static_cast<uint64_t>(::getpid()) << 40) * 0x9e3779b97f4a7c15 + ++calls;
}
