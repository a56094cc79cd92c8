// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs as plain data: extents, and what is not a program.
//
#include "TestHelpers.h"
#include "attn-rt/Program.h"

#include <limits>

using namespace attn::rt;

void attn::rt::refuseProgram(std::string json, const std::string &from, const std::string &to) {
  size_t at = json.find(from);
  EXPECT(at != std::string::npos, "{}", from);
  auto parsed = Program::fromJson(json.replace(at, from.size(), to));
  EXPECT(!parsed, "{}", to);
  fmt::print("{}\n", parsed.error().str());
}

static int64_t valueOf(const std::string &text, const std::vector<std::string> &names = {},
                       const std::vector<int64_t> &values = {}) {
  auto extent = Extent::parse(text);
  EXPECT(extent.ok(), "{}", extent.error().str());
  auto code = ExtentCode::compile(*extent, names);
  EXPECT(code.ok(), "{}", code.error().str());
  auto again = Extent::parse(extent->str());
  EXPECT(again.ok() && again->str() == extent->str(), "{}", extent->str());
  return code->evaluate(values.data());
}

/// Values, texts, and what is none.
static void extents() {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  const std::vector<std::string> names = {"a", "b", "c"};
  auto value = [&](const char *text, int64_t a, int64_t b = 0, int64_t c = 0) {
    return valueOf(text, names, {a, b, c});
  };
  EXPECT(value("a", 7) == 7 && value("a + b * c", 1, 2, 3) == 7 && value("(a + b) * c", 1, 2, 3) == 9 &&
         value("a - b - c", 10, 2, 3) == 5);
  EXPECT(value("a - (b - c)", 10, 2, 3) == 11 && value("16 * ceil_div(a, 128)", 129) == 32 &&
         value("floor_div(a, 3)", 8) == 2);
  EXPECT(value("floor_div(a - b, 3)", 1, 3) == -1 && value("ceil_div(a - b, 3)", 1, 3) == 0 &&
         value("round_up(a, 64)", 65) == 128 && value("round_up(a, 64)", 0) == 0);
  EXPECT(value("min(a, b)", 3, 4) == 3 && value("max(a, max(b, c))", 3, 4, 9) == 9 &&
         value("splits(a, b, c)", 16, 32768, 132) == 8);
  EXPECT(value("a * b", most, 2) == most && value("a + b", most, 1) == most && value("0 - a - b", most, most) == least,
         "no wrapping around");
  EXPECT(value("ceil_div(a, b)", 5, 0) == most && value("floor_div(a, b)", 5, 0) == most, "no traps");
  auto text = [](const char *given) { return Extent::parse(given)->str(); };
  EXPECT(text("2*3 + 4") == "10" && text("a*1+0") == "a" && text("0 * a") == "0" && text("1 * a") == "a" &&
         text("ceil_div(a, 1)") == "a");
  EXPECT(text("(a + b) - (b + c)") == "a + b - (b + c)" && text("a * (b * c)") == "a * (b * c)" &&
         text("(a * b) * c") == "a * b * c");
  EXPECT(value("mod(a, b)", 7, 4) == 3 && value("mod(a - b, c)", 1, 2, 4) == 3 && value("mod(a, b)", 5, 0) == most &&
         value("a - -3", 1) == 4 && value("a + -9223372036854775807", 7) == 7 - most);
  EXPECT(text("mod(7, 4)") == "3" && text("0-1") == "-1" && text("-1") == "-1" && text("a[ b+1 ]*2") == "a[b + 1] * 2");
  const int64_t numbers[] = {10, 20, 30};
  const Table tables[] = {{}, {numbers, 3}};
  auto lookup = [&](const char *given, int64_t a) {
    auto code = ExtentCode::compile(*Extent::parse(given), names, {"none", "t"});
    EXPECT(code.ok(), "{}", code.error().str());
    EXPECT(code->evaluate(&a) == (given == std::string_view("a + t[t[a]]") ? a : 0), "no tables");
    return code->evaluate(&a, tables);
  };
  EXPECT(lookup("t[a]", 2) == 30 && lookup("t[a]", 3) == 0 && lookup("t[a - 1]", 0) == 0 && lookup("none[a]", 0) == 0 &&
         lookup("a + t[t[a]]", 5) == 15);
  std::vector<std::string> looked;
  Extent::parse("t[a] + u[t[b]]")->collectTables(looked);
  EXPECT(looked == (std::vector<std::string>{"t", "u"}));
  EXPECT(text("max(1,2)") == "2" && text(" min( a ,3 ) ") == "min(a, 3)");
  std::vector<std::string> found;
  Extent::parse("b + min(a, b) * c_2")->collectSymbols(found);
  EXPECT(found == (std::vector<std::string>{"b", "a", "c_2"}));
  std::string deep(100, '('), wide = "a";
  for (int i = 0; i < 200; ++i)
    wide += " + a";
  for (const std::string &bad :
       {std::string(), std::string("a +"), std::string("a b"), std::string("9223372036854775808"),
        std::string("sqrt(a)"), std::string("min(a)"), std::string("min(a, b, c)"), std::string("(a"),
        std::string("a / 2"), std::string("t[a"), std::string("t[]"), std::string("ceil_div(a, 3 - 3)"), deep + "a",
        wide}) {
    auto parsed = Extent::parse(bad);
    EXPECT(!parsed, "{}", bad);
    fmt::print("{}\n", parsed.error().str());
  }
  Extent built = Extent::symbol("a");
  for (int i = 0; i < 200; ++i)
    built = built + Extent::symbol("a");
  for (const Extent &bad : {*Extent::parse("a + x"), *Extent::parse("a + x[b]"), built}) {
    auto code = ExtentCode::compile(bad, names);
    EXPECT(!code);
    fmt::print("{}\n", code.error().str().substr(0, 100));
  }
}

