// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelArguments.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;
using program::ArgumentAttr;
using program::ArgumentKind;
using program::Effect;

KernelArguments KernelArguments::ofForward(ProblemOp problem, tile::ScheduleInterface schedule, bool usesTma,
                                           bool hasTileLists, bool hasWorkTileList, ArrayRef<MaskOperand> mapsAsLists,
                                           int64_t rowStride) {
  KernelArguments arguments(problem.getContext());
  std::vector<ProblemTensor> tensors = tensorsOf(problem);
  bool isSplit = schedule.splitsKv(), splitsLoops = schedule.getLeastKvTiles() > 0;
  if (isSplit && !mayBeUnsplit(schedule))
    llvm::erase_if(tensors, [](const ProblemTensor &tensor) { return tensor.role == ProblemTensor::Result; });

  arguments.addPointers(problem, tensors);
  arguments.addDerivedArrays(problem, mapsAsLists);
  if (isSplit)
    arguments.addPartial(Effect::write);
  if (splitsLoops) {
    arguments.addIntegers({{kvSplits().list}, {kvSplits().counts}});
    arguments.addSlots(Effect::write);
  }
  if (hasTileLists)
    arguments.addLists(problem, /*ofKeys=*/false);
  if (hasWorkTileList)
    arguments.addIntegers({{workTileLists(false)[0].name}, {workTileLists(false)[0].count}});
  arguments.addSizes(problem, /*keys=*/true, /*totalKeys=*/hasTileLists);
  if (isSplit)
    arguments.addSize("splits");
  arguments.addStrides(tensors);

  if (!usesTma)
    return arguments;
  arguments.addMap(problem, tensors[0], schedule.getQueries(), rowStride, schedule.getPackHeads());
  for (const ProblemTensor &tensor : llvm::ArrayRef(tensors).slice(1, 2))
    arguments.addMap(problem, tensor, schedule.getKvTile(), rowStride);
  arguments.addBlocks();
  arguments.addCounter();
  return arguments;
}

static std::vector<ProblemTensor> resultsOf(ProblemOp problem) {
  std::vector<ProblemTensor> results = tensorsOf(problem);
  llvm::erase_if(results, [](const ProblemTensor &tensor) { return tensor.role != ProblemTensor::Result; });
  return results;
}

KernelArguments KernelArguments::ofCombine(ProblemOp problem) {
  KernelArguments arguments(problem.getContext());
  std::vector<ProblemTensor> tensors = resultsOf(problem);
  arguments.addPointers(problem, tensors);
  arguments.addPartial(Effect::read);
  arguments.addSizes(problem, /*keys=*/false);
  arguments.addSize("splits");
  arguments.addStrides(tensors);
  return arguments;
}

KernelArguments KernelArguments::ofCombineLoops(ProblemOp problem) {
  KernelArguments arguments(problem.getContext());
  std::vector<ProblemTensor> tensors = resultsOf(problem);
  arguments.addPointers(problem, tensors);
  arguments.addSlots(Effect::read);
  arguments.addIntegers({{kvSplits().counts}, {kvSplits().split}});
  arguments.addSizes(problem, /*keys=*/false);
  arguments.addStrides(tensors);
  arguments.addBlocks();
  return arguments;
}

static Type elementOf(ProblemTensor::Element element, ProblemOp problem) {
  MLIRContext *context = problem.getContext();
  return element == ProblemTensor::Data      ? problem.getDtype()
         : element == ProblemTensor::Float32 ? Type(Float32Type::get(context))
                                             : Type(IntegerType::get(context, 32));
}

/// The run-time integer arrays, except the seed.
static std::vector<ProblemTensor> integerArraysOf(ProblemOp problem) {
  std::vector<ProblemTensor> arrays = tensorsOf(problem);
  std::optional<Dropout> dropout = problem.dropoutInForce();
  llvm::erase_if(arrays, [&](const ProblemTensor &tensor) {
    return tensor.role != ProblemTensor::Array || tensor.element != ProblemTensor::Int32 ||
           (dropout && tensor.name == dropout->seed);
  });
  return arrays;
}

