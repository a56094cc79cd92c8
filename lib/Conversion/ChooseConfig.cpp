// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Conversion/AttnToTile.h"

using namespace attn;

int64_t attn::sharedMemoryLimit(int64_t arch) {
  // CUDA C++ Programming Guide, technical specifications per compute
  // capability: maximum amount of shared memory per thread block, in KB.
  switch (arch) {
  case 0:
    return int64_t(1) << 30; // a CPU's places are arrays
  case 80:
  case 87:
    return 163 * 1024;
  case 86:
  case 89:
  case 120:
    return 99 * 1024;
  default:
    return 227 * 1024; // 90, 100
  }
}

tile::ConfigAttr attn::chooseConfig(ProblemOp problem, int64_t arch) {
  auto config = [&](int64_t qTile, int64_t kvTile, int64_t warps, int64_t blocks) {
    return tile::ConfigAttr::get(problem.getContext(), qTile, kvTile, warps, blocks);
  };
  if (arch == 0)
    return config(64, 64, 1, 1);
  int64_t dim = std::max(problem.getDimQk(), problem.getDimV());
  if (dim <= 64)
    return config(128, 64, 4, 2);
  if (dim <= 128)
    return config(128, 64, 4, 2);
  return config(128, 32, 8, 1);
}
