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
	StringList mode;         /* "train" or "eval", of several NAME=train */
	const char *seed, *rng;  /* of random numbers */
} LoadArgs;
#define LOAD_OPTIONS(a)                                                                            \
	{"--ignore-guard", OPT_LIST, &(a)->ignore_guard},                                              \
	{"--loop-bound", OPT_LIST, &(a)->loop_bound},                                                  \
	{"--ops", OPT_LIST, &(a)->ops},                                                                \
	{"--set-mode", OPT_LIST, &(a)->mode},                                                          \
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
	"  --set-mode train|eval  the graph of the model in that mode (docs/transforms.md)\n"                 \
	"  --output-names A,B   call the outputs so (of several models NAME=A,B; of --ignore-guard\n"        \
	"                       NAME=TEXT)\n"                                                           \
	"  --private TENSOR     of several models: state of that name is not shared (may be repeated)\n"   \
	"  --state A.X=B.Y      of several models: state Y of B is X of A (may be repeated)\n"             \
	"  --seed N             of random numbers, the state weft.rng (default 0)\n"                        \
	"  --rng state|input    whether weft.rng is state or an input\n"
/* Whether the argument is NAME=FILE with an identifier NAME, and no file has that whole name. */
bool is_entry(const char *arg);
/* Adds an entry NAME=FILE; cuts the argument, which must stay valid, in two. Returns false after a
 * message. */
bool add_entry(LoadArgs *, char *arg);
/* Moves all NAME=FILE from argv into the LoadArgs. Returns false after a message: argv has other
 * arguments besides. */
bool take_entries(LoadArgs *, int *argc, char **argv);
/* The file of an entry; NULL: of the only one. Returns NULL after a message: no such entry, or
 * several. */
const char *entry_file(const LoadArgs *, const char *entry);
/* Loads a model file, or the files of a->entry, which are joined. one[], which may be NULL,
 * receives the graph of each. Arguments may be NULL. Returns NULL after a message, of the Weft or
 * printed. */
WeftGraph *load_model(Weft *, const char *path, const LoadArgs *, WeftGraph **one);
bool load_args_given(const LoadArgs *);
/* Links shared objects for this process with the library of user operators. */
void link_with_ops(WeftOptions *, const LoadArgs *);

/* Parses "1,2" into numbers from 1 to MOST_THREADS. Returns their count, 0 after a message. */
int parse_list(const char *what, const char *text, int *out, int max);
/* Prints "weft: ", the text and a line break on stderr. Returns 1. */
int fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints that a file cannot be opened, with the reason of errno. Returns 1. */
int fail_open(const char *path);
/* Prints the messages of a Weft on stderr. Returns 1. */
int fail_messages(Weft *);

/* In a child process: ends it when the parent ends. */
void die_with_parent(void);
/* Makes SIGINT, SIGTERM and SIGHUP remove temporary files before they end the process. */
void signals_init(void);

/* Loads libraries of back ends. Returns false after messages of the Weft. */
bool load_backends(Weft *, const StringList *);
/* Prints the back ends there are, those of libraries too. Returns an exit status. */
int show_backends(const StringList *libraries, bool json);
/* Prints all targets, or the one of that name or file. Returns an exit status. */
int show_targets(const char *name, bool json);

/* ---- JSON ---- */

/* Writes a JSON value piece by piece, with commas and indentation. */
typedef struct {
	FILE *f;
	int depth;
	bool comma;
} Json;

/* Prints a text as in a JSON string: ASCII, without control characters. */
void print_escaped(FILE *, const char *);
void json_open(Json *, const char *key, char bracket); /* key NULL in lists; '{' or '[' */
void json_close(Json *, char bracket);
void json_string(Json *, const char *key, const char *value);
void json_number(Json *, const char *key, double value);
void json_bool(Json *, const char *key, bool value);

/* ---- executing a model ---- */

/* How a model file is executed. */
typedef enum {
	RUN_DEFAULT, /* RUN_JIT if there is LLVM, else RUN_C; for a runner, the default of weft
	                compile */
	RUN_JIT,
	RUN_C,    /* a temporary shared object, by a C compiler */
	RUN_LLVM, /* a temporary shared object, by LLVM and a linker */
	RUN_LOOPS, /* the interpreter of loop IR */
	RUN_INTERP
} RunBackend;
/* Parses the value of --backend; NULL: RUN_DEFAULT. Returns false after a message. */
bool parse_backend(const char *, RunBackend *);
/* The back end that RUN_DEFAULT means here; others stay. */
RunBackend backend_resolve(RunBackend);
/* Prints a line, once in a process and its children, if the default is a C compiler because LLVM is
 * not found. */
void backend_note(RunBackend);

/* A function transform of the model, and the names that files have for its inputs and outputs
 * (mode.c). */
typedef enum { MODE_NONE, MODE_VJP, MODE_JVP, MODE_VMAP } Mode;
typedef struct {
	Mode mode;
	const char *wrt; /* "inputs,params,NAME"; NULL: as the file says */
	bool compares;   /* the run compares with a file of references, whose gradients say by what
	                    the model is differentiated */
	const WeftTensors *file; /* the file of inputs or references */
	const char *path;        /* the path of `file` */
	const char *randomness;  /* of vmap: "error", "same", "different"; NULL: the first */
	const char *in_dims, *out_dims; /* of vmap: "0,none,-1"; NULL: 0 */
} ModeArgs;
/* by_default: the default of --wrt, lines of a paragraph. */
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
/* Parses the values of --mode and --wrt; NULL: none. Returns false after a message. */
bool parse_mode(const char *mode, const char *wrt, ModeArgs *);
/* Whether a file of references has some for the mode. */
bool mode_has_reference(Mode, const WeftTensors *);

