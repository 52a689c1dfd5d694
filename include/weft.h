/* The compiler as a library: load a model file, transform it, compile it, look into it.
 *
 *     Weft *w = weft_new();
 *     WeftGraph *g = weft_load(w, "model.pt2");
 *     WeftOptions o = {.size = sizeof o};
 *     if (g && weft_compile(w, g, &o, "model.so")) ...
 *     else fputs(weft_messages(w), stderr);
 *     weft_free(w);
 *
 * A Weft is one compilation: it owns everything obtained through it (texts, tensors, graphs) until
 * weft_free. Functions return NULL or false after recording a message, also where they are given
 * NULL, an empty name, or a graph of another Weft; nothing prints, nothing exits. Options may be
 * NULL: all are 0. A Weft is used by one thread at a time; different ones share nothing. After
 * running out of memory or an internal error only weft_messages and weft_free are useful.
 *
 * LLVM cannot survive running out of memory, nor errors of its own: then the process ends with
 * status 1 after one line on stderr, and temporary files are removed first (weft_abandon). Where
 * that must not be, use WEFT_BACKEND_C, or a process of its own. jansson's allocation functions are
 * replaced, once, by some that pass on to those there before; a program that sets its own does so
 * before the first weft_load. */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>

#include "weft_model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION "0.1.0"

typedef struct Weft Weft;
typedef struct WeftGraph WeftGraph;

Weft *weft_new(void); /* NULL: no memory */
void weft_free(Weft *);

/* ---- messages ---- */

typedef enum { WEFT_ERROR, WEFT_WARNING, WEFT_NOTE } WeftSeverity;

typedef struct {
	WeftSeverity severity;
	const char *where; /* "model.pt2: node conv2d_3 (net.py:12)" or "" */
	const char *text;
} WeftMessage;

uint32_t weft_nmessages(const Weft *);
/* The k-th; valid until the next call on the Weft. */
WeftMessage weft_message(const Weft *, uint32_t k);
/* All of them, one per line; "" when there are none. */
const char *weft_messages(Weft *);

/* ---- graphs ---- */

/* A model file (.pt2) or the text form of a graph (anything else). */
WeftGraph *weft_load(Weft *, const char *path);
typedef struct {
	uint32_t size; /* of this structure */
	/* Conditions on the inputs that PyTorch wrote into the file, by their text, that are not
	 * checked. A model with one that cannot be checked is refused otherwise; a text that is
	 * none of the file's is an error. */
	uint32_t nignore_guard;
	const char *const *ignore_guard;
	/* New names of the outputs, in order; as many as there are. NULL: the file's. */
	uint32_t noutput_name;
	const char *const *output_name;
	/* Of a model that draws random numbers (docs/random.md): the first seed of its state
	 * "weft.rng", u64[2] of seed and number of calls; or, with rng_input, an input of that name
	 * and type in place of the state, which every call is given. */
	uint64_t seed;
	bool rng_input;
} WeftLoadOptions;
WeftGraph *weft_load_with(Weft *, const char *path, const WeftLoadOptions *);
/* The same from memory: text form; name is used in messages. */
WeftGraph *weft_parse(Weft *, const char *text, const char *name);
/* The operators of a library that exports weft_ops (weft_op.h), for all graphs that this Weft loads
 * afterwards. The library stays loaded until weft_free. */
bool weft_op_load(Weft *, const char *path);
/* A transform or pass by name ("canon", "cse", ...), in place; false: unknown, or refused with a
 * message. */
bool weft_transform(Weft *, WeftGraph *, const char *name);
/* The loop on data of that name (as messages and weft_graph_text have it; where several have it,
 * all of them) has so many rounds at most: what gradients of it need, which keep values of each
 * round. They check it when they run. In place; false after a message: there is none. */
bool weft_bound_loop(Weft *, WeftGraph *, const char *node, int64_t rounds);
/* An independent copy. */
WeftGraph *weft_copy_graph(Weft *, const WeftGraph *);

/* ---- function transforms (docs/transforms.md) ---- */

