// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The printer of kernels as CUDA C++:
//
// - Kernels.cpp: a kernel's function, its parameters and its host entry; Artifact.cpp: a module's kernels with what a
//   launch needs
// - Statements.cpp: dispatch, blocks, loops, lambdas, and ops of all kernels
// - Softmax.cpp: forward ops on scores; Dropout.cpp: dropout; Backward.cpp: ops of backward passes
// - Roles.cpp: Hopper's roles, rings and waits for products
// - Metadata.cpp: the metadata dialect
// - Expressions.cpp: values, with the precedence of operators; Places.cpp: types of allocations; Names.cpp: names
//
#ifndef ATTN_LIB_TARGET_PRINTER_H
#define ATTN_LIB_TARGET_PRINTER_H

#include "attn/Dialect/Metadata/IR/Metadata.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/StringSet.h"

namespace attn {

bool isReserved(llvm::StringRef name);

/// The kernel's function: its own name, or one that C++ allows.
std::string entryOf(tile::KernelOp kernel);

/// Names for values, unique in a kernel and kept from the IR where it has any: argument names, allocations, results
/// that ops name, and locations that carry one.
class Names {
public:
  void define(mlir::Value value, llvm::StringRef wish);
  /// Names defined after the mark are free again when it is closed: a block of the IR is a block of the text.
  size_t mark() const { return order.size(); }
  void close(size_t mark);
  llvm::StringRef of(mlir::Value value) const { return names.find(value)->second; }
  bool has(mlir::Value value) const { return names.count(value); }
  /// The name a value's location carries (`IndexMath::named`), or "".
  static llvm::StringRef wishOf(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, std::string> names;
  llvm::StringSet<> taken;
  llvm::SmallVector<std::string> order; ///< as defined
};

/// C++ operator precedence, loosest first.
enum class Precedence { Conditional, Or, Xor, And, Equality, Relational, Additive, Multiplicative, Unary, Primary };

class Printer {
public:
  explicit Printer(llvm::raw_ostream &os) : os(os) {}
  void print(tile::KernelOp kernel);
  bool failed() const { return unsupported; }

