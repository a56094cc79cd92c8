// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From text to instructions. Operators bind as in C: `? :`, `||`, `&&`, `|`, `^`, `&`, compares,
// `<< >>`, `+ -`, `* / %`, then `! ~ -`.
//
#include "Expression.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace attn;
using namespace attn::expression;
using llvm::Twine;

namespace {
constexpr size_t longest = 512; // numbers of code
constexpr int deepest = 64;

/// Operators as other languages write them.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> otherSpellings[] = {
    {"and", "&&"}, {"or", "||"}, {"not", "!"}, {"=", "=="}};

class Parser {
public:
  /// `real`: of a score; else of a condition.
  Parser(llvm::StringRef text, bool real) : real(real), text(text), rest(text) {}

  llvm::Expected<Parsed> parse() {
    std::optional<Part> whole = conditional();
    if (whole && !take(""))
      fail("expected an operator or the end");
    if (whole && error.empty() && (whole->kind == Truth) == real)
      fail(real ? "expected a score, got: a condition" : "expected a condition, got: an integer");
    if (whole && error.empty() && real)
      whole = realOf(*whole);
    if (!error.empty())
      return llvm::createStringError(error);
    result.code.assign(whole->code.begin(), whole->code.end());
    return std::move(result);
  }

private:
  enum Kind { Integer, Truth, Real };
  struct Part {
    llvm::SmallVector<int64_t> code;
    Kind kind = Integer;
    bool isCompare = false; ///< without parentheses
  };
  using MaybePart = std::optional<Part>;

  MaybePart fail(const Twine &what) {
    rest = rest.ltrim();
    if (!error.empty())
      return std::nullopt;
    size_t character = text.size() - rest.size();
    std::string place = ("`" + rest.take_front(12) + "` (character " + Twine(character) + ")").str();
    error = (what + " at " + (rest.empty() ? "the end" : place)).str();
    llvm::StringRef word = rest.take_while(llvm::isAlpha(rest.empty() ? ' ' : rest[0]) ? llvm::isAlnum : llvm::isPunct);
    for (auto [other, own] : otherSpellings)
      if (word == other)
        error += ("; `" + other + "` is written `" + own + "`").str();
    return std::nullopt;
  }

  /// The token, if it is next; "" is the end.
  bool take(llvm::StringRef token) {
    rest = rest.ltrim();
    if (token.empty())
      return rest.empty();
    return rest.consume_front(token);
  }

  static Part join(llvm::ArrayRef<Part> operands, llvm::ArrayRef<int64_t> with, Kind kind) {
    Part part;
    for (const Part &operand : operands)
      part.code.append(operand.code);
    part.code.append(with.begin(), with.end());
    part.kind = kind;
    return part;
  }

  static Part realOf(const Part &part) {
    if (part.kind == Real)
      return part;
    if (std::optional<int64_t> constant = constantOf(part))
      return realNumber(double(*constant));
    return join({part}, {ToReal}, Real);
  }
  static Part realNumber(double number) { return Part{{RealNumber, llvm::bit_cast<int64_t>(number)}, Real}; }

  /// Two numbers of one kind, made so if one of them is real; false if they are none, or too long.
  bool areNumbers(Part &a, Part &b, llvm::StringRef of) {
    if (a.kind == Real && b.kind == Integer)
      b = realOf(b);
    if (b.kind == Real && a.kind == Integer)
      a = realOf(a);
    return are(a.kind == Real && b.kind == Real ? Real : Integer, a, b, of);
  }

  /// Both of the given kind.
  bool are(Kind kind, const Part &a, const Part &b, llvm::StringRef of) {
    if (a.kind != kind || b.kind != kind)
      fail("expected two " +
           Twine(kind == Truth ? "conditions"
                 : real        ? "numbers"
                               : "integers") +
           " of `" + of + "`, before this");
    else if (a.code.size() + b.code.size() > longest)
      fail("expected at most " + Twine(longest) + " numbers of code");
    return error.empty();
  }

