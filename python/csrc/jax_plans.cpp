// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attnc_plan_run for JAX: context-parallel plans inside a shard_map. The devices of a mesh that share sequences are a
// group, and each is a rank of it. The attribute `plan` is the key of a plan that Python has registered with
// attncJaxPlan; buffers are the plan's operands and arrays in its order, results are its results.
//
// XLA executes the ranks in threads of one process, or GPUs of several processes are ranks of NCCL. At a plan's first
// execution they bind it together, each with the transport of its device.
//
#include "attn-c/Plan.h"
#include "jax_calls.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

using namespace attnc::jax;

namespace {

template <auto destroy> struct Deleter {
  template <typename T> void operator()(T *it) const { destroy(it); }
};
using OwnedRanks = std::unique_ptr<attnLocalRanks, Deleter<attnLocalRanksDestroy>>;
using OwnedTransport = std::unique_ptr<attnTransport, Deleter<attnTransportDestroy>>;
using OwnedBound = std::unique_ptr<attnBoundPlan, Deleter<attnBoundPlanDestroy>>;

/// Which execution of a call: of a program's run, the call in it, and how often the rank has come there.
using Execution = std::array<int64_t, 3>;

/// Devices of a process that share sequences. XLA may execute calls that do not depend on each other in another order
/// on each device, so all ranks of a group execute one call at a time, which they agree on.
class Group {
public:
  Group(OwnedRanks own, int32_t count, double timeout) : own(std::move(own)), count(count), timeout(timeout) {}
  attnLocalRanks *ranks() const { return own.get(); }

  /// Returns when all ranks have come to this execution, and no other one is under way. `wrong`: why this rank cannot
  /// execute it; all ranks fail then.
  void enter(const Execution &execution, int32_t rank, const std::string &wrong) {
    std::unique_lock lock(mutex);
    throwFailure();
    Arrival &own = arrived[execution];
    own.came.resize(count);
    own.came[rank] = true;
    if (own.wrong.empty())
      own.wrong = wrong;
    auto firstMissing = [&] { return std::find(own.came.begin(), own.came.end(), false); };
    auto mayBegin = [&] {
      if (!current && firstMissing() == own.came.end())
        current = execution, left = count;
      return current == execution || !failure.empty();
    };
    if (!mayBegin() && !changed.wait_for(lock, std::chrono::duration<double>(timeout), mayBegin)) {
      const auto missing = firstMissing();
      failure =
          "attnc.DriverError: expected " +
          (missing == own.came.end() ? "other calls of the mesh to end"
                                     : "rank " + std::to_string(missing - own.came.begin()) + " to run the same plan") +
          " within " + std::to_string(int64_t(std::ceil(timeout))) +
          " s, got: nothing (where devices are CPUs, calls that do not depend on each other may take all of XLA's "
          "threads: set NPROC to more); later calls of this ContextParallel fail";
    }
    changed.notify_all();
    throwFailure();
    if (own.wrong.empty())
      return;
    const std::string text = own.wrong;
    end(execution);
    refuse(text);
  }
  void leave(const Execution &execution) {
    std::lock_guard lock(mutex);
    end(execution);
  }

private:
  /// Ranks that have come to an execution.
  struct Arrival {
    std::vector<bool> came;
    std::string wrong; ///< why one of them cannot execute it
  };
  void end(const Execution &execution) {
    if (--left)
      return;
    arrived.erase(execution);
    current.reset();
    changed.notify_all();
  }
  void throwFailure() const {
    if (!failure.empty())
      throw Failure{XLA_FFI_Error_Code_INTERNAL, failure};
  }

