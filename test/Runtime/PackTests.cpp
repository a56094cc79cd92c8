// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packs whose checksum is right and whose index is not, and code for another CPU.
//
#include "Digest.h"
#include "Processor.h"
#include "TestHelpers.h"
#include "attn-rt/Compiler.h"
#include "attn-rt/Pack.h"

#include <fmt/ranges.h>

using namespace attn::rt;

static PackedProgram programOf(const std::string &name, const std::string &target) {
  PackedProgram packed;
  packed.name = name, packed.target = target, packed.schedule = "tiles";
  packed.program.name = name, packed.program.kernels = {name};
  packed.program.tensors = {{.name = "q", .dtype = Dtype::BF16, .extents = {Extent::symbol("batch"), 64}}};
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->artifact.name = kernel->artifact.entry = name;
  kernel->artifact.target = target == "sm_80:89" ? "sm_89" : target;
  kernel->artifact.source = "not in a pack";
  kernel->binary = name + " " + target;
  packed.kernels = {kernel};
  return packed;
}

/// The bytes with another index and the checksum that it has.
static std::string withIndex(std::string bytes, std::string_view from, std::string_view to) {
  size_t at = bytes.find(from);
  EXPECT(at != std::string::npos, "{}", from);
  bytes.replace(at, from.size(), to);
  uint64_t index = 0;
  std::memcpy(&index, bytes.data() + 16, sizeof index);
  index += to.size() - from.size();
  std::memcpy(bytes.data() + 16, &index, sizeof index);
  std::string hex = sha256(bytes.substr(0, 24) + bytes.substr(56));
  for (size_t i = 0; i < 32; ++i)
    bytes[24 + i] = static_cast<char>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

/// The kernel's names and a compiler's are one.
static void features() {
  using Names = std::vector<std::string>;
  Names ofCompiler = {"__AVX512VNNI__", "__SSE3__",   "__BMI__",       "__SHA__",
                      "__LZCNT__",      "__SSE4_2__", "__SSE2_MATH__", "__STDC__"},
        ofKernel = {"abm", "avx512_vnni", "bmi1", "hypervisor", "pni", "sha_ni", "sse4_2", "syscall"};
  EXPECT(instructionSets(ofCompiler) == instructionSets(ofKernel), "{}", fmt::join(instructionSets(ofCompiler), " "));
  EXPECT(instructionSets(ofKernel).size() == 6);
  auto native = createHostCompiler()->features(), plain = createHostCompiler({"-march=x86-64"})->features();
  EXPECT(native.ok() && plain.ok() && createNvrtcCompiler()->features()->empty());
  Names here = processorFeatures();
  EXPECT(std::includes(here.begin(), here.end(), native->begin(), native->end()),
         "this processor runs its own code: {}", fmt::join(*native, " "));
#ifdef __x86_64__
  EXPECT(*plain == (Names{"sse", "sse2"}), "{}", fmt::join(*plain, " "));
#endif
}

static void packs() {
  features();
  Pack pack;
  pack.programs.push_back(programOf("p", "cpu"));
  pack.programs.push_back(programOf("p", "sm_80:89"));
  pack.programs.push_back(programOf("g", "sm_90a"));
  PackedProgram special = programOf("p", "sm_80:89");
  special.expected = ExpectedLengths{4, 8};
  pack.programs.push_back(std::move(special));
  std::string bytes = pack.toBytes();
  EXPECT(bytes.find("not in a pack") == std::string::npos);
  auto read = Pack::fromBytes(bytes);
  EXPECT(read.ok() && read->programs.size() == 4 && read->toBytes() == bytes, "{}",
         read.ok() ? "" : read.error().str());
  auto found = read->find("p", "sm_89");
  EXPECT(found.ok() && *found == &read->programs[1] && (*found)->kernels[0]->binary == "p sm_80:89");
  EXPECT(read->findSpecialized(**found, {4, 8}) == &read->programs[3] && !read->findSpecialized(**found, {4, 4}));
  for (auto [name, chip] : {std::pair("", "cpu"), {"p", "sm_90a"}, {"q", "cpu"}}) {
    auto none = read->find(name, chip);
    EXPECT(!none);
    fmt::print("{}\n", none.error().str());
  }
  PackedProgram other = read->programs[0];
  other.features.insert(other.features.begin(), "avx9999");
  auto loaded = load(other);
  EXPECT(!loaded);
  fmt::print("{}\n", loaded.error().str());

  auto refused = [&](std::string_view from, std::string_view to) {
    auto parsed = Pack::fromBytes(withIndex(bytes, from, to));
    EXPECT(!parsed, "{}", to);
    fmt::print("{}\n", parsed.error().str());
  };
  refused("{\"programs\"", "{\"program\"");
  refused("\"programs\":[", "\"programs\":[7,");
  refused("\"schedule\":\"tiles\"", "\"schedule\":0");
  refused("\"batch\"", "\"batch -\"");
  refused("\"bytes\":5", "\"bytes\":5000");
  refused("\"offset\":0", "\"offset\":18446744073709551615");
  refused("\"offset\":0", "\"offset\":-1");
  refused("\"abi_version\":", "\"abi_version\":1");
  refused("\"expected\":[4,8]", "\"expected\":[4]");
  refused("\"target\":\"cpu\"", "\"target\":\"sm_80\"");
  for (size_t length = 0; length < bytes.size(); length += 13)
    EXPECT(!Pack::fromBytes(std::string_view(bytes).substr(0, length)), "truncated");
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] ^= 0x10;
    EXPECT(!Pack::fromBytes(damaged), "damaged");
  }
}

int attn::rt::packTest(const std::string &test) { return test == "packs" ? packs(), 0 : -1; }
