// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Plan/Analysis/Costs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

static constexpr int64_t tileSize = 128;

double PlanCosts::milliseconds() const {
  double most = 0;
  for (const RankCosts &rank : ranks)
    most = std::max(most, rank.finishedMs);
  return most;
}

double PlanCosts::exposedMs() const {
  double most = 0;
  for (const RankCosts &rank : ranks)
    most = std::max(most, rank.computeMs);
  return milliseconds() - most;
}

double PlanCosts::balance() const {
  double most = 0, sum = 0;
  for (const RankCosts &rank : ranks)
    most = std::max(most, rank.pairs), sum += rank.pairs;
  return sum ? most * double(ranks.size()) / sum : 1;
}

/// Pairs in visited tiles of the query rows of one rank.
class attn::plan::VisitedTiles {
public:
  VisitedTiles(MaskInterface mask, const CallSequences &sequences) : mask(mask), sequences(sequences) {}

  struct Counts {
    double pairs = 0, rows = 0; ///< `rows`: of query tiles that see some keys
  };

  /// Counts of one head, on average.
  Counts count(const Held &queries, const Shard &keys) {
    auto before = [](const auto &a, const auto &b) { return a.sequence < b.sequence; };
    std::vector<Run> sorted;
    const std::vector<Run> *runs = &keys.runs;
    if (!llvm::is_sorted(*runs, before)) {
      sorted = *runs;
      llvm::stable_sort(sorted, before);
      runs = &sorted;
    }
    Counts counts;
    auto first = runs->begin();
    for (const Tile &tile : tilesOf(queries)) {
      while (first != runs->end() && first->sequence < tile.sequence)
        ++first;
      int64_t visited = 0;
      for (auto run = first; run != runs->end() && run->sequence == tile.sequence; ++run)
        for (auto [begin, end] : tile.keys) {
          int64_t from = std::max(begin, run->position) - run->position,
                  to = std::min(end, run->position + run->length) - run->position;
          if (from < to)
            visited += (llvm::divideCeil(to, tileSize) - from / tileSize) * tileSize;
        }
      counts.pairs += tile.rows * double(visited);
      counts.rows += visited ? tile.rows : 0;
    }
    return counts;
  }

private:
  struct Tile {
    int64_t sequence;
    double rows; ///< of all tiles that this one stands for, of one head
    Positions keys;
  };

  /// Sorted by sequence.
  std::vector<Tile> &tilesOf(const Held &queries) {
    auto [found, isNew] = known.try_emplace(queries.rows.get());
    if (!isNew)
      return found->second;
    const std::vector<Run> &runs = queries.rows->runs;
    int64_t most = std::max<int64_t>(2, 512 / std::max<int64_t>(1, int64_t(runs.size()))), heads = headsOf(mask);
    IndexMath math;
    for (const Run &run : runs) {
      int64_t keys = sequences.lengths[1][run.sequence], tiles = llvm::divideCeil(run.length, tileSize);
      int64_t samples = std::min(tiles, most);
      for (int64_t sample = 0; sample < samples && keys; ++sample) {
        int64_t first = sample * tiles / samples, after = (sample + 1) * tiles / samples;
        int64_t begin = run.position + (first + after - 1) / 2 * tileSize;
        MaskScope scope;
        scope.lenQ = Index::position(sequences.lengths[0][run.sequence]), scope.lenK = Index::position(keys);
        scope.heads = heads;
        for (int64_t head = 0; head < heads; ++head) {
          Tile tile = {run.sequence, double((after - first) * tileSize) / double(heads), {}};
          scope.head = Index::position(head);
          if (!mask.operands().empty()) {
            tile.keys = {{0, keys}};
          } else {
            int64_t end = std::min(begin + tileSize, run.position + run.length);
            for (const Interval &interval :
                 mask.keyRanges(math, scope, {Index::position(begin), Index::position(end)}).some)
              tile.keys.emplace_back(std::max<int64_t>(interval.lo.getNumber(), 0),
                                     std::min(interval.hi.getNumber(), keys));
          }
          found->second.push_back(std::move(tile));
        }
      }
    }
    llvm::stable_sort(found->second, [](const Tile &a, const Tile &b) { return a.sequence < b.sequence; });
    return found->second;
  }

