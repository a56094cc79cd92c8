// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a plan to the launches and messages of one rank.
//
#include "QueryParts.h"
#include "RankSteps.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include "llvm/ADT/TypeSwitch.h"
#include <fmt/format.h>
#include <set>

using namespace attn;
using plan::Heads;
using plan::Held;
using plan::Shard;

namespace {
/// What a rank has of a value: its tensors, as the kind of the value says, or nothing.
struct Place {
  Held held;
  std::vector<PlacedTensor> parts;
  std::vector<Place> addends = {}; ///< the value is their sum, and has no memory; they may lack rows and heads
};

/// Keys that a step attends to, or whose gradients it computes.
struct Term {
  mlir::Operation *step;
  size_t key; ///< the number among the step's keys
  std::shared_ptr<const Shard> keys;
};

/// The steps that make one result of some queries, each from what the one before has left.
struct Chain {
  mlir::Value last;       ///< the result
  bool completes = false; ///< no other rank continues it
  bool isSingle = false;  ///< kernels have at most one piece of a sequence on each side
  std::vector<Term> terms;
  std::vector<QueryPart> parts; ///< whose keys are terms
  Place unfinished, finished;   ///< float32 results that launches continue, and complete ones
  bool isCleared = false;       ///< is something in all rows of `finished`?

  bool isFirst(const QueryPart &part, size_t term) const { return part.keys.front() == term; }
  bool isLast(const QueryPart &part, size_t term) const { return completes && part.keys.back() == term; }
};

/// Gradients of the keys of a step.
struct KeyGradients {
  std::vector<Place> addends;
  std::map<std::pair<const QueryPart *, size_t>, size_t> ofParts; ///< addends of queries and a part of the heads
};

class Planner {
public:
  Planner(plan::DefOp plan, ProblemOp problem, BackwardOp backward, const plan::CallSequences &sequences,
          const plan::Tables &tables, int64_t rank, PlanKernels &kernels, RankSteps::Steps &steps)
      : plan(plan), problem(problem), backward(backward), sequences(sequences), tables(tables), rank(rank),
        kernels(kernels), steps(steps), visibility(problem.getMask(), problem.getHeads(), sequences),
        group(int64_t(problem.getHeads()) / int64_t(problem.getKvHeads())), data(dtypeOf(problem.getDtype())) {}

  rt::Status build();

private:
  using Kind = plan::Kind;
  Place &of(mlir::Value value) { return places.find(value)->second; }
  const Held &held(mlir::Value value) const { return tables.held(value, rank); }
  static Kind kindOf(mlir::Value value) {
    if (auto arrival = llvm::dyn_cast<plan::ArrivalType>(value.getType()))
      return arrival.getKind();
    return llvm::cast<plan::RowsType>(value.getType()).getKind();
  }
  static bool isComplete(mlir::Value value);
  /// The stored result that a value is, as the caller's tensors; none if it is another.
  std::vector<PlacedTensor> storedAs(mlir::Value value);

  PlacedTensor allocate(Dtype dtype, const Held &held, int64_t dim, bool isStatistic = false);
  std::vector<PlacedTensor> allocate(Kind kind, const Held &held, bool isComplete);
  /// Columns of a caller's tensor.
  int64_t dimOf(llvm::StringRef name) {
    return name == "q" || name == "k" || name == "dq" || name == "dk" ? problem.getDimQk() : problem.getDimV();
  }
  PlacedTensor integers(llvm::ArrayRef<int32_t> values, llvm::ArrayRef<int64_t> shape);
  PlacedTensor callers(llvm::StringRef name, Dtype dtype, bool isStatistic = false) {
    PlacedTensor tensor;
    tensor.memory = PlacedTensor::Memory::Caller;
    tensor.name = name.str(), tensor.dtype = dtype, tensor.isStatistic = isStatistic;
    return tensor;
  }
  std::vector<PlacedTensor> local(Kind kind);

  /// The arrays of the pieces of a side, and of its whole sequences, by name.
  const std::map<std::string, PlacedTensor> &piecesOf(bool ofKeys, const std::shared_ptr<const Shard> &shard);
  /// Those of both sides.
  std::map<std::string, PlacedTensor> piecesOf(const std::shared_ptr<const Shard> &queries,
                                               const std::shared_ptr<const Shard> &keys) {
    std::map<std::string, PlacedTensor> all = piecesOf(false, queries);
    const std::map<std::string, PlacedTensor> &others = piecesOf(true, keys);
    all.insert(others.begin(), others.end());
    return all;
  }
  rt::Status launch(PlanKernels::Made kernel, std::map<std::string, PlacedTensor> tensors);
  /// Rows of a destination from those of sources, by token and head: copied, or with several sources added.
  rt::Status gather(const Place &to, llvm::ArrayRef<const Place *> from);
  PlacedTensor indexOf(const Shard &to, llvm::ArrayRef<const Shard *> from);
  bool isNeeded(const Held &queries, const Held &keys) const;
  /// Are partial results in memory that nothing else has? They have one use (plan.def, C3), and what is sent stays.
  static bool isOwn(const Place &partial) { return !partial.parts.empty() && partial.parts[0].isContiguous(); }

