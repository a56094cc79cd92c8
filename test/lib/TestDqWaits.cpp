// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--test-dq-waits`: how long CTAs of gradients kernels wait for one another where they add to dQ in order, or after
// the first. Evaluates the index arithmetic of each CTA of the kernel itself and runs a model of the launch, in which a
// step of a loop takes one unit of time: no GPU is needed, and no time is measured.
//
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include <queue>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Evaluates integers of a kernel.
class Evaluator {
public:
  Evaluator(KernelOp kernel, llvm::StringMap<int64_t> sizes) {
    for (auto [name, arg] :
         llvm::zip(kernel.getArgNames().getAsValueRange<StringAttr>(), kernel.getBody().getArguments()))
      if (auto size = sizes.find(name); size != sizes.end())
        always[arg] = size->second;
  }

  void set(Value value, int64_t number) { values[value] = number; }
  /// Forgets everything but sizes, for another CTA or step.
  void forget() { values.clear(); }
  int64_t cta = 0;

  int64_t operator()(Value value) {
    if (auto known = always.find(value); known != always.end())
      return known->second;
    if (auto known = values.find(value); known != values.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    if (!op)
      llvm::report_fatal_error("a value that no size decides");
    auto in = [&](unsigned i) { return (*this)(op->getOperand(i)); };
    int64_t result =
        llvm::TypeSwitch<Operation *, int64_t>(op)
            .Case([&](arith::ConstantIntOp c) { return c.getType().isInteger(1) ? c.value() & 1 : c.value(); })
            .Case<arith::AddIOp>([&](auto) { return in(0) + in(1); })
            .Case<arith::SubIOp>([&](auto) { return in(0) - in(1); })
            .Case<arith::MulIOp>([&](auto) { return in(0) * in(1); })
            .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>([&](auto) { return in(0); })
            .Case<arith::DivUIOp, arith::DivSIOp>([&](auto) { return in(0) / in(1); })
            .Case<arith::RemUIOp, arith::RemSIOp>([&](auto) { return in(0) % in(1); })
            .Case<arith::MinSIOp>([&](auto) { return std::min(in(0), in(1)); })
            .Case<arith::MaxSIOp>([&](auto) { return std::max(in(0), in(1)); })
            .Case<arith::AndIOp>([&](auto) { return in(0) & in(1); })
            .Case<arith::OrIOp>([&](auto) { return in(0) | in(1); })
            .Case<arith::XOrIOp>([&](auto) { return in(0) ^ in(1); })
            .Case<arith::ShLIOp>([&](auto) { return in(0) << in(1); })
            .Case<arith::ShRSIOp, arith::ShRUIOp>([&](auto) { return in(0) >> in(1); })
            .Case<arith::SelectOp>([&](auto) { return in(0) ? in(1) : in(2); })
            .Case([&](arith::CmpIOp cmp) { return compare(cmp.getPredicate(), in(0), in(1)); })
            .Case([&](IndexOp index) { return index.getKind() == IndexKind::block ? cta : 0; })
            .Case([&](AdvanceOp advance) { return in(1); }) // the offset
            .Default([](Operation *other) -> int64_t {
              llvm::report_fatal_error("no number: " + other->getName().getStringRef());
            });
    values[value] = result;
    return result;
  }

private:
  static int64_t compare(arith::CmpIPredicate predicate, int64_t a, int64_t b) {
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return a == b;
    case arith::CmpIPredicate::ne:
      return a != b;
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::ult:
      return a < b;
    case arith::CmpIPredicate::sle:
    case arith::CmpIPredicate::ule:
      return a <= b;
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::ugt:
      return a > b;
    case arith::CmpIPredicate::sge:
    case arith::CmpIPredicate::uge:
      return a >= b;
    }
    llvm_unreachable("covered");
  }

  llvm::DenseMap<Value, int64_t> always, values;
};

