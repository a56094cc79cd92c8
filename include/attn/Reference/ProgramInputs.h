// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs of what is no attention problem: of an `attn.program`, or of an op around problems.
//
#ifndef ATTN_REFERENCE_PROGRAMINPUTS_H
#define ATTN_REFERENCE_PROGRAMINPUTS_H

#include "attn-rt/Program.h"
#include "attn/Reference/InputRequest.h"

namespace attn::reference {

struct ProgramTensors {
  Tensors inputs, results; ///< results are poisoned: every byte is 0xff
};

/// Windows of tokens, from which offsets of compressed sequences follow.
struct Windows {
  int64_t length, stride;
};

/// All tensors of a program with this signature (`signatureOf`). Tensors that the request has not are made up: operands
/// are normal numbers, and arrays whose name begins with `cu_seqlens` have the lengths of `lengths_q`, or, with
/// `windows`, `cu_seqlens_compressed` the numbers of their windows. Sizes are those of given tensors, then those that
/// the request says. Errors: a given tensor of another shape; a tensor that has to be given; an option that decides
/// nothing.
llvm::Expected<ProgramTensors> tensorsOf(const rt::Program &signature, InputRequest request,
                                         std::optional<Windows> windows = std::nullopt);

Dtype dtypeOf(rt::Dtype dtype);

} // namespace attn::reference

#endif // ATTN_REFERENCE_PROGRAMINPUTS_H
