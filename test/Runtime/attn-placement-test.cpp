// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-placement-test FILE [all]: launches the problems @simple and @split on
// streams and with tensors of two devices, against Inputs/fake_cuda.c. Prints what
// is refused, then `ok`, or says what was expected and exits 1. With `all`,
// $ATTN_CHECK_ARRAYS is set. The kernels are in the cache: NVRTC does not compile
// beside a fake driver.
//
#include "TestHelpers.h"
#include "attn-rt/Placement.h"
#include "attn/API/Jit.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <dlfcn.h>

using namespace attn;

struct Launched {
  unsigned blocks;
  uint64_t first, second;
  int attribute, device, count;
};
struct Calls {
  int pushed, popped, currents, streams, pointers;
};

// As the fake driver has it: whose memory an address is.
enum Memory : uintptr_t { ofFirst = 0xd0, ofSecond, managed, pinned, peer, mapped, pooled, unknown };
static void *at(Memory memory, uintptr_t offset = 0) { return reinterpret_cast<void *>((memory << 40) + offset); }
static rt::Stream stream(uintptr_t handle) { return reinterpret_cast<rt::Stream>(handle); }
static const rt::Stream ofSecondDevice = stream(0x5000), ofFirstDevice = stream(0x100);

static Launched *launched;
static Calls *calls;
static const rt::Driver *driver;

static rt::Context current() {
  rt::Context context = nullptr;
  EXPECT(rt::StreamContext::enter(*driver, nullptr, nullptr).ok());
  auto *get = reinterpret_cast<int (*)(void **)>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "cuCtxGetCurrent"));
  EXPECT(get(&context) == 0);
  return context;
}

/// A kernel and the shapes of one sequence.
struct Case {
  std::shared_ptr<const Kernel> kernel;
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>> shapes;

  Case(llvm::StringRef text, llvm::StringRef problem, int64_t rowsQ, int64_t rowsKv) {
    auto made = Kernel::create(text, problem, *Target::parse("sm_90a"));
    EXPECT(made.ok(), "{}", made.error().str());
    kernel = *made;
    for (const rt::Program::Tensor &spec : kernel->getTensors()) { // batch, rows, ...
      shapes.emplace_back();
      for (const rt::Extent &extent : spec.extents)
        shapes.back().push_back(extent.constant()            ? *extent.constant()
                                : extent.str() == "batch"    ? 1
                                : extent.str() == "seqlen_q" ? rowsQ
                                                             : rowsKv);
    }
  }
  llvm::SmallVector<TensorView, 8> views(Memory all) const {
    llvm::SmallVector<TensorView, 8> views;
    for (auto [spec, shape] : llvm::zip_equal(kernel->getTensors(), shapes))
      views.push_back({at(all, (views.size() + 1) << 32), spec.dtype, shape, {}});
    return views;
  }
  size_t bytes() const {
    auto needed = kernel->workspaceBytes(views(ofFirst));
    EXPECT(needed.ok(), "{}", needed.error().str());
    return *needed;
  }
  /// Launches, or prints why not; on which device.
  int go(llvm::ArrayRef<TensorView> tensors, rt::Stream stream, void *workspace = nullptr) const {
    int before = launched->count;
    rt::Status status = kernel->launch(tensors, workspace, stream);
    EXPECT(calls->pushed == calls->popped, "contexts are left behind");
    EXPECT(status.ok() == (launched->count > before), "nothing runs of a launch that fails");
    if (!status)
      fmt::print("{}\n", status.error().str());
    return status ? launched->device : -1;
  }
};

