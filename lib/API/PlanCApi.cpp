// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CApi.h"
#include "attn-c/Plan.h"
#include "attn-rt/CTensors.h"
#include "attn/ContextParallel/RunPlan.h"
#include "attn/Dialect/Plan/Analysis/Costs.h"
#include "attn/Dialect/Plan/Transforms/Passes.h"
#include <fmt/format.h>

using namespace attn;

struct attnTransport {
  std::shared_ptr<Transport> transport;
};

struct attnLocalRanks {
  std::shared_ptr<LocalRanks> ranks;
  int64_t count;
  double timeout;
};

struct attnPlan {
  Compilation compilation;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  plan::DefOp plan;
  ProblemOp problem;
  BackwardOp backward;
  std::shared_ptr<PlanKernels> kernels;
  std::string text;
  bool isOfGradients = false;
  bool isMade = false; ///< by a strategy, whose plans are right for all sequences
  std::mutex mutex;    ///< of the module, which several threads may read
};

struct attnBoundPlan {
  std::unique_ptr<RankSteps> steps;
  Transport *transport;
  rt::Program signature; ///< tensors alone
};

static constexpr double defaultTimeout = 60;

//===--------------------------------------------------------------------===//
// Transports
//===--------------------------------------------------------------------===//

static int give(MadeTransport made, attnTransport **transport) {
  if (!made)
    return fail(made.error(), rt::ErrorKind::Driver);
  *transport = new attnTransport{std::move(*made)};
  return 0;
}

/// What a function of the caller returned.
static rt::Status statusOf(const char *text) { return text ? rt::Status(rt::Error{text}) : rt::Status(); }

static rt::Result<double> timeoutOf(double seconds) {
  if (seconds == 0)
    return defaultTimeout;
  if (seconds > 0 && seconds <= 1e9)
    return seconds;
  return rt::Error{fmt::format("expected a time-out from 0 to 10^9 seconds, got: {:g}", seconds)};
}

static AllGather wrapped(attnAllGather function, void *user) {
  return [=](const void *own, void *all, size_t bytes) { return statusOf(function(user, own, all, bytes)); };
}

int attnTransportPeer(int32_t rank, int32_t ranks, attnAllGather all_gather, void *user, double timeout_s,
                      attnTransport **transport) {
  if (!all_gather || !transport)
    return fail({"expected a function all_gather and where to put the transport, got: NULL"});
  rt::Result<double> timeout = timeoutOf(timeout_s);
  return timeout ? give(makePeerTransport(rank, ranks, wrapped(all_gather, user), *timeout), transport)
                 : fail(timeout.error());
}

int attnNcclId(char id[attnNcclIdBytes]) {
  return id ? finish(makeNcclId(id)) : fail({"expected where to put the id, got: NULL"});
}

int attnTransportNccl(int32_t rank, int32_t ranks, const char id[attnNcclIdBytes], double timeout_s,
                      attnTransport **transport) {
  if (!id || !transport)
    return fail({"expected an id and where to put the transport, got: NULL"});
  rt::Result<double> timeout = timeoutOf(timeout_s);
  return timeout ? give(makeNcclTransport(rank, ranks, id, *timeout), transport) : fail(timeout.error());
}

int attnTransportFromNccl(void *communicator, double timeout_s, attnTransport **transport) {
  if (!communicator || !transport)
    return fail({"expected a communicator and where to put the transport, got: NULL"});
  rt::Result<double> timeout = timeoutOf(timeout_s);
  return timeout ? give(makeNcclTransport(communicator, *timeout), transport) : fail(timeout.error());
}

