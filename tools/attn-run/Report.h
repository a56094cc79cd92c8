// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attn-run says.
//
#ifndef ATTN_TOOLS_ATTN_RUN_REPORT_H
#define ATTN_TOOLS_ATTN_RUN_REPORT_H

#include "attn/API/Jit.h"
#include "attn/Reference/Shapes.h"

namespace attn {

/// Problem, target and kernel, and how many tiles of each class the mask has at
/// the kernel's tile size.
void reportProblem(llvm::raw_ostream &os, Computation computation, const Target &target, const Kernel &kernel,
                   const reference::Tensors &inputs, const Sizes &sizes);

/// A program or an op around problems, target and kernel.
void reportOp(llvm::raw_ostream &os, mlir::Operation *op, const Target &target, const Kernel &kernel,
              const reference::Tensors &inputs);

/// Which rows have a `status` that is not 0, if there is one, and why. Their zeros are right, and may not be what was
/// meant.
void reportStatus(llvm::raw_ostream &os, const reference::Tensors &results);

/// The error of each result against the reference, in a line that begins with `ok` or `FAILED`. False past the
/// tolerance: twice what rounding the result alone costs, plus what rounding P and the order of sums cost (1/256 of the
/// largest value at bf16, 1/2048 at f16; at f32 all of it is 2^-16 of that), and 1e-4 (relative and absolute) for the
/// LSE. Of a gradient three times that, since it is a sum of products of two rounded tiles. False also if padding,
/// which a problem with `keep_padding` leaves alone, no longer has the bits that `poisonedResults` sets.
bool reportError(llvm::raw_ostream &os, Computation computation, const reference::Tensors &inputs,
                 const reference::Tensors &results);

/// The same for the results of a program or an op around problems, against those that the reference has. False past the
/// tolerance of their type (`toleranceOfResult`); int32 results have to be equal.
bool reportError(llvm::raw_ostream &os, mlir::Operation *op, const rt::Program &signature,
                 const reference::Tensors &expected, const reference::Tensors &results);

} // namespace attn

#endif // ATTN_TOOLS_ATTN_RUN_REPORT_H