  MaskInterface mask;
  const CallSequences &sequences;
  std::map<const Shard *, std::vector<Tile>> known;
};

namespace {
/// Runs the steps on all ranks, in time.
class Simulation {
public:
  Simulation(ProblemOp problem, const Tables &tables, VisitedTiles &visited, const Rates &rates, bool backward)
      : problem(problem), tables(tables), rates(rates), backward(backward), visited(visited),
        computeFree(tables.ranks()), sendFree(tables.ranks()), receiveFree(tables.ranks()) {
    costs.ranks.resize(tables.ranks());
  }

  PlanCosts run(DefOp plan);

private:
  /// Bytes of a row of one head.
  double bytesOf(Kind kind) {
    double dimQk = problem.getDimQk(), dimV = problem.getDimV(),
           width = problem.getDtype().getIntOrFloatBitWidth() / 8.0;
    switch (kind) {
    case Kind::q:
      return dimQk * width + (backward ? dimV * width + 8 : 0); // dO, LSE and delta
    case Kind::kv:
      return (dimQk + dimV) * width;
    case Kind::partial:
      return dimV * 4 + 8; // with the softmax state
    case Kind::dq:
      return dimQk * 4;
    case Kind::dkv:
      return (dimQk + dimV) * 4;
    }
    llvm_unreachable("all kinds return");
  }
  /// Is it from another rank, and on its way to the plan's results, to which nothing is added?
  static bool isFinished(Value value) {
    if (!isa<ArrivalType>(value.getType()) && !value.getDefiningOp<WaitOp>())
      return false;
    for (Operation *user : value.getUsers()) {
      auto join = dyn_cast<JoinHeadsOp>(user);
      bool goesOn = isa<WaitOp>(user) ? isFinished(user->getResult(0))
                                      : join && llvm::all_of(join.getJoined().getUsers(), llvm::IsaPred<StoreOp>);
      if (!goesOn)
        return false;
    }
    return true;
  }
  double bytesOf(Value value, int64_t rank) {
    auto arrival = dyn_cast<ArrivalType>(value.getType());
    Kind kind = arrival ? arrival.getKind() : cast<RowsType>(value.getType()).getKind();
    double bytes = bytesOf(kind);
    if ((kind == Kind::partial || kind == Kind::dq) && isFinished(value)) {
      double width = problem.getDtype().getIntOrFloatBitWidth() / 8.0;
      bytes = kind == Kind::dq ? double(problem.getDimQk()) * width : double(problem.getDimV()) * width + 4;
    }
    return double(tables.held(value, rank).rowHeads()) * bytes;
  }
  void setReady(Value value, int64_t rank, double when) {
    auto &times = ready[value];
    times.resize(tables.ranks());
    times[rank] = when;
  }
  double readyAt(ValueRange values, int64_t rank) const {
    double latest = 0;
    for (Value value : values)
      latest = std::max(latest, ready.find(value)->second[rank]);
    return latest;
  }
  /// A kernel of so many microseconds.
  double compute(int64_t rank, double begin, double us) {
    begin = std::max(begin, computeFree[rank]);
    double end = begin + us / 1e3;
    computeFree[rank] = end, costs.ranks[rank].computeMs += us / 1e3;
    costs.timeline.push_back({rank, begin, end, /*isMessage=*/false});
    return end;
  }
  void send(ExchangeOp op);
  double attend(Operation *step, int64_t rank, ValueRange before);
  void findPeaks(DefOp plan);

  ProblemOp problem;
  const Tables &tables;
  const Rates &rates;
  bool backward;
  VisitedTiles &visited;
  PlanCosts costs;
  llvm::DenseMap<Value, std::vector<double>> ready;
  std::vector<double> computeFree, sendFree, receiveFree; ///< by rank, in milliseconds
};
} // namespace