int attnTransportFromCallbacks(int32_t rank, int32_t ranks, const attnTransportCallbacks *callbacks,
                               attnTransport **transport) {
  if (!callbacks || !callbacks->all_gather || !callbacks->post || !callbacks->wait || !callbacks->finish || !transport)
    return fail({"expected four functions and where to put the transport, got: NULL"});
  attnTransportCallbacks own = *callbacks;
  auto partsOf = [](llvm::ArrayRef<MessagePart> parts) {
    std::vector<attnMessagePart> made;
    for (const MessagePart &part : parts)
      made.push_back({part.data, part.bytes});
    return made;
  };
  TransportFunctions functions;
  functions.allGather = wrapped(own.all_gather, own.user);
  functions.post = [=](int64_t number, int64_t to, llvm::ArrayRef<MessagePart> sent, int64_t from,
                       llvm::ArrayRef<MessagePart> received, rt::Stream stream) {
    std::vector<attnMessagePart> out = partsOf(sent), in = partsOf(received);
    return statusOf(own.post(own.user, number, int32_t(to), out.data(), int32_t(out.size()), int32_t(from), in.data(),
                             int32_t(in.size()), stream));
  };
  functions.wait = [=](int64_t number, rt::Stream stream) { return statusOf(own.wait(own.user, number, stream)); };
  functions.finish = [=](rt::Stream stream) { return statusOf(own.finish(own.user, stream)); };
  return give(makeCallbackTransport(rank, ranks, std::move(functions)), transport);
}

int attnLocalRanksCreate(int32_t ranks, double timeout_s, attnLocalRanks **local) {
  rt::Result<double> timeout = timeoutOf(timeout_s);
  if (!local)
    return fail({"expected where to put the ranks, got: NULL"});
  if (!timeout)
    return fail(timeout.error());
  if (rt::Status right = checkRank(0, ranks); !right)
    return fail(right.error());
  *local = new attnLocalRanks{std::make_shared<LocalRanks>(ranks, /*isHost=*/true, *timeout), ranks, *timeout};
  return 0;
}

void attnLocalRanksDestroy(attnLocalRanks *local) { delete local; }

int attnTransportLocal(attnLocalRanks *local, int32_t rank, int on_gpu, attnTransport **transport) {
  if (!local || !transport)
    return fail({"expected ranks and where to put the transport, got: NULL"});
  if (rt::Status right = checkRank(rank, local->count); !right)
    return fail(right.error());
  std::shared_ptr<Transport> own(local->ranks, &local->ranks->of(rank)); // as long as some transport of them
  if (!on_gpu) {
    *transport = new attnTransport{std::move(own)};
    return 0;
  }
  auto allGather = [own](const void *sent, void *all, size_t bytes) -> rt::Status {
    auto texts = own->allGather(llvm::StringRef(static_cast<const char *>(sent), bytes));
    if (!texts)
      return texts.error();
    for (auto [i, text] : llvm::enumerate(*texts)) {
      if (text.size() != bytes)
        return rt::Error{"expected ranks that call the same functions, got: texts of other sizes"};
      std::memcpy(static_cast<char *>(all) + i * bytes, text.data(), bytes);
    }
    return {};
  };
  return give(makePeerTransport(rank, local->count, std::move(allGather), local->timeout), transport);
}

int attnTransportCheck(attnTransport *transport) {
  return transport ? finish(transport->transport->check(), rt::ErrorKind::Driver)
                   : fail({"expected a transport, got: NULL"});
}

void attnTransportDestroy(attnTransport *transport) { delete transport; }

//===--------------------------------------------------------------------===//
// Plans
//===--------------------------------------------------------------------===//

/// The plan of this name; without a name the only one.
static rt::Result<plan::DefOp> findPlan(mlir::ModuleOp module, llvm::StringRef name) {
  plan::DefOp found;
  int64_t count = 0;
  for (plan::DefOp plan : module.getOps<plan::DefOp>())
    if (name.empty() || plan.getSymName() == name)
      found = plan, ++count;
  if (count == 1)
    return found;
  if (name.empty())
    return rt::Error{fmt::format("expected a name, or one plan.def in the module, got: {}", count)};
  return rt::Error{fmt::format("expected a plan.def @{}, got: none", name.str())};
}