  /// Calls `visit` with parts of the query heads that use whole kv heads, or a part of one: their number, those of kv
  /// heads, and the first of both among those that the rank has.
  rt::Status eachHeadPart(Heads queries, Heads keys,
                          llvm::function_ref<rt::Status(int64_t h, int64_t g, int64_t q0, int64_t k0)> visit);

  /// The chain of result `number` of a step, `plan.attend` or `plan.grads`.
  std::shared_ptr<Chain> chainOf(mlir::Operation *step, size_t number);
  void findTerms(Chain &chain, llvm::ArrayRef<mlir::Operation *> chained);
  void findParts(Chain &chain);
  /// Calls `visit` with the terms of a step whose keys have this number, and each part that has them.
  static rt::Status eachLaunch(const Chain &chain, mlir::Operation *step, size_t key,
                               llvm::function_ref<rt::Status(const QueryPart &part, size_t term)> visit);
  /// Where a launch writes: complete results, or those that others continue.
  Place &memoryOf(Chain &chain, Kind kind, bool isFinished);
  /// Complete gradients of rows in no part are zeros.
  rt::Status clear(Chain &chain);

  rt::Status exchange(plan::ExchangeOp op);
  rt::Status attend(plan::AttendOp op);
  rt::Status attend(Chain &chain, const QueryPart &part, size_t term, const Place &queries, const Place &keys);
  rt::Status differentiate(plan::GradsOp op);
  rt::Status differentiate(Chain &chain, const QueryPart &part, size_t term, const Place &queries, const Place &keys,
                           KeyGradients &gradients);
  /// Launches of a part whose results are not sent may wait for the next exchange in which this rank sends gradients:
  /// the message then moves meanwhile. Null: there is none.
  plan::ExchangeOp behind(plan::GradsOp op, const Chain &chain, const QueryPart &part) const;
  Place placeOf(mlir::Value dkv);
  rt::Status collect(mlir::Value result, mlir::ValueRange parts);
  rt::Status store(plan::StoreOp op);

  plan::DefOp plan;
  ProblemOp problem;
  BackwardOp backward;
  const plan::CallSequences &sequences;
  const plan::Tables &tables;
  int64_t rank;
  PlanKernels &kernels;
  RankSteps::Steps &steps;
  Visibility visibility;
  int64_t group; ///< query heads of a kv head
  Dtype data;
  PlacedTensor keyPositions; ///< without a shape until they are needed
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<mlir::Value, std::shared_ptr<Chain>> chains;                           ///< of each result
  std::map<const void *, KeyGradients> gradients;                                       ///< by the value of each result
  llvm::DenseMap<mlir::Operation *, std::vector<std::function<rt::Status()>>> deferred; ///< behind an exchange
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;                                   ///< of exchanges
  std::vector<std::pair<mlir::Value, Place>> packed; ///< parts of values that were sent
  std::map<std::pair<bool, const Shard *>, std::map<std::string, PlacedTensor>> pieces;
  std::vector<std::shared_ptr<const Shard>> kept; ///< whose pieces are known
};
} // namespace

/// Does no later step add to a result, which then has the dtype of the problem?
bool Planner::isComplete(mlir::Value value) {
  return llvm::none_of(value.getUsers(), [](mlir::Operation *user) {
    bool goesOn = llvm::isa<plan::ExchangeOp, plan::WaitOp, plan::JoinHeadsOp>(user);
    return llvm::isa<plan::AttendOp, plan::GradsOp>(user) || (goesOn && !isComplete(user->getResult(0)));
  });
}

std::vector<PlacedTensor> Planner::local(Kind kind) {
  switch (kind) {
  case Kind::q: {
    std::vector<PlacedTensor> views = {callers("q", data)};
    if (backward)
      views.insert(views.end(),
                   {callers("do", data), callers("o", data), callers("lse", Dtype::F32, /*isStatistic=*/true)});
    if (backward && backward.getDlse())
      views.push_back(callers("dlse", Dtype::F32, true));
    return views;
  }
  case Kind::kv:
    return {callers("k", data), callers("v", data)};
  case Kind::partial:
    return {callers("o", data), callers("lse", Dtype::F32, true)};
  case Kind::dq:
    return {callers("dq", data)};
  case Kind::dkv:
    return {callers("dk", data), callers("dv", data)};
  }
  llvm_unreachable("all kinds return");
}

std::vector<PlacedTensor> Planner::storedAs(mlir::Value value) {
  bool isStored = llvm::any_of(value.getUsers(), llvm::IsaPred<plan::StoreOp>);
  return isStored ? local(kindOf(value)) : std::vector<PlacedTensor>();
}

