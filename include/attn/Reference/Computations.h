// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops around attention problems and `attn.program` mean, by their definitions, in double. Slow on purpose;
// every kernel is judged against it.
//
#ifndef ATTN_REFERENCE_COMPUTATIONS_H
#define ATTN_REFERENCE_COMPUTATIONS_H

#include "attn/Reference/Shapes.h"

namespace attn::reference {

/// Evaluates an op on host tensors, by name: operands may have any floating type, and their values count as they are.
/// Results are float64, those of indices int32. Errors: a tensor that is missing, unknown or of the wrong type or
/// shape; offsets that do not fit the tensors; offsets of compressed sequences that are not those of the op's windows.
llvm::Expected<Tensors> interpret(ComputationInterface op, const Tensors &inputs);

/// Likewise; indices beyond the rows of their part are an error.
llvm::Expected<Tensors> interpret(GatherRowsOp rows, const Tensors &inputs);

/// What calls of a program read of each other's results: float64 numbers, or these rounded to the type that the tensor
/// has between kernels. A choice (`attn.select`) between numbers that are almost equal may depend on it.
enum class Between { Float64, Rounded };

/// Evaluates the calls of a program in their order, problems and backward passes by `interpret` of these. Values
/// between calls are float64 unless `between` says otherwise; those that a score modifier reads as an array are rounded
/// to float32, which its definition takes. `dk` and `dv` of an `attn.compress_backward` have the rows of `k` of the
/// last call of its `attn.compress` before it. Rows that a call leaves alone
/// (`keep_padding`) are NaN. Errors also: those of `interpret` of the callees; a callee with ids (`segments(S)`).
llvm::Expected<Tensors> interpret(ProgramOp program, const Tensors &inputs, Between between = Between::Float64);

/// The offsets of compressed sequences (`cu_seqlens_compressed`) from those of sequences, which ascend.
Tensor compressedOffsets(const Tensor &cuSeqlens, int64_t length, int64_t stride);

} // namespace attn::reference

#endif // ATTN_REFERENCE_COMPUTATIONS_H