/* Each returns a new graph, which is compiled, interpreted and transformed again like any other, in
 * any order and depth; the old one stays as it is. NULL after a message that names the node and
 * what to do, where something cannot be derived. State that the model replaces passes through: it
 * is computed once, and nothing is derived by it unless it is named. */
typedef struct {
	uint32_t size; /* of this structure */
	/* What is differentiated by, in any order: "inputs", all of a float or complex dtype;
	 * "params", the parameters of such a dtype that require gradients (no buffers;
	 * requires_grad of the file); "all-params", those that do not, too; or the name of an
	 * input, a parameter or a buffer. A parameter that the file has under several names is one:
	 * its gradient has the first. */
	uint32_t nwrt;
	const char *const *wrt;
	/* More inputs, by their place among weft_inputs. Neither names nor places: "inputs". */
	uint32_t ninput;
	const uint32_t *input;
	/* weft_vjp: the outputs that have cotangents, by their place among weft_outputs; 0: all of
	 * a float or complex dtype. */
	uint32_t noutput;
	const uint32_t *output;
	/* weft_vjp_split: how many bytes may be saved, at the sizes that the model hints at; 0..1:
	 * that part of what is saved without it, and 0 as little as can be. More is computed again
	 * then, contractions too. NULL: what is fastest. */
	const double *memory_budget;
} WeftGradOptions;
/* Gradients. Inputs: the model's, then a cotangent "ct.NAME" for each output NAME that has one, of
 * its type. Outputs: the model's, then "g.NAME" for each input in order, then for each parameter in
 * the file's order: the gradient of the sum over outputs of ct * y; of complex numbers as PyTorch
 * has it, dL/d re + i dL/d im of the real part of conj(ct) * y. Options NULL: all are 0. */
WeftGraph *weft_vjp(Weft *, const WeftGraph *, const WeftGradOptions *);
/* The same in two graphs, for training: *forward gives the model's outputs and further ones
 * saved.0, saved.1, ..., which hold what the gradients need of its values; *backward takes the
 * model's inputs, these, and the cotangents, and gives the gradients. What costs less to compute
 * again than to save is computed again. State that the model replaces is the forward's. saved.0 is
 * a number by which values that another model saved are refused, as are those of other sizes.
 * Neither is changed by the call; both are compiled as entries of one model (weft_join), which then
 * has its weights once. */
bool weft_vjp_split(Weft *, const WeftGraph *, const WeftGradOptions *, WeftGraph **forward, WeftGraph **backward);
/* The model with further outputs "inverse.NAME.K", f64[]: for each value K that goes into a block
 * NAME whose inverse is declared (weft_invertible in weft_trace.h) how far the one that the inverse
 * gives is away, at most over its elements. It is rounding where the inverse is right, and NaN
 * where a block is not invertible at these inputs. NULL after a message: there is no block. */
WeftGraph *weft_check_inverses(Weft *, const WeftGraph *);
/* Directional derivatives. Inputs: the model's, then a tangent "t.NAME" for each input and then
 * each parameter that is differentiated by. Outputs: the model's, then "jy.NAME" for each output of
 * a float or complex dtype. */
WeftGraph *weft_jvp(Weft *, const WeftGraph *, const WeftGradOptions *);
/* Members of a batch draw the same numbers, or each its own; else a model that draws some is
 * refused. As of torch.func.vmap. */
typedef enum { WEFT_RANDOM_ERROR, WEFT_RANDOM_SAME, WEFT_RANDOM_DIFFERENT } WeftRandomness;
enum { WEFT_NO_BATCH = INT32_MIN }; /* in place of a dimension: none, as None of PyTorch's */
typedef struct {
	uint32_t size; /* of this structure */
	/* The inputs that have a batch, by name and by place among weft_inputs; neither: all of
	 * them. The others are shared. */
	uint32_t nbatched;
	const char *const *batched;
	uint32_t ninput;
	const uint32_t *input;
	int64_t extent;     /* of the new dimension; 0: a new symbol, which may be 0 in a call */
	const char *symbol; /* its name; NULL: "batch". A number is appended where the model has one
	                       of that name */
	WeftRandomness randomness; /* of a model that draws random numbers */
	/* Where the batch stands, as in_dims and out_dims of torch.func.vmap: one number for all
	 * inputs that have one, or one for each of weft_inputs; counted among the dimensions with
	 * the batch, negative: from the last. WEFT_NO_BATCH: that input is shared, though it was
	 * not left out above. No numbers: first everywhere. */
	uint32_t nin_dim;
	const int32_t *in_dim;
	/* The same of weft_outputs. WEFT_NO_BATCH: that output is the same for all members, and
	 * given once; an error if it is not. */
	uint32_t nout_dim;
	const int32_t *out_dim;
} WeftVmapOptions;
/* The model for a batch of inputs: each that was chosen has a new dimension, and so has every
 * output. Inputs that the model writes keep it where it is. */
