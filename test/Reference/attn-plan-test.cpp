// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs plans on simulated ranks, and holds their results against the problem's on one rank:
//
//   attn-plan-test FILE.mlir [--steps=OPTIONS]       each plan that has `test.sequences` (TestPlans.cpp)
//   attn-plan-test FILE.mlir --time [--kernels=cpu]  how long their tables and binding take, in microseconds
//   attn-plan-test FILE.mlir --time-kernels          how long each rank's kernels take on a GPU, without messages: ms
//   attn-plan-test FILE.mlir --memory [--kernels=cpu] the memory of values as the tables say, and as it is placed
//   attn-plan-test FILE.mlir --random=N [--seed=S]   random plans, sequences and inputs for the problems of the file
//   attn-plan-test FILE.mlir --mutants=N             random plans with a random fault
//   attn-plan-test FILE.mlir --random=N --kernels=T  random plans run by kernels of target T (empty: what runs here)
//
// The first takes inputs without random numbers, as another program does, and prints sums of the results as JSON.
// A plan with a fault has to be refused by its verifier or by its tables, unless its results are right all the same.
// Steps are made by `plan-make-steps` with these options where a plan has none.
//
#include "MeasurePlans.h"
#include "RanksOfTest.h"
#include "SequencesOfTest.h"
#include "attn/Dialect/Plan/Transforms/Passes.h"
#include "attn/Reference/Inputs.h"
#include "attn/Reference/Ranks.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cmath>
#include <random>

using namespace attn;
using namespace attn::reference;
using test::failIf;
namespace cl = llvm::cl;

static cl::opt<std::string> file(cl::Positional, cl::Required, cl::desc("FILE.mlir"));
static cl::opt<std::string> steps("steps", cl::desc("options of plan-make-steps"));
static cl::opt<bool> timesTables("time", cl::desc("print how long tables take"));
static cl::opt<bool> timesKernels("time-kernels", cl::desc("print how long each rank's kernels take on a GPU"));
static cl::opt<bool> comparesMemory("memory", cl::desc("print what memory ranks need, computed and placed"));
static cl::opt<int64_t> randomCases("random", cl::desc("how many random cases"));
static cl::opt<int64_t> mutants("mutants", cl::desc("how many random cases with a fault"));
static cl::opt<std::string> kernelsOf("kernels", cl::desc("run random cases by kernels of this target"));
static cl::opt<double> mostSeconds("seconds", cl::init(HUGE_VAL),
                                   cl::desc("begin no other random case after so many; default: all cases"));
static cl::opt<int64_t> seed("seed", cl::init(1), cl::desc("of random cases"));

/// Errors of one result, relative to its largest number or 1. A plan changes nothing but the order of additions.
static constexpr double tolerance = 1e-11;

namespace {
/// A call: the sequences, and tensors that have them.
struct Call {
  plan::CallSequences sequences;
  std::vector<plan::Shard> given;
  Tensors inputs;
};
} // namespace

static BackwardOp backwardOf(ProblemOp problem) {
  for (auto backward : problem->getParentOfType<mlir::ModuleOp>().getOps<BackwardOp>())
    if (backward.getProblemOp() == problem)
      return backward;
  return {};
}

static llvm::Error makeSteps(plan::DefOp plan, const std::string &options) {
  return succeeded(plan::makeSteps(plan, options)) ? llvm::Error::success()
                                                   : llvm::createStringError("no steps could be made");
}

static llvm::Error expectClose(llvm::StringRef name, const Tensor &expected, const Tensor &actual) {
  double largest = 1;
  expected.forEachOffset([&](int64_t at) {
    if (double x = std::fabs(expected.load(at)); std::isfinite(x))
      largest = std::max(largest, x);
  });
  std::string wrong;
  expected.forEachIndex([&](llvm::ArrayRef<int64_t> index) {
    double x = expected(index), y = actual(index);
    if (wrong.empty() && x != y && !(std::fabs(x - y) <= tolerance * largest) && !(std::isnan(x) && std::isnan(y)))
      wrong = llvm::formatv("expected {0} at [{1:$[, ]}] of {2}, got: {3}", x,
                            llvm::make_range(index.begin(), index.end()), name, y);
  });
  return wrong.empty() ? llvm::Error::success() : llvm::createStringError(wrong);
}

/// Sums of the absolute values of the results, by name. Of lse: of finite numbers, as they are.
using Sums = std::vector<std::pair<std::string, double>>;

