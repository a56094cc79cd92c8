// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From text to instructions and back. Operators bind as in C: `? :`, `||`, `&&`, compares,
// `+ -`, `* / %`, then `! -`.
//
#include "Expression.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;
using namespace attn::expression;
using llvm::Twine;

namespace {
constexpr size_t longest = 512; // numbers of code
constexpr int deepest = 64;

class Parser {
public:
  Parser(llvm::StringRef text) : text(text), rest(text) {}

  llvm::Expected<Parsed> parse() {
    std::optional<Part> whole = conditional();
    if (whole && !take(""))
      fail("expected an operator or the end");
    if (whole && error.empty() && !whole->isTruth)
      fail("expected a condition, got: an integer");
    if (!error.empty())
      return llvm::createStringError(error);
    result.code.assign(whole->code.begin(), whole->code.end());
    return std::move(result);
  }

private:
  struct Part {
    llvm::SmallVector<int64_t> code;
    bool isTruth = false;
  };
  using MaybePart = std::optional<Part>;

  MaybePart fail(const Twine &what) {
    rest = rest.ltrim();
    if (error.empty())
      error = (what + " at `" + rest.take_front(12) + "` (character " + Twine(text.size() - rest.size()) + ")").str();
    return std::nullopt;
  }

  /// The token, if it is next; "" is the end.
  bool take(llvm::StringRef token) {
    rest = rest.ltrim();
    if (token.empty())
      return rest.empty();
    return rest.consume_front(token);
  }

  static Part join(llvm::ArrayRef<Part> operands, llvm::ArrayRef<int64_t> with, bool isTruth) {
    Part part;
    for (const Part &operand : operands)
      part.code.append(operand.code);
    part.code.append(with.begin(), with.end());
    part.isTruth = isTruth;
    return part;
  }

  /// Both of the given kind.
  bool are(bool truth, const Part &a, const Part &b, llvm::StringRef of) {
    if (a.isTruth != truth || b.isTruth != truth)
      fail("expected two " + Twine(truth ? "conditions" : "integers") + " of `" + of + "`, before this");
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
    if (depth > deepest)
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
    if (!no || !are(yes->isTruth, *yes, *no, "? :"))
      return std::nullopt;
    if (!condition->isTruth)
      return fail("expected a condition before `?`");
    if (yes->isTruth)
      return join({join({*condition, *yes}, {And}, true), join({*condition}, {Not}, true), *no}, {And, Or}, true);
    return join({*condition, *yes, *no}, {Select}, false);
  }

  MaybePart either() {
    MaybePart a = both();
    while (a && take("||")) {
      MaybePart b = both();
      if (!b || !are(true, *a, *b, "||"))
        return std::nullopt;
      a = join({*a, *b}, {Or}, true);
    }
    return a;
  }

  MaybePart both() {
    MaybePart a = compare();
    while (a && take("&&")) {
      MaybePart b = compare();
      if (!b || !are(true, *a, *b, "&&"))
        return std::nullopt;
      a = join({*a, *b}, {And}, true);
    }
    return a;
  }

  MaybePart compare() {
    MaybePart a = sum();
    if (!a)
      return a;
    for (llvm::StringRef op : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!take(op))
        continue;
      MaybePart b = sum();
      if (!b || !are(false, *a, *b, op))
        return std::nullopt;
      if (op[0] == '>')
        std::swap(*a, *b);
      int64_t code = op == "==" || op == "!=" ? Equal : op.size() == 2 ? LessEqual : Less;
      Part result = join({*a, *b}, {code}, true);
      return op == "!=" ? join({result}, {Not}, true) : result;
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
      if (!b || !are(false, *a, *b, plus ? "+" : "-"))
        return std::nullopt;
      a = join({*a, *b}, {plus ? Add : Sub}, false);
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
      if (!b || !are(false, *a, *b, op == Mul ? "*" : op == Div ? "/" : "%"))
        return std::nullopt;
      if (op == Mul && !constantOf(*b))
        std::swap(*a, *b);
      std::optional<int64_t> constant = constantOf(*b);
      constexpr int64_t limit = int64_t(1) << 30;
      if (!constant || *constant > limit || *constant < (op == Mul ? -limit : 1))
        return fail(op == Mul ? "expected a number within [-2^30, 2^30] on one side of `*`, before this"
                              : "expected a number within [1, 2^30] behind `/` or `%`, before this");
      a = join({*a}, {op, *constant}, false);
    }
    return a;
  }

