// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_CONVERSION_STREAMINGKERNEL_H
#define ATTN_LIB_CONVERSION_STREAMINGKERNEL_H

#include "KernelArguments.h"
#include "SizeClasses.h"

namespace attn {

/// The kv heads that a config packs into a tile.
int64_t kvHeadsOf(ProblemOp problem, tile::ConfigAttr config);

/// The grid of a kernel of `problem` with a config of lanes or by_sequence.
KernelGrid streamingGrid(ProblemOp problem, tile::ConfigAttr config);

/// Writes the body of `kernel`, which has that grid: the program of one warp, for the
/// query rows of a few heads of one sequence, or that of one block, for a tile of them. With a
/// limit, of the sequences within it, and of the padding that belongs to none.
void writeStreaming(ProblemOp problem, tile::KernelOp kernel, tile::ConfigAttr config,
                    std::optional<ShortLimit> limit = std::nullopt);

/// The same of a backward pass: all rows and keys of a sequence, one kernel for all gradients. With a limit its rows of
/// dQ are the first of so many classes.
void writeStreamingBackward(BackwardOp backward, ProgramBuilder &program, llvm::StringRef name, llvm::StringRef target,
                            tile::ConfigAttr config, std::optional<ShortLimit> limit, int64_t classesOfDq);

/// The same with a config of `look`, for sm_90a: of sequences within the limit, which all fit the block's one tile.
void writeLookBackward(BackwardOp backward, ProgramBuilder &program, llvm::StringRef name, tile::ConfigAttr config,
                       ShortLimit limit, int64_t classesOfDq);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_STREAMINGKERNEL_H