static llvm::Expected<Sums> run(plan::DefOp plan, ProblemOp problem, Call &call) {
  call.sequences.given = nullptr;
  auto given = [&](llvm::StringRef) { return llvm::ArrayRef(call.given); };
  if (!call.given.empty())
    call.sequences.given = given;
  Sums sums;
  auto add = [&](llvm::StringRef name, const Tensor &tensor) {
    double sum = 0;
    int64_t empty = 0;
    tensor.forEachOffset([&](int64_t at) {
      double x = tensor.load(at);
      bool isLse = name == "lse";
      empty += isLse && std::isinf(x);
      sum += isLse ? (std::isinf(x) ? 0 : x) : std::fabs(x);
    });
    sums.emplace_back(name, sum);
    if (name == "lse")
      sums.emplace_back("empty_rows", empty);
  };
  if (!plan.getBackward()) {
    llvm::Expected<Outputs> expected = interpret(problem, call.inputs);
    if (!expected)
      return expected.takeError();
    llvm::Expected<Outputs> actual = interpret(plan, problem, call.sequences, call.inputs);
    if (!actual)
      return actual.takeError();
    if (llvm::Error error = expectClose("o", expected->o, actual->o))
      return error;
    if (llvm::Error error = expectClose("lse", expected->lse, actual->lse))
      return error;
    add("o", actual->o), add("lse", actual->lse);
    return sums;
  }
  BackwardOp backward = backwardOf(problem);
  if (!backward)
    return llvm::createStringError("expected an `attn.backward` of the problem");
  llvm::Expected<Tensors> expected = interpret(backward, call.inputs);
  if (!expected)
    return expected.takeError();
  llvm::Expected<Tensors> actual = interpret(plan, backward, call.sequences, call.inputs);
  if (!actual)
    return actual.takeError();
  std::vector<std::string> names = {"dq", "dk", "dv"};
  for (const ScoreOperand &array : backward.getDifferentiatedArrays())
    names.push_back(gradientOf(array));
  for (const std::string &name : names) {
    if (llvm::Error error = expectClose(name, (*expected)[name], (*actual)[name]))
      return error;
    add(name, (*actual)[name]);
  }
  return sums;
}

//===--------------------------------------------------------------------===//
// Given plans
//===--------------------------------------------------------------------===//

/// k / 16 with |k| <= 15, by token, head and column, in the first four columns; 0 in others.
static Tensor pattern(int64_t which, int64_t tokens, int64_t heads, int64_t dim) {
  Tensor tensor(reference::Dtype::F64, {tokens, heads, dim});
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t c = 0; c < std::min<int64_t>(dim, 4); ++c)
        tensor.store(tensor.offset({t, h, c}),
                     double((37 * t + 17 * h + 11 * c + 5 * which + 3 * (t / 5) * (c + 1)) % 31 - 15) / 16);
  return tensor;
}

static Tensor offsetsOf(llvm::ArrayRef<int64_t> lengths) {
  Tensor offsets(reference::Dtype::I32, {int64_t(lengths.size()) + 1});
  int64_t sum = 0;
  for (auto [i, length] : llvm::enumerate(lengths))
    offsets.store(i + 1, sum += length);
  return offsets;
}

static void runGiven(plan::DefOp plan) {
  auto of = plan->getAttrOfType<mlir::DictionaryAttr>("test.sequences");
  if (!of)
    return;
  auto problem = mlir::SymbolTable::lookupNearestSymbolFrom<ProblemOp>(plan, plan.getOfAttr());
  if (plan.getBody().front().empty())
    failIf(makeSteps(plan, steps), plan.getSymName());
  Call call;
  call.given = test::shardsOf(of.getAs<mlir::ArrayAttr>("given"));
  call.sequences = test::callSequencesOf(of);
  auto &lengths = call.sequences.lengths;
  const test::MeasuredPlan measured = {plan, problem, backwardOf(problem), call.sequences, kernelsOf};
  if (timesTables)
    return test::printTimes(measured);
  if (timesKernels)
    return test::printRuns(measured);
  if (comparesMemory)
    return test::printMemory(measured);
  int64_t tokens[2] = {};
  for (bool ofKeys : {false, true})
    for (int64_t length : lengths[ofKeys])
      tokens[ofKeys] += length;
  int64_t heads = problem.getHeads(), kvHeads = problem.getKvHeads(), dim = problem.getDimQk(),
          dimV = problem.getDimV();
  call.inputs["q"] = pattern(0, tokens[0], heads, dim);
  call.inputs["k"] = pattern(1, tokens[1], kvHeads, dim);
  call.inputs["v"] = pattern(2, tokens[1], kvHeads, dimV);
  call.inputs["cu_seqlens_q"] = offsetsOf(lengths[0]);
  call.inputs["cu_seqlens_kv"] = offsetsOf(lengths[1]);
  if (plan.getBackward()) {
    llvm::Expected<Outputs> outputs = interpret(problem, call.inputs);
    failIf(outputs.takeError(), plan.getSymName());
    call.inputs["do"] = pattern(3, tokens[0], heads, dimV);
    call.inputs["o"] = outputs->o, call.inputs["lse"] = outputs->lse;
  }
  llvm::Expected<Sums> sums = run(plan, problem, call);
  failIf(sums.takeError(), plan.getSymName());
  llvm::outs() << "{\"plan\": \"" << plan.getSymName() << "\"";
  for (auto &[name, sum] : *sums)
    llvm::outs() << llvm::formatv(", \"{0}\": {1:f9}", name, sum);
  llvm::outs() << "}\n";
}