KernelArguments KernelArguments::ofTileLists(ProblemOp problem, ArrayRef<TensorUse> results,
                                             ArrayRef<MaskOperand> mapsAsLists, bool transposed) {
  KernelArguments arguments(problem.getContext());
  arguments.addPointers(problem, integerArraysOf(problem));
  arguments.addDerivedArrays(problem, mapsAsLists, /*parents=*/"", transposed);
  arguments.addIntegers(results);
  for (bool ofKeys : {false, true})
    if (llvm::any_of(results, [&](const TensorUse &use) { return use.name == tileLists(ofKeys).list; }))
      arguments.addExtent(tileLists(ofKeys).list, "entries", 1);
  arguments.addSizes(problem, /*keys=*/true, /*totalKeys=*/true);
  return arguments;
}

KernelArguments KernelArguments::ofLoopSplits(ProblemOp problem, ArrayRef<TensorUse> results,
                                              ArrayRef<TensorUse> partial, bool hasTileLists) {
  KernelArguments arguments(problem.getContext());
  arguments.addIntegers(results);
  if (hasTileLists)
    arguments.addLists(problem, /*ofKeys=*/true);
  for (const TensorUse &buffer : partial)
    arguments.addExtent(buffer.name, "slots", 3);
  arguments.addSizes(problem, /*keys=*/true);
  arguments.addSize("multiprocessors");
  return arguments;
}

KernelArguments KernelArguments::ofBackward(BackwardOp backward, ArrayRef<TensorUse> uses, bool usesTma,
                                            llvm::function_ref<int64_t(StringRef)> rows, int64_t rowStride,
                                            ArrayRef<MaskOperand> mapsAsLists) {
  ProblemOp problem = backward.getProblemOp();
  KernelArguments arguments(backward.getContext());
  auto find = [&](StringRef name) {
    return llvm::find_if(uses, [&](const TensorUse &use) { return use.name == name; });
  };
  auto has = [&](StringRef name) { return find(name) != uses.end(); };
  auto effectOf = [&](StringRef name) { return has(name) ? find(name)->effect : Effect::read; };
  std::vector<ProblemTensor> plain, boxed;
  for (ProblemTensor &tensor : tensorsOf(backward)) {
    bool isCopied = tensor.role == ProblemTensor::Operand && tensor.element == ProblemTensor::Data;
    if (usesTma && has(tensor.name) && isCopied && rows(tensor.name) > 0)
      boxed.push_back(std::move(tensor));
    else if (tensor.role == ProblemTensor::Array || has(tensor.name))
      plain.push_back(std::move(tensor));
  }
  arguments.addPointers(problem, plain, effectOf);
  arguments.addDerivedArrays(problem, mapsAsLists);
  // Lists are added below, with their lengths.
  auto isOfSplits = [](StringRef name) {
    return llvm::any_of(ArrayRef({false, true}), [&](bool ofDv) {
      const LoopSplits &splits = querySplits(ofDv);
      return name == splits.list || name == splits.counts || name == splits.split;
    });
  };
  for (const WorkspaceBuffer &buffer : workspaceOf(backward))
    if (bool isFloat = buffer.element == ProblemTensor::Float32;
        has(buffer.name) && (isFloat || buffer.name == "dq_semaphore" || isOfSplits(buffer.name)))
      arguments.addPointer(buffer.name, elementOf(buffer.element, problem), effectOf(buffer.name));
  for (WorkTileList list : workTileLists(true))
    if (has(list.name))
      arguments.addIntegers({{list.name}, {list.count}});
  for (bool ofKeys : {false, true})
    if (has(tileLists(ofKeys).list))
      arguments.addLists(problem, ofKeys);
  arguments.addSizes(problem, /*keys=*/true, /*totalKeys=*/true);
  arguments.addStrides(plain);
  // The producer lacks registers to compute these.
  if (has("row_statistics_head"))
    arguments.addStride("row_statistics", "head", 1);
  if (has("row_statistics_kind"))
    arguments.addStride("row_statistics", "kind", 0);
  for (const ProblemTensor &tensor : boxed)
    arguments.addMap(problem, tensor, rows(tensor.name), rowStride);
  if (usesTma || has("blocks"))
    arguments.addBlocks();
  if (usesTma)
    arguments.addCounter();
  return arguments;
}

