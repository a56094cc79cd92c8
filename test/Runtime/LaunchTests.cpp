// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestHelpers.h"
#include "TileQueue.h"
#include "attn-rt/Extent.h"
#include "attn-rt/Launch.h"
#include "attn-rt/TensorMap.h"

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <dlfcn.h>

using namespace attn::rt;

/// Blocks of work, and the blocks of threads that are started for them.
static void grid() {
  Artifact a = someArtifact();
  EXPECT(a.blocksToStart(1000, 132) == 1000 && a.blocksToStart(0, 132) == 0);
  a.clusters = 4;
  EXPECT(a.blocksToStart(1001, 132) == 1004);
  a.persistent = true;
  EXPECT(a.blocksToStart(1001, 132) == 132 && a.blocksToStart(1001, 134) == 132 && a.blocksToStart(9, 132) == 12);
  EXPECT(a.blocksToStart(1001, 2) == 4, "at least one cluster");
  a.clusters = 1;
  a.minBlocks = 2;
  EXPECT(a.blocksToStart(1000, 132) == 264 && a.blocksToStart(100, 132) == 100);
  EXPECT(a.blocksToStart(int64_t(1) << 40, 132) == 264);
  a.persistent = false, a.clusterPerBlock = true;
  EXPECT(a.blocksToStart(7, 132) == 7 && a.blocksToStart(0, 132) == 0);
  a.clusters = 16;
  EXPECT(a.blocksToStart(7, 132) == 7 * 16 && a.blocksToStart(1000, 2) == 16000, "a cluster for each row");
}

/// Into how many splits keys go, of 16 heads and query tiles of 64 rows.
static void splits() {
  auto dense = [](int64_t batch, int64_t rows, int64_t keys) {
    return splitsFor(16 * batch * ((rows + 63) / 64), keys, 132);
  };
  EXPECT(dense(1, 1, 32768) == 8 && dense(1, 64, 32768) == 8, "128 of 132");
  EXPECT(dense(1, 65, 32768) == 4 && dense(2, 1, 32768) == 4);
  EXPECT(dense(3, 1, 32768) == 8, "48 tiles: three rounds, of which 384 of 396 places are taken");
  EXPECT(dense(8, 1, 32768) == 1 && dense(1000, 1, 32768) == 1, "full as it is");
  EXPECT(dense(1, 1, 511) == 1 && dense(1, 1, 512) == 2, "too few keys");
  EXPECT(dense(0, 1, 32768) == 1 && dense(1, 0, 32768) == 1, "nothing to do");
  EXPECT(splitsFor(1, int64_t(1) << 30, 100000) == 122, "no more than 128");
}

static StreamKey id(uint64_t value) { return {StreamKey::Kind::Id, value}; }

