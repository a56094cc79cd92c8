// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn-c/Runtime.h"
#include "attn-rt/CTensors.h"
#include "attn-rt/Pack.h"

#include <fmt/format.h>

using namespace attn::rt;

struct attnrtPack {
  std::shared_ptr<const Pack> pack;
};

struct attnrtProgram {
  std::shared_ptr<const Pack> pack; ///< which `packed` is of
  const PackedProgram *packed;
  std::shared_ptr<const LoadedProgram> loaded;
};

static thread_local std::string lastError;

static int fail(const Error &error) {
  lastError = error.str();
  return 1;
}

static int fail(std::string message) { return fail(Error{std::move(message), {}, {}}); }

static int finish(const Status &status) { return status ? 0 : fail(status.error()); }

/// An entry by its number; null, with an error, if there is none.
template <typename T> static const T *entryOf(const std::vector<T> &entries, const char *what, int index) {
  if (index >= 0 && static_cast<size_t>(index) < entries.size())
    return &entries[static_cast<size_t>(index)];
  fail(fmt::format("expected the number of a {}, from 0 to {}, got: {}", what, static_cast<int64_t>(entries.size()) - 1,
                   index));
  return nullptr;
}

int attnrtVersion(void) { return ATTN_VERSION_NUMBER; }

const char *attnrtLastError(void) { return lastError.c_str(); }

//===--------------------------------------------------------------------===//
// Packs
//===--------------------------------------------------------------------===//

static int give(Result<Pack> read, attnrtPack **pack) {
  if (!read)
    return fail(read.error());
  *pack = new attnrtPack{std::make_shared<const Pack>(std::move(*read))};
  return 0;
}

int attnrtOpen(const char *path, attnrtPack **pack) {
  if (!path || !pack)
    return fail("expected a path and where to put the pack, got: NULL");
  return give(Pack::read(path), pack);
}

int attnrtOpenBytes(const void *bytes, size_t size, attnrtPack **pack) {
  if (!bytes || !pack)
    return fail("expected bytes and where to put the pack, got: NULL");
  return give(Pack::fromBytes({static_cast<const char *>(bytes), size}), pack);
}

void attnrtClose(attnrtPack *pack) { delete pack; }

int attnrtProgramCount(const attnrtPack *pack) {
  if (!pack)
    return fail("expected a pack, got: NULL"), 0;
  return static_cast<int>(pack->pack->programs.size());
}

static const PackedProgram *programOf(const attnrtPack *pack, int index) {
  if (!pack)
    return fail("expected a pack, got: NULL"), nullptr;
  return entryOf(pack->pack->programs, "program", index);
}

const char *attnrtProgramName(const attnrtPack *pack, int index) {
  const PackedProgram *program = programOf(pack, index);
  return program ? program->name.c_str() : "";
}

const char *attnrtProgramChip(const attnrtPack *pack, int index) {
  const PackedProgram *program = programOf(pack, index);
  return program ? program->chip().c_str() : "";
}

int attnrtProgramLengths(const attnrtPack *pack, int index, int64_t lengths[2]) {
  const PackedProgram *program = programOf(pack, index);
  if (!program)
    return 1;
  if (!lengths)
    return fail("expected where to put the lengths, got: NULL");
  ExpectedLengths expected = program->expected.value_or(ExpectedLengths());
  lengths[0] = expected.queries, lengths[1] = expected.keys;
  return 0;
}

//===--------------------------------------------------------------------===//
// Programs
//===--------------------------------------------------------------------===//

/// What code has to be for, to run here.
static std::string chipHere() {
  Result<const Driver *> driver = Driver::get();
  if (!driver || (*driver)->deviceCount() == 0)
    return "cpu";
  Result<int> device = (*driver)->currentDevice();
  Result<int> arch = (*driver)->arch(device ? *device : 0);
  return arch ? targetOf(*arch, /*specific=*/true) : "cpu";
}

static int loadInto(const std::shared_ptr<const Pack> &pack, const PackedProgram &packed, attnrtProgram **program) {
  Result<std::shared_ptr<const LoadedProgram>> loaded = load(packed);
  if (!loaded)
    return fail(loaded.error());
  *program = new attnrtProgram{pack, &packed, std::move(*loaded)};
  return 0;
}

