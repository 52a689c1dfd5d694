/* What the subcommands of `weft` share: options, loading of model files, JSON, and runners, which
 * execute a model by any back end. "After a message" means: the function has printed the reason on
 * stderr. A Weft that a function does not own stays the caller's. */
#ifndef WEFT_TOOLS_TOOL_H
#define WEFT_TOOLS_TOOL_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "weft.h"

/* A line of help: an option with what it takes, "--inputs FILE", and what it does; or the heading
 * of a group, without an option. Rows end with one that has no text. Texts are broken into
 * lines. */
typedef struct {
	const char *option, *text;
	bool first; /* one of the few that one needs first: --help has it */
} HelpRow;

/* A subcommand. run: argv[0] is the command's name; returns an exit status: 0, or 1 after it has
 * printed what failed. */
typedef struct {
	const char *name, *summary, *usage;
	const char *about, *more; /* paragraphs of --help, and further ones of --help-all, or "" */
	const HelpRow *row;
	int (*run)(int argc, char **argv);
} Command;

extern const Command command_compile, command_run, command_check, command_bench, command_train,
	command_show, command_report, command_bisect, command_ops, command_doctor,
	command_quantize, command_state;

/* Prints the answer to --help, or to --help-all, on stdout. */
void command_help(const Command *, bool all);

/* Whether s ends with `suffix`, or is it. */
static inline bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);
	return n >= k && !strcmp(s + n - k, suffix);
}

/* ---- words that are not known ---- */

/* The nearest of the names that were offered to a word. Begin with zeros but word. */
typedef struct {
	const char *word, *name; /* name NULL: none is near */
	uint32_t distance;
	char text[128];
} Guess;

/* Offers a name, which is written as `word`, or is known by that part. The name is not copied. */
void guess_offer(Guess *, const char *word, const char *name);
/* Returns "; did you mean NAME?", or "" if no name is near. Lives as long as the Guess. */
const char *guess_text(Guess *);

/* ---- options ---- */

enum { MOST_THREADS = 4096 };

typedef enum {
	OPT_FLAG,   /* --name; `to` is a bool * */
	OPT_STRING, /* --name VALUE or --name=VALUE; a const char ** */
	OPT_MAYBE,  /* --name or --name=VALUE; a const char **, "" without a value */
	OPT_INT,    /* a number from 1 to MOST_THREADS; an int * */
	OPT_LIST    /* a text, which may be given MAX_LIST times; a StringList * */
} OptKind;

enum { MAX_LIST = 64 };
typedef struct {
	const char *item[MAX_LIST];
	uint32_t n;
} StringList;

typedef struct {
	const char *name; /* "--threads" or "-j" */
	OptKind kind;
	void *to; /* receives the value; unchanged if the option is not given */
} Opt;

/* Takes the options opt[], which end with a name NULL, out of argv. Positional arguments stay in
 * argv, behind argv[0]; *argc becomes their number + 1. "--" ends the options. Values are not
 * copied. Returns false after a message: an unknown option, an option other than a flag or a list
 * that is given twice, or a value that is missing, empty or wrong; also, with *argc -1, after
 * printing the answer to --help, -h or --help-all on stdout. */
bool options_parse(const Command *, const Opt *, int *argc, char **argv);
/* Whether an option is given, and whether it has an effect beside the others. */
typedef struct {
	bool given, used;
	const char *option, *of; /* "--python", and what it is for: "--against" */
} OptUse;
/* Whether each of n options that is given has an effect. Returns false after a message: the first
 * other one. */
bool options_used(const Command *, const OptUse *, size_t n);
/* Whether both paths name one file that exists, also through links. */
bool same_file(const char *, const char *);
/* Checks that an output does not overwrite an input: that both are not one regular file. input
 * NULL: there is none. Returns false after a message. */
bool keep_input(const char *output, const char *input);
/* The options of commands that read model files, and the files that are joined into one model with
 * several entries, given as NAME=FILE. Of several files, options for one of them are given as
 * NAME=VALUE. */
