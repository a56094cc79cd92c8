// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a problem's mask is, seen as the kernel sees it: which tiles it visits and tests, how
// much of that is visible, and what it costs at rates that one gives.
//
#include "../common/InputOptions.h"
#include "../common/OptionChecks.h"
#include "Draw.h"
#include "Questions.h"
#include "attn/Conversion/Schedule.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace attn;
namespace cl = llvm::cl;

namespace {
struct Options {
  cl::opt<std::string> file{cl::Positional, cl::desc("<problem.mlir>"), cl::init("-")};
  cl::opt<std::string> problem{"problem", cl::desc("which problem, if the file has several")};
  cl::opt<std::string> target{"target", cl::desc("whose tile sizes: `cpu`, `sm_80`, `sm_80:<chip>` or `sm_90a`"),
                              cl::init("sm_90a")};
  cl::opt<std::string> tile{"tile", cl::desc("other tile sizes: ROWSxKEYS")};
  cl::opt<int64_t> sequence{"sequence", cl::desc("which sequence to draw"), cl::init(0)};
  cl::opt<int64_t> head{"head", cl::desc("as which query head"), cl::init(0)};
  cl::opt<std::string> svg{"svg", cl::desc("a file for the drawing")};
  cl::opt<double> tflops{"tflops", cl::desc("what products reach, in 10^12 operations a second"), cl::init(786)};
  cl::opt<double> gbps{"gbps", cl::desc("what memory reaches, in 10^9 bytes a second"), cl::init(4269)};
  InputOptions inputs;
};
} // namespace

static int fail(const llvm::Twine &what) {
  llvm::errs() << "error: " << what << "\n";
  return 1;
}

/// `12.3 GB`
static std::string scaled(double number, const char *unit) {
  const char *prefixes[] = {"", "K", "M", "G", "T", "P"};
  int i = 0;
  for (; number >= 1000 && i < 5; ++i)
    number /= 1000;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(number < 10 && i ? "%.2f " : "%.0f ", number) << prefixes[i] << unit;
  return text;
}

static double percent(double part, double of) { return of > 0 ? 100 * part / of : 0; }

/// Of all tensors, each once.
static double bytesOf(ProblemOp problem, const Sizes &sizes) {
  double bytes = 0;
  for (const ProblemTensor &tensor : tensorsOf(problem)) {
    double elements = 1;
    for (int64_t extent : tensor.shape(problem, sizes))
      elements *= extent;
    bytes += elements * (tensor.element == ProblemTensor::Data ? 2 : 4);
  }
  return bytes;
}

static void report(llvm::raw_ostream &os, ProblemOp problem, const Sizes &sizes, const TileCounts &counts,
                   int64_t qTile, int64_t kvTile, const Options &options) {
  double perPair = 2.0 * (problem.getDimQk() + problem.getDimV());
  double visible = perPair * counts.visible, visited = perPair * counts.visited * qTile * kvTile;
  double bytes = bytesOf(problem, sizes);
  os << llvm::format("tiles     %.0f of %.0f visited: %.0f without a test, %.0f with one", counts.visited, counts.tiles,
                     counts.untested, counts.visited - counts.untested);
  if (counts.empty >= 0)
    os << llvm::format("; in %.0f of them nothing is visible", counts.empty);
  os << llvm::format("\npairs     %s%.0f of %.0f visible (%.1f %%), %.1f %% of those in visited tiles\n",
                     counts.exact ? "" : "about ", counts.visible, counts.pairs, percent(counts.visible, counts.pairs),
                     percent(visible, visited));
  os << "work      " << scaled(visible, "FLOP") << " for visible pairs, " << scaled(visited, "FLOP")
     << " for visited tiles; " << scaled(bytes, "B") << " to read and write at least\n";
  double compute = visited / (options.tflops * 1e12), memory = bytes / (options.gbps * 1e9);
  os << llvm::format("time      at least %.4g ms, for %s (at %g TFLOP/s and %g GB/s)\n",
                     1e3 * std::max(compute, memory), compute >= memory ? "visited tiles" : "bytes",
                     double(options.tflops), double(options.gbps));
}

