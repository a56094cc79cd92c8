// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks after the kernel cache: list, verify, prune, clear, warm, the keys of
// problems, and why a kernel was compiled again.
//
#include "attn-rt/Cache.h"
#include "attn/API/MakePack.h"
#include "attn/API/Warm.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

using namespace attn::rt;
namespace cl = llvm::cl;

static cl::SubCommand listCommand("list", "show the entries, least recently used first");
static cl::SubCommand verifyCommand("verify", "read every file of every entry; exit 1 if one is bad");
static cl::SubCommand pruneCommand("prune", "remove bad entries, what killed processes "
                                            "left, and the least recently used entries");
static cl::SubCommand clearCommand("clear", "remove all entries");
static cl::SubCommand whyCommand("why", "tell why a kernel was compiled: in what each "
                                        "entry's key differs from the one before");

static cl::SubCommand warmCommand("warm", "compile the problems of files ahead of "
                                          "time; needs no GPU");

static cl::SubCommand keysCommand("keys", "print the keys of the kernels that problems of files may be compiled to, "
                                          "fallbacks included; compiles nothing");

static cl::SubCommand packCommand("pack",
                                  "compile the problems of files into one file, which libattnrt.so launches without "
                                  "compilers; needs no GPU");

static cl::list<std::string> problemFiles(cl::Positional, cl::OneOrMore, cl::desc("<problem.mlir>..."),
                                          cl::sub(warmCommand), cl::sub(keysCommand), cl::sub(packCommand));
static cl::list<std::string> targetTexts("target", cl::CommaSeparated,
                                         cl::desc("cpu, sm_90a, sm_80, sm_80:<chip>; default: what runs here"),
                                         cl::sub(warmCommand), cl::sub(keysCommand), cl::sub(packCommand));
static cl::opt<std::string> packFile("o", cl::Required, cl::desc("the file to write"), cl::value_desc("file"),
                                     cl::sub(packCommand));
static cl::list<std::string>
    packSizes("sizes",
              cl::desc("sizes of calls that are to have what is made for them beside the general program, as "
                       "batch=4000,total_q=16000,total_kv=16000; may be given several times"),
              cl::value_desc("sizes"), cl::sub(packCommand));
static cl::opt<bool> asJson("json",
                            cl::desc("print a JSON object for each kernel: its name, its entry, and "
                                     "whether it was compiled now"),
                            cl::sub(warmCommand));

static cl::opt<std::string> directory("dir",
                                      cl::desc("cache directory (default: $ATTN_CACHE_DIR, else ~/.cache/attnc)"),
                                      cl::value_desc("path"), cl::sub(cl::SubCommand::getAll()));
static cl::opt<bool> remove_("remove", cl::desc("remove the bad entries"), cl::sub(verifyCommand));
static cl::opt<std::string> maxSize("max-size",
                                    cl::desc("bytes to keep, or with K, M, G (default: $ATTN_CACHE_SIZE, else 1G)"),
                                    cl::value_desc("size"), cl::sub(pruneCommand));
static cl::opt<std::string> kernelName(cl::Positional, cl::Required, cl::desc("<kernel>"), cl::sub(whyCommand));

