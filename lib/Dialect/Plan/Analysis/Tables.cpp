// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/Analysis/Tables.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <fmt/format.h>
#include <map>
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

static int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

/// The rank `steps` exchanges of this offset away.
static int64_t rankAt(ExchangeOp exchange, int64_t ranks, int64_t rank, int64_t steps) {
  int64_t group = exchange.getWithin().value_or(ranks);
  return rank / group * group + modulo(rank % group + steps * int64_t(exchange.getOffset()), group);
}

int64_t Tables::receiver(ExchangeOp exchange, int64_t rank) const { return rankAt(exchange, ranks(), rank, 1); }

int64_t Tables::sent(ExchangeOp exchange, int64_t rank) const {
  return held(exchange.getArrival(), receiver(exchange, rank)).rowHeads();
}

static void joinOverlapping(Positions &positions) {
  llvm::sort(positions);
  Positions apart;
  for (auto [begin, end] : positions) {
    if (begin >= end)
      continue;
    if (!apart.empty() && begin <= apart.back().second)
      apart.back().second = std::max(apart.back().second, end);
    else
      apart.emplace_back(begin, end);
  }
  positions = std::move(apart);
}

/// Calls `visit` for each part of a run that is in some interval.
static void visitCommon(const Run &run, const Positions &positions, llvm::function_ref<void(int64_t, int64_t)> visit) {
  int64_t end = run.position + run.length;
  auto first = llvm::partition_point(positions, [&](const auto &interval) { return interval.second <= run.position; });
  for (; first != positions.end() && first->first < end; ++first)
    visit(std::max(first->first, run.position), std::min(first->second, end));
}

/// The first position of [begin, end) that is in no interval.
static std::optional<int64_t> firstMissing(const Positions &positions, int64_t begin, int64_t end) {
  visitCommon({0, 0, begin, end - begin}, positions, [&](int64_t from, int64_t to) {
    if (from == begin)
      begin = to;
  });
  return begin < end ? std::optional(begin) : std::nullopt;
}

/// Joins intervals that should be apart. Returns the first position that is in two of them.
static std::optional<int64_t> joinDisjoint(Positions &positions) {
  llvm::sort(positions);
  std::optional<int64_t> twice;
  for (size_t i = 1; i < positions.size() && !twice; ++i)
    if (positions[i].first < positions[i - 1].second)
      twice = positions[i].first;
  joinOverlapping(positions);
  return twice;
}

bool Tables::sees(int64_t rank, const Shard &keys) const {
  return llvm::any_of(keys.runs, [&](const Run &run) {
    bool any = false;
    visitCommon(run, seenBy(rank, run.sequence), [&](int64_t, int64_t) { any = true; });
    return any;
  });
}

namespace {
/// Visible pairs of query rows, by sums over the rows before. In long sequences, 4096 rows stand for those that follow
/// them.
class PairCounts {
public:
  explicit PairCounts(MaskInterface mask) : mask(mask), heads(headsOf(mask)), readsArrays(!mask.operands().empty()) {}

  int64_t count(int64_t lenQ, int64_t lenK, int64_t begin, int64_t end) {
    if (readsArrays)
      return (end - begin) * lenK;
    const std::vector<int64_t> &sums = sumsOf(lenQ, lenK);
    auto before = [&](int64_t row) {
      int64_t samples = int64_t(sums.size()) - 1, sample = row * samples / lenQ;
      if (sample < samples && (sample + 1) * lenQ / samples <= row) // sample k begins at row floor(k lenQ / samples)
        ++sample;
      if (sample == samples)
        return sums[samples];
      int64_t first = sample * lenQ / samples;
      int64_t rows = (sample + 1) * lenQ / samples - first;
      return sums[sample] + (sums[sample + 1] - sums[sample]) / rows * (row - first);
    };
    return before(end) - before(begin);
  }

private:
  const std::vector<int64_t> &sumsOf(int64_t lenQ, int64_t lenK) {
    std::vector<int64_t> &sums = known[{lenQ, lenK}];
    if (!sums.empty())
      return sums;
    int64_t samples = std::min<int64_t>(lenQ, 4096);
    MaskScope scope;
    scope.lenQ = Index::position(lenQ), scope.lenK = Index::position(lenK), scope.heads = heads;
    sums.push_back(0);
    for (int64_t sample = 0; sample < samples; ++sample) {
      int64_t row = sample * lenQ / samples, rows = (sample + 1) * lenQ / samples - row, keys = 0;
      for (int64_t head = 0; head < heads; ++head) {
        scope.head = Index::position(head);
        keys += lenK ? countKeys(mask, scope, row) : 0;
      }
      sums.push_back(sums.back() + keys * rows);
    }
    return sums;
  }

  MaskInterface mask;
  int64_t heads;
  bool readsArrays;
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> known;
};
} // namespace

