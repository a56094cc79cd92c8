// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-bind-test: prints what `bind` says of tensors that it must refuse, then
// `ok`, or says what was expected and exits 1.
//
#include "TestHelpers.h"
#include "attn/API/BuildFitting.h"

#include <atomic>
#include <chrono>
#include <cstring>

using namespace attn;
using Kind = rt::Param::Kind;
using Extents = std::array<int64_t, 4>;
using Strides = std::array<int64_t, 3>;

/// A map that holds its spec.
static rt::Result<rt::TensorMap> keep(const rt::TensorMapSpec &spec) {
  static_assert(sizeof(spec) <= sizeof(rt::TensorMap));
  rt::TensorMap map = {};
  std::memcpy(map.opaque, &spec, sizeof(spec));
  return map;
}

static char memory[64]; // nobody reads it, only its address is looked at

/// A problem, tensors for it, and a kernel that wants everything.
struct Case {
  Signature signature;
  Sizes sizes;
  std::vector<llvm::SmallVector<int64_t, 4>> shapes, strides;
  rt::Artifact artifact;
  Binding binding;

  Case(llvm::StringRef layout, Sizes sizes, llvm::StringRef heads = "4, 2", llvm::StringRef dtype = "bf16")
      : sizes(sizes) {
    static Compilation compilation;
    std::string text = fmt::format("attn.problem @p mask(#attn.causal) layout({}) heads({}) dims(96, 64) dtype({})",
                                   layout.str(), heads.str(), dtype.str());
    auto module = compilation.parse(text, "problem");
    EXPECT(module.ok(), "{}: {}", text, module.error().str());
    signature = Signature::of(*findProblem(**module, ""));
    artifact.grid = {false, 128, 4, true};
    for (const TensorSpec &spec : signature.tensors) {
      shapes.push_back(spec.shape(signature.fixed, sizes));
      artifact.params.push_back({spec.name, Kind::Pointer});
    }
    strides.resize(shapes.size());
    for (const char *name : {"q_row", "o_head"})
      artifact.params.push_back({name, Kind::I64});
    artifact.params.push_back({"queue", Kind::Queue});
    artifact.params.push_back({"v_map", Kind::TensorMap, 176, 64});
    artifact.params.push_back({"q_map", Kind::TensorMap, 128, 64});
    artifact.params.push_back({"blocks", Kind::I32});
    artifact.params.push_back({"k_map", Kind::TensorMap, 176, 32});
  }

  llvm::SmallVector<int64_t, 4> &stridesOf(llvm::StringRef name) {
    return strides[signature.find(name) - signature.tensors.begin()];
  }
  llvm::SmallVector<TensorView, 8> views() const {
    llvm::SmallVector<TensorView, 8> views;
    for (auto [spec, shape, stride] : llvm::zip(signature.tensors, shapes, strides))
      views.push_back({llvm::is_contained(shape, 0) ? nullptr : memory + 16, spec.dtype, shape, stride});
    return views;
  }
  rt::Status bind(rt::Result<rt::TensorMap> (*encode)(const rt::TensorMapSpec &) = keep) {
    return attn::bind(artifact, signature, views(), sizes, binding, encode);
  }
  void mustBind() {
    rt::Result<Sizes> checked = signature.check(views());
    EXPECT(checked.ok(), "{}", checked.error().str());
    rt::Status status = bind();
    EXPECT(status.ok(), "{}", status.error().str());
  }
  void mustFail(const char *what) {
    rt::Status status = bind();
    EXPECT(!status, "{}", what);
    fmt::print("{}: {}\n", what, status.error().str());
  }

  void *place(llvm::StringRef name) const {
    size_t i = 0;
    while (artifact.params[i].name != name)
      ++i;
    return binding.pointers[i];
  }
  rt::TensorMapSpec map(llvm::StringRef name) const {
    rt::TensorMapSpec spec;
    std::memcpy(&spec, place(name), sizeof(spec));
    return spec;
  }
  void expectMap(llvm::StringRef name, Extents extents, Strides strides) const {
    rt::TensorMapSpec spec = map(name);
    EXPECT(std::equal(extents.begin(), extents.end(), spec.extents), "{}: {}", name.str(),
           fmt::join(spec.extents, ", "));
    EXPECT(std::equal(strides.begin(), strides.end(), spec.strides), "{}: {}", name.str(),
           fmt::join(spec.strides, ", "));
  }
};

