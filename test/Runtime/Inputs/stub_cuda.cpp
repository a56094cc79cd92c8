// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function of libcuda.so.1 that we call, doing nothing; weak, so that stream_cuda.cpp can have others.
#include "DriverTable.h"

#define STUB(name, parameters)                                                                                         \
  extern "C" __attribute__((weak)) int name parameters { return 0; }
ATTN_DRIVER_FUNCTIONS(STUB)
