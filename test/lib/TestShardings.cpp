// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `--test-shardings` prints the shards of each module that has an attribute
//
//   test.shards = {of = #plan.dual_chunk, ranks = 2, lengths = [7, 3], slots = [8, 4], mask = #attn.causal, keys = [7,
//   3]}
//
// (all but the first three may be left out); `given = [[rows, [row, sequence, position, length], ...], ...]` are the
// shards `mine` of a caller. `--test-sharding-laws` holds the attributes in a module's `test.shardings` against the
// laws of shardings on all small shapes.
//
#include "SequencesOfTest.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <algorithm>
#include <map>
#include <numeric>

using namespace mlir;
using namespace attn;
using plan::Run, plan::Shard, plan::Sequences, plan::ShardingInterface;
using test::numbersOf;

namespace {
/// Visible pairs by the mask's definition.
int64_t countPairs(MaskInterface mask, int64_t lenQ, int64_t lenK, int64_t begin, int64_t end) {
  int64_t count = 0;
  MaskPoint p;
  p.lenQ = lenQ, p.lenK = lenK;
  for (p.q = begin; p.q < end; ++p.q)
    for (p.k = 0; p.k < lenK; ++p.k)
      count += mask.keeps(p);
  return count;
}

struct TestShardings : PassWrapper<TestShardings, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestShardings)
  StringRef getArgument() const final { return "test-shardings"; }
  StringRef getDescription() const final { return "print the shards of modules with a `sharding`"; }

  void runOnOperation() final {
    getOperation().walk<WalkOrder::PreOrder>([&](ModuleOp module) {
      if (auto shards = module->getAttrOfType<DictionaryAttr>("test.shards"); shards && failed(print(module, shards)))
        signalPassFailure();
    });
  }

private:
  LogicalResult print(ModuleOp module, DictionaryAttr of) {
    auto sharding = of.getAs<ShardingInterface>("of");
    std::vector<int64_t> lengths = numbersOf(of.get("lengths")), slots = numbersOf(of.get("slots")),
                         keys = numbersOf(of.get("keys"));
    if (keys.empty())
      keys = lengths;
    std::vector<Shard> given = test::shardsOf(of.getAs<ArrayAttr>("given")), shards;
    auto mask = of.getAs<MaskInterface>("mask");
    auto pairs = [&](int64_t sequence, int64_t begin, int64_t end) {
      return countPairs(mask, lengths[sequence], keys[sequence], begin, end);
    };
    auto ofName = [&](StringRef name) { return name == "mine" ? ArrayRef<Shard>(given) : ArrayRef<Shard>(); };
    Sequences sequences = {lengths, slots, of.getAs<IntegerAttr>("ranks").getInt()};
    if (mask)
      sequences.pairs = pairs;
    sequences.given = ofName;
    if (std::optional<std::string> wrong = plan::distribute(sharding, sequences, shards))
      return module.emitError(*wrong);
    llvm::outs() << sharding << " of " << sequences.ranks << "\n";
    for (auto [rank, shard] : llvm::enumerate(shards)) {
      llvm::outs() << "rank " << rank << ": " << shard.rows << " rows";
      for (const Run &run : shard.runs)
        llvm::outs() << " [" << run.row << ", " << run.sequence << ", " << run.position << ", " << run.length << "]";
      llvm::outs() << "\n";
    }
    return success();
  }
};