typedef struct {
	StringList entry, file; /* NAME and FILE of each entry; none: there is one file */
	StringList private_state, same_state; /* --private, --state: of several files */
	StringList ignore_guard, ops;
	const char *ranks;       /* a number; NULL: not given */
	StringList loop_bound;   /* "NODE=N"; of several files "NAME=NODE=N" */
	StringList output_names; /* "a,b" */
	StringList mode;         /* "train" or "eval" */
	StringList precision;    /* "bf16" or "f16" */
	StringList activations;  /* "int8" or "exact" */
	StringList weights_from; /* files, for all models */
	const char *weight_names; /* a file; NULL: not given */
	const char *seed, *rng, *rng_cipher; /* NULL: not given */
	const char *values;      /* a file, of an ONNX model's inputs; NULL: none */
} LoadArgs;
/* The rows of Opt for the LoadArgs a, and their help. */
#define LOAD_OPTIONS(a)                                                                            \
	{"--ignore-guard", OPT_LIST, &(a)->ignore_guard},                                          \
		{"--loop-bound", OPT_LIST, &(a)->loop_bound}, {"--ops", OPT_LIST, &(a)->ops},      \
		{"--ranks", OPT_STRING, &(a)->ranks},                                              \
		{"--set-mode", OPT_LIST, &(a)->mode}, {"--precision", OPT_LIST, &(a)->precision},  \
		{"--activations", OPT_LIST, &(a)->activations},                                    \
		{"--weights-from", OPT_LIST, &(a)->weights_from},                                  \
		{"--weight-names", OPT_STRING, &(a)->weight_names},                                \
		{"--private", OPT_LIST, &(a)->private_state},                                      \
		{"--state", OPT_LIST, &(a)->same_state}, {"--seed", OPT_STRING, &(a)->seed},       \
		{"--rng", OPT_STRING, &(a)->rng}, {"--rng-cipher", OPT_STRING, &(a)->rng_cipher},  \
		{"--values", OPT_STRING, &(a)->values},                                            \
	{                                                                                          \
		"--output-names", OPT_LIST, &(a)->output_names                                     \
	}
#define LOAD_HELP                                                                                  \
	{NULL, "The model", false},                                                                \
		{"--weights-from FILE",                                                            \
		 "take the weights from this file: .safetensors, the index of several of them, "   \
		 ".npz or .gguf (repeatable)",                                                     \
		 false},                                                                           \
		{"--weight-names FILE",                                                            \
		 "rules for weights with other names in that file, one per line: NAME IN MODEL = " \
		 "NAME IN FILE; * stands for any text",                                            \
		 false},                                                                           \
		{"--set-mode train|eval", "change the model to this mode (docs/transforms.md)",    \
		 false},                                                                           \
		{"--precision bf16|f16", "compute as under torch.autocast", false},                \
		{"--activations int8|exact",                                                       \
		 "int8: round the other operands of products with weights of at most 8 bits, "     \
		 "too; exact: do not; default: as the model says (docs/numerics.md)",              \
		 false},                                                                           \
		{"--values FILE",                                                                  \
		 "values of inputs of an ONNX model (x.0, ..., or by name) for which it may be "   \
		 "compiled",                                                                       \
		 false},                                                                           \
		{"--output-names A,B", "names of the outputs", false},                             \
		{"--ops LIBRARY", "a shared library of operators (weft_op.h; repeatable)", false}, \
		{"--ranks N", "ranks of groups of which the model does not say it", false},        \
		{"--ignore-guard TEXT",                                                            \
		 "do not check this condition on the inputs, which weft cannot check; if it is "   \
		 "violated, results are wrong (repeatable)",                                       \
		 false},                                                                           \
		{"--loop-bound NODE=N",                                                            \
		 "the largest number of rounds of this while loop, for gradients (repeatable)",    \
		 false},                                                                           \
		{NULL, "Random numbers", false},                                                   \
		{"--seed N", "the first seed, kept in the state weft.rng (default 0)", false},     \
		{"--rng state|input", "whether weft.rng is state or an input", false},             \
		{"--rng-cipher philox|aes128-ctr",                                                 \
		 "the generator of random bits (default philox)", false},                          \
		{NULL,                                                                             \
		 "Several models, NAME=MODEL (options above that are for one of them: "            \
		 "NAME=VALUE)",                                                                    \
		 false},                                                                           \
		{"--private TENSOR", "do not share the state of this name (repeatable)", false},   \
	{                                                                                          \
		"--state A.X=B.Y", "Y of entry B is the same state as X of entry A (repeatable)",  \
			false                                                                      \
	}