void Simulation::send(ExchangeOp op) {
  for (int64_t rank = 0; rank < tables.ranks(); ++rank) {
    int64_t to = tables.receiver(op, rank);
    double bytes = bytesOf(op.getArrival(), to);
    double begin = std::max({readyAt(op.getRows(), rank), sendFree[rank], receiveFree[to]}), end = begin;
    if (bytes != 0) {
      end += rates.messageUs / 1e3 + bytes / rates.linkGbps / 1e6;
      sendFree[rank] = receiveFree[to] = end;
      costs.ranks[to].receivedBytes += bytes;
      costs.timeline.push_back({to, begin, end, /*isMessage=*/true});
    }
    setReady(op.getArrival(), to, bytes != 0 ? end : 0);
  }
}

double Simulation::attend(Operation *step, int64_t rank, ValueRange before) {
  double pairs = 0, traffic = 0;
  for (Value queries : queriesOf(step)) {
    const Held &of = tables.held(queries, rank);
    double rows = 0;
    for (Value keys : keysOf(step)) {
      if (of.empty())
        continue;
      VisitedTiles::Counts counts = visited.count(of, *tables.held(keys, rank).rows);
      pairs += counts.pairs * double(of.heads.size()), rows = std::max(rows, counts.rows);
    }
    if (!before.empty()) // O or dQ so far is read and written, in float32
      traffic += 8.0 * rows * double(of.heads.size() * (backward ? problem.getDimQk() : problem.getDimV()));
  }
  double begin = readyAt(step->getOperands(), rank);
  if (pairs == 0)
    return begin;
  costs.ranks[rank].pairs += pairs;
  double flops = pairs * 2 * double(problem.getDimQk() + problem.getDimV()) * (backward ? 2.5 : 1);
  double us = flops / (backward ? rates.backwardTflops : rates.forwardTflops) / 1e6 + traffic / rates.copyGbps / 1e3;
  return compute(rank, begin, rates.launchUs + us);
}

