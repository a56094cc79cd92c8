// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From instructions back to text.
//
#include "Expression.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <charconv>

using namespace attn;
using namespace attn::expression;

namespace {
struct Text {
  std::string text;
  int binds; ///< how tightly its outermost operator does
};
} // namespace

static std::string loadText(RealArray array, llvm::ArrayRef<llvm::StringRef> names) {
  std::string axes;
  for (auto [i, axis] : llvm::enumerate(RealArray::letters))
    if (array.axes >> i & 1)
      axes += (axes.empty() ? "" : ", ") + std::string(1, axis);
  return (names[array.number] + "[" + axes + "]").str();
}

/// With a point, so that it is read as a real number again, and as the same.
static std::string realText(int64_t bits) {
  char text[40];
  std::string number(text, std::to_chars(text, std::end(text), llvm::bit_cast<double>(bits)).ptr);
  if (number.find('.') == std::string::npos)
    number.insert(std::min(number.find('e'), number.size()), ".0");
  return number;
}

static std::string loadText(Array array, llvm::ArrayRef<llvm::StringRef> names) {
  const char *positions[] = {"b", "q", "k", ""}, *heads[] = {"", "g", "h"};
  llvm::StringRef position = positions[int(array.shape)], head = heads[int(array.heads)];
  return (names[array.number] + "[" + head + (head.empty() || position.empty() ? "" : ", ") + position + "]").str();
}

std::string expression::print(Code code, llvm::ArrayRef<llvm::StringRef> names) {
  llvm::SmallVector<Text> stack;
  enum { Choice, Either, Both, AnyBits, OtherBits, AllBits, Compare, Sum, Term, Unary };
  auto within = [](const Text &part, int binds) { return part.binds < binds ? "(" + part.text + ")" : part.text; };
  auto pop = [&] { return stack.pop_back_val(); };
  auto binary = [&](const char *op, int binds, int left, int right) {
    Text b = pop(), a = pop();
    stack.push_back({within(a, left) + " " + op + " " + within(b, right), binds});
  };
  auto callOne = [&](const char *name) { stack.push_back({std::string(name) + "(" + pop().text + ")", Unary}); };
  auto call = [&](const char *name) {
    Text b = pop(), a = pop();
    stack.push_back({std::string(name) + "(" + a.text + ", " + b.text + ")", Unary});
  };
  for (size_t i = 0; i < code.size(); ++i) {
    int64_t op = code[i], constant = hasConstant(op) ? code[++i] : 0;
    switch (Opcode(op)) {
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
    case RealNumber:
      stack.push_back({realText(constant), Unary});
      break;
    case OwnScore:
      stack.push_back({"s", Unary});
      break;
    case RealLoad:
      stack.push_back({loadText(RealArray::unpack(constant), names), Unary});
      break;
    case ToReal: // as it was written
      break;
    case RealAbs:
      callOne("abs");
      break;
    case Exp:
      callOne("exp");
      break;
    case Log:
      callOne("log");
      break;
    case Sqrt:
      callOne("sqrt");
      break;
    case Tanh:
      callOne("tanh");
      break;
    case RealMul:
      binary("*", Term, Term, Unary);
      break;
    case RealDiv:
      binary("/", Term, Term, Unary);
      break;
    case RealAdd:
    case Add:
      binary("+", Sum, Sum, Term);
      break;
    case RealSub:
    case Sub:
      binary("-", Sum, Sum, Term);
      break;
    case RealMin:
    case Min:
      call("min");
      break;
    case RealMax:
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
    case RealLess:
    case Less:
      binary("<", Compare, Sum, Sum);
      break;
    case RealLessEqual:
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
    case BitAnd:
      binary("&", AllBits, AllBits, Sum);
      break;
    case BitXor:
      binary("^", OtherBits, OtherBits, AllBits);
      break;
    case BitOr:
      binary("|", AnyBits, AnyBits, OtherBits);
      break;
    case Not: {
      Text a = pop();
      stack.push_back({"!" + within(a, Unary), Unary});
      break;
    }
    case RealSelect:
    case Select: {
      Text no = pop(), yes = pop(), condition = pop();
      stack.push_back({within(condition, Either) + " ? " + yes.text + " : " + no.text, Choice});
      break;
    }
    }
  }
  return stack.front().text;
}

void attn::expression::printAttr(mlir::AsmPrinter &printer, Code code, llvm::ArrayRef<mlir::StringAttr> names) {
  auto texts = llvm::map_to_vector(names, [](mlir::StringAttr name) { return name.getValue(); });
  printer << "<\"" << print(code, texts) << "\">";
}