PlacedTensor Planner::allocate(Dtype dtype, const Held &held, int64_t dim, bool isStatistic) {
  PlacedTensor view;
  view.dtype = dtype, view.isStatistic = isStatistic, view.value = int64_t(steps.sizes.size());
  view.shape = {held.rows->rows, held.heads.size(), dim};
  if (isStatistic)
    view.shape = {held.heads.size(), held.rows->rows};
  steps.sizes.push_back(llvm::alignTo(view.bytes(), 256));
  return view;
}

std::vector<PlacedTensor> Planner::allocate(Kind kind, const Held &held, bool isComplete) {
  int64_t dimQk = problem.getDimQk(), dimV = problem.getDimV();
  auto tensor = [&](Dtype dtype, int64_t dim) { return allocate(dtype, held, dim); };
  auto statistic = [&] { return allocate(Dtype::F32, held, 1, /*isStatistic=*/true); };
  switch (kind) {
  case Kind::q: {
    std::vector<PlacedTensor> views = {tensor(data, dimQk)};
    if (backward)
      views.insert(views.end(), {tensor(data, dimV), tensor(data, dimV), statistic()});
    if (backward && backward.getDlse())
      views.push_back(statistic());
    return views;
  }
  case Kind::kv:
    return {tensor(data, dimQk), tensor(data, dimV)};
  case Kind::partial:
    if (isComplete)
      return {tensor(data, dimV), statistic()};
    return {tensor(Dtype::F32, dimV), statistic(), statistic()};
  case Kind::dq:
    return {tensor(isComplete ? data : Dtype::F32, dimQk)};
  case Kind::dkv:
    return {tensor(Dtype::F32, dimQk), tensor(Dtype::F32, dimV)};
  }
  llvm_unreachable("all kinds return");
}

PlacedTensor Planner::integers(llvm::ArrayRef<int32_t> values, llvm::ArrayRef<int64_t> shape) {
  PlacedTensor view;
  view.dtype = Dtype::I32, view.shape.assign(shape.begin(), shape.end());
  view.memory = PlacedTensor::Memory::Integers;
  view.offset = steps.integers.size() * sizeof(int32_t);
  llvm::append_range(steps.integers, values);
  return view;
}

const std::map<std::string, PlacedTensor> &Planner::piecesOf(bool ofKeys, const std::shared_ptr<const Shard> &shard) {
  auto [it, isNew] = pieces.try_emplace({ofKeys, shard.get()});
  if (!isNew)
    return it->second;
  kept.push_back(shard);
  llvm::SmallVector<plan::Run> runs;
  for (const plan::Run &run : shard->runs)
    if (run.length)
      runs.push_back(run);
  const std::vector<int64_t> &lengths = sequences.lengths[ofKeys];
  const int64_t count = runs.size(), line = count + 1, batch = lengths.size();
  std::vector<int32_t> lines(PieceLines * line), first(batch + 1), whole(batch + 1);
  std::vector<int32_t> order(count);
  for (int64_t i = 0; i < count; ++i) {
    const plan::Run &run = runs[i];
    lines[PieceRows * line + i] = run.row;
    lines[PieceEnds * line + i + 1] = lines[PieceEnds * line + i] + run.length;
    lines[PiecePositions * line + i] = run.position, lines[PieceSequences * line + i] = run.sequence;
    ++first[run.sequence + 1];
    order[i] = i;
  }
  if (count)
    lines[PieceRows * line + count] = runs.back().row + runs.back().length;
  llvm::sort(order, [&](int32_t a, int32_t b) {
    return std::pair(runs[a].sequence, runs[a].position) < std::pair(runs[b].sequence, runs[b].position);
  });
  llvm::copy(order, lines.begin() + PieceOrder * line);
  for (int64_t b = 0; b < batch; ++b)
    first[b + 1] += first[b], whole[b + 1] = whole[b] + lengths[b];
  const std::string side = ofKeys ? "kv" : "q";
  it->second["cu_seqlens_" + side] = integers(whole, {batch + 1});
  it->second["pieces_" + side] = integers(lines, {PieceLines, line});
  it->second["first_pieces_" + side] = integers(first, {batch + 1});
  if (ofKeys && llvm::any_of(problem.getMask().operands(), [](const MaskOperand &array) { return array.lists; })) {
    if (keyPositions.shape.empty()) {
      std::vector<int32_t> positions;
      for (int64_t length : lengths)
        for (int64_t position = 0; position < length; ++position)
          positions.push_back(position);
      keyPositions = integers(positions, {int64_t(positions.size())});
    }
    it->second[keyPositionsArray] = keyPositions;
  }
  return it->second;
}

rt::Status Planner::launch(PlanKernels::Made kernel, std::map<std::string, PlacedTensor> tensors) {
  if (!kernel)
    return kernel.error();
  RankSteps::Steps::Launch launch = {*kernel, {}};
  for (const rt::Program::Tensor &spec : (*kernel)->getTensors()) {
    auto found = tensors.find(spec.name);
    launch.tensors.push_back(found != tensors.end() ? found->second : callers(spec.name, spec.dtype));
  }
  steps.actions.push_back(std::move(launch));
  return {};
}

