// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Printing of ops for Hopper only: roles, rings, and waits for products.
//
#include "Printer.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void Printer::print(RolesOp op) {
  std::string shared;
  for (auto place : op->getParentOfType<KernelOp>().getBody().getOps<AllocOp>())
    if (isa<RingType, MailboxType, StagingType>(place.getType()))
      shared += (shared.empty() ? "" : ", ") + names.of(place.getResult()).str();
  bool hasDqStore = !op.getDqStore().empty(), hasDqMma = !op.getDqMma().empty();
  line() << "attn::begin_roles";
  if (int others = 2 * hasDqStore + 4 * hasDqMma) // further warps that read the mailbox
    os << "<" << others << ">";
  os << "(" << shared << ");\n";
  line() << "if (attn::is_consumer()) {\n";
  indent += 2;
  line() << "attn::alloc_registers<" << op.getConsumerRegisters() << ">();\n";
  if (op->getParentOfType<KernelOp>().getRoles().getPingpong())
    line() << "attn::ping_pong_init();\n";
  indent -= 2;
  printBlock(op.getConsumer().front());
  if (hasDqMma) {
    line() << "} else if (attn::is_dq_mma()) {\n";
    line() << "  attn::dealloc_registers<" << *op.getDqMmaRegisters() << ">();\n";
    printBlock(op.getDqMma().front());
  }
  line() << "} else {\n";
  indent += 2;
  line() << "attn::dealloc_registers<" << op.getProducerRegisters() << ">();\n";
  if (hasDqStore) {
    line() << "if (attn::is_dq_store()) {\n";
    printBlock(op.getDqStore().front());
    line() << "  return;\n";
    line() << "}\n";
  }
  line() << "if (attn::is_after_producer()) return;" << (hasDqStore ? "\n" : "  // one warp of the four is enough\n");
  indent -= 2;
  printBlock(op.getProducer().front());
  line() << "}\n";
}

void Printer::print(PersistentLoopOp op) {
  if (!op.getMailbox()) // not yet split into roles
    return complain(op);
  Block &body = op.getBody().front();
  size_t mark = names.mark();
  if (op.getQueue()) {
    names.define(body.getArgument(0), "block");
    std::string block = names.of(body.getArgument(0)).str(), blocks = expr(op.getBlocks());
    std::string queue = names.of(op.getQueue()).str();
    line() << "for (int " << block << " = attn::"
           << (op.getInOrder() ? "first_work_tile_in_order(" + queue + ", " + blocks + ")" : "block_index()") << "; "
           << block << " < " << blocks << "; " << block
           << " = attn::" << (op.getInOrder() ? "next_work_tile_in_order" : "next_work_tile") << "(" << queue << ", "
           << block << ", " << blocks << ")) {\n";
    printBlock(body);
    line() << "}\n";
    line() << "attn::publish_end(" << names.of(op.getMailbox()) << ");\n";
    names.close(mark);
    return;
  }
  std::string mailbox = names.of(op.getMailbox()).str();
  bool releasesWork = !body.empty() && isa<ReleaseWorkOp>(body.back());
  line() << "for (attn::WorkTile<" << body.getNumArguments() << "> work_tile; attn::receive_work"
         << (releasesWork ? "<true>" : "") << "(" << mailbox << ", work_tile);) {\n";
  indent += 2;
  for (BlockArgument word : body.getArguments()) {
    names.define(word, PersistentLoopOp::nameOf(word));
    if (!word.use_empty())
      line() << "const int " << names.of(word) << " = work_tile.words[" << word.getArgNumber() << "];\n";
  }
  indent -= 2;
  printBlock(body);
  line() << "}\n";
  names.close(mark);
}

void Printer::print(PublishWorkOp op) {
  line() << "attn::publish_work(" << names.of(op.getMailbox());
  for (Value word : op.getWords())
    os << ", " << expr(word);
  os << ");\n";
}

void Printer::print(OptimizationBarrierOp op) {
  names.define(op.getResult(), names.of(op.getNumber()));
  line() << "const int " << names.of(op.getResult()) << " = attn::optimization_barrier(" << names.of(op.getNumber())
         << ");\n";
}

void Printer::print(ReloadWorkOp op) {
  auto named = dyn_cast<NameLoc>(op.getLoc());
  std::string text = "attn::reload_work(" + names.of(op.getMailbox()).str() + ", " + std::to_string(op.getWord()) + ")";
  names.define(op.getResult(), named ? named.getName().getValue() : "word");
  line() << "const int " << names.of(op.getResult()) << " = " << text << ";\n";
}