/// Maps have the same axes for all layouts; packed ones say so.
static void layouts() {
  for (const char *dtype : {"bf16", "f16"}) {
    Case c("bshd, bhsd, sbhd, bshd", {3, 200, 50}, "4, 2", dtype);
    c.mustBind();
    c.expectMap("q_map", {96, 200, 4, 3}, {4 * 96, 96, 200 * 4 * 96});
    c.expectMap("k_map", {96, 50, 2, 3}, {96, 50 * 96, 2 * 50 * 96});
    c.expectMap("v_map", {64, 50, 2, 3}, {3 * 2 * 64, 64, 2 * 64});
    rt::TensorMapSpec q = c.map("q_map"), k = c.map("k_map"), v = c.map("v_map");
    EXPECT(q.boxRows == 128 && q.boxCols == 64 && k.boxRows == 176 && k.boxCols == 32 && v.boxRows == 176);
    EXPECT(q.address == reinterpret_cast<uintptr_t>(memory + 16) && q.bf16 == (dtype[0] == 'b'));
    EXPECT(!q.packed && !k.packed && !v.packed);
  }
  Case given("bshd", {3, 200, 50});
  given.stridesOf("q") = {1 << 20, 4096, 128, 1};
  given.stridesOf("k") = {0, 768, 192, 1}; // one sequence for all; whether a map can, the driver says
  given.mustBind();
  given.expectMap("q_map", {96, 200, 4, 3}, {4096, 128, 1 << 20});
  given.expectMap("k_map", {96, 50, 2, 3}, {768, 192, 0});

  Case packed("thd", {3, 200, 50});
  packed.mustBind();
  packed.expectMap("q_map", {96, 200, 4, 1}, {4 * 96, 96, 96});
  packed.expectMap("v_map", {64, 50, 2, 1}, {2 * 64, 64, 64});
  for (const char *name : {"q_map", "k_map", "v_map"}) {
    EXPECT(packed.map(name).packed, "{}", name);
    EXPECT(!given.map(name).packed, "{}", name);
  }
  Case mixed("thd, bshd, bshd, thd", {3, 200, 50});
  mixed.mustBind();
  EXPECT(mixed.map("q_map").packed && !mixed.map("k_map").packed && !mixed.map("v_map").packed, "each as its tensor is");
}

/// Strides that nobody takes a step of may be anything; the map's are legal.
static void unused() {
  Case one("bshd", {1, 1, 50}, "4, 1");
  one.stridesOf("q") = {-8, int64_t(1) << 50, 96, 1};
  one.stridesOf("k") = {0, 96, 3, 1};
  one.mustBind();
  one.expectMap("q_map", {96, 1, 4, 1}, {96, 96, 96});
  one.expectMap("k_map", {96, 50, 1, 1}, {96, 96, 96});

  for (Sizes sizes : {Sizes{3, 200, 0}, Sizes{0, 200, 50}, Sizes{3, 0, 50}}) {
    Case empty("bshd", sizes);
    empty.stridesOf("k") =
        sizes.rowsQ && sizes.batch ? llvm::SmallVector<int64_t, 4>{0, 0, -1, 0} : llvm::SmallVector<int64_t, 4>{};
    empty.mustBind();
    for (const char *name : {"q_map", "k_map", "v_map"}) {
      rt::TensorMapSpec map = empty.map(name);
      EXPECT(map.address && map.address % 16 == 0);
      for (int64_t extent : map.extents)
        EXPECT(extent >= 1);
      for (int64_t stride : map.strides)
        EXPECT(stride > 0 && stride % 8 == 0 && stride < rt::kTensorMapStrideLimit);
    }
  }
}

