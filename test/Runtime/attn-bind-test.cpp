// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-bind-test: prints what `bind` says of tensors that it must refuse, then
// `ok`, or says what was expected and exits 1.
//
#include "TestHelpers.h"
#include "attn/API/BuildFitting.h"
#include "attn/Schedules/Signature.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>

using namespace attn;
using rt::TensorView;
using Kind = rt::Program::Argument::Kind;
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

/// The sizes that a program is given, by their names.
static std::vector<int64_t> valuesOf(const rt::ProgramCode &code, const Sizes &sizes, int64_t multiprocessors = 132) {
  std::vector<int64_t> values(code.sizes().size());
  for (size_t i = 0; i < code.given(); ++i) {
    const std::string &name = code.sizes()[i];
    values[i] = name == "batch"                             ? sizes.batch
                : name == "multiprocessors"                 ? multiprocessors
                : name == "rank" || name == "ranks"         ? name == "ranks"
                : name == "seqlen_q" || name == "total_q"   ? sizes.rowsQ
                : name == "seqlen_kv" || name == "total_kv" ? sizes.rowsKv
                                                            : -1;
    EXPECT(values[i] >= 0, "a size that the test knows, got: {}", name);
  }
  code.computeSizes(values.data());
  return values;
}

/// A problem, tensors for it, and a program whose kernel wants everything.
struct Case {
  std::vector<ProblemTensor> specs;
  Sizes sizes;
  std::vector<llvm::SmallVector<int64_t, 4>> shapes, strides;
  rt::Program program;
  std::vector<std::string> names; ///< of the arguments
  std::vector<rt::BoundStep> bound;

  Case(llvm::StringRef layout, Sizes sizes, llvm::StringRef heads = "4, 2", llvm::StringRef dtype = "bf16")
      : sizes(sizes) {
    static Compilation compilation;
    std::string text = fmt::format("attn.problem @p mask(#attn.causal) layout({}) heads({}) dims(96, 64) dtype({})",
                                   layout.str(), heads.str(), dtype.str());
    auto module = compilation.parse(text, "problem");
    EXPECT(module.ok(), "{}: {}", text, module.error().str());
    ProblemOp problem = *findProblem(**module, "");
    specs = tensorsOf(Computation(problem));
    program = signatureOf(Computation(problem));
    program.kernels = {"p"};
    program.steps.push_back(
        {.kernel = 0, .blocks = *rt::Extent::parse("4 * batch * ceil_div(" + rowsOf(0) + ", 128)")});
    for (const ProblemTensor &spec : specs) {
      shapes.push_back(spec.shape(FixedSizes::of(problem), sizes));
      add(spec.name, Kind::Pointer, spec.name);
    }
    strides.resize(shapes.size());
    add("q_row", Kind::Stride, "q", {find("q")->rowAxis});
    add("o_head", Kind::Stride, "o", {find("o")->headAxis});
    add("queue", Kind::Counter, "");
    addMap("v", 176, 64);
    addMap("q", 128, 64);
    add("blocks", Kind::Blocks, "");
    addMap("k", 176, 32);
  }

  const ProblemTensor *find(llvm::StringRef name) const { return &specs[program.tensorNamed(name)]; }
  std::string rowsOf(int tensor) const { return program.tensors[tensor].extents[find("q")->rowAxis].str(); }
  std::vector<rt::Program::Argument> &arguments() { return program.steps[0].arguments; }
  void add(std::string name, Kind kind, llvm::StringRef tensor, std::vector<int> axes = {}) {
    rt::Program::Argument argument;
    argument.kind = kind, argument.axes = std::move(axes);
    if (!tensor.empty())
      argument.tensor = program.tensorNamed(tensor);
    arguments().push_back(argument);
    names.push_back(std::move(name));
  }
  void addMap(llvm::StringRef tensor, int rows, int columns) {
    const ProblemTensor *spec = find(tensor);
    std::vector<int> axes = {spec->rowAxis, spec->headAxis};
    if (spec->batchAxis >= 0)
      axes.push_back(spec->batchAxis);
    add((tensor + "_map").str(), Kind::TensorMap, tensor, axes);
    arguments().back().boxRows = rows, arguments().back().boxCols = columns;
  }

