/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The C interface of libattnc.so: a problem's text in, a kernel to launch out.
 *
 *   attnLower       text to a kernel, without compiling: shapes, workspace and schedule are known
 *   attnBuild       compiles and loads it; attnCompile does both
 *   attnSpecialize  the kernel for certain shapes, which may be faster for them
 *   attnLaunch      puts it on a stream; compiles nothing
 *   attnDescribe, attnExplain, attnSupported, attnEquiv
 *                   say what a text means, as JSON
 *   attnWarm        compiles into the cache on disk; attnCacheList lists it, attnCachePrune bounds it
 *   attnPack        compiles into a file for libattnrt.so
 *
 * Functions that return int return 0 on success; otherwise attnLastError() of
 * the same thread says what was expected and what was found. Handles are not
 * tied to a thread; a kernel may be launched from several threads at once.
 */
#ifndef ATTN_C_ATTN_H
#define ATTN_C_ATTN_H

#include "attn-c/Tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A whole program for one pass of a problem: one or several CUDA kernels (or CPU kernels) and their launches. */
typedef struct attnKernel attnKernel;

/* Version of this interface: major * 10000 + minor * 100 + patch. */
ATTN_API int attnVersion(void);

/* What went wrong in this thread's last call that failed; never NULL. */
ATTN_API const char *attnLastError(void);

/*
 * What is at fault in the failure that attnLastError describes, for callers that have a type of error for each:
 * arguments of the call or the surroundings (usage), the text of a problem, a valid problem without a kernel for the
 * target, a tensor or workspace, a compiler that is missing or failed, the CUDA driver.
 */
typedef enum {
  attnErrorUsage = 0,
  attnErrorProblem = 1,
  attnErrorUnsupported = 2,
  attnErrorTensor = 3,
  attnErrorCompile = 4,
  attnErrorDriver = 5
} attnErrorKind;
ATTN_API attnErrorKind attnLastErrorKind(void);

/*
 * The tensors that the op `name` of the module `mlir` (an attn.problem, attn.backward or attn.segments; NULL: as in
 * attnLower) takes and gives, as JSON, for any target: nothing is compiled, and no device is asked. `*json` is valid
 * until this thread calls attnDescribe again.
 *
 *   version: 2
 *   name: of the op
 *   pass: "forward", "backward" or "segments"
 *   forward, backward: of a problem, its name and the names of all its backward passes in the module
 *   dtype: of a problem, "bf16", "f16" or "f32" (f32: only the target "cpu" has kernels)
 *   sizes: with ids, sizes that follow from theirs, each with name and value
 *   tensors: in the order in which attnLaunch takes them, each with
 *   - name, dtype ("bf16", "f16", "f32" or "i32")
 *   - role: "operand", "result", or "array": what the mask, the layout or a score modifier reads beside q, k and v
 * (ids, offsets, biases), which the caller gives as well
 *   - shape: expressions over sizes, as texts (integers, names of sizes, + - *, floor_div,
 *     ceil_div, round_up, min, max); an extent `n` or `n + 1` makes the size n known
 *   - strided: axes that may have any stride (attnTensor); the others are contiguous
 *   - leading_dims: "none"; "all", for any number of dimensions ahead of the shape, whose product is
 *     the size id_rows; "last", for none or some of the last of these
 */
ATTN_API int attnDescribe(const char *mlir, const char *name, const char **json);