/* The row of help of --progress. */
#define PROGRESS_HELP                                                                              \
	{"--progress",                                                                             \
	 "print on standard error how far it is, also if that is not a terminal: then at most "    \
	 "one line per second",                                                                    \
	 false}
/* Whether the argument is NAME=FILE with an identifier NAME, and no file has that whole name. */
bool is_entry(const char *arg);
/* Adds the entry NAME=FILE (is_entry). Cuts arg in two, and refers to it: arg must stay valid.
 * Returns false after a message: FILE is empty, or there are too many entries. */
bool add_entry(LoadArgs *, char *arg);
/* Moves all NAME=FILE (is_entry) from argv[1], argv[2], ... into the LoadArgs; *argc is then the
 * number of arguments that are left, argv[0] included. Returns false after a message: there are
 * entries and other arguments, or too many entries. */
bool take_entries(LoadArgs *, int *argc, char **argv);
/* Returns the file of the entry of that name; entry NULL: of the only one. Returns NULL after a
 * message: no such entry, or entry is NULL and there are several or none. */
const char *entry_file(const LoadArgs *, const char *entry);
/* Loads the model file `path`, or, if there are entries, their files, which are joined; path is not
 * read then. a NULL: no options. one[MAX_LIST]: NULL, or receives the graph of each entry, of a
 * single file in one[0]. Returns NULL after an error, whose message is printed, or recorded in the
 * Weft: call fail_messages. */
WeftGraph *load_model(Weft *, const char *path, const LoadArgs *a, WeftGraph **one);
/* Returns what --precision says of the entry (NULL: of the only file): "bf16", "f16", or NULL. */
const char *precision_given(const LoadArgs *, const char *entry);
/* Returns what --activations says of the entry (NULL: of the only file): "int8", "exact", or
 * NULL. */
const char *activations_given(const LoadArgs *, const char *entry);
/* Returns the first option that is given of those that change how model files are loaded, "--seed";
 * NULL: none is. Entries do not count. a may be NULL. */
const char *load_option_given(const LoadArgs *a);
/* Sets WeftOptions.link to the libraries of --ops, as a reference to the LoadArgs, unless the
 * options name libraries, or LoadArgs is NULL. For shared objects that this process loads. */
void link_with_ops(WeftOptions *, const LoadArgs *);

/* Parses "1,2" into out[], at most `max` numbers from 1 to MOST_THREADS. what: the option, for the
 * message. Returns how many; 0 after a message, also if there are more than `max`. */
