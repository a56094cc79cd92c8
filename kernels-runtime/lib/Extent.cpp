// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-rt/Extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

using namespace attn::rt;
using Op = Extent::Op;

struct Extent::Node {
  Op op = Op::Constant;
  int64_t value = 0;
  std::string name;
  std::vector<Extent> operands;
};

namespace {
struct Function {
  std::string_view name;
  Op op;
  size_t operands;
};
constexpr Function functions[] = {{"floor_div", Op::FloorDiv, 2}, {"ceil_div", Op::CeilDiv, 2}, {"mod", Op::Mod, 2},
                                  {"round_up", Op::RoundUp, 2},   {"min", Op::Min, 2},          {"max", Op::Max, 2},
                                  {"splits", Op::Splits, 3}};
constexpr size_t mostValues = 128; // numbers and sizes of an extent, so that its code has a bounded stack
constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
} // namespace

static int64_t saturated(bool overflows, int64_t result, bool negative) {
  return !overflows ? result : negative ? least : most;
}

static int64_t add(int64_t a, int64_t b) {
  int64_t sum = 0;
  bool overflows = __builtin_add_overflow(a, b, &sum);
  return saturated(overflows, sum, a < 0);
}

static int64_t multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  bool overflows = __builtin_mul_overflow(a, b, &product);
  return saturated(overflows, product, (a < 0) != (b < 0));
}

/// Sizes are not negative and divisors positive; what is neither must not trap.
static int64_t floorOf(int64_t a, int64_t b) { return b <= 0 ? most : a / b - (a % b < 0); }
static int64_t ceilOf(int64_t a, int64_t b) { return b <= 0 ? most : a / b + (a % b > 0); }
static int64_t modOf(int64_t a, int64_t b) { return b <= 0 ? most : a % b + (a % b < 0 ? b : 0); }

static int64_t apply(Op op, const int64_t *x) {
  switch (op) {
  case Op::Add:
    return add(x[0], x[1]);
  case Op::Sub:
    return add(x[0], x[1] == least ? most : -x[1]);
  case Op::Mul:
    return multiply(x[0], x[1]);
  case Op::FloorDiv:
    return floorOf(x[0], x[1]);
  case Op::CeilDiv:
    return ceilOf(x[0], x[1]);
  case Op::Mod:
    return modOf(x[0], x[1]);
  case Op::RoundUp:
    return multiply(ceilOf(x[0], x[1]), x[1]);
  case Op::Min:
    return std::min(x[0], x[1]);
  case Op::Max:
    return std::max(x[0], x[1]);
  case Op::Splits:
    return splitsFor(x[0], x[1], x[2]);
  case Op::Constant:
  case Op::Symbol:
  case Op::Lookup:
    break;
  }
  return 0;
}

Extent::Extent(int64_t constant) : node(std::make_shared<const Node>(Node{Op::Constant, constant, {}, {}})) {}

Extent Extent::symbol(std::string_view name) {
  Extent extent;
  extent.node = std::make_shared<const Node>(Node{Op::Symbol, 0, std::string(name), {}});
  return extent;
}

Extent Extent::lookup(std::string_view table, Extent index) {
  Extent extent;
  extent.node = std::make_shared<const Node>(Node{Op::Lookup, 0, std::string(table), {std::move(index)}});
  return extent;
}

Extent Extent::of(Op op, std::vector<Extent> operands) {
  std::array<int64_t, 3> values{};
  bool constant = true;
  for (size_t i = 0; i < operands.size() && constant; ++i)
    operands[i].constant() ? values[i] = *operands[i].constant(), void() : void(constant = false);
  if (constant)
    return apply(op, values.data());
  const Extent &a = operands[0], &b = operands[1];
  auto is = [](const Extent &extent, int64_t value) { return extent.constant() == value; };
  if ((op == Op::Mul && (is(a, 0) || is(b, 0))))
    return 0;
  if ((op == Op::Add && is(a, 0)) || (op == Op::Mul && is(a, 1)))
    return b;
  bool isLeft = is(b, op == Op::Add || op == Op::Sub ? 0 : 1);
  if (isLeft &&
      (op == Op::Add || op == Op::Sub || op == Op::Mul || op == Op::FloorDiv || op == Op::CeilDiv || op == Op::RoundUp))
    return a;
  Extent extent;
  extent.node = std::make_shared<const Node>(Node{op, 0, {}, std::move(operands)});
  return extent;
}

Op Extent::op() const { return node->op; }
std::optional<int64_t> Extent::constant() const {
  return node->op == Op::Constant ? std::optional(node->value) : std::nullopt;
}
std::string_view Extent::name() const { return node->name; }
const std::vector<Extent> &Extent::operands() const { return node->operands; }

