// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Dialect/Tile/IR/TargetInfo.h"
#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn::tile;

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  SmallVector<OpAsmParser::Argument> args;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseArgumentList(args, OpAsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  SmallVector<Attribute> names;
  for (OpAsmParser::Argument &arg : args)
    names.push_back(builder.getStringAttr(arg.ssaName.name.drop_front()));
  result.addAttribute(getArgNamesAttrName(result.name), builder.getArrayAttr(names));

  StringAttr target;
  StringRef grid;
  SMLoc loc;
  int64_t heads = 1, cluster = 0, bytes = 0;
  if (parser.parseKeyword("target") || parser.parseLParen() || parser.parseAttribute(target) || parser.parseRParen() ||
      parser.parseKeyword("grid") || parser.parseLParen() || parser.getCurrentLocation(&loc) ||
      parser.parseKeyword(&grid))
    return failure();
  bool rows = grid == "rows";
  if (grid == "packed")
    result.addAttribute(getPackedAttrName(result.name), builder.getUnitAttr());
  else if (grid != "dense" && !rows)
    return parser.emitError(loc, "expected grid `dense`, `packed` or `rows`, got: ") << grid;
  if (parser.parseKeyword(rows ? "cluster" : "heads") || parser.parseInteger(rows ? cluster : heads))
    return failure();
  if (!rows && succeeded(parser.parseOptionalKeyword("keys")))
    result.addAttribute(getKeysAttrName(result.name), builder.getUnitAttr());
  if (int64_t tiles = 0; !rows && succeeded(parser.parseOptionalKeyword("tiles"))) {
    if (parser.parseInteger(tiles))
      return failure();
    result.addAttribute(getTilesAttrName(result.name), builder.getI64IntegerAttr(tiles));
  }
  if (int64_t queries = 0, keys = 0; !rows && succeeded(parser.parseOptionalKeyword("longer"))) {
    if (parser.parseInteger(queries) || parser.parseComma() || parser.parseInteger(keys))
      return failure();
    result.addAttribute(getLongerAttrName(result.name), builder.getDenseI64ArrayAttr({queries, keys}));
  }
  if (int64_t residues = 0; !rows && succeeded(parser.parseOptionalKeyword("residues"))) {
    if (parser.parseInteger(residues))
      return failure();
    result.addAttribute(getResiduesAttrName(result.name), builder.getI64IntegerAttr(residues));
  }
  if (parser.parseRParen())
    return failure();
  if (rows)
    result.addAttribute(getClusterAttrName(result.name), builder.getI64IntegerAttr(cluster));
  result.addAttribute(getTargetAttrName(result.name), target);
  result.addAttribute(getHeadsAttrName(result.name), builder.getI64IntegerAttr(heads));

  ScheduleInterface schedule;
  if (parser.parseKeyword("schedule") || parser.parseLParen() || parser.parseAttribute(schedule) ||
      parser.parseRParen())
    return failure();
  result.addAttribute(getScheduleAttrName(result.name), schedule);
  if (succeeded(parser.parseOptionalKeyword("shared"))) {
    if (parser.parseInteger(bytes))
      return failure();
    result.addAttribute(getSharedBytesAttrName(result.name), builder.getI64IntegerAttr(bytes));
  }
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, args))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << "(";
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument arg) { printer.printRegionArgument(arg); });
  printer << ") target(" << getTargetAttr() << ") grid(";
  if (hasRows())
    printer << "rows cluster " << int64_t(*getCluster());
  else
    printer << (getPacked() ? "packed" : "dense") << " heads " << getHeads() << (getKeys() ? " keys" : "");
  if (getTiles())
    printer << " tiles " << *getTiles();
  if (auto longer = getLonger())
    printer << " longer " << (*longer)[0] << ", " << (*longer)[1];
  if (getResidues())
    printer << " residues " << int64_t(*getResidues());
  printer << ") schedule(" << getSchedule() << ") ";
  if (getSharedBytes())
    printer << "shared " << *getSharedBytes() << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  if (getArgNames().size() != getBody().getNumArguments()) // C1
    return emitOpError("expected as many argument names as arguments, got: ")
           << getArgNames().size() << " and " << getBody().getNumArguments();
  if (!llvm::is_contained({"cpu", "sm_80", "sm_90a"}, getTarget())) // C2
    return emitOpError("expected target \"cpu\", \"sm_80\" or \"sm_90a\", got: ") << getTargetAttr();
  if (int64_t(getHeads()) < 1) // C3
    return emitOpError("expected at least one head in its grid, got: ") << int64_t(getHeads());
  int64_t cluster = getCluster().value_or(1), most = TargetInfo::get(getTarget())->cluster;
  if (cluster < 1 || cluster > most)
    return emitOpError("expected clusters of 1 to ")
           << most << " CTAs for target " << getTargetAttr() << ", got: " << cluster;
  ScheduleInterface schedule = getSchedule();
  if (getKeys() && !isa<AuxiliaryAttr>(schedule) && schedule.getKvTile() % (16 * schedule.getWarps())) // C4
    return emitOpError("expected a kv_tile in multiples of 16 * warps in a grid of key tiles, got: ") << schedule;
  bool mayHave =
      isPerSequenceWithoutRoles() || ((getPacked() || schedule.hasWholeSequence()) && !getKeys() && !hasRows());
  if (getTiles() ? !mayHave || int64_t(*getTiles()) < 1 : isPerSequenceWithoutRoles()) // C5
    return emitOpError("expected positive `tiles` with a schedule of a CTA or a warp for each sequence, and without "
                       "one only with a "
                       "single-pass schedule or in a packed grid of query tiles, got: ")
           << schedule << (getTiles() ? " with tiles" : " without");
  if (auto longer = getLonger()) // C6
    if (longer->size() != 2 || (*longer)[0] < 0 || (*longer)[1] < 0 || hasRows() || getTiles())
      return emitOpError(
                 "expected `longer` of two numbers that are not negative, in a grid of sequences without tiles, got: ")
             << llvm::ArrayRef(*longer);
  if (auto residues = getResidues()) // C7
    if (int64_t(*residues) < 2 || int64_t(*residues) > 8 || getHeads() % *residues || hasRows() || getTiles() ||
        getLonger())
      return emitOpError("expected 2 to 8 residues, which divide the heads, without `tiles`, `longer` and clusters, "
                         "got: ")
             << int64_t(*residues) << " of " << int64_t(getHeads()) << " heads";
  return success();
}

Value KernelOp::getArg(StringRef name) {
  for (auto [arg, argName] : llvm::zip(getBody().getArguments(), getArgNames().getAsValueRange<StringAttr>()))
    if (argName == name)
      return arg;
  return {};
}

double KernelOp::getSoftmaxScale() {
  double scale = 1;
  getBody().walk([&](Operation *op) {
    if (isa<OnlineSoftmaxOp, SoftmaxConvertOp>(op))
      scale = op->getAttrOfType<FloatAttr>("scale").getValueAsDouble();
  });
  return scale;
}

bool KernelOp::isPerSequenceWithoutRoles() {
  if (auto auxiliary = dyn_cast<AuxiliaryAttr>(getSchedule()))
    return auxiliary.getPerSequence();
  return getSchedule().isPerSequence() && !getRoles();
}

bool KernelOp::isStationaryQBackward() {
  return walk([](MmaAtbSliceOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (getArgNames().size() == region.getNumArguments())
    for (auto [arg, name] : llvm::zip(region.getArguments(), getArgNames().getAsValueRange<StringAttr>()))
      setName(arg, name);
}
