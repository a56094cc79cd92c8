// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/API/Jit.h"
#include "attn/Reference/Segments.h"
#include <fmt/format.h>

using namespace attn;

rt::Cache &attn::processCache() {
  static rt::Cache cache;
  return cache;
}

static rt::Result<Program> lowerProgram(llvm::StringRef text, llvm::StringRef name, const Target &target, int fallback,
                                        std::optional<rt::ExpectedLengths> expected = {}) {
  rt::Result<Program> program = rt::Error{};
  withCompilation([&](Compilation &compilation) {
    program = compilation.compile(text, name, target, fallback, "problem", expected);
  });
  return program;
}

using ReproducerFiles = std::vector<std::pair<std::string, std::string>>;

/// `program`: of a fallback.
static rt::Result<CompiledProgram> buildThrough(rt::Cache &cache, const ReproducerFiles &files,
                                                llvm::function_ref<rt::Result<Program>(int)> program) {
  auto build = [&](const rt::Artifact &artifact) {
    return cache.get(*rt::createCompiler(artifact.target), artifact, [&] { return files; });
  };
  return buildFitting(program, build);
}

static ReproducerFiles reproducerOf(llvm::StringRef text, const Target &target,
                                    const std::optional<rt::ExpectedLengths> &expected) {
  ReproducerFiles files = {{"problem.mlir", text.str()}, {"target", target.str()}};
  if (expected)
    files.emplace_back("lengths", expected->str());
  return files;
}

/// `first`: of the fallbacks, lowered already.
static rt::Result<CompiledProgram> compileFrom(rt::Cache &cache, llvm::StringRef text, llvm::StringRef name,
                                               const Target &target, std::optional<rt::ExpectedLengths> expected,
                                               const Program &first) {
  return buildThrough(cache, reproducerOf(text, target, expected), [&](int fallback) {
    return fallback ? lowerProgram(text, name, target, fallback, expected) : rt::Result(first);
  });
}

rt::Result<CompiledProgram> attn::compileThrough(rt::Cache &cache, llvm::StringRef text, llvm::StringRef name,
                                                 const Target &target) {
  rt::Result<Program> first = lowerProgram(text, name, target, /*fallback=*/0);
  return first ? compileFrom(cache, text, name, target, /*expected=*/{}, *first) : first.error();
}

/// The program for such lengths; nothing where `plain` is as good. `first`: the plain program as chosen first.
static rt::Result<std::optional<Program>> lowerSpecialized(llvm::StringRef text, llvm::StringRef name,
                                                           const Target &target, const rt::ExpectedLengths &expected,
                                                           const Program &plain, const Program &first) {
  rt::Result<Program> special = lowerProgram(text, name, target, /*fallback=*/0, expected);
  if (!special)
    return special.error();
  return isWorthKernels(*special, plain, first) ? std::optional(std::move(*special)) : std::nullopt;
}

rt::Result<std::optional<CompiledProgram>> attn::compileSpecialized(rt::Cache &cache, llvm::StringRef text,
                                                                    llvm::StringRef name, const Target &target,
                                                                    const rt::ExpectedLengths &expected,
                                                                    const Program &plain) {
  rt::Result<Program> first = lowerProgram(text, name, target, /*fallback=*/0);
  if (!first)
    return first.error();
  rt::Result<std::optional<Program>> special = lowerSpecialized(text, name, target, expected, plain, *first);
  if (!special || !*special)
    return special ? rt::Result(std::optional<CompiledProgram>()) : special.error();
  rt::Result<CompiledProgram> compiled = compileFrom(cache, text, name, target, expected, **special);
  return compiled ? rt::Result(std::optional(std::move(*compiled))) : compiled.error();
}

//===--------------------------------------------------------------------===//
// Made
//===--------------------------------------------------------------------===//

static std::string sourceOf(const Program &program) {
  std::string text;
  for (const rt::Artifact &artifact : program.kernels)
    text += artifact.source;
  return text;
}

