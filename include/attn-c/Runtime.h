/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The C interface of libattnrt.so, the runtime without compilers: loads packs that `attn-cache pack` wrote, and
 * launches what is in them.
 *
 * Functions that return int return 0 on success; otherwise attnrtLastError() of the same thread says what was expected
 * and what was found. Handles are not tied to a thread; a program may be launched from several threads at once. What
 * tensors, workspaces and streams are, and what a launch does, is as in libattnc.so (attn-c/Attn.h).
 */
#ifndef ATTN_C_RUNTIME_H
#define ATTN_C_RUNTIME_H

#include "attn-c/Tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attnrtPack attnrtPack;
typedef struct attnrtProgram attnrtProgram;

/* Version of this interface: major * 10000 + minor * 100 + patch. */
ATTN_API int attnrtVersion(void);

/* What went wrong in this thread's last call that failed; never NULL. */
ATTN_API const char *attnrtLastError(void);

/*
 * Reads a pack. A file that is truncated, damaged or no pack, and one for another interface version of the runtime, are
 * errors. Nothing is loaded yet, and no device is asked.
 */
ATTN_API int attnrtOpen(const char *path, attnrtPack **pack);
/* The same of bytes in memory, which are copied. */
ATTN_API int attnrtOpenBytes(const void *bytes, size_t size, attnrtPack **pack);
/* Programs that were loaded stay. */
ATTN_API void attnrtClose(attnrtPack *pack);

/*
 * The programs of a pack: the name of the pass, what the code runs on ("cpu", "sm_90a", "sm_89", ...), and the expected
 * lengths (queries, keys) that it is specialised for; 0, 0: it is a general one. Owned by the pack.
 */
ATTN_API int attnrtProgramCount(const attnrtPack *pack);
ATTN_API const char *attnrtProgramName(const attnrtPack *pack, int index);
ATTN_API const char *attnrtProgramChip(const attnrtPack *pack, int index);
ATTN_API int attnrtProgramLengths(const attnrtPack *pack, int index, int64_t lengths[2]);

/*
 * Loads the general program of the pass `name` (NULL: the pack has programs of one pass) for `chip` (NULL: that of the
 * current GPU, or "cpu" if there is none), into the current context or that of device 0. Code of another chip, and code
 * for instructions that this CPU lacks, are errors. Not under stream capture.
 */
ATTN_API int attnrtLoad(const attnrtPack *pack, const char *name, const char *chip, attnrtProgram **program);

/*
 * The program of the pack that is specialised for such shapes, loaded; where there is none, `program` once more. Of
 * `tensors` shapes and strides of operands and arrays are read, no data, and nothing of results. Not under stream
 * capture.
 */
ATTN_API int attnrtSpecialize(const attnrtPack *pack, const attnrtProgram *program, const attnTensor *tensors,
                              attnrtProgram **specialized);
ATTN_API void attnrtDestroy(attnrtProgram *program);

/* As attnTensorCount, attnTensorName, attnTensorIsResult, attnSchedule. */
ATTN_API int attnrtTensorCount(const attnrtProgram *program);
ATTN_API const char *attnrtTensorName(const attnrtProgram *program, int index);
ATTN_API int attnrtTensorIsResult(const attnrtProgram *program, int index);
ATTN_API const char *attnrtSchedule(const attnrtProgram *program);

/* As attnInferShapes, attnWorkspaceSize, attnLaunch, attnLaunchReuseMetadata. */
ATTN_API int attnrtInferShapes(const attnrtProgram *program, attnTensor *tensors, int64_t (*extents)[attnMaxRank]);
ATTN_API int attnrtWorkspaceSize(const attnrtProgram *program, const attnTensor *tensors, size_t *bytes);
ATTN_API int attnrtLaunch(const attnrtProgram *program, const attnTensor *tensors, void *workspace, void *stream);
ATTN_API int attnrtLaunchReuseMetadata(const attnrtProgram *program, const attnTensor *tensors, void *workspace,
                                       void *stream);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_RUNTIME_H */
