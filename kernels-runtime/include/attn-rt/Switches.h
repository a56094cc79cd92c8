// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Debug switches, read from the environment once. A switch is on when its
// variable is set to anything but "", "0", "off", "no".
//
//   ATTN_VERBOSE      a line on stderr per compile, cache miss (with the
//                     reason), repair and eviction
//   ATTN_DUMP_SOURCE  "1": every source that the cache is asked for goes to
//                     stderr the first time; else a directory that gets
//                     <kernel>-<digest>.cu|.cpp
//   ATTN_KEEP_TEMPS   keep the host compiler's directory and say where it is
//   ATTN_LINEINFO     line tables in GPU kernels (-lineinfo, for Nsight), -g in
//                     host kernels; changes the cache key
//   ATTN_NO_CACHE     no disk cache: compile in every process
//
// Places and sizes are not switches and are read where they are used:
// ATTN_CACHE_DIR, ATTN_CACHE_READONLY_DIRS, ATTN_CACHE_SIZE, ATTN_CACHE_TRUST
// (Cache.h), ATTN_NVRTC, ATTN_CXX, ATTN_CXXFLAGS, ATTN_PYTHON_NVIDIA (Compiler.h),
// ATTN_NUM_THREADS (Launch.h).
//
#ifndef ATTN_RT_SWITCHES_H
#define ATTN_RT_SWITCHES_H

#include <string>

namespace attn::rt {

struct Switches {
  bool verbose = false;
  bool keepTemps = false;
  bool lineInfo = false;
  bool noCache = false;
  std::string dumpSource; ///< empty: off; "1": stderr; else a directory

  /// Read at the first call of the process.
  static const Switches &get();
};

} // namespace attn::rt

#endif // ATTN_RT_SWITCHES_H