/*
 * What the kernel of the problem `name` does with its mask, and what that costs (`attn-opt --explain`): JSON, valid
 * until this thread calls attnExplain again. If `name` is an attn.backward, its problem is explained; NULL is the
 * module's only problem. `target` is as in attnLower. Nothing is compiled, and no device is asked if there is a target.
 *
 * `options_json` (NULL: {}) is a JSON object with any of
 *   batch, seqlen_q, seqlen_kv: of dense layouts (2, 256, seqlen_q, or the problem's `expected_seqlen` or
 *     `max_seqlen`); batch also of packed layouts without lengths
 *   lengths_q, lengths_kv: of packed layouts, arrays (some short sequences, or what the problem says)
 *   padding: of padded layouts, rows around sequences (5)
 *   seed: of the arrays that the mask and the layouts read (1), all of which are made up: random documents, intervals
 *     and lists, which are not the caller's
 *   tile: "128x64", rows and keys, instead of the kernel's
 *   sequence, head: which the map shows (0, 0)
 *   tflops, gbps: throughput of matrix products in 10^12 FLOP/s and of memory in 10^9 B/s (786, 4584)
 *   svg: is a drawing wanted (false)?
 * Sizes are from 0 to 2^24; there is at least one sequence, and problems with `segments` are refused. The time goes
 * by the tiles that the mask's arrays leave open: seconds from some 10^5 tokens with documents on. Another key,
 * another type, a number out of range, and an option that the problem has no use for are errors that name the key.
 *
 *   name: of the problem
 *   target
 *   text: all of it for a reader, as the tool prints it
 *   schedule: which kernels the forward pass has and why, as attnSchedule says of the same target
 *   refused: why the target has no kernel for it, or null; the schedule is then what it would be
 *   backward: a list of name, schedule and refused of each backward pass of the problem in the module
 *   mask, canonical_mask
 *   tile: rows, keys; stride: the distance of its rows, and of its keys, in positions
 *   map: sequence, head, rows, keys (their numbers) of the map in `text` and of `svg`
 *   counts, of all sequences and heads: tiles; visited, of these full (the mask is not applied), partial (it is), and
 *     empty (no pair is visible; null where there are too many tiles); pairs, of these visible; exact: false if
 *     `visible` is an estimate, from some of the rows
 *   flops: visible, visited: of the matrix products QK^T and PV, for visible pairs and for all pairs of visited tiles
 *   bytes: of all tensors of the forward pass, each once
 *   milliseconds: how long the forward pass takes at least at `tflops` and `gbps`
 *   svg: a drawing of the map, if wanted
 * Counts, flops and bytes are integers up to 2^53, and floating-point numbers beyond.
 */
ATTN_API int attnExplain(const char *mlir, const char *name, const char *target, const char *options_json,
                         const char **json);

/*
 * For which of `targets` (with commas between them; NULL: "cpu,sm_80,sm_90a") the op `name` of the module, or with NULL
 * each of its ops, has kernels (`attn-opt --supported`): JSON, valid until this
 * thread calls attnSupported again. Nothing is compiled, and no device is asked. What one of the verifiers refuses
 * is an answer, and a text that cannot be parsed an error.
 *
 * A list, in the order of the module and of `targets`, of
 *   name, target
 *   supported: true or false
 *   reason: why not, or null
 *   nearest: the text of the nearest pass that the target has; of a backward pass, also that of its problem if that
 *     changes; null if it is supported, or if no change of one or two clauses leads to one
 */
ATTN_API int attnSupported(const char *mlir, const char *name, const char *targets, const char **json);

/*
 * Whether two masks, such as "#attn.causal", show the same pairs for all lengths (`attn-opt --equiv`): JSON, valid
 * until this thread calls attnEquiv again.
 *
 *   verdict: "equal", "different" or "unknown" (not decided)
 *   forms: the two canonical forms
 *   text: the answer for a reader, as the tool prints it
 *   where, if they are different: a pair that one of them shows and the other hides
 *   - seqlen_q, seqlen_kv: the lengths of the sequence
 *   - row, key; head, of `heads`
 *   - entries: what the masks read there of their arrays, a list of array, position and value
 *   - seen_by: "first" or "second"
 */
ATTN_API int attnEquiv(const char *mask_a, const char *mask_b, const char **json);

/*
 * Lowers the op `name` of the module `mlir` (NULL: its only attn.backward; where there is none, its only attn.problem;
 * where there is none either, its only attn.segments). All of the module has to be valid.
 *
 * `target`: "cpu"; "sm_90a" (Hopper); "sm_80", or "sm_80:CHIP" for its kernels on another chip (80, 86, 87, 89, 90,
 * 100 or 120); NULL or empty: the current GPU, or the CPU if there is none.
 *
 * It takes milliseconds; nothing is compiled, and with a target no device is queried. All calls below except launches
 * accept such a kernel. Several threads may lower at the same time.
 */
