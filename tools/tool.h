/* What the subcommands of `weft` share. Each returns an exit status: 0, or 1 after a message on
 * stderr. */
#ifndef WEFT_TOOLS_TOOL_H
#define WEFT_TOOLS_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#include "weft.h"

typedef struct {
	const char *name, *summary, *usage, *help;
	int (*run)(int argc, char **argv);
} Command;

extern const Command command_compile, command_run, command_check, command_bench, command_show;

/* ---- options ---- */

enum { MOST_THREADS = 4096 };

typedef enum {
	OPT_FLAG,
	OPT_STRING,
	OPT_MAYBE, /* --name or --name=VALUE; "" without */
	OPT_INT,
	OPT_LIST /* may be given several times */
} OptKind;

enum { MAX_LIST = 64 };
typedef struct {
	const char *item[MAX_LIST];
	uint32_t n;
} StringList;

typedef struct {
	const char *name; /* "--threads" or "-j" */
	OptKind kind;
	void *to; /* bool *, const char **, the same, int * (1 to MOST_THREADS), StringList * */
} Opt;

/* Take options out of argv (the command's name is argv[0]); positional arguments stay, their number
 * in *argc. False after a message, or with *argc == -1 after --help was answered. */
bool options_parse(const Command *, const Opt *, int *argc, char **argv);
/* Both are there and are one file, whatever their names. */
bool same_file(const char *, const char *);
/* False after a message: the output is the input (NULL: there is none), and would be
 * overwritten. */
bool keep_input(const char *output, const char *input);
/* What the commands that read model files have in common. */
typedef struct {
	StringList entry, file; /* NAME=FILE of those that are joined; none: there is one file */
	StringList private_state, same_state; /* of those that are joined */
	StringList ignore_guard, ops;
	StringList loop_bound; /* "NODE=N", of several NAME=NODE=N */
	StringList output_names; /* "a,b"; these two of several are NAME=TEXT */
	const char *seed, *rng;  /* of random numbers */
} LoadArgs;
#define LOAD_OPTIONS(a)                                                                            \
	{"--ignore-guard", OPT_LIST, &(a)->ignore_guard},                                              \
	{"--loop-bound", OPT_LIST, &(a)->loop_bound},                                                  \
	{"--ops", OPT_LIST, &(a)->ops},                                                                \
	{"--private", OPT_LIST, &(a)->private_state},                                                  \
	{"--state", OPT_LIST, &(a)->same_state},                                                       \
	{"--seed", OPT_STRING, &(a)->seed},                                                            \
	{"--rng", OPT_STRING, &(a)->rng},                                                              \
	{                                                                                              \
		"--output-names", OPT_LIST, &(a)->output_names                                             \
	}
#define LOAD_HELP                                                                                  \
	"  --ops LIBRARY        operators of the user, of a shared library that exports weft_ops\n"      \
	"                       (may be repeated; weft_op.h)\n"                                          \
	"  --ignore-guard TEXT  do not check this condition on the inputs, which weft cannot\n"        \
	"                       express (may be repeated)\n"                                           \
	"  --loop-bound NODE=N  most rounds of that loop on data, for gradients (may be repeated)\n"        \
	"  --output-names A,B   call the outputs so (of several models NAME=A,B; of --ignore-guard\n"        \
	"                       NAME=TEXT)\n"                                                           \
	"  --private TENSOR     of several models: state of that name is not shared (may be repeated)\n"   \
	"  --state A.X=B.Y      of several models: state Y of B is X of A (may be repeated)\n"             \
	"  --seed N             of random numbers, the state weft.rng (default 0)\n"                        \
	"  --rng state|input    whether weft.rng is state or an input\n"
/* It is NAME=FILE, NAME an identifier; not, if there is a file of that whole name. */
bool is_entry(const char *arg);
/* Cuts the argument in two, which must live on. False after a message. */
bool add_entry(LoadArgs *, char *arg);
/* Those of argv are taken out of it. False after a message: there are others beside them. */
bool take_entries(LoadArgs *, int *argc, char **argv);
/* The file of the entry that was chosen; NULL: the only one. NULL after a message: no such entry,
 * or several. */
const char *entry_file(const LoadArgs *, const char *entry);
/* The file, or those of a->entry joined; in one[], which may be NULL, the graph of each. NULL after
 * a message, of the Weft or printed. The arguments may be NULL. */
WeftGraph *load_model(Weft *, const char *path, const LoadArgs *, WeftGraph **one);
bool load_args_given(const LoadArgs *);
/* What has the operators here has their functions: shared objects for this process are linked with
 * it. */
void link_with_ops(WeftOptions *, const LoadArgs *);

/* "1,2" -> numbers from 1 to MOST_THREADS; their count, 0 after a message. */
int parse_list(const char *what, const char *text, int *out, int max);
/* "weft: " and the text and a line break, on stderr; returns 1. */
int fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* That a file cannot be opened, as the library says it, by errno; returns 1. */
int fail_open(const char *path);
/* The messages of a Weft on stderr; returns 1. */
int fail_messages(Weft *);

