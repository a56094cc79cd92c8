// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program as plain data: the caller's tensors, buffers of the workspace, and the steps in their order. It is what the
// `program` dialect prints to, knows neither MLIR nor CUDA, and decides alone what a launch binds, sizes and clears,
// and what ranks exchange.
//
#ifndef ATTN_RT_PROGRAM_H
#define ATTN_RT_PROGRAM_H

#include "attn-rt/Extent.h"
#include "attn-rt/Result.h"
#include "attn-rt/Specialization.h"
#include "attn-rt/Tensor.h"
#include "attn-rt/TensorMap.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

struct Program {
  /// A tensor that the caller gives.
  struct Tensor {
    enum class Role { Operand, Result, Array };
    enum class Lead { None, All, Last };
    std::string name;
    Role role = Role::Operand;
    Dtype dtype = Dtype::F32;
    Lead lead = Lead::None; ///< dimensions ahead of the extents: none, those of ids, the last of these or none
    std::vector<Extent> extents;
    std::vector<int> strided; ///< axes that may have any stride; the others are contiguous

    bool isResult() const { return role == Role::Result; }
  };
  /// What run-time arrays have to hold (attn-rt/ArrayChecks.h), looked at where the host can read them. `arrays` are
  /// numbers of tensors; -1: there is none.
  struct ArrayCheck {
    enum class Kind {
      Offsets, ///< cu_seqlens and padded offsets
      Tiles,   ///< a list of tiles, its count, and the offsets of sequences
      Blocks,  ///< offsets and columns of a block map
      Parents, ///< parents of a tree, cu_seqlens and padded offsets
      Pieces,  ///< cu_seqlens, pieces, and the first piece of each sequence
    };
    Kind kind = Kind::Offsets;
    std::vector<int> arrays;
    Extent rows;            ///< Offsets, Tiles, Parents, Pieces: of the tensors; Blocks: blocks of keys
    Extent line;            ///< Blocks: offsets of a sequence and head; Pieces: entries for whole sequences, or 0
    int64_t tile = 0;       ///< Tiles: rows of one; Blocks: keys of one; Pieces: most of a sequence, or 0
    bool isWritten = false; ///< Offsets: of tensors that are written
  };
  /// A list of numbers on the host, the caller's.
  struct TableSpec {
    std::string name;
    Extent length;
  };
  /// A size that follows from others, which are known before it.
  struct Size {
    std::string name;
    Extent value;
  };
  /// Memory of the workspace: contiguous, aligned to 16 bytes. Buffers of one place lie over each other.
  struct Buffer {
    std::string name;
    Dtype dtype = Dtype::F32;
    std::vector<Extent> extents;
    int place = 0;
  };
  /// An argument of a kernel. `tensor`: a value (`Step`).
  struct Argument {
    enum class Kind { Pointer, TensorMap, Stride, Size, Blocks, Counter };
    enum class Access { None, Read, Write };
    Kind kind = Kind::Pointer;
    int tensor = -1;
    Access access = Access::Write; ///< what a kernel does with a Pointer; Write: or both
    std::vector<int> axes;         ///< of a Stride one, of a TensorMap row, head and, unless packed, batch
    Extent extent;                 ///< of a Size
    int boxRows = 0, boxCols = 0, boxHeads = 1, rowStep = 1; ///< of a TensorMap (attn-rt/TensorMap.h)
  };
  /// A value that an iteration gives to the next: first `initial`, then what `next` was; behind the repeat, the last.
  struct Carried {
    int value = -1, initial = -1, next = -1;
  };
  /// Memory is called by numbers: tensors, behind them buffers, behind them the carried values of all repeats, in their
  /// order in the text.
  struct Step {
    enum class Kind { Launch, Clear, Exchange, Wait, Repeat, When };
    Kind kind = Kind::Launch;

    int kernel = -1;                ///< of a Launch
    Extent blocks;                  ///< of work; without any there is no launch
    int64_t mostBlocks = INT32_MAX; ///< that kernels can number
    std::vector<Argument> arguments;
    std::vector<int> zeroed; ///< tensors filled with zeros: of a Clear, or of a Launch that has no blocks
    /// A Launch reads arrays alone, or what such launches left, and writes buffers alone: with the same arrays and
    /// shapes what it left in the workspace may be used again.
    bool reusable = false;

