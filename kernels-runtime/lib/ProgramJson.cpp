// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs as JSON. What is read is not trusted: every number is held against its range, and sizes, tensors and kernels
// against those that there are.
//
#include "attn-rt/Program.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <limits>

using namespace attn::rt;
using Json = nlohmann::ordered_json;
using Kind = Program::Argument::Kind;
using Access = Program::Argument::Access;
using StepKind = Program::Step::Kind;

namespace {
template <typename Enum> struct Word {
  Enum value;
  std::string_view text;
};
constexpr Word<Dtype> dtypes[] = {{Dtype::BF16, "bf16"}, {Dtype::F16, "f16"}, {Dtype::F32, "f32"}, {Dtype::I32, "i32"}};
using Role = Program::Tensor::Role;
constexpr Word<Role> roles[] = {{Role::Operand, "operand"}, {Role::Result, "result"}, {Role::Array, "array"}};
using Lead = Program::Tensor::Lead;
constexpr Word<Lead> leads[] = {{Lead::None, "none"}, {Lead::All, "all"}, {Lead::Last, "last"}};
constexpr Word<Kind> kinds[] = {{Kind::Pointer, "pointer"}, {Kind::TensorMap, "tensor_map"},
                                {Kind::Stride, "stride"},   {Kind::Size, "size"},
                                {Kind::Blocks, "blocks"},   {Kind::Counter, "counter"}};
constexpr Word<Access> accesses[] = {{Access::None, "none"}, {Access::Read, "read"}, {Access::Write, "write"}};
constexpr Word<StepKind> stepKinds[] = {{StepKind::Launch, "launch"},     {StepKind::Clear, "clear"},
                                        {StepKind::Exchange, "exchange"}, {StepKind::Wait, "wait"},
                                        {StepKind::Repeat, "repeat"},     {StepKind::When, "when"}};

using Check = Program::ArrayCheck;
constexpr Word<Check::Kind> checkKinds[] = {{Check::Kind::Offsets, "offsets"},
                                            {Check::Kind::Tiles, "tiles"},
                                            {Check::Kind::Blocks, "blocks"},
                                            {Check::Kind::Parents, "parents"},
                                            {Check::Kind::Pieces, "pieces"}};

using Source = SpecializationRule::Source;
constexpr Word<Source> sources[] = {
    {Source::Nothing, "nothing"}, {Source::Lengths, "lengths"}, {Source::Sizes, "sizes"}};

template <typename Enum, size_t n> std::string_view textOf(const Word<Enum> (&words)[n], Enum value) {
  for (const Word<Enum> &word : words)
    if (word.value == value)
      return word.text;
  return "?";
}

Json textsOf(const std::vector<Extent> &extents) {
  Json list = Json::array();
  for (const Extent &extent : extents)
    list.push_back(extent.str());
  return list;
}

/// Reads fields, and remembers the first that is not what it has to be.
class Reader {
public:
  std::string bad;

  void fail(std::string_view field, std::string_view expected) {
    if (bad.empty())
      bad = fmt::format("expected {} as program field `{}`", expected, field);
  }
  const Json *field(const Json &object, const char *name) {
    auto found = object.is_object() ? object.find(name) : object.end();
    if (object.is_object() && found != object.end())
      return &*found;
    fail(name, "a value");
    return nullptr;
  }
  void read(const Json &object, const char *name, std::string &to) {
    if (const Json *json = field(object, name))
      json->is_string() ? to = json->get<std::string>(), void() : fail(name, "a string");
  }
  void read(const Json &object, const char *name, bool &to) {
    if (const Json *json = field(object, name))
      json->is_boolean() ? to = json->get<bool>(), void() : fail(name, "true or false");
  }
  template <typename Number> void read(const Json &object, const char *name, Number &to, int64_t least, int64_t most) {
    if (const Json *json = field(object, name))
      number(*json, name, to, least, most);
  }
  void read(const Json &object, const char *name, Extent &to) {
    if (const Json *json = field(object, name))
      extent(*json, name, to);
  }
  void readOptional(const Json &object, const char *name, std::optional<Extent> &to) {
    if (object.is_object() && object.contains(name))
      read(object, name, to.emplace());
  }
  template <typename Enum, size_t n>
  void read(const Json &object, const char *name, const Word<Enum> (&words)[n], Enum &to) {
    std::string text;
    read(object, name, text);
    for (const Word<Enum> &word : words)
      if (word.text == text) {
        to = word.value;
        return;
      }
    fail(name, "one of its words");
  }
  template <typename Visit> void each(const Json &object, const char *name, const Visit &visit) {
    const Json *json = field(object, name);
    if (json && !json->is_array())
      fail(name, "a list");
    else if (json)
      for (const Json &item : *json)
        visit(item);
  }
  void numbers(const Json &object, const char *name, std::vector<int> &to, int64_t most, int64_t least = 0) {
    each(object, name, [&](const Json &item) { number(item, name, to.emplace_back(), least, most); });
  }
  void extents(const Json &object, const char *name, std::vector<Extent> &to) {
    each(object, name, [&](const Json &item) { extent(item, name, to.emplace_back()); });
  }
  void names(const Json &object, const char *name, std::vector<std::string> &to) {
    each(object, name, [&](const Json &item) {
      item.is_string() ? to.push_back(item.get<std::string>()), void() : fail(name, "strings");
    });
  }

private:
  template <typename Number> void number(const Json &json, const char *name, Number &to, int64_t least, int64_t most) {
    bool fits = json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= uint64_t(INT64_MAX));
    int64_t value = fits ? json.get<int64_t>() : 0;
    if (!fits || value < least || value > most)
      return fail(name, fmt::format("a number from {} to {}", least, most));
    to = static_cast<Number>(value);
  }
  void extent(const Json &json, const char *name, Extent &to) {
    auto parsed =
        json.is_string() ? Extent::parse(json.get<std::string>()) : Result<Extent>(Error{"expected a string", {}, {}});
    parsed ? to = std::move(*parsed), void() : fail(name, fmt::format("an extent ({})", parsed.error().message));
  }
};
} // namespace