/* In a child process: end when the parent does. */
void die_with_parent(void);
/* From now on SIGINT, SIGTERM and SIGHUP remove temporary files before they end the process. */
void signals_init(void);

/* Print the targets there are, or the one of that name or file; an exit status. */
int show_targets(const char *name, bool json);

/* ---- JSON ---- */

/* A JSON value written piece by piece; commas are its business. */
typedef struct {
	FILE *f;
	int depth;
	bool comma;
} Json;

/* As within a JSON string: ASCII, without control characters. */
void print_escaped(FILE *, const char *);
void json_open(Json *, const char *key, char bracket); /* key NULL in lists; '{' or '[' */
void json_close(Json *, char bracket);
void json_string(Json *, const char *key, const char *value);
void json_number(Json *, const char *key, double value);
void json_bool(Json *, const char *key, bool value);

/* ---- executing a model ---- */

/* How a model file is executed. */
typedef enum {
	RUN_DEFAULT, /* RUN_JIT where there is LLVM, else RUN_C; for a runner the default of weft
	                compile */
	RUN_JIT,
	RUN_C,    /* as a temporary shared object, by a C compiler */
	RUN_LLVM, /* the same, by LLVM and a linker */
	RUN_LOOPS, /* the loop IR interpreted */
	RUN_INTERP
} RunBackend;
/* The value of --backend; NULL: RUN_DEFAULT. False after a message. */
bool parse_backend(const char *, RunBackend *);
/* What RUN_DEFAULT means here; others are themselves. */
RunBackend backend_resolve(RunBackend);
/* One line, once in a process and its children, where the default is a C compiler because LLVM is
 * not found. */
void backend_note(RunBackend);

/* A function transform of the model, and the names that files have for what it takes and gives
 * (mode.c). */
typedef enum { MODE_NONE, MODE_VJP, MODE_JVP, MODE_VMAP } Mode;
typedef struct {
	Mode mode;
	const char *wrt; /* "inputs,params,NAME"; NULL: what the file says */
	bool compares;   /* with a file of references, whose gradients say what is differentiated
	                    by */
	const WeftTensors *file; /* what it holds is what is asked for */
	const char *path;        /* of it */
	const char *randomness;  /* of vmap: "error", "same", "different"; NULL: the first */
	const char *in_dims, *out_dims; /* of vmap: "0,none,-1"; NULL: 0 */
} ModeArgs;
/* by_default: what is differentiated by without --wrt, lines of a paragraph. */
#define MODE_HELP(by_default)                                                                      \
	"  --mode vjp|jvp|vmap  of the model transformed: gradients g.<i> of the inputs from cotangents ct.<i> of the\n" \
	"                       outputs; tangents jy.<i> of the outputs from tangents t.<i> of the inputs; results vy.<i>\n" \
	"                       of a batch of inputs vx.<i>, where others are x.<i>. Cotangents and tangents that are not\n" \
	"                       there are zero; of a model whose output 0 is one number, a loss, without any its is 1\n" \
	"  --wrt LIST           what is differentiated by: inputs, params (gradients gp.NAME, tangents tp.NAME), or names,\n" \
	"                       with commas between " by_default                                        \
	"  --randomness KIND    of vmap: random numbers are an error (default), same, or different\n" \
	"  --in-dims LIST, --out-dims LIST  of vmap: which dimension of a vx.<i> and a vy.<i> is the batch (0), one number\n" \
	"                       for all or one for each; negative: from the last; none: it has none\n"
/* The values of --mode and --wrt; NULL: none. False after a message. */
bool parse_mode(const char *mode, const char *wrt, ModeArgs *);
/* A file of references has some for it. */
bool mode_has_reference(Mode, const WeftTensors *);

/* The model, and entries forward_saving and backward for it; wrt: as ModeArgs.wrt, "" for inputs
 * and parameters. NULL after a message, of the Weft or printed. */
WeftGraph *with_gradients(Weft *, WeftGraph *, const char *wrt, const char *budget);

/* What files call a tensor: KIND.<k>, or KIND.NAME where there is a name. */
typedef struct {
	const char *kind;
	uint32_t k;
	const char *name;
} TensorKey;
/* Of a file with several calls "CALL.KIND.<k>"; call -1: it has none. */
void key_text(const TensorKey *, int call, char *out, size_t n);

typedef struct {
	RunBackend backend;
	const ModeArgs *mode;       /* for model files; NULL: as it is */
	const char *remote;         /* command that runs a shared object elsewhere; NULL: in this
	                               process */
	bool share_all;             /* WEFT_SHARE_ALL */
	const WeftOptions *compile; /* for model files; NULL: defaults */
	const LoadArgs *load;       /* the same */
	const char *entry;          /* NULL: the only one */
	bool any_entry;             /* the first, where there are several */
	bool verify;                /* compare the checksum of weights in a file */
} RunnerOptions;