static void queue() {
  { // A stream keeps its counter; captured launches have one each.
    TileQueue queue(0x1000, 5);
    DevicePtr a = queue.forStream(id(7)), captured = queue.forCapture(), b = queue.forStream(id(8));
    DevicePtr again = queue.forCapture(), c = queue.forStream(id(0));
    EXPECT((std::set{a, b, c, captured, again} == std::set<DevicePtr>{0x1000, 0x1004, 0x1008, 0x100c, 0x1010}));
    EXPECT(queue.forStream(id(7)) == a && queue.forStream(id(8)) == b && queue.forStream(id(0)) == c);
    // Nothing left: new ones get none, the old ones keep theirs.
    EXPECT(queue.forStream(id(9)) == 0 && queue.forCapture() == 0 && queue.forStream(id(9)) == 0);
    EXPECT(queue.forStream(id(7)) == a);
    TileQueue none(0x1000, 0);
    EXPECT(none.forStream(id(7)) == 0 && none.forCapture() == 0);
  }
  { // Names of streams.
    auto handle = [](uintptr_t value) { return reinterpret_cast<Stream>(value); };
    EXPECT(StreamKey::of(handle(0x500), 3) == id(3) && StreamKey::of(handle(0x600), 3) == id(3));
    EXPECT(StreamKey::of(handle(0x500), {}) == StreamKey::of(handle(0x500), {}));
    EXPECT(StreamKey::of(handle(0x500), {}) != StreamKey::of(handle(0x600), {}));
    EXPECT(StreamKey::of(handle(0x500), {}) != id(0x500));
    EXPECT(StreamKey::of(nullptr, {}) == StreamKey::of(handle(1), {}), "both are the legacy stream");
    StreamKey mine = StreamKey::of(handle(2), {}), theirs;
    std::thread([&] { theirs = StreamKey::of(handle(2), {}); }).join();
    EXPECT(mine == StreamKey::of(handle(2), {}) && mine == StreamKey::of(handle(2), 5) && mine != theirs);
    StreamKey later; // on what may be the same thread for the system
    std::thread([&] { later = StreamKey::of(handle(2), {}); }).join();
    EXPECT(later != theirs && later != mine);
  }
  // Threads that launch on the same forty streams, and capture.
  TileQueue queue(0x1000, 40 + 8 * 100);
  std::vector<std::vector<DevicePtr>> streams(8, std::vector<DevicePtr>(40)), captured(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 4000; ++i) {
        DevicePtr &known = streams[t][(i + t * 5) % 40], got = queue.forStream(id((i + t * 5) % 40));
        EXPECT(got && (!known || got == known));
        known = got;
        if (i % 40 == 0)
          captured[t].push_back(queue.forCapture());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  std::set<DevicePtr> all(streams[0].begin(), streams[0].end());
  for (size_t t = 0; t < 8; ++t) {
    EXPECT(streams[t] == streams[0]);
    all.insert(captured[t].begin(), captured[t].end());
  }
  EXPECT(all.size() == 40 + 8 * 100 && !all.count(0) && queue.forCapture() == 0);
}

/// Against Inputs/fake_cuda.c, so not on a GPU: what a launch hands to the
/// driver, and how tensor maps are spelled.
static void fakeDriver() {
  void *fake = ::dlopen("libcuda.so.1", RTLD_NOW);
  struct Launched {
    unsigned blocks;
    uint64_t first, second;
    int attribute, device;
  };
  auto *said = static_cast<Launched *>(fake ? ::dlsym(fake, "fake_launch") : nullptr);
  EXPECT(said, "this is for a fake libcuda.so.1");
  bool old = !::dlsym(fake, "cuTensorMapEncodeTiled");

  CompiledKernel kernel;
  kernel.artifact = someArtifact();
  kernel.artifact.params = {{"blocks", Param::Kind::I32}, {"queue", Param::Kind::Queue}};
  kernel.artifact.persistent = kernel.artifact.follows = true;
  kernel.artifact.minBlocks = 2;
  kernel.binary = "no counters";
  Result<std::shared_ptr<Module>> bad = Module::load(std::make_shared<CompiledKernel>(kernel));
  EXPECT(!bad && bad.error().isBinary, "compiling it anew may help");
  fmt::print("{}\n", bad.error().str());
  kernel.binary = "attn_queue"; // eight counters
  auto module = *Module::load(std::make_shared<CompiledKernel>(kernel));
  auto go = [&](uintptr_t stream, uint64_t blocks = 1000) {
    uint64_t place = ~uint64_t(0);
    void *args[] = {&blocks, &place};
    Status status = launch(*module, args, static_cast<int64_t>(blocks), reinterpret_cast<Stream>(stream));
    EXPECT(status.ok(), "{}", status.error().str());
    EXPECT(said->first == blocks && said->blocks == std::min<uint64_t>(blocks, 264) && said->second == place);
    EXPECT(said->attribute == (old ? 0 : 6), "a kernel that follows may begin early, since CUDA 12.3");
    return place;
  };
  EXPECT(go(0) == 0x10000 && go(0x100) == 0x10004 && go(0) == 0x10000 && go(0x100, 7) == 0x10004);
  EXPECT(go(0x9000) == 0x10008 && go(0x9000) == 0x1000c, "captured");
  uint64_t mine = go(2), theirs = 0;
  std::thread([&] { theirs = go(2); }).join();
  EXPECT(mine == 0x10010 && go(2) == mine && theirs == 0x10014, "each thread has its default stream");
  EXPECT(go(0x101) == 0x10018 && go(0x102) == 0x1001c && go(0x103) == 0 && go(0x9000) == 0 && go(0x102) == 0x1001c);
  { // A stream of the second device, which has counters of its own and more multiprocessors.
    uint64_t blocks = 1000, place = 0;
    void *args[] = {&blocks, &place};
    EXPECT(launch(*module, args, 1000, reinterpret_cast<Stream>(0x5000)).ok());
    EXPECT(said->device == 1 && said->blocks == 528 && place == 0x10000);
    EXPECT(go(0) == 0x10000 && said->device == 0, "the first one is current again");
  }
  void *args[2] = {};
  EXPECT(launch(*module, args, 0, nullptr).ok() && !launch(*module, args, int64_t(1) << 31, nullptr));

  // A cluster for each row: beyond eight blocks the driver is asked for it, and without a counter there is no launch.
  auto *attributes = static_cast<int (*)[16]>(::dlsym(fake, "fake_attributes"));
  EXPECT(attributes && (*attributes)[14] == 0);
  kernel.artifact.persistent = false, kernel.artifact.clusterPerBlock = true;
  kernel.artifact.follows = false;
  for (int clusters : {8, 16}) {
    kernel.artifact.clusters = clusters;
    auto rows = *Module::load(std::make_shared<CompiledKernel>(kernel));
    EXPECT((*attributes)[14] == (clusters > 8) && (*attributes)[8] == kernel.artifact.smemBytes);
    for (uint64_t stream = 0; stream < 9; ++stream) { // of eight counters
      uint64_t batch = 5, place = ~uint64_t(0);
      void *args[] = {&batch, &place};
      Status status = launch(*rows, args, 5, reinterpret_cast<Stream>(0x200 + stream));
      EXPECT(status.ok() == (stream < 8));
      EXPECT(said->attribute == 0);
      if (status.ok())
        EXPECT(said->blocks == 5u * static_cast<unsigned>(clusters) && said->second == 0x10000 + 4 * stream);
      else
        fmt::print("{}\n", status.error().str());
    }
  }

  // Others do with none.
  kernel.artifact.clusters = 1;
  kernel.artifact.clusterPerBlock = false;
  auto teams = *Module::load(std::make_shared<CompiledKernel>(kernel));
  for (uint64_t stream = 0; stream < 9; ++stream) {
    uint64_t batch = 5, place = ~uint64_t(0);
    void *args[] = {&batch, &place};
    EXPECT(launch(*teams, args, 5, reinterpret_cast<Stream>(0x200 + stream)).ok());
    EXPECT(said->blocks == 5 && said->second == (stream < 8 ? 0x10000 + 4 * stream : 0));
  }

  TensorMapSpec spec{0x4000, {64, 100, 4, 3}, {256, 64, 25600}, 128, 64, true};
  std::thread([&] { // which has no context
    Result<TensorMap> map = encodeTensorMap(spec);
    EXPECT(!map);
    fmt::print("{}\n", map.error().str());
    EXPECT(module->prepare().ok() && encodeTensorMap(spec).ok() != old);
  })
      .join();
  if (old)
    return;
  uint64_t expected[16] = {9, 4, 0x4000, 64, 100, 4, 3, 512, 128, 51200, 64, 128, 1};
  TensorMap map = *encodeTensorMap(spec);
  EXPECT(std::equal(expected, expected + 16, map.opaque));
  // Heads whose rows take turns come before the rows.
  uint64_t inTurns[16] = {9, 4, 0x4000, 64, 4, 100, 3, 128, 512, 51200, 64, 2, 128};
  spec.boxHeads = 2;
  map = *encodeTensorMap(spec);
  EXPECT(std::equal(inTurns, inTurns + 16, map.opaque));
  spec.boxHeads = 1;
  spec.bf16 = false;
  EXPECT(encodeTensorMap(spec)->opaque[0] == 6);
  spec.bf16 = true;
  spec.strides[0] = kTensorMapStrideLimit;
  Result<TensorMap> far = encodeTensorMap(spec);
  EXPECT(!far);
  fmt::print("{}\n", far.error().str());

  // Packed rows are there three times, the second time as ends of sequences, up to the tensor's; a step of the last
  // leads a row back, in multiples of 2^34.
  constexpr uint64_t most = INT32_MAX, back = uint64_t(1) << 34;
  TensorMapSpec packed{0x4000, {64, 100, 4, 1}, {256, 64, 64}, 128, 64, true};
  packed.packed = true;
  uint64_t ofRows[16] = {9, 5, 0x4000, 64, 1 << 30, 4, 101, most, 512, 128, 512, back - 512, 64, 128, 1};
  map = *encodeTensorMap(packed);
  EXPECT(std::equal(ofRows, ofRows + 16, map.opaque));
  packed.boxHeads = 2;
  uint64_t ofHeads[16] = {9, 5, 0x4000, 64, 4, 1 << 30, 101, most, 128, 512, 512, back - 512, 64, 2, 128};
  map = *encodeTensorMap(packed);
  EXPECT(std::equal(ofHeads, ofHeads + 16, map.opaque));
  packed.boxHeads = 1;
  packed.strides[0] = (int64_t(1) << 33) + 256; // 2^34 bytes and a row of before: as far back as that row alone
  map = *encodeTensorMap(packed);
  EXPECT(map.opaque[8] == back + 512 && map.opaque[10] == back + 512 && map.opaque[11] == back - 512);
  // From where kernels ask for a box its address is that of its row, modulo 2^64.
  for (int64_t stride : {int64_t(8), int64_t(256), int64_t(1) << 33, kTensorMapStrideLimit - 8}) {
    packed.strides[0] = stride;
    map = *encodeTensorMap(packed);
    const uint64_t *steps = map.opaque + 8, rows = kPackedRows, row = 1000, left = 77;
    EXPECT((rows - left) * steps[0] + (row + left) * steps[2] + rows * steps[3] == row * steps[0], "{}", stride);
  }
  packed.strides[0] = kTensorMapStrideLimit;
  Result<TensorMap> farPacked = encodeTensorMap(packed);
  EXPECT(!farPacked);
  fmt::print("{}\n", farPacked.error().str());
}

static std::shared_ptr<Module> load(Artifact artifact) {
  Cache cache(CacheOptions{});
  auto kernel = cache.get(*createCompiler(artifact.target), artifact);
  EXPECT(kernel.ok(), "{}", kernel.error().str());
  auto module = Module::load(*kernel);
  EXPECT(module.ok(), "{}", module.error().str());
  return *module;
}

static const Driver &driver() {
  Result<const Driver *> got = Driver::get();
  EXPECT(got.ok(), "{}", got.error().str());
  return **got;
}

/// On a GPU: two streams at once, graphs that run beside them, and more graphs
/// than there are counters. Each tile must be taken once by each launch.
static void gpuQueue() {
  const Driver &cuda = driver();
  int device = *cuda.currentDevice();
  Artifact art = someArtifact("", "draw");
  art.target = targetOf(*cuda.arch(device), false);
  art.smemBytes = 0;
  art.minBlocks = 2;
  art.persistent = true;
  art.params = {{"seen", Param::Kind::Pointer},
                {"said", Param::Kind::Pointer},
                {"blocks", Param::Kind::I32},
                {"queue", Param::Kind::Queue}};
  art.source = R"(extern "C" { __device__ unsigned attn_queue[3]; }
extern "C" __global__ void __launch_bounds__(128) draw(int *seen, int *said, int blocks, unsigned *queue) {
  __shared__ int next;
  said[0] = gridDim.x;
  for (int tile = blockIdx.x; tile < blocks; tile = next) {
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(&seen[tile], 1);
      next = tile + gridDim.x;
      if (queue) {
        unsigned drawn = atomicAdd(queue, 1u);
        next = drawn + gridDim.x;
        if (drawn + 1 == blocks) *queue = 0;
      } else {
        atomicAdd(&said[1], 1);
      }
    }
    __syncthreads();
  }
}
)";
  std::shared_ptr<Module> module = load(art);
  int blocks = 50000;
  Stream streams[2] = {*cuda.createStream(), *cuda.createStream()};
  DevicePtr seen = *cuda.alloc(200000), said = *cuda.alloc(8);
  EXPECT(cuda.fill(seen, 0, 200000).ok() && cuda.fill(said, 0, 8).ok() && cuda.synchronizeContext().ok());
  auto go = [&](Stream stream) {
    DevicePtr place = ~DevicePtr(0);
    void *args[] = {&seen, &said, &blocks, &place};
    Status status = launch(*module, args, blocks, stream);
    EXPECT(status.ok(), "{}", status.error().str());
    return place;
  };
  auto expect = [&](int launches, int withoutQueue) {
    std::vector<int> got(50000);
    int words[2];
    EXPECT(cuda.synchronizeContext().ok() && cuda.copyToHost(got.data(), seen, 200000).ok() &&
           cuda.copyToHost(words, said, 8).ok());
    for (int count : got)
      EXPECT(count == launches, "a tile was taken {} times in {} launches", count, launches);
    EXPECT(words[0] == 2 * *cuda.multiprocessors(device) && words[1] == 50000 * withoutQueue);
  };
  DevicePtr first = go(streams[0]), second = go(streams[1]);
  for (int i = 0; i < 9; ++i)
    EXPECT(go(streams[0]) == first && go(streams[1]) == second);
  EXPECT(first && second && first != second);
  expect(20, 0);
  GraphExec graphs[2];
  for (int i = 0; i < 2; ++i) {
    EXPECT(cuda.beginCapture(streams[0]).ok());
    DevicePtr counter = go(streams[0]);
    EXPECT(i ? counter == 0 : (counter && counter != first && counter != second));
    graphs[i] = *cuda.endCapture(streams[0]);
  }
  for (int i = 0; i < 5; ++i) {
    go(streams[0]);
    EXPECT(cuda.launchGraph(graphs[0], streams[1]).ok() && cuda.launchGraph(graphs[1], streams[1]).ok());
    go(streams[1]);
  }
  expect(40, 5);
  art.source.replace(art.source.find("attn_queue"), 10, "other_name");
  Cache cache(CacheOptions{});
  auto without = Module::load(*cache.get(*createCompiler(art.target), art));
  EXPECT(!without && without.error().message.find("attn_queue") != std::string::npos);
}