static Json jsonOf(const Program::Argument &argument) {
  Json json = {{"kind", textOf(kinds, argument.kind)}};
  if (argument.tensor >= 0)
    json["tensor"] = argument.tensor;
  if (argument.kind == Kind::Pointer)
    json["access"] = textOf(accesses, argument.access);
  if (argument.kind == Kind::Stride || argument.kind == Kind::TensorMap)
    json["axes"] = argument.axes;
  if (argument.kind == Kind::Size)
    json["size"] = argument.extent.str();
  if (argument.kind == Kind::TensorMap) {
    json["box"] = {argument.boxRows, argument.boxCols, argument.boxHeads};
    if (argument.rowStep != 1)
      json["box"].push_back(argument.rowStep);
  }
  return json;
}

static Json jsonOf(const std::vector<Program::Step> &steps) {
  Json list = Json::array();
  for (const Program::Step &step : steps) {
    Json &json = list.emplace_back();
    json = {{"kind", textOf(stepKinds, step.kind)}};
    switch (step.kind) {
    case StepKind::Launch: {
      json["kernel"] = step.kernel;
      json["blocks"] = step.blocks.str();
      json["most_blocks"] = step.mostBlocks;
      json["reusable"] = step.reusable;
      json["zeroed"] = step.zeroed;
      Json &arguments = json["arguments"] = Json::array();
      for (const Program::Argument &argument : step.arguments)
        arguments.push_back(jsonOf(argument));
      break;
    }
    case StepKind::Clear:
      json["zeroed"] = step.zeroed;
      break;
    case StepKind::Exchange:
      json["destination"] = step.destination;
      json["source"] = step.source;
      json["offset"] = step.offset.str();
      json["part"] = step.part.str();
      json["parts"] = step.parts.str();
      if (step.sent)
        json["sent"] = step.sent->str();
      if (step.received)
        json["received"] = step.received->str();
      break;
    case StepKind::Wait:
      json["destination"] = step.destination;
      break;
    case StepKind::Repeat: {
      json["variable"] = step.variable;
      json["count"] = step.count.str();
      Json &carried = json["carried"] = Json::array();
      for (const Program::Carried &value : step.carried)
        carried.push_back({{"value", value.value}, {"initial", value.initial}, {"next", value.next}});
      json["steps"] = jsonOf(step.steps);
      break;
    }
    case StepKind::When:
      json["count"] = step.count.str();
      json["steps"] = jsonOf(step.steps);
      break;
    }
  }
  return list;
}

