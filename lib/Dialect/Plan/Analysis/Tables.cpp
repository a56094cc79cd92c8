// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/Analysis/Tables.h"
#include "PairCounts.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <fmt/format.h>
#include <map>
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

OwningOpRef<ProblemOp> attn::plan::ofPieces(ProblemOp problem) {
  OwningOpRef<ProblemOp> part = problem.clone();
  auto pieces = LayoutAttr::get(problem.getContext(), LayoutKind::thd, Packing::pieces);
  part->setQLayoutAttr(pieces), part->setKLayoutAttr(pieces), part->setVLayoutAttr(pieces),
      part->setOLayoutAttr(pieces);
  return part;
}

std::string attn::plan::whyNoPieces(ProblemOp problem) {
  std::string why;
  ScopedDiagnosticHandler handler(problem.getContext(), [&](Diagnostic &diagnostic) {
    why = diagnostic.str();
    return success();
  });
  return failed(verify(*ofPieces(problem))) ? why : "";
}

static bool isQueries(Type type) {
  auto arrival = dyn_cast<ArrivalType>(type);
  return isRows(type, Kind::q) || (arrival && arrival.getKind() == Kind::q);
}

static int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

/// The rank so many farther on in a rank's group.
static int64_t fartherOn(int64_t rank, int64_t offset, int64_t group) {
  return rank / group * group + modulo(rank % group + offset, group);
}

int64_t Tables::receiver(ExchangeOp exchange, int64_t rank) const {
  return fartherOn(rank, exchange.getOffset(), exchange.getWithin().value_or(ranks()));
}

int64_t Tables::sender(ExchangeOp exchange, int64_t rank) const {
  return fartherOn(rank, -int64_t(exchange.getOffset()), exchange.getWithin().value_or(ranks()));
}

int64_t Tables::sent(ExchangeOp exchange, int64_t rank) const {
  return held(exchange.getArrival(), receiver(exchange, rank)).rowHeads();
}

