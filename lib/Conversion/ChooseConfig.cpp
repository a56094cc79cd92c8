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

// Measured on an H200 (docs/results). A thread has 255 registers, and the output
// accumulator takes q_tile * dim_v / (32 * warps) of them, so wide heads get
// shorter query tiles. (At 256, 128 x 128 with eight warps is up to a tenth faster
// on long sequences and slower on short ones, and takes 1.4 s to compile.) Two
// blocks of four warps hide each other's barriers.
tile::ConfigAttr attn::chooseConfig(ProblemOp problem, int64_t arch) {
  auto config = [&](int64_t qTile, int64_t kvTile, int64_t warps, int64_t blocks, bool holdQ = false) {
    return tile::ConfigAttr::get(problem.getContext(), qTile, kvTile, warps, blocks, holdQ, /*one_body=*/false);
  };
  if (arch == 0)
    return config(64, 64, 1, 1);
  int64_t dimQk = problem.getDimQk(), dimV = problem.getDimV(), limit = sharedMemoryLimit(arch);
  if (dimQk <= 64 && dimV <= 64)
    return config(128, 64, 4, 2, /*holdQ=*/true);
  if (dimV <= 128)
    return config(128, dimQk > 192 && limit < 128 * 1024 ? 32 : 64, 4, 2);
  return config(64, 64, 4, 2);
}

tile::ConfigAttr attn::narrower(tile::ConfigAttr config) {
  if (config.getKvTile() <= 16)
    return {};
  return tile::ConfigAttr::get(config.getContext(), config.getQTile(), config.getKvTile() - 16, config.getWarps(),
                               config.getBlocks(), config.getHoldQ(), config.getOneBody());
}