  llvm::SmallVector<int64_t, 4> &stridesOf(llvm::StringRef name) { return strides[program.tensorNamed(name)]; }
  llvm::SmallVector<TensorView, 8> views() const {
    llvm::SmallVector<TensorView, 8> views;
    for (auto [spec, shape, stride] : llvm::zip(program.tensors, shapes, strides))
      views.push_back({llvm::is_contained(shape, 0) ? nullptr : memory + 16, spec.dtype, shape, stride});
    return views;
  }
  rt::ProgramCode code() const {
    auto made = rt::ProgramCode::compile(program);
    EXPECT(made.ok(), "{}", made.error().str());
    return std::move(*made);
  }
  rt::Status bind(rt::Result<rt::TensorMap> (*encode)(const rt::TensorMapSpec &) = keep) {
    return bind(code(), encode);
  }
  rt::Status bind(const rt::ProgramCode &code, rt::Result<rt::TensorMap> (*encode)(const rt::TensorMapSpec &)) {
    llvm::SmallVector<TensorView, 8> tensors = views();
    return code.bind(tensors.data(), nullptr, valuesOf(code, sizes).data(), bound, encode);
  }
  rt::Status check() const {
    rt::ProgramCode made = code();
    std::vector<int64_t> values(made.sizes().size());
    values[2] = 1; // rank 0 of 1
    rt::Status read = made.readSizes(views(), rt::Given::Memory, values.data());
    EXPECT(!read || values == valuesOf(made, sizes, /*multiprocessors=*/0), "sizes that shapes make known");
    return read;
  }
  void mustBind() {
    rt::Status checked = check();
    EXPECT(checked.ok(), "{}", checked.error().str());
    rt::Status status = bind();
    EXPECT(status.ok(), "{}", status.error().str());
  }
  void mustFail(const char *what) {
    rt::Status status = bind();
    EXPECT(!status, "{}", what);
    fmt::print("{}: {}\n", what, status.error().str());
  }

  void *place(llvm::StringRef name) const { return bound[0].pointers[llvm::find(names, name) - names.begin()]; }
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
  EXPECT(mixed.map("q_map").packed && !mixed.map("k_map").packed && !mixed.map("v_map").packed,
         "each as its tensor is");
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
  EXPECT(c.check().ok());
  c.mustFail("negative");
  c.stridesOf("k")[0] = rt::kTensorMapStrideLimit;
  EXPECT(c.check().ok());
  c.mustFail("far");
  rt::Program::Argument last = c.arguments().back(); // a kernel without that map takes them
  c.arguments().pop_back();
  c.mustBind();
  c.stridesOf("k")[0] = -3072;
  c.mustBind();
  c.arguments().push_back(last);
  c.stridesOf("k")[0] = rt::kTensorMapStrideLimit - 8;
  c.mustBind();
  for (int i = 0; i < 20; ++i) // as many maps as a kernel wants
    c.arguments().push_back(last);
  c.mustBind();
  EXPECT(c.bound[0].maps.size() == 23 && c.bound[0].pointers.back() == &c.bound[0].maps.back());

  rt::Status failed =
      c.bind([](const rt::TensorMapSpec &) { return rt::Result<rt::TensorMap>(rt::Error{"no more maps", {}, {}}); });
  EXPECT(!failed);
  fmt::print("encoder: {}\n", failed.error().str());

  Case many("bshd", {1 << 20, 128 * 512, 50});
  many.mustFail("blocks");

  auto refuse = [](const char *what, auto change) {
    Case changed("bshd", {3, 200, 50});
    changed.program.buffers.push_back({"sums", rt::Dtype::F32, {rt::Extent::symbol("batch")}, 0});
    change(changed.program);
    auto made = rt::ProgramCode::compile(changed.program);
    EXPECT(!made.ok(), "{}", what);
    fmt::print("{}: {}\n", what, made.error().str());
  };
  refuse("no tensor", [](rt::Program &p) { p.steps[0].arguments[0].tensor = 6; });
  refuse("no axis", [](rt::Program &p) { p.steps[0].arguments.back().axes = {1, 2, 4}; });
  refuse("one axis", [](rt::Program &p) { p.steps[0].arguments.back().axes = {1}; });
  refuse("no kernel", [](rt::Program &p) { p.steps[0].kernel = 1; });
  refuse("no size", [](rt::Program &p) { p.buffers[0].extents = {rt::Extent::symbol("tokens")}; });
  refuse("twice", [](rt::Program &p) { p.sizes = {{"half", 1}, {"half", 2}}; });
}