ATTN_API int attnLower(const char *mlir, const char *name, const char *target, attnKernel **kernel);

/*
 * Compiles the kernel, or finds it in the cache, and loads it into the current context or that of device 0. Does
 * nothing for a kernel that is built; other threads that build the same kernel wait. Call it before the first launch
 * and never under stream capture: a cold compile takes one to two seconds.
 */
ATTN_API int attnBuild(const attnKernel *kernel);

/* attnLower and attnBuild. */
ATTN_API int attnCompile(const char *mlir, const char *name, const char *target, attnKernel **kernel);

/*
 * The kernel for tensors of such shapes, a handle of its own. Without `max_seqlen` and `expected_seqlen` in the
 * problem, short sequences (dense ones of up to 1024 rows; packed ones where there are many) and few queries on many
 * keys may get another program than `kernel` has (docs/Schedules/by_length.md, "Shape specialisation"). It is lowered
 * at the first call with lengths of its range, and built if `kernel` is. A handle always runs the program that it was
 * made with, which is right for all shapes; equal handles and shapes give equal programs. Of `tensors`, shapes and
 * strides of operands and arrays are read, no data, and nothing of results.
 */
ATTN_API int attnSpecialize(const attnKernel *kernel, const attnTensor *tensors, attnKernel **specialized);

ATTN_API void attnDestroy(attnKernel *kernel);

/*
 * The tensors of a launch, in the order in which attnLaunch takes them: q, k, v, the
 * results o and lse, run-time arrays; of a backward pass q, k, v, o, lse, do, dlse if it has
 * one, the results dq, dk and dv, run-time arrays; of segments ids and positions, then results.
 * Without a kernel the count is 0, without such a tensor the name is "", and attnLastError() says why.
 */
ATTN_API int attnTensorCount(const attnKernel *kernel);
ATTN_API const char *attnTensorName(const attnKernel *kernel, int index);
ATTN_API int attnTensorIsResult(const attnKernel *kernel, int index);

/*
 * Fills in the results among `tensors` from the shapes of operands and arrays: dtype, rank, shape and strides (NULL:
 * contiguous). `extents` has attnMaxRank numbers for each tensor; shapes of results point into it. No data is read.
 */
ATTN_API int attnInferShapes(const attnKernel *kernel, attnTensor *tensors, int64_t (*extents)[attnMaxRank]);

/*
 * Bytes that attnLaunch needs as `workspace` with such tensors, from the shapes of operands and arrays (no data is
 * read, and nothing of results) and the number of multiprocessors. attnWorkspaceSize, and attnWorkspaceSizeFor with
 * 0, ask the devices of the process and give what is enough on each; without a GPU they fail for a GPU target. Exact
 * for a kernel that is built; before, a bound over all programs that may be built (the compiler decides which one
 * fits the registers).
 *
 * 0 for most forward passes. Passes with split-KV (`expected_seqlen(1, 32768)`, say), `segments(64)`, KV-tile lists
 * (masks with arrays of positions) or a schedule by length (packed, `expected_seqlen(8)`) need some. Gradients need 8
 * bytes * heads * round_up(seqlen, 128) for each sequence (packed: for 128 rows more), and with dQ accumulation 4 bytes
 * for each row and column of dQ, with head dims rounded up to 32 or a multiple of 64, and 4 bytes for each 64 rows.
 */
ATTN_API int attnWorkspaceSize(const attnKernel *kernel, const attnTensor *tensors, size_t *bytes);
ATTN_API int attnWorkspaceSizeFor(const attnKernel *kernel, const attnTensor *tensors, int multiprocessors,
                                  size_t *bytes);