  MaybePart conditional() {
    struct Depth {
      int &depth;
      Depth(int &depth) : depth(++depth) {}
      ~Depth() { --depth; }
    } guard(depth);
    if (depth > 1 + deepest) // one is the whole
      return fail("expected at most " + Twine(deepest) + " levels of parentheses");
    MaybePart condition = either();
    if (!condition || !take("?"))
      return condition;
    MaybePart yes = conditional();
    if (!yes)
      return std::nullopt;
    if (!take(":"))
      return fail("expected `:`");
    MaybePart no = conditional();
    if (!no || !(yes->kind == Truth ? are(Truth, *yes, *no, "? :") : areNumbers(*yes, *no, "? :")))
      return std::nullopt;
    if (condition->kind != Truth)
      return fail("expected a condition before `?`");
    if (yes->kind == Truth)
      return join({join({*condition, *yes}, {And}, Truth), join({*condition}, {Not}, Truth), *no}, {And, Or}, Truth);
    return join({*condition, *yes, *no}, {yes->kind == Real ? RealSelect : Select}, yes->kind);
  }

  MaybePart either() {
    MaybePart a = both();
    while (a && take("||")) {
      MaybePart b = both();
      if (!b || !are(Truth, *a, *b, "||"))
        return std::nullopt;
      a = join({*a, *b}, {Or}, Truth);
    }
    return a;
  }

  MaybePart both() {
    MaybePart a = bits();
    while (a && take("&&")) {
      MaybePart b = bits();
      if (!b || !are(Truth, *a, *b, "&&"))
        return std::nullopt;
      a = join({*a, *b}, {And}, Truth);
    }
    return a;
  }

  /// `|`, `^` and `&` of integers, from the loosest on.
  MaybePart bits(size_t level = 0) {
    constexpr std::pair<char, int64_t> operators[] = {{'|', BitOr}, {'^', BitXor}, {'&', BitAnd}};
    auto [sign, op] = operators[level];
    auto operand = [&] { return level + 1 < std::size(operators) ? bits(level + 1) : compare(); };
    MaybePart a = operand();
    while (a && error.empty()) {
      rest = rest.ltrim();
      llvm::StringRef here = rest;
      if (!rest.consume_front(llvm::StringRef(&sign, 1)) || (sign != '^' && rest.starts_with(here[0])))
        return rest = here, a;
      MaybePart b = operand();
      if (!b)
        return b;
      a = ofBits(op, sign, here, *a, *b);
    }
    return a;
  }

  MaybePart ofBits(int64_t op, char sign, llvm::StringRef here, const Part &a, const Part &b) {
    if (a.kind == Truth && b.kind == Truth && op != BitXor) {
      rest = here;
      fail("expected an operator or the end");
      error += ("; `" + Twine(sign) + "` is written `" + Twine(sign) + Twine(sign) + "`").str();
      return std::nullopt;
    }
    if (a.isCompare || b.isCompare) {
      rest = here;
      return fail("expected parentheses where `" + Twine(sign) +
                  "` of integers meets a compare, which binds tighter, as in C,");
    }
    if (!areIntegers(a, b, llvm::StringRef(&sign, 1)))
      return std::nullopt;
    std::optional<int64_t> x = constantOf(a), y = constantOf(b);
    if (x && y)
      return Part{{Number, op == BitAnd ? *x & *y : op == BitOr ? *x | *y : *x ^ *y}, Integer};
    return join({a, b}, {op}, Integer);
  }

  /// Both, also where numbers are real.
  bool areIntegers(const Part &a, const Part &b, llvm::StringRef of) {
    if (a.kind != Real && b.kind != Real)
      return are(Integer, a, b, of);
    fail("expected integers on both sides of `" + of + "`, before this");
    return false;
  }