/// On sm_90: boxes of tensors in three layouts, over their edges too, come as
/// the map says; maps that nobody copies from can be encoded.
static void gpuMaps() {
  Artifact art = someArtifact("", "fetch");
  art.target = "sm_90a";
  art.smemBytes = 0;
  art.params = {{"x_map", Param::Kind::TensorMap}, {"out", Param::Kind::Pointer}, {"column", Param::Kind::I32},
                {"row", Param::Kind::I32},         {"head", Param::Kind::I32},    {"batch", Param::Kind::I32}};
  art.source = R"(struct alignas(64) Map { unsigned long long opaque[16]; };
extern "C" __global__ void __launch_bounds__(128)
fetch(const __grid_constant__ Map x_map, unsigned short *out, int column, int row, int head, int batch) {
  __shared__ alignas(1024) unsigned short box[64 * 64];
  __shared__ unsigned long long barrier;
  unsigned to = __cvta_generic_to_shared(box), full = __cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(8192) : "memory");
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];"
                 ::"r"(to), "l"(&x_map), "r"(full), "r"(column), "r"(row), "r"(head), "r"(batch) : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
               "@!done bra again;\n}" ::"r"(full) : "memory");
  for (int i = threadIdx.x; i < 64 * 64; i += 128)
    out[i] = box[i / 64 * 64 + (i / 8 % 8 ^ i / 64 % 8) * 8 + i % 8];
}
)";
  EXPECT(createCompiler("sm_90a")->compile(art).ok());
  const Driver &cuda = driver();
  std::shared_ptr<Module> module = load(art);
  constexpr int64_t columns = 72, rows = 100, heads = 3, batch = 2, all = columns * rows * heads * batch;
  std::vector<uint16_t> x(all), got(64 * 64);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<uint16_t>(i * 7 + 1);
  DevicePtr dx = *cuda.alloc(all * 2), out = *cuda.alloc(8192);
  EXPECT(cuda.copyToDevice(dx, x.data(), all * 2).ok());
  auto encode = [](const TensorMapSpec &spec) {
    Result<TensorMap> map = encodeTensorMap(spec);
    EXPECT(map.ok(), "{}", map.error().str());
    return *map;
  };
  TensorMapSpec bshd{dx,  {columns, rows, heads, batch}, {heads * columns, columns, rows * heads * columns}, 64, 64,
                     true};
  TensorMapSpec bhsd = bshd, packed = bshd;
  bhsd.strides[0] = columns, bhsd.strides[1] = rows * columns;
  packed.extents[1] = rows * batch, packed.extents[3] = 1, packed.strides[2] = columns;
  for (const TensorMapSpec &spec : {bshd, bhsd, packed}) {
    TensorMap map = encode(spec);
    for (int column : {0, 64})
      for (int row : {0, 64, 90, -3, 1000})
        for (int head : {0, 2, 3}) {
          int b = static_cast<int>(spec.extents[3]) - 1;
          void *args[] = {&map, &out, &column, &row, &head, &b};
          EXPECT(launch(*module, args, 1, nullptr).ok() && cuda.synchronizeContext().ok());
          EXPECT(cuda.copyToHost(got.data(), out, 8192).ok());
          for (int i = 0; i < 64 * 64; ++i) {
            int64_t c = column + i % 64, r = row + i / 64;
            bool inside = c < spec.extents[0] && r >= 0 && r < spec.extents[1] && head < spec.extents[2];
            int64_t at = c + r * spec.strides[0] + head * spec.strides[1] + b * spec.strides[2];
            EXPECT(got[static_cast<size_t>(i)] == (inside ? x[static_cast<size_t>(at)] : 0),
                   "column {} row {} head {} of the tensor", c, r, head);
          }
        }
  }
  TensorMapSpec empty{4096, {columns, 1, heads, 1}, {columns, columns, columns}, 256, 8, false};
  encode(empty);
  TensorMapSpec far = bshd;
  far.strides[2] = kTensorMapStrideLimit - 8;
  encode(far);
  far.strides[2] = kTensorMapStrideLimit;
  Result<TensorMap> refused = encodeTensorMap(far);
  EXPECT(!refused);
  fmt::print("{}\n", refused.error().str());
  TensorMapSpec still = bshd;
  still.strides[1] = 0;
  Result<TensorMap> broadcast = encodeTensorMap(still);
  fmt::print("a stride of 0: {}\n", broadcast ? "taken" : broadcast.error().str());
  std::thread([&] {
    Result<TensorMap> map = encodeTensorMap(bshd);
    fmt::print("without a context: {}\n", map ? "encoded" : map.error().str());
  }).join();
}

int attn::rt::launchTest(const std::string &name) {
  const std::pair<const char *, void (*)()> tests[] = {{"grid", grid},          {"splits", splits},
                                                       {"queue", queue},        {"fake-driver", fakeDriver},
                                                       {"gpu-queue", gpuQueue}, {"gpu-maps", gpuMaps}};
  for (const auto &[test, body] : tests)
    if (name == test) {
      body();
      return 0;
    }
  return -1;
}