static rt::Status makePlan(attnPlan &made, llvm::StringRef mlir, llvm::StringRef name, llvm::StringRef steps,
                           llvm::StringRef targetText) {
  rt::Result<Target> target = Target::parse(targetText);
  if (!target)
    return target.error();
  made.compilation.getContext().loadDialect<plan::PlanDialect>();
  auto module = made.compilation.parse(mlir, "plan");
  if (!module)
    return module.error();
  made.module = std::move(*module);
  rt::Result<plan::DefOp> plan = findPlan(*made.module, name);
  if (!plan)
    return plan.error();
  made.plan = *plan;
  made.isOfGradients = made.plan.getBackward();
  made.isMade = made.plan.getBody().front().empty();
  if (!made.isMade && !steps.empty())
    return rt::Error{fmt::format("expected no options of plan-make-steps for @{}, which has steps, got: `{}`",
                                 made.plan.getSymName().str(), steps.str())};
  if (made.isMade && failed(plan::makeSteps(made.plan, steps.empty() ? "strategy=cast" : steps)))
    return made.compilation.takeDiagnostics(fmt::format("expected options of plan-make-steps, got: `{}`", steps.str()))
        .as(rt::ErrorKind::Problem);
  made.problem = made.module->lookupSymbol<ProblemOp>(made.plan.getOf());
  if (made.problem.getQLayout().hasPieces())
    return rt::Error{"expected a problem of whole sequences, got: one with layout(thd pieces)"}.as(
        rt::ErrorKind::Problem);
  for (BackwardOp backward : made.module->getOps<BackwardOp>())
    if (made.plan.getBackward() && backward.getProblemOp() == made.problem) {
      if (made.backward)
        return rt::Error{fmt::format("expected one attn.backward of @{}, got: @{} and @{}",
                                     made.problem.getSymName().str(), made.backward.getSymName().str(),
                                     backward.getSymName().str())}
            .as(rt::ErrorKind::Problem);
      made.backward = backward;
    }
  if (made.plan.getBackward() && !made.backward)
    return rt::Error{"expected an attn.backward for a plan of gradients, got: none"}.as(rt::ErrorKind::Problem);
  auto kernels = PlanKernels::create(made.problem, made.backward, *target);
  if (!kernels) // the problem itself is right
    return rt::Error(kernels.error()).as(rt::ErrorKind::Unsupported);
  made.kernels = std::move(*kernels);
  llvm::raw_string_ostream(made.text) << *made.module;
  return {};
}

int attnPlanCreate(const char *mlir, const char *name, const char *steps, const char *target, attnPlan **plan) {
  if (!mlir || !plan)
    return fail({"expected a module's text and where to put the plan, got: NULL"});
  auto made = std::make_unique<attnPlan>();
  if (rt::Status done = makePlan(*made, mlir, name ? name : "", steps ? steps : "", target ? target : ""); !done)
    return fail(done.error(), rt::ErrorKind::Problem);
  *plan = made.release();
  return 0;
}

const char *attnPlanText(const attnPlan *plan) { return plan ? plan->text.c_str() : ""; }

int attnPlanTensorCount(const attnPlan *plan) {
  if (!plan)
    return fail({"expected a plan, got: NULL"}), 0;
  return int(plan->kernels->getSignature(plan->isOfGradients).tensors.size());
}

const char *attnPlanTensorName(const attnPlan *plan, int index) {
  int count = attnPlanTensorCount(plan);
  if (index >= 0 && index < count)
    return plan->kernels->getSignature(plan->isOfGradients).tensors[index].name.c_str();
  if (plan)
    fail({fmt::format("expected the number of a tensor, from 0 to {}, got: {}", count - 1, index)});
  return "";
}

void attnPlanDestroy(attnPlan *plan) { delete plan; }

namespace {
/// The sequences of a call, with what they refer to.
class OwnSequences {
public:
  OwnSequences() = default;
  OwnSequences(const OwnSequences &) = delete;
  rt::Status read(const attnSequences *given);
  /// Valid as long as this object.
  plan::CallSequences view() const {
    plan::CallSequences all;
    for (bool ofKeys : {false, true})
      all.lengths[ofKeys] = lengths[ofKeys], all.slots[ofKeys] = slots[ofKeys];
    if (!shards.empty())
      all.given = find;
    return all;
  }

private:
  std::vector<int64_t> lengths[2], slots[2];
  std::map<std::string, std::vector<plan::Shard>> shards;
  std::function<llvm::ArrayRef<plan::Shard>(llvm::StringRef)> find = [this](llvm::StringRef name) {
    auto found = shards.find(name.str());
    return found == shards.end() ? llvm::ArrayRef<plan::Shard>() : llvm::ArrayRef<plan::Shard>(found->second);
  };
};
} // namespace