  MaybePart compare() {
    MaybePart a = shift();
    if (!a)
      return a;
    for (llvm::StringRef op : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!take(op))
        continue;
      MaybePart b = shift();
      if (!b || !areNumbers(*a, *b, op))
        return std::nullopt;
      bool equal = op == "==" || op == "!=";
      if (equal && a->kind == Real)
        return fail("expected integers on both sides of `" + op + "`, before this");
      if (op[0] == '>')
        std::swap(*a, *b);
      int64_t less = a->kind == Real ? RealLess : Less, lessEqual = a->kind == Real ? RealLessEqual : LessEqual;
      Part result = join({*a, *b}, {equal ? int64_t(Equal) : op.size() == 2 ? lessEqual : less}, Truth);
      if (op == "!=")
        result = join({result}, {Not}, Truth);
      result.isCompare = true;
      return result;
    }
    return a;
  }

  /// By a constant: products and quotients.
  MaybePart shift() {
    MaybePart a = sum();
    while (a && error.empty()) {
      bool left = take("<<");
      if (!left && !take(">>"))
        break;
      MaybePart b = sum();
      llvm::StringRef sign = left ? "<<" : ">>";
      if (!b || !areIntegers(*a, *b, sign))
        return std::nullopt;
      std::optional<int64_t> number = constantOf(*a), count = constantOf(*b);
      if (!count || *count < 0 || *count > 62)
        return fail("expected a number from 0 to 62 behind `" + sign + "`, before this");
      int64_t factor = int64_t(1) << *count, product;
      if (number && (!left || !llvm::MulOverflow(*number, factor, product)))
        a = Part{{Number, left ? product : *number >> *count}, Integer};
      else if (*count)
        a = join({*a}, {left ? Mul : Div, factor}, Integer);
    }
    return a;
  }

  MaybePart sum() {
    MaybePart a = term();
    while (a && error.empty()) {
      bool plus = take("+");
      if (!plus && !take("-"))
        break;
      MaybePart b = term();
      if (!b || !areNumbers(*a, *b, plus ? "+" : "-"))
        return std::nullopt;
      bool reals = a->kind == Real;
      a = join({*a, *b}, {plus ? (reals ? RealAdd : Add) : (reals ? RealSub : Sub)}, a->kind);
    }
    return a;
  }

  static std::optional<int64_t> constantOf(const Part &part) {
    return part.code.size() == 2 && part.code[0] == Number ? std::optional(part.code[1]) : std::nullopt;
  }

  MaybePart term() {
    MaybePart a = unary();
    while (a && error.empty()) {
      int64_t op = take("*") ? Mul : take("/") ? Div : take("%") ? Mod : -1;
      if (op < 0)
        break;
      MaybePart b = unary();
      const char *sign = op == Mul ? "*" : op == Div ? "/" : "%";
      if (!b || !areNumbers(*a, *b, sign))
        return std::nullopt;
      if (a->kind == Real && op == Mod)
        return fail("expected integers on both sides of `%`, before this");
      if (a->kind == Real) {
        a = join({*a, *b}, {op == Mul ? RealMul : RealDiv}, Real);
        continue;
      }
      if (op == Mul && !constantOf(*b))
        std::swap(*a, *b);
      std::optional<int64_t> constant = constantOf(*b);
      if (!constant || (op != Mul && *constant < 1))
        return fail(op == Mul ? "expected a number on one side of `*`, before this"
                              : "expected a positive number behind `/` or `%`, before this");
      a = join({*a}, {op, *constant}, Integer);
    }
    return a;
  }

  MaybePart unary() {
    bool negates = take("!") && !rest.starts_with("="), inverts = !negates && take("~");
    if (negates || inverts || take("-")) {
      if (++depth > deepest)
        return fail("expected at most " + Twine(deepest) + " levels of operators");
      MaybePart a = unary();
      --depth;
      if (!a)
        return a;
      if (inverts)
        return inverse(*a);
      if ((a->kind == Truth) != negates)
        return fail(negates ? "expected a condition behind `!`" : "expected an integer behind `-`");
      if (negates)
        return join({*a}, {Not}, Truth);
      if (a->kind == Real)
        return a->code.size() == 2 && a->code[0] == RealNumber ? realNumber(-llvm::bit_cast<double>(a->code[1]))
                                                               : join({*a, realNumber(-1)}, {RealMul}, Real);
      if (std::optional<int64_t> constant = constantOf(*a))
        return Part{{Number, -*constant}, Integer};
      return join({*a}, {Mul, -1}, Integer);
    }
    return primary();
  }

  /// ~a, which is -1 - a.
  MaybePart inverse(const Part &a) {
    if (a.kind != Integer)
      return fail("expected an integer behind `~`");
    if (std::optional<int64_t> constant = constantOf(a); constant && *constant != INT64_MAX) // no text says -2^63
      return Part{{Number, ~*constant}, Integer};
    return join({Part{{Number, -1}, Integer}, a}, {Sub}, Integer);
  }

  MaybePart primary() {
    if (take("(")) {
      MaybePart inside = conditional();
      if (inside)
        inside->isCompare = false;
      return !inside || take(")") ? inside : fail("expected `)`");
    }
    rest = rest.ltrim();
    llvm::StringRef digits = rest.take_while(llvm::isDigit);
    llvm::StringRef behind = rest.drop_front(digits.size());
    if (real && !digits.empty() && (behind.starts_with(".") || behind.starts_with_insensitive("e")))
      return decimal();
    if (!digits.empty()) {
      int64_t number = 0;
      if (digits.getAsInteger(10, number))
        return fail("expected a number below 2^63");
      rest = rest.drop_front(digits.size());
      return Part{{Number, number}, Integer};
    }
    llvm::StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      return fail("expected a number, a name or `(`");
    rest = rest.drop_front(name.size());
    if (take("["))
      return load(name);
    bool ofReals = real && (name == "exp" || name == "log" || name == "sqrt" || name == "tanh");
    if (name == "min" || name == "max" || name == "abs" || ofReals)
      return function(name);
    if (real && name == "s")
      return Part{{OwnScore}, Real};
    for (auto [variable, op] : variables)
      if (name == variable)
        return Part{{op}, Integer};
    rest = llvm::StringRef(name.data(), text.end() - name.data());
    return fail("expected " + Twine(real ? "`s`, " : "") +
                "`q`, `k`, `b`, `h`, `len_q`, `len_k`, a function or an array with its position");
  }

  /// A number with a point, an exponent or both.
  MaybePart decimal() {
    llvm::StringRef number = rest.take_while([](char c) { return llvm::isDigit(c) || c == '.'; }),
                    more = rest.drop_front(number.size());
    if (more.starts_with_insensitive("e")) {
      llvm::StringRef sign = more.drop_front().take_while([](char c) { return c == '+' || c == '-'; });
      llvm::StringRef exponent = more.drop_front(1 + sign.size()).take_while(llvm::isDigit);
      if (sign.size() > 1 || exponent.empty())
        return fail("expected a number, such as 1e-3");
      number = llvm::StringRef(number.data(), number.size() + 1 + sign.size() + exponent.size());
    }
    double value = 0;
    if (number.getAsDouble(value) || !(std::abs(value) <= 0x1p100))
      return fail("expected a number up to 2^100");
    rest = rest.drop_front(number.size());
    return realNumber(value);
  }

  MaybePart function(llvm::StringRef name) {
    if (!take("("))
      return fail("expected `(`");
    MaybePart a = conditional(), b = a;
    if (!a)
      return a;
    if (name == "min" || name == "max") {
      if (!take(","))
        return fail("expected `,`");
      b = conditional();
    }
    if (!b || !areNumbers(*a, *b, name))
      return std::nullopt;
    if (!take(")"))
      return fail("expected `)`");
    int64_t unary = name == "exp" ? Exp : name == "log" ? Log : name == "sqrt" ? Sqrt : name == "tanh" ? Tanh : RealAbs;
    if (unary != RealAbs || (name == "abs" && a->kind == Real))
      return join({realOf(*a)}, {unary}, Real);
    if (name == "abs")
      b = join({*a}, {Mul, -1}, Integer);
    bool reals = a->kind == Real;
    return join({*a, *b}, {name == "min" ? (reals ? RealMin : Min) : (reals ? RealMax : Max)}, a->kind);
  }

  /// Which of the names it is; it has one kind of position.
  std::optional<unsigned> numberOf(llvm::StringRef name, llvm::function_ref<int64_t(unsigned)> pack) {
    auto *known = llvm::find(result.names, name);
    unsigned number = known - result.names.begin();
    if (known == result.names.end()) {
      result.names.push_back(name.str());
      arrays.push_back(pack(number));
    }
    if (arrays[number] == pack(number))
      return number;
    fail("expected entries of `" + name + "` at one kind of position, before this");
    return std::nullopt;
  }

  /// The same of a score's: axes in the order of a bias.
  MaybePart realLoad(llvm::StringRef name) {
    unsigned axes = 0;
    do {
      rest = rest.ltrim();
      size_t axis = rest.empty() ? llvm::StringRef::npos : RealArray::letters.find(rest.front());
      if (axis == llvm::StringRef::npos || axes >> axis)
        return fail("expected positions of `" + name + "` as some of `b, h, q, k`, in this order");
      axes |= 1u << axis;
      rest = rest.drop_front();
    } while (take(","));
    if (!take("]")) {
      bool isDistance = rest.starts_with("-") || rest.starts_with("+");
      return fail("expected positions of `" + name + "` as some of `b, h, q, k`, in this order" +
                  (isDistance ? " (#attn.relative_bias reads an array by the distance of q and k)," : ""));
    }
    auto pack = [&](unsigned number) { return RealArray{number, axes}.pack(); };
    std::optional<unsigned> number = numberOf(name, pack);
    return number ? MaybePart(Part{{RealLoad, pack(*number)}, Real}) : std::nullopt;
  }

  /// Only its own row's, key's, sequence's or head's entry: nothing else is sure to be there.
  MaybePart load(llvm::StringRef name) {
    if (real)
      return realLoad(name);
    OperandHeads heads = OperandHeads::shared;
    auto word = [&] {
      rest = rest.ltrim();
      llvm::StringRef word = rest.take_while(llvm::isAlnum);
      rest = rest.drop_front(word.size());
      return word;
    };
    llvm::StringRef position = word();
    bool ofHeads = position == "h" || position == "g", alone = ofHeads && !take(",");
    if (ofHeads)
      heads = position == "h" ? OperandHeads::per_head : OperandHeads::per_kv_head;
    if (ofHeads && !alone)
      position = word();
    std::optional<OperandShape> shape;
    if (alone)
      shape = OperandShape::PerHead;
    else if (position == "q")
      shape = OperandShape::PerQuery;
    else if (position == "k")
      shape = OperandShape::PerKey;
    else if (position == "b" && heads == OperandHeads::shared)
      shape = OperandShape::PerSequence;
    if (!shape || !take("]"))
      return fail("expected `" + name +
                  "[q]`, `[k]`, `[b]` or `[h]`, or for each head `[h, q]` (`g`: kv head), before this");
    auto pack = [&](unsigned number) { return Array{number, *shape, heads}.pack(); };
    std::optional<unsigned> number = numberOf(name, pack);
    return number ? MaybePart(Part{{Load, pack(*number)}, Integer}) : std::nullopt;
  }

  static constexpr std::pair<const char *, int64_t> variables[] = {{"q", Q},    {"k", K},        {"b", Batch},
                                                                   {"h", Head}, {"len_q", LenQ}, {"len_k", LenK}};

  bool real;
  llvm::StringRef text, rest;
  std::string error;
  int depth = 0;
  Parsed result;
  llvm::SmallVector<int64_t> arrays; ///< by name
};
} // namespace

llvm::Expected<Parsed> expression::parse(llvm::StringRef text) { return Parser(text, /*real=*/false).parse(); }
llvm::Expected<Parsed> expression::parseScore(llvm::StringRef text) { return Parser(text, /*real=*/true).parse(); }
