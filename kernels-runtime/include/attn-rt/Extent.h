// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers that follow from the sizes of a call: extents of tensors, blocks of a
// launch, bytes of a workspace. An `Extent` is an expression over named sizes, as a
// program has it; an `ExtentCode` is the same over numbered sizes, ready to be
// evaluated at each launch.
//
//   16 * ceil_div(total_q, 128)
//
#ifndef ATTN_RT_EXTENT_H
#define ATTN_RT_EXTENT_H

#include "attn-rt/Result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::rt {

/// An immutable expression. Constants are folded as it is built, so equal numbers print alike where that is easy to
/// see; nothing is reordered.
///
/// Text: integers below 2^63, names of sizes, `+ - *`, parentheses, numbers of tables (`visits[step + 1]`), and the
/// functions `floor_div(a, b)`, `ceil_div(a, b)`, `mod(a, b)` (from 0 to b - 1), `round_up(a, b)` (for a >= 0), all of
/// them for b > 0 (a number b below 1 is refused), `min(a, b)`, `max(a, b)` and `splits(tiles, keys, at_once)`
/// (`splitsFor`). Values are 64-bit; what overflows is INT64_MAX or INT64_MIN, and a table has 0 where it has no
/// number.
class Extent {
public:
  enum class Op { Constant, Symbol, Lookup, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, RoundUp, Min, Max, Splits };

  Extent(int64_t constant = 0);
  static Extent symbol(std::string_view name);
  static Extent of(Op op, std::vector<Extent> operands);
  static Extent lookup(std::string_view table, Extent index);
  /// An error says what was expected at which character.
  static Result<Extent> parse(std::string_view text);
  std::string str() const;

  Op op() const;
  std::optional<int64_t> constant() const;
  std::string_view name() const; ///< of a Symbol, or of the table of a Lookup
  const std::vector<Extent> &operands() const;
  /// The sizes it names, each once, in the order in which they appear; appended to `names`.
  void collectSymbols(std::vector<std::string> &names) const;
  void collectTables(std::vector<std::string> &names) const;
  /// The size whose value this extent of a tensor determines: n for `n`, `n + 1` or `max(n, 1)`; empty for other
  /// expressions.
  std::string definedSize() const;

  friend Extent operator+(Extent a, Extent b) { return of(Op::Add, {std::move(a), std::move(b)}); }
  friend Extent operator-(Extent a, Extent b) { return of(Op::Sub, {std::move(a), std::move(b)}); }
  friend Extent operator*(Extent a, Extent b) { return of(Op::Mul, {std::move(a), std::move(b)}); }
  friend bool operator==(const Extent &a, const Extent &b) { return a.str() == b.str(); }

private:
  void collect(Op op, std::vector<std::string> &names) const;

  struct Node;
  std::shared_ptr<const Node> node;
};

inline Extent floorDiv(Extent a, Extent b) { return Extent::of(Extent::Op::FloorDiv, {std::move(a), std::move(b)}); }
inline Extent ceilDiv(Extent a, Extent b) { return Extent::of(Extent::Op::CeilDiv, {std::move(a), std::move(b)}); }
inline Extent mod(Extent a, Extent b) { return Extent::of(Extent::Op::Mod, {std::move(a), std::move(b)}); }
inline Extent roundUp(Extent a, Extent b) { return Extent::of(Extent::Op::RoundUp, {std::move(a), std::move(b)}); }
inline Extent min(Extent a, Extent b) { return Extent::of(Extent::Op::Min, {std::move(a), std::move(b)}); }
inline Extent max(Extent a, Extent b) { return Extent::of(Extent::Op::Max, {std::move(a), std::move(b)}); }

/// Numbers of a table, on the host.
struct Table {
  const int64_t *numbers = nullptr;
  int64_t count = 0;
};

/// An Extent whose sizes have numbers. Reads nothing but the values it is given.
class ExtentCode {
public:
  ExtentCode() : code{0, 0} {}
  /// `symbols` and `tables`: the names of what `evaluate` takes. An error names a size or table that is not among them.
  static Result<ExtentCode> compile(const Extent &extent, const std::vector<std::string> &symbols,
                                    const std::vector<std::string> &tables = {});
  /// Without tables, their numbers are 0.
  int64_t evaluate(const int64_t *values, const Table *tables = nullptr) const;

private:
  std::vector<int64_t> code; ///< postfix: an Op, and behind Constant, Symbol and Lookup the number
};

/// Split-KV: into how many splits the keys of each query tile go, on a machine that runs `atOnce` CTAs at the same
/// time: the fewest with which `tiles` CTAs come close to filling it, as far as `keys` (of a sequence) allow, at most
/// 128. From sizes alone, so that a launch reads no device data, and equal launches on equal machines give equal bits.
int64_t splitsFor(int64_t tiles, int64_t keys, int64_t atOnce);

} // namespace attn::rt

#endif // ATTN_RT_EXTENT_H