//===--------------------------------------------------------------------===//
// Random plans
//===--------------------------------------------------------------------===//

namespace {
class RandomCases {
public:
  RandomCases(mlir::ModuleOp module) : module(module), problems(module.getOps<ProblemOp>()) {}

  /// Runs a case. Errors show the plan and the sequences.
  void run(int64_t number, bool isMutant);

  int64_t byVerifier = 0, byTables = 0, harmless = 0; ///< how many mutants were refused, or are right
  int64_t ran = 0, refused = 0;                       ///< cases that kernels ran, or that no kernels take

private:
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); }
  template <typename T> const T &oneOf(llvm::ArrayRef<T> list) { return list[below(list.size())]; }
  std::string sharding() {
    return oneOf<std::string>({"contiguous", "dual_chunk", "dual_chunk<padded>", "striped", "striped<3>", "documents",
                               "documents<0.5>", "runs<\"mine\">"});
  }
  std::vector<int64_t> lengths(int64_t count, bool areEqual);
  std::vector<int64_t> slots(llvm::StringRef sharding, llvm::ArrayRef<int64_t> lengths, int64_t ranks);
  std::vector<plan::Shard> someShards(llvm::ArrayRef<int64_t> lengths, int64_t ranks);
  void mutate(plan::DefOp plan);

  mlir::ModuleOp module;
  llvm::SmallVector<ProblemOp> problems;
  test::KernelRanks kernelRanks;
  std::mt19937_64 random;
};
} // namespace

/// Sequences without tokens and of one token are among them.
std::vector<int64_t> RandomCases::lengths(int64_t count, bool areEqual) {
  std::vector<int64_t> made;
  for (int64_t i = 0; i < count; ++i)
    made.push_back(areEqual && i ? made[0] : oneOf<int64_t>({0, 1, 2, 3, 5, 8, 13, 16, 17, 24}));
  return made;
}

std::vector<int64_t> RandomCases::slots(llvm::StringRef sharding, llvm::ArrayRef<int64_t> lengths, int64_t ranks) {
  std::vector<int64_t> made;
  bool inChunks = sharding == "dual_chunk<padded>";
  if (!inChunks && below(2))
    return made;
  for (int64_t length : lengths)
    made.push_back(inChunks ? (length + 2 * ranks - 1) / (2 * ranks) * 2 * ranks : length + below(4));
  return made;
}

/// Pieces of sequences on random ranks, with padding between them.
std::vector<plan::Shard> RandomCases::someShards(llvm::ArrayRef<int64_t> lengths, int64_t ranks) {
  std::vector<plan::Shard> shards(ranks);
  for (auto [sequence, length] : llvm::enumerate(lengths))
    for (int64_t begin = 0; begin < length;) {
      int64_t end = std::min(length, begin + 1 + below(6));
      plan::Shard &shard = shards[below(ranks)];
      shard.rows += below(3) == 0;
      shard.addTokens(sequence, begin, end);
      begin = end;
    }
  return shards;
}

