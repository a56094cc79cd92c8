// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attnc_plan_run for JAX: context-parallel plans inside a shard_map. The devices of a mesh that share sequences are a
// group, and each is a rank of it. The attribute `plan` is the key of a plan that Python has registered with
// attncJaxPlan; buffers are the plan's operands and arrays in its order, results are its results.
//
// XLA executes the ranks in threads of one process. At a plan's first execution they bind it together, each with the
// transport of its device.
//
#include "attn-c/Plan.h"
#include "jax_calls.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <optional>

using namespace attnc::jax;

namespace {

template <auto destroy> struct Deleter {
  template <typename T> void operator()(T *it) const { destroy(it); }
};
using OwnedRanks = std::unique_ptr<attnLocalRanks, Deleter<attnLocalRanksDestroy>>;
using OwnedTransport = std::unique_ptr<attnTransport, Deleter<attnTransportDestroy>>;
using OwnedBound = std::unique_ptr<attnBoundPlan, Deleter<attnBoundPlanDestroy>>;

/// A device of a mesh.
struct Rank {
  int32_t group = -1, number = -1;
  std::mutex mutex; ///< of what follows: executions of one device come one behind another
  OwnedTransport transport;
  std::map<std::string, OwnedBound, std::less<>> bound; ///< plans by their keys
};

/// The devices of a mesh for one platform.
struct World {
  std::vector<OwnedRanks> groups;
  std::vector<std::unique_ptr<Rank>> ranks; ///< by the ordinals of devices
};

struct Plan {
  World *world;
  const attnPlan *plan;
  const attnSequences *sequences;
  std::vector<int64_t> rows[2]; ///< of queries and of keys, by rank
  std::vector<std::string> names;
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

Rank &rankOf(const XLA_FFI_CallFrame &frame, const Plan &plan) {
  constexpr size_t needed = XLA_FFI_Api_STRUCT_SIZE;
  if (frame.api->struct_size < needed || !frame.api->XLA_FFI_DeviceOrdinal_Get)
    throw Failure{
        XLA_FFI_Error_Code_UNIMPLEMENTED,
        "attnc.UnsupportedError: attnc has context parallelism with jaxlib from 0.8 on, which says the device "
        "of a call, got: an older one"};
  XLA_FFI_DeviceOrdinal_Get_Args arguments{};
  arguments.struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE;
  arguments.ctx = frame.ctx;
  if (XLA_FFI_Error *error = frame.api->XLA_FFI_DeviceOrdinal_Get(&arguments)) {
    destroy(frame, error);
    throw Failure{XLA_FFI_Error_Code_INTERNAL, "attnc.Error: XLA does not say the device of this call"};
  }
  const int32_t ordinal = arguments.device_ordinal;
  auto &ranks = plan.world->ranks;
  if (ordinal < 0 || size_t(ordinal) >= ranks.size() || !ranks[ordinal])
    throw Failure{XLA_FFI_Error_Code_INVALID_ARGUMENT,
                  "attnc.Error: expected a device of the mesh of the ContextParallel, got: device " +
                      std::to_string(ordinal)};
  return *ranks[ordinal];
}

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
        contextOf(stream, &context) || push(context))
      throw Failure{XLA_FFI_Error_Code_INTERNAL, "attnc.DriverError: the stream of this call has no context"};
  }
  ContextOf(const ContextOf &) = delete;
  ~ContextOf() {
    void *context = nullptr;
    pop(&context);
  }

private:
  int (*pop)(void **) = nullptr;
};

/// Memory of a call: of XLA's allocator for a stream, whose later calls alone may have it again.
class Workspace {
public:
  Workspace(const XLA_FFI_CallFrame &frame, bool onCpu, size_t bytes) : frame(frame), onCpu(onCpu), bytes(bytes) {
    if (!bytes)
      return;
    if (onCpu) {
      data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      if (!data)
        refuse("expected " + std::to_string(bytes) + " bytes of memory, got: none");
      return;
    }
    XLA_FFI_DeviceMemory_Allocate_Args arguments{};
    arguments.struct_size = XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE;
    arguments.ctx = frame.ctx, arguments.size = bytes, arguments.alignment = alignment;
    if (XLA_FFI_Error *error = frame.api->XLA_FFI_DeviceMemory_Allocate(&arguments)) {
      destroy(frame, error);
      throw Failure{XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
                    "attnc.Error: expected " + std::to_string(bytes) + " bytes of device memory, got: none"};
    }
    data = arguments.data;
  }
  Workspace(const Workspace &) = delete;
  ~Workspace() {
    if (onCpu)
      std::free(data);
    if (onCpu || !data)
      return;
    XLA_FFI_DeviceMemory_Free_Args arguments{};
    arguments.struct_size = XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE;
    arguments.ctx = frame.ctx, arguments.size = bytes, arguments.data = data;
    if (XLA_FFI_Error *error = frame.api->XLA_FFI_DeviceMemory_Free(&arguments))
      destroy(frame, error);
  }
  void *data = nullptr;

private:
  static constexpr size_t alignment = 256;
  const XLA_FFI_CallFrame &frame;
  bool onCpu;
  size_t bytes;
};