/// Tensors of a step without blocks are zeroed where they lie, and nothing beside them.
static void zeros() {
  Case c("bshd", {2, 0, 3});
  c.program.steps[0].zeroed = {1, 2}; // k and v
  c.stridesOf("k") = {3000, 800, 200, 1};
  c.mustBind();
  EXPECT(c.bound[0].blocks == 0);
  auto at = [](size_t i) { return static_cast<void *>(memory + 16 + 2 * i); };
  std::vector<std::pair<void *, size_t>> expected;
  for (size_t batch : {0, 3000})
    for (size_t row : {0, 800, 1600})
      for (size_t head : {0, 200})
        expected.emplace_back(at(batch + row + head), 192);
  expected.emplace_back(at(0), 2 * 3 * 2 * 64 * 2); // contiguous
  EXPECT(c.bound[0].zeroed == expected, "{}", c.bound[0].zeroed.size());
  Case busy("bshd", {2, 1, 3});
  busy.program.steps[0].zeroed = {1, 2};
  busy.mustBind();
  EXPECT(busy.bound[0].zeroed.empty());
}

/// What isn't a map: pointers in order, strides, the number of blocks, the
/// queue's place. All lie in the binding.
static void arguments() {
  Case c("bshd", {3, 200, 50});
  c.mustBind();
  EXPECT(c.bound[0].blocks == 4 * 3 * 2 && *static_cast<int32_t *>(c.place("blocks")) == 24);
  EXPECT(*static_cast<int64_t *>(c.place("q_row")) == 4 * 96 && *static_cast<int64_t *>(c.place("o_head")) == 64);
  EXPECT(*static_cast<void **>(c.place("lse")) == memory + 16);
  EXPECT(*static_cast<uint64_t *>(c.place("queue")) == 0);
  for (auto [argument, pointer] : llvm::zip(c.arguments(), c.bound[0].pointers))
    EXPECT(argument.kind != Kind::TensorMap || reinterpret_cast<uintptr_t>(pointer) % 64 == 0);
  rt::ProgramCode code = c.code();
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i)
      EXPECT(c.bind(code, keep).ok());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 1000);
  }
  fmt::print(stderr, "bind: {:.0f} ns\n", best * 1e9);
  EXPECT(best < 2e-6, "{:.0f} ns", best * 1e9);

  if (!rt::Driver::get()) { // the encoder that launches use
    rt::Status status = c.bind(rt::encodeTensorMap);
    EXPECT(!status && status.error().message == "tensor map of `v`: " + rt::Driver::get().error().message);
  }
}

static rt::ProgramCode compiled(const std::string &text, llvm::StringRef name, llvm::StringRef target) {
  static Compilation compilation;
  auto program = compilation.compile(text, name, *Target::parse(target));
  EXPECT(program.ok(), "{}", program.error().str());
  auto code = rt::ProgramCode::compile(program->plan);
  EXPECT(code.ok(), "{}", code.error().str());
  auto again = rt::Program::fromJson(code->program().toJson());
  EXPECT(again.ok() && again->toJson() == code->program().toJson(), "{}",
         again.ok() ? "the same" : again.error().str());
  return std::move(*code);
}

static int64_t bytesOf(const rt::ProgramCode &code, size_t buffer, const int64_t *values) {
  const rt::Program &program = code.program();
  std::vector<int64_t> shape = code.shapeOf(program.tensors.size() + buffer, values);
  return std::accumulate(shape.begin(), shape.end(), rt::sizeOf(program.buffers[buffer].dtype), std::multiplies<>());
}

