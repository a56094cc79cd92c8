// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelArguments.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

KernelArguments KernelArguments::ofForward(ProblemOp problem, tile::ConfigAttr config, bool boxes, bool lists,
                                           bool slots, ArrayRef<MaskOperand> whole) {
  KernelArguments arguments;
  Builder b(problem.getContext());
  std::vector<ProblemTensor> tensors = tensorsOf(problem);
  if (config.isSplit())
    llvm::erase_if(tensors, [](const ProblemTensor &tensor) { return tensor.role == ProblemTensor::Result; });

  arguments.addPointers(problem, tensors);
  arguments.addMade(problem, whole);
  if (config.isSplit())
    arguments.addPartial(problem);
  if (lists)
    arguments.addLists(problem, /*ofKeys=*/false);
  if (slots)
    arguments.addVisits(problem, {slotLists(false)[0].name, slotLists(false)[0].count});
  arguments.addSizes(problem, /*keys=*/true, /*totalKeys=*/lists);
  if (config.isSplit())
    arguments.add("splits", b.getI32Type());
  arguments.addStrides(problem, tensors);

  if (!boxes)
    return arguments;
  auto map = [&](int64_t rows, int64_t heads, LayoutAttr layout) {
    return tile::MapType::get(problem.getContext(), rows, heads, problem.getDtype(), layout.isPacked());
  };
  arguments.add("q_map", map(config.getQueries(), config.getPackHeads(), problem.getQLayout()));
  arguments.add("k_map", map(config.getKvTile(), 1, problem.getKLayout()));
  arguments.add("v_map", map(config.getKvTile(), 1, problem.getVLayout()));
  arguments.add("blocks", b.getI32Type());
  arguments.add("queue", tile::QueueType::get(problem.getContext()));
  return arguments;
}

KernelArguments KernelArguments::ofMerge(ProblemOp problem) {
  KernelArguments arguments;
  std::vector<ProblemTensor> tensors = tensorsOf(problem);
  llvm::erase_if(tensors, [](const ProblemTensor &tensor) { return tensor.role != ProblemTensor::Result; });
  arguments.addPointers(problem, tensors);
  arguments.addPartial(problem);
  arguments.addSizes(problem, /*keys=*/false);
  arguments.add("splits", Builder(problem.getContext()).getI32Type());
  arguments.addStrides(problem, tensors);
  return arguments;
}

KernelArguments KernelArguments::ofVisits(ProblemOp problem, ArrayRef<StringRef> results, ArrayRef<MaskOperand> whole) {
  KernelArguments arguments;
  std::vector<ProblemTensor> arrays = tensorsOf(problem);
  std::optional<Dropout> dropout = problem.dropoutInForce();
  llvm::erase_if(arrays, [&](const ProblemTensor &tensor) {
    return tensor.role != ProblemTensor::Array || tensor.element != ProblemTensor::Int32 ||
           (dropout && tensor.name == dropout->seed);
  });
  arguments.addPointers(problem, arrays);
  arguments.addMade(problem, whole);
  arguments.addVisits(problem, results);
  for (bool ofKeys : {false, true})
    if (llvm::is_contained(results, StringRef(visitLists(ofKeys).list)))
      arguments.add(Twine(visitLists(ofKeys).list) + "_entries", IntegerType::get(problem.getContext(), 32));
  arguments.addSizes(problem, /*keys=*/true, /*totalKeys=*/true);
  return arguments;
}

