// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What attn-opt answers besides running passes. Each takes the command line without its own
// option and returns an exit status.
//
#ifndef ATTN_TOOLS_ATTN_OPT_QUESTIONS_H
#define ATTN_TOOLS_ATTN_OPT_QUESTIONS_H

namespace attn {

/// `--explain FILE`: which tiles a problem's kernel visits, and what that costs.
int explain(int argc, char **argv);
/// `--supported FILE`: for which targets, and if not, why and what is near.
int supported(int argc, char **argv);
/// `--equiv A B`: are two masks the same set? Exit status 0: yes, 1: no, 2: not decided.
int equiv(int argc, char **argv);

} // namespace attn

#endif // ATTN_TOOLS_ATTN_OPT_QUESTIONS_H