/* Joins the model with entries forward_saving and backward. wrt: as ModeArgs.wrt; "": inputs and
 * parameters. Returns NULL after a message, of the Weft or printed. */
WeftGraph *with_gradients(Weft *, WeftGraph *, const char *wrt, const char *budget);

/* The name of a tensor in files: KIND.<k>, or KIND.NAME if `name` is set. */
typedef struct {
	const char *kind;
	uint32_t k;
	const char *name;
} TensorKey;
/* Writes the name to out[n]; for a file with several calls "CALL.KIND.<k>". call -1: one call. */
void key_text(const TensorKey *, int call, char *out, size_t n);

typedef struct {
	RunBackend backend;
	const ModeArgs *mode;       /* for model files; NULL: no transform */
	const char *remote;         /* a command that runs a shared object elsewhere; NULL: run in
	                               this process */
	bool share_all;             /* WEFT_SHARE_ALL */
	const WeftOptions *compile; /* for model files; NULL: defaults */
	const LoadArgs *load;       /* for model files; NULL: defaults */
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

/* Opens a model file or a shared object. This function and the next ones return false after
 * messages on stderr. */
bool runner_open(Runner *, const char *path, const RunnerOptions *);
/* Solves sizes, and allocates outputs (r->result) and the workspace. */
bool runner_prepare(Runner *, const WeftTensor *inputs);
/* Executes the model; r->result has the outputs until the next runner_prepare. */
bool runner_call(Runner *, const WeftTensor *inputs, int threads, WeftProfile, void *user);
/* Sets state to its initial contents, if the model has state. */
bool runner_reset(Runner *);
void runner_close(Runner *);
/* Element k of an array of WeftTensorInfo, dimension d of one. m: the model whose table it is,
 * perhaps made by another version of weft; NULL: an array of this version, as of a graph. */
const WeftTensorInfo *tensor_info(const WeftModel *m, const WeftTensorInfo *first, uint32_t k);
const WeftDim *tensor_dim(const WeftModel *m, const WeftTensorInfo *, uint32_t d);
/* Input and output k of a runner. */
const WeftTensorInfo *runner_input(const Runner *, uint32_t k);
const WeftTensorInfo *runner_output(const Runner *, uint32_t k);
/* runner_call for r->remote: writes the inputs, runs the command, reads r->result. */
bool remote_call(Runner *, const WeftTensor *inputs, int threads);
/* Fills in out[]: the inputs x.0, x.1, ..., or by name. Returns false after a message that names
 * the missing one. */
bool runner_inputs(Runner *, const WeftTensors *, const char *file, WeftTensor *out);
/* The number of calls for which a file has tensors 0.x.0, 1.x.0, ...; 0: they are not numbered. */
int runner_calls(const WeftTensors *);
/* Fills in in[]: the inputs of one call; inputs that the file does not have keep the value of the
 * call before. Returns false after a message. */
bool runner_call_inputs(Runner *, const WeftTensors *, const char *file, int call, WeftTensor *in);
bool is_shared_object(const char *path);
/* Input k in the file, by the name that files have for it, or by its own; NULL: there is none. */
const WeftTensor *runner_find_input(const Runner *, const WeftTensors *, int call, uint32_t k);

/* Transforms r->one, before the runner knows anything of it. Returns false after a message. */
bool mode_apply(Runner *, const ModeArgs *);
void mode_close(Runner *);
TensorKey runner_input_key(const Runner *, uint32_t k);
/* Returns false for the new value of an input that the model writes: files have no name for it. */
bool runner_output_key(const Runner *, uint32_t k, TensorKey *);
/* The value of an input that the file does not have: zeros for a cotangent or tangent. Returns NULL
 * after a message. */
const WeftTensor *runner_absent(Runner *, uint32_t k, const WeftTensors *, const char *path, int call);

/* State (state.c): of a compiled model, or of the interpreter between its calls. */
uint32_t runner_nstate(const Runner *);
const WeftTensorInfo *runner_state(const Runner *, uint32_t k);
/* Copies state k into a tensor. Returns false after a message. */
bool runner_get_state(const Runner *, uint32_t k, const WeftTensor *);
/* Load state from a file with a tensor for each, named like the state; save state into one. Return
 * false after a message. */
bool runner_load_state(Runner *, Weft *, const char *path);
bool runner_save_state(Runner *, Weft *, const char *path);
/* For the interpreter: set state to the initial contents; free it. */
bool runner_begin_state(Runner *);
void runner_end_state(Runner *);

/* ---- numbers ---- */

int64_t numel_of(const WeftTensor *);
uint64_t bytes_of(const WeftTensor *); /* bytes */
/* Element i of a row-major tensor; of a complex tensor number i of its pairs. */
double value_at(const WeftTensor *, int64_t i);
int64_t values_of(const WeftTensor *); /* the number of values; a complex element has two */
const char *dtype_text(WeftDType, char buf[16]);
double now(void);
/* The most memory that this process had at a time, in bytes. */
double peak_bytes(void);
/* Prints 12345678 as "12.3 M", in units of 1000. */
const char *human(double v, char buf[32]);
/* Prints "model.py:31 in encoder.0 (+3 lines)" on stdout; nothing if the line is unknown. */
void print_lines(const WeftKernelInfo *);
/* The information of a call in a model's table; an older version of weft has less. */
WeftKernelInfo call_info(const WeftModel *, const WeftCallInfo *);

#endif
