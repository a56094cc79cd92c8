// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ProgramBuilder.h"
#include "KernelArguments.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include "attn/Schedules/Passes.h"
#include "attn/Schedules/Signature.h"

using namespace mlir;
using namespace attn;
using namespace attn::program;
using rt::Extent;

ProgramBuilder::ProgramBuilder(Operation *op, StringRef name, StringRef target)
    : b(op), loc(op->getLoc()), isHost(target == "cpu") {
  def = DefOp::create(b, loc, freeSymbol(op->getParentOp(), (name + "_program").str()));
  b.setInsertionPointToStart(&def.getBody().emplaceBlock());
}

ProgramBuilder::ProgramBuilder(Computation computation, StringRef target)
    : ProgramBuilder(computation.getOperation(), computation.getName(), target) {
  extents.fixed = FixedSizes::of(computation);
  data = dtypeOf(computation.problem.getDtype());
  workspace = workspaceOf(computation);
  addSignature(signatureOf(computation));
}

ProgramBuilder::ProgramBuilder(SegmentsOp segments, StringRef target)
    : ProgramBuilder(segments, segments.getSymName(), target) {
  addSignature(signatureOf(segments));
}

ProgramBuilder::ProgramBuilder(GatherRowsOp rows, StringRef target) : ProgramBuilder(rows, rows.getSymName(), target) {
  extents.fixed = FixedSizes::of(rows);
  data = dtypeOf(rows.getDtype());
  addSignature(signatureOf(rows));
}

ProgramBuilder::ProgramBuilder(ComputationInterface op, StringRef target)
    : ProgramBuilder(op, SymbolTable::getSymbolName(op).getValue(), target) {
  extents.fixed = FixedSizes::of(op);
  data = dtypeOf(op.getDataType());
  for (const ProblemTensor &tensor : tensorsOf(op))
    rowAxes[tensor.name] = std::max(tensor.rowAxis, 0);
  addSignature(signatureOf(op));
}

void ProgramBuilder::addSize(StringRef name, const Extent &value) {
  SizeOp::create(b, loc, name, ExtentAttr::get(b.getContext(), value));
}

void ProgramBuilder::addSignature(const rt::Program &signature) {
  for (const rt::Program::Size &size : signature.sizes)
    addSize(size.name, size.value);
  for (const rt::Program::Tensor &tensor : signature.tensors)
    values[tensor.name] = createTensor(b, loc, tensor);
}

Type ProgramBuilder::elementOf(StringRef name) { return TensorInfo::of(tensor(name)).element; }

std::vector<Extent> ProgramBuilder::extentsOf(StringRef name) {
  std::vector<Extent> list;
  for (auto extent : TensorInfo::of(tensor(name)).extents.getAsRange<ExtentAttr>())
    list.push_back(extent.getExtent());
  return list;
}

Value ProgramBuilder::tensor(StringRef name) {
  Value &value = values[name];
  if (value)
    return value;
  auto found = llvm::find_if(workspace, [&](const WorkspaceBuffer &buffer) { return buffer.name == name; });
  assert(found != workspace.end() && "a kernel's tensor is the caller's or of the workspace");
  const rt::Dtype dtypes[] = {data, rt::Dtype::F32, rt::Dtype::I32}; // as ProblemTensor::Element
  return value = createBuffer(b, loc, name, dtypes[found->element], found->shape(extents));
}

//===--------------------------------------------------------------------===//
// Launches
//===--------------------------------------------------------------------===//

/// The number of CTAs of work in a launch; `most`: CTAs if they loop over the work.
Extent ProgramBuilder::ctasOf(tile::KernelOp kernel, const KernelGrid &grid, int64_t most) const {
  if (grid.blocks)
    return *grid.blocks;
  if (grid.cluster) // one cluster for each row of ids, or one for the whole batch
    return grid.ofIds ? sizeNamed("id_rows") : Extent(1);
  // The number of sequences, or, of work tiles, that of pieces.
  Extent batch = grid.packed && !grid.tiles ? extents.sequences(grid.keys) : sizeNamed("batch");
  if (grid.longer) { // work tiles of long sequences; dense sequences are all long or all short
    Extent queries = floorDiv(extents.rows(false), grid.longer[0] + 1),
           keys = floorDiv(extents.rows(true), grid.longer[1] + 1);
    batch = grid.packed ? min(batch, queries + keys) : batch * min(1, queries + keys);
  }
  if (grid.tiles) {
    // A packed batch of 0 sequences has padding to store, like one of 1.
    Extent units = Extent(grid.heads) * (grid.packed ? max(batch, 1) : batch) * Extent(grid.tiles.getInt());
    tile::ScheduleInterface schedule = kernel.getSchedule();
    return ceilDiv(units, schedule.getUnit() == tile::WorkUnit::warp_per_sequence ? schedule.getWarps() : 1);
  }
  int64_t tile = (grid.keys ? kernel.getSchedule().getKvTile() : kernel.getSchedule().getQueries()) * grid.residues;
  Extent ctas = Extent(grid.heads) * tilesOfRows(grid.packed, batch, extents.rows(grid.keys), tile);
  if (kernel.getSchedule().splitsKv())
    ctas = ctas * sizeNamed("splits");
  if (grid.ifSplit)
    ctas = ctas * min(sizeNamed("splits") - 1, 1);
  if (grid.splitsLoops) // a slot has `splitRows` rows, and serves so many CTAs of a smaller tile
    ctas = ctas + (splitRows % tile ? floorDiv(splitSlots() * Extent(splitRows), tile)
                                    : splitSlots() * Extent(splitRows / tile));
  return most ? min(ctas, most) : ctas;
}

