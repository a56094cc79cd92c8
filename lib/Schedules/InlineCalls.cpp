// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `program.def` of an attn.program: the steps of its callees over shared tensors.
//
#include "Link.h"
#include "attn/Dialect/Program/IR/PlainData.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace attn;
using namespace attn::program;
using rt::Extent;

namespace {
class Inliner {
public:
  explicit Inliner(LinkedProgram &linked)
      : linked(linked), b(linked.op), loc(linked.op.getLoc()),
        def(DefOp::create(b, loc, freeSymbol(linked.op->getParentOp(), linked.op.getSymName() + "_program"))) {
    b.setInsertionPointToStart(&def.getBody().emplaceBlock());
    for (const rt::Program::Tensor &tensor : linked.signature.tensors)
      names.insert(tensor.name);
  }

  void run(llvm::function_ref<DefOp(StringRef)> definitionOf) {
    for (auto [value, tensor] : llvm::zip_equal(linked.values, linked.signature.tensors)) {
      memory[value] = createTensor(b, loc, tensor);
      for (const Extent &extent : tensor.extents) {
        std::vector<std::string> symbols;
        extent.collectSymbols(symbols);
        for (const std::string &symbol : symbols)
          sizes.insert(symbol);
      }
    }
    for (auto [number, call] : llvm::enumerate(linked.calls))
      add(call, number, definitionOf(call.op.getCallee()));
    hideUnread();
  }

private:
  /// The memory of a callee's tensor: the caller's, or a buffer that is new with the call that writes it.
  Value memoryOf(LinkedProgram::Call &call, size_t number, size_t tensor) {
    Value value = call.tensors[tensor];
    if (value && memory.count(value))
      return memory[value];
    const rt::Program::Tensor &spec = value ? linked.tensors.find(value)->second : linked.unwanted.at({number, tensor});
    names.insert(spec.name);
    Value buffer = createBuffer(b, loc, spec.name, spec.dtype, spec.extents);
    if (value)
      memory[value] = buffer;
    return buffer;
  }

  static std::string unused(llvm::StringSet<> &taken, StringRef wish) {
    std::string name = wish.str();
    for (int number = 2; !taken.insert(name).second; ++number)
      name = (wish + "_" + Twine(number)).str();
    return name;
  }

  void add(LinkedProgram::Call &call, size_t number, DefOp callee) {
    IRMapping mapping;
    std::map<std::string, Extent> own = call.sizes;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](ExtentAttr extent) -> std::optional<Attribute> {
      return ExtentAttr::get(b.getContext(), substituted(extent.getExtent(), own));
    });
    // By name: a callee's program has the tensors that its canonical mask reads, perhaps fewer, in another order.
    for (auto tensor : callee.getOps<TensorOp>()) {
      int index = call.signature.tensorNamed(std::string_view(tensor.getName()));
      mapping.map(tensor.getTensor(), memoryOf(call, number, index));
    }
    for (Operation &op : callee.getBody().front()) {
      if (isa<TensorOp>(op))
        continue;
      if (auto size = dyn_cast<SizeOp>(op)) {
        Extent value = substituted(size.getValue().getExtent(), own);
        std::string name = unused(sizes, (call.op.getCallee() + "_" + size.getName()).str());
        SizeOp::create(b, loc, name, ExtentAttr::get(b.getContext(), value));
        own[size.getName().str()] = Extent::symbol(name);
        continue;
      }
      Operation *clone = b.clone(op, mapping);
      replacer.recursivelyReplaceElementsIn(clone, /*replaceAttrs=*/true);
      clone->walk([&](BufferOp buffer) {
        buffer.setName(unused(names, (call.op.getCallee() + "_" + buffer.getName()).str()));
      });
    }
  }

  static Extent substituted(const Extent &extent, const std::map<std::string, Extent> &by) {
    return attn::substituted(extent, [&](StringRef size) -> std::optional<Extent> {
      auto found = by.find(size.str());
      return found == by.end() ? std::nullopt : std::optional(found->second);
    });
  }

  /// What nobody reads is scratch of the launches that write it.
  void hideUnread() {
    llvm::DenseMap<Value, bool> isRead;
    def.walk([&](LaunchOp launch) {
      for (const TensorAccess &access : accessesOf(launch))
        isRead[access.tensor] |= access.argument.reads();
    });
    def.walk([&](LaunchOp launch) {
      SmallVector<Attribute> list(launch.getArguments().getValue());
      for (auto [tensor, argument, number] : accessesOf(launch))
        if (tensor.getDefiningOp<BufferOp>() && !isRead[tensor] && argument.getEffect() == Effect::write)
          list[number] = ArgumentAttr::get(b.getContext(), argument.getKind(), Effect::scratch);
      launch.setArgumentsAttr(b.getArrayAttr(list));
    });
  }

  LinkedProgram &linked;
  OpBuilder b;
  Location loc;
  DefOp def;
  llvm::DenseMap<Value, Value> memory;
  llvm::StringSet<> names, sizes;
};
} // namespace

void attn::inlineCalls(LinkedProgram &linked, llvm::function_ref<DefOp(StringRef)> definitionOf) {
  Inliner(linked).run(definitionOf);
}
