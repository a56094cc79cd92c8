// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars as C++ expressions. A value that is used once and has no name of its own is printed where it is used; others
// get a line of their own.
//
#include "Printer.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

std::string Printer::typeOf(Type type) {
  if (auto ptr = dyn_cast<PtrType>(type))
    return typeOf(ptr.getElement()) + " *";
  if (isa<TensorMapType>(type))
    return "const __grid_constant__ attn::TensorMap";
  if (isa<QueueType>(type))
    return "unsigned *";
  if (isa<DropoutStateType>(type))
    return "auto";
  if (auto pairs = dyn_cast<PairsType>(type))
    return (pairs.getNumber().isInteger(32) ? "attn::Pairs<" : "attn::PairStride<") + std::to_string(pairs.getHeads()) +
           ">";
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(32))
    return "int";
  if (type.isInteger(64))
    return "long long";
  if (type.isF32())
    return "float";
  if (type.isBF16())
    return "attn::bf16";
  if (type.isF16())
    return "attn::fp16";
  return "<<UNSUPPORTED type>>";
}

/// Do the lanes of a warp compute the value together?
static bool exchanges(Operation *op) {
  auto load = dyn_cast<LoadOp>(op);
  auto listed = dyn_cast<metadata::IsListedOp>(op);
  return (load && load.getUniform()) || (listed && listed.getColumns());
}

bool Printer::isSpelledOnce(Value value, Block *block) {
  if (!value.hasOneUse())
    return false;
  Operation *user = *value.user_begin();
  auto select = dyn_cast<arith::SelectOp>(user);
  if (user->getBlock() != block || (select && value != select.getCondition()))
    return false;
  return user->getNumResults() != 1 || !isInlined(user) || isSpelledOnce(user->getResult(0), block);
}

StringRef Printer::nameOfIndex(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](IndexOp index) {
        switch (index.getKind()) {
        case IndexKind::block:
          return "block";
        case IndexKind::global_warp:
          return "global_warp";
        case IndexKind::warpgroup:
          return "warpgroup";
        default:
          return "";
        }
      })
      .Default([](Operation *) { return ""; });
}

bool Printer::isInlined(Operation *op) {
  if (isa<arith::ConstantOp, arith::ExtSIOp>(op))
    return true; // a cast is free and printed where it matters
  if (op->getNumResults() != 1 || !isMemoryEffectFree(op) || !nameOfIndex(op).empty())
    return false;
  Value value = op->getResult(0);
  // A value that a loop uses but does not define gets a line before the loop.
  if (!value.hasOneUse() || !Names::wishOf(value).empty() || op->getBlock() != (*value.user_begin())->getBlock())
    return false;
  // Warp-wide ops must not be an arm of a conditional: ptxas 13.0 turns the condition into a predicate and loses it
  // between two shuffles (seen on an H200: a loop used the previous tile's number for the full tiles of its list).
  return !exchanges(op) || isSpelledOnce(value, op->getBlock());
}

std::string Printer::expr(Value value, Precedence context) {
  Operation *op = value.getDefiningOp();
  if (names.has(value) || !op)
    return names.of(value).str();
  auto [text, precedence] = spell(op);
  return precedence < context ? "(" + text + ")" : text;
}

