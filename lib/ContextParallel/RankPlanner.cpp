// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a plan to the launches and messages of one rank.
//
#include "RankPlanner.h"
#include "llvm/ADT/TypeSwitch.h"
#include <fmt/format.h>
#include <set>

using namespace attn;
using plan::Heads;
using plan::Held;
using plan::Shard;

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
  for (const ScoreOperand &array : arrays) // launches add to their gradients
    steps.actions.push_back(RankSteps::Steps::Clear{callers(gradientOf(array), Dtype::F32)});
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