void Extent::collect(Op op, std::vector<std::string> &names) const {
  if (this->op() == op && std::find(names.begin(), names.end(), name()) == names.end())
    names.emplace_back(name());
  for (const Extent &operand : operands())
    operand.collect(op, names);
}

void Extent::collectSymbols(std::vector<std::string> &names) const { collect(Op::Symbol, names); }
void Extent::collectTables(std::vector<std::string> &names) const { collect(Op::Lookup, names); }

std::string Extent::definedSize() const {
  bool isOf = (op() == Op::Add || op() == Op::Max) && operands()[1].constant() == 1;
  const Extent &size = isOf ? operands()[0] : *this;
  return size.op() == Op::Symbol ? size.node->name : "";
}

/// How tightly its text binds: a sum 0, a product 1, all else 2.
static int tightness(const Extent &extent) {
  return extent.op() == Op::Add || extent.op() == Op::Sub ? 0 : extent.op() == Op::Mul ? 1 : 2;
}

std::string Extent::str() const {
  if (op() == Op::Constant)
    return std::to_string(node->value);
  if (op() == Op::Symbol)
    return node->name;
  if (op() == Op::Lookup)
    return node->name + "[" + operands()[0].str() + "]";
  for (const Function &function : functions)
    if (function.op == op()) {
      std::string text(function.name);
      for (size_t i = 0; i < operands().size(); ++i)
        text += (i ? ", " : "(") + operands()[i].str();
      return text + ")";
    }
  auto side = [&](const Extent &operand, int needed) {
    return tightness(operand) < needed ? "(" + operand.str() + ")" : operand.str();
  };
  int own = tightness(*this); // operators join from the left
  return side(operands()[0], own) +
         (op() == Op::Add   ? " + "
          : op() == Op::Sub ? " - "
                            : " * ") +
         side(operands()[1], own + 1);
}

namespace {
class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  Result<Extent> parse() {
    std::optional<Extent> whole = sum();
    if (whole && next() != '\0')
      fail("an operator or the end");
    if (!error.empty())
      return Error{error, {}, {}};
    return std::move(*whole);
  }

private:
  static constexpr int deepest = 64;

  char next() {
    while (at < text.size() && text[at] == ' ')
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  bool take(char c) {
    if (next() != c)
      return false;
    ++at;
    return true;
  }
  std::nullopt_t fail(std::string_view expected) {
    if (error.empty())
      error = fmt::format("expected {} at character {} of an extent, got: `{}`", expected, at, text.substr(0, 200));
    return std::nullopt;
  }

  std::optional<Extent> sum() {
    if (++depth > deepest)
      return fail("at most 64 levels of parentheses");
    std::optional<Extent> a = product();
    while (a && (next() == '+' || next() == '-')) {
      bool plus = text[at++] == '+';
      std::optional<Extent> b = product();
      if (!b)
        return std::nullopt;
      a = plus ? *a + *b : *a - *b;
    }
    --depth;
    return a;
  }

  std::optional<Extent> product() {
    std::optional<Extent> a = factor();
    while (a && take('*')) {
      std::optional<Extent> b = factor();
      if (!b)
        return std::nullopt;
      a = *a * *b;
    }
    return a;
  }

  static bool isNamePart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  std::optional<Extent> factor() {
    if (++factors > mostValues)
      return fail("at most 128 numbers and sizes");
    if (take('(')) {
      std::optional<Extent> inside = sum();
      return !inside || take(')') ? inside : std::optional<Extent>(fail("`)`"));
    }
    char first = next();
    size_t begin = at;
    bool isNegative = first == '-' && at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9';
    if (isNegative || (first >= '0' && first <= '9')) {
      int64_t number = 0;
      auto [end, code] = std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (code != std::errc())
        return fail("a number below 2^63");
      at = static_cast<size_t>(end - text.data());
      return Extent(number);
    }
    while (at < text.size() && isNamePart(text[at]))
      ++at;
    if (at == begin)
      return fail("a number, a size or `(`");
    std::string_view name = text.substr(begin, at - begin);
    if (take('[')) {
      std::optional<Extent> index = sum();
      if (!index || !take(']'))
        return fail("`]`");
      return Extent::lookup(name, std::move(*index));
    }
    if (!take('('))
      return Extent::symbol(name);
    for (const Function &function : functions)
      if (function.name == name)
        return call(function);
    at = begin;
    return fail("`floor_div`, `ceil_div`, `mod`, `round_up`, `min`, `max` or `splits`");
  }

  std::optional<Extent> call(const Function &function) {
    std::vector<Extent> operands;
    for (size_t i = 0; i < function.operands; ++i) {
      next();
      size_t begin = at;
      std::optional<Extent> operand = sum();
      if (!operand)
        return std::nullopt;
      bool divides = i == 1 && function.op >= Op::FloorDiv && function.op <= Op::RoundUp;
      if (divides && operand->constant().value_or(1) < 1) {
        at = begin;
        return fail("a divisor of 1 or more");
      }
      operands.push_back(std::move(*operand));
      bool last = i + 1 == function.operands;
      if (!take(last ? ')' : ','))
        return fail(last ? "`)`" : "`,`");
    }
    return Extent::of(function.op, std::move(operands));
  }

  std::string_view text;
  size_t at = 0;
  int depth = 0;
  size_t factors = 0;
  std::string error;
};
} // namespace

