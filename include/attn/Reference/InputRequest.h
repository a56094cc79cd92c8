// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a caller says of a problem's inputs: how long sequences are, and some of the tensors. The rest follows from the
// problem or is made up (Inputs.h).
//
#ifndef ATTN_REFERENCE_INPUTREQUEST_H
#define ATTN_REFERENCE_INPUTREQUEST_H

#include "attn/Reference/Inputs.h"

namespace attn::reference {

/// How long a problem says that its sequences are, and with which clause; up to 2^24.
struct ExpectedLengths {
  int64_t queries, keys;
  const char *clause;
  static std::optional<ExpectedLengths> of(ProblemOp problem);
};

struct InputRequest {
  std::optional<int64_t> batch;             ///< sequences, or with segments rows of ids; else 2, packed 4
  std::optional<int64_t> seqlenQ, seqlenKv; ///< dense layouts and segments; else 256 queries, and as many keys
  std::vector<int64_t> lengthsQ, lengthsKv; ///< packed layouts; empty: not given
  std::optional<int64_t> padding;           ///< padded layouts: rows around sequences; else 5
  std::optional<uint64_t> seed;             ///< of inputs that are made up; else 1
  Tensors tensors;                          ///< inputs that are given
  bool areKeys = true;                      ///< are options called by keys, in errors: `seqlen_q`? Else --seqlen-q

  /// An option as errors show it, with its value if that is not empty.
  std::string spell(llvm::StringRef key, llvm::StringRef value = "") const;
};

/// Numbers are in range, whatever the problem.
llvm::Error checkRanges(const InputRequest &request);
/// Each option is about something that the problem has. An error names the option for what it has instead.
llvm::Error checkApplies(ProblemOp problem, const InputRequest &request);

/// All inputs of a problem or its backward pass, given or made up; checked. An option that says otherwise than the
/// given tensors is an error.
llvm::Expected<Tensors> inputsOf(Computation computation, InputRequest request);

/// The arrays that say where sequences are and what the mask shows, given or made up, and the sizes of all tensors.
/// Arrays of score modifiers are only there if they are given. Sequences are as long as the request says, or else as
/// the problem does.
llvm::Expected<std::pair<Tensors, Sizes>> arraysOf(ProblemOp problem, InputRequest request);

} // namespace attn::reference

#endif // ATTN_REFERENCE_INPUTREQUEST_H