rt::Status OwnSequences::read(const attnSequences *given) {
  if (given && given->count < 0)
    return rt::Error{fmt::format("expected 0 sequences or more, got: {}", given->count)};
  if (!given || (given->count && !given->lengths_q))
    return rt::Error{"expected sequences with lengths, got: NULL"};
  if (given->shard_count < 0 || (given->shard_count && !given->shards))
    return rt::Error{fmt::format("expected {} shards, got: NULL", given->shard_count)};
  if (given->slots_kv && !given->lengths_kv)
    return rt::Error{"expected lengths of keys beside their slots, got: NULL"};
  auto fill = [&](std::vector<int64_t> &to, const int64_t *from) {
    if (from)
      to.assign(from, from + given->count);
  };
  bool isSame = !given->lengths_kv;
  fill(lengths[0], given->lengths_q), fill(lengths[1], isSame ? given->lengths_q : given->lengths_kv);
  fill(slots[0], given->slots_q), fill(slots[1], isSame ? given->slots_q : given->slots_kv);
  for (int64_t i = 0; i < given->shard_count; ++i) {
    const attnShard &shard = given->shards[i];
    if (!shard.name || shard.rank < 0 || shard.rank >= plan::mostRanks || shard.run_count < 0 ||
        (shard.run_count && !shard.runs))
      return rt::Error{fmt::format("expected a name, a rank and runs of shard {}, got: none", i)};
    std::vector<plan::Shard> &all = shards[shard.name];
    if (size_t(shard.rank) >= all.size())
      all.resize(shard.rank + 1);
    if (!all[shard.rank].runs.empty() || all[shard.rank].rows)
      return rt::Error{
          fmt::format("expected one shard `{}` of each rank, got: two of rank {}", shard.name, shard.rank)};
    all[shard.rank].rows = shard.rows;
    for (int64_t run = 0; run < shard.run_count; ++run)
      all[shard.rank].runs.push_back(
          {shard.runs[run].row, shard.runs[run].sequence, shard.runs[run].position, shard.runs[run].length});
  }
  return {};
}

int attnPlanShard(const attnPlan *given, const attnSequences *sequences, int32_t rank, int keys, int64_t *rows,
                  const attnRun **runs, int64_t *run_count) {
  if (!given || !rows || !runs || !run_count)
    return fail({"expected a plan and where to put rows and runs, got: NULL"});
  auto &plan = const_cast<attnPlan &>(*given);
  std::lock_guard<std::mutex> lock(plan.mutex);
  if (rank < 0 || rank >= int64_t(plan.plan.getRanks()))
    return fail({fmt::format("expected a rank from 0 to {}, got: {}", int64_t(plan.plan.getRanks()) - 1, rank)});
  OwnSequences own;
  if (rt::Status read = own.read(sequences); !read)
    return fail(read.error());
  plan::Tables tables;
  plan::CallSequences call = own.view();
  if (std::optional<std::string> wrong = tables.compute(plan.plan, plan.problem, call, /*isChecked=*/true))
    return fail(rt::Error{*wrong}, rt::ErrorKind::Problem);
  static thread_local std::vector<attnRun> kept;
  kept.clear();
  const plan::Shard &shard = tables.shardOf(keys != 0, rank);
  for (const plan::Run &run : shard.runs)
    kept.push_back({run.row, run.sequence, run.position, run.length});
  *rows = shard.rows, *runs = kept.data(), *run_count = int64_t(kept.size());
  return 0;
}

