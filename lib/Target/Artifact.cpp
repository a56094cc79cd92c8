// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Printer.h"
#include "attn/Target/Source.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static rt::Param::Kind kindOf(Type type) {
  if (isa<PtrType>(type))
    return rt::Param::Kind::Pointer;
  if (isa<TensorMapType>(type))
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
       llvm::zip(kernel.getBody().getArguments(), kernel.getArgNames().getAsValueRange<StringAttr>()))
    artifact.params.push_back({name.str(), kindOf(arg.getType())});
  ScheduleInterface schedule = kernel.getSchedule();
  artifact.threads = kernel.getThreads();
  artifact.smemBytes = kernel.getSharedBytes().value_or(0);
  artifact.minBlocks = schedule.getCtasPerSm();
  artifact.clusters = kernel.getCluster().value_or(1);
  // `begin_roles` waits, too.
  artifact.follows = kernel.isPersistent() || !kernel.getBody().getOps<GridDependencySyncOp>().empty();
  artifact.persistent = kernel.isPersistent();
  artifact.clusterPerBlock = kernel.hasRows();
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  artifact.notes.emplace_back("tile.schedule", text);
  return artifact;
}