WeftGraph *weft_vmap(Weft *, const WeftGraph *, const WeftVmapOptions *);

/* ---- several entries ---- */

/* Graphs that become one model with several entries, such as `prefill` and `decode`: for
 * weft_compile, weft_emit, weft_jit, weft_loops, weft_plan, weft_transform and weft_graph_text
 * (which gives all of them). What is asked of one graph is asked of those that were joined; the
 * model's entries are in the order given here. A name is a C identifier ([A-Za-z_][A-Za-z0-9_]*),
 * each once; the entry of a graph that was not joined is "run". The graphs are of this Weft, not
 * joined themselves; they are copied, and what is done with them afterwards changes nothing here.
 * Constants with equal contents are stored once, whichever files they come from; where weights are
 * replaceable, only those of one name are, and it is an error if a name's contents differ. Sizes
 * called s0 in two files are different ones. NULL after a message.
 *
 * State is shared by its name: a parameter or buffer that one of the graphs writes is state in all
 * that have one of that name, even where it was a constant, and they see what was written. It is an
 * error if type or first contents differ. */
WeftGraph *weft_join(Weft *, uint32_t n, const char *const *name, WeftGraph *const *graph);
typedef struct {
	uint32_t size; /* of this structure */
	/* Names of state that is not shared: each entry that writes it has one of its own, called
	 * ENTRY.NAME; in others it stays a constant. */
	uint32_t nprivate;
	const char *const *private_state;
	/* State that is shared under two names, "a.x=b.y": y of entry b is x of entry a, and called
	 * so. */
	uint32_t nsame;
	const char *const *same_state;
} WeftJoinOptions;
WeftGraph *weft_join_with(Weft *, uint32_t n, const char *const *name, WeftGraph *const *graph, const WeftJoinOptions *);

/* ---- inspect ---- */

/* The graph's text form; after: the pass to stop after (the graph itself is not changed), NULL: as
 * is. */
const char *weft_graph_text(Weft *, const WeftGraph *, const char *after);
/* The graph in the language of graphviz. */
const char *weft_graph_dot(Weft *, const WeftGraph *, const char *after);
/* The passes in order, NULL-terminated. */
const char *const *weft_passes(void);
const WeftTensorInfo *weft_inputs(Weft *, const WeftGraph *, uint32_t *n);
const WeftTensorInfo *weft_outputs(Weft *, const WeftGraph *, uint32_t *n);
/* Parameters and buffers that the graph replaces: what an instance of the compiled model owns. */
const WeftTensorInfo *weft_states(Weft *, const WeftGraph *, uint32_t *n);
const WeftSymbolInfo *weft_symbols(Weft *, const WeftGraph *, uint32_t *n);
/* Conditions on symbols that are checked at entry, as text. */
const char *const *weft_guards(Weft *, const WeftGraph *, uint32_t *n);
typedef struct {
	const char *name; /* "aten.conv2d" */
	uint32_t count;
} WeftOpCount;
/* Sorted by count, then name. */
const WeftOpCount *weft_operators(Weft *, const WeftGraph *, uint32_t *n);
uint64_t weft_weight_bytes(const WeftGraph *);
/* The extents of input k when the symbols (in the order of weft_symbols) have these values. */
bool weft_input_shape(Weft *, const WeftGraph *, uint32_t k, const int64_t *symbol, int64_t *shape);

/* ---- interpret ---- */