int parse_list(const char *what, const char *text, int *out, int max);
/* Prints "weft: ", the text and a line break on stderr. Returns 1, the exit status. */
int fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints as fail(), with the number of the kind behind it ("W0008"); NULL: without. */
int fail_id(const char *id, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints as fail(), of a command line that nothing can be done with: an unknown option, a value
 * that the option does not take, options that exclude each other, a missing file name. Returns
 * USAGE, and status_of() gives it for the whole command. */
enum { USAGE = 2 };
int fail_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Returns the exit status of a command that returned `code`: 0, 1, or USAGE after fail_usage. */
int status_of(int code);
/* Prints on stderr that a file cannot be opened, with the reason that errno has. Returns 1. */
int fail_open(const char *path);
/* Prints the messages of a Weft on stderr, each with the number of its kind if it has one
 * ("[W0001]", weft_message_id); of NULL, that there is no memory. Returns 1. */
int fail_messages(Weft *);
/* Prints as fail() what a compiled model says of a call that ended with that code (WeftStatus),
 * with the number of its kind. path: of the model; NULL: none. Returns 1. */
int fail_status(const char *path, int code, const char *message);

/* Asks the system to end this process when its parent ends. Called in a child process. */
void die_with_parent(void);
/* Makes SIGINT, SIGTERM and SIGHUP remove temporary files and end programs that the compiler has
 * started before they end the process. Signals that are ignored stay ignored. */
void signals_init(void);

/* Loads libraries of back ends, by path. Returns false after an error, which is recorded in the
 * Weft: call fail_messages. */
bool load_backends(Weft *, const StringList *);
/* Prints the back ends there are, those of libraries too, on stdout. Returns an exit status. */
int show_backends(const StringList *libraries, bool json);
/* Prints all targets (name NULL), or those that a name, list or file names as --target does, on
 * stdout. Returns an exit status. */
int show_targets(const char *name, bool json);

/* ---- the terminal ---- */

/* Returns the columns that output to a descriptor has room for: $COLUMNS, else those of the
 * terminal, else 100. */
int terminal_width(int fd);

/* Begins the line on stderr that says how far the command is, once a second has passed. On a
 * terminal the line is rewritten, and never longer than that is wide; elsewhere, if `always`, lines
 * follow each other, at most one a second. Without progress_begin the other functions do nothing.
 */
void progress_begin(bool always);
/* Sets what stands in front of all further lines. */
void progress_prefix(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void progress_show(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Shows a phase of a compilation, as a WeftProgress; user is not used. */
void progress_phase(void *user, const char *phase, uint32_t done, uint32_t total);
/* Removes the line: call it before anything is printed. The next progress_show shows it again. */
void progress_clear(void);
/* Removes the line for good. */
void progress_end(void);
/* Begins the progress of a forked child, whose stderr may be another: it goes on with the line,
 * or (shows false) leaves it to the parent. Called first in the child. */
void progress_child(bool shows);

/* ---- JSON ---- */

/* Writes a JSON value piece by piece, with commas and indentation. Begin with zeros but f. key: the
 * name of the member of an object; NULL in lists, and for the whole value. */
typedef struct {
	FILE *f;
	int depth;
	bool comma;
	int line_from; /* what lies so deep in the value begins no line of its own; 0: all begins
			  one */
} Json;

/* Prints a UTF-8 text as the inside of a JSON string: ASCII, with escapes; what is no UTF-8 as
 * U+FFFD. */
void print_escaped(FILE *, const char *);
/* Begins an object ('{') or a list ('['). */
void json_open(Json *, const char *key, char bracket);
/* Ends the innermost object ('}') or list (']'). The end of the whole value adds a line break. */
void json_close(Json *, char bracket);
/* Writes a text as a member of the open object, or an element of the open list. */
void json_put_string(Json *, const char *key, const char *value);
/* Writes a number as a member or an element: an integer below 1e15 exactly, others with 9 digits;
 * one that is not finite as the text "nan", "inf" or "-inf". */
void json_put_number(Json *, const char *key, double value);
/* Writes true or false as a member or an element. */
void json_put_bool(Json *, const char *key, bool value);

/* ---- executing a model ---- */

/* How a model file is executed. */
typedef enum {
	RUN_DEFAULT, /* RUN_JIT if there is LLVM, else RUN_C; for a runner, the default of weft
	                compile */
	RUN_JIT,
	RUN_C,    /* a temporary shared object, by a C compiler */
	RUN_LLVM, /* a temporary shared object, by LLVM and a linker */
	RUN_LOOPS, /* the interpreter of loop IR */
	RUN_GPU_HOST, /* a temporary shared object in which this CPU executes kernels of a GPU */
	RUN_INTERP
} RunBackend;
/* Sets *RunBackend to the value of --backend; text NULL: RUN_DEFAULT. Returns false after a
 * message. */
bool parse_backend(const char *text, RunBackend *);
/* Returns RUN_C for RUN_DEFAULT with the option cc, else RUN_JIT if LLVM is found, else RUN_C;
 * returns others unchanged. The options may be NULL. */
RunBackend backend_resolve(RunBackend, const WeftOptions *);
/* Prints a note on stderr if RUN_DEFAULT is given and LLVM is not found: a C compiler is used. Only
 * the first call with RUN_DEFAULT prints; children that are forked later do not repeat the note. */
void backend_note(RunBackend);
/* Whether the back end, not RUN_DEFAULT, has a use for the options of a compilation. Returns false
 * after a message: one is set that it would not read. The options may be NULL. */
bool runner_backend_takes(RunBackend, const WeftOptions *);

/* A function transform of the model (--mode), and the names that files of tensors have for its
 * inputs and outputs (mode.c). */
typedef enum { MODE_NONE, MODE_VJP, MODE_JVP, MODE_VMAP } Mode;
typedef struct {
	Mode mode;
	const char *wrt; /* "inputs,params,NAME"; NULL: as the file says */
	bool compares; /* `file` has references: the names of its gradients say by what the model is
			  differentiated, unless wrt does */
	const WeftTensors *file; /* the file of inputs or references */
	const char *path;        /* the path of `file` */
	const char *randomness;  /* of vmap: "error", "same", "different"; NULL: the first */
	const char *in_dims, *out_dims; /* of vmap: "0,none,-1"; NULL: 0 */
} ModeArgs;
/* Rows of help. by_default: the default of --wrt. */
#define MODE_HELP(by_default)                                                                      \
	{NULL, "Transforms", false},                                                               \
		{"--mode vjp|jvp|vmap",                                                            \
		 "vjp: gradients g.<i> of the inputs from cotangents ct.<i> of the outputs. jvp: " \
		 "tangents jy.<i> of the outputs from tangents t.<i> of the inputs. vmap: "        \
		 "results "                                                                        \
		 "vy.<i> of a batch of inputs vx.<i>, where others are x.<i>. Cotangents and "     \
		 "tangents that are not there are zero; of a model whose output 0 is one number, " \
		 "a loss, without any its is 1",                                                   \
		 false},                                                                           \
		{"--wrt LIST",                                                                     \
		 "what is differentiated by: inputs, params (gradients gp.NAME, "                  \
		 "tangents tp.NAME), or names, with commas between " by_default,                   \
		 false},                                                                           \
		{"--randomness error|same|different",                                              \
		 "random numbers of vmap: an error (default), the same, or different ones",        \
		 false},                                                                           \
		{"--in-dims LIST",                                                                 \
		 "of vmap: which dimension of a vx.<i> is the batch (0): one "                     \
		 "number for all or one for each; negative: from the last; "                       \
		 "none: it has none",                                                              \
		 false},                                                                           \
	{                                                                                          \
		"--out-dims LIST", "the same of a vy.<i>", false                                   \
	}
/* Sets mode and wrt of the ModeArgs from the values of --mode and --wrt (NULL: not given), and
 * checks that the other options in it (randomness, in_dims, out_dims), which the caller has set,
 * fit the mode. Returns false after a message. */
bool parse_mode(const char *mode, const char *wrt, ModeArgs *);
/* Whether a file has references for the mode: a tensor g.<k>, g.NAME or gp.NAME (vjp), jy.<k>
 * (jvp), vy.<k> (vmap); true for MODE_NONE. Names with the number of a call in front do not
 * count. The list may be NULL: it has none. */
bool mode_has_reference(Mode, const WeftTensors *);

/* Joins the model with entries forward_saving and backward (weft_vjp_split). wrt: as ModeArgs.wrt,
 * not NULL;
 * "": inputs and parameters. budget: the memory budget as text, or NULL. Returns NULL after an
 * error, whose message is printed, or recorded in the Weft: call fail_messages. */
WeftGraph *with_gradients(Weft *, WeftGraph *, const char *wrt, const char *budget);

/* The name of a tensor in files: KIND.<k>, or KIND.NAME if `name` is set. */
typedef struct {
	const char *kind;
	uint32_t k;
	const char *name;
} TensorKey;
/* Writes the name to out[n], with its NUL. call: the number of the call, in files with several,
 * "CALL.KIND.<k>"; -1: the file has one. */
void key_text(const TensorKey *, int call, char *out, size_t n);
/* Returns the tensor of that name; NULL: the file has none. In a file with lists of tensors,
 * x.<i>.0, x.<i>.1, ..., or with the metadata `lists`, k counts all tensors of the kind in their
 * order, those of lists each by itself: as a graph's inputs and outputs. */
const WeftTensor *key_find(const WeftTensors *, const TensorKey *, int call);

typedef struct {
	RunBackend backend;
	const ModeArgs *mode;       /* for model files; NULL: no transform */
	const char *remote;         /* a command that runs a shared object elsewhere; NULL: run in
	                               this process */
	bool share_all;             /* WEFT_SHARE_ALL */
	const WeftOptions *compile; /* for model files; NULL: defaults */
	const LoadArgs *load;       /* for model files; NULL: defaults */
	const char *entry;          /* the name of the entry; NULL: the only one */
	bool any_entry;             /* with entry NULL: the first of several */
	bool verify;                /* compare the checksum of a weight file */
	bool shown;                 /* only the table is needed: a GPU that the model is for may be
	                               missing */
	const char *device;         /* the GPU to run on, "cuda" or "cuda:N"; NULL: the first, if
	                               the model is for GPUs */
} RunnerOptions;

/* A runner: one entry of a model that is open for execution, by a compiled model or by the
 * reference interpreter. */
typedef struct {
	Weft *w;          /* owned (but see runner_take); NULL for a shared object */
	bool lent;        /* the Weft is the caller's */
	WeftGraph *g;     /* the model; NULL for a shared object */
	WeftGraph *one;   /* the graph of the entry */
	const char *path; /* of the model file or shared object */
	const char *want; /* RunnerOptions.entry, .any_entry */
	bool any;
	uint32_t which; /* the number of the entry */
	bool interp;    /* the reference interpreter; model is NULL */
	const char *remote;
	char folder[4000]; /* a temporary folder with model.so for the remote program; "": none */
	void *so;
	const WeftModel *model;
	const WeftEntry *entry;
	WeftInstance *instance;
	WeftDevice device; /* of the instance; {0, 0}: the processor */
	bool share_all;
	WeftSizes *sizes;
	void *work;
	uint64_t work_bytes;
	const WeftTensorInfo *input, *output;
	uint32_t ninput, noutput;
	WeftTensor *result;               /* the outputs of the last call; result[noutput] */
	const WeftTensorInfo *state_info; /* of the interpreter: its state */
	WeftTensor *state;
	uint32_t nstate;
	/* With --mode: the names of inputs and outputs in files; NULL: x.<i> and y.<i>. */
	TensorKey *in_key, *out_key;
	WeftTensor *fill; /* by input: the value of a tensor that the file does not have */
	const WeftTensorInfo *given; /* the outputs of the transformed graph, ngiven of them */
	uint32_t ngiven;
	bool ct_is_one; /* a cotangent of output 0 that the file does not have is 1, else 0 */
} Runner;

/* Opens a model file or a shared object; a model file is compiled, or read for the interpreter.
 * path and the texts of the options must stay valid. Returns false after a message; the runner is
 * zeros then. */
bool runner_open(Runner *, const char *path, const RunnerOptions *);
/* Opens a graph of a Weft that stays the caller's, as runner_open opens what it has loaded. path:
 * for messages. Options of loading and --mode have no effect. Returns false after a message, which
 * may be recorded in the Weft, too. */
bool runner_take(Runner *, Weft *, WeftGraph *, const char *path, const RunnerOptions *);
/* Prepares calls with inputs of these shapes, inputs[r->ninput]: solves sizes, and allocates
 * outputs (r->result) and the workspace. The interpreter and a remote program need neither: then it
 * only frees the outputs of the call before. Returns false after a message. */
bool runner_prepare(Runner *, const WeftTensor *inputs);
/* Executes the entry on inputs of the shapes that runner_prepare saw, with at most `threads`
 * threads (0: as WeftContext.nthreads); profile: as in WeftContext, may be NULL. The interpreter
 * uses one thread; the interpreter and a remote program do not call profile. r->result has the
 * outputs until the next call or runner_prepare. Returns false after a message. */
bool runner_call(Runner *, const WeftTensor *inputs, int threads, WeftProfile, void *user);
/* Sets state, if the model has any, to its initial contents; does nothing for a remote program.
 * Returns false after a message. */
bool runner_reset(Runner *);
/* Frees all that the runner has, r->w too, and sets it to zeros. Does nothing to zeros. */
void runner_close(Runner *);
/* Returns element k of an array of WeftTensorInfo; k is in range. m: the model whose table has the
 * array, perhaps of another version of weft; NULL: the array is of this version, as that of a
 * graph. */
const WeftTensorInfo *tensor_info(const WeftModel *m, const WeftTensorInfo *first, uint32_t k);
/* Returns dimension d < rank of a tensor. m: see tensor_info. */
const WeftDim *tensor_dim(const WeftModel *m, const WeftTensorInfo *, uint32_t d);
/* Returns what is known of input k < r->ninput. */
const WeftTensorInfo *runner_input(const Runner *, uint32_t k);
/* Returns what is known of output k < r->noutput. */
const WeftTensorInfo *runner_output(const Runner *, uint32_t k);
/* Writes the inputs, which are row-major, to a file, runs the command on r->folder's model.so,
 * and reads the outputs into r->result. Returns false after a message; r->result may have some
 * outputs then. The runner_call of a runner with r->remote, whose r->result is zeros. */
bool remote_call(Runner *, const WeftTensor *inputs, int threads);
/* Sets out[r->ninput] to the inputs in a file: by the names of runner_find_input; of a .npy file
 * the one tensor. An input that the file does not have is runner_absent's. The tensors stay those
 * of the list, or of the runner. file: its path. Returns false after a message: one is missing. */
bool runner_inputs(Runner *, const WeftTensors *, const char *file, WeftTensor *out);
/* Returns for how many calls a file has tensors whose names begin with "0.", "1.", ...; 0: its
 * tensors have no number of a call in front. */
int runner_calls(const WeftTensors *);
/* Whether each tensor of a file that looks like an input is one: x.<i> names an input, and where
 * the file has inputs by name, or no x.<i>, so does each name without a point. file: its path.
 * Returns false after a message that names the first other one. */
bool runner_takes_all(const Runner *, const WeftTensors *, const char *file);
/* Sets in[r->ninput] to the inputs of one call of several. For call 0, an input that the file does
 * not have is runner_absent's; for later ones in[] must hold the inputs of the call before, and an
 * input that the file does not have stays. file: its path. Returns false after a message: call 0
 * lacks one. */
bool runner_call_inputs(Runner *, const WeftTensors *, const char *file, int call, WeftTensor *in);
/* Whether a path is a regular file that begins like an ELF file. */
bool is_shared_object(const char *path);
/* Returns input k in a file, by its key (x.0), else by its name; call: as for key_text, also in
 * front of the name. Returns NULL, without a message, if the file has neither. */
const WeftTensor *runner_find_input(const Runner *, const WeftTensors *, int call, uint32_t k);

/* Replaces r->one and r->g by the transformed graph, and sets the keys. Returns false after a
 * message: also if the runner has several entries. A step of runner_open. */
bool mode_apply(Runner *, const ModeArgs *);
/* Frees the keys and the values of absent inputs. A step of runner_close. */
void mode_close(Runner *);
/* Returns the name of input k in files. */
TensorKey runner_input_key(const Runner *, uint32_t k);
/* Sets *TensorKey to the name of output k in files. With --mode, returns false if the output is the
 * new value of an input that the model writes, for which files have no name; else returns true. */
bool runner_output_key(const Runner *, uint32_t k, TensorKey *);
/* Returns the value of input k, which the file does not have: zeros for a cotangent or tangent of a
 * model input or output by number (1 for a cotangent with r->ct_is_one), in memory of the runner
 * until the next call for the input. The shape is that of the file's x.<i> or y.<i>. path: of the
 * file. Returns NULL after a message: another input is missing, the shape is not known, or a
 * cotangent that is to be 1 has several elements. */
const WeftTensor *runner_absent(Runner *, uint32_t k, const WeftTensors *, const char *path,
				int call);

/* State (state.c) is that of a compiled model's instance, or of the interpreter, for which the
 * runner keeps it between calls. */

/* Returns the number of states; 0 for a remote program, whose state it keeps itself. */
uint32_t runner_nstate(const Runner *);
/* Returns what is known of state k < runner_nstate. */
const WeftTensorInfo *runner_state(const Runner *, uint32_t k);
/* Copies state k into the data of a row-major tensor of its dtype and shape, with byte_offset 0.
 * Returns false after a message. */
bool runner_get_state(const Runner *, uint32_t k, const WeftTensor *);
/* Sets all state from a file that has a tensor for each, of its name or an alias, and no others. w:
 * reads the file. Returns false after a message; some of the state may be set then. */
bool runner_load_state(Runner *, Weft *, const char *path);
/* Writes all state into a file as runner_load_state reads it, one tensor of its name for each.
 * Replaces a file that is there. Not for a remote program. Returns false after a message. */
bool runner_save_state(Runner *, Weft *, const char *path);
/* Allocates r->state and sets it to the initial contents. Returns false after a message. A step
 * of runner_open, for the interpreter. */
bool runner_begin_state(Runner *);
/* Frees r->state. A step of runner_close. */
void runner_end_state(Runner *);

/* ---- numbers ---- */

/* Returns the number of elements of a tensor: the product of its extents. */
int64_t numel_of(const WeftTensor *);
/* Returns the bytes of all elements of a tensor, without gaps between them. */
uint64_t bytes_of(const WeftTensor *);
/* Returns value i < values_of of a row-major tensor as a double: element i; of a complex tensor the
 * real part of element i / 2 if i is even, else its imaginary part. */
double value_at(const WeftTensor *, int64_t i);
/* Returns the number of values (value_at) of a tensor: one for each element, two for a complex
 * one. */
int64_t values_of(const WeftTensor *);
/* A floating-point format: its code and bits (WeftDType), bits of exponent and mantissa, and bias
 * of the exponent, which is one more than else where -0 stands for NaN; whether it has
 * infinities. */
typedef struct {
	uint8_t code, bits;
	int exponent, mantissa, bias;
	bool infinite;
	const char *name;
} FloatKind;

/* Returns the format of a float dtype, or of the parts of a complex one; NULL for other dtypes. */
const FloatKind *float_kind(WeftDType);
/* Writes the name of a dtype, "f32" or "bool", into buf. Returns buf. */
const char *dtype_text(WeftDType, char buf[16]);
/* Returns the time in seconds since some fixed moment, which never goes back. */
double now(void);
/* Returns the most memory that this process has had at a time (resident), in bytes. */
double peak_bytes(void);
/* Writes v >= 0 into buf with three digits and a unit of 1000: 12345678 as "12.3 M", 12 as "12 ".
 * Returns buf. */
const char *human(double v, char buf[32]);
/* Prints "model.py:31 in encoder.0 (+3 lines)" on stdout, without a line break; nothing if the line
 * is unknown. */
void print_lines(const WeftKernelInfo *);
/* Returns the fields of a call in a model's table, with launches 1; fields that WeftCallInfo or an
 * older version of weft does not have are 0. The texts are the table's. */
WeftKernelInfo call_info(const WeftModel *, const WeftCallInfo *);

/* ---- Python programs of the command's own ---- */

/* Returns the environment of Python that $WEFT_PYTHON names, the default of --python, or NULL. */
const char *python_default(void);
/* Sets path to the Python of an environment, ENV/bin/python, or to env itself, a program or a name
 * in PATH. Returns false, without a message, if a path has no such program. */
bool python_find(const char *env, char path[4096]);
/* Runs a program, its text `script`, with n arguments, and waits. Its output goes to `out`. what:
 * its name in messages. Returns true if it ends with status 0; false after a message, which is the
 * program's own if it ends with status 1. */
bool python_run(const char *env, const char *what, const char *script, const char *const *arg,
		int n, FILE *out);

#endif
