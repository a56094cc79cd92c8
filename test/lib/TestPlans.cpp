// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--test-plan-tables` computes the tables of each plan that has an attribute
//
//   test.sequences = {lengths = [7, 3], slots = [8, 4], keys = [7, 3], key_slots = [8, 4]}
//
// (all but the first may be left out; `given` as with `--test-shardings`), and prints what ranks send, and how many
// pairs each step of each rank has, as JSON.
//
// `--test-plan-laws` counts, for each plan, all small shapes, and each visible pair by the mask's definition, how often
// the pair is attended to: once.
//
#include "SequencesOfTest.h"
#include "attn/Dialect/Plan/Analysis/Tables.h"
#include "mlir/Pass/Pass.h"
#include <map>

using namespace mlir;
using namespace attn;

namespace {
int64_t countPairs(MaskInterface mask, const plan::CallSequences &sequences, const plan::Shard &queries,
                   const plan::Shard &keys) {
  int64_t count = 0;
  for (const plan::Run &q : queries.runs)
    for (const plan::Run &k : keys.runs) {
      if (q.sequence != k.sequence)
        continue;
      MaskPoint p;
      p.lenQ = sequences.lengths[0][q.sequence], p.lenK = sequences.lengths[1][q.sequence];
      for (p.q = q.position; p.q < q.position + q.length; ++p.q)
        for (p.k = k.position; p.k < k.position + k.length; ++p.k)
          count += mask.keeps(p);
    }
  return count;
}

struct TestPlanTables : PassWrapper<TestPlanTables, OperationPass<plan::DefOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPlanTables)
  StringRef getArgument() const final { return "test-plan-tables"; }
  StringRef getDescription() const final { return "print what ranks send, and how many pairs each step has"; }

  void runOnOperation() final {
    plan::DefOp plan = getOperation();
    auto of = plan->getAttrOfType<DictionaryAttr>("test.sequences");
    if (!of)
      return;
    auto problem = SymbolTable::lookupNearestSymbolFrom<ProblemOp>(plan, plan.getOfAttr());
    std::vector<plan::Shard> given = test::shardsOf(of.getAs<ArrayAttr>("given"));
    auto ofName = [&](StringRef name) { return name == "mine" ? ArrayRef(given) : ArrayRef<plan::Shard>(); };
    plan::CallSequences sequences = test::callSequencesOf(of);
    sequences.given = ofName;
    plan::Tables tables;
    if (std::optional<std::string> wrong = tables.compute(plan, problem, sequences)) {
      plan.emitOpError(*wrong);
      return signalPassFailure();
    }
    std::map<std::pair<int64_t, int64_t>, int64_t> sent;
    std::vector<std::vector<int64_t>> pairs(tables.ranks());
    plan.walk([&](Operation *step) {
      for (int64_t rank = 0; rank < tables.ranks(); ++rank) {
        if (auto exchange = dyn_cast<plan::ExchangeOp>(step)) {
          if (int64_t count = tables.sent(exchange, rank))
            sent[{rank, tables.receiver(exchange, rank)}] += count;
        } else if (isa<plan::AttendOp, plan::GradsOp>(step)) {
          int64_t count = 0;
          bool attends = false;
          for (Value queries : plan::queriesOf(step)) {
            const plan::Held &of = tables.held(queries, rank);
            attends |= of.heads.size() != 0;
            for (Value keys : plan::keysOf(step))
              if (of.heads.size())
                count += countPairs(problem.getMask(), sequences, *of.rows, *tables.held(keys, rank).rows);
          }
          if (!attends)
            continue;
          pairs[rank].push_back(count);
        }
      }
    });
    llvm::outs() << "{\"plan\": \"" << plan.getSymName() << "\", \"sent\": [";
    llvm::interleaveComma(sent, llvm::outs(), [](const auto &message) {
      llvm::outs() << "[" << message.first.first << ", " << message.first.second << ", " << message.second << "]";
    });
    llvm::outs() << "], \"pairs\": [";
    llvm::interleaveComma(pairs, llvm::outs(), [](const std::vector<int64_t> &steps) {
      llvm::outs() << "[";
      llvm::interleaveComma(steps, llvm::outs());
      llvm::outs() << "]";
    });
    llvm::outs() << "]}\n";
  }
};