/* Run the reference interpreter. Inputs are row-major. The outputs (weft_outputs gives their
 * number) are row-major and belong to the Weft until weft_release. State has its first contents. */
bool weft_interpret(Weft *, WeftGraph *, const WeftTensor *inputs, uint32_t n, WeftTensor *outputs);
/* The same with state that lasts: the caller's row-major tensors, as weft_states lists them. They
 * are read, and hold the new values if it succeeds. */
bool weft_interpret_on(Weft *, WeftGraph *, const WeftTensor *state, const WeftTensor *inputs, uint32_t n, WeftTensor *outputs);
/* Fill such tensors with the first contents. */
bool weft_first_state(Weft *, const WeftGraph *, const WeftTensor *state);
/* Free the outputs of all interpretations so far. */
void weft_release(Weft *);

/* ---- targets ---- */

/* What a model can be compiled for; docs/targets.md says what the fields mean. Texts are "" where
 * there is nothing to say. */
typedef struct {
	const char *name, *triple, *cpu, *attributes, *attribute_features, *features, *flags, *masks;
	uint32_t vector_bytes, registers, l1, l2, threads, page;
	bool fma, f16, masked_memory, gathers;
	bool runs_here;   /* this processor has its features */
	bool native;      /* the one that "native" means here */
	bool has_runtime; /* the runtime for its triple is within this compiler, as the LLVM back
	                     end needs */
	const char *machine; /* whose costs it assumes */
} WeftTargetInfo;
/* The table of targets, or the one target that `name` (or a file) describes. They live until
 * weft_free. NULL after a message. */
const WeftTargetInfo *weft_targets(Weft *, const char *name, uint32_t *n);

/* ---- compile ---- */

typedef enum {
	WEFT_WEIGHTS_EMBED, /* within the shared object */
	WEFT_WEIGHTS_FILE   /* MODEL.weights beside it, page-aligned, mapped when opened */
} WeftWeights;

typedef void (*WeftProgress)(void *user, const char *phase, uint32_t done, uint32_t total);

typedef enum {
	WEFT_BACKEND_DEFAULT, /* LLVM where this build has it and the runtime for the target; C
	                         where it has not, and with the option cc */
	WEFT_BACKEND_C,       /* C text, and a C compiler */
	WEFT_BACKEND_LLVM     /* objects by LLVM, and a linker */
} WeftBackend;
/* The LLVM back end of this build (weft_llvm.so) is there: in $WEFT_LLVM_FOLDER where that is set,
 * else beside libweft.so or the program that this code is linked into, or in the folder weft beside
 * libweft.so, else where weft was installed. WeftOptions.llvm_folder names another place for one
 * compilation. The first one that is needed stays for the life of the process. */
bool weft_has_llvm(void);

typedef struct {
	uint32_t size;      /* of this structure */
	const char *target; /* "native" (NULL), "x86-64-v3", "generic-c", "target.json";
	                       "x86-64-v2,v3,v4": one file with code for several levels, chosen when
	                       it is loaded (docs/targets.md) */
	WeftWeights weights;
	bool replaceable; /* parameters can be replaced at run time, by set_weights; costs a model
	                     that does not nothing but code */
	bool op_by_op;    /* no fusion: each operator is a kernel of its own */
	bool no_cache;    /* C: do not look into or add to the cache of objects */
	uint32_t jobs;         /* compiler processes at once; 0: one per processor */
	const char *cc;        /* C: the compiler; NULL: $CC, else cc */
	const char *symbol;    /* name of the exported function; NULL: weft_model */
	const char *name;      /* of the model; NULL: from the file name */
	const char *dump;      /* record the graph after this pass for weft_dump; "all" */
	WeftProgress progress; /* may be NULL */
	void *progress_user;
	WeftBackend backend; /* of weft_compile; weft_emit and weft_jit know theirs */
	const char *llvm_folder; /* where weft_llvm.so lies; NULL: see weft_has_llvm */
	const char *tune;    /* the machine whose costs decide: "zen4", "skylake-x", "machine.json";
	                        NULL: the one that the target assumes (docs/targets.md) */
	bool duplicate_weights; /* each kernel has its large constants in the layout that is best
	                           for it, though the file holds one several times then */
	uint32_t nlink;          /* of the functions of user operators (weft_op.h), which a shared
	                            object is linked with: */
	const char *const *link; /* files ("ops/libmylib.so", "mylib.a"), or names as a linker's -l
	                            takes them ("mylib") */
} WeftOptions;

