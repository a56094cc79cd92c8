// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program as plain data: the caller's tensors, buffers of the workspace, and the launches in their order. It is what
// the `program` dialect prints to, knows neither MLIR nor CUDA, and decides alone what a launch binds, sizes and
// clears.
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
    };
    Kind kind = Kind::Offsets;
    std::vector<int> arrays;
    Extent rows;            ///< Offsets, Tiles, Parents: of the tensors; Blocks: blocks of keys
    Extent line;            ///< Blocks: offsets of a sequence and head
    int64_t tile = 0;       ///< Tiles: rows of one; Blocks: keys of one
    bool isWritten = false; ///< Offsets: of tensors that are written
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
  /// An argument of a kernel. `tensor`: its number among the tensors, or behind them among the buffers.
  struct Argument {
    enum class Kind { Pointer, TensorMap, Stride, Size, Blocks, Counter };
    Kind kind = Kind::Pointer;
    int tensor = -1;
    std::vector<int> axes;                      ///< of a Stride one, of a TensorMap row, head and, unless packed, batch
    Extent extent;                              ///< of a Size
    int boxRows = 0, boxCols = 0, boxHeads = 1; ///< of a TensorMap (attn-rt/TensorMap.h)
  };
  /// A launch of a kernel, or, without one, a tensor that is filled with zeros.
  struct Step {
    int kernel = -1;
    Extent blocks;                  ///< of work; without any there is no launch
    int64_t mostBlocks = INT32_MAX; ///< that kernels can number
    std::vector<Argument> arguments;
    std::vector<int> zeroed; ///< tensors filled with zeros: where there are no blocks, or of a step without a kernel
    /// It reads arrays alone, or what such steps left, and writes buffers alone: with the same arrays and shapes what
    /// it left in the workspace may be used again.
    bool reusable = false;
  };

  static constexpr int kVersion = 1;
  std::string name;
  std::vector<Tensor> tensors; ///< in the order in which the caller gives them
  std::vector<ArrayCheck> checks;
  int64_t maxExtent = INT32_MAX; ///< of all axes of the tensors
  SpecializationRule specialization;
  std::vector<Size> sizes;
  std::vector<Buffer> buffers;
  std::vector<std::string> kernels;
  std::vector<Step> steps;

  /// The caller gives the tensors of `signature`, in their order; all that the program has are among them, by name.
  /// Takes its checks and limits, too.
  void setSignature(Program signature);
  /// The number of a tensor; -1: there is none of this name.
  int tensorNamed(std::string_view name) const;
  Dtype dtypeOf(int tensor) const;
  const std::string &nameOf(int tensor) const;

  /// JSON text, two-space indented.
  std::string toJson() const;
  /// Another version, a field that is missing or mistyped, a number that is out of range and a size that the program
  /// has not are errors that name it.
  static Result<Program> fromJson(std::string_view text);
};

/// The arguments of a step, ready for a launch. Stays where it is filled: pointers lead into it.
struct BoundStep {
  int64_t blocks = 0;
  std::vector<int64_t> values; ///< i32 arguments lie in the low half; a counter's is the launch's to fill in
  std::vector<TensorMap> maps;
  std::vector<void *> pointers;
  /// Memory to fill with zeros instead of a launch: where it begins, and how many bytes.
  std::vector<std::pair<void *, size_t>> zeroed;
};

/// What of a call's tensors is there to be read.
enum class Given {
  Memory, ///< data, shapes and strides
  Shapes, ///< shapes and strides; data is not looked at
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
  /// So many of them, the first, are the chip's: multiprocessors (of a CPU, threads).
  static constexpr size_t chipSizes = 1;
  size_t given() const { return names.size() - derived.size(); }
  /// Holds the tensors of a call against the program, and fills in the sizes that their shapes make known and those
  /// that follow: `values` has room for `sizes()`, and the chip's are there already. Errors name the tensor, what was
  /// expected and what was given.
  Status readSizes(std::span<const TensorView> tensors, Given given, int64_t *values) const;
  /// Whether results begin where no other tensor does. (Those that overlap otherwise may be views of one array, and
  /// apart.)
  Status checkApart(std::span<const TensorView> tensors) const;
  /// Holds the contents of arrays against `Program::checks`.
  Status checkArrays(const ReadArray &read, const int64_t *values) const;
  /// Fills in what follows from the given sizes.
  void computeSizes(int64_t *values) const;
  /// The value of a size; -1 if the program has none of this name.
  int64_t valueOf(std::string_view name, const int64_t *values) const;

  /// The lengths that a program for calls of such sizes is made for (`Program::specialization`); nothing: it is this
  /// one.
  std::optional<ExpectedLengths> expectedLengths(const int64_t *values) const;

  /// Bytes of the workspace, from all sizes.
  size_t workspaceBytes(const int64_t *values) const;
  /// Extents of a tensor of a call whose inputs are given (`Given::Inputs`), with leading dimensions.
  std::vector<int64_t> shapeOf(std::span<const TensorView> tensors, size_t number, const int64_t *values) const;
  /// Extents of a tensor or buffer, without leading dimensions.
  std::vector<int64_t> shapeOf(int tensor, const int64_t *values) const;
  /// Fills `steps`, one for each of the program's. `tensors` are the caller's, checked; `workspace` has
  /// `workspaceBytes` and is aligned to 16 (null where that is 0). `encode` makes tensor maps, for which a context has
  /// to be current.
  Status bind(const TensorView *tensors, void *workspace, const int64_t *values, std::vector<BoundStep> &steps,
              Result<TensorMap> (*encode)(const TensorMapSpec &) = encodeTensorMap) const;

private:
  struct ShapeCode {
    std::vector<ExtentCode> extents;
    std::vector<int> known; ///< the given size that each extent makes known, or -1
    int lead = -1;          ///< the given size that the leading dimensions make known
    int64_t elements(const int64_t *values) const;
  };
  struct CheckCode {
    ExtentCode rows, line;
  };
  struct StepCode {
    ExtentCode blocks;
    std::vector<ExtentCode> sizes; ///< one for each argument
  };

  /// Appends the offset of each place in the workspace, and returns the bytes of all.
  int64_t placeBuffers(const int64_t *values, std::vector<int64_t> &offsets) const;
  Status readShape(size_t number, const TensorView &view, std::span<const int64_t> &lead, int64_t *values) const;
  Status checkShape(size_t number, const TensorView &view, std::span<const int64_t> lead, const int64_t *values) const;
  Status checkMemory(size_t number, const TensorView &view, Given given) const;
  Status bindStep(size_t number, const TensorView *tensors, void *const *buffers, const int64_t *values,
                  BoundStep &step, Result<TensorMap> (*encode)(const TensorMapSpec &)) const;
  void findZeroed(const Program::Step &step, const TensorView *tensors, void *const *buffers, const int64_t *values,
                  BoundStep &bound) const;

  Program source;
  std::vector<std::string> names;
  std::vector<ExtentCode> derived;
  std::vector<ShapeCode> shapes;
  std::vector<StepCode> steps;
  std::vector<CheckCode> checks;
  int places = 0;
};

/// What the map of a tensor with these axes shows; an error if its strides cannot be a map's.
Result<TensorMapSpec> mapOf(const Program::Argument &argument, std::string_view name, Dtype dtype,
                            const TensorView &memory);

} // namespace attn::rt

#endif // ATTN_RT_PROGRAM_H
