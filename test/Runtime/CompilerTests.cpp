// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestHelpers.h"
#include "attn-rt/Launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace attn::rt;

using Clock = std::chrono::steady_clock;
static double ms(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

static Artifact saxpy(const char *target) {
  Artifact artifact = someArtifact("", "saxpy");
  artifact.target = target;
  artifact.params = {
      {"x", Param::Kind::Pointer}, {"y", Param::Kind::Pointer}, {"a", Param::Kind::F32}, {"n", Param::Kind::I32}};
  if (artifact.isHost())
    artifact.source = "extern \"C\" void saxpy_block(void *const *args, int block) {\n"
                      "  const float *x = *(const float **)args[0]; float *y = *(float "
                      "**)args[1];\n"
                      "  float a = *(const float *)args[2]; int n = *(const int *)args[3];\n"
                      "  volatile char deep[9 << 20]; deep[0] = 1;\n" // the stack is 16 MB
                      "  for (int i = block * 128; i < n && i < block * 128 + 128; ++i) y[i] "
                      "+= a * x[i];\n}\n";
  else
    artifact.source = "extern \"C\" __global__ void __launch_bounds__(128) saxpy(const float "
                      "*x, float *y, float a, int n) {\n"
                      "  __shared__ float tile[128];\n  int i = blockIdx.x * 128 + "
                      "threadIdx.x;\n"
                      "  tile[threadIdx.x] = i < n ? x[i] : 0; __syncthreads();\n"
                      "  if (i < n) y[i] += a * tile[threadIdx.x ^ 1];\n}\n";
  return artifact;
}

static void artifact() {
  Artifact a = saxpy("cpu");
  a.follows = true;
  a.persistent = a.clusterPerBlock = true;
  a.params.push_back({"q_map", Param::Kind::TensorMap});
  a.params.push_back({"queue", Param::Kind::Queue});
  a.notes = {{"mask", "causal \"x\"\n"}};
  Result<Artifact> b = Artifact::fromJson(a.toJson());
  EXPECT(b.ok(), "{}", b.error().str());
  EXPECT(b->toJson() == a.toJson() && b->source == a.source && b->params[2].kind == Param::Kind::F32);
  EXPECT(b->follows && b->persistent && b->clusterPerBlock && b->params[4].kind == Param::Kind::TensorMap &&
         b->params[5].kind == Param::Kind::Queue);
  auto refused = [&](const std::string &from, const std::string &to) {
    std::string json = a.toJson();
    size_t at = json.find(from);
    EXPECT(at != std::string::npos, "{}", from);
    Result<Artifact> parsed = Artifact::fromJson(json.replace(at, from.size(), to));
    EXPECT(!parsed, "{}", to);
    fmt::print("{}\n", parsed.error().str());
  };
  refused("\"follows\": true", "\"follows\": 1");
  refused("\"persistent\": true", "\"persistent\": 1");
  refused("\"persistent\": true,", "");
  refused("\"cluster_per_block\": true", "\"cluster_per_block\": 16");
  refused("\"queue\"\n", "\"queues\"\n");
  EXPECT(!Artifact::fromJson("{") && !Artifact::fromJson("[]") && !Artifact::fromJson("{\"abi_version\": 4}"));
  for (const char *version : {"3", "99"})
    fmt::print("{}\n", Artifact::fromJson(fmt::format("{{\"abi_version\": {}}}", version)).error().str());
  EXPECT(parseSize("64K") == 65536 && parseSize("1G") == 1u << 30 && !parseSize("") && !parseSize("1T") &&
         !parseSize("-1") && parseSize("7") == 7u);
}

/// What ptxas says of one kernel among several, with a warning in front of the first.
static void report() {
  constexpr std::string_view log = "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions "
                                   "are serialized due to insufficient register "
                                   "resources for the wgmma pipeline in the function 'first'\n"
                                   "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
                                   "ptxas info    : Function properties for first\n"
                                   "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
                                   "ptxas info    : Used 168 registers, used 1 barriers, 16 bytes smem\n"
                                   "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
                                   "ptxas info    : Function properties for second\n"
                                   "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                                   "ptxas info    : Used 40 registers\n";
  ResourceReport first = ResourceReport::parse(log, "first"), second = ResourceReport::parse(log, "second");
  EXPECT(first.registers == 168 && first.stack == 8 && first.spillStores == 4 && first.spillLoads == 12 &&
         first.smem == 16 && first.serialized);
  EXPECT(second.registers == 40 && second.spillStores == 0 && second.smem == 0 && !second.serialized && second.fits());
  EXPECT(!ResourceReport::parse(log, "third").known());
  first.stack = first.spillStores = first.spillLoads = 0;
  EXPECT(!first.fits(), "products one after the other are what spills are: another schedule is the faster");
  fmt::print("{}\n{}\n", first.str(), second.str());
}

static void nvrtc() {
  std::unique_ptr<Compiler> compiler = createCompiler("sm_80");
  Result<std::string> version = compiler->version();
  EXPECT(version.ok(), "{}", version.error().str());
  for (const char *target : {"sm_80", "sm_90a", "sm_100a"}) {
    Result<CompileOutput> output = compiler->compile(saxpy(target));
    EXPECT(output.ok(), "{}", output.error().str());
    EXPECT(output->binary.substr(1, 3) == "ELF" && output->report.registers > 0 && output->report.stack == 0);
    fmt::print("{}: {}\n", target, output->report.str());
  }
  Artifact header = saxpy("sm_80");
  header.source = "#include \"attn/tile.h\"\n" + header.source; // from memory, there is no include path
  Result<CompileOutput> output = compiler->compile(header);
  EXPECT(output.ok(), "{}", output.error().str());
  header.source = "#error oh no\n";
  output = compiler->compile(header);
  EXPECT(!output);
  fmt::print("{}\n", output.error().str());
}

static void nvrtcMissing() {
  Result<std::string> version = createCompiler("sm_80")->version();
  EXPECT(!version);
  fmt::print("{}\n", version.error().str());
}

static void host(const std::string &root) {
  CacheOptions options;
  options.root = root;
  std::unique_ptr<Compiler> compiler = createCompiler("cpu");
  Artifact art = saxpy("cpu");
  ThreadPool pool(3);
  for (bool warm : {false, true}) {
    Cache cache(options);
    std::unique_ptr<Compiler> fresh = createCompiler("cpu"); // as in a new process
    Clock::time_point begin = Clock::now();
    auto kernel = cache.get(*fresh, art);
    EXPECT(kernel.ok(), "{}", kernel.error().str());
    auto module = HostModule::load(*kernel);
    EXPECT(module.ok(), "{}", module.error().str());
    EXPECT(!warm || (ms(begin) < 50 && (*kernel)->origin == CompiledKernel::Origin::Disk), "{} ms", ms(begin));
    fmt::print(stderr, "{}: {:.2f} ms to a loaded module\n", warm ? "warm" : "cold", ms(begin));
    std::vector<float> x(100000, 2), y(100000, 1);
    float *px = x.data(), *py = y.data(), a = 3;
    int n = 100000;
    void *args[] = {&px, &py, &a, &n};
    EXPECT(run(**module, pool, args, (n + 127) / 128).ok());
    for (float v : y)
      EXPECT(v == 7);
  }
  // Modules come and go; each has its own code.
  for (int i = 0; i < 3; ++i) {
    Artifact other = art;
    other.source = fmt::format("extern \"C\" void saxpy_block(void *const "
                               "*args, int) {{ *(int *)args[0] = {}; }}\n",
                               i);
    Cache cache(options);
    auto module = HostModule::load(*cache.get(*compiler, other));
    EXPECT(module.ok(), "{}", module.error().str());
    int got = -1;
    void *args[] = {&got};
    EXPECT(run(**module, pool, args, 1).ok() && got == i);
  }
  // A launch has a counter of its own, 0 at its start whatever launches before did to it.
  Artifact counted = art;
  counted.params = {{"order", Param::Kind::Pointer}, {"queue", Param::Kind::Queue}};
  counted.source =
      "extern \"C\" void saxpy_block(void *const *args, int block) {\n"
      "  (*(int **)args[0])[block] = __atomic_fetch_add(*(unsigned **)args[1], 1u, __ATOMIC_ACQ_REL);\n}\n";
  Cache cache(options);
  auto counting = *HostModule::load(*cache.get(*compiler, counted));
  auto countThousand = [&] {
    std::vector<int> order(1000);
    int *place = order.data();
    void *queue = nullptr;
    void *args[] = {&place, &queue};
    EXPECT(run(*counting, pool, args, 1000).ok());
    std::sort(order.begin(), order.end());
    for (int i = 0; i < 1000; ++i)
      EXPECT(order[static_cast<size_t>(i)] == i);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int launches = 0; launches < 20; ++launches)
        countThousand();
    });
  for (std::thread &thread : threads)
    thread.join();
  art.source = "#error oh no\n";
  auto failed = cache.get(*compiler, art);
  EXPECT(!failed);
  fmt::print("{}\n", failed.error().str());
  art = saxpy("cpu");
  art.entry = "other";
  auto module = HostModule::load(*cache.get(*compiler, art));
  EXPECT(!module);
  fmt::print("{}\n", module.error().message);
  art.source = "#include \"attn/tile.h\"\n" + art.source;
  auto withHeader = cache.get(*compiler, art);
  EXPECT(withHeader.ok(), "{}", withHeader.error().str());
}