/// The size `splits` of a launch: fixed by the schedule, or chosen at launch.
void ProgramBuilder::addSplits(tile::KernelOp kernel, const KernelGrid &grid) {
  if (int64_t given = kernel.getSchedule().getKvSplits().value_or(0))
    return addSize("splits", given);
  int64_t tile = kernel.getSchedule().getQueries();
  Extent batch = sizeNamed("batch");
  // NOTE: only work tiles with rows count, not the spare ones of a packed grid. Lengths are on the device.
  Extent tiles = Extent(grid.heads) * (grid.packed ? floorDiv(extents.rows(false), tile) + batch
                                                   : batch * ceilDiv(extents.rows(false), tile));
  Extent keys = extents.fixed.packedKv ? floorDiv(extents.rows(true), max(batch, 1)) : extents.rows(true);
  Extent atOnce = sizeNamed("multiprocessors") * (isHost ? Extent(1) : Extent(kernel.getSchedule().getCtasPerSm()));
  addSize("splits", Extent::of(Extent::Op::Splits, {tiles, keys, atOnce}));
}

static GridUnit unitOf(const KernelGrid &grid) {
  return grid.cluster ? GridUnit::clusters
         : grid.tiles ? GridUnit::sequence_tiles
         : grid.keys  ? GridUnit::kv_tiles
                      : GridUnit::query_tiles;
}

void ProgramBuilder::launch(tile::KernelOp kernel, const KernelArguments &arguments, const KernelGrid &grid) {
  if (kernel.getSchedule().splitsKv())
    addSplits(kernel, grid);
  SmallVector<Value> tensors;
  SmallVector<Attribute> list;
  bool listed = false;
  for (const KernelArgument &argument : arguments.list) {
    if (argument.axisFromEnd) {
      ArrayAttr extents = TensorInfo::of(tensor(argument.tensor)).extents;
      auto extent = cast<ExtentAttr>(extents[extents.size() - argument.axisFromEnd]);
      list.push_back(ArgumentAttr::get(b.getContext(), ArgumentKind::size, Effect::none, 0, 1, false, {}, extent));
      continue;
    }
    ArgumentAttr launched = argument.launched;
    if (!argument.tensor.empty()) {
      tensors.push_back(tensor(argument.tensor));
      bool isResult = TensorInfo::of(tensors.back()).role == program::Role::result;
      bool isOfKeys = argument.tensor == "dk" || argument.tensor == "dv";
      auto [part, parts] = argument.tensor == "dq" && grid.partOfDq ? *grid.partOfDq
                           : isOfKeys && grid.partOfDkDv            ? *grid.partOfDkDv
                                                                    : std::pair(grid.part, grid.parts);
      if (isResult && launched.getEffect() == Effect::write && parts != 1)
        launched = ArgumentAttr::get(b.getContext(), launched.getKind(), Effect::write, part, parts, false, {}, {});
      listed |= grid.longer && llvm::any_of(workTileLists(true), [&](const WorkTileList &workTiles) {
                  return argument.tensor == workTiles.name;
                });
    }
    list.push_back(launched);
  }
  int64_t most = (listed || grid.splitsLoops) && !kernel.isPersistent() ? ctasOfListedWorkTiles : grid.most;
  LaunchOp::create(b, kernel.getLoc(), kernel.getSymName(), unitOf(grid),
                   ExtentAttr::get(b.getContext(), ctasOf(kernel, grid, most)), tensors, b.getArrayAttr(list));
}

void ProgramBuilder::finish(Operation *before) {
  auto launches = llvm::to_vector(def.getOps<LaunchOp>());
  auto accesses = [](LaunchOp launch, Value tensor) {
    return llvm::any_of(accessesOf(launch), [&](const TensorAccess &use) {
      return use.tensor == tensor && use.argument.getKind() == ArgumentKind::pointer;
    });
  };
  for (auto [number, launch] : llvm::enumerate(launches)) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(def, launch.getKernelAttr());
    if (kernel.getLonger()) // it writes some sequences only; other launches write the rest
      continue;
    SmallVector<Attribute> list(launch.getArguments().getValue());
    for (auto [tensor, argument, i] : accessesOf(launch)) {
      if (argument.getEffect() != Effect::write)
        continue;
      // A kernel on KV tiles writes some rows of queries, and the kernel on query tiles after it the others.
      auto isQueries = [&](LaunchOp other) { return other.getUnit() != GridUnit::kv_tiles && accesses(other, tensor); };
      bool earlier =
          llvm::any_of(ArrayRef(launches).take_front(number), [&](LaunchOp other) { return accesses(other, tensor); });
      bool later =
          launch.getUnit() == GridUnit::kv_tiles && llvm::any_of(ArrayRef(launches).drop_front(number + 1), isQueries);
      if (!earlier && !later)
        list[i] = ArgumentAttr::get(b.getContext(), argument.getKind(), Effect::write, argument.getPart(),
                                    argument.getParts(), true, {}, {});
    }
    launch.setArgumentsAttr(b.getArrayAttr(list));
  }
  def->moveBefore(before);
}
