// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libnvrtc as a table of functions. Prototypes are those of <nvrtc.h> of
// CUDA 11.8 to 13, with `int` for nvrtcResult and `void *` for nvrtcProgram; we
// don't include it because nothing of CUDA need be installed to build.
//
#ifndef ATTN_RT_LIB_NVRTCLIBRARY_H
#define ATTN_RT_LIB_NVRTCLIBRARY_H

#include "attn-rt/Result.h"

#include <string>
#include <vector>

namespace attn::rt {

struct NvrtcLibrary {
  int (*version)(int *major, int *minor);
  const char *(*errorString)(int);
  int (*createProgram)(void **program, const char *source, const char *name, int numHeaders, const char *const *headers,
                       const char *const *includeNames);
  int (*destroyProgram)(void **program);
  int (*compileProgram)(void *program, int numOptions, const char *const *options);
  int (*logSize)(void *program, size_t *size);
  int (*log)(void *program, char *text);
  int (*cubinSize)(void *program, size_t *size);
  int (*cubin)(void *program, char *bytes);

  /// Opens the library; "" is what the loader finds under libnvrtc.so.13, .12,
  /// .so. Opened once per path and never closed.
  static Result<const NvrtcLibrary *> open(const std::string &path, const std::vector<std::string> &searched);
};

/// Path of libnvrtc, or "" if none of the places has one (the loader may still
/// know one). `searched` gets every place looked at.
std::string findNvrtc(std::vector<std::string> &searched);

} // namespace attn::rt

#endif // ATTN_RT_LIB_NVRTCLIBRARY_H
