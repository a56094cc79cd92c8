/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Context-parallel plans (docs/ContextParallel.md): several ranks share the tokens of sequences. Part of libattnc.so.
 *
 *   attnTransportPeer, attnTransportNccl, attnTransportFromNccl, attnTransportLocal, attnTransportFromCallbacks
 *                   how ranks reach each other
 *   attnPlanCreate  a plan's text to a plan; nothing is compiled
 *   attnPlanShard   the rows of a rank
 *   attnPlanChoose  the steps that take the least computed time
 *   attnPlanBind    for the sequences of a call: compiles, and compares with all ranks
 *   attnPlanRun     puts the kernels and messages of this rank on a stream
 *
 * Functions return as those of Attn.h do. A transport, its bound plans and their runs belong to one thread at a time.
 */
#ifndef ATTN_C_PLAN_H
#define ATTN_C_PLAN_H

#include "attn-c/Attn.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The ranks of a plan as one of them sees them. Bind and run are collective: all ranks bind the same plans in the same
 * order, and run them in the same order. A transport that has failed stays so: all later calls say why. The process
 * can go on, with a new transport too. An attnPlan may be used by several threads.
 */
typedef struct attnTransport attnTransport;

/* Every rank gives `bytes` bytes, and gets those of all in `all`, by rank. May block. NULL, or what went wrong. */
typedef const char *(*attnAllGather)(void *user, const void *own, void *all, size_t bytes);

/*
 * GPUs of one host that can access each other's memory (NVLink, PCIe), in one process or in several. Messages are
 * copied by copy engines into memory of the receiver, which this transport allocates at bind (attnPlanRun). Uses the
 * current context. `all_gather` is called by this function and by attnPlanBind. A run that is not complete after
 * `timeout_s` seconds (0: 60) is an error that names rank and exchange, and its results are not valid.
 */
ATTN_API int attnTransportPeer(int32_t rank, int32_t ranks, attnAllGather all_gather, void *user, double timeout_s,
                               attnTransport **transport);

/* An id for attnTransportNccl, made by one rank and given to all of them by the caller. */
#define attnNcclIdBytes 128
ATTN_API int attnNcclId(char id[attnNcclIdBytes]);
/*
 * NCCL (libnccl.so.2, 2.14 or later, opened at run time), with a communicator of its own for the device of the current
 * context. All ranks call it at the same time. Time-outs are as in attnTransportPeer; the communicator is aborted then.
 */
ATTN_API int attnTransportNccl(int32_t rank, int32_t ranks, const char id[attnNcclIdBytes], double timeout_s,
                               attnTransport **transport);
/*
 * The same with an ncclComm_t of the caller, who keeps it as long as the transport. It is never aborted: after a
 * time-out the caller has to do that.
 */
ATTN_API int attnTransportFromNccl(void *communicator, double timeout_s, attnTransport **transport);

/*
 * Ranks of one process, each a thread. A wait of more than `timeout_s` seconds (0: 60) for another rank is an error
 * that names it.
 */
typedef struct attnLocalRanks attnLocalRanks;
ATTN_API int attnLocalRanksCreate(int32_t ranks, double timeout_s, attnLocalRanks **local);
/* Transports keep what they need. */
ATTN_API void attnLocalRanksDestroy(attnLocalRanks *local);
/*
 * The transport of a rank. With `on_gpu` 0 tensors are on the CPU. Otherwise it is that of attnTransportPeer for the
 * device of the current context: all ranks call it at the same time, each from its own thread.
 */
ATTN_API int attnTransportLocal(attnLocalRanks *local, int32_t rank, int on_gpu, attnTransport **transport);

/* Memory of a message. */
typedef struct {
  void *data;
  size_t bytes;
} attnMessagePart;

/*
 * Functions of the caller, for MPI, gloo and the like. Each returns NULL, or what went wrong, a text that is valid
 * until the next call; they bound their waits themselves.
 *
 *   all_gather  see above
 *   post        begins exchange `number` of a run: memory `sent` for rank `to`, and `received` from rank `from`.
 *               Without parts nothing is sent, or received. What is sent was computed on `stream`, and does not
 *               change until `wait`. All ranks post in the same order, but for exchanges in which they have no part.
 *               Two ranks may send each other parts.
 *   wait        what is put on `stream` afterwards finds what exchange `number` received, and may change what it sent
 *   finish      ends a run, in which each exchange was waited for
 */
typedef struct {
  void *user;
  attnAllGather all_gather;
  const char *(*post)(void *user, int64_t number, int32_t to, const attnMessagePart *sent, int32_t sent_count,
                      int32_t from, const attnMessagePart *received, int32_t received_count, void *stream);
  const char *(*wait)(void *user, int64_t number, void *stream);
  const char *(*finish)(void *user, void *stream);
} attnTransportCallbacks;
ATTN_API int attnTransportFromCallbacks(int32_t rank, int32_t ranks, const attnTransportCallbacks *callbacks,
                                        attnTransport **transport);

/* Did all runs so far go well, in as far as they are complete? Does not block. Errors name rank and exchange. */
ATTN_API int attnTransportCheck(attnTransport *transport);
/*
 * Waits for the transport's own work. Ranks call it when the runs of all of them are complete: it frees memory that the
 * others write. Bound plans may be destroyed before and after.
 */