/// A program of two kernels over a buffer.
static Program someProgram() {
  using Kind = Program::Argument::Kind;
  Program program;
  program.name = "p";
  auto extents = [](std::initializer_list<const char *> texts) {
    std::vector<Extent> list;
    for (const char *text : texts)
      list.push_back(*Extent::parse(text));
    return list;
  };
  program.tensors = {
      {"q",
       Program::Tensor::Role::Operand,
       Dtype::BF16,
       Program::Tensor::Lead::None,
       extents({"batch", "seqlen_q", "4", "64"}),
       {0, 1, 2}},
      {"o",
       Program::Tensor::Role::Result,
       Dtype::BF16,
       Program::Tensor::Lead::None,
       extents({"batch", "seqlen_q", "4", "64"}),
       {0, 1, 2}},
      {"ids", Program::Tensor::Role::Array, Dtype::I32, Program::Tensor::Lead::All, extents({"tokens"}), {}}};
  program.sizes = {{"tiles", *Extent::parse("ceil_div(seqlen_q, 64)")}};
  program.buffers = {{"first", Dtype::F32, extents({"batch", "tiles"}), 0},
                     {"second", Dtype::I32, extents({"3"}), 1},
                     {"third", Dtype::F32, extents({"tokens"}), 0}};
  program.kernels = {"make", "use"};
  Program::Step make{.kernel = 0, .blocks = *Extent::parse("4 * batch * tiles"), .reusable = true},
      use{.kernel = 1, .blocks = *Extent::parse("tiles")};
  make.arguments = {{.kind = Kind::TensorMap, .tensor = 0, .axes = {1, 2, 0}, .boxRows = 64, .boxCols = 64},
                    {.kind = Kind::Pointer, .tensor = 3},
                    {.kind = Kind::Blocks}};
  use.arguments = {{.kind = Kind::Stride, .tensor = 3, .axes = {0}},
                   {.kind = Kind::Size, .extent = *Extent::parse("tokens + 1")},
                   {.kind = Kind::Pointer, .tensor = 5},
                   {.kind = Kind::Counter}};
  use.zeroed = {1};
  program.steps = {make, use};
  return program;
}

static Result<TensorMap> noMap(const TensorMapSpec &) { return TensorMap{}; }