int attnrtLoad(const attnrtPack *pack, const char *name, const char *chip, attnrtProgram **program) {
  if (!pack || !program)
    return fail("expected a pack and where to put the program, got: NULL");
  Result<const PackedProgram *> found = pack->pack->find(name ? name : "", chip && *chip ? chip : chipHere());
  if (!found)
    return fail(found.error());
  return loadInto(pack->pack, **found, program);
}

/// The tensors of a call; they are a thread's.
static Result<const std::vector<TensorView> *> viewsOf(const attnrtProgram *program, const attnTensor *tensors,
                                                       Given given) {
  static thread_local std::vector<TensorView> views;
  if (!program)
    return Error{"expected a program, got: NULL", {}, {}};
  if (Status read = readTensors(program->loaded->code().program(), tensors, given, views); !read)
    return read.error();
  return &views;
}

int attnrtSpecialize(const attnrtPack *pack, const attnrtProgram *program, const attnTensor *tensors,
                     attnrtProgram **specialized) {
  auto views = viewsOf(program, tensors, Given::Inputs);
  if (!views)
    return fail(views.error());
  if (!pack || !specialized)
    return fail("expected a pack and where to put the program, got: NULL");
  const ProgramCode &code = program->loaded->code();
  std::vector<int64_t> sizes = code.makeSizes();
  if (Status read = code.readSizes(**views, Given::Inputs, sizes.data()); !read)
    return fail(read.error());
  std::optional<ExpectedLengths> expected =
      program->packed->expected ? std::nullopt : code.expectedLengths(sizes.data());
  const PackedProgram *found = expected ? pack->pack->findSpecialized(*program->packed, *expected) : nullptr;
  if (found)
    return loadInto(pack->pack, *found, specialized);
  *specialized = new attnrtProgram(*program);
  return 0;
}

void attnrtDestroy(attnrtProgram *program) { delete program; }

int attnrtTensorCount(const attnrtProgram *program) {
  if (!program)
    return fail("expected a program, got: NULL"), 0;
  return static_cast<int>(program->loaded->code().program().tensors.size());
}

static const Program::Tensor *tensorOf(const attnrtProgram *program, int index) {
  if (!program)
    return fail("expected a program, got: NULL"), nullptr;
  return entryOf(program->loaded->code().program().tensors, "tensor", index);
}

const char *attnrtTensorName(const attnrtProgram *program, int index) {
  const Program::Tensor *tensor = tensorOf(program, index);
  return tensor ? tensor->name.c_str() : "";
}

int attnrtTensorIsResult(const attnrtProgram *program, int index) {
  const Program::Tensor *tensor = tensorOf(program, index);
  return tensor && tensor->isResult();
}

const char *attnrtSchedule(const attnrtProgram *program) { return program ? program->packed->schedule.c_str() : ""; }

int attnrtInferShapes(const attnrtProgram *program, attnTensor *tensors, int64_t (*extents)[attnMaxRank]) {
  if (!program)
    return fail("expected a program, got: NULL");
  return finish(inferShapes(program->loaded->code(), tensors, extents));
}

int attnrtWorkspaceSize(const attnrtProgram *program, const attnTensor *tensors, size_t *bytes) {
  auto views = viewsOf(program, tensors, Given::Inputs);
  if (!views)
    return fail(views.error());
  if (!bytes)
    return fail("expected where to put the size, got: NULL");
  Result<size_t> needed = workspaceBytes(program->loaded->code(), program->loaded->isHost(), **views, 0);
  if (!needed)
    return fail(needed.error());
  *bytes = *needed;
  return 0;
}

static int launch(const attnrtProgram *program, const attnTensor *tensors, void *workspace, void *stream, bool again) {
  auto views = viewsOf(program, tensors, Given::Memory);
  if (!views)
    return fail(views.error());
  return finish(program->loaded->launch(**views, workspace, static_cast<Stream>(stream), again));
}

int attnrtLaunch(const attnrtProgram *program, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(program, tensors, workspace, stream, /*again=*/false);
}

int attnrtLaunchReuseMetadata(const attnrtProgram *program, const attnTensor *tensors, void *workspace, void *stream) {
  return launch(program, tensors, workspace, stream, /*again=*/true);
}