Result<Extent> Extent::parse(std::string_view text) { return Parser(text).parse(); }

/// Appends the code; else the size or table that has no number.
static const Extent *compileInto(const Extent &extent, const std::vector<std::string> &symbols,
                                 const std::vector<std::string> &tables, std::vector<int64_t> &code) {
  for (const Extent &operand : extent.operands())
    if (const Extent *unknown = compileInto(operand, symbols, tables, code))
      return unknown;
  code.push_back(static_cast<int64_t>(extent.op()));
  if (extent.op() == Op::Constant)
    code.push_back(*extent.constant());
  if (extent.op() == Op::Symbol || extent.op() == Op::Lookup) {
    const std::vector<std::string> &names = extent.op() == Op::Symbol ? symbols : tables;
    auto found = std::find(names.begin(), names.end(), extent.name());
    if (found == names.end())
      return &extent;
    code.push_back(found - names.begin());
  }
  return nullptr;
}

Result<ExtentCode> ExtentCode::compile(const Extent &extent, const std::vector<std::string> &symbols,
                                       const std::vector<std::string> &tables) {
  ExtentCode made;
  made.code.clear();
  if (const Extent *unknown = compileInto(extent, symbols, tables, made.code))
    return Error{fmt::format("expected a {} that the program has, got: `{}` in `{}`",
                             unknown->op() == Op::Symbol ? "size" : "table", unknown->name(), extent.str()),
                 {},
                 {}};
  size_t values = 0;
  for (size_t i = 0; i < made.code.size(); ++i)
    if (Op op = static_cast<Op>(made.code[i]); op <= Op::Lookup)
      values += op != Op::Lookup, ++i;
  if (values > mostValues)
    return Error{
        fmt::format("expected at most {} numbers and sizes in an extent, got: {}", mostValues, values), {}, {}};
  return made;
}

int64_t ExtentCode::evaluate(const int64_t *values, const Table *tables) const {
  int64_t stack[mostValues];
  size_t top = 0;
  for (size_t i = 0; i < code.size(); ++i) {
    Op op = static_cast<Op>(code[i]);
    if (op == Op::Constant || op == Op::Symbol) {
      ++i;
      stack[top++] = op == Op::Constant ? code[i] : values[code[i]];
      continue;
    }
    if (op == Op::Lookup) {
      const Table table = tables ? tables[code[++i]] : (++i, Table());
      int64_t &index = stack[top - 1];
      index = index >= 0 && index < table.count ? table.numbers[index] : 0;
      continue;
    }
    top -= op == Op::Splits ? 2 : 1;
    stack[top - 1] = apply(op, stack + top - 1);
  }
  return stack[0];
}

int64_t attn::rt::splitsFor(int64_t tiles, int64_t keys, int64_t atOnce) {
  // A split of fewer than 256 keys costs more in prologue, epilogue and partial results than it saves. More than 128
  // splits were not measured.
  constexpr int64_t keysOfSplit = 256, mostSplits = 128;
  int64_t allowed = std::min(keys / keysOfSplit, mostSplits);
  if (tiles <= 0 || allowed < 2 || atOnce <= 0)
    return 1;
  // Splits have equal lengths, so they run in waves of as many CTAs as fit; the last wave may be partly empty.
  auto busy = [&](int64_t splits) {
    int64_t rounds = (tiles * splits + atOnce - 1) / atOnce;
    return double(tiles * splits) / double(rounds * atOnce);
  };
  constexpr double good = 0.95;
  double best = 0;
  for (int64_t splits = 1; splits <= allowed && best < good; ++splits)
    best = std::max(best, busy(splits));
  int64_t splits = 1;
  while (busy(splits) < good * best)
    ++splits;
  return splits;
}