/// For each row of a shard, the row of its token in each of several; -1: none.
PlacedTensor Planner::indexOf(const Shard &to, llvm::ArrayRef<const Shard *> from) {
  std::vector<int32_t> index(to.rows * from.size(), -1);
  for (auto [part, shard] : llvm::enumerate(from)) {
    std::map<std::pair<int64_t, int64_t>, const plan::Run *> runs; // by sequence and position behind the last
    for (const plan::Run &run : shard->runs)
      if (run.length)
        runs[{run.sequence, run.position + run.length}] = &run;
    for (const plan::Run &own : to.runs)
      for (auto it = runs.upper_bound({own.sequence, own.position}); it != runs.end(); ++it) {
        const plan::Run &run = *it->second;
        int64_t begin = std::max(own.position, run.position),
                end = std::min(own.position + own.length, run.position + run.length);
        if (run.sequence != own.sequence || run.position >= own.position + own.length)
          break;
        for (int64_t position = begin; position < end; ++position)
          index[part * to.rows + own.row + position - own.position] = run.row + position - run.position;
      }
  }
  return integers(index, {int64_t(from.size()), to.rows});
}

rt::Status Planner::gather(const Place &to, llvm::ArrayRef<const Place *> all) {
  constexpr size_t most = 64;
  llvm::SmallVector<const Place *> from;
  for (const Place *source : all)
    if (source->addends.empty())
      from.push_back(source);
    else
      for (const Place &addend : source->addends)
        from.push_back(&addend);
  if (from.size() > most) {
    Place some = {to.held, {}};
    for (const PlacedTensor &target : to.parts)
      some.parts.push_back(allocate(Dtype::F32, to.held, target.isCallers() ? dimOf(target.name) : target.shape[2]));
    if (rt::Status done = gather(some, llvm::ArrayRef(from).take_front(most)); !done)
      return done;
    llvm::SmallVector<const Place *> left = {&some};
    llvm::append_range(left, llvm::ArrayRef(from).drop_front(most));
    return gather(to, left);
  }
  // Heads in which the same sources have a part.
  std::set<int64_t> bounds = {to.held.heads.begin, to.held.heads.end};
  for (const Place *source : from)
    for (int64_t bound : {source->held.heads.begin, source->held.heads.end})
      if (bound > to.held.heads.begin && bound < to.held.heads.end)
        bounds.insert(bound);
  for (auto it = bounds.begin(); std::next(it) != bounds.end(); ++it) {
    Heads heads = {*it, *std::next(it)};
    std::vector<const Place *> sources;
    std::vector<const Shard *> shards;
    for (const Place *source : from)
      if (!source->parts.empty() && source->held.heads.contain(heads))
        sources.push_back(source), shards.push_back(source->held.rows.get());
    static const Shard none;
    if (sources.empty())
      shards = {&none};
    PlacedTensor index = indexOf(*to.held.rows, shards);
    for (auto [number, target] : llvm::enumerate(to.parts)) {
      std::map<std::string, PlacedTensor> tensors = {{"index", index}};
      auto partOf = [&](const PlacedTensor &view, const Held &held) {
        PlacedTensor part = view.ofHeads(heads.begin - held.heads.begin, heads.size());
        part.asRows = part.isStatistic;
        return part;
      };
      int64_t dim = target.isStatistic ? 1 : target.isCallers() ? dimOf(target.name) : target.shape[2];
      tensors["result"] = partOf(target, to.held);
      Dtype type = sources.empty() ? target.dtype : sources[0]->parts[number].dtype;
      for (auto [i, source] : llvm::enumerate(sources))
        tensors["part_" + std::to_string(i)] = partOf(source->parts[number], source->held);
      if (sources.empty()) {
        PlacedTensor &empty = tensors["part_0"];
        empty.dtype = type, empty.shape = {0, heads.size(), dim};
      }
      if (rt::Status done = launch(kernels.gatherRows(shards.size(), heads.size(), dim, target.dtype, type), tensors);
          !done)
        return done;
    }
  }
  return {};
}

/// May a query, which is one of those of its owner, see a key?
bool Planner::isNeeded(const Held &queries, const Held &keys) const {
  if (queries.empty() || keys.empty())
    return false;
  for (const plan::Run &run : keys.rows->runs)
    for (auto [begin, end] : tables.seenBy(queries.owner, run.sequence))
      if (begin < run.position + run.length && run.position < end)
        return true;
  return false;
}

rt::Status Planner::eachHeadPart(Heads queries, Heads keys,
                                 llvm::function_ref<rt::Status(int64_t h, int64_t g, int64_t q0, int64_t k0)> visit) {
  for (int64_t head = queries.begin; head < queries.end;) {
    int64_t kvHead = head / group, end = std::min((kvHead + 1) * group, queries.end), kvHeads = 1;
    if (head % group == 0 && end == (kvHead + 1) * group) { // as many whole groups as there are
      kvHeads = (queries.end - head) / group;
      end = head + kvHeads * group;
    }
    if (rt::Status done = visit(end - head, kvHeads, head - queries.begin, kvHead - keys.begin); !done)
      return done;
    head = end;
  }
  return {};
}