static void program() {
  Program p = someProgram();
  auto again = Program::fromJson(p.toJson());
  EXPECT(again.ok(), "{}", again.error().str());
  EXPECT(again->toJson() == p.toJson());
  auto code = ProgramCode::compile(*again);
  EXPECT(code.ok(), "{}", code.error().str());
  EXPECT(code->sizes() == (std::vector<std::string>{"multiprocessors", "rank", "ranks", "batch", "seqlen_q", "id_rows",
                                                    "tokens", "tiles"}) &&
         code->given() == 7);
  std::vector<int64_t> values = {132, 0, 1, 3, 130, 2, 50, 0};
  code->computeSizes(values.data());
  EXPECT(values[7] == 3 && code->valueOf("tiles", values.data()) == 3 && code->valueOf("none", values.data()) == -1);
  EXPECT(code->shapeOf(3, values.data()) == (std::vector<int64_t>{3, 3}));
  // `third` lies over `first`, which is shorter; `second` behind both, aligned.
  EXPECT(code->workspaceBytes(values.data()) == 208 + 12);
  int64_t q[] = {3, 130, 4, 64}, ids[] = {2, 50};
  TensorView tensors[] = {{reinterpret_cast<void *>(64), Dtype::BF16, q, {}},
                          {reinterpret_cast<void *>(128), Dtype::BF16, q, {}},
                          {reinterpret_cast<void *>(256), Dtype::I32, ids, {}}};
  std::vector<BoundStep> steps;
  EXPECT(code->bind(tensors, reinterpret_cast<void *>(4096), values.data(), steps, noMap).ok());
  EXPECT(steps.size() == 2 && steps[0].blocks == 36 && steps[0].values[1] == 4096 && steps[0].values[2] == 36 &&
         steps[0].maps.size() == 1);
  EXPECT(steps[1].values[0] == 3 && steps[1].values[1] == 51 && steps[1].values[2] == 4096 && steps[1].zeroed.empty());
  for (void *memory : {static_cast<void *>(nullptr), reinterpret_cast<void *>(4104)}) {
    Status status = code->bind(tensors, memory, values.data(), steps, noMap);
    EXPECT(!status);
    fmt::print("{}\n", status.error().str());
  }
  // The caller may give more, in another order.
  Program moved = p;
  std::vector<Program::Tensor> given = {
      {"more", Program::Tensor::Role::Array, Dtype::I32, Program::Tensor::Lead::None, {1}, {}},
      p.tensors[1],
      p.tensors[0],
      p.tensors[2]};
  auto ofTensors = [](std::vector<Program::Tensor> tensors) {
    Program signature;
    signature.tensors = std::move(tensors);
    return signature;
  };
  moved.setSignature(ofTensors(given));
  EXPECT(moved.steps[0].arguments[0].tensor == 2 && moved.steps[0].arguments[1].tensor == 4 &&
         moved.steps[1].zeroed[0] == 1 && moved.steps[1].arguments[2].tensor == 6);
  given.pop_back(), given.pop_back(); // q is the kernel's
  Program less = p;
  less.setSignature(ofTensors(given));
  EXPECT(!ProgramCode::compile(less));

  std::string json = p.toJson();
  auto refused = [&](const std::string &from, const std::string &to) { refuseProgram(json, from, to); };
  refused("\"version\": 3", "\"version\": 2");
  refused("\"version\": 3", "\"version\": -1");
  refused("\"operand\"", "\"operands\"");
  refused("\"bf16\"", "\"f64\"");
  refused("\"seqlen_q\"", "-4");
  refused("\"seqlen_q\"", "\"0 -\"");
  refused("\"seqlen_q\"", "\"3 - 4\"");
  refused("\"tokens + 1\"", "\"other + 1\"");
  refused("\"place\": 1", "\"place\": -1");
  refused("\"kernel\": 1", "\"kernel\": 2");
  refused("\"kernel\": 1", "\"kernel\": 18446744073709551615");
  refused("\"tensor\": 5", "\"tensor\": 6");
  refused("\"tensor\": 0", "\"tensor\": 3"); // a map of f32
  refused("\"access\": \"write\"", "\"access\": \"reads\"");
  refused("\"reusable\": true,", "");
  refused("\"tensor_map\"", "\"map\"");
  size_t at = json.find("\"box\": [");
  EXPECT(at != std::string::npos);
  refused(json.substr(at, json.find(']', at) + 1 - at), "\"box\": [300, 64, 1]");
  for (size_t length = 0; length + 2 < json.size(); length += 97)
    EXPECT(!Program::fromJson(std::string_view(json).substr(0, length)), "truncated");
}

int attn::rt::programTest(const std::string &test) {
  const std::pair<const char *, void (*)()> tests[] = {{"extents", extents}, {"program", program}};
  for (auto [name, run] : tests)
    if (test == name)
      return run(), 0;
  return -1;
}