/// Changes one thing: an operand, an attribute, the order of steps.
void RandomCases::mutate(plan::DefOp plan) {
  llvm::SmallVector<mlir::Operation *> steps;
  for (mlir::Operation &step : plan.getBody().front())
    steps.push_back(&step);
  mlir::OpBuilder b(plan.getContext());
  for (int tries = 0; tries < 100; ++tries) {
    size_t at = below(steps.size());
    mlir::Operation *step = steps[at];
    auto exchange = llvm::dyn_cast<plan::ExchangeOp>(step);
    switch (below(exchange ? 9 : 5)) {
    case 0: { // another value of the type
      if (step->getNumOperands() == 0)
        continue;
      mlir::OpOperand &operand = step->getOpOperand(below(step->getNumOperands()));
      llvm::SmallVector<mlir::Value> others;
      for (mlir::Operation *earlier : llvm::ArrayRef(steps).take_front(at))
        for (mlir::Value value : earlier->getResults())
          if (value != operand.get() && value.getType() == operand.get().getType())
            others.push_back(value);
      if (others.empty())
        continue;
      return operand.set(oneOf<mlir::Value>(others));
    }
    case 1: // the same twice
      if (auto sum = llvm::dyn_cast<plan::SumOp>(step))
        return sum.getPartsMutable().append(sum.getParts().back());
      continue;
    case 2: // one fewer
      if (auto sum = llvm::dyn_cast<plan::SumOp>(step))
        return sum.getPartsMutable().erase(below(sum.getParts().size()));
      if (auto join = llvm::dyn_cast<plan::JoinHeadsOp>(step))
        return join.getPartsMutable().erase(below(join.getParts().size()));
      if (auto attend = llvm::dyn_cast<plan::AttendOp>(step))
        return below(2) ? attend.getBeforeMutable().clear() : attend.getKeysMutable().erase(0);
      if (auto grads = llvm::dyn_cast<plan::GradsOp>(step))
        return grads.getBeforeMutable().clear();
      continue;
    case 3: // another order
      if (at == 0)
        continue;
      return step->moveBefore(steps[below(at)]);
    case 4: { // a result as that of other queries
      llvm::SmallVector<mlir::Value> queries;
      for (mlir::Operation *earlier : llvm::ArrayRef(steps).take_front(at))
        for (mlir::Value value : earlier->getResults())
          if (plan::isRows(value.getType(), plan::Kind::q))
            queries.push_back(value);
      for (mlir::OpOperand &operand : step->getOpOperands()) {
        mlir::Type type = operand.get().getType();
        if (queries.empty() || (!plan::isRows(type, plan::Kind::partial) && !plan::isRows(type, plan::Kind::dq)))
          continue;
        b.setInsertionPoint(step);
        return operand.set(plan::JoinHeadsOp::create(b, step->getLoc(), type, oneOf<mlir::Value>(queries),
                                                     mlir::ValueRange(operand.get())));
      }
      continue;
    }
    case 5:
      return exchange.setOffset(below(2 * plan.getRanks()) - plan.getRanks());
    case 6:
      return exchange.setWhich(plan::Which(below(3)));
    case 7:
      if (exchange.getIfSent() && below(2))
        return exchange.getIfSentMutable().clear();
      if (!exchange.getUnlessSent())
        continue;
      return exchange.getUnlessSentMutable().clear();
    case 8:
      if (below(2))
        return exchange.setByHeads(!exchange.getByHeads());
      return exchange.setWithinAttr(exchange.getWithin() ? mlir::IntegerAttr()
                                                         : b.getI64IntegerAttr(1 + below(plan.getRanks())));
    }
  }
}