void Tables::findSeen(MaskInterface mask, const CallSequences &sequences) {
  seen.assign(shards[0].size(), std::vector<Positions>(sequences.lengths[0].size()));
  IndexMath math;
  bool readsArrays = !mask.operands().empty();
  int64_t maskHeads = headsOf(mask);
  for (auto [rank, shard] : llvm::enumerate(shards[0])) {
    for (const Run &run : shard.runs) {
      int64_t keys = sequences.lengths[1][run.sequence];
      if (readsArrays || keys == 0) {
        seen[rank][run.sequence].emplace_back(0, keys);
        continue;
      }
      MaskScope scope;
      scope.lenQ = Index::position(sequences.lengths[0][run.sequence]), scope.lenK = Index::position(keys);
      scope.heads = maskHeads;
      for (int64_t head = 0; head < maskHeads; ++head) {
        scope.head = Index::position(head);
        TileRanges ranges =
            mask.keyRanges(math, scope, {Index::position(run.position), Index::position(run.position + run.length)});
        for (const Interval &interval : ranges.some)
          seen[rank][run.sequence].emplace_back(std::max<int64_t>(interval.lo.getNumber(), 0),
                                                std::min(interval.hi.getNumber(), keys));
      }
    }
    for (Positions &positions : seen[rank])
      joinOverlapping(positions);
  }
}

Held Tables::filtered(ExchangeOp exchange, const Held &from, int64_t source, int64_t rank) const {
  if (Value unless = exchange.getUnless())
    if (sent(unless.getDefiningOp<ExchangeOp>(), source))
      return {};
  switch (exchange.getWhich()) {
  case Which::all:
    return from;
  case Which::needed: {
    Held needed = {{}, from.heads};
    for (const Run &run : from.shard.runs)
      visitCommon(run, seenBy(rank, run.sequence),
                  [&](int64_t begin, int64_t end) { needed.shard.addTokens(run.sequence, begin, end); });
    return needed;
  }
  case Which::onward:
    for (int64_t hop = 1; hop <= int64_t(*exchange.getHops()); ++hop)
      if (sees(rankAt(exchange, ranks(), source, hop), from.shard))
        return from;
    return {};
  }
  llvm_unreachable("all cases return");
}

/// A token of `part` that `whole` does not have: sequence and position.
static std::optional<std::pair<int64_t, int64_t>> tokenBeyond(const Shard &part, const Shard &whole) {
  for (const Run &run : part.runs) {
    Positions present;
    for (const Run &own : whole.runs)
      if (own.sequence == run.sequence)
        present.emplace_back(own.position, own.position + own.length);
    joinOverlapping(present);
    if (std::optional<int64_t> missing = firstMissing(present, run.position, run.position + run.length))
      return std::pair(run.sequence, *missing);
  }
  return std::nullopt;
}

std::optional<std::string> Tables::evaluate(Operation &step) {
  std::optional<std::string> wrong;
  auto same = [&](Value value, Value as) { values[value] = std::vector<Held>(values.find(as)->second); };
  auto origins = [&](Value value) -> std::vector<std::vector<Contribution>> & {
    auto &of = contributions[value];
    of.resize(ranks());
    return of;
  };
  llvm::TypeSwitch<Operation *>(&step)
      .Case([&](LocalOp op) {
        bool ofKeys = isRows(op.getRows().getType(), Kind::kv);
        std::vector<int64_t> all(heads[ofKeys]);
        std::iota(all.begin(), all.end(), 0);
        for (const Shard &shard : shards[ofKeys])
          values[op.getRows()].push_back({shard, all});
      })
      .Case([&](ExchangeOp op) {
        std::vector<Held> arriving(ranks());
        for (int64_t rank = 0; rank < ranks(); ++rank) {
          int64_t to = receiver(op, rank);
          arriving[to] = filtered(op, held(op.getRows(), rank), rank, to);
        }
        if (isRows(op.getRows().getType(), Kind::dkv)) {
          auto from = contributions.find(op.getRows())->second; // a copy: the map may grow
          for (int64_t rank = 0; rank < ranks(); ++rank)
            if (int64_t to = receiver(op, rank); !arriving[to].empty())
              origins(op.getArrival())[to] = from[rank];
          origins(op.getArrival());
        }
        values[op.getArrival()] = std::move(arriving);
      })
      .Case([&](WaitOp op) {
        same(op.getRows(), op.getArrival());
        if (isRows(op.getRows().getType(), Kind::dkv)) {
          auto from = contributions.find(op.getArrival())->second;
          contributions[op.getRows()] = std::move(from);
        }
      })
      .Case([&](AttendOp op) { same(op.getPartial(), op.getQ()); })
      .Case([&](GradsOp op) {
        same(op.getDq(), op.getQ());
        for (auto [dkv, keys] : llvm::zip_equal(op.getDkv(), op.getKeys())) {
          same(dkv, keys);
          for (int64_t rank = 0; rank < ranks(); ++rank)
            origins(dkv)[rank] = {{held(keys, rank).shard, rank}};
        }
      })
      .Case([&](SumOp op) {
        same(op.getSum(), op.getLike());
        std::vector<std::vector<Contribution>> all(ranks());
        for (Value part : op.getParts())
          for (int64_t rank = 0; rank < ranks(); ++rank) {
            llvm::append_range(all[rank], contributions.find(part)->second[rank]);
            if (auto token = tokenBeyond(held(part, rank).shard, held(op.getLike(), rank).shard); token && !wrong)
              wrong = fmt::format("expected gradients of rank {}'s keys only, got: that of position {} of sequence {}",
                                  rank, token->second, token->first);
          }
        contributions[op.getSum()] = std::move(all);
      });
  return wrong;
}

