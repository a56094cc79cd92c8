// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Analyses of masks as IR, evaluated on the run-time arrays of one sequence.
//
#ifndef ATTN_TEST_LIB_EMITTEDMASK_H
#define ATTN_TEST_LIB_EMITTEDMASK_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include <random>

namespace attn::test {

using namespace mlir;

constexpr int64_t heads = 12; ///< masks of 2, 3, 4 or 6 groups divide it

/// Run-time arrays of one sequence and head, small enough to hit everything; of one name, one.
struct Arrays {
  std::vector<std::vector<int64_t>> data;
  SmallVector<MaskOperand> operands;
  Arrays(MaskInterface mask, std::mt19937 &rng, int64_t lenQ, int64_t lenK, int64_t extent)
      : operands(mask.operands()) {
    for (const MaskOperand &operand : operands) {
      auto &array = data.emplace_back(extent);
      for (int64_t &x : array)
        x = int64_t(rng() % 4) - (rng() % 8 == 0);
      if (operand.lists) // a bit for each block of a row, by its number
        for (int64_t &x : array)
          x = rng();
      array = data[first(operand)];
    }
    for (auto [operand, array] : llvm::zip(operands, data))
      if (!operand.madeOf.empty()) {
        const auto *parents = llvm::find_if(operands, [&](const MaskOperand &o) { return o.name == operand.madeOf; });
        array = madeOf(data[parents - operands.begin()], StringRef(operand.name).rsplit('_').second, lenQ, lenK);
      }
  }
  /// `node`, `first` or `end` of a tree, as `metadata.number_tree` says what they are.
  static std::vector<int64_t> madeOf(ArrayRef<int64_t> parents, StringRef what, int64_t lenQ, int64_t lenK) {
    std::vector<int64_t> first(parents.size(), -1), end(parents.size());
    int64_t next = 0;
    std::function<void(int64_t)> visit = [&](int64_t key) {
      first[key] = next++;
      for (int64_t child = key + 1; child < int64_t(parents.size()); ++child)
        if (parents[child] == key)
          visit(child);
      end[key] = next;
    };
    for (int64_t key = 0; key < int64_t(parents.size()); ++key)
      if (parents[key] < 0 || parents[key] >= key)
        visit(key);
    if (what != "node")
      return what == "first" ? first : end;
    std::vector<int64_t> node(parents.size(), -1);
    for (int64_t q = std::max<int64_t>(lenQ - lenK, 0); q < lenQ; ++q)
      node[q] = first[q + lenK - lenQ];
    return node;
  }
  size_t first(const MaskOperand &operand) const { return llvm::find(operands, operand) - operands.begin(); }
  int64_t at(unsigned operand, int64_t position) const { return data[operand].at(position); }

  bool listed(unsigned operand, int64_t row, int64_t column) const { return at(operand, row) >> column & 1; }
  bool listedIn(unsigned operand, ArrayRef<int64_t> at, bool all) const {
    for (int64_t row = at[0]; row < at[1]; ++row)
      for (int64_t column = at[2]; column < at[3]; ++column)
        if (listed(operand, row, column) != all)
          return !all;
    return all;
  }

  /// Of entries at [lo, hi): least, largest, and whether none is hidden.
  std::array<int64_t, 3> rangeOf(unsigned operand, int64_t lo, int64_t hi) const {
    std::array<int64_t, 3> range = {INT32_MAX, INT32_MIN, 1};
    for (int64_t i = lo; i < hi; ++i) {
      if (at(operand, i) == operands[operand].hidden)
        range[2] = 0;
      else
        range = {std::min(range[0], at(operand, i)), std::max(range[1], at(operand, i)), range[2]};
    }
    return range;
  }
};

/// An analysis as IR over (lenQ, lenK, x, y, head), of tiles and two more: emitted once, evaluated often.
class Emitted {
public:
  Emitted(MLIRContext *context) : builder(context), loc(builder.getUnknownLoc()), math(builder, loc) {
    Type i32 = builder.getI32Type();
    block.addArguments(SmallVector<Type>(7, i32), SmallVector<Location>(7, loc));
    builder.setInsertionPointToEnd(&block);
  }
  Index arg(unsigned i) { return Index::position(Value(block.getArgument(i))); }

