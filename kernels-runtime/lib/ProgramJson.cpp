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

using Check = Program::ArrayCheck;
constexpr Word<Check::Kind> checkKinds[] = {{Check::Kind::Offsets, "offsets"},
                                            {Check::Kind::Tiles, "tiles"},
                                            {Check::Kind::Blocks, "blocks"},
                                            {Check::Kind::Parents, "parents"}};

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

std::string Program::toJson() const {
  Json json = {{"version", kVersion}, {"name", name}};
  Json &given = json["tensors"] = Json::array();
  for (const Tensor &tensor : tensors) {
    Json item = {{"name", tensor.name},
                 {"role", textOf(roles, tensor.role)},
                 {"dtype", textOf(dtypes, tensor.dtype)},
                 {"lead", textOf(leads, tensor.lead)},
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
  Json &list = json["steps"] = Json::array();
  for (const Step &step : steps) {
    Json item = {{"kernel", step.kernel},
                 {"blocks", step.blocks.str()},
                 {"most_blocks", step.mostBlocks},
                 {"reusable", step.reusable},
                 {"zeroed", step.zeroed}};
    Json &arguments = item["arguments"] = Json::array();
    for (const Argument &argument : step.arguments) {
      Json one = {{"kind", textOf(kinds, argument.kind)}};
      if (argument.tensor >= 0)
        one["tensor"] = argument.tensor;
      if (argument.kind == Kind::Stride || argument.kind == Kind::TensorMap)
        one["axes"] = argument.axes;
      if (argument.kind == Kind::Size)
        one["size"] = argument.extent.str();
      if (argument.kind == Kind::TensorMap)
        one["box"] = {argument.boxRows, argument.boxCols, argument.boxHeads};
      arguments.push_back(std::move(one));
    }
    list.push_back(std::move(item));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

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
    reader.read(item, "lead", leads, tensor.lead);
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
  int64_t values = static_cast<int64_t>(program.tensors.size() + program.buffers.size());
  reader.each(json, "steps", [&](const Json &item) {
    Step &step = program.steps.emplace_back();
    reader.read(item, "kernel", step.kernel, -1, static_cast<int64_t>(program.kernels.size()) - 1);
    reader.read(item, "blocks", step.blocks);
    reader.read(item, "most_blocks", step.mostBlocks, 1, INT32_MAX);
    reader.read(item, "reusable", step.reusable);
    reader.numbers(item, "zeroed", step.zeroed, values - 1);
    reader.each(item, "arguments", [&](const Json &one) {
      Argument &argument = step.arguments.emplace_back();
      reader.read(one, "kind", kinds, argument.kind);
      bool isMap = argument.kind == Kind::TensorMap, isStride = argument.kind == Kind::Stride;
      if (isMap || isStride || argument.kind == Kind::Pointer)
        reader.read(one, "tensor", argument.tensor, 0,
                    isMap ? static_cast<int64_t>(program.tensors.size()) - 1 : values - 1);
      if (isMap || isStride)
        reader.numbers(one, "axes", argument.axes, 7);
      if (argument.kind == Kind::Size)
        reader.read(one, "size", argument.extent);
      if (!isMap)
        return;
      std::vector<int> box; // what a tensor map with 128-byte swizzle can have; a launch is too late to find out
      reader.numbers(one, "box", box, 256);
      bool fits = box.size() == 3 && box[0] >= 1 && box[2] >= 1 && box[0] * box[2] <= 256 && box[1] >= 8 &&
                  box[1] <= 64 && box[1] % 8 == 0;
      if (!fits)
        return reader.fail("box", "rows, columns (a multiple of 8 up to 64) and heads, of at most 256 rows in all,");
      argument.boxRows = box[0], argument.boxCols = box[1], argument.boxHeads = box[2];
    });
  });
  if (!reader.bad.empty())
    return Error{reader.bad, {}, {}};
  if (auto code = ProgramCode::compile(program); !code) // sizes, tensors and axes that there are
    return code.error();
  return program;
}