  OwnedRanks own;
  int32_t count;
  double timeout;
  std::string failure; ///< of the first rank that waited in vain
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Execution, Arrival> arrived;
  std::optional<Execution> current;
  int32_t left = 0; ///< ranks that execute it still
};

/// A device of a mesh.
struct Rank {
  int32_t group = -1, number = -1;
  /// How often it has come to each call of a run of a program; the last runs.
  struct Counts {
    int64_t run;
    std::map<int64_t, int64_t> ofSites;
  };
  std::mutex mutex;    ///< of `runs` and `bound`
  std::mutex call;     ///< of a call that NCCL's ranks execute
  std::string failure; ///< why NCCL has no communicator
  std::deque<Counts> runs;
  std::map<std::string, OwnedBound, std::less<>> bound; ///< plans by their keys
  OwnedTransport transport;                             ///< used while it executes a call
};

/// The devices of a mesh for one platform.
struct World {
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<Rank>> ranks; ///< by the ordinals of devices
  /// Ids of groups with devices of several processes; there are no `groups` then. GPUs of a program have calls in one
  /// order, as they have those of XLA's own communication.
  std::vector<std::array<char, attnNcclIdBytes>> ncclIds;
  int32_t size = 0; ///< ranks of a group
  double timeout = 0;
};

struct Plan {
  World *world;
  const attnPlan *plan;
  const attnSequences *sequences;
  std::vector<int64_t> rows[2]; ///< of queries and of keys, by rank
  std::vector<std::string> names;
  std::vector<bool> areResults;
};

/// Plans and worlds stay for as long as the process does: programs of XLA name them.
std::shared_mutex registry;
std::map<std::string, Plan, std::less<>> &plans() {
  static auto *all = new std::map<std::string, Plan, std::less<>>;
  return *all;
}

const Plan &planOf(std::string_view key) {
  std::shared_lock lock(registry);
  auto found = plans().find(key);
  if (found == plans().end())
    throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT,
                  "attnc.Error: expected a plan of this process, got: a program of another one"};
  return found->second;
}

/// What XLA says of an execution.
struct Place {
  int64_t run = 0;
  int32_t device = 0;
};

Place placeOf(const XLA_FFI_CallFrame &frame) {
  if (frame.api->struct_size < XLA_FFI_Api_STRUCT_SIZE)
    throw Failure{
        XLA_FFI_Error_Code_UNIMPLEMENTED,
        "attnc.UnsupportedError: attnc has context parallelism with a jaxlib whose foreign function interface "
        "says device and run of a call (version 0.3), got: an older one"};
  XLA_FFI_DeviceOrdinal_Get_Args device{};
  device.struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE;
  device.ctx = frame.ctx;
  XLA_FFI_RunId_Get_Args run{};
  run.struct_size = XLA_FFI_RunId_Get_Args_STRUCT_SIZE;
  run.ctx = frame.ctx;
  for (XLA_FFI_Error *error : {frame.api->XLA_FFI_DeviceOrdinal_Get(&device), frame.api->XLA_FFI_RunId_Get(&run)})
    if (error) {
      destroy(frame, error);
      throw Failure{XLA_FFI_Error_Code_INTERNAL, "attnc.Error: XLA does not say device and run of this call"};
    }
  return {run.run_id, device.device_ordinal};
}

Rank &rankOf(const Plan &plan, int32_t device) {
  auto &ranks = plan.world->ranks;
  if (device < 0 || size_t(device) >= ranks.size() || !ranks[device])
    throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT,
                  "attnc.Error: expected a device of the mesh of the ContextParallel, got: device " +
                      std::to_string(device)};
  return *ranks[device];
}

/// All ranks of a group execute this call, as long as it lives.
class Turn {
public:
  Turn(Group &group, Rank &rank, int64_t run, int64_t site, const std::string &wrong)
      : group(group), execution{run, site, 0} {
    {
      constexpr size_t kept = 256; // others have ended long ago
      std::lock_guard lock(rank.mutex);
      auto found = std::find_if(rank.runs.begin(), rank.runs.end(), [=](auto &own) { return own.run == run; });
      if (found == rank.runs.end()) {
        if (rank.runs.size() == kept)
          rank.runs.pop_front();
        rank.runs.push_back({run, {}});
        found = std::prev(rank.runs.end());
      }
      execution[2] = found->ofSites[site]++;
    }
    group.enter(execution, rank.number, wrong);
  }
  Turn(const Turn &) = delete;
  ~Turn() { group.leave(execution); }

private:
  Group &group;
  Execution execution;
};