int attn::explain(int argc, char **argv) {
  Options options;
  cl::ParseCommandLineOptions(argc, argv, "shows which tiles the kernel of a problem visits\n");
  if (llvm::Error error = options.inputs.check())
    return fail(llvm::toString(std::move(error)));
  for (const cl::opt<double> *rate : {&options.tflops, &options.gbps})
    if (llvm::Error error = checkPositive(rate->ArgStr, *rate))
      return fail(llvm::toString(std::move(error)));
  if (options.target.empty())
    return fail("expected a target with --target, got none");
  rt::Result<Target> target = Target::parse(options.target);
  if (!target)
    return fail(target.error().str());
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.file);
  if (!buffer)
    return fail("cannot read `" + options.file + "`: " + buffer.getError().message());
  if (options.svg.getNumOccurrences()) {
    llvm::SmallVector<llvm::StringRef> inputs = options.inputs.getFiles();
    inputs.push_back(options.file);
    if (llvm::Error error = checkResultPaths(inputs, {options.svg}))
      return fail(llvm::toString(std::move(error)));
  }
  Compilation compilation;
  auto module = compilation.parse((*buffer)->getBuffer(), options.file);
  if (!module)
    return fail(module.error().str());
  auto found = findProblem(**module, options.problem);
  if (!found)
    if (auto pass = findComputation(**module, options.problem)) // whose problem may be private
      found = ProblemOp(pass->problem);
  if (!found)
    return fail(found.error().str());
  ProblemOp problem = *found;
  if (std::optional<std::string> fault = faultOfConfig(problem.getConfigAttr()))
    return fail(*fault);
  if (problem.getSegments())
    return fail("expected a problem whose sequences are given, got: one with segments");
  auto given = options.inputs.arraysOf(problem); // of all arrays, also of those that the mask's form needs no more
  if (!given)
    return fail(llvm::toString(given.takeError()));
  MaskInterface mask = problem.getMask(), form = canonicalMask(mask);
  problem.setMaskAttr(form); // as the pipeline begins
  const Sizes &sizes = given->second;

  Schedule schedule = scheduleOf(problem, target->family, target->arch);
  tile::ConfigAttr config = schedule.tiles ? schedule.tiles : schedule.streamed;
  int64_t qTile = config.getQueries(), kvTile = config.getKvTile();
  if (!options.tile.empty()) {
    auto [rows, keys] = llvm::StringRef(options.tile).split('x');
    if (rows.getAsInteger(10, qTile) || keys.getAsInteger(10, kvTile) || std::min(qTile, kvTile) < 1 ||
        std::max(qTile, kvTile) > 1 << 24)
      return fail("expected --tile=ROWSxKEYS, from 1 to 2^24 each, got: " + options.tile);
  }
  int64_t heads = problem.getHeads();
  if (sizes.batch == 0)
    return fail("a batch of 0 sequences has no tiles to explain; it runs, and writes nothing");
  if (options.sequence < 0 || options.sequence >= sizes.batch || options.head < 0 || options.head >= heads)
    return fail("expected one of " + llvm::Twine(sizes.batch) + " sequences and " + llvm::Twine(heads) +
                " heads, got: sequence " + llvm::Twine(options.sequence) + ", head " + llvm::Twine(options.head));

  llvm::raw_ostream &os = llvm::outs();
  os << "mask      " << mask << "\n";
  if (form != mask)
    os << "that is   " << form << "\n";
  os << "sizes     " << sizes.batch << " sequences; " << heads << " query heads, " << problem.getKvHeads()
     << " kv heads; head dims " << problem.getDimQk() << " and " << problem.getDimV() << "\n";
  auto noteRefusal = [&](llvm::StringRef program) {
    if (std::optional<std::string> why = refusalOf(compilation, **module, *target, program))
      os << "refused   by " << target->str() << ": " << *why
         << "\n          (--supported names the nearest problem with a kernel); with one it would be\n";
  };
  noteRefusal(problem.getSymName());
  os << "forward   " << schedule.name << "; " << schedule.why << "\n";
  bool hasBackward = false;
  for (BackwardOp backward : (*module)->getOps<BackwardOp>())
    if (backward.getProblemOp() == problem) {
      hasBackward = true;
      noteRefusal(backward.getSymName());
      Schedule gradients = scheduleOf(backward, target->family, target->arch);
      os << "backward  @" << backward.getSymName() << ": " << gradients.name << "; " << gradients.why << "\n";
    }
  os << "kernel    " << (hasBackward ? "of the forward pass, as all below: " : "") << "tiles of " << qTile << " rows x " << kvTile << " keys";
  if (options.tile.empty())
    os << ": " << config;
  os << "\n";
  reference::Sequences sequences(problem, given->first, sizes);
  bool lists = schedule.tiles && listsVisits(problem, config);
  TileMap map(form, sequences, options.sequence, options.head, qTile, kvTile, lists);
  os << "map       of sequence " << options.sequence << " as head " << options.head << " sees it: " << map.lenQ
     << " queries down, " << map.lenK << " keys across";
  if (std::optional<SaidLengths> said = SaidLengths::of(problem);
      said && said->queries == map.lenQ && said->keys == map.lenK)
    os << ", as `" << said->clause << "` says";
  os << ";\n          ";
  drawText(os, map);

  // Heads are alike unless the mask says otherwise.
  bool differ = dependsOnHead(form);
  TileCounts counts;
  for (int64_t b = 0; b < sequences.size(); ++b)
    for (int64_t h = 0; h < (differ ? heads : 1); ++h)
      counts += TileMap(form, sequences, b, h, qTile, kvTile, lists).count();
  for (double *count :
       {&counts.tiles, &counts.visited, &counts.untested, &counts.empty, &counts.pairs, &counts.visible})
    *count *= differ ? 1 : heads;
  report(os, problem, sizes, counts, qTile, kvTile, options);
  if (!options.svg.getNumOccurrences())
    return 0;
  std::error_code error;
  llvm::raw_fd_ostream svg(options.svg, error);
  if (error)
    return fail("cannot write `" + options.svg + "`: " + error.message());
  std::string title;
  llvm::raw_string_ostream(title) << mask;
  drawSvg(svg, map, title);
  return 0;
}
