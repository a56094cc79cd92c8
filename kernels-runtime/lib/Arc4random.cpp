// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// arc4random for LLVM's archives, which name their temporary files with it. glibc
// has it since 2.36 only, and a library that takes it from there cannot be loaded
// on Ubuntu 22.04, which has 2.35. This definition is linked in its place, and is hidden.
// NOTE: without <stdlib.h>, whose declaration is not.
//
#include "Random.h"

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random();
uint32_t arc4random() { return static_cast<uint32_t>(attn::rt::randomBits()); }