/// The context of a stream, as the current one.
class ContextOf {
public:
  explicit ContextOf(void *stream) {
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    auto find = [&](auto &function, const char *name) {
      function = driver ? reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(driver, name)) : nullptr;
      return function != nullptr;
    };
    int (*contextOf)(void *, void **) = nullptr;
    int (*push)(void *) = nullptr;
    void *context = nullptr;
    if (!find(contextOf, "cuStreamGetCtx") || !find(push, "cuCtxPushCurrent_v2") || !find(pop, "cuCtxPopCurrent_v2") ||
        !find(copy, "cuMemcpyDtoHAsync_v2") || !find(synchronize, "cuStreamSynchronize") ||
        contextOf(stream, &context) || push(context))
      throw Failure{XLA_FFI_Error_Code_INTERNAL, "attnc.DriverError: the stream of this call has no context"};
  }
  ContextOf(const ContextOf &) = delete;
  ~ContextOf() {
    void *context = nullptr;
    pop(&context);
  }

  /// Reads a number from the device, behind what is on the stream.
  int32_t read(const void *from, void *stream) const {
    int32_t number = -1;
    if (copy(&number, from, sizeof(number), stream) || synchronize(stream))
      throw Failure{XLA_FFI_Error_Code_INTERNAL, "attnc.DriverError: the device cannot be read"};
    return number;
  }

private:
  int (*pop)(void **) = nullptr;
  int (*copy)(void *, const void *, size_t, void *) = nullptr;
  int (*synchronize)(void *) = nullptr;
};

/// The last operand is the rank by the mesh of the shard_map, which may not be that of the ContextParallel. Returns
/// what is wrong.
std::string wrongPlace(const XLA_FFI_CallFrame &frame, int32_t rank, const ContextOf *context, void *stream) {
  if (frame.args.size < 1)
    refuse("expected buffers, got: none");
  const auto &buffer = *static_cast<const XLA_FFI_Buffer *>(frame.args.args[frame.args.size - 1]);
  const int32_t place = context ? context->read(buffer.data, stream) : *static_cast<const int32_t *>(buffer.data);
  return place == rank
             ? ""
             : "expected jax.shard_map over the mesh of the ContextParallel, got: a mesh in which the device of rank " +
                   std::to_string(rank) + " has place " + std::to_string(place);
}

/// Memory of a call: of XLA's allocator for a stream, whose later calls alone may have it again.
class Workspace {
public:
  Workspace(const XLA_FFI_CallFrame &frame, bool onCpu, size_t needed) : frame(frame), onCpu(onCpu) {
    if (!needed)
      return;
    bytes = needed + alignment;
    if (onCpu) {
      memory = std::malloc(bytes);
    } else {
      XLA_FFI_DeviceMemory_Allocate_Args arguments{};
      arguments.struct_size = XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE;
      arguments.ctx = frame.ctx, arguments.size = bytes, arguments.alignment = 16; // XLA's most
      if (XLA_FFI_Error *error = frame.api->XLA_FFI_DeviceMemory_Allocate(&arguments))
        destroy(frame, error);
      else
        memory = arguments.data;
    }
    if (!memory)
      throw Failure{XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                    "attnc.Error: expected " + std::to_string(bytes) + " bytes of memory, got: none"};
  }
  Workspace(const Workspace &) = delete;
  ~Workspace() {
    if (onCpu)
      std::free(memory);
    if (onCpu || !memory)
      return;
    XLA_FFI_DeviceMemory_Free_Args arguments{};
    arguments.struct_size = XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE;
    arguments.ctx = frame.ctx, arguments.size = bytes, arguments.data = memory;
    if (XLA_FFI_Error *error = frame.api->XLA_FFI_DeviceMemory_Free(&arguments))
      destroy(frame, error);
  }
  void *data() const {
    return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(memory) + alignment - 1) / alignment * alignment);
  }