static std::string time(int64_t seconds) {
  std::time_t t = seconds;
  std::tm local = {};
  localtime_r(&t, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

static std::string field(const EntryInfo &entry, std::string_view name) {
  for (const auto &[key, value] : entry.key)
    if (key == name)
      return value;
  return "?";
}

/// " in <root> (read-only)".
static std::string nameOf(const CacheRoot &root) {
  return fmt::format(" in {}{}", root.path, root.readOnly ? " (read-only)" : "");
}

static int list(const Cache &cache) {
  for (const CacheRoot &root : cache.roots()) {
    uint64_t total = 0;
    for (const EntryInfo &entry : root.entries) {
      total += entry.bytes;
      fmt::print("{}  {:>9}  {:8}  {}  {}\n", time(entry.usedAt), entry.bytes, field(entry, "target"),
                 entry.directory.substr(entry.directory.rfind('/') + 1),
                 entry.problem.empty() ? entry.report.str() : "BAD: " + entry.problem);
    }
    fmt::print("{} entries, {} bytes{}{}\n", root.entries.size(), total, nameOf(root),
               root.readOnly && !root.problem.empty() ? ", passed over: " + root.problem : "");
  }
  return 0;
}

static int verify(Cache &cache) {
  std::vector<CacheRoot> roots = cache.roots(/*deep=*/true);
  int stay = 0;
  for (const CacheRoot &root : roots) {
    int bad = 0;
    for (const EntryInfo &entry : root.entries)
      if (!entry.problem.empty()) {
        fmt::print("bad: {}: {}\n", entry.directory, entry.problem);
        ++bad;
      }
    fmt::print("{} entries, {} bad{}{}\n", root.entries.size(), bad, roots.size() > 1 ? nameOf(root) : "",
               root.readOnly && !root.problem.empty() ? ", passed over: " + root.problem : "");
    if (remove_ && bad && !root.readOnly)
      fmt::print("removed {}\n", cache.removeBad());
    else
      stay += bad;
  }
  return stay ? 1 : 0;
}

static int why(const Cache &cache) {
  struct Entry : EntryInfo {
    bool readOnly;
  };
  std::vector<Entry> entries;
  std::string places;
  for (const CacheRoot &root : cache.roots()) {
    places += fmt::format("{}`{}`", places.empty() ? "" : ", ", root.path);
    for (const EntryInfo &entry : root.entries)
      entries.push_back({entry, root.readOnly});
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry &a, const Entry &b) { return a.builtAt < b.builtAt; });
  std::vector<EntryInfo> earlier;
  for (const Entry &entry : entries) {
    if (entry.kernel != kernelName.getValue() || !entry.problem.empty())
      continue;
    fmt::print("{}  {}{}\n", time(entry.builtAt), entry.directory, entry.readOnly ? " (read-only)" : "");
    std::string difference = cache.compare(entry, earlier);
    fmt::print("{}", difference.empty() ? "first of its name\n" : difference);
    earlier.push_back(entry);
  }
  if (!earlier.empty())
    return 0;
  fmt::print(stderr, "attn-cache: error: no entry of `{}` in {}\n", kernelName.getValue(), places);
  return 1;
}

static int fail(const Error &error) {
  fmt::print(stderr, "attn-cache: error: {}\n", error.str());
  return 1;
}

static void printLine(llvm::json::Object object) { llvm::outs() << llvm::json::Value(std::move(object)) << "\n"; }

/// Compiles one program of `text`.
static int warmProgram(Cache &cache, attn::Compilation &, llvm::StringRef text, llvm::StringRef name,
                       const attn::Target &target) {
  Status warmed = attn::warm(cache, text, name, target, [&](const CompiledKernel &binary) {
    bool cold = binary.origin == CompiledKernel::Origin::Compiled;
    if (asJson)
      printLine(llvm::json::Object{{"kernel", binary.artifact.name}, {"entry", binary.directory}, {"compiled", cold}});
    else
      fmt::print("{} for {}: {}\n", binary.artifact.name, target.str(), cold ? "compiled" : "already there");
  });
  return warmed ? 0 : fail(warmed.error());
}

/// Prints the keys of one program of `text` and of its fallbacks.
static int printKeys(Cache &cache, attn::Compilation &compilation, llvm::StringRef text, llvm::StringRef name,
                     const attn::Target &target) {
  bool more = true;
  for (int fallback = 0; more; ++fallback) {
    auto program = compilation.compile(text, name, target, fallback);
    if (!program)
      return fail(program.error());
    more = program->hasFallback;
    for (const Artifact &artifact : program->kernels) {
      auto key = cache.keyOf(*createCompiler(artifact.target), artifact);
      if (!key)
        return fail(key.error());
      llvm::json::Object line{{"kernel", artifact.name}, {"fallback", fallback}};
      for (const auto &[field, value] : *key)
        line[field] = value;
      printLine(std::move(line));
    }
  }
  return 0;
}

/// Calls `act` for each program of each file and each target, until one fails.
template <typename Act> static int forEachProgram(Cache &cache, Act act) {
  std::vector<attn::Target> targets;
  for (const std::string &text : targetTexts) {
    auto target = attn::Target::parse(text);
    if (!target)
      return fail(target.error());
    targets.push_back(*target);
  }
  if (targets.empty())
    targets.push_back(attn::Target::preferred());
  for (const std::string &path : problemFiles) {
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!file)
      return fail({fmt::format("cannot read `{}`: {}", path, file.getError().message())});
    llvm::StringRef text = (*file)->getBuffer();
    attn::Compilation compilation;
    auto module = compilation.parse(text, path);
    if (!module)
      return fail(module.error());
    for (const attn::Target &target : targets)
      for (mlir::Operation *program : attn::programsOf(**module))
        if (int status = act(cache, compilation, text, mlir::SymbolTable::getSymbolName(program).getValue(), target))
          return status;
  }
  return 0;
}

