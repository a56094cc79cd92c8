// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Inspect/Explain.h"
#include "attn/Inspect/DrawTiles.h"
#include "attn/Inspect/Support.h"
#include "attn/Reference/NumberChecks.h"
#include "attn/Schedules/Schedule.h"
#include <fmt/format.h>

using namespace attn;

static rt::Error fault(llvm::Error error) { return {llvm::toString(std::move(error))}; }

std::optional<ExplainRequest::Tile> ExplainRequest::Tile::parse(llvm::StringRef text) {
  Tile tile;
  auto [rows, keys] = text.split('x');
  if (rows.getAsInteger(10, tile.rows) || keys.getAsInteger(10, tile.keys) || std::min(tile.rows, tile.keys) < 1 ||
      std::max(tile.rows, tile.keys) > 1 << 24)
    return std::nullopt;
  return tile;
}

llvm::Error attn::checkRanges(const ExplainRequest &request) {
  if (llvm::Error bad = reference::checkRanges(request.inputs))
    return bad;
  for (auto [key, rate] : {std::pair("tflops", request.tflops), {"gbps", request.gbps}})
    if (llvm::Error bad = reference::checkPositive(request.inputs.spell(key), rate))
      return bad;
  return llvm::Error::success();
}

template <typename T> static std::string printed(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// Of all tensors, each once.
static double bytesOf(ProblemOp problem, const Sizes &sizes) {
  double bytes = 0;
  for (const ProblemTensor &tensor : tensorsOf(problem)) {
    double elements = 1;
    for (int64_t extent : tensor.shape(problem, sizes))
      elements *= extent;
    bytes += elements * (tensor.element == ProblemTensor::Data ? problem.getDtype().getIntOrFloatBitWidth() / 8 : 4);
  }
  return bytes;
}

/// Of all sequences and heads.
static TileCounts countAll(MaskInterface mask, const reference::Sequences &sequences, int64_t heads,
                           llvm::function_ref<TileMap(int64_t sequence, int64_t head)> mapOf) {
  // Heads are alike unless the mask says otherwise, and so are sequences of the same lengths.
  bool differ = dependsOnHead(mask), differBySequence = !mask.operands().empty() || hasPredicate(mask);
  std::map<std::tuple<int64_t, int64_t, int64_t>, TileCounts> known;
  TileCounts counts;
  for (int64_t b = 0; b < sequences.size(); ++b)
    for (int64_t h = 0; h < (differ ? heads : 1); ++h) {
      auto [it, isNew] = known.try_emplace({sequences.queriesOf(b).length, sequences.keysOf(b).length, h});
      if (isNew || differBySequence)
        it->second = mapOf(b, h).count();
      counts += it->second;
    }
  for (double *count : {&counts.tiles, &counts.visited, &counts.full, &counts.empty, &counts.pairs, &counts.visible})
    *count *= differ ? 1 : heads;
  if (counts.empty < 0)
    counts.empty = -1;
  return counts;
}

rt::Result<ProblemOp> attn::findExplained(mlir::ModuleOp module, llvm::StringRef name) {
  rt::Result<ProblemOp> found = findProblem(module, name);
  if (!found)
    if (rt::Result<Computation> pass = findComputation(module, name)) // whose problem may be private
      found = ProblemOp(pass->problem);
  return found;
}

rt::Result<Explanation> attn::explain(Compilation &compilation, mlir::ModuleOp module, ProblemOp problem,
                                      const Target &target, ExplainRequest request) {
  if (llvm::Error bad = checkRanges(request))
    return fault(std::move(bad));
  if (std::optional<std::string> bad = faultOfSchedule(problem))
    return rt::Error{*bad};
  if (problem.getSegments())
    return rt::Error{"expected a problem whose sequences are given, got: one with segments"};
  // All arrays, also those that the mask's form needs no more.
  auto arrays = reference::arraysOf(problem, std::move(request.inputs));
  if (!arrays)
    return fault(arrays.takeError());
  const Sizes &sizes = arrays->second;
  MaskInterface mask = problem.getMask(), form = canonicalMask(mask);
  problem.setMaskAttr(form); // as the pipeline begins
  int64_t heads = problem.getHeads();
  if (sizes.batch == 0)
    return rt::Error{"a batch of 0 sequences has no tiles to explain; it runs, and writes nothing"};
  if (request.sequence < 0 || request.sequence >= sizes.batch || request.head < 0 || request.head >= heads)
    return rt::Error{fmt::format("expected one of {} sequences and {} heads, got: sequence {}, head {}", sizes.batch,
                                 heads, request.sequence, request.head)};

  Explanation result;
  result.target = target.str();
  result.mask = printed(mask), result.canonicalMask = printed(form);
  result.sequences = sizes.batch, result.heads = heads, result.kvHeads = problem.getKvHeads();
  result.dimQk = problem.getDimQk(), result.dimV = problem.getDimV();
  auto passOf = [&](Computation of, const ChosenSchedule &chosen) {
    Explanation::Pass pass{of.getName().str(), describeSchedule(of, chosen.schedule) + "; " + chosen.why, {}};
    if (mlir::SymbolTable::getSymbolVisibility(of.getOperation()) !=
        mlir::SymbolTable::Visibility::Private) // or it is only described
      pass.refusal = refusalOf(compilation, module, target, pass.name);
    return pass;
  };
  TargetInfo info = target.info();
  ChosenSchedule chosen = chooseSchedule(problem, info);
  result.forward = passOf(problem, chosen);
  for (BackwardOp backward : module.getOps<BackwardOp>()) {
    if (backward.getProblemOp() != problem)
      continue;
    if (std::optional<std::string> bad = faultOfSchedule(backward))
      return rt::Error{*bad};
    result.backward.push_back(passOf(backward, chooseSchedule(backward, info)));
  }

  tile::ScheduleInterface kernel = mainKernelOf(chosen.schedule);
  result.qTile = request.tile ? request.tile->rows : kernel.getQueries();
  result.kvTile = request.tile ? request.tile->keys : kernel.getKvTile();
  if (!request.tile)
    result.config = printed(kernel);
  MaskInterface walked = form;
  if (auto byResidue = llvm::dyn_cast<tile::ByResidueAttr>(chosen.schedule); byResidue && !request.tile)
    if (auto residues = residuesOf(form, byResidue)) // else the schedule is refused
      result.rowStride = byResidue.getStride(), walked = residues->rest;
  result.describesLongSequences = llvm::isa<tile::ByLengthAttr>(chosen.schedule);
  reference::Sequences sequences(problem, arrays->first, sizes);
  bool lists = !kernel.isPerSequence() && hasTileLists(problem, kernel);
  if (lists)
    result.lists = describeRoomOfLists(problem);
  auto mapOf = [&](int64_t sequence, int64_t head) {
    return TileMap(form, walked, sequences, sequence, head, result.qTile, result.kvTile, result.rowStride, lists);
  };
  TileMap map = mapOf(request.sequence, request.head);
  result.sequence = request.sequence, result.head = request.head;
  result.seqlenQ = map.lenQ, result.seqlenKv = map.lenK;
  if (auto expected = reference::ExpectedLengths::of(problem);
      expected && expected->queries == map.lenQ && expected->keys == map.lenK)
    result.clause = expected->clause;
  llvm::raw_string_ostream drawn(result.map), svg(result.svg);
  drawText(drawn, map);
  if (request.svg)
    drawSvg(svg, map, result.mask);

  result.counts = countAll(form, sequences, heads, mapOf);
  double perPair = 2.0 * (problem.getDimQk() + problem.getDimV());
  result.visibleFlops = perPair * result.counts.visible;
  result.visitedFlops = perPair * result.counts.visited * result.qTile * result.kvTile;
  result.bytes = bytesOf(problem, sizes);
  result.tflops = request.tflops, result.gbps = request.gbps;
  return result;
}

rt::Result<Explanation> attn::explain(llvm::StringRef text, llvm::StringRef name, const Target &target,
                                      ExplainRequest request) {
  rt::Result<Explanation> result = rt::Error{};
  withCompilation([&](Compilation &compilation) {
    auto module = compilation.parse(text, "problem");
    if (!module)
      return void(result = module.error());
    rt::Result<ProblemOp> problem = findExplained(**module, name);
    result = problem ? explain(compilation, **module, *problem, target, std::move(request))
                     : rt::Result<Explanation>(problem.error());
  });
  return result;
}