private:
  static constexpr size_t alignment = 256;
  const XLA_FFI_CallFrame &frame;
  bool onCpu;
  size_t bytes = 0;
  void *memory = nullptr;
};

/// The tensors of a call. Those of rows have as many as the rank has; buffers have those of the rank with most.
struct Tensors {
  Tensors(const XLA_FFI_CallFrame &frame, const Plan &plan, int32_t rank)
      : all(plan.names.size()), extents(all.size()), strides(all.size()) {
    int64_t inputs = 0, results = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string &name = plan.names[i];
      const bool isWritten = plan.areResults[i];
      int64_t &next = isWritten ? results : inputs;
      if (next >= (isWritten ? frame.rets.size : frame.args.size - 1))
        refuse("expected more buffers, got: " + std::to_string(frame.args.size) + " and " +
               std::to_string(frame.rets.size) + " results");
      void *buffer = isWritten ? frame.rets.rets[next] : frame.args.args[next];
      ++next;
      all[i] = tensorOf(*static_cast<const XLA_FFI_Buffer *>(buffer), name.c_str());
      const bool isStatistic = name == "lse" || name == "dlse",
                 ofKeys = name == "k" || name == "v" || name == "dk" || name == "dv";
      if (!isStatistic && !ofKeys && name != "q" && name != "o" && name != "do" && name != "dq")
        continue; // an array
      int64_t stride = 1;
      for (int32_t axis = all[i].rank; axis-- > 0;) {
        extents[i][axis] = all[i].shape[axis], strides[i][axis] = stride;
        stride *= all[i].shape[axis];
      }
      extents[i][isStatistic] = std::min(extents[i][isStatistic], plan.rows[ofKeys][rank]);
      all[i].shape = extents[i].data(), all[i].strides = strides[i].data();
    }
    ++inputs; // the rank (checkRank)
    if (inputs != frame.args.size || results != frame.rets.size)
      refuse("expected " + std::to_string(inputs) + " buffers and " + std::to_string(results) +
             " results, got: " + std::to_string(frame.args.size) + " and " + std::to_string(frame.rets.size));
  }
  std::vector<attnTensor> all;
  std::vector<std::array<int64_t, attnMaxRank>> extents, strides;
};

void executePlan(const XLA_FFI_CallFrame &frame, bool onCpu) {
  const std::string_view key = attribute(frame.attrs, "plan");
  const Plan &plan = planOf(key);
  const Place place = placeOf(frame);
  Rank &rank = rankOf(plan, place.device);
  void *stream = onCpu ? nullptr : streamOf(frame);
  std::optional<ContextOf> current;
  if (!onCpu)
    current.emplace(stream);
  Tensors tensors(frame, plan, rank.number);
  World &world = *plan.world;
  const bool hasNccl = !world.ncclIds.empty();
  const auto boundPlan = [&]() -> attnBoundPlan * {
    std::lock_guard lock(rank.mutex);
    auto found = rank.bound.find(key);
    return found == rank.bound.end() ? nullptr : found->second.get();
  };
  // On a GPU this waits for the stream, so only at the first execution.
  const std::string wrong =
      onCpu || !boundPlan() ? wrongPlace(frame, rank.number, current ? &*current : nullptr, stream) : "";
  std::optional<Turn> turn;
  std::unique_lock<std::mutex> call(rank.call, std::defer_lock);
  if (!hasNccl)
    turn.emplace(*world.groups[rank.group], rank, place.run, number(frame.attrs, "site"), wrong);
  else if (!wrong.empty())
    refuse(wrong);
  else
    call.lock();
  if (!rank.transport) {
    attnTransport *made = nullptr;
    if (!rank.failure.empty()) // an id makes one communicator
      throw Failure{XLA_FFI_Error_Code_INTERNAL, rank.failure};
    try {
      if (hasNccl ? attnTransportNccl(rank.number, world.size, world.ncclIds[rank.group].data(), world.timeout, &made)
                  : attnTransportLocal(world.groups[rank.group]->ranks(), rank.number, !onCpu, &made))
        fail();
    } catch (const Failure &failure) {
      rank.failure = failure.text;
      throw;
    }
    rank.transport.reset(made);
  }
  if (attnTransportCheck(rank.transport.get()))
    fail();
  attnBoundPlan *bound = boundPlan();
  if (!bound) {
    if (attnPlanBind(plan.plan, plan.sequences, rank.transport.get(), &bound))
      fail();
    std::lock_guard lock(rank.mutex);
    rank.bound[std::string(key)].reset(bound);
  }
  size_t bytes = 0;
  if (attnPlanWorkspaceSize(bound, tensors.all.data(), &bytes))
    fail();
  Workspace workspace(frame, onCpu, bytes);
  if (attnPlanRun(bound, tensors.all.data(), workspace.data(), stream))
    fail();
}