    /// An Exchange sends the first `sent` rows (without it, all) of `source` to rank + offset, and receives the first
    /// `received` rows of block `part` of `parts` of `destination` from rank - offset. A Wait is for all exchanges into
    /// its destination.
    int destination = -1, source = -1;
    Extent offset, part = 0, parts = 1;
    std::optional<Extent> sent, received;

    /// A Repeat runs its steps `count` times, `variable` being 0, 1, ...; a When runs them where `count` is not 0.
    Extent count;
    std::string variable;
    std::vector<Carried> carried;
    std::vector<Step> steps;
  };

  static constexpr int kVersion = 3;
  std::string name;
  std::vector<Tensor> tensors; ///< in the order in which the caller gives them
  std::vector<ArrayCheck> checks;
  int64_t maxExtent = INT32_MAX; ///< of all axes of the tensors
  SpecializationRule specialization;
  std::vector<TableSpec> tables;
  std::vector<Size> sizes;
  std::vector<Buffer> buffers;
  std::vector<std::string> kernels;
  std::vector<Step> steps;

  /// The caller gives the tensors of `signature`, in their order; all that the program has are among them, by name.
  /// Takes its checks and limits, too.
  void setSignature(Program signature);
  /// The number of a tensor; -1: there is none of this name.
  int tensorNamed(std::string_view name) const;
  Dtype dtypeOf(int tensor) const; ///< of a tensor or buffer
  const std::string &nameOf(int tensor) const;

  /// JSON text, two-space indented.
  std::string toJson() const;
  /// Another version, a field that is missing or mistyped, a number that is out of range and a size that the program
  /// has not are errors that name it.
  static Result<Program> fromJson(std::string_view text);
};

/// A step, ready to be carried out. Stays where it is filled: pointers lead into it.
struct BoundStep {
  enum class Kind { Launch, Zero, Exchange, Wait };
  Kind kind = Kind::Launch;
  int kernel = -1;       ///< of a Launch
  bool reusable = false; ///< `Program::Step::reusable`
  int64_t blocks = 0;
  std::vector<int64_t> values; ///< i32 arguments lie in the low half; a counter's is the launch's to fill in
  std::vector<TensorMap> maps;
  std::vector<void *> pointers;
  /// Memory that a Zero fills with zeros: where it begins, and how many bytes.
  std::vector<std::pair<void *, size_t>> zeroed;

  /// An Exchange sends bytes to one rank and receives bytes from one; both may be this one, which is a copy.
  struct Exchange {
    int64_t to = 0, from = 0;
    std::pair<void *, size_t> sent, received;
    /// The last of the bound steps before it (of waits: the exchanges that they wait for) that writes what is sent, or
    /// touches what is received; -1: none. The exchange starts behind it, and runs beside all later steps.
    int64_t after = -1;
  } exchange;
  std::vector<int64_t> exchanges; ///< that a Wait waits for: their numbers among the bound steps
};

/// What of a call's tensors is there to be read.
enum class Given {
  Memory, ///< data, shapes and strides
  Inputs, ///< shapes of operands and arrays; results are not looked at, nor is data
};

/// Reads the contents of an array of a call, by its number.
using ReadArray = std::function<Result<std::vector<int32_t>>(int tensor)>;

/// A program whose sizes have numbers. Immutable, so several threads may use it at once.
class ProgramCode {
public:
  /// An error names what is wrong with the program: a size that nothing makes known, a tensor or a kernel that is not
  /// there.
  static Result<ProgramCode> compile(Program program);

  const Program &program() const { return source; }
  /// The names of sizes, numbered: those that a caller gives, `given` of them, and behind them those that follow.
  const std::vector<std::string> &sizes() const { return names; }
  /// So many of them, the first, are the machine's: `multiprocessors` (of a CPU, threads), `rank` and `ranks` (0 and 1
  /// where there is one).
  static constexpr size_t machineSizes = 3;
  size_t given() const { return names.size() - derived.size(); }
  /// Room for all sizes, those of a machine of one rank filled in, without multiprocessors.
  std::vector<int64_t> makeSizes() const;
  /// The same in a vector that keeps its memory.
  void startSizes(std::vector<int64_t> &sizes) const;
  bool hasExchanges() const { return exchanges; }
  /// Holds the tensors of a call against the program, and fills in the sizes that their shapes make known and those
  /// that follow: `values` has room for `sizes()`, and those of the machine are there already. Errors name the tensor,
  /// what was expected and what was given.
  Status readSizes(std::span<const TensorView> tensors, Given given, int64_t *values,
                   const Table *tables = nullptr) const;
  /// Whether results begin where no other tensor does. (Those that overlap otherwise may be views of one array, and
  /// apart.)
  Status checkApart(std::span<const TensorView> tensors) const;
  /// Holds the contents of arrays against `Program::checks`.
  Status checkArrays(const ReadArray &read, const int64_t *values) const;
  /// Fills in what follows from the given sizes. `tables`: as many as the program has, where it has some.
  void computeSizes(int64_t *values, const Table *tables = nullptr) const;
  /// The value of a size; -1 if the program has none of this name.
  int64_t valueOf(std::string_view name, const int64_t *values) const;