struct TestShardingLaws : PassWrapper<TestShardingLaws, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestShardingLaws)
  StringRef getArgument() const final { return "test-sharding-laws"; }
  StringRef getDescription() const final { return "hold the module's `shardings` against their laws on small shapes"; }

  void runOnOperation() final {
    auto shardings = getOperation()->getAttrOfType<ArrayAttr>("test.shardings");
    for (Attribute attribute : shardings) {
      int64_t cases = 0, refused = 0;
      auto hold = [&](ArrayRef<int64_t> lengths, ArrayRef<int64_t> slots, int64_t ranks) {
        Sequences sequences = {lengths, slots, ranks};
        auto causal = [&](int64_t, int64_t begin, int64_t end) { return (end * (end + 1) - begin * (begin + 1)) / 2; };
        sequences.pairs = causal;
        std::vector<Shard> shards;
        ++cases;
        if (cast<ShardingInterface>(attribute).distribute(sequences, shards))
          return (void)++refused;
        if (std::optional<std::string> wrong = broken(sequences, shards)) {
          InFlightDiagnostic error = getOperation().emitError() << attribute << " of " << ranks << " ranks, lengths [";
          llvm::interleaveComma(lengths, error);
          error << "], slots [";
          llvm::interleaveComma(slots, error);
          error << "]: " << *wrong;
          signalPassFailure();
        }
      };
      for (int64_t ranks : {1, 2, 3, 4, 7}) {
        auto withSlots = [&](ArrayRef<int64_t> lengths) {
          hold(lengths, {}, ranks);
          for (int64_t more : {1, 3}) {
            SmallVector<int64_t> slots(lengths);
            for (auto [i, slot] : llvm::enumerate(slots))
              slot += (more + i) % 4;
            hold(lengths, slots, ranks);
            for (int64_t &slot : slots)
              slot = llvm::alignTo(slot, 2 * ranks);
            hold(lengths, slots, ranks);
          }
        };
        withSlots({});
        for (int64_t a = 0; a <= 12; ++a) {
          withSlots({a});
          for (int64_t b = 0; b <= 12; ++b) {
            withSlots({a, b});
            for (int64_t c = 0; c <= 5; ++c)
              withSlots({a, b, c});
          }
        }
      }
      llvm::outs() << attribute << ": " << cases << " shapes, " << refused << " refused\n";
    }
  }

private:
  /// The laws, token by token; then `checkShards`, which has to accept these shards and to refuse others.
  static std::optional<std::string> broken(const Sequences &sequences, std::vector<Shard> shards) {
    if (int64_t(shards.size()) != sequences.ranks)
      return "not a shard for each rank";
    std::map<std::pair<int64_t, int64_t>, int> owners;
    for (const Shard &shard : shards) {
      std::vector<int> used(shard.rows, 0);
      for (auto [i, run] : llvm::enumerate(shard.runs)) {
        for (int64_t x = 0; x < run.length; ++x) {
          if (run.row + x >= shard.rows || used[run.row + x]++)
            return "rows of runs overlap or are not there";
          ++owners[{run.sequence, run.position + x}];
        }
        if (run.length < 1)
          return "an empty run";
        if (i == 0)
          continue;
        const Run &before = shard.runs[i - 1];
        if (before.row + before.length > run.row)
          return "runs do not ascend";
        if (before.row + before.length == run.row && before.sequence == run.sequence &&
            before.position + before.length == run.position)
          return "two runs could be one";
      }
    }
    size_t tokens = 0;
    for (auto [sequence, length] : llvm::enumerate(sequences.lengths))
      for (int64_t position = 0; position < length; ++position, ++tokens)
        if (owners[{sequence, position}] != 1)
          return "a token is not on one rank";
    if (owners.size() != tokens)
      return "a token that does not exist";
    if (plan::checkShards(sequences, shards))
      return "checkShards refuses right shards";
    return mutate(sequences, shards);
  }

  static std::optional<std::string> mutate(const Sequences &sequences, const std::vector<Shard> &right) {
    for (auto [rank, shard] : llvm::enumerate(right)) {
      if (shard.runs.empty())
        continue;
      auto accepts = [&](llvm::function_ref<void(Shard &)> change) {
        std::vector<Shard> wrong = right;
        change(wrong[rank]);
        return !plan::checkShards(sequences, wrong);
      };
      if (accepts([](Shard &shard) { shard.runs.pop_back(); }))
        return "checkShards accepts shards without a run";
      if (accepts([](Shard &shard) { shard.runs.front().position += 1; }) ||
          accepts([](Shard &shard) { shard.runs.front().position -= 1; }))
        return "checkShards accepts a run of other positions";
      if (accepts([](Shard &shard) { shard.runs.back().row += shard.rows; }))
        return "checkShards accepts rows that are not there";
      if (accepts([](Shard &shard) { shard.runs.push_back(shard.runs.back()); }))
        return "checkShards accepts a run twice";
      if (accepts([](Shard &shard) { shard.runs.back().sequence += 100; }))
        return "checkShards accepts a sequence that is not there";
    }
    return std::nullopt;
  }
};
} // namespace

namespace attn::test {
void registerTestShardings() {
  PassRegistration<TestShardings>();
  PassRegistration<TestShardingLaws>();
}
} // namespace attn::test