KernelArguments KernelArguments::ofBackward(BackwardOp backward, ArrayRef<StringRef> names, bool boxes,
                                            llvm::function_ref<int64_t(StringRef)> rows) {
  KernelArguments arguments;
  ProblemOp problem = backward.getProblemOp();
  Builder b(problem.getContext());
  std::vector<ProblemTensor> plain;
  SmallVector<std::pair<StringRef, bool>> boxed; // and whether it is packed
  for (ProblemTensor &tensor : tensorsOf(backward)) {
    const auto *name = llvm::find(names, tensor.name);
    if (boxes && name != names.end() && tensor.role == ProblemTensor::Operand && tensor.element == ProblemTensor::Data && rows(tensor.name) > 0)
      boxed.emplace_back(*name, tensor.batchAxis < 0);
    else if (tensor.role == ProblemTensor::Array || name != names.end())
      plain.push_back(std::move(tensor));
  }
  arguments.addPointers(problem, plain);
  arguments.addMade(problem);
  // Lists are added below, with what goes with them.
  std::vector<ProblemTensor> scratch = scratchOf(backward);
  llvm::erase_if(scratch, [&](const ProblemTensor &tensor) {
    return !llvm::is_contained(names, tensor.name) ||
           (tensor.element == ProblemTensor::Int32 && tensor.name != "dq_turns");
  });
  arguments.addPointers(problem, scratch);
  for (SlotList list : slotLists(true))
    if (llvm::is_contained(names, StringRef(list.name)))
      arguments.addVisits(problem, {list.name, list.count});
  for (bool ofKeys : {false, true})
    if (llvm::is_contained(names, StringRef(visitLists(ofKeys).list)))
      arguments.addLists(problem, ofKeys);
  arguments.addSizes(problem, /*keys=*/true, /*totalKeys=*/true);
  arguments.addStrides(problem, plain);
  for (StringRef stride : {"statistics_head", "statistics_kind"}) // a producer has no registers to work them out
    if (llvm::is_contained(names, stride))
      arguments.add(stride, b.getI64Type());
  for (auto [name, packed] : boxed)
    arguments.add(name + "_map", tile::MapType::get(b.getContext(), rows(name), 1, problem.getDtype(), packed));
  if (boxes) {
    arguments.add("blocks", b.getI32Type());
    arguments.add("queue", tile::QueueType::get(b.getContext()));
  }
  return arguments;
}

KernelArguments KernelArguments::ofSegments(SegmentsOp segments) {
  KernelArguments arguments;
  Builder b(segments.getContext());
  for (const ProblemTensor &tensor : tensorsOf(segments))
    arguments.add(tensor.name, tile::PtrType::get(b.getContext(), b.getI32Type()));
  for (const char *size : {"id_rows", "tokens_q", "tokens_kv"})
    arguments.add(size, b.getI32Type());
  if (segments.getRule().hasPositions())
    for (const char *size : {"position_rows_q", "position_rows_kv"})
      arguments.add(size, b.getI32Type());
  arguments.add("queue", tile::QueueType::get(b.getContext()));
  return arguments;
}

KernelArguments KernelArguments::ofSinks(ProblemOp problem, SegmentsOp segments) {
  KernelArguments arguments;
  Type i32 = IntegerType::get(problem.getContext(), 32);
  std::vector<ProblemTensor> lse = tensorsOf(problem), arrays = lse;
  llvm::erase_if(lse, [](const ProblemTensor &tensor) { return tensor.name != "lse"; });
  std::optional<ScoreOperand> sinks = problem.getSinkArray();
  llvm::erase_if(arrays, [&](const ProblemTensor &tensor) {
    return tensor.name != "cu_seqlens_q" && tensor.name != "padded_offsets_q" && !(sinks && tensor.name == sinks->name);
  });
  bool positions = segments.getRule().hasPositions();
  arguments.addPointers(problem, lse);
  arguments.addVisits(problem, {"ids_q"});
  if (positions)
    arguments.addVisits(problem, {"positions_q"});
  arguments.addPointers(problem, arrays);
  arguments.addSizes(problem, /*keys=*/false);
  arguments.add("tokens_q", i32);
  if (positions)
    arguments.add("position_rows_q", i32);
  arguments.addStrides(problem, lse);
  return arguments;
}

tile::KernelOp KernelArguments::makeKernel(OpBuilder &b, Location loc, StringRef name, StringRef target,
                                           const KernelGrid &grid, tile::ConfigAttr config) const {
  SmallVector<Attribute> names;
  SmallVector<Type> types;
  for (auto &[argument, type] : list) {
    names.push_back(b.getStringAttr(argument));
    types.push_back(type);
  }
  auto kernel = tile::KernelOp::create(b, loc, name, b.getArrayAttr(names), target, grid.packed, grid.keys,
                                       grid.heads, grid.tiles, grid.cluster, grid.longer, config, IntegerAttr());
  kernel.getBody().emplaceBlock().addArguments(types, SmallVector<Location>(types.size(), loc));
  return kernel;
}

