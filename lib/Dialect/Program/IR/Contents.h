// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the verifier knows of memory at a point of a program.
//
#ifndef ATTN_LIB_DIALECT_PROGRAM_IR_CONTENTS_H
#define ATTN_LIB_DIALECT_PROGRAM_IR_CONTENTS_H

#include "attn/Dialect/Program/IR/Program.h"

namespace attn::program {

/// What is known of a tensor or buffer at a point of the program.
struct Contents {
  bool isWritten = false;                            ///< all rows, on every path
  mlir::Operation *writer = nullptr;                 ///< of some rows, on some path
  ExtentAttr parts;                                  ///< of rows that have several writers; null: they have one
  mlir::Operation *repeat = nullptr;                 ///< its iteration i writes class i of the rows
  bool isIncomplete = false;                         ///< some iteration has not written its class, on some path
  uint64_t classes = 0, maybe = 0;                   ///< bits of classes that are written on every path, and on
                                                     ///< some; with `repeat`, bit 0 is the current iteration
  bool isReceived = false;                           ///< by an exchange, on every path
  bool isUnread = false;                             ///< since it was written, on every path
  llvm::SmallVector<mlir::Operation *, 1> receiving; ///< exchanges that are in flight, into it
  llvm::SmallVector<std::pair<mlir::Operation *, int>, 1> sending; ///< from it, and the memory that they go into

  bool operator==(const Contents &) const = default;

  /// Iterations would have written it, of which there are none, so there are no rows either.
  void becomeEmpty(const Contents &ifAny) { isWritten = true, isReceived = ifAny.isReceived, writer = ifAny.writer; }
  /// Blocks that exchanges receive lie one behind another; which rows a class of launches is, kernels alone know.
  bool hasBlocks() const { return llvm::isa_and_nonnull<ExchangeOp>(writer); }
  /// Its rows have one writer, or several of which no more is known.
  void forgetClasses() { parts = {}, repeat = nullptr, classes = maybe = 0; }
  /// What holds if either does.
  void join(const Contents &other) {
    isWritten &= other.isWritten, isReceived &= other.isReceived, isUnread &= other.isUnread;
    isIncomplete |= other.isIncomplete;
    classes &= other.classes, maybe |= other.maybe;
    if (!writer)
      writer = other.writer, parts = other.parts, repeat = other.repeat;
    else if (other.writer && (parts != other.parts || repeat != other.repeat || hasBlocks() != other.hasBlocks()))
      forgetClasses();
  }
};

struct State {
  llvm::SmallVector<int> carried;                ///< the memory that each carried value is; -1: none
  llvm::SmallVector<mlir::Operation *, 2> begun; ///< repeats around it that have run an iteration
  std::vector<Contents> contents;
  bool operator==(const State &) const = default;
};
using States = std::vector<State>;

inline constexpr size_t mostStates = 256;

inline void add(States &states, State state) {
  if (!llvm::is_contained(states, state))
    states.push_back(std::move(state));
}

} // namespace attn::program

#endif // ATTN_LIB_DIALECT_PROGRAM_IR_CONTENTS_H