typedef enum {
	WEFT_EMIT_C,
	WEFT_EMIT_HEADER,
	WEFT_EMIT_IR,
	WEFT_EMIT_PROGRAM,
	WEFT_EMIT_LOOPS,     /* of the kernels, as emitters get them */
	WEFT_EMIT_SCHEDULES, /* the same before they were made of what the target has */
	WEFT_EMIT_OBJECT,  /* by LLVM: kernels, tables and weights as one relocatable object,
	                      without runtime */
	WEFT_EMIT_ARCHIVE, /* that and the runtime as a static library */
	WEFT_EMIT_LLVM,    /* IR text, before optimisation */
	WEFT_EMIT_ASM
} WeftEmit;

/* Write a shared object (whole or not at all). */
bool weft_compile(Weft *, const WeftGraph *, const WeftOptions *, const char *path);
/* Write something else: a folder for WEFT_EMIT_C, else a file. */
bool weft_emit(Weft *, const WeftGraph *, const WeftOptions *, WeftEmit, const char *path);
/* Compile into this process by the LLVM back end: no file is written, no program started. NULL
 * after a message. The result is used like the one that weft_model() of a shared object returns;
 * its `open` needs no WeftOpen, the weights are in memory. Code and weights belong to the Weft:
 * close all instances, then weft_free. Several models of one Weft live side by side, and threads
 * may run them, as weft_model.h says, while the Weft compiles another one. Of the options, `target`
 * must be one that runs here (WeftTargetInfo), and is refused otherwise; `weights`, `no_cache`,
 * `cc`, `symbol` and `backend` change nothing. */
const WeftModel *weft_jit(Weft *, const WeftGraph *, const WeftOptions *);
/* The model executed by the interpreter of loop IR, which neither compiles nor needs LLVM: for
 * tests of the compiler. The results have the bits of compiled code, and what that would do
 * silently is an error: an access out of bounds, memory that is read before it is written or
 * outside its buffer's life, tasks that disturb each other (HACKING.md). Used like the result of
 * weft_jit, but only by the thread that uses the Weft, and on one thread whatever the context says.
 * Any one target will do. `sizes` and `run` fail with WEFT_ERR_CHECK for what is found, and for
 * more work than 10^8 statements. */
const WeftModel *weft_loops(Weft *, const WeftGraph *, const WeftOptions *);
/* What the dump option asked for, in the last compilation. */
const char *weft_dump(Weft *);

/* A schedule that did not take a kernel, and the reason. near: the kernel has the form that the
 * schedule computes, and only an index, a size or a predicted cost spoke against the schedule. */
typedef struct {
	const char *schedule, *why;
	bool near;
} WeftRefusal;

typedef struct {
	const char *name, *algorithm, *function; /* of the call; the distinct kernel it runs */
	/* Of one run, all launches together (a kernel in a loop has one in each iteration; of a
	 * loop on data one iteration is counted, and both branches). Operations: two for each
	 * product that joins a sum, one for each element of other steps that compute. Bytes: what a
	 * launch reads and writes, each element once; of a table, the rows that the indices
	 * select. */
	double flops, bytes, launches;
	const char *why; /* of the algorithm; NULL: not known, as of a shared object */
	uint32_t nrefused;
	const WeftRefusal *refused;
	double seconds; /* predicted, of all launches, by one core of the machine it is tuned for;
	                   0: not known */
	const char *stored; /* why its result is stored, and not computed in the kernel that reads
	                       it; NULL: it only copies, or it is not known */
	const char *line; /* of the model's source, as WeftCallInfo's */
	uint32_t nline;
} WeftKernelInfo;

typedef struct {
	const char *name; /* "lower", "cc", ... */
	double seconds;
} WeftPhaseTime;