typedef struct {
	Weft *w;
	WeftGraph *g;   /* NULL for a shared object */
	WeftGraph *one; /* that is the entry */
	const char *path; /* of what was opened */
	const char *want; /* of the entry; NULL: the only one */
	bool any;         /* or the first of several */
	uint32_t which;   /* entry of the model */
	bool interp;
	const char *remote;
	char folder[4000]; /* of model.so for the remote program; "": none */
	void *so;
	const WeftModel *model;
	const WeftEntry *entry;
	WeftInstance *instance;
	bool share_all;
	WeftSizes *sizes;
	void *work;
	uint64_t work_bytes;
	const WeftTensorInfo *input, *output;
	uint32_t ninput, noutput;
	WeftTensor *result; /* of the last call */
	const WeftTensorInfo *state_info; /* of the interpreter */
	WeftTensor *state;
	uint32_t nstate;
	/* Of --mode; NULL: inputs are x.<i> and outputs y.<i>. */
	TensorKey *in_key, *out_key;
	WeftTensor *fill; /* by input: what stands for one that a file has not */
	const WeftTensorInfo *given; /* what the transformed graph gives, ngiven of them */
	uint32_t ngiven;
	bool ct_is_one;   /* the cotangent of output 0 that files do not have */
} Runner;

/* A model file or a shared object. Each false after messages on stderr. */
bool runner_open(Runner *, const char *path, const RunnerOptions *);
/* Solve sizes and allocate outputs (r->result) and workspace. */
bool runner_prepare(Runner *, const WeftTensor *inputs);
/* Execute; r->result holds the outputs until the next prepare. */
bool runner_call(Runner *, const WeftTensor *inputs, int threads, WeftProfile, void *user);
/* State as it was at first; of models that have some. */
bool runner_reset(Runner *);
void runner_close(Runner *);
/* Elements of tables; m: the model that they are of, which another weft may have made; NULL: this
 * one's own, as of graphs. */
const WeftTensorInfo *tensor_info(const WeftModel *m, const WeftTensorInfo *first, uint32_t k);
const WeftDim *tensor_dim(const WeftModel *m, const WeftTensorInfo *, uint32_t d);
/* Of a runner. */
const WeftTensorInfo *runner_input(const Runner *, uint32_t k);
const WeftTensorInfo *runner_output(const Runner *, uint32_t k);
/* Of runner_call, for r->remote: write the inputs, run the command, read r->result. */
bool remote_call(Runner *, const WeftTensor *inputs, int threads);
/* The inputs x.0, x.1, ... or by name. False after a message naming the missing one. */
bool runner_inputs(Runner *, const WeftTensors *, const char *file, WeftTensor *out);
/* How many calls, one after the other, a file has tensors for: 0.x.0, 1.x.0, ...; 0: they are not
 * numbered. */
int runner_calls(const WeftTensors *);
/* Inputs of one of them; what a later one does not have stays. False after a message. */
bool runner_call_inputs(Runner *, const WeftTensors *, const char *file, int call, WeftTensor *in);
bool is_shared_object(const char *path);
/* Input k by the name that files have for it, or its own. NULL: there is none. */
const WeftTensor *runner_find_input(const Runner *, const WeftTensors *, int call, uint32_t k);

/* Transform r->one, of which nothing is known to the runner yet. False after a message. */
bool mode_apply(Runner *, const ModeArgs *);
void mode_close(Runner *);
TensorKey runner_input_key(const Runner *, uint32_t k);
/* False: it is an input that the model writes, for which files have no name. */
bool runner_output_key(const Runner *, uint32_t k, TensorKey *);
/* For an input that the file has not: zeros, if it is a cotangent or tangent. NULL after a
 * message. */
const WeftTensor *runner_absent(Runner *, uint32_t k, const WeftTensors *, const char *path, int call);

/* State (state.c): of a compiled model, or of the interpreter between its calls. */
uint32_t runner_nstate(const Runner *);
const WeftTensorInfo *runner_state(const Runner *, uint32_t k);
/* Copied into memory for it. False after a message. */
bool runner_get_state(const Runner *, uint32_t k, const WeftTensor *);
/* From a file with a tensor for each, named like it, and into one. False after a message. */
bool runner_load_state(Runner *, Weft *, const char *path);
bool runner_save_state(Runner *, Weft *, const char *path);
/* Of the interpreter: the first contents; free it. */
bool runner_begin_state(Runner *);
void runner_end_state(Runner *);

/* ---- numbers ---- */

int64_t numel_of(const WeftTensor *);
uint64_t bytes_of(const WeftTensor *); /* bytes */
/* Element i of a row-major tensor; complex: of the pairs, so numel is twice as large. */
double value_at(const WeftTensor *, int64_t i);
int64_t values_of(const WeftTensor *); /* values: pairs count twice */
const char *dtype_text(WeftDType, char buf[16]);
double now(void);
/* The most memory that this process had at once. */
double peak_bytes(void);
/* 12345678 -> "12.3 M" and the like, units of 1000. */
const char *human(double v, char buf[32]);
/* "model.py:31 in encoder.0 (+3 lines)", on stdout; nothing where it is not known. */
void print_lines(const WeftKernelInfo *);
/* What the table of a model says of a call; one of an older weft says less. */
WeftKernelInfo call_info(const WeftModel *, const WeftCallInfo *);

#endif