  MaskScope scope() {
    MaskScope scope;
    scope.lenQ = arg(0);
    scope.lenK = arg(1);
    scope.head = arg(4);
    scope.heads = heads;
    scope.load = [this](unsigned operand, Index position) {
      // A load is an op of its own here, evaluated by its operand number.
      OperationState state(loc, "test.load");
      state.addOperands(math.value(position));
      state.addTypes(builder.getI32Type());
      state.addAttribute("operand", builder.getI64IntegerAttr(operand));
      return Index(builder.create(state)->getResult(0));
    };
    // What a map says of blocks (a pair of them, some, all), likewise.
    auto listed = [this](const char *name, unsigned operand, ArrayRef<Index> at) {
      OperationState state(loc, name);
      for (Index i : at)
        state.addOperands(math.value(i));
      state.addTypes(builder.getI1Type());
      state.addAttribute("operand", builder.getI64IntegerAttr(operand));
      return Cond::of(Value(builder.create(state)->getResult(0)));
    };
    scope.listed = [listed](unsigned operand, Index row, Index column) {
      return listed("test.listed", operand, {row, column});
    };
    scope.listedIn = [listed](unsigned operand, Interval rows, Interval columns) {
      Index at[] = {rows.lo, rows.hi, columns.lo, columns.hi};
      return TileTruth{listed("test.any_listed", operand, at), listed("test.all_listed", operand, at)};
    };
    scope.extremes = [this](unsigned operand, Interval positions) -> std::optional<EntryRange> {
      OperationState state(loc, "test.range");
      state.addOperands({math.value(positions.lo), math.value(positions.hi)});
      state.addTypes({builder.getI32Type(), builder.getI32Type(), builder.getI1Type()});
      state.addAttribute("operand", builder.getI64IntegerAttr(operand));
      Operation *range = builder.create(state);
      return EntryRange{range->getResult(0), range->getResult(1), Cond::of(Value(range->getResult(2)))};
    };
    return scope;
  }

  void evaluate(ArrayRef<int64_t> args, const Arrays &arrays) {
    for (auto [arg, x] : llvm::zip(block.getArguments(), args))
      values[arg] = x;
    for (Operation &op : block) {
      auto in = [&](unsigned i) { return values.at(op.getOperand(i)); };
      if (op.getName().getStringRef() == "test.range") {
        auto range = arrays.rangeOf(op.getAttrOfType<IntegerAttr>("operand").getInt(), in(0), in(1));
        for (auto [result, value] : llvm::zip(op.getResults(), range))
          values[result] = value;
        continue;
      }
      values[op.getResult(0)] =
          llvm::TypeSwitch<Operation *, int64_t>(&op)
              .Case([&](arith::ConstantIntOp c) { return c.getType().isInteger(1) ? c.value() & 1 : c.value(); })
              .Case<arith::AddIOp>([&](auto) { return in(0) + in(1); })
              .Case<arith::SubIOp>([&](auto) { return in(0) - in(1); })
              .Case<arith::MulIOp>([&](auto) { return in(0) * in(1); })
              .Case<arith::ExtSIOp, arith::TruncIOp>([&](auto) { return in(0); })
              .Case<arith::DivUIOp>([&](auto) { return in(0) / in(1); })
              .Case<arith::RemUIOp>([&](auto) { return in(0) % in(1); })
              .Case<arith::MinSIOp>([&](auto) { return std::min(in(0), in(1)); })
              .Case<arith::MaxSIOp>([&](auto) { return std::max(in(0), in(1)); })
              .Case<arith::AndIOp>([&](auto) { return in(0) & in(1); })
              .Case<arith::OrIOp>([&](auto) { return in(0) | in(1); })
              .Case<arith::XOrIOp>([&](auto) { return in(0) ^ in(1); })
              .Case<arith::SelectOp>([&](auto) { return in(0) ? in(1) : in(2); })
              .Case([&](arith::CmpIOp cmp) {
                int64_t a = in(0), b = in(1);
                switch (cmp.getPredicate()) {
                case arith::CmpIPredicate::slt:
                  return int64_t(a < b);
                case arith::CmpIPredicate::sle:
                  return int64_t(a <= b);
                case arith::CmpIPredicate::eq:
                  return int64_t(a == b);
                default:
                  llvm_unreachable("predicate not emitted by IndexMath");
                }
              })
              .Default([&](Operation *load) {
                int64_t operand = load->getAttrOfType<IntegerAttr>("operand").getInt();
                StringRef name = load->getName().getStringRef();
                if (name == "test.listed")
                  return int64_t(arrays.listed(operand, in(0), in(1)));
                if (name.ends_with("_listed"))
                  return int64_t(arrays.listedIn(operand, {in(0), in(1), in(2), in(3)}, name == "test.all_listed"));
                // A position outside its array would be a wild read on a device.
                return arrays.at(operand, in(0));
              });
      bool wide = op.getResult(0).getType().isInteger(64);
      overflows |= !wide && values[op.getResult(0)] != int32_t(values[op.getResult(0)]);
    }
  }
  bool overflows = false; ///< has any value of 32 bits since not fitted these?
  int64_t of(Index i) { return i.isConstant() ? i.getNumber() : values.at(i.getValue()); }
  bool of(Cond c) { return c.isConstant() ? c.getNumber() : values.at(c.getValue()); }

  OpBuilder builder;
  Location loc;
  IndexMath math;

private:
  Block block;
  llvm::DenseMap<Value, int64_t> values;
};

} // namespace attn::test

#endif // ATTN_TEST_LIB_EMITTEDMASK_H
