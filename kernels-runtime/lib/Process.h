// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_RT_LIB_PROCESS_H
#define ATTN_RT_LIB_PROCESS_H

#include "attn-rt/Result.h"

#include <string>
#include <vector>

namespace attn::rt {

struct ProcessOutput {
  int exitCode = 0; ///< 128 + signal if one ended it; 0 where the host program
                    ///< ignores SIGCHLD and nobody can know
  std::string text; ///< stdout and stderr together
};

/// Runs a program (looked for in $PATH) to its end, stdin empty; `environment`
/// is added to ours. Fails when it can't be started.
Result<ProcessOutput> runProcess(const std::vector<std::string> &argv,
                                 const std::vector<std::string> &environment = {});

/// Full path of a program as the shell would find it; empty if there is none.
std::string findProgram(const std::string &name);

} // namespace attn::rt

#endif // ATTN_RT_LIB_PROCESS_H