KernelArguments KernelArguments::ofSegments(SegmentsOp segments, ProblemOp problem) {
  std::vector<ProblemTensor> read = problem ? tensorsOf(problem) : std::vector<ProblemTensor>();
  auto effectOf = [&](const ProblemTensor &tensor) {
    if (tensor.role == ProblemTensor::Array)
      return Effect::read;
    bool isWanted = !problem || tensor.name == "status" ||
                    llvm::any_of(read, [&](auto &other) { return other.name == tensor.name; });
    return isWanted ? Effect::write : Effect::scratch;
  };
  KernelArguments arguments(segments.getContext());
  Type i32 = IntegerType::get(segments.getContext(), 32);
  for (const ProblemTensor &tensor : tensorsOf(segments))
    arguments.addPointer(tensor.name, i32, effectOf(tensor));
  for (const char *size : {"id_rows", "tokens_q", "tokens_kv"})
    arguments.addSize(size);
  if (segments.getRule().hasPositions())
    for (const char *side : {"_q", "_kv"})
      arguments.addSize(("position_rows" + Twine(side)).str(), ("positions" + Twine(side) + "_rows").str());
  arguments.addCounter();
  return arguments;
}

KernelArguments KernelArguments::ofSinks(ProblemOp problem, SegmentsOp segments) {
  KernelArguments arguments(problem.getContext());
  std::vector<ProblemTensor> lse = tensorsOf(problem), arrays = lse;
  llvm::erase_if(lse, [](const ProblemTensor &tensor) { return tensor.name != "lse"; });
  std::optional<ScoreOperand> sinks = problem.getSinkArray();
  llvm::erase_if(arrays, [&](const ProblemTensor &tensor) {
    return tensor.name != "cu_seqlens_q" && tensor.name != "padded_offsets_q" && !(sinks && tensor.name == sinks->name);
  });
  bool positions = segments.getRule().hasPositions();
  arguments.addPointers(problem, lse, [](StringRef) { return Effect::update; }); // it writes some rows only
  arguments.addIntegers({{"ids_q"}});
  if (positions)
    arguments.addIntegers({{"positions_q"}});
  arguments.addPointers(problem, arrays);
  arguments.addSizes(problem, /*keys=*/false);
  arguments.addSize("tokens_q");
  if (positions)
    arguments.addSize("position_rows_q", "positions_q_rows");
  arguments.addStrides(lse);
  return arguments;
}

KernelArguments KernelArguments::ofGatherRows(GatherRowsOp rows) {
  KernelArguments arguments(rows.getContext());
  std::vector<ProblemTensor> tensors = tensorsOf(rows);
  for (const ProblemTensor &tensor : tensors) {
    bool isIndex = tensor.element == ProblemTensor::Int32;
    Type element = isIndex                                    ? IntegerType::get(rows.getContext(), 32)
                   : tensor.element == ProblemTensor::Float32 ? Type(Float32Type::get(rows.getContext()))
                                                              : rows.getDtype();
    arguments.addPointer(tensor.name, element, tensor.role == ProblemTensor::Result ? Effect::write : Effect::read);
  }
  arguments.addSize("total_q");
  for (const ProblemTensor &tensor : tensors)
    if (tensor.rowAxis >= 0 && tensor.role != ProblemTensor::Array) {
      arguments.addStride(tensor.name, "row", tensor.rowAxis);
      arguments.addStride(tensor.name, "head", tensor.headAxis);
    }
  return arguments;
}

KernelArguments KernelArguments::ofCalls(ComputationInterface op, ProgramBuilder &program, ArrayRef<StringRef> tensors,
                                         ArrayRef<StringRef> written, ArrayRef<StringRef> sizes,
                                         ArrayRef<StringRef> rowsOf) {
  KernelArguments arguments(op.getContext());
  for (StringRef tensor : tensors)
    arguments.addPointer(tensor, program.elementOf(tensor),
                         llvm::is_contained(written, tensor) ? Effect::write : Effect::read);
  for (StringRef size : sizes)
    arguments.addSize(size);
  for (StringRef tensor : rowsOf)
    arguments.addNumber((tensor + "_rows").str(), program.rowsOf(tensor));
  std::vector<ProblemTensor> passed = tensorsOf(op);
  llvm::erase_if(passed, [&](const ProblemTensor &tensor) { return !llvm::is_contained(tensors, tensor.name); });
  arguments.addStrides(passed);
  return arguments;
}