static void refusals() {
  Case c("bshd", {3, 200, 50});
  c.stridesOf("k") = {-3072, 768, 192, 1};
  EXPECT(c.signature.check(c.views()).ok());
  c.mustFail("negative");
  c.stridesOf("k")[0] = rt::kTensorMapStrideLimit;
  EXPECT(c.signature.check(c.views()).ok());
  c.mustFail("far");
  rt::Param last = c.artifact.params.back(); // a kernel without that map takes them
  c.artifact.params.pop_back();
  c.mustBind();
  c.stridesOf("k")[0] = -3072;
  c.mustBind();
  c.artifact.params.push_back(last);
  c.stridesOf("k")[0] = rt::kTensorMapStrideLimit - 8;
  c.mustBind();

  c.artifact.params.back().name = "x_map";
  c.mustFail("no tensor");
  c.artifact.params.back().name = "k_map";
  for (const char *more : {"v_map", "q_map", "k_map"})
    c.artifact.params.push_back({more, Kind::TensorMap, 128, 64});
  c.mustFail("six");
  c.artifact.params.resize(c.artifact.params.size() - 3);
  c.artifact.params.back().name = "lse_map";
  c.mustFail("no 2-byte elements");
  c.artifact.params.back() = {"q_map", Kind::TensorMap, 128, 64};
  c.artifact.params.resize(c.signature.tensors.size());
  c.artifact.params.push_back({"q_map", Kind::TensorMap, 128, 64});
  rt::Status failed = c.bind([](const rt::TensorMapSpec &) {
    return rt::Result<rt::TensorMap>(rt::Error{"no more maps", {}, {}});
  });
  EXPECT(!failed);
  fmt::print("encoder: {}\n", failed.error().str());

  Case many("bshd", {1 << 20, 128 * 512, 50});
  many.mustFail("blocks");
}

/// What isn't a map: pointers in order, strides, the number of blocks, the
/// queue's place. All lie in the binding.
static void arguments() {
  Case c("bshd", {3, 200, 50});
  c.mustBind();
  EXPECT(c.binding.blocks == 4 * 3 * 2 && *static_cast<int32_t *>(c.place("blocks")) == 24);
  EXPECT(*static_cast<int64_t *>(c.place("q_row")) == 4 * 96 && *static_cast<int64_t *>(c.place("o_head")) == 64);
  EXPECT(*static_cast<void **>(c.place("lse")) == memory + 16);
  EXPECT(*static_cast<uint64_t *>(c.place("queue")) == 0);
  for (auto [param, pointer] : llvm::zip(c.artifact.params, c.binding.pointers)) {
    EXPECT(pointer >= static_cast<void *>(&c.binding) && pointer < static_cast<void *>(&c.binding + 1));
    EXPECT(param.kind != Kind::TensorMap || reinterpret_cast<uintptr_t>(pointer) % 64 == 0);
  }
  auto views = c.views();
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i)
      EXPECT(attn::bind(c.artifact, c.signature, views, c.sizes, c.binding, keep).ok());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 1000);
  }
  fmt::print(stderr, "bind: {:.0f} ns\n", best * 1e9);
  EXPECT(best < 2e-6, "{:.0f} ns", best * 1e9);

  if (!rt::Driver::get()) { // the encoder that launches use
    rt::Status status = attn::bind(c.artifact, c.signature, views, c.sizes, c.binding);
    EXPECT(!status && status.error().message == "kernel argument `v_map`: " + rt::Driver::get().error().message);
  }
}