ATTN_API void attnTransportDestroy(attnTransport *transport);

/* Rows from `row` on, in a rank's buffers, that hold positions from `position` on of a sequence. */
typedef struct {
  int64_t row, sequence, position, length;
} attnRun;

/* The rows that rank `rank` has by `#plan.runs<"name">`; runs ascend by rows. */
typedef struct {
  const char *name;
  int32_t rank;
  int64_t rows;
  const attnRun *runs;
  int64_t run_count;
} attnShard;

/*
 * The whole sequences of a call, the same on all ranks: tokens of each, and rows that each has in a buffer of all
 * (NULL: as many; more are padding). `lengths_kv` NULL: keys have the lengths and slots of queries. `shards`: those of
 * `#plan.runs`, one for each name and rank, or NULL.
 */
typedef struct {
  int64_t count;
  const int64_t *lengths_q, *slots_q, *lengths_kv, *slots_kv;
  const attnShard *shards;
  int64_t shard_count;
} attnSequences;

typedef struct attnPlan attnPlan;

/*
 * The plan `name` (NULL: the only one) of a module that also has its problem, and for a plan of gradients an
 * attn.backward of the problem. A plan without steps gets them by `steps`, options of the pass plan-make-steps such as
 * "strategy=ring" or "strategy=cast head-group=2" (NULL: "strategy=cast"). `target` as in attnLower. Refused are
 * problems that rows of ranks do not have (docs/ContextParallel.md, "What is missing").
 */
ATTN_API int attnPlanCreate(const char *mlir, const char *name, const char *steps, const char *target, attnPlan **plan);
/* The module with the plan's steps; owned by the plan. */
ATTN_API const char *attnPlanText(const attnPlan *plan);
/* The tensors of attnPlanRun, as attnTensorCount and attnTensorName say them of a kernel. */
ATTN_API int attnPlanTensorCount(const attnPlan *plan);
ATTN_API const char *attnPlanTensorName(const attnPlan *plan, int index);
/* Plans that are bound keep what they need. */
ATTN_API void attnPlanDestroy(attnPlan *plan);

/*
 * The rows that a rank has of queries, or of keys: how many, padding included, and the runs in which they hold tokens,
 * ascending by rows. The runs are valid until this thread calls attnPlanShard again. Not collective.
 */
ATTN_API int attnPlanShard(const attnPlan *plan, const attnSequences *sequences, int32_t rank, int keys, int64_t *rows,
                           const attnRun **runs, int64_t *run_count);

/*
 * Options of plan-make-steps for a plan without steps: those of the least computed time for these sequences and this
 * plan's sharding (`attn-opt --explain --ranks`). Equal inputs give equal answers, so all ranks choose the same. Plans
 * of gradients are chosen by themselves. `*steps` is valid until this thread calls attnPlanChoose again.
 */
ATTN_API int attnPlanChoose(const char *mlir, const char *name, const attnSequences *sequences, const char **steps);

/* A plan for the sequences of a call, on this rank. */
typedef struct attnBoundPlan attnBoundPlan;

/*
 * Compiles what this rank runs, or finds it in the cache. All ranks compare builds, plans, problems, sequences and
 * shards; if they differ, or if a rank fails, that is an error on all ranks which names a rank and what differs. The
 * transport's device has to be current. Not under stream capture.
 */
ATTN_API int attnPlanBind(const attnPlan *plan, const attnSequences *sequences, attnTransport *transport,
                          attnBoundPlan **bound);
/* Waits for nothing: its runs have to be complete. */
ATTN_API void attnBoundPlanDestroy(attnBoundPlan *bound);

/* Bytes of workspace for a run; of `tensors`, in the order of attnPlanTensorName, shapes are read. */
ATTN_API int attnPlanWorkspaceSize(const attnBoundPlan *bound, const attnTensor *tensors, size_t *bytes);

/*
 * Runs this rank's steps. `tensors`, in the order of attnPlanTensorName: the rank's own rows of q, k, v, o, do, dq, dk,
 * dv, [rows, heads, dim], of lse and dlse [heads, rows]; and the problem's arrays, the same on all ranks: what has an
 * entry for each row or key has those of the whole sequences, one behind the other without padding, by heads if it has
 * these: [total] or [heads, total]. Gradients of arrays (`requires_grad` of the attn.backward), contiguous, are what
 * this rank computed of them, zeros where it did not: their sum over ranks is the gradient. There are none of sinks: a
 * rank's part is the sum over its rows of exp(sink - lse) * (dlse - dot(do, o)). `workspace` is aligned to 256 bytes.
 *
 * On a GPU nothing is compiled, and the host does not wait; only NCCL allocates and waits in the first messages between
 * two ranks. The call can be captured in a CUDA graph, by all ranks, and replayed by all ranks; replays have no
 * time-out. Runs of one transport follow each other, also on several streams; replays follow only what is on their own
 * stream.
 */
ATTN_API int attnPlanRun(const attnBoundPlan *bound, const attnTensor *tensors, void *workspace, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_PLAN_H */