std::optional<std::string> Tables::checkAttends(DefOp plan) const {
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    std::vector<Positions> attended(seen[rank].size());
    for (Operation &step : plan.getBody().front())
      for (Value keys : keysOf(&step))
        for (const Run &run : held(keys, rank).shard.runs)
          attended[run.sequence].emplace_back(run.position, run.position + run.length);
    for (auto [sequence, positions] : llvm::enumerate(attended)) {
      if (std::optional<int64_t> twice = joinDisjoint(positions))
        return fmt::format("expected rank {} to attend to each key once, got: position {} of sequence {} twice", rank,
                           *twice, sequence);
      for (auto [begin, end] : seenBy(rank, sequence))
        if (std::optional<int64_t> missing = firstMissing(positions, begin, end))
          return fmt::format("expected rank {} to attend to all keys that its queries see, got: never to position {} "
                             "of sequence {}",
                             rank, *missing, sequence);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Tables::checkStored(StoreOp store) const {
  for (Value value : store.getRows()) {
    bool ofKeys = isRows(value.getType(), Kind::dkv);
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      const Held &found = held(value, rank);
      if (!(found.shard == shards[ofKeys][rank]) || int64_t(found.heads.size()) != heads[ofKeys])
        return fmt::format("expected results of the rows and heads that rank {} has, got others", rank);
      if (!ofKeys)
        continue;
      // Each rank that sees a key contributed once to its gradient.
      for (int64_t from = 0; from < ranks(); ++from) {
        std::vector<Positions> given(seen[from].size());
        for (const Contribution &part : contributions.find(value)->second[rank])
          if (part.origin == from)
            for (const Run &run : part.shard.runs)
              given[run.sequence].emplace_back(run.position, run.position + run.length);
        for (Positions &positions : given)
          if (std::optional<int64_t> twice = joinDisjoint(positions))
            return fmt::format("expected gradients of rank {}'s queries once, got: position {} of a sequence twice on "
                               "rank {}",
                               from, *twice, rank);
        for (const Run &run : shards[1][rank].runs) {
          std::optional<std::string> missing;
          visitCommon(run, seenBy(from, run.sequence), [&](int64_t begin, int64_t end) {
            if (std::optional<int64_t> position = firstMissing(given[run.sequence], begin, end); position && !missing)
              missing = fmt::format("expected the gradient of each key that a query sees to come home, got: that of "
                                    "position {} of sequence {} from rank {} not on rank {}",
                                    *position, run.sequence, from, rank);
          });
          if (missing)
            return missing;
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> Tables::compute(DefOp plan, ProblemOp problem, const CallSequences &sequences) {
  if (plan.getBody().front().empty())
    return "expected steps in the plan, got none (`plan-make-steps` writes some)";
  if (sequences.lengths[0].size() != sequences.lengths[1].size())
    return fmt::format("expected as many sequences of keys as of queries ({}), got: {}", sequences.lengths[0].size(),
                       sequences.lengths[1].size());
  values.clear(), contributions.clear();
  MaskInterface mask = problem.getMask();
  PairCounts counts(mask);
  heads[0] = problem.getHeads(), heads[1] = problem.getKvHeads();
  for (bool ofKeys : {false, true}) {
    // Keys are distributed as queries of their lengths would be, so that both are on one rank in self-attention.
    auto pairs = [&](int64_t sequence, int64_t begin, int64_t end) {
      return counts.count(sequences.lengths[ofKeys][sequence], sequences.lengths[1][sequence], begin, end);
    };
    Sequences of = {sequences.lengths[ofKeys], sequences.slots[ofKeys], int64_t(plan.getRanks())};
    of.pairs = pairs;
    of.given = sequences.given;
    if (std::optional<std::string> wrong = distribute(plan.shardingOf(ofKeys), of, shards[ofKeys]))
      return wrong;
  }
  findSeen(mask, sequences);
  for (Operation &step : plan.getBody().front())
    if (std::optional<std::string> wrong = evaluate(step))
      return wrong;
  if (std::optional<std::string> wrong = checkAttends(plan))
    return wrong;
  return checkStored(cast<StoreOp>(plan.getBody().front().back()));
}
