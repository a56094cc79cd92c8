// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The printer: statements (Statements.cpp), those of Hopper's roles (Roles.cpp), of
// backward passes (Backward.cpp) and of segments (Segments.cpp), expressions with their precedence (Expressions.cpp),
// names (Names.cpp).
//
#ifndef ATTN_LIB_TARGET_PRINTER_H
#define ATTN_LIB_TARGET_PRINTER_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/StringSet.h"

namespace attn {

bool isReserved(llvm::StringRef name);

/// The kernel's function: its own name, or one that C++ allows.
std::string entryOf(tile::KernelOp kernel);

/// Names for values, unique in a kernel and kept from the IR where it has some:
/// argument names, places, results that ops name, and locations that carry one.
class Names {
public:
  void define(mlir::Value value, llvm::StringRef wish);
  /// Names defined from here on are free again when the mark is closed: a block
  /// of the IR is a block of the text.
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
  void printScalar(mlir::Operation *op);
  void print(tile::PlaceOp op);
  void print(tile::FindSequenceOp op);
  void print(tile::CopyAsyncOp op);
  void print(tile::WaitOp op);
  void print(tile::WaitFiniteOp op);
  void print(tile::IsFiniteOp op);
  void print(tile::BarrierAllOp op);
  void print(tile::PartOp op);
  void print(tile::ModifyOp op);
  void print(tile::KeepOp op);
  void print(tile::SoftmaxStepOp op);
  void print(tile::SoftmaxOp op);
  void print(tile::WeighOp op);
  void print(tile::MmaQkOp op);
  void print(tile::MmaPvOp op);
  void print(tile::StoreOp op);
  void print(tile::StoreLseOp op);
  void print(tile::StorePaddingOp op);
  void print(tile::ClearShareOp op);
  void print(tile::MergeOp op);
  void print(tile::AddSinkOp op);
  void print(tile::RepairOp op);
  void print(tile::PrepareOp op);
  void print(tile::CopyStatisticsOp op);
  void print(tile::FillStatisticsOp op);
  void print(tile::ProbabilitiesOp op);
  void printModify(tile::ProbabilitiesOp op);
  void print(tile::GradScoresOp op);
  void print(tile::DropOp op);
  void print(tile::DrawOp op);
  void print(tile::DropDrawnOp op);
  void print(tile::DropGradsOp op);
  /// What a repair leaves out.
  std::string dropped(tile::RepairOp op);
  void print(tile::ShareOp op);
  void print(tile::PutOp op);
  void print(tile::MmaPieceOp op);
  void print(tile::StorePieceOp op);
  void print(tile::HoldRowsOp op);
  void print(tile::AddDeltasOp op);
  void print(tile::AsideOp op);
  void print(tile::MmaTnOp op);
  void print(tile::AddSumOp op);
  void print(tile::StageOp op);
  void print(tile::AddInTurnOp op);
  void print(tile::StoreAloneOp op);
  void print(tile::SkipSumOp op);
  void print(tile::AddStagedOp op);
  void print(tile::RoundSumOp op);
  void print(tile::RolesOp op);
  void print(tile::PersistOp op);
  void print(tile::SendOp op);
  void print(tile::RecallOp op);
  void print(tile::HereOp op);
  void print(tile::FillOp op);
  void print(tile::TakeOp op);
  void print(tile::PassOp op);
  void print(tile::OwnRowsOp op);
  void print(tile::ReleaseOp op);
  void print(tile::FetchOp op);
  void print(tile::PadRowsOp op);
  void print(tile::LoadStatisticsOp op);
  // Visits.
  void print(tile::EntryRangeOp op);
  void print(tile::RangesOp op);
  void print(tile::SelectTilesOp op);
  void print(tile::TogetherOp op);
  void print(tile::GatherBlocksOp op);
  void print(tile::GatherListedOp op);
  void print(tile::GatheredOp op);
  void print(tile::GatheredBitsOp op);
  void printGathered(llvm::StringRef verb, int64_t number, mlir::Value at, mlir::Value some, mlir::Value all);
  // Segments.
  void print(tile::TokensOp op);
  void print(tile::RowIndexOp op);
  void print(tile::CountSegmentsOp op);
  void print(tile::BoundSegmentsOp op);
  void print(tile::SelectSegmentsOp op);
  void print(tile::CheckSegmentsOp op);
  void print(tile::WriteSegmentsOp op);
  void print(tile::PairSegmentsOp op);
  void print(tile::ListTilesOp op);
  void print(tile::ListSlotsOp op);
  void printCall(llvm::StringRef verb, mlir::ValueRange operands, llvm::StringRef end);
  void printNumbers(mlir::Block &body, llvm::ArrayRef<const char *> arguments, llvm::StringRef open,
                    llvm::StringRef close, llvm::StringRef end = ");\n");
  void print(mlir::scf::ForOp op);
  void print(mlir::scf::IfOp op);
  /// A region over a pair (a mask's test), a score or a head (a sink's) as a C++ lambda; `end` starts with its `}`.
  void printLambda(mlir::Block &body, llvm::StringRef end, bool turned = false);
  /// The tail of a verb that modifies scores: the place, the bound if there is one, and its lambdas.
  void printModifier(mlir::ValueRange at, llvm::StringRef small, mlir::Region &smallBody, mlir::Region &body);
  /// Products run on past their op: how many later ones may, once this wait is over?
  void printProductWait(tile::WaitOp op);
  static std::string literal(double value);
  static std::string base2(double scale);
  /// Where the state of a row goes: its LSE, or, with `sum`, its maximum and its sum.
  std::string stateOf(mlir::Value lse, mlir::Value sum);
  void printSignature(tile::KernelOp kernel);
  /// Asks the header for the widths (columns of results) that the kernel's products have.
  void printProductWidths(tile::KernelOp kernel);
  void printHostEntry(tile::KernelOp kernel);
  llvm::raw_ostream &line();
  void complain(mlir::Operation *op);

  // Expressions.
  std::string expr(mlir::Value value, Precedence context = Precedence::Conditional);
  std::pair<std::string, Precedence> spell(mlir::Operation *op);
  static bool isInlined(mlir::Operation *op);
  /// What a number of the launch or the block is called, which is looked up once; empty for other ops.
  static llvm::StringRef nameOfIndex(mlir::Operation *op);
  /// Is an inlined value's text in one place, in this block, where all lanes come by?
  static bool isSpelledOnce(mlir::Value value, mlir::Block *block);

  llvm::raw_ostream &os;
  Names names;
  double scale = 1; ///< of the kernel's softmax
  int indent = 0;
  bool hopper = false; ///< kernels with roles, whose products run asynchronously
  bool rolled = false; ///< loops are to stay loops
  bool unsupported = false;
};

} // namespace attn

#endif // ATTN_LIB_TARGET_PRINTER_H