std::string Program::toJson() const {
  Json json = {{"version", kVersion}, {"name", name}};
  Json &given = json["tensors"] = Json::array();
  for (const Tensor &tensor : tensors) {
    Json item = {{"name", tensor.name},
                 {"role", textOf(roles, tensor.role)},
                 {"dtype", textOf(dtypes, tensor.dtype)},
                 {"leading_dims", textOf(leads, tensor.lead)},
                 {"shape", textsOf(tensor.extents)},
                 {"strided", tensor.strided}};
    given.push_back(std::move(item));
  }
  json["max_extent"] = maxExtent;
  json["specialization"] = {{"source", textOf(sources, specialization.source)},
                            {"heads", specialization.heads},
                            {"kv_heads", specialization.kvHeads},
                            {"dim_qk", specialization.dimQk},
                            {"dim_v", specialization.dimV},
                            {"packed_q", specialization.packedQ},
                            {"packed_kv", specialization.packedKv},
                            {"backward", specialization.backward}};
  Json &held = json["checks"] = Json::array();
  for (const ArrayCheck &check : checks)
    held.push_back({{"kind", textOf(checkKinds, check.kind)},
                    {"arrays", check.arrays},
                    {"rows", check.rows.str()},
                    {"line", check.line.str()},
                    {"tile", check.tile},
                    {"written", check.isWritten}});
  Json &lists = json["tables"] = Json::array();
  for (const TableSpec &table : tables)
    lists.push_back({{"name", table.name}, {"length", table.length.str()}});
  Json &follow = json["sizes"] = Json::array();
  for (const Size &size : sizes)
    follow.push_back({{"name", size.name}, {"value", size.value.str()}});
  Json &memory = json["buffers"] = Json::array();
  for (const Buffer &buffer : buffers)
    memory.push_back({{"name", buffer.name},
                      {"dtype", textOf(dtypes, buffer.dtype)},
                      {"shape", textsOf(buffer.extents)},
                      {"place", buffer.place}});
  json["kernels"] = kernels;
  json["steps"] = jsonOf(steps);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {
/// Reads steps. Numbers of values are held against those before them, and by `ProgramCode` against their scopes.
class StepReader {
public:
  StepReader(Reader &reader, const Program &program)
      : reader(reader), program(program),
        values(static_cast<int64_t>(program.tensors.size() + program.buffers.size())) {}

  void steps(const Json &object, std::vector<Program::Step> &to) {
    constexpr int deepest = 16;
    if (depth == deepest)
      return reader.fail("steps", "at most 16 levels of steps");
    ++depth;
    reader.each(object, "steps", [&](const Json &item) { step(item, to.emplace_back()); });
    --depth;
  }

private:
  void value(const Json &item, const char *name, int &to) { reader.read(item, name, to, 0, values - 1); }

  void step(const Json &item, Program::Step &to) {
    reader.read(item, "kind", stepKinds, to.kind);
    switch (to.kind) {
    case StepKind::Launch:
      reader.read(item, "kernel", to.kernel, 0, static_cast<int64_t>(program.kernels.size()) - 1);
      reader.read(item, "blocks", to.blocks);
      reader.read(item, "most_blocks", to.mostBlocks, 1, INT32_MAX);
      reader.read(item, "reusable", to.reusable);
      reader.numbers(item, "zeroed", to.zeroed, values - 1);
      return reader.each(item, "arguments", [&](const Json &one) { argument(one, to.arguments.emplace_back()); });
    case StepKind::Clear:
      return reader.numbers(item, "zeroed", to.zeroed, values - 1);
    case StepKind::Exchange:
      value(item, "destination", to.destination), value(item, "source", to.source);
      reader.read(item, "offset", to.offset), reader.read(item, "part", to.part), reader.read(item, "parts", to.parts);
      reader.readOptional(item, "sent", to.sent), reader.readOptional(item, "received", to.received);
      return;
    case StepKind::Wait:
      return value(item, "destination", to.destination);
    case StepKind::Repeat:
      reader.read(item, "variable", to.variable);
      reader.read(item, "count", to.count);
      reader.each(item, "carried", [&](const Json &one) {
        Program::Carried &carried = to.carried.emplace_back();
        value(one, "initial", carried.initial);
        reader.read(one, "value", carried.value, 0, std::numeric_limits<int>::max());
        reader.read(one, "next", carried.next, 0, std::numeric_limits<int>::max());
      });
      values += static_cast<int64_t>(to.carried.size());
      return steps(item, to.steps);
    case StepKind::When:
      reader.read(item, "count", to.count);
      return steps(item, to.steps);
    }
  }

  void argument(const Json &one, Program::Argument &to) {
    reader.read(one, "kind", kinds, to.kind);
    bool isMap = to.kind == Kind::TensorMap, isStride = to.kind == Kind::Stride;
    if (isMap || isStride || to.kind == Kind::Pointer)
      value(one, "tensor", to.tensor);
    if (to.kind == Kind::Pointer)
      reader.read(one, "access", accesses, to.access);
    if (isMap || isStride)
      reader.numbers(one, "axes", to.axes, 7);
    if (to.kind == Kind::Size)
      reader.read(one, "size", to.extent);
    if (!isMap)
      return;
    std::vector<int> box; // what a tensor map with 128-byte swizzle can have; a launch is too late to find out
    reader.numbers(one, "box", box, 256);
    if (box.size() == 3)
      box.push_back(1);
    bool fits = box.size() == 4 && box[0] >= 1 && box[2] >= 1 && box[0] * box[2] <= 256 && box[1] >= 8 &&
                box[1] <= 64 && box[1] % 8 == 0 && box[3] >= 1 && box[3] <= 8 && box[0] * box[3] <= 256 &&
                (box[3] == 1 || box[2] == 1);
    if (!fits)
      return reader.fail("box", "rows, columns (a multiple of 8 up to 64), heads and, if it is not 1, the step of rows "
                                "(to 8; not with several heads), of at most 256 rows in all,");
    to.boxRows = box[0], to.boxCols = box[1], to.boxHeads = box[2], to.rowStep = box[3];
  }

  Reader &reader;
  const Program &program;
  int64_t values; ///< that are known so far
  int depth = 0;
};
} // namespace

Result<Program> Program::fromJson(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error{"program is not a JSON object", {}, {}};
  Reader reader;
  Program program;
  int version = 0;
  constexpr int64_t most = std::numeric_limits<int>::max();
  reader.read(json, "version", version, 0, most);
  if (reader.bad.empty() && version != kVersion)
    return Error{fmt::format("expected a program of version {}, got: {}", kVersion, version), {}, {}};
  reader.read(json, "name", program.name);
  reader.each(json, "tensors", [&](const Json &item) {
    Tensor &tensor = program.tensors.emplace_back();
    reader.read(item, "name", tensor.name);
    reader.read(item, "role", roles, tensor.role);
    reader.read(item, "dtype", dtypes, tensor.dtype);
    reader.read(item, "leading_dims", leads, tensor.lead);
    reader.extents(item, "shape", tensor.extents);
    reader.numbers(item, "strided", tensor.strided, 7);
  });
  reader.read(json, "max_extent", program.maxExtent, 0, INT32_MAX);
  if (const Json *rule = reader.field(json, "specialization")) {
    SpecializationRule &to = program.specialization;
    reader.read(*rule, "source", sources, to.source);
    reader.read(*rule, "heads", to.heads, 1, most);
    reader.read(*rule, "kv_heads", to.kvHeads, 1, to.heads);
    reader.read(*rule, "dim_qk", to.dimQk, 0, most);
    reader.read(*rule, "dim_v", to.dimV, 0, most);
    reader.read(*rule, "packed_q", to.packedQ);
    reader.read(*rule, "packed_kv", to.packedKv);
    reader.read(*rule, "backward", to.backward);
  }
  reader.each(json, "checks", [&](const Json &item) {
    ArrayCheck &check = program.checks.emplace_back();
    reader.read(item, "kind", checkKinds, check.kind);
    reader.numbers(item, "arrays", check.arrays, static_cast<int64_t>(program.tensors.size()) - 1, -1);
    reader.read(item, "rows", check.rows);
    reader.read(item, "line", check.line);
    reader.read(item, "tile", check.tile, 0, INT32_MAX);
    reader.read(item, "written", check.isWritten);
  });
  reader.each(json, "tables", [&](const Json &item) {
    TableSpec &table = program.tables.emplace_back();
    reader.read(item, "name", table.name);
    reader.read(item, "length", table.length);
  });
  reader.each(json, "sizes", [&](const Json &item) {
    Size &size = program.sizes.emplace_back();
    reader.read(item, "name", size.name);
    reader.read(item, "value", size.value);
  });
  reader.each(json, "buffers", [&](const Json &item) {
    Buffer &buffer = program.buffers.emplace_back();
    reader.read(item, "name", buffer.name);
    reader.read(item, "dtype", dtypes, buffer.dtype);
    reader.extents(item, "shape", buffer.extents);
    reader.read(item, "place", buffer.place, 0, 1 << 16);
  });
  reader.names(json, "kernels", program.kernels);
  StepReader(reader, program).steps(json, program.steps);
  if (!reader.bad.empty())
    return Error{reader.bad, {}, {}};
  if (auto code = ProgramCode::compile(program); !code) // sizes, tensors and axes that there are
    return code.error();
  return program;
}