struct TestDqWaits : PassWrapper<TestDqWaits, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestDqWaits)
  TestDqWaits() = default;
  TestDqWaits(const TestDqWaits &other) : PassWrapper(other) {}
  StringRef getArgument() const final { return "test-dq-waits"; }
  StringRef getDescription() const final { return "bound how long CTAs wait to add to dQ"; }

  void runOnOperation() final {
    for (KernelOp kernel : getOperation().getOps<KernelOp>()) {
      AddGlobalOp add;
      KvLoopOp loop;
      kernel.walk([&](AddGlobalOp op) { add = op; });
      kernel.walk([&](KvLoopOp op) { loop = op; });
      if (!add || !loop || !add.getSemaphore())
        continue;
      if (kernel.getPacked() || kernel.getArg("q_splits")) {
        kernel.emitError("expected dense rows and loops that are not split, whose CTAs sizes alone decide");
        return signalPassFailure();
      }
      if (failed(check(kernel, loop, add)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult check(KernelOp kernel, KvLoopOp loop, AddGlobalOp add) {
    Evaluator evaluate(
        kernel,
        {{"batch", batch}, {"seqlen_q", tokens}, {"seqlen_kv", tokens}, {"row_statistics_head", 0}, {"blocks", ctas}});
    int64_t kvTile = kernel.getSchedule().getKvTile(), tiles = llvm::divideCeil(int64_t(tokens), kvTile) * batch,
            items = tiles * kernel.getHeads();
    auto heads = loop->getParentOfType<scf::ForOp>(); // query heads of a KV head
    int64_t group = heads ? evaluate(heads.getUpperBound()) : 1;
    struct Sum {
      int64_t of = -1, time = 0, first = 0; ///< the KV tile that added last, when, and when the first one did
    };
    llvm::DenseMap<int64_t, Sum> sums;
    std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> idle; // times at which CTAs are idle
    for (int64_t i = 0; i < ctas; ++i)
      idle.push(0);
    int64_t steps = 0, longest = 0, end = 0;
    for (int64_t item = 0; item < items; ++item) {
      int64_t time = idle.top(), added = time, before = time, own = 0;
      idle.pop();
      evaluate.forget(), evaluate.cta = item;
      SmallVector<std::pair<int64_t, int64_t>> runs;
      unsigned bound = 0;
      for (Attribute segments : loop.getTests()) {
        unsigned count = cast<ArrayAttr>(segments).size();
        runs.push_back({evaluate(loop.getBounds()[bound]), evaluate(loop.getBounds()[bound + count])});
        bound += count + 1;
      }
      for (int64_t h = 0; h < group; ++h)
        for (auto [begin, behind] : runs)
          for (int64_t j = begin; j < behind; ++j, ++own) {
            evaluate.forget();
            evaluate.set(loop.getBody().getArgument(0), j);
            if (heads)
              evaluate.set(heads.getInductionVar(), h);
            int64_t tile = evaluate(add.getTile()), first = add.getFirstTile() ? evaluate(add.getFirstTile()) : 0;
            // A staging place has two slots: a step waits until the sum of the last but one is added.
            time = std::max(time, before) + 1, before = added;
            if (tile < first)
              continue; // it sees none of these rows
            Sum &sum = sums[evaluate(add.getSum())];
            if (steps + own < exact || (steps + own) % 997 == 0)
              if (failed(checkPredecessor(kernel, add, evaluate, tile, first, sum.of)))
                return failure();
            if (sum.of >= tile)
              return kernel.emitError("CTA ") << item << " adds KV tile " << tile << " after " << sum.of;
            if (sum.of >= 0)
              added = std::max(added, add.getAfterFirst() ? sum.first : sum.time);
            added = std::max(added, time);
            if (sum.of < 0)
              sum.first = added;
            sum.of = tile, sum.time = added;
          }
      steps += own, longest = std::max(longest, own);
      idle.push(std::max(time, added));
      end = std::max(end, added);
    }
    int64_t ideal = std::max<int64_t>(llvm::divideCeil(steps, int64_t(ctas)), longest);
    llvm::outs() << kernel.getSymName() << ": " << items << " work tiles, " << steps << " steps, at most " << longest
                 << " of a work tile; " << llvm::format("%.2f", double(end) / double(ideal))
                 << " times as long as without waits\n";
    if (end > 2 * ideal)
      return kernel.emitError("expected CTAs to wait at most as long as they compute, got: ")
             << end << " units of time, " << ideal << " without waits";
    return success();
  }

  /// The search for the KV tile that adds before this one finds the one that did. If none did, it takes one step, which
  /// looks at 32 tiles.
  LogicalResult checkPredecessor(KernelOp kernel, AddGlobalOp add, Evaluator &evaluate, int64_t tile, int64_t first,
                                 int64_t expected) {
    Block &region = add.getAdds().front();
    int64_t found = -1, probed = 0;
    Evaluator inner = evaluate;
    for (int64_t other = tile - 1; other >= first && found < 0; --other, ++probed) {
      Evaluator at = inner;
      at.set(region.getArgument(0), other);
      if (at(region.getTerminator()->getOperand(0)))
        found = other;
    }
    if (found != expected)
      return kernel.emitError("expected KV tile ") << expected << " to add before " << tile << ", got: " << found;
    if (found < 0 && probed > 32)
      return kernel.emitError("expected a search of one step for a tile that none precedes, got: ")
             << probed << " KV tiles before tile " << tile;
    return success();
  }

  static constexpr int64_t exact = 2000; ///< steps whose predecessor is looked for; then one of 997
  Option<int64_t> tokens{*this, "tokens", llvm::cl::desc("queries and keys of a sequence"), llvm::cl::init(65536)};
  Option<int64_t> batch{*this, "batch", llvm::cl::desc("sequences"), llvm::cl::init(1)};
  Option<int64_t> ctas{*this, "ctas", llvm::cl::desc("CTAs at a time"), llvm::cl::init(132)};
};

} // namespace

namespace attn::test {
void registerTestDqWaits() { PassRegistration<TestDqWaits>(); }
} // namespace attn::test