tile::KernelOp KernelArguments::makeKernel(ProgramBuilder &program, OpBuilder &b, Location loc, StringRef name,
                                           StringRef target, const KernelGrid &grid,
                                           tile::ScheduleInterface schedule) const {
  SmallVector<Attribute> names;
  SmallVector<Type> types;
  for (const KernelArgument &argument : list) {
    names.push_back(b.getStringAttr(argument.name));
    types.push_back(argument.type);
  }
  auto kernel = tile::KernelOp::create(b, loc, name, b.getArrayAttr(names), target, grid.packed, grid.keys, grid.heads,
                                       grid.tiles, grid.cluster, grid.longer,
                                       grid.residues == 1 ? IntegerAttr() : b.getI64IntegerAttr(grid.residues),
                                       schedule, /*shared_bytes=*/IntegerAttr());
  kernel.getBody().emplaceBlock().addArguments(types, SmallVector<Location>(types.size(), loc));
  program.launch(kernel, *this, grid);
  return kernel;
}

tile::KernelOp KernelArguments::makeKernelOfOneCta(ProgramBuilder &program, OpBuilder &b, Location loc, StringRef name,
                                                   StringRef target) const {
  KernelGrid grid;
  grid.cluster = b.getI64IntegerAttr(1);
  auto schedule = tile::AuxiliaryAttr::get(context, /*q_tile=*/128, /*kv_tile=*/128, /*warps=*/16, /*ctas_per_sm=*/1);
  return makeKernel(program, b, loc, name, target, grid, schedule);
}

//===--------------------------------------------------------------------===//
// Single arguments
//===--------------------------------------------------------------------===//

void KernelArguments::addPointer(StringRef tensor, Type element, Effect effect) {
  list.push_back({tensor.str(), tile::PtrType::get(context, element),
                  ArgumentAttr::get(context, ArgumentKind::pointer, effect), tensor.str()});
}

/// Rows of a TMA box for tiles of `rows` rows: all, or with a stride as many as fit the 256 rows that a box may span,
/// in multiples of the eight rows of the swizzle pattern.
static int64_t rowsOfBox(int64_t rows, int64_t stride) {
  int64_t most = stride == 1 ? rows : std::min<int64_t>(rows, 256 / stride / 8 * 8);
  while (rows % most)
    most -= 8;
  return most;
}

void KernelArguments::addMap(ProblemOp problem, const ProblemTensor &tensor, int64_t rows, int64_t rowStride,
                             int64_t heads) {
  SmallVector<int64_t> axes = {tensor.rowAxis, tensor.headAxis};
  if (tensor.batchAxis >= 0)
    axes.push_back(tensor.batchAxis);
  auto map = tile::TensorMapType::get(context, rowsOfBox(rows, rowStride), heads, problem.getDtype(),
                                      /*packed=*/tensor.batchAxis < 0, rowStride);
  list.push_back({tensor.name + "_map", map,
                  ArgumentAttr::get(context, ArgumentKind::map, Effect::read, 0, 1, false, axes, {}), tensor.name});
}

void KernelArguments::addStride(StringRef tensor, StringRef axisName, int axis) {
  list.push_back({(tensor + "_" + axisName).str(), IntegerType::get(context, 64),
                  ArgumentAttr::get(context, ArgumentKind::stride, Effect::none, 0, 1, false, {axis}, {}),
                  tensor.str()});
}

void KernelArguments::addSize(StringRef name, StringRef size) {
  auto extent = program::ExtentAttr::get(context, rt::Extent::symbol(std::string_view(size)));
  list.push_back({name.str(), IntegerType::get(context, 32),
                  ArgumentAttr::get(context, ArgumentKind::size, Effect::none, 0, 1, false, {}, extent), ""});
}