static int pack(Cache &cache) {
  std::vector<attn::PackSizes> shapes;
  for (const std::string &text : packSizes) {
    auto sizes = attn::PackSizes::parse(text);
    if (!sizes)
      return fail(sizes.error());
    shapes.push_back(std::move(*sizes));
  }
  Pack pack;
  auto add = [&](Cache &cache, attn::Compilation &, llvm::StringRef text, llvm::StringRef name,
                 const attn::Target &target) {
    Status added = attn::addToPack(pack, cache, text, name, target, shapes);
    return added ? 0 : fail(added.error());
  };
  if (int status = forEachProgram(cache, add))
    return status;
  if (Status written = attn::writePack(pack, shapes, packFile); !written)
    return fail(written.error());
  for (const PackedProgram &program : pack.programs)
    fmt::print("{} for {}{}\n", program.name, program.target, program.expected ? ", " + program.expected->str() : "");
  return 0;
}

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv, "attn-cache: looks after attnc's cache of compiled kernels\n");
  CacheOptions options = CacheOptions::fromEnvironment();
  if (directory.getNumOccurrences())
    options.root = directory;
  if (options.root.empty() && options.readOnlyRoots.empty()) {
    fmt::print(stderr, "attn-cache: error: no cache directory; set "
                       "`ATTN_CACHE_DIR` or give `--dir`\n");
    return 1;
  }
  if (options.maxBytes == 0) // off for kernels, still there to be looked at
    options.maxBytes = 1;
  uint64_t keep = options.maxBytes;
  if (maxSize.getNumOccurrences()) {
    std::optional<uint64_t> size = parseSize(maxSize);
    if (!size) {
      fmt::print(stderr,
                 "attn-cache: error: `--max-size` is a number of bytes, or "
                 "with K, M, G; got: `{}`\n",
                 maxSize.getValue());
      return 1;
    }
    keep = *size;
  }
  Cache cache(options);
  if (std::string why = cache.whyPassedOver(); !why.empty()) {
    fmt::print(stderr, "attn-cache: error: expected a cache that nobody else may write to, got: {}\n", why);
    return 1;
  }
  if (listCommand)
    return list(cache);
  if (verifyCommand)
    return verify(cache);
  if (whyCommand)
    return why(cache);
  if (warmCommand)
    return forEachProgram(cache, warmProgram);
  if (packCommand)
    return pack(cache);
  if (keysCommand)
    return forEachProgram(cache, printKeys);
  if (clearCommand || pruneCommand) {
    int bad = pruneCommand ? cache.removeBad() : 0;
    int old = cache.prune(clearCommand ? 0 : keep);
    fmt::print("removed {} entries\n", bad + old);
    return 0;
  }
  cl::PrintHelpMessage();
  return 1;
}