/// Buffers lie side by side, but for those whose lives do not meet: what a tree is numbered in is needed by one launch
/// alone.
static void workspaces() {
  for (const char *visits : {"", " kv_list_capacity(40000)"}) {
    rt::ProgramCode code =
        compiled(fmt::format("attn.problem @p mask(#attn.or<#attn.ancestors<\"a\">, #attn.ancestors<\"b\">>) "
                             "layout(bshd) heads(1) dims(64) dtype(bf16){}",
                             visits),
                 "", "sm_80");
    std::vector<int64_t> values = valuesOf(code, {2, 40000, 40000});
    std::map<int, int64_t> places;
    int64_t numberings = 0;
    for (auto [i, buffer] : llvm::enumerate(code.program().buffers)) {
      int64_t bytes = bytesOf(code, i, values.data());
      places[buffer.place] = std::max(places[buffer.place], bytes);
      if (llvm::StringRef(buffer.name).ends_with("_numbering")) {
        EXPECT(bytes == 5 * 2 * 40000 * 4);
        ++numberings;
      }
    }
    EXPECT(numberings == 2 && places.size() < code.program().buffers.size());
    int64_t sum = 0;
    for (auto [place, bytes] : places)
      sum = llvm::alignTo(sum, 16) + bytes;
    EXPECT(int64_t(code.workspaceBytes(values.data())) == sum);
  }
}

/// Sums of dQ have q's rows and no others, whatever sequences there are; their counters, and statistics, are few bytes
/// a row and a sequence.
static void gradientMemory() {
  for (const char *layout : {"thd", "thd padded", "bshd"}) {
    rt::ProgramCode code = compiled(
        fmt::format(
            "attn.problem @p mask(#attn.causal) layout({}) heads(16) dims(128) dtype(bf16)\nattn.backward @g of(@p)",
            layout),
        "g", "sm_90a");
    for (int64_t batch : {1, 128, 30720}) {
      bool dense = llvm::StringRef(layout) == "bshd";
      int64_t tokens = std::max<int64_t>(32768, batch), rows = dense ? tokens / batch : tokens,
              all = dense ? rows * batch : tokens;
      std::vector<int64_t> values = valuesOf(code, {batch, rows, rows});
      int found = 0;
      for (auto [i, buffer] : llvm::enumerate(code.program().buffers)) {
        int64_t elements = bytesOf(code, i, values.data()) / 4;
        bool isSum = buffer.name == "dq_accumulator", isCounters = buffer.name == "dq_semaphore";
        found += isSum + isCounters;
        EXPECT(!isSum || elements == 16 * all * 128, "{}: {}", layout, elements);
        EXPECT(!isCounters || (elements >= 16 * all / 64 + 16 * batch && elements <= 16 * (all / 64 + 1 + batch)),
               "{}: {}", layout, elements);
      }
      EXPECT(found == 2, "{}: {}", layout, found);
    }
  }
}

/// A program of a main kernel and another: the bytes that a compiler says it spills of each, or -1 if products are
/// serialized, and the other one's text.
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

/// The first program that fits; a kernel that all have is no reason for another; if none fits, that which exceeds
/// registers least.
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

using Source = rt::SpecializationRule::Source;

static std::string lengthsText(rt::SpecializationRule rule, Sizes sizes) {
  std::optional<rt::ExpectedLengths> expected = rule.expectedFor(sizes.batch, sizes.rowsQ, sizes.rowsKv);
  return expected ? expected->str() : "none";
}