static void hostMissing() {
  Result<std::string> version = createCompiler("cpu")->version();
  EXPECT(!version);
  fmt::print("{}\n", version.error().str());
}

static void pool() {
  for (int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    for (int64_t n : {0, 1, 5, 1000}) {
      std::vector<std::atomic<int>> counts(static_cast<size_t>(n));
      for (int round = 0; round < 20; ++round)
        pool.forEach(n, [&](int64_t i) { ++counts[static_cast<size_t>(i)]; });
      for (auto &count : counts)
        EXPECT(count == 20);
    }
    if (pid_t child = ::fork(); child == 0) { // the workers are the parent's
      std::atomic<int> sum = 0;
      pool.forEach(100, [&](int64_t i) { sum += static_cast<int>(i); });
      ::_exit(sum == 4950 ? 0 : 1);
    } else {
      int status = 1;
      ::waitpid(child, &status, 0);
      EXPECT(status == 0);
    }
  }
}

static void driver() {
  Result<const Driver *> driver = Driver::get();
  fmt::print("{}\n", driver ? "there is a GPU" : driver.error().str());
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->artifact = saxpy("sm_80");
  EXPECT(driver.ok() || !Module::load(kernel));
  EXPECT(targetOf(90, true) == "sm_90a" && targetOf(90, false) == "sm_90" && targetOf(86, true) == "sm_86");
}