void KernelArguments::addNumber(StringRef name, const rt::Extent &extent) {
  list.push_back({name.str(), IntegerType::get(context, 32),
                  ArgumentAttr::get(context, ArgumentKind::size, Effect::none, 0, 1, false, {},
                                    program::ExtentAttr::get(context, extent)),
                  ""});
}

void KernelArguments::addExtent(StringRef tensor, StringRef axisName, int axisFromEnd) {
  list.push_back({(tensor + "_" + axisName).str(), IntegerType::get(context, 32), {}, tensor.str(), axisFromEnd});
}

void KernelArguments::addBlocks() {
  list.push_back({"blocks", IntegerType::get(context, 32), ArgumentAttr::get(context, ArgumentKind::blocks), ""});
}

void KernelArguments::addCounter() {
  list.push_back({"queue", tile::QueueType::get(context), ArgumentAttr::get(context, ArgumentKind::counter), ""});
}

//===--------------------------------------------------------------------===//
// Groups of arguments
//===--------------------------------------------------------------------===//

void KernelArguments::addPointers(ProblemOp problem, ArrayRef<ProblemTensor> tensors,
                                  llvm::function_ref<Effect(StringRef)> effect) {
  for (const ProblemTensor &tensor : tensors) {
    if (tensor.ownsEntries()) // kernels read derived arrays instead
      continue;
    bool isWritten = tensor.role == ProblemTensor::Result;
    addPointer(tensor.name, elementOf(tensor.element, problem),
               !isWritten ? Effect::read
               : effect   ? effect(tensor.name)
                          : Effect::write);
  }
}

void KernelArguments::addDerivedArrays(ProblemOp problem, ArrayRef<MaskOperand> mapsAsLists, StringRef parents,
                                       bool transposed) {
  for (const MaskOperand &operand : distinctOperands(problem.getMask())) {
    if (transposed && llvm::is_contained(mapsAsLists, operand)) {
      ProblemExtents extents = {FixedSizes::of(problem)};
      TransposedLists lists = transposedOf(operand);
      addIntegers({{lists.offsets}, {lists.tiles}});
      addNumber(lists.tiles + "_blocks", blocksOfMap(operand, extents));
      addNumber(lists.tiles + "_entries", floorDiv(entriesOfMap(operand, extents), headsOfMap(operand, extents.fixed)));
    } else if (llvm::is_contained(mapsAsLists, operand)) {
      addIntegers({{operand.name}});
      addExtent(operand.name, "entries", 1);
      addColumns(problem, operand);
    } else if (operand.lists) {
      addIntegers({{bitsOf(operand)}});
      addExtent(bitsOf(operand), "rows", 2);
      addExtent(bitsOf(operand), "words", 1);
    }
    if (!operand.madeOf.empty()) // other trees' may not exist yet
      addIntegers({{operand.name, parents.empty()             ? Effect::read
                                  : operand.madeOf == parents ? Effect::write
                                                              : Effect::unused}});
  }
}

void KernelArguments::addColumns(ProblemOp problem, const MaskOperand &map) {
  const std::string &columns = map.lists->columns;
  addIntegers({{columns}});
  if (map.lists->fixedWidth)
    addNumber(columns + "_entries", entriesOfMap(map, {FixedSizes::of(problem)}));
  else
    addExtent(columns, "entries", 1);
}

KernelArguments KernelArguments::ofOffsets(ProblemOp problem, const MaskOperand &map) {
  KernelArguments arguments(problem.getContext());
  arguments.addIntegers({{map.name, Effect::write}});
  arguments.addExtent(map.name, "entries", 1);
  arguments.addExtent(map.lists->columns, "width", 1);
  arguments.addNumber("offsets", offsetsOfMap(map, {FixedSizes::of(problem)}));
  return arguments;
}