static void placement(const Case &simple) {
  rt::Context first = current();
  // The default streams are of the current context.
  for (uintptr_t handle : {0, 1, 2}) {
    *calls = {};
    EXPECT(simple.go(simple.views(ofFirst), stream(handle)) == 0);
    EXPECT(calls->pushed == 0 && calls->streams == 0 && calls->pointers == 1);
    EXPECT(simple.go(simple.views(ofSecond), stream(handle)) == -1);
  }
  EXPECT(simple.go(simple.views(ofFirst), ofFirstDevice) == 0 && calls->pushed == 0 && calls->streams == 1);
  // Others decide, whatever is current.
  EXPECT(simple.go(simple.views(ofSecond), ofSecondDevice) == 1 && calls->pushed == 1);
  EXPECT(simple.go(simple.views(ofFirst), ofSecondDevice) == -1 && current() == first);
  // What a device can reach without owning it.
  for (Memory memory : {managed, pinned, peer, mapped, pooled})
    EXPECT(simple.go(simple.views(memory), nullptr) == 0, "{:x}", uintptr_t(memory));
  for (Memory memory : {mapped, pooled, peer}) // shared with the first alone; in its own memory a device needs no list
    EXPECT(simple.go(simple.views(memory), ofSecondDevice) == 1, "{:x}", uintptr_t(memory));
  EXPECT(simple.go(simple.views(unknown), nullptr) == -1);
  // The second device current.
  EXPECT(driver->useDevice(1).ok() && current() != first);
  for (uintptr_t handle : {0, 1, 2})
    EXPECT(simple.go(simple.views(ofSecond), stream(handle)) == 1);
  EXPECT(simple.go(simple.views(ofFirst), nullptr) == -1);
  EXPECT(simple.go(simple.views(ofFirst), ofFirstDevice) == 0 && current() != first);
  EXPECT(driver->useDevice(0).ok() && current() == first);
  // None current.
  std::thread([&] {
    EXPECT(simple.go(simple.views(ofSecond), ofSecondDevice) == 1 && !current());
    EXPECT(simple.go(simple.views(ofFirst), ofFirstDevice) == 0 && !current());
    EXPECT(simple.go(simple.views(ofSecond), nullptr) == -1);
    EXPECT(simple.go(simple.views(ofFirst), nullptr) == 0 && current() == first);
  }).join();
}

/// Tensors other than q are looked at only on demand.
static void others(const Case &simple, const Case &split, bool all) {
  for (size_t i = 1; i < simple.shapes.size(); ++i) {
    auto views = simple.views(ofFirst);
    views[i].data = at(ofSecond);
    EXPECT(simple.go(views, nullptr) == (all ? -1 : 0));
  }
  EXPECT(split.bytes() > 0 && split.go(split.views(ofFirst), nullptr, at(ofFirst)) == 0);
  EXPECT(split.go(split.views(ofFirst), nullptr, at(ofSecond)) == (all ? -1 : 0));
}

/// A workspace is large enough wherever the launch goes.
static void workspace(const Case &split) {
  size_t bytes = split.bytes();
  EXPECT(driver->useDevice(1).ok());
  EXPECT(split.bytes() == bytes, "{} and {}", bytes, split.bytes());
  EXPECT(driver->useDevice(0).ok());
}

/// What all this adds to a launch, but for the time that a real driver takes.
static void cost() {
  constexpr int rounds = 200, calls = 1000;
  double us = 1e9; // of the quickest round: others may have waited for a CPU
  for (int round = 0; round < rounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      auto context = rt::StreamContext::enter(*driver, i % 2 ? nullptr : ofFirstDevice, nullptr);
      EXPECT(context.ok() && rt::checkReach(*driver, reinterpret_cast<rt::DevicePtr>(at(ofFirst)), 0, "q").ok());
    }
    std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
    us = std::min(us, taken.count() / calls);
  }
  fmt::print(stderr, "{:.3f} us a launch, without the driver's part\n", us);
  EXPECT(us < 0.3);
}

int main(int argc, char **argv) {
  auto file = llvm::MemoryBuffer::getFile(argc > 1 ? argv[1] : "");
  EXPECT(file, "give a file");
  bool all = argc > 2 && std::string_view(argv[2]) == "all";
  void *fake = ::dlopen("libcuda.so.1", RTLD_NOW);
  launched = static_cast<Launched *>(fake ? ::dlsym(fake, "fake_launch") : nullptr);
  calls = static_cast<Calls *>(fake ? ::dlsym(fake, "fake_calls") : nullptr);
  EXPECT(launched && calls, "this is for a fake libcuda.so.1");
  auto opened = rt::Driver::get();
  EXPECT(opened.ok(), "{}", opened.error().str());
  driver = *opened;
  EXPECT(driver->useDevice(0).ok());
  Case simple((*file)->getBuffer(), "simple", 256, 256), split((*file)->getBuffer(), "split", 1, 32768);
  EXPECT(processCache().stats().compiles == 0);
  if (!all)
    placement(simple);
  others(simple, split, all);
  workspace(split);
  cost();
  fmt::print("ok\n");
  return 0;
}