void RandomCases::run(int64_t number, bool isMutant) {
  random.seed(seed * 1000003 + number);
  ProblemOp problem = oneOf<ProblemOp>(problems);
  bool isPacked = problem.getQLayout().isPacked(), isCross = below(3) == 0;
  int64_t ranks = 1 + below(8), count = isPacked ? below(5) : 1 + below(3);
  llvm::SmallVector<int64_t> groups;
  for (int64_t group = 1; group <= ranks; ++group)
    if (ranks % group == 0)
      groups.push_back(group);
  Call call;
  std::string shardings[2] = {sharding(), ""};
  shardings[1] = isCross ? sharding() : shardings[0];
  if (isCross && shardings[0] == shardings[1] && shardings[0].starts_with("runs"))
    shardings[1] = "contiguous"; // shards of one name are of queries and of keys
  auto &lengths = call.sequences.lengths;
  lengths[0] = this->lengths(count, !isPacked);
  lengths[1] = isCross ? this->lengths(count, !isPacked) : lengths[0];
  for (bool ofKeys : {false, true})
    if (llvm::StringRef(shardings[ofKeys]).starts_with("runs"))
      call.given = someShards(lengths[ofKeys], ranks);
  call.sequences.slots[0] = slots(shardings[0], lengths[0], ranks);
  call.sequences.slots[1] = isCross ? slots(shardings[1], lengths[1], ranks) : call.sequences.slots[0];
  bool backward = backwardOf(problem) && below(2);
  std::string options = llvm::formatv("strategy={0} head-group={1}", oneOf<std::string>({"gather", "cast", "ring"}),
                                      oneOf<int64_t>(groups));
  std::string text = llvm::formatv("plan.def @case{0} of(@{1}) ranks({2}) sharding(#plan.{3}{4}) {5} {{}", number,
                                   problem.getSymName(), ranks, shardings[0], isCross ? ", #plan." + shardings[1] : "",
                                   backward ? "backward" : "");
  mlir::OwningOpRef<mlir::ModuleOp> parsed = mlir::parseSourceString<mlir::ModuleOp>(
      llvm::formatv("module {{ {0}\n{1} }", *problem, text).str(), module.getContext());
  plan::DefOp plan = *parsed->getOps<plan::DefOp>().begin();
  plan->moveBefore(problem->getNextNode() ? problem->getNextNode() : problem);
  std::string what;
  llvm::raw_string_ostream shown(what);
  shown << text << " " << options << ", queries ";
  llvm::interleaveComma(lengths[0], shown);
  shown << ", keys ";
  llvm::interleaveComma(lengths[1], shown);
  failIf(makeSteps(plan, options), what);
  InputSizes sizes;
  sizes.batch = count;
  sizes.lengthsQ = lengths[0], sizes.lengthsKv = lengths[1];
  if (!isPacked)
    sizes.seqlenQ = lengths[0][0], sizes.seqlenKv = lengths[1][0];
  Computation computation = backward ? Computation(backwardOf(problem)) : Computation(problem);
  failIf(addMissingInputs(computation, sizes, seed + number, call.inputs), what);
  bool isRefused = false;
  if (isMutant) {
    mutate(plan);
    shown << "\n" << plan;
    mlir::ScopedDiagnosticHandler ignored(module.getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
    auto given = [&](llvm::StringRef) { return llvm::ArrayRef(call.given); };
    call.sequences.given = given;
    if (failed(mlir::verify(plan))) {
      ++byVerifier, isRefused = true;
    } else if (plan::Tables().compute(plan, problem, call.sequences)) {
      ++byTables, isRefused = true;
    } else {
      ++harmless;
    }
  }
  if (kernelsOf.getNumOccurrences()) {
    auto given = [&](llvm::StringRef) { return llvm::ArrayRef(call.given); };
    if (!call.given.empty())
      call.sequences.given = given;
    llvm::Expected<bool> took = kernelRanks.run(plan, problem, backward ? backwardOf(problem) : BackwardOp(),
                                                call.sequences, call.inputs, kernelsOf, /*splitsAll=*/number % 2);
    failIf(took.takeError(), what);
    ++(*took ? ran : refused);
    isRefused = true;
  }
  if (!isRefused) {
    llvm::Expected<Sums> sums = ::run(plan, problem, call);
    failIf(sums.takeError(), what);
  }
  plan.erase();
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "runs plans on simulated ranks\n");
  mlir::DialectRegistry registry;
  registry.insert<AttnDialect, plan::PlanDialect, tile::TileDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(file, &context);
  if (!module)
    return 1;
  if (randomCases.getNumOccurrences() || mutants.getNumOccurrences()) {
    RandomCases cases(*module);
    auto begin = std::chrono::steady_clock::now();
    auto isLate = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > mostSeconds;
    };
    for (int64_t number = 0; number < randomCases && !isLate(); ++number)
      cases.run(number, /*isMutant=*/false);
    for (int64_t number = 0; number < mutants; ++number)
      cases.run(number, /*isMutant=*/true);
    if (kernelsOf.getNumOccurrences())
      llvm::outs() << cases.ran << " random plans agree on kernels, " << cases.refused << " have none\n";
    else if (randomCases)
      llvm::outs() << randomCases << " random plans agree\n";
    if (mutants)
      llvm::outs() << mutants << " with a fault: " << cases.byVerifier << " refused by the verifier, " << cases.byTables
                   << " by tables, " << cases.harmless << " agree all the same\n";
    return 0;
  }
  module->walk([](plan::DefOp plan) { runGiven(plan); });
  return 0;
}