KernelArguments KernelArguments::ofTransposed(ProblemOp problem, const MaskOperand &map, ArrayRef<TensorUse> uses) {
  KernelArguments arguments(problem.getContext());
  ProblemExtents extents = {FixedSizes::of(problem)};
  arguments.addIntegers(uses);
  for (auto [layout, name] : {std::pair(problem.getQLayout(), "cu_seqlens_q"), {problem.getKLayout(), "cu_seqlens_kv"}})
    if (layout.isPacked())
      arguments.addIntegers({{name}});
  arguments.addSize("batch");
  arguments.addNumber("lines", extents.linesOfLists(map.lists->q));
  arguments.addExtent(map.lists->columns, "width", 1);
  arguments.addNumber("key_blocks", extents.linesOfLists(map.lists->kv, /*keys=*/true));
  arguments.addNumber("all_blocks", blocksOfMap(map, extents));
  arguments.addBlocks();
  return arguments;
}

KernelArguments KernelArguments::ofBlockMap(ProblemOp problem, const MaskOperand &lists) {
  KernelArguments arguments(problem.getContext());
  std::string bits = bitsOf(lists);
  arguments.addIntegers({{lists.name}});
  arguments.addColumns(problem, lists);
  arguments.addIntegers({{bits, Effect::write}});
  arguments.addExtent(bits, "rows", 2);
  arguments.addExtent(bits, "words", 1);
  arguments.addSize("batch");
  arguments.addBlocks();
  return arguments;
}

KernelArguments KernelArguments::ofTree(ProblemOp problem, StringRef parents, bool cooperative) {
  KernelArguments arguments(problem.getContext());
  SmallVector<MaskOperand> maps = distinctOperands(problem.getMask()); // whose bits the kernel does not need
  llvm::erase_if(maps, [](const MaskOperand &operand) { return !operand.lists; });
  arguments.addPointers(problem, integerArraysOf(problem));
  arguments.addDerivedArrays(problem, maps, parents);
  arguments.addIntegers({{numberingOf(parents), Effect::scratch}});
  arguments.addSizes(problem, /*keys=*/true, /*totalKeys=*/true);
  if (cooperative)
    arguments.addCounter();
  return arguments;
}

void KernelArguments::addPartial(Effect effect) {
  for (const char *name : {"partial_o", "partial_max", "partial_sum"})
    addPointer(name, Float32Type::get(context), effect);
}

void KernelArguments::addSlots(Effect effect) {
  for (const char *name : {"slots_o", "slots_max", "slots_sum"})
    addPointer(name, Float32Type::get(context), effect);
}

void KernelArguments::addIntegers(ArrayRef<TensorUse> uses) {
  for (const TensorUse &use : uses)
    addPointer(use.name, IntegerType::get(context, 32), use.effect);
}

void KernelArguments::addLists(ProblemOp problem, bool ofKeys) {
  const TileLists &lists = tileLists(ofKeys);
  addIntegers({{lists.list}, {lists.positions}, {lists.used}});
}

void KernelArguments::addSizes(ProblemOp problem, bool keys, bool totalKeys) {
  addSize("batch");
  if (problem.getQLayout().hasPieces()) {
    addSize("piece_count_q");
    if (keys)
      addSize("piece_count_kv");
    for (auto [shape, name] : {std::pair(OperandShape::PerQuery, "whole_q"), {OperandShape::PerKey, "whole_kv"}})
      if (llvm::any_of(distinctOperands(problem.getMask()),
                       [&, shape = shape](const MaskOperand &array) { return array.shape == shape; }))
        addSize(name);
  }
  addSize(problem.getQLayout().isPacked() ? "total_q" : "seqlen_q");
  if (keys && !problem.getKLayout().isPacked())
    addSize("seqlen_kv");
  // For the entries of a head in arrays of packed keys.
  if (keys && problem.getKLayout().isPacked() &&
      (totalKeys || llvm::any_of(distinctOperands(problem.getMask()), [](const MaskOperand &array) {
         return array.shape == OperandShape::PerKey && array.heads != OperandHeads::shared;
       })))
    addSize("total_kv");
}

void KernelArguments::addStrides(ArrayRef<ProblemTensor> tensors) {
  for (const ProblemTensor &tensor : tensors) {
    if (tensor.batchAxis >= 0)
      addStride(tensor.name, "batch", tensor.batchAxis);
    if (tensor.hasRowStride())
      addStride(tensor.name, "row", tensor.rowAxis);
    if (tensor.headAxis >= 0)
      addStride(tensor.name, "head", tensor.headAxis);
  }
}
