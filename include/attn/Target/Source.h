// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a kernel to its text. The same printer writes CUDA C++ and C++ for the
// host: the body is the same, the headers behind `attn/tile.h` differ, and a host
// text ends with an entry that takes its arguments as a launch passes them.
//
#ifndef ATTN_TARGET_SOURCE_H
#define ATTN_TARGET_SOURCE_H

#include "attn-rt/Artifact.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include <optional>

namespace attn {

/// The kernel as text and everything a launch needs to know about it. nullopt,
/// with an error at the op, when something in it cannot be printed; the text then
/// holds a visible `<<UNSUPPORTED op>>` (see `printSource`).
std::optional<rt::Artifact> toArtifact(tile::KernelOp kernel);

/// Prints the text to `os`. False if something could not be printed.
bool printSource(tile::KernelOp kernel, llvm::raw_ostream &os);

} // namespace attn

#endif // ATTN_TARGET_SOURCE_H