/// The steps of the least computed time.
static rt::Result<std::string> chooseSteps(llvm::StringRef mlir, llvm::StringRef name, const OwnSequences &sequences) {
  Compilation compilation;
  compilation.getContext().loadDialect<plan::PlanDialect>();
  auto parsed = compilation.parse(mlir, "plan");
  if (!parsed)
    return parsed.error();
  rt::Result<plan::DefOp> found = findPlan(**parsed, name);
  if (!found)
    return found.error();
  plan::DefOp empty = *found;
  if (!empty.getBody().front().empty())
    return rt::Error{"expected a plan without steps, got: one with steps"};
  auto problem = (*parsed)->lookupSymbol<ProblemOp>(empty.getOf());
  std::string best, refused;
  double least = HUGE_VAL;
  plan::CallSequences call = sequences.view();
  std::optional<plan::Tables> first; // of which all have shards and tiles
  std::shared_ptr<plan::VisitedTiles> tiles = plan::visitedTiles(problem.getMask(), call);
  for (const std::string &steps : plan::stepsFor(empty.getRanks(), problem.getHeads())) {
    mlir::OwningOpRef<plan::DefOp> made = empty.clone();
    plan::DefOp plan = *made;
    plan::Tables tables;
    if (failed(plan::makeSteps(plan, steps)))
      continue;
    if (std::optional<std::string> wrong =
            tables.compute(plan, problem, call, /*isChecked=*/true, first ? &*first : nullptr)) {
      refused = *wrong;
      continue;
    }
    double time = plan::costsOf(plan, problem, tables, call, plan::Rates(), tiles).milliseconds();
    if (!first)
      first = std::move(tables);
    if (time < least)
      least = time, best = steps;
  }
  if (best.empty())
    return rt::Error{refused};
  return best;
}

int attnPlanChoose(const char *mlir, const char *name, const attnSequences *sequences, const char **steps) {
  if (!mlir || !steps)
    return fail({"expected a module's text and where to put the steps, got: NULL"});
  OwnSequences own;
  if (rt::Status read = own.read(sequences); !read)
    return fail(read.error());
  static thread_local std::string kept;
  return give(chooseSteps(mlir, name ? name : "", own), kept, steps);
}

int attnPlanBind(const attnPlan *given, const attnSequences *sequences, attnTransport *transport,
                 attnBoundPlan **bound) {
  if (!given || !transport || !bound)
    return fail({"expected a plan, a transport and where to put the bound plan, got: NULL"});
  auto &plan = const_cast<attnPlan &>(*given);
  OwnSequences own;
  if (rt::Status read = own.read(sequences); !read) {
    RankSteps::refuse(*transport->transport, read.error());
    return fail(read.error());
  }
  std::unique_lock<std::mutex> lock(plan.mutex); // another thread may bind it for another rank
  bool isChecked = plan.isMade && !rt::checksArrays();
  auto steps = RankSteps::bind(plan.plan, plan.problem, plan.backward, own.view(), *transport->transport, plan.kernels,
                               isChecked, [&] { lock.unlock(); });
  if (!steps)
    return fail(steps.error());
  *bound =
      new attnBoundPlan{std::move(*steps), transport->transport.get(), plan.kernels->getSignature(plan.isOfGradients)};
  return 0;
}

void attnBoundPlanDestroy(attnBoundPlan *bound) { delete bound; }

/// The tensors of a run by name.
static rt::Result<std::map<std::string, TensorView>> tensorsOf(const attnBoundPlan *bound, const attnTensor *tensors) {
  std::vector<TensorView> views;
  if (!bound)
    return rt::Error{"expected a bound plan, got: NULL"};
  if (rt::Status read = rt::readTensors(bound->signature, tensors, Given::Memory, views); !read)
    return read.error();
  std::map<std::string, TensorView> byName;
  for (auto [spec, view] : llvm::zip_equal(bound->signature.tensors, views))
    byName[spec.name] = view;
  return byName;
}

int attnPlanWorkspaceSize(const attnBoundPlan *bound, const attnTensor *tensors, size_t *bytes) {
  auto views = tensorsOf(bound, tensors);
  if (!views)
    return fail(views.error(), rt::ErrorKind::Tensor);
  if (!bytes)
    return fail({"expected where to put the size, got: NULL"});
  rt::Result<size_t> needed = bound->steps->workspaceBytes(*views);
  if (!needed)
    return fail(needed.error(), rt::ErrorKind::Tensor);
  *bytes = *needed;
  return 0;
}

int attnPlanRun(const attnBoundPlan *bound, const attnTensor *tensors, void *workspace, void *stream) {
  auto views = tensorsOf(bound, tensors);
  if (!views)
    return fail(views.error(), rt::ErrorKind::Tensor);
  return finish(bound->steps->run(*views, workspace, rt::Stream(stream), *bound->transport), rt::ErrorKind::Tensor);
}