/// Scratch tensors lie side by side, but for what two trees are numbered in: where the list of tiles comes to lie, the longer
/// of both, or behind all if there is no list.
static void workspaces() {
  Compilation compilation;
  for (const char *visits : {"", " visits(40000)", "none"}) {
    bool hasList = llvm::StringRef(visits) != "none";
    auto module = compilation.parse(fmt::format("attn.problem @p mask(#attn.or<#attn.ancestors<\"a\">, #attn.ancestors<\"b\">>) "
                                                "layout(bshd) heads(1) dims(64) dtype(bf16){}",
                                                hasList ? visits : ""),
                                    "problem");
    EXPECT(module.ok(), "{}", module.error().str());
    Signature signature = Signature::of(*findProblem(**module, ""));
    signature.fixed.listed[false] = {64, 64};
    if (!hasList)
      llvm::erase_if(signature.scratch, [](const TensorSpec &spec) { return spec.isList(); });
    Workspace workspace(signature, {2, 40000, 40000});
    llvm::SmallVector<TensorView> views;
    EXPECT(workspace.use(reinterpret_cast<void *>(4096), views).ok());
    uintptr_t room = 0;
    size_t passing = 0, list = 0, others = 0;
    for (auto [spec, view] : llvm::zip(signature.scratch, views)) {
      uintptr_t begin = reinterpret_cast<uintptr_t>(view.data);
      size_t bytes = elementsOf(view.shape) * sizeOf(view.dtype);
      EXPECT(begin >= 4096 && begin % 16 == 0 && begin + bytes <= 4096 + workspace.bytes(), "{}", spec.name);
      if (spec.isPassing() || spec.isList()) {
        EXPECT(!room || room == begin, "{}", spec.name);
        room = begin, (spec.isList() ? list : passing) = bytes;
      } else {
        others += llvm::alignTo(bytes, 16);
      }
    }
    EXPECT(passing == 5 * 2 * 40000 * 4 && (list > passing) == (visits[0] == ' ') && (list > 0) == hasList);
    EXPECT(llvm::alignTo(workspace.bytes(), 16) == others + llvm::alignTo(std::max(passing, list), 16), "{}", workspace.bytes());
    size_t end = room - 4096 + std::max(passing, list);
    for (auto [spec, view] : llvm::zip(signature.scratch, views)) {
      size_t begin = reinterpret_cast<uintptr_t>(view.data) - 4096, bytes = elementsOf(view.shape) * sizeOf(view.dtype);
      EXPECT(spec.isPassing() || spec.isList() || !bytes || begin + bytes <= room - 4096 || begin >= end, "{}", spec.name);
    }
  }
}

/// Sums of dQ have q's rows and no others, whatever sequences there are; their counters, and statistics, are few bytes a row and a sequence.
static void gradientMemory() {
  Compilation compilation;
  for (const char *layout : {"thd", "thd padded", "bshd"}) {
    auto module = compilation.parse(fmt::format("attn.problem @p mask(#attn.causal) layout({}) heads(16) dims(128) dtype(bf16)\nattn.backward @g of(@p)", layout), "problem");
    EXPECT(module.ok(), "{}", module.error().str());
    Signature signature = Signature::of(*findComputation(**module, "g"));
    for (int64_t batch : {1, 128, 30720}) {
      int64_t tokens = std::max<int64_t>(32768, batch), rows = llvm::StringRef(layout) == "bshd" ? tokens / batch : tokens;
      int64_t all = llvm::StringRef(layout) == "bshd" ? rows * batch : tokens;
      Workspace workspace(signature, {batch, rows, rows});
      llvm::SmallVector<TensorView> views;
      EXPECT(workspace.use(reinterpret_cast<void *>(4096), views).ok());
      int found = 0;
      for (auto [spec, view] : llvm::zip(signature.scratch, views)) {
        int64_t elements = elementsOf(view.shape);
        bool isSum = spec.name == "dq_sum", isCounters = spec.name == "dq_turns";
        found += isSum + isCounters;
        EXPECT(!isSum || elements == 16 * all * 128, "{}: {}", layout, elements);
        EXPECT(!isCounters || (elements >= 16 * all / 64 + 16 * batch && elements <= 16 * (all / 64 + 1 + batch)), "{}: {}", layout, elements);
      }
      EXPECT(found == 2);
    }
  }
}

/// A program of a main kernel and another: the bytes that a compiler says it spills of each, or -1 if products are serialized, and the other one's text.
struct Made {
  int main, other;
  const char *otherText;
};