Heads Tables::keyHeads(Heads ofQueries) const {
  int64_t shared = heads[0] / heads[1];
  return ofQueries.size() ? Heads{ofQueries.begin / shared, (ofQueries.end - 1) / shared + 1} : Heads();
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

namespace {
/// Tokens of several shards, which should have none in common.
class TokenSet {
public:
  void add(const Shard &shard) {
    for (const Run &run : shard.runs)
      add(run.sequence, run.position, run.position + run.length);
  }
  void add(int64_t sequence, int64_t begin, int64_t end) { spans.push_back({sequence, begin, end}); }
  /// To be called once, behind the last `add`. Returns the first token that was added twice: sequence and position.
  std::optional<std::pair<int64_t, int64_t>> join() {
    llvm::sort(spans);
    std::optional<std::pair<int64_t, int64_t>> twice;
    size_t kept = 0;
    for (const Span &span : spans) {
      Span *last = kept ? &spans[kept - 1] : nullptr;
      if (!last || last->sequence != span.sequence || last->end < span.begin) {
        spans[kept++] = span;
        continue;
      }
      if (span.begin < last->end && !twice)
        twice = std::pair(span.sequence, span.begin);
      last->end = std::max(last->end, span.end);
    }
    spans.resize(kept);
    return twice;
  }
  /// The first position of [begin, end) of a sequence that is not there.
  std::optional<int64_t> firstMissing(int64_t sequence, int64_t begin, int64_t end) const {
    if (begin >= end)
      return std::nullopt;
    auto found = llvm::partition_point(
        spans, [&](const Span &span) { return std::pair(span.sequence, span.end) <= std::pair(sequence, begin); });
    if (found == spans.end() || found->sequence != sequence || found->begin > begin)
      return begin;
    return found->end < end ? std::optional(found->end) : std::nullopt;
  }

private:
  struct Span {
    int64_t sequence, begin, end;
    bool operator<(const Span &other) const {
      return sequence != other.sequence ? sequence < other.sequence : begin < other.begin;
    }
  };
  std::vector<Span> spans;
};
} // namespace

bool Tables::sees(int64_t rank, const Shard &keys) const {
  return llvm::any_of(keys.runs, [&](const Run &run) {
    bool any = false;
    visitCommon(run, seenBy(rank, run.sequence), [&](int64_t, int64_t) { any = true; });
    return any;
  });
}

void Tables::findSeen(MaskInterface mask, const CallSequences &sequences) {
  seen.assign(shards[0].size(), std::vector<Positions>(sequences.lengths[0].size()));
  IndexMath math;
  bool readsArrays = !mask.operands().empty();
  int64_t maskHeads = distinctHeads(mask, heads[0]);
  for (auto [rank, shard] : llvm::enumerate(shards[0])) {
    for (const Run &run : shard->runs) {
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

void Tables::findAttending(DefOp plan) {
  auto add = [&](Value keys, int64_t rank, ArrayRef<int64_t> owners) {
    Owners &of = attending[keys][rank], joined;
    std::set_union(of.begin(), of.end(), owners.begin(), owners.end(), std::back_inserter(joined));
    of = std::move(joined);
  };
  for (Operation &step : plan.getBody().front())
    for (Value result : step.getResults())
      attending[result].resize(ranks());
  for (Operation &step : llvm::reverse(plan.getBody().front()))
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      for (Value keys : keysOf(&step))
        for (Value queries : queriesOf(&step))
          if (const Held &of = held(queries, rank); !of.empty())
            add(keys, rank, of.owner);
      auto passOn = [&](Value from, Value to, int64_t at) { add(from, rank, attending[to][at]); };
      llvm::TypeSwitch<Operation *>(&step)
          .Case([&](ExchangeOp op) { passOn(op.getRows(), op.getArrival(), receiver(op, rank)); })
          .Case([&](WaitOp op) { passOn(op.getArrival(), op.getRows(), rank); })
          .Case([&](HeadsOp op) { passOn(op.getRows(), op.getPart(), rank); });
    }
}

Held Tables::partOf(const Held &local, bool ofKeys, int64_t group, int64_t rank) const {
  int64_t place = rank % group;
  Heads part = {place * heads[0] / group, (place + 1) * heads[0] / group};
  return {local.rows, local.owner, ofKeys ? keyHeads(part) : part};
}

Held Tables::sentRows(ExchangeOp exchange, int64_t from, int64_t to) const {
  const Held &rows = held(exchange.getRows(), from);
  if (exchange.getByHeads())
    return partOf(rows, isRows(exchange.getRows().getType(), Kind::kv), exchange.getWithin().value_or(ranks()), to);
  auto wasSent = [&](Value arrival) { return sent(arrival.getDefiningOp<ExchangeOp>(), from) != 0; };
  if ((exchange.getIfSent() && !wasSent(exchange.getIfSent())) ||
      (exchange.getUnlessSent() && wasSent(exchange.getUnlessSent())))
    return {};
  if (exchange.getWhich() == Which::all)
    return rows;
  ArrayRef<int64_t> owners = attending.find(exchange.getArrival())->second[to];
  if (exchange.getWhich() == Which::all_if_needed)
    return llvm::any_of(owners, [&](int64_t owner) { return sees(owner, *rows.rows); }) ? rows : Held();
  auto needed = std::make_shared<Shard>();
  for (const Run &run : rows.rows->runs) {
    Positions positions;
    for (int64_t owner : owners)
      visitCommon(run, seenBy(owner, run.sequence),
                  [&](int64_t begin, int64_t end) { positions.emplace_back(begin, end); });
    if (owners.size() > 1)
      joinOverlapping(positions);
    for (auto [begin, end] : positions)
      needed->addTokens(run.sequence, begin, end);
  }
  return {needed, rows.owner, rows.heads};
}

/// A token of `part` that `whole` does not have: sequence and position.
static std::optional<std::pair<int64_t, int64_t>> tokenBeyond(const Shard &part, const Shard &whole) {
  TokenSet present;
  present.add(whole);
  present.join();
  for (const Run &run : part.runs)
    if (auto missing = present.firstMissing(run.sequence, run.position, run.position + run.length))
      return std::pair(run.sequence, *missing);
  return std::nullopt;
}

namespace {
/// Keys that some query heads attend to, or whose gradients they gave.
struct AttendedKeys {
  Heads queryHeads;
  const Shard *keys;
};
} // namespace

/// Calls `check` with the keys of each range of query heads that have the same ones, and with the first key that is
/// there twice.
static std::optional<std::string>
checkByHeads(ArrayRef<AttendedKeys> attended, int64_t heads,
             llvm::function_ref<std::optional<std::string>(Heads some, const TokenSet &keys,
                                                           std::optional<std::pair<int64_t, int64_t>> twice)>
                 check) {
  std::vector<int64_t> bounds = {0, heads};
  for (const AttendedKeys &each : attended)
    bounds.insert(bounds.end(), {each.queryHeads.begin, each.queryHeads.end});
  llvm::sort(bounds);
  bounds.erase(llvm::unique(bounds), bounds.end());
  for (size_t i = 1; i < bounds.size(); ++i) {
    Heads some = {bounds[i - 1], bounds[i]};
    TokenSet keys;
    for (const AttendedKeys &each : attended)
      if (each.queryHeads.contain(some))
        keys.add(*each.keys);
    auto twice = keys.join();
    if (std::optional<std::string> wrong = check(some, keys, twice))
      return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> Tables::evaluate(Operation &step) {
  std::optional<std::string> wrong;
  auto same = [&](Value value, Value as) { values[value] = std::vector<Held>(values.find(as)->second); };
  auto contributionsTo = [&](Value value) -> std::vector<std::vector<Contribution>> & {
    auto &of = contributions[value];
    of.resize(ranks());
    return of;
  };
  auto attends = [&](ValueRange results, ValueRange queries, ValueRange before) {
    for (auto [index, query] : llvm::enumerate(queries)) {
      same(results[index], query);
      for (int64_t rank = 0; rank < ranks() && !before.empty(); ++rank)
        if (!held(before[index], rank).sameAs(held(query, rank)) && !wrong)
          wrong = fmt::format("expected `into` results of the queries that attend on rank {}, got: of others", rank);
    }
  };
  llvm::TypeSwitch<Operation *>(&step)
      .Case([&](LocalOp op) {
        bool ofKeys = isRows(op.getRows().getType(), Kind::kv);
        for (auto [rank, shard] : llvm::enumerate(shards[ofKeys]))
          values[op.getRows()].push_back({shard, int64_t(rank), {0, heads[ofKeys]}});
      })
      .Case([&](HeadsOp op) {
        bool ofKeys = isRows(op.getRows().getType(), Kind::kv);
        std::vector<Held> parts;
        for (int64_t rank = 0; rank < ranks(); ++rank)
          parts.push_back(partOf(held(op.getRows(), rank), ofKeys, op.getWithin(), rank));
        values[op.getPart()] = std::move(parts);
      })
      .Case([&](ExchangeOp op) {
        std::vector<Held> arriving(ranks());
        for (int64_t rank = 0; rank < ranks(); ++rank)
          arriving[receiver(op, rank)] = sentRows(op, rank, receiver(op, rank));
        if (isRows(op.getRows().getType(), Kind::dkv)) {
          auto from = contributionsTo(op.getRows()); // a copy: the map may grow
          for (int64_t rank = 0; rank < ranks(); ++rank)
            if (int64_t to = receiver(op, rank); !arriving[to].empty())
              contributionsTo(op.getArrival())[to] = from[rank];
          contributionsTo(op.getArrival());
        }
        values[op.getArrival()] = std::move(arriving);
      })
      .Case([&](WaitOp op) {
        same(op.getRows(), op.getArrival());
        if (isRows(op.getRows().getType(), Kind::dkv)) {
          auto from = contributionsTo(op.getArrival());
          contributions[op.getRows()] = std::move(from);
        }
      })
      .Case([&](AttendOp op) { attends(op.getPartials(), op.getQueries(), op.getBefore()); })
      .Case([&](GradsOp op) {
        attends(op.getDq(), op.getQueries(), op.getBefore());
        for (auto [dkv, keys] : llvm::zip_equal(op.getDkv(), op.getKeys())) {
          same(dkv, keys);
          auto &of = contributionsTo(dkv);
          for (int64_t rank = 0; rank < ranks(); ++rank)
            for (Value queries : op.getQueries())
              if (const Held &from = held(queries, rank); !from.empty())
                of[rank].push_back({held(keys, rank).rows, from.owner, from.heads});
        }
      })
      .Case([&](SumOp op) {
        same(op.getSum(), op.getLike());
        std::vector<std::vector<Contribution>> all(ranks());
        for (Value part : op.getParts())
          for (int64_t rank = 0; rank < ranks(); ++rank) {
            llvm::append_range(all[rank], contributionsTo(part)[rank]);
            const Held &of = held(part, rank), &like = held(op.getLike(), rank);
            if (wrong || of.empty())
              continue;
            if (of.rows != like.rows)
              if (auto token = tokenBeyond(*of.rows, *like.rows))
                wrong =
                    fmt::format("expected gradients of rank {}'s keys only, got: that of position {} of sequence {}",
                                rank, token->second, token->first);
            if (!like.heads.contain(of.heads))
              wrong = fmt::format("expected gradients of heads {} to {} of keys on rank {}, got: {} to {}",
                                  like.heads.begin, like.heads.end - 1, rank, of.heads.begin, of.heads.end - 1);
          }
        contributions[op.getSum()] = std::move(all);
      })
      .Case([&](JoinHeadsOp op) {
        same(op.getJoined(), op.getLike());
        for (int64_t rank = 0; rank < ranks(); ++rank) {
          const Held &like = held(op.getLike(), rank);
          TokenSet parts; // heads, as positions of one sequence
          for (Value part : op.getParts()) {
            const Held &of = held(part, rank);
            if (of.heads.size() == 0)
              continue;
            if (!wrong && !Held{of.rows, of.owner, like.heads}.sameAs(like))
              wrong = fmt::format("expected results of rank {}'s queries, got: of others", rank);
            if (!wrong && !like.heads.contain(of.heads))
              wrong = fmt::format("expected results of heads {} to {} on rank {}, got: {} to {}", like.heads.begin,
                                  like.heads.end - 1, rank, of.heads.begin, of.heads.end - 1);
            parts.add(0, of.heads.begin, of.heads.end);
          }
          if (auto twice = parts.join(); twice && !wrong)
            wrong = fmt::format("expected each head once on rank {}, got: head {} twice", rank, twice->second);
          if (auto missing = parts.firstMissing(0, like.heads.begin, like.heads.end); missing && !wrong)
            wrong = fmt::format("expected each head once on rank {}, got: head {} never", rank, *missing);
        }
      });
  return wrong;
}

std::optional<std::string> Tables::checkAttends(DefOp plan) const {
  std::vector<std::vector<AttendedKeys>> byOwner(ranks());
  for (Operation &step : plan.getBody().front())
    for (Value queries : queriesOf(&step))
      for (int64_t rank = 0; rank < ranks(); ++rank) {
        const Held &of = held(queries, rank);
        if (of.empty())
          continue;
        for (Value value : keysOf(&step)) {
          const Held &keys = held(value, rank);
          if (keys.rows->rows != 0 && !keys.heads.contain(keyHeads(of.heads)))
            return fmt::format("expected the heads of keys that query heads {} to {} use on rank {}, got others",
                               of.heads.begin, of.heads.end - 1, rank);
          byOwner[of.owner].push_back({of.heads, keys.rows.get()});
        }
      }
  for (int64_t owner = 0; owner < ranks(); ++owner) {
    std::optional<std::string> wrong =
        checkByHeads(byOwner[owner], heads[0], [&](Heads some, const TokenSet &keys, auto twice) {
          std::optional<std::string> found;
          if (twice)
            found =
                fmt::format("expected queries of rank {} to attend to each key once, got: head {} to position {} of "
                            "sequence {} twice",
                            owner, some.begin, twice->second, twice->first);
          for (size_t sequence = 0; sequence < seen[owner].size() && !found; ++sequence)
            for (auto [begin, end] : seenBy(owner, sequence))
              if (std::optional<int64_t> missing = keys.firstMissing(sequence, begin, end); missing && !found)
                found = fmt::format("expected queries of rank {} to attend to all keys that they see, got: head {} "
                                    "never to position {} of sequence {}",
                                    owner, some.begin, *missing, sequence);
          return found;
        });
    if (wrong)
      return wrong;
  }
  return std::nullopt;
}

/// Each rank whose queries see a key contributed once to its gradient, with each head.
std::optional<std::string> Tables::checkGradients(Value dkv) const {
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    std::vector<std::vector<AttendedKeys>> byOwner(ranks());
    for (const Contribution &part : contributions.find(dkv)->second[rank])
      byOwner[part.owner].push_back({part.queryHeads, part.keys.get()});
    for (int64_t owner = 0; owner < ranks(); ++owner) {
      std::optional<std::string> wrong =
          checkByHeads(byOwner[owner], heads[0], [&](Heads some, const TokenSet &keys, auto twice) {
            std::optional<std::string> found;
            if (twice)
              found = fmt::format("expected gradients of rank {}'s queries once, got: of head {} and position {} of "
                                  "sequence {} twice on rank {}",
                                  owner, some.begin, twice->second, twice->first, rank);
            for (const Run &run : shards[1][rank]->runs)
              visitCommon(run, seenBy(owner, run.sequence), [&](int64_t begin, int64_t end) {
                if (std::optional<int64_t> missing = keys.firstMissing(run.sequence, begin, end); missing && !found)
                  found = fmt::format("expected the gradient of each key that a query sees to come home, got: that of "
                                      "position {} of sequence {} from head {} of rank {} not on rank {}",
                                      *missing, run.sequence, some.begin, owner, rank);
              });
            return found;
          });
      if (wrong)
        return wrong;
    }
  }
  return std::nullopt;
}

std::optional<std::string> Tables::checkStored(StoreOp store) const {
  for (Value value : store.getRows()) {
    bool ofKeys = isRows(value.getType(), Kind::dkv);
    for (int64_t rank = 0; rank < ranks(); ++rank)
      if (!held(value, rank).sameAs({shards[ofKeys][rank], rank, {0, heads[ofKeys]}}))
        return fmt::format("expected results of the rows and heads that rank {} has, got others", rank);
    if (!ofKeys)
      continue;
    if (std::optional<std::string> wrong = checkGradients(value))
      return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> Tables::distributeTokens(DefOp plan, MaskInterface mask, const CallSequences &sequences) {
  for (bool ofKeys : {false, true}) {
    auto isAsQueries = [&] {
      return plan.shardingOf(false) == plan.shardingOf(true) && sequences.lengths[0] == sequences.lengths[1] &&
             sequences.slots[0] == sequences.slots[1];
    };
    if (ofKeys && isAsQueries()) {
      shards[1] = shards[0];
      break;
    }
    // Keys are distributed as queries of their lengths would be, so that both are on one rank in self-attention.
    PairCounts counts(mask, heads[0], sequences.lengths[ofKeys], sequences.lengths[1]);
    auto pairs = [&](int64_t sequence, int64_t begin, int64_t end) { return counts.count(sequence, begin, end); };
    Sequences of = {sequences.lengths[ofKeys], sequences.slots[ofKeys], int64_t(plan.getRanks())};
    of.pairs = pairs;
    of.given = sequences.given;
    std::vector<Shard> distributed;
    if (std::optional<std::string> wrong = distribute(plan.shardingOf(ofKeys), of, distributed))
      return wrong;
    shards[ofKeys].clear();
    for (Shard &shard : distributed)
      shards[ofKeys].push_back(std::make_shared<const Shard>(std::move(shard)));
  }
  findSeen(mask, sequences);
  return std::nullopt;
}

std::optional<std::string> Tables::compute(DefOp plan, ProblemOp problem, const CallSequences &sequences,
                                           bool isChecked, const Tables *alike) {
  if (plan.getBody().front().empty())
    return "expected steps in the plan, got: none (`plan-make-steps` writes some)";
  if (problem.getSegments())
    return "expected a problem whose sequences are given, got: one with segments";
  if (sequences.lengths[0].size() != sequences.lengths[1].size())
    return fmt::format("expected as many sequences of keys as of queries ({}), got: {}", sequences.lengths[0].size(),
                       sequences.lengths[1].size());
  values.clear(), contributions.clear(), attending.clear();
  MaskInterface mask = problem.getMask();
  heads[0] = problem.getHeads(), heads[1] = problem.getKvHeads();
  if (alike)
    shards[0] = alike->shards[0], shards[1] = alike->shards[1], seen = alike->seen;
  else if (std::optional<std::string> wrong = distributeTokens(plan, mask, sequences))
    return wrong;
  // Which keys are needed depends on where queries are, so these are evaluated first.
  auto movesQueries = [](Operation &step) {
    return step.getNumResults() == 1 && isQueries(step.getResult(0).getType());
  };
  for (bool ofQueries : {true, false}) {
    if (!ofQueries)
      findAttending(plan);
    for (Operation &step : plan.getBody().front())
      if (movesQueries(step) == ofQueries)
        if (std::optional<std::string> wrong = evaluate(step))
          return wrong;
  }
  if (isChecked)
    return std::nullopt;
  if (std::optional<std::string> wrong = checkAttends(plan))
    return wrong;
  return checkStored(cast<StoreOp>(plan.getBody().front().back()));
}
