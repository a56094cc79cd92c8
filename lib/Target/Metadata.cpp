// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Printing of the metadata dialect.
//
#include "Printer.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::metadata;

std::string Printer::metadataPlace(tile::AllocOp op) {
  return llvm::TypeSwitch<Type, std::string>(op.getType())
      .Case([](SegmentTableType t) {
        return "attn::SegmentTable<" + std::to_string(t.getSegments()) + ", " + std::to_string(t.getCluster()) + ", " +
               std::to_string(t.getSharedBytes()) + ">";
      })
      .Case([](TreeRunsType t) { return "attn::TreeRuns<" + std::to_string(t.getRuns()) + ">"; })
      .Default([&](Type) {
        complain(op);
        return "<<UNSUPPORTED place>>";
      });
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

void Printer::print(TokensOp op) {
  std::string text = "attn::tokens(" + expr(op.getIds()) + ", " + expr(op.getRow()) + ", " + expr(op.getCount());
  if (op.getPositions())
    text += ", " + expr(op.getPositions()) + ", " + expr(op.getPositionRows());
  names.define(op.getResult(), Names::wishOf(op.getResult()).empty() ? "tokens" : Names::wishOf(op.getResult()));
  line() << "const auto " << names.of(op.getResult()) << " = " << text << ");\n";
}

void Printer::print(BatchRowIndexOp op) {
  names.define(op.getResult(), "row");
  line() << "const int " << names.of(op.getResult()) << " = attn::batch_row_index<"
         << op->getParentOfType<tile::KernelOp>().getCluster().value_or(1) << ">();\n";
}

void Printer::print(BoundSegmentsOp op) {
  printCall(op.getWhole() ? "bound_segments<true>" : "bound_segments<false>", op->getOperands(), "");
  printNumbers(op.getBody().front(), {"count_q", "low_q", "high_q", "count_kv", "low_kv", "high_kv"}, "attn::Bounds{",
               "}");
}

void Printer::print(CheckSegmentsOp op) {
  printCall("check_segments", op.getOperands(), "");
  unsigned claims = op.getBody().front().getTerminator()->getNumOperands() / 2;
  printNumbers(op.getBody().front(), {"len_q", "len_kv", "shift"},
               "attn::DiagonalChecks<" + std::to_string(claims) + ">{{", "}}");
}

void Printer::print(ListQueryTilesOp op) {
  printCall("list_query_tiles<" + std::to_string(op.getQTile()) + ">", op.getOperands(), "");
  printNumbers(op.getBody().front(), {"len_q", "len_kv"}, "", "");
}

void Printer::print(ListWorkTilesOp op) {
  printCall("list_work_tiles<" + std::to_string(op.getRows()) + ">", op.getOperands(), "");
  printNumbers(op.getBody().front(), {"b"}, "", "");
}

void Printer::print(SplitWalksOp op) {
  printCall("split_walks<" + std::to_string(op.getGroup()) + ", " + std::to_string(op.getLeast()) + ">",
            op.getOperands(), "");
  printNumbers(op.getBody().front(), {"tile"}, "", "");
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

void Printer::print(EntryRangeOp op) {
  std::string most = std::to_string(op.getMost()), by = op.getBy() == 1 ? "" : ", " + std::to_string(op.getBy());
  std::string text = "attn::entry_range<" + most + by + ">(" + expr(op.getArray()) + ", " + expr(op.getCount());
  if (op.getHidden())
    text += ", " + std::to_string(int32_t(*op.getHidden()));
  const char *members[] = {"least", "largest", "none_hidden"};
  for (auto [value, member] : llvm::zip(op.getResults(), members))
    names.define(value, member);
  line() << "const auto [" << names.of(op.getLeast()) << ", " << names.of(op.getLargest()) << ", "
         << names.of(op.getWhole()) << "] = " << text << ");\n";
}

void Printer::print(LoadRangesOp op) {
  std::string values, text = "attn::load_ranges<" + std::to_string(op.getNumResults()) + ">(" + expr(op.getArray()) +
                             ", " + expr(op.getAt()) + ").values";
  for (auto [i, value] : llvm::enumerate(op.getValues())) {
    names.define(value, i % 2 ? "largest" : "least");
    values += (i ? ", " : "") + names.of(value).str();
  }
  line() << "const auto [" << values << "] = " << text << ";\n";
}

void Printer::print(SelectTilesOp op) {
  std::string call;
  for (Value value : op.getOperands())
    call += (call.empty() ? "" : ", ") + expr(value);
  line() << "attn::select_tiles(" << call;
  printNumbers(op.getBody().front(), {"tile"}, "attn::TileVisibility{", "}", "");
  printNumbers(op.getInner().front(), {"tile"}, "attn::TileVisibility{", "}", "");
  printNumbers(op.getGroups().front(), {"group"}, "attn::GroupVisibility{", "}", "");
  printNumbers(op.getChunk().front(), {"from", "to"}, "", "");
}

//===----------------------------------------------------------------------===//
// Block maps
//===----------------------------------------------------------------------===//

void Printer::print(GatherTilesOp op) {
  std::string options =
      std::to_string(op.getNumber()) + ", " + std::to_string(op.getTile()) + ", " + std::to_string(op.getBlock());
  if (op.getColumns())
    return printCall("gather_list_tiles<" + options + ">", op.getOperands(), ");\n");
  printCall("gather_block_tiles<" + options + (op.getTransposed() ? ", true>" : ", false>"), op.getOperands(), ");\n");
}

void Printer::print(GatheredOp op) {
  names.define(op.getSome(), "some");
  names.define(op.getAll(), "all");
  line() << "const auto [" << names.of(op.getSome()) << ", " << names.of(op.getAll())
         << "] = attn::" << (op.getSome().getType().isInteger(1) ? "gathered<" : "gathered_bits<") << op.getNumber()
         << ">(" << expr(op.getAt()) << ");\n";
}

//===----------------------------------------------------------------------===//
// Trees
//===----------------------------------------------------------------------===//

void Printer::print(CooperativeLoopOp op) {
  size_t mark = names.mark();
  printCall("cooperative_loop", op.getOperands(), "");
  names.define(op.getBody().getArgument(0), "ctas");
  names.define(op.getBody().getArgument(1), "b");
  os << ", [&](const attn::CooperativeCtas &" << names.of(op.getBody().getArgument(0)) << ", int "
     << names.of(op.getBody().getArgument(1)) << ") {\n";
  printBlock(op.getBody().front());
  line() << "});\n";
  names.close(mark);
}