  /// The C++ type of a scalar or pointer.
  static std::string typeOf(mlir::Type type);

private:
  // Statements.
  void printBlock(mlir::Block &block);
  void printOp(mlir::Operation *op);
  template <typename Op> void printAs(Op op);
  template <typename... Ops> bool printAnyOf(mlir::Operation *op);
  void printScalar(mlir::Operation *op);
  void print(tile::AllocOp op);
  void print(tile::ClearOp op);
  void print(tile::BarrierOp op);
  void print(tile::GridDependencySyncOp op);
  void print(tile::SinglePassGradsOp op);
  void print(tile::SubtractDeltaOp op);
  void print(tile::StoreSumsOp op);
  void print(tile::ScaleOp op);
  void print(tile::ConvertOp op);
  void print(tile::NormalizeOp op);
  void print(tile::NullProductOp) {} ///< its wait is not printed
  void print(tile::YieldOp) {}       ///< printed with its region
  void print(tile::FindSequenceOp op);
  void print(tile::CopyAsyncOp op);
  void print(tile::WaitOp op);
  void print(tile::WaitFiniteOp op);
  void print(tile::IsFiniteOp op);
  void print(tile::BarrierAndOp op);
  void print(tile::SubtileOp op);
  void print(tile::ModifyOp op);
  void print(tile::ApplyMaskOp op);
  void print(tile::OnlineSoftmaxOp op);
  void print(tile::SoftmaxConvertOp op);
  void print(tile::MmaAbtOp op);
  void print(tile::MmaAbOp op);
  void print(tile::StoreOp op);
  void print(tile::StoreLseOp op);
  void print(tile::StorePaddingOp op);
  void print(tile::ResumeOp op);
  void print(tile::AddRowsOp op);
  void print(tile::GatherRowsOp op);
  void print(tile::CallOp op) { printCall(op.getFunction(), op->getOperands(), ");\n"); }
  void print(tile::CombineOp op);
  void print(tile::CombineSumsOp op);
  void print(tile::AddSinkOp op);
  void print(tile::RecomputeRowsOp op);
  void print(tile::PreprocessOp op);
  void print(tile::CopyRowStatisticsOp op);
  void print(tile::ProducerLoadRowStatisticsOp op);
  void print(tile::ProbabilitiesOp op);
  void printModify(tile::ProbabilitiesOp op);
  void print(tile::GradScoresOp op);
  void print(tile::DropoutOp op);
  void print(tile::DropoutBitsOp op);
  void print(tile::ApplyDropoutBitsOp op);
  void print(tile::DropoutGradScoresOp op);
  /// The dropout arguments of `tile.recompute_rows`.
  std::string dropped(tile::RecomputeRowsOp op);
  void print(tile::StoreAndSyncOp op);
  void print(tile::ProducerStoreOp op);
  void print(tile::MmaAtbSliceOp op);
  void print(tile::StoreSliceOp op);
  void print(tile::AddDeltaOp op);
  void print(tile::StashOp op);
  void print(tile::MmaAtbOp op);
  void print(tile::AddGlobalOp op);
  void print(tile::StageOp op);
  void print(tile::AddGlobalOrderedOp op);
  void print(tile::SkipAddOp op);
  void print(tile::AddStagedOp op);
  void print(tile::PostprocessOp op);
  void print(tile::RolesOp op);
  void print(tile::PersistentLoopOp op);
  void print(tile::PublishWorkOp op);
  void print(tile::ReloadWorkOp op);
  void print(tile::OptimizationBarrierOp op);
  void print(tile::ProducerLoadOp op);
  void print(tile::ConsumerWaitOp op);
  void print(tile::ConsumerAdvanceOp op);
  void print(tile::WarpgroupRowsOp op);
  void print(tile::ConsumerReleaseOp op);
  void print(tile::LoadRowsOp op);
  void print(tile::LoadRowStatisticsOp op);
  // The metadata dialect.
  /// The C++ type of an allocation in shared memory.
  std::string metadataPlace(tile::AllocOp op);
  void print(metadata::TokensOp op);
  void print(metadata::BatchRowIndexOp op);
  void print(metadata::BoundSegmentsOp op);
  void print(metadata::CheckSegmentsOp op);
  void print(metadata::ListQueryTilesOp op);
  void print(metadata::ListWorkTilesOp op);
  void print(metadata::SplitWalksOp op);
  void print(metadata::EntryRangeOp op);
  void print(metadata::LoadRangesOp op);
  void print(metadata::SelectTilesOp op);
  void print(metadata::GatherTilesOp op);
  void print(metadata::GatheredOp op);
  void print(metadata::CooperativeLoopOp op);
  void printCall(llvm::StringRef verb, mlir::ValueRange operands, llvm::StringRef end);
  void printNumbers(mlir::Block &body, llvm::ArrayRef<const char *> arguments, llvm::StringRef open,
                    llvm::StringRef close, llvm::StringRef end = ");\n");
  void print(mlir::scf::ForOp op);
  void print(mlir::scf::IfOp op);
  void print(mlir::scf::YieldOp op);
  /// Prints a region over a score position (a mask's test), a score or a head (a sink's) as a C++ lambda; `end` starts
  /// with its `}`.
  void printLambda(mlir::Block &body, llvm::StringRef end, bool transposed = false);
  /// Prints the tail of a call that modifies scores: the position, the bound if there is one, and its lambdas.
  void printModifier(mlir::ValueRange at, llvm::StringRef small, mlir::Region &smallBody, mlir::Region &body);
  /// Prints a wait for a product: how many later products may still be in flight?
  void printProductWait(tile::WaitOp op);
  static std::string literal(double value);
  static std::string base2(double scale);
  /// Where the state of a row is stored: its LSE, or, with `sum`, its maximum and its sum.
  std::string stateOf(mlir::Value lse, mlir::Value sum);
  void printSignature(tile::KernelOp kernel);
  /// Instantiates the header's WGMMA functions for the widths (columns of results) of the kernel's products.
  void printProductWidths(tile::KernelOp kernel);
  void printHostEntry(tile::KernelOp kernel);
  llvm::raw_ostream &line();
  void complain(mlir::Operation *op);

  // Expressions.
  std::string expr(mlir::Value value, Precedence context = Precedence::Conditional);
  std::pair<std::string, Precedence> spell(mlir::Operation *op);
  static bool isInlined(mlir::Operation *op);
  /// The variable of a launch or CTA index, which is read once; empty for other ops.
  static llvm::StringRef nameOfIndex(mlir::Operation *op);
  /// Is an inlined value printed once, in this block, where all lanes execute it?
  static bool isSpelledOnce(mlir::Value value, mlir::Block *block);

  llvm::raw_ostream &os;
  Names names;
  double scale = 1; ///< of the kernel's softmax
  int indent = 0;
  bool hopper = false; ///< kernels with roles, whose products run asynchronously
  bool rolled = false; ///< loops must not be unrolled
  bool unsupported = false;
};

} // namespace attn

#endif // ATTN_LIB_TARGET_PRINTER_H
