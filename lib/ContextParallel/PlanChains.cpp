// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches that make one result of some queries, from what the steps of a plan attend to.
//
#include "RankPlanner.h"

using namespace attn;
using plan::Heads;
using plan::Held;
using plan::Shard;

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

rt::Status Planner::eachHeadPart(Heads queries, Heads keys, int64_t most,
                                 llvm::function_ref<rt::Status(int64_t h, int64_t g, int64_t q0, int64_t k0)> visit) {
  for (int64_t head = queries.begin; head < queries.end;) {
    int64_t kvHead = head / group, end = std::min((kvHead + 1) * group, queries.end), kvHeads = 1;
    if (head % group == 0 && end == (kvHead + 1) * group) { // as many whole groups as there are
      kvHeads = std::min((queries.end - head) / group, most);
      end = head + kvHeads * group;
    }
    if (rt::Status done = visit(end - head, kvHeads, head - queries.begin, kvHead - keys.begin); !done)
      return done;
    head = end;
  }
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

/// Has a rank so few runs of each sequence that queries may be divided? With many, as of stripes, parts and launches
/// would be many.
static bool hasFewRuns(const Held &queries, llvm::ArrayRef<Term> terms) {
  constexpr int64_t most = 4;
  return mostRuns(*queries.rows) <= most &&
         llvm::all_of(terms, [](const Term &term) { return mostRuns(*term.keys) <= most; });
}

/// Are launches for single pieces so few, for their work, that the products they save take longer than they do?
bool Planner::isWorthSingle(const Held &queries, llvm::ArrayRef<Term> terms) {
  auto bySequence = [](const plan::Run &a, const plan::Run &b) { return a.sequence < b.sequence; };
  double pairs = 0, launches = 0;
  std::vector<plan::Run> runs;
  for (const Term &term : terms) {
    launches += double(mostRuns(*queries.rows) * mostRuns(*term.keys));
    runs = term.keys->runs;
    llvm::stable_sort(runs, bySequence);
    for (const plan::Run &run : queries.rows->runs) {
      auto [first, last] = std::equal_range(runs.begin(), runs.end(), run, bySequence);
      if (first == last)
        continue;
      Span seen = visibility.keysSeenBy(run.sequence, spanOf(run));
      for (; first != last; ++first) {
        Span common = seen.common(spanOf(*first));
        pairs += common.empty() ? 0 : double(run.length) * double(common.end - common.begin);
      }
    }
  }
  const double dims = double(problem.getDimQk() + problem.getDimV()) / 2;
  return pairs * double(queries.heads.size()) * dims >= kernels.leastSingle() * launches;
}

void Planner::findTerms(Chain &chain, llvm::ArrayRef<mlir::Operation *> chained) {
  const Held &queries = chain.finished.held;
  for (mlir::Operation *step : chained)
    for (auto [number, value] : llvm::enumerate(plan::keysOf(step)))
      if (isNeeded(queries, held(value)))
        chain.terms.push_back({step, number, held(value).rows});
  chain.isSingle = chain.isSingle && hasFewRuns(queries, chain.terms) && isWorthSingle(queries, chain.terms);
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
  const bool divides =
      chain.isSingle || (!ofGradients && chain.completes && chain.unfinished.parts.empty() && chain.terms.size() > 1 &&
                         queries.rows->rows > leastRows && hasFewRuns(queries, chain.terms));
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
  for (QueryPart &part : chain.parts) {
    if (part.keys.empty() && !ofGradients)
      part.keys.push_back(0);
    packKeys(chain, part);
  }
}

static mlir::Value keysOf(const Term &term) { return plan::keysOf(term.step)[term.key]; }

void Planner::packKeys(const Chain &chain, QueryPart &part) {
  if (part.keys.size() < 2 || !chain.completes || !chain.unfinished.parts.empty())
    return;
  // Launches of the other rows run while the last keys are on their way.
  constexpr int64_t share = 4, mostBytes = int64_t(32) << 20;
  if (part.rows->tokens() * share > chain.finished.held.rows->tokens())
    return;
  mlir::Operation *last = chain.terms[part.keys.back()].step;
  const Heads heads = held(keysOf(chain.terms[part.keys.front()])).heads;
  llvm::SmallVector<const Shard *> keys;
  for (size_t number : part.keys) {
    const Term &term = chain.terms[number];
    keys.push_back(term.keys.get());
    if (held(keysOf(term)).heads != heads)
      return;
    if (auto grads = llvm::dyn_cast<plan::GradsOp>(term.step))
      for (mlir::Operation *user : grads.getDkv()[term.key].getUsers())
        if (user->isBeforeInBlock(last)) // needs the gradients of these keys before the others are here
          return;
  }
  std::shared_ptr<const Shard> packed = packedKeys(keys, *part.rows, visibility);
  const int64_t rowBytes = int64_t(rt::sizeOf(data)) * heads.size() * (problem.getDimQk() + problem.getDimV());
  if (packed->rows * rowBytes <= mostBytes && (!chain.isSingle || mostRuns(*packed) <= 1))
    part.packed = packed;
}

rt::Result<Place> Planner::pack(const Chain &chain, const QueryPart &part) {
  llvm::SmallVector<mlir::Value> values;
  for (size_t number : part.keys)
    if (mlir::Value value = keysOf(chain.terms[number]); !llvm::is_contained(values, value))
      values.push_back(value);
  Place packed = {{part.packed, chain.finished.held.owner, held(values.front()).heads}, {}};
  packed.parts = allocate(Kind::kv, packed.held, true);
  llvm::SmallVector<const Place *> from;
  for (mlir::Value value : values)
    from.push_back(&of(value));
  if (rt::Status done = gather(packed, from); !done)
    return done.error();
  return packed;
}

rt::Status Planner::eachLaunch(const Chain &chain, mlir::Operation *step, size_t key,
                               llvm::function_ref<rt::Status(const QueryPart &part, size_t term)> visit) {
  for (auto [number, term] : llvm::enumerate(chain.terms))
    for (const QueryPart &part : chain.parts)
      if (term.step == step && term.key == key &&
          (part.packed ? part.keys.back() == number : llvm::is_contained(part.keys, number)))
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
  if (part.packed) {
    rt::Result<Place> packed = pack(chain, part);
    if (!packed)
      return packed.error();
    own = *packed;
  }
  if (own.parts.empty()) { // buffers without rows do not exist
    own.held = {std::make_shared<Shard>(), keys.held.owner, tables.keyHeads(queries.held.heads)};
    own.parts = allocate(Kind::kv, own.held, true);
  }
  chain.isCleared |= isLast;
  return eachHeadPart(queries.held.heads, own.held.heads, /*most=*/INT64_MAX,
                      [&](int64_t h, int64_t g, int64_t q0, int64_t k0) -> rt::Status {
                        std::map<std::string, PlacedTensor> tensors = piecesOf(part.rows, own.held.rows);
                        tensors["q"] = queries.parts[0].ofHeads(q0, h);
                        tensors["k"] = own.parts[0].ofHeads(k0, g), tensors["v"] = own.parts[1].ofHeads(k0, g);
                        const char *states[] = {"o", isLast ? "lse" : "row_max", "row_sum"};
                        for (auto [number, view] : llvm::enumerate(next.parts))
                          tensors[states[number]] = view.ofHeads(q0, h);
                        const char *continued[] = {"before_o", "before_row_max", "before_row_sum"};
                        for (auto [number, view] : llvm::enumerate(before.parts))
                          tensors[continued[number]] = view.ofHeads(q0, h);
                        return launch(kernels.attend({queries.held.heads.begin + q0, h, g},
                                                     /*continues=*/!before.parts.empty(),
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

/// Have two shards of one buffer no row in common? Their runs ascend by rows.
static bool areApart(const Shard &a, const Shard &b) {
  auto other = b.runs.begin();
  for (const plan::Run &run : a.runs) {
    while (other != b.runs.end() && other->row + other->length <= run.row)
      ++other;
    if (other != b.runs.end() && other->row < run.row + run.length)
      return false;
  }
  return true;
}

rt::Status Planner::differentiate(Chain &chain, const QueryPart &part, size_t term, const Place &queries,
                                  const Place &keys) {
  const bool isLast = chain.isLast(part, term), isSingle = chain.isSingle;
  if (isLast)
    if (rt::Status done = clear(chain); !done)
      return done;
  const Place before = isSingle && chain.isFirst(part, term) ? Place() : chain.unfinished;
  const Place next = memoryOf(chain, Kind::dq, isLast);
  Place own = keys;
  std::shared_ptr<const Shard> rows = keys.held.rows;
  if (part.packed) {
    rt::Result<Place> packed = pack(chain, part);
    if (!packed)
      return packed.error();
    own = *packed, rows = part.packed;
  } else if (isSingle) {
    rows = keysSeen(*chain.terms[term].keys, *part.rows, visibility);
  }
  int64_t longest = 0; // tiles in use at a time are those of few sequences
  for (const plan::Run &run : part.rows->runs)
    longest = std::max(longest, run.length);
  const int64_t most = isSingle ? kernels.mostKvHeads(longest, rows->tokens()) : INT64_MAX;
  return eachHeadPart(
      queries.held.heads, own.held.heads, most, [&](int64_t h, int64_t g, int64_t q0, int64_t k0) -> rt::Status {
        const Heads heads = {own.held.heads.begin + k0, own.held.heads.begin + k0 + g};
        std::vector<PlacedTensor> sums = gradientsOf(chain, part, term, {rows, own.held.owner, heads});
        std::map<std::string, PlacedTensor> tensors = piecesOf(part.rows, rows);
        const char *ofQueries[] = {"q", "do", "o", "lse", "dlse"};
        for (auto [number, view] : llvm::enumerate(queries.parts))
          tensors[ofQueries[number]] = view.ofHeads(q0, h);
        tensors["k"] = own.parts[0].ofHeads(k0, g), tensors["v"] = own.parts[1].ofHeads(k0, g);
        tensors["dk"] = sums[0], tensors["dv"] = sums[1];
        tensors["dq"] = next.parts[0].ofHeads(q0, h);
        if (!before.parts.empty())
          tensors["before_dq"] = before.parts[0].ofHeads(q0, h);
        for (const ScoreOperand &array : arrays)
          tensors[gradientBefore(array)] = callers(gradientOf(array), Dtype::F32);
        return launch(kernels.differentiate({queries.held.heads.begin + q0, h, g}, /*adds=*/!before.parts.empty(),
                                            /*isComplete=*/isLast, isSingle),
                      tensors);
      });
}

std::vector<PlacedTensor> Planner::gradientsOf(const Chain &chain, const QueryPart &part, size_t term,
                                               const Held &keys) {
  auto addendsOf = [&](const Term &of) -> std::vector<Place> & {
    return gradients[llvm::cast<plan::GradsOp>(of.step).getDkv()[of.key].getAsOpaquePointer()];
  };
  if (part.packed) { // those of each buffer are some rows of it
    std::vector<PlacedTensor> sums = allocate(Kind::dkv, keys, true);
    for (size_t number : part.keys) {
      const Term &of = chain.terms[number];
      llvm::SmallVector<plan::Run> runs;
      const std::shared_ptr<const Shard> seen = keysSeen(*of.keys, *part.rows, visibility);
      for (const plan::Run &own : seen->runs) {
        auto whole = llvm::find_if(keys.rows->runs, [&](const plan::Run &run) {
          return run.sequence == own.sequence && !spanOf(run).common(spanOf(own)).empty();
        });
        runs.push_back({whole->row + own.position - whole->position, own.sequence, own.position, own.length});
      }
      auto rows = std::make_shared<Shard>(Shard{keys.rows->rows, {}});
      addRuns(*rows, runs);
      addendsOf(of).push_back({{rows, held(keysOf(of)).owner, keys.heads}, sums, {}, /*isPacked=*/true});
    }
    return sums;
  }
  std::vector<Place> &addends = addendsOf(chain.terms[term]);
  // Launches add nothing to dK and dV: those of other keys of the same heads may be in one buffer.
  auto found = llvm::find_if(addends, [&](const Place &addend) {
    return chain.isSingle && !addend.isPacked && addend.held.heads == keys.heads &&
           areApart(*addend.held.rows, *keys.rows);
  });
  if (found == addends.end()) {
    addends.push_back({keys, allocate(Kind::dkv, keys, true)});
    return addends.back().parts;
  }
  auto all = std::make_shared<Shard>(*found->held.rows);
  addRuns(*all, keys.rows->runs);
  found->held.rows = all;
  return found->parts;
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
  const std::vector<Place> &addends = gradients[dkv.getAsOpaquePointer()];
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
      rt::Status done = eachLaunch(*chain, op, j, [&, key = key](const QueryPart &part, size_t term) -> rt::Status {
        auto launch = [=, this, &part] {
          rt::Status launched = differentiate(*chain, part, term, queries, of(key));
          for (size_t number : part.packed ? llvm::ArrayRef<size_t>(part.keys) : llvm::ArrayRef<size_t>(term)) {
            const Term &own = chain->terms[number];
            mlir::Value dkv = llvm::cast<plan::GradsOp>(own.step).getDkv()[own.key];
            places[dkv] = placeOf(dkv);
          }
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
