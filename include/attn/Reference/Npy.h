// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors as numpy's .npy files: format versions 1 and 2, little-endian, C
// order; float32 for floating operands, int32 for index operands, float64 for what the reference computes.
//
#ifndef ATTN_REFERENCE_NPY_H
#define ATTN_REFERENCE_NPY_H

#include "attn/Reference/Tensor.h"
#include "llvm/Support/Error.h"

namespace attn::reference {

/// Reads a file that holds `dtype` (F32 or I32; F64: a file of float64, or of float32, which stays F32). Every error
/// starts with the path: no such file, no .npy, a header we cannot read, another dtype or order, fewer or more bytes
/// than the shape says.
llvm::Expected<Tensor> readNpy(llvm::StringRef path, Dtype dtype);

/// Whether a file may be written at this path: its folder can be written, and there is no folder or device.
llvm::Error checkWritable(llvm::StringRef path);

/// Writes the tensor as int32 if it is I32, as float64 if it is F64, else as float32. The file
/// appears under its name only when it is complete; an error leaves what was
/// there before.
llvm::Error writeNpy(llvm::StringRef path, const Tensor &tensor);

/// The shape of a file's tensor against what it is read for.
llvm::Error checkShape(llvm::StringRef path, const Tensor &tensor, llvm::ArrayRef<int64_t> expected);

} // namespace attn::reference

#endif // ATTN_REFERENCE_NPY_H
