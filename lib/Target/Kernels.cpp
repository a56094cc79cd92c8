// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel: its header, its signature, and its host entry.
//
#include "Printer.h"
#include "attn/Target/Source.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Is anything written through the pointer or one derived from it?
static bool isWritten(Value pointer) {
  return llvm::any_of(pointer.getUses(), [](OpOperand &use) {
    return isa<AdvanceOp>(use.getOwner()) ? isWritten(use.getOwner()->getResult(0)) : accessOf(use).writes;
  });
}

std::string attn::entryOf(KernelOp kernel) {
  std::string name = kernel.getSymName().str();
  return isReserved(name) ? name + "_kernel" : name;
}

void Printer::printSignature(KernelOp kernel) {
  int64_t cluster = kernel.getCluster().value_or(1);
  os << (cluster > 1                                                 ? "ATTN_CLUSTER_KERNEL("
         : kernel.isPersistent() && kernel.getRoles().getDqColumns() ? "ATTN_DQ_MMA_KERNEL("
                                                                     : "ATTN_KERNEL(")
     << entryOf(kernel) << ", /*threads=*/" << kernel.getThreads() << ", /*CTAs per multiprocessor=*/"
     << kernel.getSchedule().getCtasPerSm();
  if (cluster > 1)
    os << ", /*CTAs per cluster=*/" << cluster;
  os << ")\n(";
  unsigned column = 1;
  for (auto [arg, name] :
       llvm::zip(kernel.getBody().getArguments(), kernel.getArgNames().getAsValueRange<StringAttr>())) {
    names.define(arg, name);
    bool pointer = isa<PtrType>(arg.getType());
    std::string text = (pointer && !isWritten(arg) ? "const " : "") + typeOf(arg.getType()) +
                       (pointer || isa<QueueType>(arg.getType()) ? "" : " ") + names.of(arg).str();
    if (arg.getArgNumber())
      os << ",";
    if (column + text.size() > 110) {
      os << "\n ";
      column = 1;
    } else if (arg.getArgNumber()) {
      os << " ";
    }
    os << text;
    column += text.size() + 2;
  }
  os << ") {\n";
}

void Printer::printHostEntry(KernelOp kernel) {
  os << "\n// Arguments as a launch passes them: addresses of values, in order.\n"
     << "extern \"C\" void " << entryOf(kernel) << "_block(void *const *args, int block) {\n"
     << "  attn::set_block_index(block);\n  " << entryOf(kernel) << "(";
  for (BlockArgument arg : kernel.getBody().getArguments())
    os << (arg.getArgNumber() ? ",\n      " : "") << "*(" << typeOf(arg.getType()) << " const *)args["
       << arg.getArgNumber() << "]";
  os << ");\n}\n";
}

void Printer::printProductWidths(KernelOp kernel) {
  llvm::SetVector<std::pair<Type, int64_t>> widths;
  kernel.walk([&](Operation *op) {
    if (!isProduct(op))
      return;
    Type element = cast<SharedType>(op->getOperand(2).getType()).getElement();
    int64_t columns = cast<FragType>(op->getOperand(0).getType()).getCols();
    if (isa<MmaAtbOp>(op) && columns == 96) { // two products
      widths.insert({element, 64});
      columns = 32;
    }
    widths.insert({element, columns});
  });
  for (auto [element, columns] : widths) // element types have the same names in PTX and MLIR
    os << "ATTN_DEFINE_WGMMA(" << typeOf(element) << ", \"" << element << "\", " << columns << ")\n";
}

void Printer::print(KernelOp kernel) {
  hopper = kernel.isPersistent();
  rolled = hopper || (kernel.isPerSequenceWithoutRoles() && kernel.getTarget() != "cpu");
  bool numbers = kernel.walk([](metadata::NumberTreeOp) { return WalkResult::interrupt(); }).wasInterrupted();
  bool sinks = kernel.walk([](StoreSinkLseOp) { return WalkResult::interrupt(); }).wasInterrupted();
  bool gathers = kernel.walk([](tile::GatherRowsOp) { return WalkResult::interrupt(); }).wasInterrupted();
  llvm::SetVector<StringRef> headers; // of called functions
  kernel.walk([&](tile::CallOp call) { headers.insert(call.getHeader()); });
  os << "// " << kernel.getSymName() << " for " << kernel.getTarget() << "\n#include \""
     << (kernel.hasRows()                                                ? "attn/metadata.h"
         : numbers                                                       ? "attn/trees.h"
         : sinks                                                         ? "attn/sink_lse.h"
         : gathers                                                       ? "attn/gather_rows.h"
         : !headers.empty()                                              ? headers.front()
         : kernel.getSchedule().getUnit() == WorkUnit::warp_per_sequence ? "attn/simt.h"
         : kernel.isPerSequenceWithoutRoles()                            ? "attn/per_sequence.h"
         : hopper                                                        ? "attn/hopper.h"
                                                                         : "attn/tile.h")
     << "\"\n";
  for (StringRef header : headers.getArrayRef().drop_front(headers.empty() ? 0 : 1))
    os << "#include \"" << header << "\"\n";
  if (hopper)
    printProductWidths(kernel);
  os << "\n";
  scale = kernel.getSoftmaxScale();
  printSignature(kernel);
  printBlock(kernel.getBody().front());
  os << "}\n";
  if (kernel.getTarget() == "cpu")
    printHostEntry(kernel);
}

bool attn::printSource(KernelOp kernel, raw_ostream &os) {
  Printer printer(os);
  printer.print(kernel);
  return !printer.failed();
}
