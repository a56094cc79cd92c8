// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the choices of several targets have in common.
//
#ifndef ATTN_LIB_CONVERSION_CHOOSECONFIG_H
#define ATTN_LIB_CONVERSION_CHOOSECONFIG_H

#include "attn/Conversion/AttnToTile.h"

namespace attn {

/// A launch with few query tiles leaves most of a chip idle, unless keys are shared out:
/// into how many parts, the launcher knows. Sharing out costs a second kernel and
/// float32 results in between, so it is for those who say that queries are few and
/// keys are not.
bool hasFewQueries(ProblemOp problem);

/// Of the query heads of a group, how many to have in one tile of `rows`: what needs the
/// fewest tiles, since each of them reads all keys.
int64_t headsToPack(ProblemOp problem, int64_t rows);

/// `chooseConfig` for `sm_90a`, of what is not streamed.
tile::ConfigAttr chooseHopper(ProblemOp problem);
/// Of packed sequences of up to 256 rows and keys by their bounds, the tiles that these fill; null where others are faster.
tile::ConfigAttr chooseBounded(ProblemOp problem);
/// Of a backward pass, one with `look` for sequences of up to 256 rows and keys; null where other kernels are faster, or this one is not known to fit.
tile::ConfigAttr chooseLookBackward(ProblemOp problem, llvm::StringRef target, int64_t arch);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_CHOOSECONFIG_H