bool isResult(std::string_view name) {
  return name == "o" || name == "lse" || name == "dq" || name == "dk" || name == "dv";
}

/// The tensors of a call. Those of rows have as many as the rank has; buffers have those of the rank with most.
struct Tensors {
  Tensors(const XLA_FFI_CallFrame &frame, const Plan &plan, int32_t rank)
      : all(plan.names.size()), extents(all.size()), strides(all.size()) {
    const bool isBackward = std::find(plan.names.begin(), plan.names.end(), "dq") != plan.names.end();
    int64_t inputs = 0, results = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string &name = plan.names[i];
      const bool isWritten = isResult(name) && !(isBackward && (name == "o" || name == "lse"));
      int64_t &next = isWritten ? results : inputs;
      if (next >= (isWritten ? frame.rets.size : frame.args.size))
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
  Rank &rank = rankOf(frame, plan);
  void *stream = onCpu ? nullptr : streamOf(frame);
  std::optional<ContextOf> current;
  if (!onCpu)
    current.emplace(stream);
  Tensors tensors(frame, plan, rank.number);
  std::lock_guard lock(rank.mutex);
  if (!rank.transport) {
    attnTransport *made = nullptr;
    if (attnTransportLocal(plan.world->groups[rank.group].get(), rank.number, !onCpu, &made))
      fail();
    rank.transport.reset(made);
  }
  if (attnTransportCheck(rank.transport.get()))
    fail();
  OwnedBound &bound = rank.bound[std::string(key)];
  if (!bound) {
    attnBoundPlan *made = nullptr;
    if (attnPlanBind(plan.plan, plan.sequences, rank.transport.get(), &made))
      fail();
    bound.reset(made);
  }
  size_t bytes = 0;
  if (attnPlanWorkspaceSize(bound.get(), tensors.all.data(), &bytes))
    fail();
  Workspace workspace(frame, onCpu, bytes);
  if (attnPlanRun(bound.get(), tensors.all.data(), workspace.data, stream))
    fail();
}

XLA_FFI_Error *handlePlan(XLA_FFI_CallFrame *frame, bool onCpu) {
  if (isMetadata(frame, 0)) // a first execution binds
    return nullptr;
  return guarded(frame, [&] { executePlan(*frame, onCpu); });
}

} // namespace

#define ATTNC_EXPORT extern "C" __attribute__((visibility("default")))

/// Devices that are ranks: of `devices` ordinals the group and the rank in it, or -1.
ATTNC_EXPORT World *attncJaxWorld(int32_t groups, int32_t ranks, int32_t devices, const int32_t *groupOf,
                                  const int32_t *rankOf, double timeout) {
  auto world = std::make_unique<World>();
  for (int32_t group = 0; group < groups; ++group) {
    attnLocalRanks *made = nullptr;
    if (attnLocalRanksCreate(ranks, timeout, &made))
      return nullptr;
    world->groups.emplace_back(made);
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
/// and then of keys.
ATTNC_EXPORT void attncJaxPlan(const char *key, World *world, const attnPlan *plan, const attnSequences *sequences,
                               int32_t ranks, const int64_t *rows) {
  std::unique_lock lock(registry);
  auto [place, isNew] = plans().try_emplace(key);
  if (!isNew)
    return;
  Plan &made = place->second;
  made.world = world, made.plan = plan, made.sequences = sequences;
  made.rows[0].assign(rows, rows + ranks), made.rows[1].assign(rows + ranks, rows + 2 * ranks);
  for (int i = 0, n = attnPlanTensorCount(plan); i < n; ++i)
    made.names.push_back(attnPlanTensorName(plan, i));
}

/// Handlers for the platforms "cpu" and "CUDA".
ATTNC_HANDLER attncJaxPlanCpu(XLA_FFI_CallFrame *frame) { return handlePlan(frame, true); }
ATTNC_HANDLER attncJaxPlanCuda(XLA_FFI_CallFrame *frame) { return handlePlan(frame, false); }