rt::Status Planner::exchange(plan::ExchangeOp op) {
  int64_t number = numbers.size(), to = tables.receiver(op, rank), from = tables.sender(op, rank);
  numbers[op] = number;
  Kind kind = kindOf(op.getArrival());
  steps.names->exchanges.push_back(plan::stringifyKind(kind).str());
  bool complete = isComplete(op.getArrival());
  RankSteps::Steps::Post post = {number, to, from, {}, {}};
  const Held &sent = tables.held(op.getArrival(), to), &received = held(op.getArrival());
  if (!sent.empty()) {
    const Place &source = of(op.getRows());
    bool isWhole = *sent.rows == *source.held.rows && sent.heads == source.held.heads &&
                   llvm::all_of(source.parts, [](const PlacedTensor &view) { return view.isContiguous(); }) &&
                   !source.parts.empty();
    if (isWhole) {
      post.sent = source.parts;
    } else {
      auto same = llvm::find_if(packed, [&](auto &other) {
        return other.first == op.getRows() && *other.second.held.rows == *sent.rows &&
               other.second.held.heads == sent.heads;
      });
      if (same == packed.end()) { // several ranks may get the same rows
        Place made = {sent, allocate(kind, sent, complete)};
        if (rt::Status done = gather(made, &source); !done)
          return done;
        packed.push_back({op.getRows(), made});
        same = std::prev(packed.end());
      }
      post.sent = same->second.parts;
    }
  }
  Place arriving = {received, {}};
  if (!received.empty())
    post.received = arriving.parts = allocate(kind, received, complete);
  places[op.getArrival()] = std::move(arriving);
  if (!post.sent.empty() || !post.received.empty())
    steps.actions.push_back(std::move(post));
  for (const std::function<rt::Status()> &launch : deferred[op])
    if (rt::Status done = launch(); !done)
      return done;
  return {};
}

/// Result `number` of a step.
static mlir::Value resultOf(mlir::Operation *step, size_t number) {
  auto grads = llvm::dyn_cast<plan::GradsOp>(step);
  return grads ? grads.getDq()[number] : llvm::cast<plan::AttendOp>(step).getPartials()[number];
}

/// The results that a step continues.
static mlir::ValueRange beforeOf(mlir::Operation *step) {
  auto grads = llvm::dyn_cast<plan::GradsOp>(step);
  return grads ? grads.getBefore() : llvm::cast<plan::AttendOp>(step).getBefore();
}

std::shared_ptr<Chain> Planner::chainOf(mlir::Operation *step, size_t number) {
  mlir::Value result = resultOf(step, number);
  if (auto found = chains.find(result); found != chains.end())
    return found->second;
  auto chain = std::make_shared<Chain>();
  chain->unfinished.held = chain->finished.held = held(result);
  const bool begins = beforeOf(step).empty();
  if (!begins)
    chain->unfinished.parts = of(beforeOf(step)[number]).parts;
  llvm::SmallVector<mlir::Operation *> chained;
  for (mlir::Operation *next = step; next;) {
    chained.push_back(next);
    chain->last = resultOf(next, number);
    chains[chain->last] = chain;
    mlir::Operation *user = *chain->last.user_begin(); // the only one (plan.def, C3)
    next = llvm::isa<plan::AttendOp, plan::GradsOp>(user) ? user : nullptr;
    if (next)
      number = std::distance(beforeOf(next).begin(), llvm::find(beforeOf(next), chain->last));
  }
  chain->completes = isComplete(chain->last);
  chain->isSingle = llvm::isa<plan::GradsOp>(step) && chain->completes && begins && kernels.splitsPieces();
  findTerms(*chain, chained);
  findParts(*chain);
  return chain;
}

void Planner::findTerms(Chain &chain, llvm::ArrayRef<mlir::Operation *> chained) {
  constexpr int64_t most = 4; // runs of a sequence on a side with kernels for single ones; others loop over them
  const Held &queries = chain.finished.held;
  chain.isSingle &= mostRuns(*queries.rows) <= most;
  for (mlir::Operation *step : chained)
    for (auto [number, value] : llvm::enumerate(plan::keysOf(step)))
      if (isNeeded(queries, held(value))) {
        chain.terms.push_back({step, number, held(value).rows});
        chain.isSingle &= mostRuns(*held(value).rows) <= most;
      }
  if (chain.isSingle) {
    std::vector<Term> single;
    for (const Term &term : chain.terms)
      for (const std::shared_ptr<const Shard> &runs : singleRuns(*term.keys))
        single.push_back({term.step, term.key, runs});
    chain.terms = std::move(single);
  }
  if (chain.terms.empty() && llvm::isa<plan::AttendOp>(chained.front())) // queries that see nothing have results
    chain.terms.push_back({chained.front(), 0, held(plan::keysOf(chained.front()).front()).rows});
}