  MaybePart unary() {
    bool negates = take("!") && !rest.starts_with("=");
    if (negates || take("-")) {
      if (++depth > deepest)
        return fail("expected at most " + Twine(deepest) + " levels of operators");
      MaybePart a = unary();
      --depth;
      if (!a)
        return a;
      if (a->isTruth != negates)
        return fail(negates ? "expected a condition behind `!`" : "expected an integer behind `-`");
      if (negates)
        return join({*a}, {Not}, true);
      if (std::optional<int64_t> constant = constantOf(*a))
        return Part{{Number, -*constant}, false};
      return join({*a}, {Mul, -1}, false);
    }
    return primary();
  }

  MaybePart primary() {
    if (take("(")) {
      MaybePart inside = conditional();
      return !inside || take(")") ? inside : fail("expected `)`");
    }
    rest = rest.ltrim();
    llvm::StringRef digits = rest.take_while(llvm::isDigit);
    if (!digits.empty()) {
      int64_t number = 0;
      if (digits.getAsInteger(10, number) || number > int64_t(1) << 31)
        return fail("expected a number up to 2^31");
      rest = rest.drop_front(digits.size());
      return Part{{Number, number}, false};
    }
    llvm::StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      return fail("expected a number, a name or `(`");
    rest = rest.drop_front(name.size());
    if (take("["))
      return load(name);
    if (name == "min" || name == "max" || name == "abs")
      return function(name);
    for (auto [variable, op] : variables)
      if (name == variable)
        return Part{{op}, false};
    rest = llvm::StringRef(name.data(), text.end() - name.data());
    return fail("expected `q`, `k`, `b`, `h`, `len_q`, `len_k`, a function or an array with its position");
  }

  MaybePart function(llvm::StringRef name) {
    if (!take("("))
      return fail("expected `(`");
    MaybePart a = conditional(), b = a;
    if (!a)
      return a;
    if (name != "abs") {
      if (!take(","))
        return fail("expected `,`");
      b = conditional();
    }
    if (!b || !are(false, *a, *b, name))
      return std::nullopt;
    if (!take(")"))
      return fail("expected `)`");
    if (name == "abs")
      b = join({*a}, {Mul, -1}, false);
    return join({*a, *b}, {name == "min" ? Min : Max}, false);
  }

  /// Only its own row's, key's or sequence's entry: nothing else is sure to be there.
  MaybePart load(llvm::StringRef name) {
    OperandHeads heads = OperandHeads::shared;
    auto word = [&] {
      rest = rest.ltrim();
      llvm::StringRef word = rest.take_while(llvm::isAlnum);
      rest = rest.drop_front(word.size());
      return word;
    };
    llvm::StringRef position = word();
    if ((position == "h" || position == "g") && take(",")) {
      heads = position == "h" ? OperandHeads::per_head : OperandHeads::per_kv_head;
      position = word();
    }
    std::optional<OperandShape> shape;
    if (position == "q")
      shape = OperandShape::PerQuery;
    else if (position == "k")
      shape = OperandShape::PerKey;
    else if (position == "b" && heads == OperandHeads::shared)
      shape = OperandShape::PerSequence;
    if (!shape || !take("]"))
      return fail("expected `" + name + "[q]`, `[k]` or `[b]`, or for each head `[h, q]` (`g`: kv head), before this");
    auto *known = llvm::find(result.names, name);
    Array array{unsigned(known - result.names.begin()), *shape, heads};
    if (known == result.names.end()) {
      result.names.push_back(name.str());
      arrays.push_back(array.pack());
    }
    if (arrays[array.number] != array.pack())
      return fail("expected entries of `" + name + "` at one kind of position, before this");
    return Part{{Load, array.pack()}, false};
  }

