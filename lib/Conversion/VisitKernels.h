// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks that read arrays of positions: what tiles see follows from what these hold, so kernels
// ahead of attention look at them and list, for each query tile, the key tiles to visit.
//
#ifndef ATTN_LIB_CONVERSION_VISITKERNELS_H
#define ATTN_LIB_CONVERSION_VISITKERNELS_H

#include "attn/Conversion/KeyWalk.h"

namespace attn {

/// Writes the kernels, before the problem, for tiles as the config has them.
void writeVisits(ProblemOp problem, llvm::StringRef target, tile::ConfigAttr config);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_VISITKERNELS_H