/// On a GPU: saxpy through compile, cache, module, launch and a captured graph.
static void gpu(const std::string &root) {
  Result<const Driver *> got = Driver::get();
  EXPECT(got.ok(), "{}", got.error().str());
  const Driver &cuda = **got;
  std::string target = targetOf(*cuda.arch(*cuda.currentDevice()), false);
  CacheOptions options;
  options.root = root;
  Cache cache(options);
  Artifact art = saxpy(target.c_str());
  art.smemBytes = 65536;
  auto kernel = cache.get(*createCompiler(target), art);
  EXPECT(kernel.ok(), "{}", kernel.error().str());
  auto module = Module::load(*kernel);
  EXPECT(module.ok(), "{}", module.error().str());
  int n = 1000;
  float a = 3;
  std::vector<float> x(1000, 2), y(1000, 1);
  DevicePtr dx = *cuda.alloc(4000), dy = *cuda.alloc(4000);
  EXPECT(cuda.copyToDevice(dx, x.data(), 4000).ok() && cuda.copyToDevice(dy, y.data(), 4000).ok());
  Stream stream = *cuda.createStream();
  void *args[] = {&dx, &dy, &a, &n};
  auto go = [&] { EXPECT(launch(**module, args, (n + 127) / 128, stream).ok()); };
  go();
  EXPECT(cuda.beginCapture(stream).ok());
  go();
  Result<GraphExec> graph = cuda.endCapture(stream);
  EXPECT(graph.ok(), "{}", graph.error().str());
  EXPECT(cuda.launchGraph(*graph, stream).ok() && cuda.synchronize(stream).ok());
  EXPECT(cuda.copyToHost(y.data(), dy, 4000).ok());
  for (float v : y)
    EXPECT(v == 13, "got {}", v);
  Event begin = *cuda.createEvent(), end = *cuda.createEvent();
  Clock::time_point t = Clock::now();
  EXPECT(cuda.record(begin, stream).ok());
  for (int i = 0; i < 500; ++i)
    go();
  double host = ms(t);
  EXPECT(cuda.record(end, stream).ok() && cuda.synchronizeEvent(end).ok());
  fmt::print("{}: launch {:.2f} us host, {:.2f} us device, occupancy {}\n", target, host * 2,
             *cuda.elapsedMs(begin, end) * 2, *(*module)->occupancy());
}

int attn::rt::compilerTest(const std::string &name, const std::string &argument) {
  const std::pair<const char *, std::function<void()>> tests[] = {{"artifact", artifact},
                                                                  {"report", report},
                                                                  {"nvrtc", nvrtc},
                                                                  {"nvrtc-missing", nvrtcMissing},
                                                                  {"host", [&] { host(argument); }},
                                                                  {"host-missing", hostMissing},
                                                                  {"pool", pool},
                                                                  {"driver", driver},
                                                                  {"gpu", [&] { gpu(argument); }}};
  for (const auto &[test, body] : tests)
    if (name == test) {
      body();
      return 0;
    }
  return -1;
}