  static constexpr std::pair<const char *, int64_t> variables[] = {{"q", Q},    {"k", K},        {"b", Batch},
                                                                   {"h", Head}, {"len_q", LenQ}, {"len_k", LenK}};

  llvm::StringRef text, rest;
  std::string error;
  int depth = 0;
  Parsed result;
  llvm::SmallVector<int64_t> arrays; ///< by name
};
} // namespace

llvm::Expected<Parsed> expression::parse(llvm::StringRef text) { return Parser(text).parse(); }

//===--------------------------------------------------------------------===//
// And back
//===--------------------------------------------------------------------===//

namespace {
struct Text {
  std::string text;
  int binds; ///< how tightly its outermost operator does
};
} // namespace

static std::string loadText(Array array, llvm::ArrayRef<llvm::StringRef> names) {
  const char *positions[] = {"b", "q", "k"}, *heads[] = {"", "g, ", "h, "};
  return (names[array.number] + "[" + heads[int(array.heads)] + positions[int(array.shape)] + "]").str();
}

std::string expression::print(Code code, llvm::ArrayRef<llvm::StringRef> names) {
  llvm::SmallVector<Text> stack;
  enum { Choice, Either, Both, Compare, Sum, Term, Unary };
  auto within = [](const Text &part, int binds) { return part.binds < binds ? "(" + part.text + ")" : part.text; };
  auto pop = [&] { return stack.pop_back_val(); };
  auto binary = [&](const char *op, int binds, int left, int right) {
    Text b = pop(), a = pop();
    stack.push_back({within(a, left) + " " + op + " " + within(b, right), binds});
  };
  auto call = [&](const char *name) {
    Text b = pop(), a = pop();
    stack.push_back({std::string(name) + "(" + a.text + ", " + b.text + ")", Unary});
  };
  for (size_t i = 0; i < code.size(); ++i) {
    int64_t op = code[i], constant = hasConstant(op) ? code[++i] : 0;
    switch (Op(op)) {
    case Number:
      stack.push_back({std::to_string(constant), Unary});
      break;
    case Q:
      stack.push_back({"q", Unary});
      break;
    case K:
      stack.push_back({"k", Unary});
      break;
    case Batch:
      stack.push_back({"b", Unary});
      break;
    case Head:
      stack.push_back({"h", Unary});
      break;
    case LenQ:
      stack.push_back({"len_q", Unary});
      break;
    case LenK:
      stack.push_back({"len_k", Unary});
      break;
    case Load:
      stack.push_back({loadText(Array::unpack(constant), names), Unary});
      break;
    case Add:
      binary("+", Sum, Sum, Term);
      break;
    case Sub:
      binary("-", Sum, Sum, Term);
      break;
    case Min:
      call("min");
      break;
    case Max:
      call("max");
      break;
    case Mul:
    case Div:
    case Mod: {
      Text a = pop();
      const char *sign = op == Mul ? " * " : op == Div ? " / " : " % ";
      stack.push_back({within(a, Term) + sign + std::to_string(constant), Term});
      break;
    }
    case Less:
      binary("<", Compare, Sum, Sum);
      break;
    case LessEqual:
      binary("<=", Compare, Sum, Sum);
      break;
    case Equal:
      binary("==", Compare, Sum, Sum);
      break;
    case And:
      binary("&&", Both, Both, Compare);
      break;
    case Or:
      binary("||", Either, Either, Both);
      break;
    case Not: {
      Text a = pop();
      stack.push_back({"!" + within(a, Unary), Unary});
      break;
    }
    case Select: {
      Text no = pop(), yes = pop(), condition = pop();
      stack.push_back({within(condition, Either) + " ? " + yes.text + " : " + no.text, Choice});
      break;
    }
    }
  }
  return stack.front().text;
}