std::pair<std::string, Precedence> Printer::spell(Operation *op) {
  using P = Precedence;
  using Spelled = std::pair<std::string, P>;
  // The right operand binds tighter: these operators associate to the left.
  auto binary = [&](const char *symbol, P p) {
    return Spelled(expr(op->getOperand(0), p) + symbol + expr(op->getOperand(1), P(int(p) + 1)), p);
  };
  auto call = [&](const char *function) {
    std::string arguments;
    for (Value operand : op->getOperands()) {
      bool isWide = operand.getType().isInteger(64) && operand.getDefiningOp<arith::ConstantOp>();
      arguments +=
          (arguments.empty() ? "" : ", ") + expr(operand) + (isWide ? "ll" : ""); // templates deduce a single type
    }
    return Spelled(std::string(function) + "(" + arguments + ")", P::Primary);
  };
  return llvm::TypeSwitch<Operation *, Spelled>(op)
      .Case([&](arith::ConstantOp c) {
        if (auto number = dyn_cast<FloatAttr>(c.getValue()); number && number.getType().isF32())
          return Spelled(literal(number.getValueAsDouble()), number.getValue().isNegative() ? P::Unary : P::Primary);
        auto value = dyn_cast<IntegerAttr>(c.getValue());
        if (!value) {
          complain(op);
          return Spelled("<<UNSUPPORTED constant>>", P::Primary);
        }
        if (value.getType().isInteger(1))
          return Spelled(value.getValue().isZero() ? "false" : "true", P::Primary);
        if (value.getType().isInteger(32) && value.getValue().isMinSignedValue())
          return Spelled("-2147483647 - 1", P::Additive); // C++ reads -2147483648 as a long
        return Spelled(std::to_string(value.getInt()), value.getInt() < 0 ? P::Unary : P::Primary);
      })
      .Case<arith::AddIOp, arith::AddFOp>([&](auto) { return binary(" + ", P::Additive); })
      .Case<arith::SubIOp, arith::SubFOp>([&](auto) { return binary(" - ", P::Additive); })
      .Case<arith::MulIOp, arith::MulFOp>([&](auto) { return binary(" * ", P::Multiplicative); })
      .Case([&](arith::NegFOp n) { return Spelled("-" + expr(n.getOperand(), P::Primary), P::Unary); })
      .Case<math::FmaOp>([&](auto) { return call("attn::fma"); })
      .Case<math::AbsFOp>([&](auto) { return call("attn::abs"); })
      .Case<math::TanhOp>([&](auto) { return call("attn::tanh"); })
      .Case<math::Exp2Op>([&](auto) { return call("attn::exp2"); })
      .Case<math::Log2Op>([&](auto) { return call("attn::log2"); })
      .Case<math::SqrtOp>([&](auto) { return call("attn::sqrt"); })
      .Case<arith::DivFOp>([&](auto) { return binary(" / ", P::Multiplicative); })
      .Case([&](arith::CmpFOp cmp) {
        if (cmp.getPredicate() == arith::CmpFPredicate::OLT)
          return binary(" < ", P::Relational);
        if (cmp.getPredicate() == arith::CmpFPredicate::OLE)
          return binary(" <= ", P::Relational);
        complain(op);
        return Spelled("<<UNSUPPORTED arith.cmpf>>", P::Primary);
      })
      .Case([&](arith::SIToFPOp c) { return Spelled("(float)" + expr(c.getIn(), P::Unary), P::Unary); })
      .Case<arith::DivUIOp, arith::DivSIOp>([&](auto) { return binary(" / ", P::Multiplicative); })
      .Case<arith::RemUIOp, arith::RemSIOp>([&](auto) { return binary(" % ", P::Multiplicative); })
      .Case<arith::MinSIOp>([&](auto) { return call("attn::min"); })
      .Case<arith::MaxSIOp>([&](auto) { return call("attn::max"); })
      // Not && and ||: every operand may be evaluated, and a branch around a load costs more than the load.
      .Case<arith::AndIOp>([&](auto) { return binary(" & ", P::And); })
      .Case<arith::OrIOp>([&](auto) { return binary(" | ", P::Or); })
      .Case([&](arith::XOrIOp x) {
        if (x.getType().isInteger(1) && matchPattern(x.getRhs(), m_One()))
          return Spelled("!" + expr(x.getLhs(), P::Unary), P::Unary);
        if (x.getType().isInteger(1))
          return binary(" != ", P::Equality);
        return binary(" ^ ", P::Xor);
      })
      .Case([&](arith::CmpIOp cmp) {
        switch (cmp.getPredicate()) {
        case arith::CmpIPredicate::eq:
          return binary(" == ", P::Equality);
        case arith::CmpIPredicate::ne:
          return binary(" != ", P::Equality);
        case arith::CmpIPredicate::slt:
          return binary(" < ", P::Relational);
        case arith::CmpIPredicate::sle:
          return binary(" <= ", P::Relational);
        case arith::CmpIPredicate::sgt:
          return binary(" > ", P::Relational);
        case arith::CmpIPredicate::sge:
          return binary(" >= ", P::Relational);
        default:
          complain(op);
          return Spelled("<<UNSUPPORTED arith.cmpi>>", P::Primary);
        }
      })
      .Case([&](arith::SelectOp s) {
        return Spelled(expr(s.getCondition(), P::Or) + " ? " + expr(s.getTrueValue(), P::Or) + " : " +
                           expr(s.getFalseValue()),
                       P::Conditional);
      })
      .Case<arith::ExtSIOp, arith::ExtUIOp>(
          [&](auto e) { // a boolean becomes -1 or 1, as folds of a select between constants produce it
            bool turns = isa<arith::ExtSIOp>(op) && e.getIn().getType().isInteger(1);
            return Spelled((turns ? "-(" : "(") + typeOf(e.getType()) + ")" + expr(e.getIn(), P::Unary), P::Unary);
          })
      .Case([&](arith::TruncIOp t) {
        return Spelled("(" + typeOf(t.getType()) + ")" + expr(t.getIn(), P::Unary), P::Unary);
      })
      .Case([&](PairsOp p) {
        return Spelled(typeOf(p.getType()) + "{" + expr(p.getQuery()) + ", " + expr(p.getHead()) + "}", P::Primary);
      })
      .Case([&](IndexOp index) {
        auto call = [](const char *function, std::string parameter = "") {
          return Spelled("attn::" + std::string(function) + parameter + "()", P::Primary);
        };
        switch (index.getKind()) {
        case IndexKind::block:
          return call("block_index");
        case IndexKind::warpgroup:
          return call("warpgroup_index");
        case IndexKind::warp:
          return call("warp_index");
        case IndexKind::global_warp:
          return call("global_warp_index",
                      "<" + std::to_string(index->getParentOfType<KernelOp>().getSchedule().getWarps()) + ">");
        case IndexKind::lane_group:
          return call("lane_group_index", "<" + std::to_string(*index.getLanes()) + ">");
        }
        llvm_unreachable("all kinds are above");
      })
      .Case<DropoutStateOp>([&](auto) { return call("attn::dropout_state"); })
      .Case([&](metadata::IsListedOp l) {
        return call(l.getColumns() ? "attn::is_in_list" : l.getFirst() ? "attn::block_bit_near" : "attn::block_bit");
      })
      .Case([&](LoadOp l) {
        std::string element = expr(l.getArray(), P::Primary) + "[" + expr(l.getIndex()) + "]";
        return Spelled(l.getUniform() ? "attn::uniform(" + element + ")" : element, P::Primary);
      })
      .Case([&](AdvanceOp a) {
        return Spelled(expr(a.getBase(), P::Additive) + " + " + expr(a.getOffset(), P::Multiplicative), P::Additive);
      })
      .Default([&](Operation *) {
        complain(op);
        return Spelled("<<UNSUPPORTED " + op->getName().getStringRef().str() + ">>", P::Primary);
      });
}