struct TestPlanLaws : PassWrapper<TestPlanLaws, OperationPass<plan::DefOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestPlanLaws)
  StringRef getArgument() const final { return "test-plan-laws"; }
  StringRef getDescription() const final { return "count how often each visible pair of small shapes is attended to"; }

  void runOnOperation() final {
    plan::DefOp plan = getOperation();
    bool isCross = plan.getKvSharding().has_value();
    int64_t shapes = 0, refused = 0;
    auto hold = [&](std::vector<int64_t> queries, std::vector<int64_t> keys) {
      plan::CallSequences sequences;
      sequences.lengths[0] = std::move(queries), sequences.lengths[1] = std::move(keys);
      ++shapes;
      plan::Tables tables;
      std::optional<std::string> wrong =
          tables.compute(plan, SymbolTable::lookupNearestSymbolFrom<ProblemOp>(plan, plan.getOfAttr()), sequences);
      if (wrong && StringRef(*wrong).starts_with("expected slots"))
        return (void)++refused;
      if (!wrong)
        wrong = miscounted(plan, tables, sequences);
      if (!wrong)
        return;
      InFlightDiagnostic error = plan.emitOpError() << "lengths [";
      llvm::interleaveComma(sequences.lengths[0], error);
      error << "] and [";
      llvm::interleaveComma(sequences.lengths[1], error);
      error << "]: " << *wrong;
      signalPassFailure();
    };
    for (int64_t a = 0; a <= 12; ++a) {
      hold({a}, {isCross ? (a * 7 + 3) % 12 : a});
      for (int64_t b = 0; b <= 7; ++b) {
        hold({a, b}, isCross ? std::vector<int64_t>{b, a} : std::vector<int64_t>{a, b});
        hold({b, 0, a}, isCross ? std::vector<int64_t>{a, 5, (a + b) % 9} : std::vector<int64_t>{b, 0, a});
      }
    }
    llvm::outs() << plan.getSymName() << ": " << shapes << " shapes, " << refused << " refused\n";
  }

private:
  /// In some head.
  static bool isVisible(MaskInterface mask, MaskPoint p) {
    p.heads = headsOf(mask);
    for (p.head = 0; p.head < p.heads; ++p.head)
      if (mask.keeps(p))
        return true;
    return false;
  }

  static std::optional<std::string> miscounted(plan::DefOp plan, const plan::Tables &tables,
                                               const plan::CallSequences &sequences) {
    auto problem = SymbolTable::lookupNearestSymbolFrom<ProblemOp>(plan, plan.getOfAttr());
    std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, int> counts; // of sequence, query, key, head
    plan.walk([&](Operation *step) {
      for (int64_t rank = 0; rank < tables.ranks(); ++rank)
        for (Value queries : plan::queriesOf(step))
          for (Value keys : plan::keysOf(step))
            for (const plan::Run &q : tables.held(queries, rank).rows->runs)
              for (const plan::Run &k : tables.held(keys, rank).rows->runs)
                for (int64_t i = 0; q.sequence == k.sequence && i < q.length; ++i)
                  for (int64_t j = 0; j < k.length; ++j) {
                    plan::Heads heads = tables.held(queries, rank).heads;
                    for (int64_t head = heads.begin; head < heads.end; ++head)
                      ++counts[{q.sequence, q.position + i, k.position + j, head}];
                  }
    });
    int64_t heads = problem.getHeads();
    for (auto [sequence, length] : llvm::enumerate(sequences.lengths[0])) {
      MaskPoint p;
      p.lenQ = length, p.lenK = sequences.lengths[1][sequence];
      for (p.q = 0; p.q < p.lenQ; ++p.q)
        for (p.k = 0; p.k < p.lenK; ++p.k) {
          bool visible = isVisible(problem.getMask(), p);
          for (int64_t head = 0; head < heads; ++head)
            if (int times = counts[{sequence, p.q, p.k, head}]; times > 1 || (visible && times != 1))
              return "a visible pair is attended to " + std::to_string(times) + " times: query " + std::to_string(p.q) +
                     ", key " + std::to_string(p.k) + " of sequence " + std::to_string(sequence) + ", head " +
                     std::to_string(head);
        }
    }
    return std::nullopt;
  }
};
} // namespace

namespace attn::test {
void registerTestPlans() {
  PassRegistration<TestPlanTables>();
  PassRegistration<TestPlanLaws>();
}
} // namespace attn::test