/*
 * Puts the kernel on `stream` (a CUstream or cudaStream_t; ignored on a CPU,
 * where the call returns when the work is done). Compiles nothing, allocates nothing, reads no
 * device data, does not synchronise: it can be captured in a CUDA graph. It
 * runs in the context of the stream, also if another one is current; a default stream (NULL, CU_STREAM_LEGACY,
 * CU_STREAM_PER_THREAD) is the current context's. Before the launch the memory of q is checked: memory that the
 * stream's device cannot reach is an error. Results and workspace may overlap neither each other nor an input. With
 * ATTN_CHECK_ARRAYS=1 in the environment the memory of all tensors and of the workspace is checked, and so are the
 * contents of cu_seqlens, offsets and lists of tiles (on a CPU these always) and the `status` of segments; these
 * checks synchronise. With ATTN_VALIDATE=N about N rows of the results are
 * computed anew, in double and from the problem's text alone, and a difference is an error: N rows of o and
 * lse, or of each gradient; all rows if arrays have gradients; all results of an attn.segments.
 *
 * `workspace` may be NULL where attnWorkspaceSize says 0. Else it is memory of the
 * launch's device, of that size or more, aligned to 16 bytes; the caller owns it, and
 * what it holds means nothing before the launch or after it, except for attnLaunchReuseMetadata. Launches that may
 * run at the same time (on several streams, replays of several graphs) need one each.
 */
ATTN_API int attnLaunch(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream);

/*
 * The same, but what kernels found out of run-time arrays alone (which tiles a mask that reads them visits) is taken
 * from the workspace: for layers that share a mask. It requires that the last launch with this workspace was of this
 * kernel, with tensors of these shapes and with these arrays, and that nothing else wrote to it since. Kernels that
 * read other tensors or write results run, those of segments among them; so it is right for every problem, and as
 * attnLaunch for one without such kernels.
 */
ATTN_API int attnLaunchReuseMetadata(const attnKernel *kernel, const attnTensor *tensors, void *workspace,
                                     void *stream);
/* The name of attnLaunchReuseMetadata in version 0.1; it goes with version 0.2. */
__attribute__((deprecated("use attnLaunchReuseMetadata"))) ATTN_API int
attnLaunchAgain(const attnKernel *kernel, const attnTensor *tensors, void *workspace, void *stream);

/*
 * Compiles the kernels of the pass `name`, or with NULL those of all passes of the module, into the cache on disk,
 * where they are not there yet (`attn-cache warm`). Nothing is loaded: with a target it needs no GPU. It is an error
 * if there is no directory that takes them. Kernels that attnSpecialize may choose for shapes are not among them.
 */
ATTN_API int attnWarm(const char *mlir, const char *name, const char *target);

/*
 * The entries of the cache on disk (`attn-cache list`, with `deep` `attn-cache verify`: every file is read): JSON,
 * valid until this thread calls attnCacheList again. A list of roots, the writable one first, each with
 *   path, read_only; problem: why nothing in it is read, or null
 *   entries, least recently used first: kernel, target, bytes, built and used (seconds since 1970), resources,
 *     directory; problem: why it is not valid, or null
 */
ATTN_API int attnCacheList(int deep, const char **json);

/*
 * Removes bad entries, and the least recently used ones until at most `bytes` are left (-1: $ATTN_CACHE_SIZE, or its
 * default), from the writable root. `*removed` (may be NULL): how many went.
 */
ATTN_API int attnCachePrune(int64_t bytes, int *removed);

/*
 * Compiles all passes of the module for each of `targets` (with commas between them) into one file that libattnrt.so
 * loads without compilers (`attn-cache pack`, docs/Packs.md). `sizes`: `size_count` texts such as
 * "batch=4000,total_q=16000,total_kv=16000", sizes of calls that are to have the program that attnSpecialize would
 * give them. Needs no GPU.
 */
ATTN_API int attnPack(const char *mlir, const char *targets, const char *const *sizes, int size_count,
                      const char *path);

/* How many kernels this process has compiled so far (cache hits do not count). */
ATTN_API int64_t attnCompileCount(void);

/*
 * The sources of all kernels, and what the GPU compiler said of their resources (empty before attnBuild); owned by
 * the kernel. A source that does not fit the registers may be another after attnBuild.
 */
ATTN_API const char *attnSource(const attnKernel *kernel);
ATTN_API const char *attnResources(const attnKernel *kernel);
/* Which schedule it is and why, for a log: `SIMT rows; max_seqlen(1, 16) and heads(4, 4): ...`
   (docs/Schedules/README.md). Empty for an attn.segments. */
ATTN_API const char *attnSchedule(const attnKernel *kernel);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_ATTN_H */