/// Values share memory with what they were made from: rows with their arrival, results with those before. What is sent
/// is there until the receiver's wait, which has the same place in the plan of each rank. The caller's rows, whose
/// strides may be any, and parts of rows are packed before they are sent.
void Simulation::findPeaks(DefOp plan) {
  struct Life {
    size_t begin, end;
    Value value;
  };
  struct Packed {
    Value source;
    Held held;
    size_t begin, end;
    double bytes;
  };
  struct Sent {
    size_t life, end;
    ExchangeOp exchange;
  };
  std::vector<Life> lives;
  std::vector<Sent> sent; ///< which rows are there until when, on ranks that send them
  llvm::DenseMap<Value, size_t> lifeOf;
  size_t index = 0;
  for (Operation &step : plan.getBody().front()) {
    auto use = [&](Value value) {
      if (auto life = lifeOf.find(value); life != lifeOf.end())
        lives[life->second].end = index;
    };
    ValueRange read = step.getOperands();
    if (isa<SumOp, JoinHeadsOp>(step))
      read = read.drop_front(); // `like` says which rows
    if (isa<ExchangeOp>(step))
      read = read.take_front(); // conditions are known from tables
    llvm::for_each(read, use);
    if (auto wait = dyn_cast<WaitOp>(step))
      if (auto life = lifeOf.find(wait.getArrival().getDefiningOp<ExchangeOp>().getRows()); life != lifeOf.end())
        sent.push_back({life->second, index, wait.getArrival().getDefiningOp<ExchangeOp>()});
    for (auto [number, result] : llvm::enumerate(step.getResults())) {
      if (isa<LocalOp, HeadsOp>(step))
        continue; // the caller's rows
      Value shared = isa<WaitOp>(step) ? step.getOperand(0) : Value();
      if (isa<SumOp, JoinHeadsOp>(step) && read.size() == 1)
        shared = read.front();
      ValueRange before;
      if (auto attend = dyn_cast<AttendOp>(step))
        before = attend.getBefore();
      if (auto grads = dyn_cast<GradsOp>(step))
        before = grads.getBefore();
      if (number < before.size())
        shared = before[number];
      if (auto life = shared ? lifeOf.find(shared) : lifeOf.end(); life != lifeOf.end()) {
        lifeOf[result] = life->second;
      } else {
        lifeOf[result] = lives.size();
        lives.push_back({index, index, result});
      }
    }
    ++index;
  }
  llvm::DenseMap<Operation *, size_t> numbers;
  for (auto [number, step] : llvm::enumerate(plan.getBody().front()))
    numbers[&step] = number;
  for (auto [rank, of] : llvm::enumerate(costs.ranks)) {
    std::vector<double> changes(index + 1);
    std::vector<Packed> all;
    for (auto exchange : plan.getBody().front().getOps<ExchangeOp>()) {
      const Value source = exchange.getRows();
      const int64_t receiver = tables.receiver(exchange, int64_t(rank));
      const Held &sent = tables.held(exchange.getArrival(), receiver);
      if (sent.empty() || (!source.getDefiningOp<LocalOp>() && !source.getDefiningOp<HeadsOp>() &&
                           sent.sameAs(tables.held(source, int64_t(rank)))))
        continue;
      Operation *wait = *llvm::find_if(exchange.getArrival().getUsers(), llvm::IsaPred<WaitOp>);
      const size_t begin = numbers[exchange], end = numbers[wait];
      auto same = llvm::find_if(all, [&](const Packed &one) { return one.source == source && one.held.sameAs(sent); });
      if (same == all.end())
        all.push_back({source, sent, begin, end, bytesOf(exchange.getArrival(), receiver)});
      else
        same->end = std::max(same->end, end);
    }
    std::vector<size_t> ends;
    for (const Life &life : lives)
      ends.push_back(life.end);
    for (const Sent &one : sent)
      if (tables.sent(one.exchange, int64_t(rank)))
        ends[one.life] = std::max(ends[one.life], one.end);
    for (const Packed &one : all)
      changes[one.begin] += one.bytes, changes[one.end + 1] -= one.bytes;
    for (auto [life, end] : llvm::zip_equal(lives, ends)) {
      double bytes = bytesOf(life.value, int64_t(rank));
      changes[life.begin] += bytes, changes[end + 1] -= bytes;
    }
    double bytes = 0;
    for (double change : changes)
      of.peakBytes = std::max(of.peakBytes, bytes += change);
  }
}

PlanCosts Simulation::run(DefOp plan) {
  for (Operation &step : plan.getBody().front()) {
    if (auto exchange = dyn_cast<ExchangeOp>(step)) {
      send(exchange);
      continue;
    }
    for (int64_t rank = 0; rank < tables.ranks(); ++rank) {
      double end = readyAt(step.getOperands(), rank);
      llvm::TypeSwitch<Operation *>(&step)
          .Case([&](AttendOp op) { end = attend(op, rank, op.getBefore()); })
          .Case([&](GradsOp op) { end = attend(op, rank, op.getBefore()); })
          .Case<SumOp, JoinHeadsOp>([&](auto op) {
            double bytes = bytesOf(op->getResult(0), rank);
            for (Value part : op.getParts())
              bytes += bytesOf(part, rank);
            if (op.getParts().size() > 1 && bytes != 0)
              end = compute(rank, end, rates.launchUs + bytes / rates.copyGbps / 1e3);
          })
          .Case([&](StoreOp) { costs.ranks[rank].finishedMs = std::max(end, computeFree[rank]); });
      for (Value result : step.getResults())
        setReady(result, rank, end);
    }
  }
  findPeaks(plan);
  return std::move(costs);
}

std::shared_ptr<VisitedTiles> attn::plan::visitedTiles(MaskInterface mask, const CallSequences &sequences) {
  return std::make_shared<VisitedTiles>(mask, sequences);
}

PlanCosts attn::plan::costsOf(DefOp plan, ProblemOp problem, const Tables &tables, const CallSequences &sequences,
                              const Rates &rates, std::shared_ptr<VisitedTiles> tiles) {
  if (!tiles)
    tiles = visitedTiles(problem.getMask(), sequences);
  return Simulation(problem, tables, *tiles, rates, plan.getBackward()).run(plan);
}
