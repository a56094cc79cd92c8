// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of `attn.segments`, each compiled once, and what they make of inputs
// beside what the reference says.
//
#ifndef ATTN_TEST_SEGMENTS_PROGRAMS_H
#define ATTN_TEST_SEGMENTS_PROGRAMS_H

#include "attn/API/RunTensors.h"
#include "attn/Reference/Segments.h"

namespace attn::segments {

using reference::Shape;
using reference::Tensor;
using reference::Tensors;

struct Choice {
  const char *mask;
  int segments;
  bool maps = false;
  int tiles = 0; ///< 0: none
  std::string text() const;
};

struct Compiled {
  std::string text;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  SegmentsOp op;
  std::shared_ptr<const Kernel> kernel;
};

class Programs {
public:
  explicit Programs(Target target) : target(std::move(target)) {}
  /// Compiles on all CPUs. Prints what fails and exits.
  void compile(llvm::ArrayRef<Choice> choices);
  Compiled &get(const Choice &choice);

private:
  Target target;
  Compilation compilation; ///< whose context holds the ops
  llvm::StringMap<Compiled> programs;
};

/// What nobody writes.
constexpr int32_t poison = 0x5a5a5a5a;

/// An i32 tensor with poison around it, `before` elements of it before the first.
Tensor makeTensor(llvm::ArrayRef<int64_t> shape, int64_t before, int64_t behind);
/// The sizes behind ids of these shapes and positions of one row, whether they are legal or not.
Sizes sizesOfRows(SegmentsOp op, llvm::ArrayRef<int64_t> lead, int64_t tokensQ, int64_t tokensKv);
/// Poisoned results for these inputs; the address of each is a few elements off.
Tensors poisonedResults(SegmentsOp op, const Sizes &sizes, uint64_t seed);
/// What differs: the first element that is not as expected, or not poison around.
std::string differenceOf(const Tensors &expected, const Tensors &actual);
/// Runs and compares with the reference; returns what is wrong, and the results.
std::string check(Compiled &program, const Tensors &inputs, uint64_t seed, Tensors &results);

// The subcommands; true: all is well.
bool golden(Programs &programs, const std::string &file);
bool randomCases(Programs &programs, int64_t count, uint64_t seed, llvm::StringRef family, int64_t onlyCase);
bool table(Programs &programs);
bool badInputs(Programs &programs, const Target &target);
bool attention(Programs &programs, const Target &target, int64_t count, uint64_t seed);

} // namespace attn::segments

#endif // ATTN_TEST_SEGMENTS_PROGRAMS_H