void Printer::print(ProducerLoadOp op) {
  // A map's axes are in the order in which boxes are filled: with packed heads, heads precede rows.
  TensorMapType map = op.getMap().getType();
  int64_t rows = map.getRows() * map.getHeads(), all = cast<SharedType>(op.getRing().getType().getTile()).getRows();
  std::string sizes;
  if (map.getStride() != 1)
    sizes =
        "<" + std::to_string(rows) + ", " + std::to_string(all / rows) + ", " + std::to_string(map.getStride()) + ">";
  else if (rows != all)
    sizes = "<" + std::to_string(rows) + (op.getBoxes() ? ", " + std::to_string(*op.getBoxes()) : "") + ">";
  Value second = op.getRow(), third = op.getHead();
  if (map.getHeads() != 1)
    std::swap(second, third);
  line() << "attn::producer_load" << (map.isPacked() ? "_packed" : "")
         << (map.getStride() != 1                    ? "_strided"
             : map.isPacked() && map.getHeads() != 1 ? "_heads"
                                                     : "")
         << sizes << "(" << names.of(op.getRing()) << ", " << names.of(op.getMap()) << ", " << expr(second) << ", "
         << expr(third) << ", " << expr(map.isPacked() ? op.getRows() : op.getBatch()) << ");\n";
}

void Printer::print(ConsumerWaitOp op) {
  names.define(op.getTile(), (names.of(op.getRing()) + "_tile").str());
  line() << "const auto " << names.of(op.getTile()) << " = attn::consumer_wait(" << names.of(op.getRing());
  if (op.getCondition())
    os << ", " << expr(op.getCondition()) << ", " << names.of(op.getElseTile());
  os << ");\n";
}

void Printer::print(ConsumerAdvanceOp op) {
  names.define(op.getTile(), (names.of(op.getRing()) + "_previous").str());
  line() << "const auto " << names.of(op.getTile()) << " = attn::consumer_advance(" << names.of(op.getRing()) << ");\n";
}

void Printer::print(WarpgroupRowsOp op) {
  std::string tile = names.of(op.getTile()).str();
  names.define(op.getRows(), StringRef(tile).take_until([](char c) { return c == '_'; }).str() + "_rows");
  line() << "const auto " << names.of(op.getRows()) << " = attn::warpgroup_rows(" << tile << ");\n";
}

void Printer::print(ConsumerReleaseOp op) {
  printCall(op.getPassed()   ? "consumer_release_previous"
            : op.getUnless() ? "consumer_release_early"
            : op.getFenced() ? "consumer_release_fenced"
                             : "consumer_release",
            op->getOperands(), ");\n");
}

/// The product of a token; for a token carried by a loop, the product that its body issues.
static Operation *productOf(Value token) {
  while (token) {
    if (auto argument = dyn_cast<BlockArgument>(token)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      token = loop ? loop.getTiedLoopYieldedValue(argument)->get() : Value();
    } else if (auto loop = token.getDefiningOp<scf::ForOp>()) {
      token = loop.getYieldedValues()[cast<OpResult>(token).getResultNumber()];
    } else {
      return token.getDefiningOp();
    }
  }
  return nullptr;
}

void Printer::printProductWait(WaitOp op) {
  Operation *product = op.getTokens().size() == 1 ? productOf(op.getTokens().front()) : nullptr;
  if (!product)
    return complain(op);
  // Counts products issued later and not yet waited for; for a product of the previous step, those in the rest of that
  // step and in this one.
  int later = 0;
  auto count = [&](Block::iterator from, Block::iterator to) {
    for (Operation &other : llvm::make_range(from, to))
      if (isProduct(&other))
        later += llvm::none_of(other.getResult(0).getUsers(), [&](Operation *user) {
          return user->getBlock() == other.getBlock() && user->isBeforeInBlock(&*to);
        });
  };
  Block *block = product->getBlock();
  bool same = block == op->getBlock() && product->isBeforeInBlock(op);
  count(std::next(product->getIterator()), same ? op->getIterator() : block->without_terminator().end());
  if (block == op->getBlock() && !same)
    count(block->begin(), op->getIterator());
  line() << "attn::warpgroup_wait<" << later << ">(" << names.of(product->getOperand(0)) << ");\n";
}
