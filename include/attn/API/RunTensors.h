// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a kernel on tensors that lie on the host, wherever the kernel runs: for
// tools and tests. Copies in, launches, waits, copies out.
//
#ifndef ATTN_API_RUNTENSORS_H
#define ATTN_API_RUNTENSORS_H

#include "attn/API/Jit.h"
#include "attn/Reference/Tensor.h"
#include "llvm/ADT/StringMap.h"

namespace attn {

/// Ids and positions of keys that are missing lie where those of queries do.
/// `results` come with their shapes (and what should be seen where the kernel
/// writes nothing) and leave with what the kernel wrote.
/// The kernel is launched as it is; `specialize` has another for some shapes.
rt::Status runTensors(const Kernel &kernel, const llvm::StringMap<reference::Tensor> &inputs,
                      llvm::StringMap<reference::Tensor> &results);

/// The kernel for inputs of such shapes (`Kernel::specialize`).
rt::Result<std::shared_ptr<const Kernel>> specialize(const Kernel &kernel,
                                                     const llvm::StringMap<reference::Tensor> &inputs);

} // namespace attn

#endif // ATTN_API_RUNTENSORS_H