/* Of one entry; see WeftReport. */
typedef struct {
	const char *name;
	uint32_t operators, nkernel;
	const WeftKernelInfo *kernel;
	double flops, bytes;
	uint64_t workspace_bytes, saved_bytes;
} WeftEntryReport;

/* Of state. The texts name entries, "prefill, decode"; "" where there are none. */
typedef struct {
	const char *name;
	uint64_t bytes;
	const char *written_by, *read_by; /* read_by: those that do not write it */
	const char *constant_in; /* of those: where it would be a constant, if another entry did not
	                            write it. There it is read as it is, not packed for the kernels
	                            that read it */
} WeftStateReport;

/* What the last compilation of this Weft did. */
typedef struct {
	uint32_t operators, kernels, distinct, objects,
		cached; /* calls; translation units, of them cached */
	double flops;
	uint64_t weight_bytes, workspace_bytes, code_bytes;
	uint32_t nphase;
	const WeftPhaseTime *phase;
	uint32_t nkernel;
	const WeftKernelInfo *kernel;
	double bytes; /* of all kernels, as `flops` */
	uint64_t copied_bytes; /* of weight_bytes: constants in a second layout */
	uint64_t state_bytes;
	uint64_t saved_bytes; /* of workspace_bytes: state as it was, for calls that fail after they
	                         replaced some */
	uint32_t nentry;
	const WeftEntryReport *entry; /* each for itself: the counts above are of all entries, each
	                                 run once; of workspace and saved state they are the most */
	uint32_t nstate;
	const WeftStateReport *state;
} WeftReport;
/* Counts are those at the sizes seen while exporting. NULL: none yet. */
const WeftReport *weft_report(Weft *);
/* The same with the counts at other sizes: symbol[k] is the value of the k-th of weft_symbols (and
 * of WeftEntry.symbol, the first slots of a WeftSizes), n their number; of several entries one
 * after the other. It lives until weft_free. NULL after a message: nothing was compiled, another
 * number of symbols, or a value out of a symbol's range. */
const WeftReport *weft_report_at(Weft *, const int64_t *symbol, uint32_t n);
/* Kernels with algorithm and reason, without running a C compiler; see weft_report. */
bool weft_plan(Weft *, const WeftGraph *, const WeftOptions *);

/* ---- ending early ---- */

/* For the handler of a signal that ends the process: end the compilers and linkers that this
 * process runs and remove the temporary files of its compilations. Async-signal-safe. The process
 * must end next: compilations under way are not usable any more, and may not return. */
void weft_abandon(void);
/* A file or folder of the caller that weft_abandon removes as well, until weft_not_temporary with
 * the same pointer; the text must not change or go meanwhile. Call it before making the file. */
void weft_temporary(const char *path);
void weft_not_temporary(const char *path);

/* ---- tensor files ---- */

typedef struct WeftTensors WeftTensors;

/* .safetensors, .npz or .npy (one tensor named after the file), by extension. Complex tensors
 * stored as real pairs and listed in the metadata become complex. */
WeftTensors *weft_tensors_read(Weft *, const char *path);
WeftTensors *weft_tensors_new(Weft *);
uint32_t weft_tensors_count(const WeftTensors *);
const char *weft_tensors_name(const WeftTensors *,
			      uint32_t k); /* numbers in names sort as numbers */
const WeftTensor *weft_tensors_at(const WeftTensors *, uint32_t k);
const WeftTensor *weft_tensors_find(const WeftTensors *, const char *name);
const char *weft_tensors_meta(const WeftTensors *, const char *key);
/* The tensor's data must live until the file is written. Each name once. */
bool weft_tensors_add(Weft *, WeftTensors *, const char *name, const WeftTensor *);
bool weft_tensors_write(Weft *, const WeftTensors *,
			const char *path); /* .safetensors, .npz, .npy */

/* Write a file as the functions above do: whole or not at all, through symbolic links, into what is
 * no regular file (a device, a FIFO, /dev/stdout), and never over a model or a target file that
 * this Weft has read. */
bool weft_write_file(Weft *, const char *path, const void *data, size_t n);

#ifdef __cplusplus
}
#endif
#endif