/// What a launch's sizes say of lengths.
static void hints() {
  auto dense = [](int64_t batch, int64_t rows, int64_t keys, int64_t kvHeads = 16, int64_t dim = 128,
                  bool backward = false) {
    return lengthsText({Source::Sizes, 16, kvHeads, dim, dim, false, false, backward},
                       {.batch = batch, .rowsQ = rows, .rowsKv = keys});
  };
  auto same = [](int64_t batch, int64_t rows, int64_t keys) { // deterministic gradients
    return lengthsText({Source::Lengths, 16, 16, 128, 128, false, false, true},
                       {.batch = batch, .rowsQ = rows, .rowsKv = keys});
  };
  auto packed = [](int64_t batch, int64_t rows, int64_t keys) {
    return lengthsText({Source::Sizes, 16, 16, 128, 128, true, true, false},
                       {.batch = batch, .rowsQ = rows, .rowsKv = keys});
  };
  EXPECT(dense(40, 21, 21) == "expected_seqlen(24, 24)" && dense(1, 21, 21) == "expected_seqlen(32, 32)" &&
         dense(1, 3, 5) == "expected_seqlen(16, 16)" && dense(0, 3, 5) == "none");
  EXPECT(dense(1, 1, 100, 2) == "expected_seqlen(2, 128)" &&
         dense(1, 1, 100, 2, 128, true) == "expected_seqlen(2, 128)");
  EXPECT(dense(40, 97, 97) == "expected_seqlen(128, 128)" && dense(40, 129, 97) == "expected_seqlen(192, 128)" &&
         dense(2, 200, 200) == "expected_seqlen(256, 256)");
  EXPECT(dense(2, 300, 300) == "expected_seqlen(512, 512)" && dense(2, 16, 1000) == "expected_seqlen(1024, 1024)" &&
         dense(2, 1025, 16) == "none" && dense(2, 300, 300, 16, 128, true) == "none");
  // One query or two are walked where there are many.
  EXPECT(dense(40, 1, 64) == "expected_seqlen(4, 64)" && dense(40, 2, 64) == "expected_seqlen(4, 64)" &&
         dense(40, 3, 64) == "expected_seqlen(3, 64)" && dense(40, 1, 8) == "expected_seqlen(1, 8)");
  EXPECT(dense(4096, 1, 64) == "expected_seqlen(1, 64)" && dense(4095, 1, 64) == "expected_seqlen(4, 64)" &&
         dense(40, 1, 64, 8) == "expected_seqlen(2, 64)");
  EXPECT(dense(4096, 1, 200) == "expected_seqlen(256, 256)" &&
         dense(4096, 1, 200, 16, 64) == "expected_seqlen(1, 256)" &&
         dense(40, 1, 200, 16, 64) == "expected_seqlen(256, 256)");
  EXPECT(dense(40, 1, 200, 16, 128, true) == "expected_seqlen(1, 256)");
  // Wide heads have nothing but strips.
  EXPECT(dense(40, 1, 64, 16, 512) == "expected_seqlen(1, 64)" && dense(1, 1, 64, 16, 512) == "none");
  // No bits depend on how many sequences there are.
  EXPECT(same(1, 21, 21) == "expected_seqlen(24, 24)" && same(4000, 21, 21) == "expected_seqlen(24, 24)" &&
         same(1, 1, 30) == "expected_seqlen(4, 32)" && same(5000, 1, 30) == "expected_seqlen(4, 32)");
  EXPECT(lengthsText({Source::Lengths, 16, 16, 128, 128, true, true, true},
                     {.batch = 4000, .rowsQ = 8000, .rowsKv = 8000}) == "none");
  EXPECT(packed(4000, 16000, 16000) == "expected_seqlen(4, 4)" && packed(31, 124, 124) == "none" &&
         packed(1000, 8500, 8500) == "expected_seqlen(16, 16)" &&
         packed(1000, 1000, 30000) == "expected_seqlen(4, 32)");
  EXPECT(packed(4000, 4000, 800000) == "none" && packed(5000, 5000, 80000) == "expected_seqlen(1, 16)");
}

/// Whether kernels of such a program are built beside the plain one's.
static void worth() {
  Compilation compilation;
  Target target = *Target::parse("sm_90a");
  auto isWorth = [&](const std::string &text, rt::ExpectedLengths hint, int plainFallback) {
    auto compile = [&](int fallback, std::optional<rt::ExpectedLengths> hint = {}) {
      return compilation.compile(text, "", target, fallback, "problem", hint);
    };
    auto first = compile(0), plain = compile(plainFallback), hinted = compile(0, hint);
    EXPECT(first.ok() && plain.ok() && hinted.ok(), "{}", text);
    return isWorthKernels(*hinted, *plain, *first);
  };
  auto forward = [](int dim) {
    return fmt::format("attn.problem @p mask(#attn.causal) layout(bshd) heads(16) dims({}) dtype(bf16)", dim);
  };
  EXPECT(isWorth(forward(64), {24, 24}, 0) && isWorth(forward(64), {512, 512}, 0) &&
         !isWorth(forward(128), {512, 512}, 0));
  EXPECT(!isWorth(forward(64), {4096, 4096}, 0) && isWorth(forward(128), {16, 32768}, 0));
  EXPECT(!isWorth(forward(256), {200, 200}, 1)); // the plain program's first tiles, which have not fit
  std::string grads = forward(128) + "\nattn.backward @g of(@p)";
  EXPECT(isWorth(grads, {24, 24}, 0) && isWorth(grads, {128, 128}, 0) && !isWorth(grads, {512, 512}, 0));
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
  zeros();
  arguments();
  fmt::print("ok\n");
}