static std::string resourcesOf(llvm::ArrayRef<rt::LoadedProgram::Kernel> kernels) {
  std::string text;
  for (const rt::LoadedProgram::Kernel &kernel : kernels)
    text +=
        (text.empty() ? "" : "; ") + (kernels.size() == 1 ? "" : kernel->artifact.name + ": ") + kernel->report.str();
  return text;
}

rt::Result<std::shared_ptr<Kernel>> Kernel::make(llvm::StringRef text, llvm::StringRef name, const Target &target,
                                                 std::optional<rt::ExpectedLengths> expected, Program program) {
  std::shared_ptr<Kernel> kernel(new Kernel);
  rt::Result<rt::ProgramCode> code = rt::ProgramCode::compile(program.plan);
  if (!code)
    return code.error();
  kernel->text = text.str(), kernel->name = name.str(), kernel->target = target, kernel->expected = expected;
  kernel->first = std::move(program), kernel->firstCode = std::move(*code);
  kernel->firstSource = sourceOf(kernel->first);
  return kernel;
}

rt::Result<std::shared_ptr<const Kernel>> Kernel::lower(llvm::StringRef text, llvm::StringRef name,
                                                        const Target &target) {
  rt::Result<Program> program = lowerProgram(text, name, target, /*fallback=*/0);
  if (!program)
    return program.error();
  rt::Result<std::shared_ptr<Kernel>> kernel = make(text, name, target, /*expected=*/{}, std::move(*program));
  return kernel ? rt::Result(std::shared_ptr<const Kernel>(*kernel)) : kernel.error();
}

rt::Result<std::shared_ptr<const Kernel>> Kernel::create(llvm::StringRef text, llvm::StringRef name,
                                                         const Target &target) {
  rt::Result<std::shared_ptr<const Kernel>> kernel = lower(text, name, target);
  if (kernel)
    if (rt::Status done = (*kernel)->build(); !done)
      return done.error();
  return kernel;
}

rt::Status Kernel::build() const {
  if (isBuilt())
    return {};
  std::lock_guard<std::mutex> lock(mutex);
  if (isBuilt())
    return {};
  auto compiled = compileFrom(processCache(), text, name, target, expected, first);
  if (!compiled)
    return rt::Error(compiled.error()).as(rt::ErrorKind::Compile);
  // A binary of the disk whose checksums hold, and which is no such kernel, is as damaged as any.
  auto repair = [&](const rt::CompiledKernel &useless) -> rt::Result<rt::LoadedProgram::Kernel> {
    if (useless.origin != rt::CompiledKernel::Origin::Disk)
      return rt::Error{fmt::format("the compiler's binary of `{}` cannot be loaded", useless.artifact.name)};
    return processCache().rebuild(*rt::createCompiler(useless.artifact.target), useless,
                                  [&] { return reproducerOf(text, target, expected); });
  };
  auto loaded = rt::LoadedProgram::load(compiled->program.plan, std::move(compiled->kernels), repair);
  if (!loaded)
    return loaded.error();
  std::string source = sourceOf(compiled->program), resources = resourcesOf((*loaded)->kernels());
  owned.reset(new Built{std::move(compiled->program), std::move(*loaded), std::move(source), std::move(resources)});
  built = owned.get();
  return {};
}

/// The program's sizes for tensors of which the inputs are given.
static rt::Result<std::vector<int64_t>> sizesOf(const rt::ProgramCode &code, Kernel::Tensors tensors) {
  std::vector<int64_t> sizes = code.makeSizes();
  rt::Status read = code.readSizes(tensors, Given::Inputs, sizes.data());
  return read ? rt::Result(std::move(sizes)) : read.error();
}