void Planner::findParts(Chain &chain) {
  const Held &queries = chain.finished.held;
  const bool ofGradients = chain.terms.empty() || llvm::isa<plan::GradsOp>(chain.terms.front().step);
  const int64_t rowBytes = 4 * queries.heads.size() * int64_t(ofGradients ? problem.getDimQk() : problem.getDimV()),
                leastRows = llvm::divideCeil(kernels.leastSplit(), rowBytes);
  const bool divides = chain.isSingle || (!ofGradients && chain.completes && chain.unfinished.parts.empty() &&
                                          chain.terms.size() > 1 && queries.rows->rows > leastRows);
  if (!divides) {
    QueryPart all = {queries.rows, {}};
    for (size_t term = 0; term < chain.terms.size(); ++term)
      all.keys.push_back(term);
    chain.parts.push_back(all);
    return;
  }
  llvm::SmallVector<const Shard *> keys;
  for (const Term &term : chain.terms)
    keys.push_back(term.keys.get());
  chain.parts = partsOf(*queries.rows, keys, visibility, leastRows, chain.isSingle);
  for (QueryPart &part : chain.parts)
    if (part.keys.empty() && !ofGradients)
      part.keys.push_back(0);
}

rt::Status Planner::eachLaunch(const Chain &chain, mlir::Operation *step, size_t key,
                               llvm::function_ref<rt::Status(const QueryPart &part, size_t term)> visit) {
  for (auto [number, term] : llvm::enumerate(chain.terms))
    for (const QueryPart &part : chain.parts)
      if (term.step == step && term.key == key && llvm::is_contained(part.keys, number))
        if (rt::Status done = visit(part, number); !done)
          return done;
  return {};
}

Place &Planner::memoryOf(Chain &chain, Kind kind, bool isFinished) {
  Place &place = isFinished ? chain.finished : chain.unfinished;
  if (isFinished && place.parts.empty())
    place.parts = storedAs(chain.last);
  if (place.parts.empty() || (!isFinished && !isOwn(place)))
    place.parts = allocate(kind, place.held, isFinished);
  return place;
}

rt::Status Planner::attend(Chain &chain, const QueryPart &part, size_t term, const Place &queries, const Place &keys) {
  const bool isLast = chain.isLast(part, term), divides = chain.parts.size() > 1;
  const bool keepsPadding = divides && (!isLast || chain.isCleared);
  const Place before = divides && chain.isFirst(part, term) ? Place() : chain.unfinished;
  const Place next = memoryOf(chain, Kind::partial, isLast); // a tile reads its rows before it writes them
  Place own = keys;
  if (own.parts.empty()) { // buffers without rows do not exist
    own.held = {std::make_shared<Shard>(), keys.held.owner, tables.keyHeads(queries.held.heads)};
    own.parts = allocate(Kind::kv, own.held, true);
  }
  chain.isCleared |= isLast;
  return eachHeadPart(
      queries.held.heads, own.held.heads, [&](int64_t h, int64_t g, int64_t q0, int64_t k0) -> rt::Status {
        std::map<std::string, PlacedTensor> tensors = piecesOf(part.rows, own.held.rows);
        tensors["q"] = queries.parts[0].ofHeads(q0, h);
        tensors["k"] = own.parts[0].ofHeads(k0, g), tensors["v"] = own.parts[1].ofHeads(k0, g);
        const char *states[] = {"o", isLast ? "lse" : "row_max", "row_sum"};
        for (auto [number, view] : llvm::enumerate(next.parts))
          tensors[states[number]] = view.ofHeads(q0, h);
        const char *continued[] = {"before_o", "before_row_max", "before_row_sum"};
        for (auto [number, view] : llvm::enumerate(before.parts))
          tensors[continued[number]] = view.ofHeads(q0, h);
        return launch(kernels.attend({queries.held.heads.begin + q0, h, g}, /*continues=*/!before.parts.empty(),
                                     /*isPartial=*/!isLast, keepsPadding),
                      tensors);
      });
}

rt::Status Planner::attend(plan::AttendOp op) {
  for (auto [i, query] : llvm::enumerate(op.getQueries())) {
    mlir::Value result = op.getPartials()[i];
    const Place queries = of(query);
    if (queries.held.empty()) {
      places[result] = {held(result), {}};
      continue;
    }
    std::shared_ptr<Chain> chain = chainOf(op, i);
    for (size_t key = 0; key < op.getKeys().size(); ++key)
      if (rt::Status done = eachLaunch(*chain, op, key,
                                       [&](const QueryPart &part, size_t term) {
                                         return attend(*chain, part, term, queries, of(op.getKeys()[key]));
                                       });
          !done)
        return done;
    places[result] = chain->completes && result == chain->last ? chain->finished : chain->unfinished;
  }
  return {};
}