  /// The lengths that a program for calls of such sizes is made for (`Program::specialization`); nothing: it is this
  /// one.
  std::optional<ExpectedLengths> expectedLengths(const int64_t *values) const;

  /// Bytes of the workspace, from all sizes.
  size_t workspaceBytes(const int64_t *values, const Table *tables = nullptr) const;
  /// Extents of a tensor of a call whose inputs are given (`Given::Inputs`), with leading dimensions.
  std::vector<int64_t> shapeOf(std::span<const TensorView> tensors, size_t number, const int64_t *values) const;
  /// Extents of a tensor or buffer, without leading dimensions.
  std::vector<int64_t> shapeOf(int tensor, const int64_t *values, const Table *tables = nullptr) const;

  using Encode = Result<TensorMap> (*)(const TensorMapSpec &);
  /// Of repeats and whens, what runs; more steps are an error.
  static constexpr int64_t kMostSteps = int64_t(1) << 16;
  /// Fills `steps` in the order in which they run. `tensors` are the caller's, checked; `workspace` has
  /// `workspaceBytes` and is aligned to 16 (null where that is 0). `encode` makes tensor maps, for which a context has
  /// to be current.
  Status bind(const TensorView *tensors, void *workspace, const int64_t *values, std::vector<BoundStep> &steps,
              Encode encode = encodeTensorMap, const Table *tables = nullptr) const;

private:
  struct ShapeCode {
    static constexpr int64_t most = int64_t(1) << 44; ///< so that sums of bytes stay within 64 bits
    std::vector<ExtentCode> extents;
    std::vector<int> known; ///< the given size that each extent makes known, or -1
    int lead = -1;          ///< the given size that the leading dimensions make known
    int64_t elements(const int64_t *values, const Table *tables) const;
  };
  struct CheckCode {
    ExtentCode rows, line;
  };
  struct StepCode {
    ExtentCode count;                ///< blocks of a launch, iterations, or whether a when runs
    std::vector<ExtentCode> sizes;   ///< one for each argument
    std::vector<ExtentCode> numbers; ///< of an exchange: offset, part, parts, rows sent and received
    std::vector<StepCode> steps;
    size_t variable = 0; ///< the number of a repeat's, behind the sizes
  };
  class Compiler;
  class Binder;
  class Unroller;

  Status unroll(const Binder &binder, std::vector<BoundStep> &steps) const;
  /// Appends the offset of each place in the workspace, and returns the bytes of all.
  int64_t placeBuffers(const int64_t *values, const Table *tables, std::vector<int64_t> &offsets) const;
  Status readShape(size_t number, const TensorView &view, std::span<const int64_t> &lead, int64_t *values) const;
  Status checkShape(size_t number, const TensorView &view, std::span<const int64_t> lead, const int64_t *values) const;
  Status checkMemory(size_t number, const TensorView &view, Given given) const;

  Program source;
  std::vector<std::string> names, tableNames;
  std::vector<ExtentCode> derived, lengths; ///< lengths: of tables
  std::vector<ShapeCode> shapes;            ///< of tensors and buffers
  std::vector<StepCode> steps;
  std::vector<CheckCode> checks;
  int places = 0;
  size_t values = 0, variables = 0; ///< numbers of memory; repeats inside of each other
  bool exchanges = false, nested = false;
};

/// What the map of a tensor with these axes shows; an error if its strides cannot be a map's.
Result<TensorMapSpec> mapOf(const Program::Argument &argument, std::string_view name, Dtype dtype,
                            const TensorView &memory);

} // namespace attn::rt

#endif // ATTN_RT_PROGRAM_H
