// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Printer.h"
#include "attn/Target/Source.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static rt::Param::Kind kindOf(Type type) {
  if (isa<PtrType>(type))
    return rt::Param::Kind::Pointer;
  if (isa<MapType>(type))
    return rt::Param::Kind::TensorMap;
  if (isa<QueueType>(type))
    return rt::Param::Kind::Queue;
  if (type.isInteger(64))
    return rt::Param::Kind::I64;
  return type.isInteger(32) ? rt::Param::Kind::I32 : rt::Param::Kind::F32;
}

std::optional<rt::Artifact> attn::toArtifact(KernelOp kernel) {
  rt::Artifact artifact;
  llvm::raw_string_ostream source(artifact.source);
  if (!printSource(kernel, source))
    return std::nullopt;
  artifact.name = kernel.getSymName().str();
  artifact.entry = entryOf(kernel);
  artifact.target = kernel.getTarget().str();
  for (auto [arg, name] :
       llvm::zip(kernel.getBody().getArguments(), kernel.getArgNames().getAsValueRange<StringAttr>())) {
    rt::Param param{name.str(), kindOf(arg.getType())};
    if (auto map = dyn_cast<MapType>(arg.getType())) {
      param.boxRows = map.getRows();
      param.boxHeads = map.getHeads();
      param.boxCols = 64; // a chunk: 128 bytes, what is swizzled at once
    }
    artifact.params.push_back(std::move(param));
  }
  ConfigAttr config = kernel.getConfig();
  artifact.threads = kernel.getThreads();
  artifact.smemBytes = kernel.getSharedBytes().value_or(0);
  artifact.minBlocks = config.getBlocks();
  artifact.clusters = kernel.getCluster().value_or(1);
  artifact.follows = kernel.isPersistent(); // `begin_roles` waits
  int64_t tile = kernel.getKeys() ? config.getKvTile() : config.getQueries();
  artifact.grid = {kernel.getPacked(),
                   int(tile),
                   int(kernel.getHeads()),
                   kernel.isPersistent(),
                   kernel.hasRows(),
                   int(config.getSplits()),
                   kernel.getKeys(),
                   int(kernel.getTiles().value_or(0)),
                   config.hasStrips() ? int(config.getWarps()) : 1};
  if (auto longer = kernel.getLonger())
    artifact.grid.longerQ = (*longer)[0], artifact.grid.longerKv = (*longer)[1];
  for (auto loop : kernel.getBody().getOps<scf::ForOp>()) // of blocks that take turns
    if (loop.getLowerBound().getDefiningOp<BlockIndexOp>())
      artifact.grid.most = int(*getConstantIntValue(loop.getStep()));
  std::string text;
  llvm::raw_string_ostream(text) << config;
  artifact.notes.emplace_back("tile.config", text);
  return artifact;
}