void KernelArguments::addPointers(ProblemOp problem, ArrayRef<ProblemTensor> tensors) {
  Builder b(problem.getContext());
  for (const ProblemTensor &tensor : tensors) {
    if (tensor.ownsEntries()) // kernels read what is made of them
      continue;
    Type element = tensor.element == ProblemTensor::Data      ? problem.getDtype()
                   : tensor.element == ProblemTensor::Float32 ? Type(b.getF32Type())
                                                              : Type(b.getI32Type());
    add(tensor.name, tile::PtrType::get(problem.getContext(), element));
  }
}

void KernelArguments::addMade(ProblemOp problem, ArrayRef<MaskOperand> whole) {
  Type i32 = IntegerType::get(problem.getContext(), 32);
  Type pointer = tile::PtrType::get(problem.getContext(), i32);
  for (const MaskOperand &operand : distinctOperands(problem.getMask())) {
    if (llvm::is_contained(whole, operand)) {
      for (const std::string &list : {operand.name, operand.lists->columns}) {
        add(list, pointer);
        add(list + "_entries", i32);
      }
    } else if (operand.lists) {
      add(bitsOf(operand), pointer);
      add(bitsOf(operand) + "_rows", i32);
      add(bitsOf(operand) + "_words", i32);
    }
    if (!operand.madeOf.empty())
      add(operand.name, pointer);
  }
}

KernelArguments KernelArguments::ofBlockMap(ProblemOp problem, const MaskOperand &lists) {
  KernelArguments arguments;
  Type i32 = IntegerType::get(problem.getContext(), 32), pointer = tile::PtrType::get(problem.getContext(), i32);
  arguments.add(lists.name, pointer);
  arguments.add(lists.lists->columns, pointer);
  arguments.add(lists.lists->columns + "_entries", i32);
  arguments.add(bitsOf(lists), pointer);
  for (const std::string &size : {bitsOf(lists) + "_rows", bitsOf(lists) + "_words", std::string("batch"), std::string("blocks")})
    arguments.add(size, i32);
  return arguments;
}

KernelArguments KernelArguments::ofTree(ProblemOp problem, StringRef parents, bool teams) {
  std::string numbering = numberingOf(parents);
  SmallVector<MaskOperand> maps = distinctOperands(problem.getMask()); // of which it needs no bits
  llvm::erase_if(maps, [](const MaskOperand &operand) { return !operand.lists; });
  KernelArguments arguments = ofVisits(problem, StringRef(numbering), maps);
  if (teams)
    arguments.add("queue", tile::QueueType::get(problem.getContext()));
  return arguments;
}

void KernelArguments::addPartial(ProblemOp problem) {
  for (const char *name : {"partial_o", "partial_max", "partial_sum"})
    add(name, tile::PtrType::get(problem.getContext(), Float32Type::get(problem.getContext())));
}

void KernelArguments::addVisits(ProblemOp problem, ArrayRef<StringRef> names) {
  for (StringRef name : names)
    add(name, tile::PtrType::get(problem.getContext(), IntegerType::get(problem.getContext(), 32)));
}

void KernelArguments::addLists(ProblemOp problem, bool ofKeys) {
  const VisitLists &lists = visitLists(ofKeys);
  addVisits(problem, {lists.list, lists.visits, lists.taken});
}

void KernelArguments::addSizes(ProblemOp problem, bool keys, bool totalKeys) {
  Type i32 = IntegerType::get(problem.getContext(), 32);
  add("batch", i32);
  add(problem.getQLayout().isPacked() ? "total_q" : "seqlen_q", i32);
  if (keys && !problem.getKLayout().isPacked())
    add("seqlen_kv", i32);
  // Where heads of an array of packed keys stand.
  if (keys && problem.getKLayout().isPacked() &&
      (totalKeys || llvm::any_of(distinctOperands(problem.getMask()), [](const MaskOperand &array) {
        return array.shape == OperandShape::PerKey && array.heads != OperandHeads::shared;
      })))
    add("total_kv", i32);
}

void KernelArguments::addStrides(ProblemOp problem, ArrayRef<ProblemTensor> tensors) {
  Type i64 = IntegerType::get(problem.getContext(), 64);
  for (const ProblemTensor &tensor : tensors) {
    if (tensor.batchAxis >= 0)
      add(tensor.name + "_batch", i64);
    if (tensor.rowAxis >= 0 && tensor.element == ProblemTensor::Data)
      add(tensor.name + "_row", i64);
    if (tensor.headAxis >= 0)
      add(tensor.name + "_head", i64);
  }
}