rt::Status Planner::clear(Chain &chain) {
  if (std::exchange(chain.isCleared, true) || (!chain.isSingle && !chain.terms.empty()))
    return {};
  int64_t rows = 0;
  for (const QueryPart &part : chain.parts)
    if (!part.keys.empty())
      rows += part.rows->tokens();
  const Place &finished = memoryOf(chain, Kind::dq, /*isFinished=*/true);
  if (rows == finished.held.rows->rows)
    return {};
  const Place nothing = {finished.held, {}};
  return gather(finished, chain.isSingle ? &nothing : &chain.unfinished);
}

rt::Status Planner::differentiate(Chain &chain, const QueryPart &part, size_t term, const Place &queries,
                                  const Place &keys, KeyGradients &gradients) {
  const bool isLast = chain.isLast(part, term), isSingle = chain.isSingle;
  if (isLast)
    if (rt::Status done = clear(chain); !done)
      return done;
  const Place before = isSingle && chain.isFirst(part, term) ? Place() : chain.unfinished;
  const Place next = memoryOf(chain, Kind::dq, isLast);
  std::shared_ptr<const Shard> rows =
      isSingle ? keysSeen(*chain.terms[term].keys, *part.rows, visibility) : keys.held.rows;
  size_t headPart = 0; // parts of a kv head have gradients of their own, which are added
  return eachHeadPart(
      queries.held.heads, keys.held.heads, [&](int64_t h, int64_t g, int64_t q0, int64_t k0) -> rt::Status {
        size_t number = gradients.addends.size();
        if (isSingle)
          number = gradients.ofParts.try_emplace({&part, headPart++}, number).first->second;
        if (number == gradients.addends.size()) {
          Held own = {isSingle ? std::make_shared<Shard>(Shard{rows->rows, {}}) : rows,
                      keys.held.owner,
                      {keys.held.heads.begin + k0, keys.held.heads.begin + k0 + g}};
          gradients.addends.push_back({own, allocate(Kind::dkv, own, true)});
        }
        Place &sum = gradients.addends[number];
        if (isSingle) { // launches of one part have keys of their own
          Shard all = *sum.held.rows;
          llvm::append_range(all.runs, rows->runs);
          llvm::sort(all.runs, [](const plan::Run &a, const plan::Run &b) { return a.row < b.row; });
          sum.held.rows = std::make_shared<Shard>(std::move(all));
        }
        std::map<std::string, PlacedTensor> tensors = piecesOf(part.rows, rows);
        const char *ofQueries[] = {"q", "do", "o", "lse", "dlse"};
        for (auto [number, view] : llvm::enumerate(queries.parts))
          tensors[ofQueries[number]] = view.ofHeads(q0, h);
        tensors["k"] = keys.parts[0].ofHeads(k0, g), tensors["v"] = keys.parts[1].ofHeads(k0, g);
        tensors["dk"] = sum.parts[0], tensors["dv"] = sum.parts[1];
        tensors["dq"] = next.parts[0].ofHeads(q0, h);
        if (!before.parts.empty())
          tensors["before_dq"] = before.parts[0].ofHeads(q0, h);
        return launch(kernels.differentiate({queries.held.heads.begin + q0, h, g}, /*adds=*/!before.parts.empty(),
                                            /*isComplete=*/isLast, isSingle),
                      tensors);
      });
}

plan::ExchangeOp Planner::behind(plan::GradsOp op, const Chain &chain, const QueryPart &part) const {
  if (!chain.isSingle)
    return {};
  llvm::SmallPtrSet<mlir::Operation *, 4> users = {*chain.last.user_begin()};
  for (size_t number : part.keys) {
    const Term &term = chain.terms[number];
    if (term.step != op) // another step continues the part
      return {};
    users.insert(op.getDkv()[term.key].user_begin(), op.getDkv()[term.key].user_end());
  }
  for (mlir::Operation *next = op->getNextNode(); !users.contains(next); next = next->getNextNode())
    if (auto exchange = llvm::dyn_cast<plan::ExchangeOp>(next); exchange && kindOf(exchange.getArrival()) == Kind::dkv)
      if (!tables.held(exchange.getArrival(), tables.receiver(exchange, rank)).empty())
        return exchange;
  return {};
}

Place Planner::placeOf(mlir::Value dkv) {
  Place sum = {held(dkv), {}};
  const std::vector<Place> &addends = gradients[dkv.getAsOpaquePointer()].addends;
  if (addends.size() == 1 && addends[0].held.rows == sum.held.rows && addends[0].held.heads == sum.held.heads)
    sum.parts = addends[0].parts;
  else if (!sum.held.empty())
    sum.addends = addends;
  return sum;
}