/// Which of these is taken, and how many kernels were built for it.
static std::pair<int, int> fitting(llvm::ArrayRef<Made> made) {
  std::atomic<int> built = 0;
  auto program = [&](int fallback) -> rt::Result<Program> {
    EXPECT(fallback < int(made.size()));
    Program program;
    program.kernels.resize(2);
    auto mark = [](rt::Artifact &kernel, std::string text, int spills) {
      kernel.source = std::move(text);
      kernel.notes = {{"spills", std::to_string(spills)}};
    };
    mark(program.kernels[0], made[fallback].otherText, made[fallback].other);
    mark(program.kernels[1], fmt::format("main {}", fallback), made[fallback].main);
    program.main = 1;
    program.qTile = fallback;
    program.hasFallback = fallback + 1 < int(made.size());
    return program;
  };
  auto build = [&](const rt::Artifact &artifact) -> rt::Result<rt::CompileOutput> {
    ++built;
    rt::CompileOutput output;
    int spills = std::stoi(artifact.notes.front().second);
    output.report.spillStores = std::max(spills, 0);
    output.report.serialized = spills < 0;
    return output;
  };
  auto found = buildFitting(program, build);
  EXPECT(found.ok() && found->kernels.size() == 2);
  EXPECT(reportOf(found->kernels[0]).spillStores == std::max(made[found->program.qTile].other, 0));
  EXPECT(reportOf(found->kernels[1]).spillStores == std::max(made[found->program.qTile].main, 0));
  return {int(found->program.qTile), built};
}

/// The first program that fits; a kernel that all have is no reason for another; if none fits, that which exceeds registers least.
static void fallbacks() {
  EXPECT(fitting({{0, 0, "a"}, {0, 0, "b"}}) == std::pair(0, 2));
  EXPECT(fitting({{8, 0, "a"}, {0, 0, "b"}}).first == 1);
  EXPECT(fitting({{0, 8, "a"}, {0, 0, "b"}}).first == 1);
  EXPECT(fitting({{0, 8, "a"}, {0, 8, "a"}}) == std::pair(0, 2));
  EXPECT(fitting({{0, 8, "a"}, {0, 8, "a"}, {0, 0, "b"}}) == std::pair(2, 4));
  EXPECT(fitting({{0, 8, "a"}, {8, 0, "b"}, {0, 9, "c"}}).first == 0);
  EXPECT(fitting({{16, 0, "a"}, {8, 0, "b"}, {-1, 0, "c"}}).first == 1);
  EXPECT(fitting({{-1, 0, "a"}, {200, 0, "b"}, {200, 4, "c"}}).first == 1);
  EXPECT(fitting({{4, 8, "a"}, {6, 0, "b"}}).first == 1);
}

static std::string hintText(llvm::StringRef layout, llvm::StringRef heads, llvm::StringRef dims, bool backward, Sizes sizes, HintSource source = HintSource::Sizes) {
  static Compilation compilation;
  std::string text = fmt::format("attn.problem @p mask(#attn.causal) layout({}) heads({}) dims({}) dtype(bf16)\nattn.backward @g of(@p)", layout.str(), heads.str(), dims.str());
  auto module = compilation.parse(text, "problem");
  EXPECT(module.ok(), "{}: {}", text, module.error().str());
  std::optional<LaunchHint> hint = hintOf(source, FixedSizes::of(*findComputation(**module, backward ? "g" : "p")), sizes);
  return hint ? hint->str() : "none";
}

