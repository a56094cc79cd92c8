// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of the C interfaces, as a program takes them.
//
#ifndef ATTN_RT_CTENSORS_H
#define ATTN_RT_CTENSORS_H

#include "attn-c/Tensor.h"
#include "attn-rt/Program.h"

#include <vector>

namespace attn::rt {

/// The tensors of a call, one for each of the program's. Results are looked at only where their shapes are given.
/// An error names a tensor whose dtype is none, or whose rank or shape is missing.
Status readTensors(const Program &program, const attnTensor *tensors, Given given, std::vector<TensorView> &views);

/// Fills in dtype, rank, shape and strides of the results among `tensors`, whose inputs are given.
Status inferShapes(const ProgramCode &code, attnTensor *tensors, int64_t (*extents)[attnMaxRank]);

} // namespace attn::rt

#endif // ATTN_RT_CTENSORS_H