rt::Status Planner::differentiate(plan::GradsOp op) {
  for (auto [j, key] : llvm::enumerate(op.getKeys()))
    for (auto [i, query] : llvm::enumerate(op.getQueries())) {
      const Place queries = of(query);
      if (queries.held.empty())
        continue;
      std::shared_ptr<Chain> chain = chainOf(op, i);
      mlir::Value result = op.getDkv()[j];
      rt::Status done = eachLaunch(*chain, op, j, [&, key = key](const QueryPart &part, size_t term) -> rt::Status {
        auto launch = [=, this, &part] {
          rt::Status launched =
              differentiate(*chain, part, term, queries, of(key), gradients[result.getAsOpaquePointer()]);
          places[result] = placeOf(result);
          return launched;
        };
        plan::ExchangeOp later = behind(op, *chain, part);
        if (!later)
          return launch();
        deferred[later].push_back(launch);
        return {};
      });
      if (!done)
        return done;
    }
  for (auto [i, result] : llvm::enumerate(op.getDq())) {
    if (held(result).empty()) {
      places[result] = {held(result), {}};
      continue;
    }
    std::shared_ptr<Chain> chain = chainOf(op, i);
    const bool isFinished = chain->completes && result == chain->last;
    if (isFinished)
      if (rt::Status done = clear(*chain); !done)
        return done;
    places[result] = isFinished ? chain->finished : chain->unfinished;
  }
  for (mlir::Value result : op.getDkv())
    places[result] = placeOf(result);
  return {};
}

/// Sums of gradients, or heads side by side.
rt::Status Planner::collect(mlir::Value result, mlir::ValueRange parts) {
  Place made = {held(result), storedAs(result)};
  if (made.held.empty())
    made.parts.clear();
  else if (made.parts.empty())
    made.parts = allocate(kindOf(result), made.held, isComplete(result));
  llvm::SmallVector<const Place *> from;
  for (mlir::Value part : parts)
    from.push_back(&of(part));
  if (!made.held.empty())
    if (rt::Status done = gather(made, from); !done)
      return done;
  places[result] = made;
  return {};
}

/// What is not in the caller's tensors yet goes there.
rt::Status Planner::store(plan::StoreOp op) {
  for (mlir::Value value : op.getRows()) {
    const Place &source = of(value);
    if (source.held.rows->rows == 0 || (!source.parts.empty() && source.parts[0].isCallers()))
      continue;
    if (rt::Status done = gather({source.held, local(kindOf(value))}, &source); !done)
      return done;
  }
  return {};
}

rt::Status Planner::build() {
  steps.names->plan = "@" + plan.getSymName().str();
  steps.rank = rank;
  const int64_t queries = tables.shardOf(false, rank).rows, keys = tables.shardOf(true, rank).rows,
                heads = problem.getHeads(), kvHeads = problem.getKvHeads();
  for (const char *name : {"q", "do", "o", "dq"})
    steps.shapes[name] = {queries, heads, dimOf(name)};
  for (const char *name : {"k", "v", "dk", "dv"})
    steps.shapes[name] = {keys, kvHeads, dimOf(name)};
  for (const char *name : {"lse", "dlse"})
    steps.shapes[name] = {heads, queries};
  for (mlir::Operation &step : plan.getBody().front()) {
    rt::Status done =
        llvm::TypeSwitch<mlir::Operation *, rt::Status>(&step)
            .Case([&](plan::LocalOp op) {
              places[op.getRows()] = {held(op.getRows()), local(kindOf(op.getRows()))};
              return rt::Status();
            })
            .Case([&](plan::HeadsOp op) {
              const Place whole = of(op.getRows());
              Place part = {held(op.getPart()), {}};
              for (const PlacedTensor &view : whole.parts)
                if (!part.held.empty())
                  part.parts.push_back(view.ofHeads(part.held.heads.begin, part.held.heads.size()));
              places[op.getPart()] = part;
              return rt::Status();
            })
            .Case([&](plan::ExchangeOp op) { return exchange(op); })
            .Case([&](plan::WaitOp op) {
              auto exchanged = op.getArrival().getDefiningOp<plan::ExchangeOp>();
              const Place arrived = of(op.getArrival());
              RankSteps::Steps::Wait wait = {numbers.lookup(exchanged), {}, {}};
              if (!arrived.parts.empty())
                wait.from = tables.sender(exchanged, rank);
              if (int64_t to = tables.receiver(exchanged, rank); !tables.held(op.getArrival(), to).empty())
                wait.to = to;
              if (wait.from || wait.to)
                steps.actions.push_back(wait);
              places[op.getRows()] = arrived;
              return rt::Status();
            })
            .Case([&](plan::AttendOp op) { return attend(op); })
            .Case([&](plan::GradsOp op) { return differentiate(op); })
            .Case([&](plan::SumOp op) { return collect(op.getSum(), op.getParts()); })
            .Case([&](plan::JoinHeadsOp op) { return collect(op.getJoined(), op.getParts()); })
            .Case([&](plan::StoreOp op) { return store(op); });
    if (!done)
      return done;
  }
  return {};
}

rt::Status attn::planRank(plan::DefOp plan, ProblemOp problem, BackwardOp backward,
                          const plan::CallSequences &sequences, const plan::Tables &tables, int64_t rank,
                          PlanKernels &kernels, RankSteps::Steps &steps) {
  rt::Status built = Planner(plan, problem, backward, sequences, tables, rank, kernels, steps).build();
  steps.placeValues();
  return built;
}
