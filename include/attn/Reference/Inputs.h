// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Made-up inputs for a problem, from a seed: what tools use where no files are
// given, and fuzzers always.
//
#ifndef ATTN_REFERENCE_INPUTS_H
#define ATTN_REFERENCE_INPUTS_H

#include "attn/Reference/Shapes.h"
#include "llvm/Support/Error.h"

namespace attn::reference {

/// How big the inputs are. A side is dense (`seqlen`) or packed (`lengths`, one
/// per sequence); what does not fit the problem's layouts is not looked at.
struct InputSizes {
  int64_t batch = 2;
  int64_t seqlenQ = 256, seqlenKv = 256;
  std::vector<int64_t> lengthsQ, lengthsKv;
  /// Padded layouts: rows of padding before the first sequence, after each one
  /// (varied by the seed up to this), and at the end.
  int64_t padding = 5;
};

/// Adds to `tensors` whatever operand or array is missing: normal values rounded
/// to the problem's dtype with NaN in padding rows, prefix sums and offsets for
/// the lengths, random documents and prefixes. Sizes that given tensors fix are
/// taken from them. Of a backward pass, o and lse are what the reference makes of the
/// others. Errors as `deduceShapes`.
llvm::Error addMissingInputs(Computation computation, InputSizes sizes, uint64_t seed, Tensors &tensors);

/// The arrays alone, and the sizes that operands then have. `withFloats`: also those of float32, which score modifiers
/// read.
llvm::Expected<Sizes> addMissingArrays(Computation computation, InputSizes sizes, uint64_t seed, Tensors &tensors,
                                       bool withFloats = true);

/// Results of the right shapes, every byte 0xff (a NaN in all types), so that
/// what a kernel does not write is seen.
Tensors poisonedResults(Computation computation, const Sizes &sizes);

/// The problem's element type.
Dtype dtypeOf(ProblemOp problem);

/// The lengths of the sequences of a packed side (`q` or `kv`), from its arrays.
std::vector<int64_t> lengthsOf(const Tensors &tensors, llvm::StringRef side);

/// Of each of the `rows` rows of a side's tensors, its position in its sequence.
std::vector<int64_t> positionsOf(const Tensors &tensors, llvm::StringRef side, int64_t rows);

/// Adds `positions_kv` if the problem has it, from `cu_seqlens_kv`.
void addKeyPositions(ProblemOp problem, Tensors &tensors);
/// Makes pieces of a side's sequences (`layout(thd pieces)`), of which `cu_seqlens` is there: each sequence whole, in
/// two chunks or in several pieces of which some are missing, with up to `gap` rows of padding after each. `below(n)`
/// is a random number from 0 to n - 1. Returns the rows from the first to the end of the last piece. `single`: at most
/// one piece of a sequence.
int64_t addPieces(Tensors &tensors, llvm::StringRef side, int64_t gap, bool single,
                  llvm::function_ref<int64_t(int64_t)> below);

/// NaN in the rows of a packed side's tensor that belong to no sequence.
void poisonPadding(Tensor &tensor, const Tensors &tensors, llvm::StringRef side, int rowAxis);

} // namespace attn::reference

#endif // ATTN_REFERENCE_INPUTS_H