rt::Result<std::shared_ptr<const Kernel>> Kernel::specialize(Tensors tensors) const {
  const rt::ProgramCode &own = code(); // which another thread may build meanwhile
  rt::Result<std::vector<int64_t>> sizes = sizesOf(own, tensors);
  if (!sizes)
    return sizes.error();
  std::shared_ptr<const Kernel> self = shared_from_this();
  std::optional<rt::ExpectedLengths> said = expected ? std::nullopt : own.expectedLengths(sizes->data());
  if (!said)
    return self;
  auto finish = [&](const std::shared_ptr<const Kernel> &kernel) -> rt::Result<std::shared_ptr<const Kernel>> {
    rt::Status done = kernel && isBuilt() ? kernel->build() : rt::Status();
    return !done ? rt::Result<std::shared_ptr<const Kernel>>(done.error()) : rt::Result(kernel ? kernel : self);
  };
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (auto found = specialized.find(*said); found != specialized.end()) {
      std::shared_ptr<const Kernel> kernel = found->second;
      lock.unlock();
      return finish(kernel);
    }
  }
  rt::Result<std::optional<Program>> lowered = lowerSpecialized(text, name, target, *said, getProgram(), first);
  if (!lowered)
    return lowered.error();
  std::shared_ptr<const Kernel> special;
  if (*lowered) {
    rt::Result<std::shared_ptr<Kernel>> made = make(text, name, target, said, std::move(**lowered));
    if (!made)
      return made.error();
    special = std::move(*made);
  }
  std::unique_lock<std::mutex> lock(mutex);
  special = specialized.try_emplace(*said, std::move(special)).first->second; // unless another thread was first
  lock.unlock();
  return finish(special);
}

//===--------------------------------------------------------------------===//
// Asked
//===--------------------------------------------------------------------===//

rt::Result<std::vector<std::vector<int64_t>>> Kernel::shapesOf(Tensors tensors) const {
  const rt::ProgramCode &own = code();
  rt::Result<std::vector<int64_t>> sizes = sizesOf(own, tensors);
  if (!sizes)
    return sizes.error();
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i < tensors.size(); ++i)
    shapes.push_back(own.shapeOf(tensors, i, sizes->data()));
  return shapes;
}

rt::Result<size_t> Kernel::workspaceBytes(Tensors tensors, int multiprocessors) const {
  if (isBuilt())
    return rt::workspaceBytes(code(), isHost(), tensors, multiprocessors);
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<rt::ProgramCode> all; // or an error, and the next call begins anew
  for (bool more = fallbacks.empty(); more;) {
    const int fallback = all.size();
    rt::Result<Program> program = fallback ? lowerProgram(text, name, target, fallback, expected) : rt::Result(first);
    if (!program)
      return program.error();
    more = program->hasFallback;
    rt::Result<rt::ProgramCode> code = rt::ProgramCode::compile(std::move(program->plan));
    if (!code)
      return code.error();
    all.push_back(std::move(*code));
  }
  if (fallbacks.empty())
    fallbacks = std::move(all);
  size_t most = 0;
  for (const rt::ProgramCode &code : fallbacks) {
    rt::Result<size_t> bytes = rt::workspaceBytes(code, isHost(), tensors, multiprocessors);
    if (!bytes)
      return bytes;
    most = std::max(most, *bytes);
  }
  return most;
}

//===--------------------------------------------------------------------===//
// Launched
//===--------------------------------------------------------------------===//

rt::Status Kernel::launch(Tensors tensors, void *workspace, rt::Stream stream, bool again) const {
  const Built *made = built;
  if (!made)
    return rt::Error{"expected a kernel that is built (attnBuild), got: one that is lowered"};
  if (rt::Status status = made->loaded->launch(tensors, workspace, stream, again); !status)
    return status;
  if (rt::Status status = rt::checksArrays() ? checkStatus(tensors, stream) : rt::Status(); !status)
    return status;
  return validate(tensors, stream);
}

rt::Status Kernel::checkStatus(Tensors tensors, rt::Stream stream) const {
  int number = indexOf("status");
  if (number < 0)
    return {};
  rt::Result<std::vector<int32_t>> status = built.load()->loaded->contentsOf(tensors[number], stream);
  if (!status)
    return status.error();
  for (auto [row, bits] : llvm::enumerate(*status))
    if (bits)
      return rt::Error{
          fmt::format("expected `status` 0 of row {}, got: {} ({})", row, bits, reference::statusText(bits))};
  return {};
}
