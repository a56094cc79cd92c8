// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CallKernel.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void CallKernel::setRows(int64_t inCta, const rt::Extent &all) {
  rows = {inCta, all};
  blocks = ceilDiv(all, inCta);
}

void CallKernel::call(std::string function, ArrayRef<std::string> written, ArrayRef<std::string> others) {
  calls.push_back({std::move(function), SmallVector<std::string>(written), SmallVector<std::string>(others)});
}

namespace {
class Body : KernelBody {
public:
  explicit Body(KernelOp kernel) : KernelBody(kernel) {}

  void setRows(int64_t inCta) {
    Index first = math.named(math.mul(Value(IndexOp::block(b, loc)), inCta), "row0");
    args["first"] = math.value(first);
    args["rows"] = math.value(math.named(math.min(math.sub(arg("all_rows"), first), inCta), "rows"));
  }

  Value find(StringRef name) {
    if (name == "block" && !args.contains("block"))
      args["block"] = IndexOp::block(b, loc);
    std::string flat = name.str();
    std::replace(flat.begin(), flat.end(), '.', '_');
    auto found = args.find(flat);
    if (found != args.end())
      return found->second;
    assert(name.contains('.') && "a kernel has what its calls name");
    return wide(int64_t(0)); // a stride of an axis that the tensor has not
  }

  void call(StringRef function, StringRef header, ArrayRef<std::string> written, ArrayRef<std::string> others) {
    callDevice(function, header, written, others, [&](StringRef name) { return find(name); });
  }
};
} // namespace

void CallKernel::build(StringRef header) {
  llvm::SetVector<StringRef> tensors, written, sizes, extents;
  for (const Call &call : calls) {
    for (const std::string &name : call.written)
      tensors.insert(name), written.insert(name);
    for (const std::string &name : call.others) {
      auto [tensor, part] = StringRef(name).split('.');
      if (part == "rows")
        extents.insert(tensor);
      else if (part.empty() && program.hasTensor(tensor))
        tensors.insert(tensor);
      else if (part.empty() && tensor != "block" && tensor != "first" && tensor != "rows")
        sizes.insert(tensor);
    }
  }
  KernelArguments arguments = KernelArguments::ofCalls(op, program, tensors.getArrayRef(), written.getArrayRef(),
                                                       sizes.getArrayRef(), extents.getArrayRef());
  if (rows)
    arguments.addNumber("all_rows", rows->second);
  OpBuilder b(op);
  KernelGrid grid;
  grid.blocks = blocks;
  auto schedule =
      AuxiliaryAttr::get(b.getContext(), /*q_tile=*/16, /*kv_tile=*/16, target.isHost() ? 1 : warps, ctasPerSm);
  StringRef name = SymbolTable::getSymbolName(op).getValue();
  KernelOp kernel =
      arguments.makeKernel(program, b, op.getLoc(), (name + suffix).str(), target.generic(), grid, schedule);
  if (sharedBytes && !target.isHost())
    kernel.setSharedBytes(sharedBytes);
  Body body(kernel);
  if (rows)
    body.setRows(rows->first);
  for (const Call &call : calls)
    body.call(call.function, header, call.written, call.others);
}

void attn::appendStrides(SmallVectorImpl<std::string> &list, const std::string &tensor) {
  for (const char *axis : {".batch", ".row", ".head"})
    list.push_back(tensor + axis);
}

void attn::appendPointers(SmallVectorImpl<std::string> &list, StringRef prefix, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    list.push_back(prefix.str() + std::to_string(i));
}

void attn::appendStridesOf(SmallVectorImpl<std::string> &list, StringRef prefix, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    appendStrides(list, prefix.str() + std::to_string(i));
}