XLA_FFI_Error *handlePlan(XLA_FFI_CallFrame *frame, bool onCpu) {
  if (isMetadata(frame, 0)) // a first execution binds
    return nullptr;
  return guarded(frame, [&] { executePlan(*frame, onCpu); });
}

} // namespace

#define ATTNC_EXPORT extern "C" __attribute__((visibility("default")))

/// Devices of this process that are ranks: of `devices` ordinals the group and the rank in it, or -1. `ncclIds`: of
/// each group, where groups have devices of other processes, too; else null.
ATTNC_EXPORT World *attncJaxWorld(int32_t groups, int32_t ranks, int32_t devices, const int32_t *groupOf,
                                  const int32_t *rankOf, double timeout, const char *ncclIds) {
  auto world = std::make_unique<World>();
  world->size = ranks, world->timeout = timeout;
  for (int32_t group = 0; group < groups && ncclIds; ++group)
    std::copy_n(ncclIds + group * attnNcclIdBytes, attnNcclIdBytes, world->ncclIds.emplace_back().begin());
  for (int32_t group = 0; group < groups && !ncclIds; ++group) {
    attnLocalRanks *made = nullptr;
    if (attnLocalRanksCreate(ranks, timeout, &made))
      return nullptr;
    world->groups.push_back(std::make_unique<Group>(OwnedRanks(made), ranks, timeout));
  }
  world->ranks.resize(devices);
  for (int32_t device = 0; device < devices; ++device)
    if (groupOf[device] >= 0) {
      world->ranks[device] = std::make_unique<Rank>();
      world->ranks[device]->group = groupOf[device], world->ranks[device]->number = rankOf[device];
    }
  return world.release();
}

/// Names a plan of a world. Plan and sequences stay, and so does the first of a key. `rows`: of each rank, of queries
/// and then of keys. `results`: names of tensors, with a space between two.
ATTNC_EXPORT void attncJaxPlan(const char *key, World *world, const attnPlan *plan, const attnSequences *sequences,
                               int32_t ranks, const int64_t *rows, const char *results) {
  std::unique_lock lock(registry);
  auto [place, isNew] = plans().try_emplace(key);
  if (!isNew)
    return;
  Plan &made = place->second;
  made.world = world, made.plan = plan, made.sequences = sequences;
  made.rows[0].assign(rows, rows + ranks), made.rows[1].assign(rows + ranks, rows + 2 * ranks);
  std::istringstream words(results);
  const std::vector<std::string> written{std::istream_iterator<std::string>(words), {}};
  for (int i = 0, n = attnPlanTensorCount(plan); i < n; ++i) {
    made.names.push_back(attnPlanTensorName(plan, i));
    made.areResults.push_back(std::find(written.begin(), written.end(), made.names.back()) != written.end());
  }
}

/// Handlers for the platforms "cpu" and "CUDA".
ATTNC_HANDLER attncJaxPlanCpu(XLA_FFI_CallFrame *frame) { return handlePlan(frame, true); }
ATTNC_HANDLER attncJaxPlanCuda(XLA_FFI_CallFrame *frame) { return handlePlan(frame, false); }