/// What a launch's sizes say of lengths.
static void hints() {
  auto dense = [](int64_t batch, int64_t rows, int64_t keys, llvm::StringRef heads = "16", llvm::StringRef dims = "128", bool backward = false) {
    return hintText("bshd", heads, dims, backward, {.batch = batch, .rowsQ = rows, .rowsKv = keys});
  };
  auto same = [](int64_t batch, int64_t rows, int64_t keys) { // deterministic gradients
    return hintText("bshd", "16", "128", true, {.batch = batch, .rowsQ = rows, .rowsKv = keys}, HintSource::Lengths);
  };
  auto packed = [](int64_t batch, int64_t rows, int64_t keys) {
    return hintText("thd", "16", "128", /*backward=*/false, {.batch = batch, .rowsQ = rows, .rowsKv = keys});
  };
  EXPECT(dense(40, 21, 21) == "typical(24, 24)" && dense(1, 21, 21) == "typical(32, 32)" && dense(1, 3, 5) == "typical(16, 16)" && dense(0, 3, 5) == "none");
  EXPECT(dense(1, 1, 100, "16, 2") == "typical(2, 128)" && dense(1, 1, 100, "16, 2", "128", true) == "typical(2, 128)");
  EXPECT(dense(40, 97, 97) == "typical(128, 128)" && dense(40, 129, 97) == "typical(192, 128)" && dense(2, 200, 200) == "typical(256, 256)");
  EXPECT(dense(2, 300, 300) == "typical(512, 512)" && dense(2, 16, 1000) == "typical(1024, 1024)" && dense(2, 1025, 16) == "none" && dense(2, 300, 300, "16", "128", true) == "none");
  // One query or two are walked where there are many.
  EXPECT(dense(40, 1, 64) == "typical(4, 64)" && dense(40, 2, 64) == "typical(4, 64)" && dense(40, 3, 64) == "typical(3, 64)" && dense(40, 1, 8) == "typical(1, 8)");
  EXPECT(dense(4096, 1, 64) == "typical(1, 64)" && dense(4095, 1, 64) == "typical(4, 64)" && dense(40, 1, 64, "16, 8") == "typical(2, 64)");
  EXPECT(dense(4096, 1, 200) == "typical(256, 256)" && dense(4096, 1, 200, "16", "64") == "typical(1, 256)" && dense(40, 1, 200, "16", "64") == "typical(256, 256)");
  EXPECT(dense(40, 1, 200, "16", "128", true) == "typical(1, 256)");
  // Wide heads have nothing but strips.
  EXPECT(dense(40, 1, 64, "16", "512") == "typical(1, 64)" && dense(1, 1, 64, "16", "512") == "none");
  // No bits depend on how many sequences there are.
  EXPECT(same(1, 21, 21) == "typical(24, 24)" && same(4000, 21, 21) == "typical(24, 24)" && same(1, 1, 30) == "typical(4, 32)" && same(5000, 1, 30) == "typical(4, 32)");
  EXPECT(hintText("thd", "16", "128", true, {.batch = 4000, .rowsQ = 8000, .rowsKv = 8000}, HintSource::Lengths) == "none");
  EXPECT(packed(4000, 16000, 16000) == "typical(4, 4)" && packed(31, 124, 124) == "none" && packed(1000, 8500, 8500) == "typical(16, 16)" && packed(1000, 1000, 30000) == "typical(4, 32)");
  EXPECT(packed(4000, 4000, 800000) == "none" && packed(5000, 5000, 80000) == "typical(1, 16)");
}

/// Whether kernels of such a program are built beside the plain one's.
static void worth() {
  Compilation compilation;
  Target target = *Target::parse("sm_90a");
  auto isWorth = [&](const std::string &text, LaunchHint hint, int plainFallback, bool asks) {
    auto compile = [&](int fallback, std::optional<LaunchHint> hint = {}) { return compilation.compile(text, "", target, fallback, "problem", hint); };
    auto plain = compile(plainFallback), hinted = compile(0, hint);
    EXPECT(plain.ok() && hinted.ok(), "{}", text);
    bool asked = false;
    auto worth = isWorthKernels(*hinted, *plain, [&] { return asked = true, compile(0); });
    EXPECT(worth.ok() && asked == asks, "{} {}", text, hint.str());
    return *worth;
  };
  auto forward = [](int dim) { return fmt::format("attn.problem @p mask(#attn.causal) layout(bshd) heads(16) dims({}) dtype(bf16)", dim); };
  EXPECT(isWorth(forward(64), {24, 24}, 0, false) && isWorth(forward(64), {512, 512}, 0, true) && !isWorth(forward(128), {512, 512}, 0, false));
  EXPECT(!isWorth(forward(64), {4096, 4096}, 0, false) && isWorth(forward(128), {16, 32768}, 0, false));
  EXPECT(!isWorth(forward(256), {200, 200}, 1, true)); // the plain program's first tiles, which have not fit
  std::string grads = forward(128) + "\nattn.backward @g of(@p)";
  EXPECT(isWorth(grads, {24, 24}, 0, false) && isWorth(grads, {128, 128}, 0, false) && !isWorth(grads, {512, 512}, 0, false));
}

int main() {
  hints();
  worth();
  fallbacks();
  workspaces();
  gradientMemory();
  layouts();
  unused();
  refusals();
  arguments();
  fmt::print("ok\n");
}
