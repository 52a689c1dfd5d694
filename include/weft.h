/* The compiler as a library: load a model file, transform it, compile it, look into it.
 *
 *     Weft *w = weft_new();
 *     WeftGraph *g = weft_load(w, "model.pt2");
 *     WeftOptions o = {.size = sizeof o};
 *     if (g && weft_compile(w, g, &o, "model.so")) ...
 *     else fputs(weft_messages(w), stderr);
 *     weft_free(w);
 *
 * A Weft is one compilation. It owns every text, tensor and graph that it returns, until weft_free.
 * One thread at a time uses a Weft; several Wefts share nothing.
 *
 * Errors: a function records a message and returns NULL or false. NULL arguments, empty names and
 * graphs of another Weft are errors too. Nothing prints and nothing exits. After running out of
 * memory or an internal error only weft_messages and weft_free are useful. A NULL pointer to
 * options means that all options are 0. Options whose size is not set are an error.
 *
 * Exception: LLVM ends the process when it runs out of memory or finds an error of its own, with
 * status 1 and one line on stderr; temporary files are removed first (weft_abandon). Programs that
 * must survive use WEFT_BACKEND_C or a process of its own.
 *
 * The locale of the program has no effect. While a function runs, the calling thread has the C
 * locale, also where the function calls back.
 *
 * The first weft_load replaces jansson's allocation functions by functions that call those which
 * were set before. A program that sets its own does so before the first weft_load. */
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

/* Makes a Weft, which the caller frees by weft_free. Returns NULL if there is no memory. */
Weft *weft_new(void);
/* Frees a Weft and everything that it owns. Close the instances of its models (weft_jit,
 * weft_loops) before. NULL is allowed. */
void weft_free(Weft *);

/* ---- messages ---- */

typedef enum { WEFT_ERROR, WEFT_WARNING, WEFT_NOTE } WeftSeverity;

typedef struct {
	WeftSeverity severity;
	const char *where; /* "model.pt2: node conv2d_3 (net.py:12)" or "" */
	const char *text;
} WeftMessage;

/* Returns the number of messages so far: errors, warnings and notes of all calls on the Weft. 0 for
 * NULL. */
uint32_t weft_nmessages(const Weft *);
/* Returns message k < weft_nmessages, in the order in which they were recorded; texts are valid
 * until the next call on the Weft. For other k, and for NULL, texts are "". */
WeftMessage weft_message(const Weft *, uint32_t k);
/* Returns the number of the kind of message k, "W0001", by which weft_explain knows it; "" if it
 * has none, as most have. */
const char *weft_message_id(const Weft *, uint32_t k);
/* A kind of refusal, which keeps its number. */
typedef struct {
	const char *id, *title, *text; /* text: what it means and what to do, in lines */
} WeftExplanation;
/* Returns the kind of that number, upper or lower case. Texts are constant; "" if there is no such
 * kind, or id is NULL. */
WeftExplanation weft_explain(const char *id);
/* Returns kind k of all, from 0 on; with texts "" if there are not so many. */
WeftExplanation weft_explanation(uint32_t k);
/* Returns all messages so far as one text, one per line, valid until the next call on the Weft; ""
 * if there are none, and for NULL. */
const char *weft_messages(Weft *);

/* ---- graphs ---- */

/* Reads a model file: a torch.export archive, if the name ends with .pt2 or the contents are a zip
 * file; an ONNX model, if the name ends with .onnx or the contents begin like one; a graph that
 * weft_save_graph wrote; else the text form of a graph. Constants of an archive or of an ONNX model
 * stay in the mapped file: until weft_free nobody may change or truncate the file; to rename,
 * replace or remove it is allowed. Returns NULL after an error, as all functions here that return a
 * pointer, if nothing else is said. */
WeftGraph *weft_load(Weft *, const char *path);
typedef struct {
	uint32_t size; /* of this structure */
	/* Guards to ignore: conditions on the inputs in the file, by their text. A model with a
	 * guard that Weft cannot check is refused, unless the guard is named here. A text that is
	 * no guard of the file is an error. */
	uint32_t nignore_guard;
	const char *const *ignore_guard;
	/* New names of all outputs, in order: as many different names as the model has outputs.
	 * NULL: the names of the file. */
	uint32_t noutput_name;
	const char *const *output_name;
	/* For a model that draws random numbers (docs/random.md). Such a model has the state
	 * "weft.rng", u64[2]: the seed and the number of calls. `seed` is the initial seed. With
	 * rng_input the model has an input of that name and type instead of the state. */
	uint64_t seed;
	bool rng_input;
	/* Of an ONNX model: values x.0, x.1, ... of its inputs. They are needed where an input
	 * decides what is fixed in compiled code, such as axes: the model then ends a call with
	 * another value with an error. Values that decide nothing are not read. NULL: none; else
	 * another kind of model is an error. */
	const struct WeftTensors *values;
	/* What makes random bits of weft.rng: NULL for Philox, or "aes128-ctr", for which the 128
	 * bits of weft.rng are the key. Another name is an error. */
	const char *rng_cipher;
} WeftLoadOptions;
/* weft_load with options. */
WeftGraph *weft_load_with(Weft *, const char *path, const WeftLoadOptions *);
/* Memory that somebody else made. release(user, data) is called exactly once, when nothing refers
 * to the memory any more. NULL: nothing is called, and the memory must stay until then. */
typedef struct {
	const void *data;
	size_t bytes;
	void (*release)(void *user, const void *data);
	void *user;
} WeftMemory;
/* The Weft refers to the memory and copies nothing: release is called by weft_free, after all that
 * refers to the memory is gone; the contents do not change before. For constants of traces
 * (weft_trace_param). Returns false after an error: the WeftMemory or its data are NULL, or it has
 * 0 bytes. Also after an error release is called once: by weft_free, or at once if there is no
 * Weft. */
bool weft_hold(Weft *, const WeftMemory *);
/* weft_load of a file with these contents. `name` stands for the path in messages and in the
 * model's name. Constants of an archive stay in the memory, if that is aligned to 16 bytes and the
 * archive does not compress them. The memory is held as by weft_hold. Returns NULL after an
 * error. */
WeftGraph *weft_load_memory(Weft *, const WeftMemory *, const char *name);
/* weft_load_memory with options. Also after an error, release is called once. */
WeftGraph *weft_load_memory_with(Weft *, const WeftMemory *, const char *name,
				 const WeftLoadOptions *);
/* Parses the text form of a graph. Messages call the graph `name`. */
WeftGraph *weft_parse(Weft *, const char *text, const char *name);
/* Loads a library that exports weft_ops (weft_op.h), and registers its operators for all graphs
 * that this Weft loads afterwards. A path without '/' is a file of the current folder. The library
 * stays loaded until weft_free. Returns false after an error, and then registers none of them: also
 * if an operator is refused (weft_op_register). */
bool weft_op_load(Weft *, const char *path);
/* Sets how many ranks the groups of collectives have that do not say it, as all_reduce in a file of
 * torch.export, for graphs that this Weft loads afterwards. ranks: from 1 on; 0: nothing is known,
 * and such a collective is an error where the graph is compiled. */
void weft_ranks(Weft *, uint32_t ranks);
/* Applies the pass of that name ("canon", "cse", ...; see weft_passes) to the graph, in place; to
 * each entry of joined graphs. Returns false after an error: also if there is no such pass. */
bool weft_transform(Weft *, WeftGraph *, const char *name);
/* States that the while loop `node` runs at most `rounds` rounds. Gradients of a while loop keep
 * values of each round and need this bound; they check it when they run. `node` is the name in
 * messages and weft_graph_text; if several loops have the name, also loops in bodies of others, all
 * are bounded. Changes the graph in place. Returns false after an error: there is no such loop, or
 * `rounds` is negative. */
bool weft_bound_loop(Weft *, WeftGraph *, const char *node, int64_t rounds);
typedef enum { WEFT_EVAL, WEFT_TRAIN } WeftMode;
/* Changes the graph, in place, into what torch.export gives after module.train() or module.eval():
 * sets the flag for training of every operator that has one (dropout, batch and instance norm,
 * recurrent networks with dropout, rrelu). Running statistics are state in training, constants in
 * evaluation. What Python decided by self.training is not in the file; for training a note says so.
 * Call it before other transforms. Returns false after an error, with the graph unchanged: the
 * graph was transformed before, or by run_decompositions(), or is beyond the limits of
 * docs/transforms.md (such as bernoulli, for evaluation). */
bool weft_set_mode(Weft *, WeftGraph *, WeftMode);
/* Replaces the values of parameters and buffers, in place, by those of n files: .safetensors, the
 * index of several (model.safetensors.index.json), .npz, .gguf. Every parameter, and every buffer
 * that state_dict() has, must be there with its shape; floats are converted to the model's dtype.
 * Weights in blocks of few bits (GGUF: Q8_0, Q4_0, Q4_K, ...) stay in them: products decode them,
 * they are no parameters any more and have no gradients. names: the path of a text that says what
 * parameters are called in the files (docs/c-api.md), or NULL: the same, and of a GGUF file of
 * Llama or Qwen what transformers call them. Warns of weights that no parameter took. Call it
 * before other transforms. Returns false after an error; the graph is then as before, unless memory
 * ran out. */
bool weft_load_weights(Weft *, WeftGraph *, const char *const *path, uint32_t n, const char *names);
/* What a weight is stored as. */
typedef enum {
	WEFT_WEIGHT_INT8, /* integers of 8 bits, and a scale for each row (output channel) */
	WEFT_WEIGHT_INT4, /* integers of 4 bits, and a scale for each group of a row's terms */
	WEFT_WEIGHT_BF16,
	WEFT_WEIGHT_FLOAT /* as it is */
} WeftWeightKind;
/* What products do with what they multiply such weights with. */
typedef enum {
	WEFT_QUANTIZE_NONE,
	WEFT_QUANTIZE_DYNAMIC, /* round it to 8 bits, by blocks of 32 terms, in each call
				  (docs/numerics.md); convolutions do not */
	WEFT_QUANTIZE_STATIC /* round it to 8 bits by the range that it has on `data`; of weights of
				8 bits, outside of loops and branches */
} WeftQuantizeActivations;
typedef struct {
	uint32_t size; /* of this structure */
	/* Of the weights that no rule of `keep` is about. Convolutions, and weights whose terms
	 * groups do not divide, get 8 bits instead of 4. */
	WeftWeightKind weights;
	uint32_t group;   /* of WEFT_WEIGHT_INT4: 32 (0), 64 or 128 terms */
	bool zero_points; /* of WEFT_WEIGHT_INT4: a zero point for each group, too */
	/* Whether tables that only look-ups read, as embeddings, are weights, too. Their rows get 8
	 * bits or bf16. */
	bool embeddings;
	WeftQuantizeActivations activations;
	/* Rules "NAME:KIND", of which the first that fits a weight's name counts. NAME is a weight
	 * or a module, "*" in it any text; KIND is int8, int4, bf16 or float. A rule that fits no
	 * weight is an error. */
	uint32_t nkeep;
	const char *const *keep;
	/* Values of inputs, called as these or x.0, x.1, ...; dimension 0 counts samples. The model
	 * is run on them: an error of a weight of 4 bits counts as much as the mean square of what
	 * it is multiplied with, and weft_quantize_report compares outputs. NULL: none. */
	const struct WeftTensors *data;
	/* With data: give weights more bits, those first that rounding changes most, until
	 * WeftQuantizeReport.snr is at least this: 8 in place of 4, and if that does not suffice
	 * for all of them, they stay as they are. 0: none get more. */
	double least_snr;
	uint32_t jobs; /* threads; 0: one per processor. The result is the same for any number */
	void (*progress)(void *user, const char *phase, uint32_t done,
			 uint32_t total); /* or NULL */
	void *progress_user;
} WeftQuantizeOptions;
/* Makes weights of the graph numbers of few bits, in place: constants of f32, f16 or bf16 that only
 * matrix products, convolutions and look-ups of rows read. They are no parameters any more: they
 * have no gradients, and no program replaces them. With static activations the graph is one in
 * basic operations then, which counts as transformed. Call it before other transforms. Returns
 * false after an error, with the graph unchanged: there is no such weight, a rule is wrong, a
 * weight has NaN or an infinity. */
bool weft_quantize(Weft *, WeftGraph *, const WeftQuantizeOptions *);
/* A weight that products or look-ups read, or that is large, as weft_quantize left it. */
typedef struct {
	const char *name; /* of the parameter */
	const char *type; /* "f32[512, 64]" */
	const char *kind; /* "int8", "int4", "bf16" or "float" */
	const char *why;  /* why it is not of the kind that was asked for; "" if it is */
	uint64_t bytes, bytes_before;
	double snr; /* 10 log10 of the weight's sum of squares over that of the errors; infinite if
		       there are none */
} WeftQuantizedWeight;
typedef struct {
	uint32_t nweight;
	const WeftQuantizedWeight *weight;
	uint64_t bytes, bytes_before; /* of all constants of the model */
	uint32_t samples;             /* calls of the model on the data; 0: there were no data */
	double snr; /* of all float outputs on the data, as of a weight; NaN: none */
	/* Of the rows of the first float output with several numbers in a row: the part whose
	 * greatest number stayed at its place. NaN: there is no such output. */
	double agreement;
} WeftQuantizeReport;
/* Returns the report on the last weft_quantize of this Weft, valid until the next one; NULL,
 * without a message, if there was none or it failed. */
const WeftQuantizeReport *weft_quantize_report(Weft *);
/* Writes a graph with all its constants into one file, whole or not at all, which weft_load reads:
 * a .safetensors file with the text form of the graph in its metadata. Only this version of Weft
 * need read it. Returns false after an error: joined graphs, weights without values. */
bool weft_save_graph(Weft *, const WeftGraph *, const char *path);
typedef enum { WEFT_PRECISION_BF16, WEFT_PRECISION_F16 } WeftPrecision;
/* Makes the graph compute in a lower precision, in place, as the model would under torch.autocast
 * on a CPU: contractions read operands of the dtype, sum in f32, and their results are stored in
 * it; what autocast computes in f32 stays f32. Inputs, outputs and state keep their types. Call it
 * before other transforms, but after weft_set_mode: gradients are those that autocast's backward
 * gives. Returns false after an error: the graph was transformed before. */
bool weft_set_precision(Weft *, WeftGraph *, WeftPrecision);
typedef enum { WEFT_ACTIVATIONS_INT8 = 1, WEFT_ACTIVATIONS_EXACT } WeftActivations;
/* Says how products of f32 and of constant weights of at most 8 bits are computed, in place:
 * WEFT_ACTIVATIONS_INT8 rounds the f32 operand to 8 bits, by blocks of 32 terms (docs/numerics.md);
 * WEFT_ACTIVATIONS_EXACT rounds none. If it is not called, those operands are rounded of which the
 * model says so (MatMulNBits with accuracy_level 4, weights in blocks of weft_load_weights), but
 * for GPUs and in graphs of derivatives.
 * Call it before other transforms. After WEFT_ACTIVATIONS_INT8 the graph has no derivatives.
 * Returns false after an error: the graph was transformed before. */
bool weft_set_activations(Weft *, WeftGraph *, WeftActivations);
/* Whether products of the graph may round an operand to 8 bits: weft_set_activations or the model
 * says so. Returns false after an error, too. */
bool weft_rounds_activations(Weft *, const WeftGraph *);
/* Returns an independent copy of a graph that was not joined, for all functions that take a graph,
 * or NULL after an error. */
WeftGraph *weft_copy_graph(Weft *, const WeftGraph *);

/* ---- function transforms (docs/transforms.md) ---- */

/* Each function returns a new graph and leaves the old one unchanged. The new graph can be
 * compiled, interpreted and transformed again, in any order and depth. If something cannot be
 * derived, the message names the node and a remedy.
 *
 * A graph that writes state writes it once, also after a transform; no derivative by the state is
 * computed unless the options name the state. */
typedef struct {
	uint32_t size; /* of this structure */
	/* By which values the graph is differentiated, in any order:
	 *   "inputs"      all inputs of a float or complex dtype
	 *   "params"      all parameters of such a dtype that require gradients in the file; no
	 *                 buffers
	 *   "all-params"  the parameters that require no gradients, too
	 *   a name        an input, a parameter or a buffer. A parameter with several names in the
	 *                 file counts once; its gradient has the first name.
	 * Neither nwrt nor ninput: "inputs". */
	uint32_t nwrt;
	const char *const *wrt;
	/* Further inputs, by index in weft_inputs. */
	uint32_t ninput;
	const uint32_t *input;
	/* weft_vjp: the outputs that have cotangents, by index in weft_outputs. noutput 0: all
	 * outputs of a float or complex dtype. */
	uint32_t noutput;
	const uint32_t *output;
	/* weft_vjp_split: the most bytes to save, at the hinted sizes. A number in 0..1 is a
	 * fraction of the bytes that would be saved without a budget; 0 saves as little as
	 * possible. A smaller budget computes more again, contractions too. NULL: the fastest
	 * choice. */
	const double *memory_budget;
} WeftGradOptions;
/* Gradients (reverse mode).
 * Inputs: the model's; then, for each output NAME with a cotangent, "ct.NAME" of the output's type.
 * Outputs: the model's; then "g.NAME" for each input, in order, and for each parameter, in the
 * file's order, by which the graph is differentiated. The gradient is that of the sum over outputs
 * of ct * y. For complex numbers it is PyTorch's: dL/d re + i dL/d im, where L is the real part of
 * conj(ct) * y. */
WeftGraph *weft_vjp(Weft *, const WeftGraph *, const WeftGradOptions *);
/* The gradients of weft_vjp in two graphs, for training.
 * *forward: the model, with further outputs saved.0, saved.1, ..., the values that gradients need.
 * *backward: inputs are the model's, saved.K and the cotangents; outputs are the gradients.
 * A value that is cheaper to compute again than to save is computed again in *backward. State is
 * written by *forward only. saved.0 is a number of the model: *backward refuses values that another
 * model saved, and values of other sizes. Compile both graphs as entries of one model (weft_join),
 * so that weights are stored once. Returns false after an error; both results are NULL then. */
bool weft_vjp_split(Weft *, const WeftGraph *, const WeftGradOptions *, WeftGraph **forward,
		    WeftGraph **backward);
/* Tests declared inverses (weft_invertible in weft_trace.h): the model, with a further output
 * "inverse.NAME.K", f64[], for each input K of each invertible block NAME. The output is the
 * largest difference between the block's input and what the inverse gives: a rounding error if the
 * inverse is right, NaN if the block is not invertible at these inputs. Returns NULL if there is no
 * such block. */
WeftGraph *weft_check_inverses(Weft *, const WeftGraph *);
/* Directional derivatives (forward mode).
 * Inputs: the model's; then a tangent "t.NAME" for each input, then for each parameter, by which
 * the graph is differentiated. Outputs: the model's; then "jy.NAME" for each output of a float or
 * complex dtype. */
WeftGraph *weft_jvp(Weft *, const WeftGraph *, const WeftGradOptions *);
/* Random numbers under weft_vmap, as in torch.func.vmap: an error; the same numbers for all members
 * of the batch; different numbers for each. */
typedef enum { WEFT_RANDOM_ERROR, WEFT_RANDOM_SAME, WEFT_RANDOM_DIFFERENT } WeftRandomness;
enum { WEFT_NO_BATCH = INT32_MIN }; /* None in in_dims and out_dims of torch.func.vmap */
typedef struct {
	uint32_t size; /* of this structure */
	/* The inputs with a batch dimension, by name, and by index in weft_inputs. Neither: all
	 * inputs. All members of the batch use the same value of any other input. */
	uint32_t nbatched;
	const char *const *batched;
	uint32_t ninput;
	const uint32_t *input;
	int64_t extent;     /* of the batch dimension; 0: a new symbol, whose value may be 0 */
	const char *symbol; /* the symbol's name; NULL: "batch". A number is appended if the model
	                       has a symbol of that name */
	WeftRandomness randomness;
	/* The position of the batch dimension, as in_dims of torch.func.vmap: one number for all
	 * batched inputs, or one for each of weft_inputs. Positions count the batch dimension;
	 * negative ones count from the last. WEFT_NO_BATCH: the input has no batch dimension.
	 * nin_dim 0: position 0. */
	uint32_t nin_dim;
	const int32_t *in_dim;
	/* The same for weft_outputs, as out_dims. WEFT_NO_BATCH: the output is returned once,
	 * without a batch dimension; an error if the output differs between members. */
	uint32_t nout_dim;
	const int32_t *out_dim;
} WeftVmapOptions;
/* The model for a batch: the chosen inputs and all outputs have a batch dimension. The new value of
 * an input that the model writes has the batch dimension at the input's position. */
WeftGraph *weft_vmap(Weft *, const WeftGraph *, const WeftVmapOptions *);

/* ---- several entries ---- */

/* Joins graphs of this Weft into one model with several entries, such as `prefill` and `decode`, in
 * this order. The result is for weft_compile, weft_emit, weft_jit, weft_loops, weft_plan,
 * weft_transform and weft_graph_text. Functions that ask about one graph take the graphs that were
 * joined.
 *
 * n is at least 1. name[k] is the entry's name: a C identifier, different from the others. (The
 * entry of a graph that was not joined is "run".) The graphs are copied; a joined graph cannot be
 * joined again. Sizes of equal name in different graphs are different sizes.
 *
 * Constants with equal contents are stored once. If weights are replaceable, parameters are stored
 * once only if their names are equal, too, and different contents of one name are an error of the
 * compilation.
 *
 * State is shared by name: a parameter or buffer that one graph writes is state in all graphs that
 * have the name. Different types or initial contents of one name are an error. Returns NULL after
 * an error. */
WeftGraph *weft_join(Weft *, uint32_t n, const char *const *name, WeftGraph *const *graph);
typedef struct {
	uint32_t size; /* of this structure */
	/* Names of state that entries do not share: each entry that writes it has its own state
	 * ENTRY.NAME; in other entries it stays a constant. */
	uint32_t nprivate;
	const char *const *private_state;
	/* State that is shared under different names: "a.x=b.y" makes y of entry b the state x of
	 * entry a. */
	uint32_t nsame;
	const char *const *same_state;
} WeftJoinOptions;
/* weft_join with options. */
WeftGraph *weft_join_with(Weft *, uint32_t n, const char *const *name, WeftGraph *const *graph,
			  const WeftJoinOptions *);

/* ---- training (docs/tutorials/train-command.md) ---- */

/* What a step of training does. A number is written as "0.01", "input" (the step takes it from the
 * caller), or a schedule of the count of steps, "cosine(3e-4, warmup=100, steps=10000)". */
typedef struct {
	uint32_t size; /* of this structure */
	/* An optimiser of the table (weft_table_optimizer), with numbers and flags:
	 * "adamw(lr=input, weight_decay=0.01, amsgrad=true)". */
	const char *optimizer;
	/* "output:0": the model's output is the loss. "cross_entropy(output=0,
	 * label_smoothing=0.1)": a loss of the output and of a label; there are also nll, mse, l1,
	 * smooth_l1, huber, bce, bce_with_logits. */
	const char *loss;
	/* Groups of parameters with other numbers: "*.bias,*norm*: weight_decay=0, lr=1e-4", or
	 * "*.weight: optimizer=sgd(lr=0.1)". * stands for any characters. The first group that
	 * names a parameter has it; a group without parameters is an error. "words.*: sparse=true":
	 * of these tables only rows are updated that a step reads (sgd, adagrad, sparse_adam). */
	uint32_t ngroup;
	const char *const *group;
	/* Patterns of the parameters that are trained, with commas between them. None: those that
	 * require gradients in the model's file; of ONNX, whose files do not say that, all floats
	 * of several elements but running statistics. The others are constants. */
	uint32_t ntrainable;
	const char *const *trainable;
	/* As torch.nn.utils.clip_grad_norm_ and clip_grad_value_, values first; NULL: no clipping.
	 * Inputs are called clip_norm and clip_value. */
	const char *clip_norm, *clip_value;
	/* "0.999": `eval` and `test` read averages of the parameters, "ema.PARAMETER": after each
	 * update 0.999 of what they were and the rest of the new value. They begin as the
	 * parameters. NULL: no averages. */
	const char *ema;
	/* NULL, "bf16" or "f16": as under torch.autocast, with f32 parameters. With f16 the loss
	 * has a scale (loss_scale). */
	const char *precision;
	bool outputs;          /* the step gives the model's outputs, too */
	bool test;             /* a third entry `test` */
	bool keep_mode; /* the step computes in the mode that the graph has, not in training mode */
	bool accumulate; /* two entries in place of `step`: `accumulate`, `apply` */
	/* A step whose loss or gradient is not finite updates nothing: parameters, the optimiser's
	 * state and averages stay, and running statistics where the loss is not finite. The output
	 * "skipped", bool[], says so. */
	bool skip_not_finite;
	/* "dynamic(begin=65536, growth=2, backoff=0.5, every=2000)": the scale of the loss, state
	 * "weft.loss_scale", as that of torch.amp.GradScaler: gradients are computed of the loss
	 * times the scale, and divided by it. A step with gradients that are not finite is skipped
	 * (skip_not_finite), and the scale becomes smaller; after `every` good steps without one,
	 * counted by "weft.good_steps", larger. NULL: with f16 "dynamic", else none. */
	const char *loss_scale;
} WeftTrainOptions;
/* Returns a model that trains, with two entries that have their state in common (weft_join).
 *
 * `step` computes the loss, its gradients, and new values of the parameters and of the optimiser's
 * state. Its inputs are the model's, then "label" if the loss takes one, then numbers that are
 * "input", f64[], such as "lr" (of group K with a number of its own, "lr.K"). Its outputs are
 * "loss", then with `outputs` the model's, and with clip_norm "grad_norm", the norm before
 * clipping. A call that fails changes nothing.
 * `eval` computes the model in evaluation mode. Outputs of a .pt2 file are called "output", or
 * "output.0" and so on. With `test` there is a further entry, which does as `eval` and takes a
 * label; its first output is "loss". With `accumulate`, an update takes gradients of several
 * batches: `accumulate` computes the loss and adds the gradients, times its last input "weight"
 * (f64[]; 1/k of k equal batches gives the mean), to state "grad.PARAMETER". `apply` takes the
 * numbers that are "input", updates the parameters by these sums, and sets them to 0.
 *
 * State: parameters and buffers by their names; "state.PARAMETER.exp_avg" and so on, by PyTorch's
 * keys; "optimizer.0.step" and other numbers, f32[n], one for each parameter of the group 0 (that
 * of parameters without a group of the options; those have the numbers 1, 2, ...); "weft.step" if
 * a number is a schedule. weft.train_step in Python makes models of the same form.
 *
 * eval: the model exported in evaluation mode; NULL: `train` in that mode (weft_set_mode). Both
 * graphs stay as they are. Returns NULL after an error. Notes say what is trained. */
WeftGraph *weft_train(Weft *, const WeftGraph *train, const WeftGraph *eval,
		      const WeftTrainOptions *);

/* ---- inspect ---- */

/* Returns the graph's text form. after NULL: of the graph as it is; else of a copy, after all
 * passes up to and including the one of that name (weft_passes). The graph stays unchanged. Of
 * joined graphs: the texts of all entries, one behind the other. Returns NULL after an error: also
 * if there is no such pass. */
const char *weft_graph_text(Weft *, const WeftGraph *, const char *after);
/* Returns the graph as weft_graph_text has it, in the language of graphviz. Returns NULL after an
 * error: also for joined graphs. */
const char *weft_graph_dot(Weft *, const WeftGraph *, const char *after);
/* Returns the names of all passes, in the order in which a compilation applies them, followed by
 * NULL. The list is constant. */
const char *const *weft_passes(void);
/* Lists of a graph that was not joined. Each function returns a list, and sets *n (n may be NULL)
 * to the number of its elements. If there are none, the result is not NULL. After an error it
 * returns NULL and sets *n to 0.
 *
 * Returns the list of the model's inputs, in order, without state. */
const WeftTensorInfo *weft_inputs(Weft *, const WeftGraph *, uint32_t *n);
/* Returns, as weft_inputs does, the list of the model's outputs, in order, without new values of
 * state and without new values of inputs that the model writes. */
const WeftTensorInfo *weft_outputs(Weft *, const WeftGraph *, uint32_t *n);
/* Returns, as weft_inputs does, the list of the outputs of the compiled model (weft_output): those
 * of weft_outputs and the new values of inputs, in the order of the graph. */
const WeftTensorInfo *weft_results(Weft *, const WeftGraph *, uint32_t *n);
/* Returns, as weft_inputs does, the list of the state: the parameters and buffers that the graph
 * writes. Each instance of the compiled model has its own. */
const WeftTensorInfo *weft_states(Weft *, const WeftGraph *, uint32_t *n);
/* Returns, as weft_inputs does, the list of the symbols: the sizes by name that extents of inputs
 * and state mention, which are known only at run time. */
const WeftSymbolInfo *weft_symbols(Weft *, const WeftGraph *, uint32_t *n);
/* Returns, as weft_inputs does, the list of the guards: the conditions on symbols that a call
 * checks, as text. */
const char *const *weft_guards(Weft *, const WeftGraph *, uint32_t *n);
typedef struct {
	const char *name; /* "aten.conv2d" */
	uint32_t count;
} WeftOpCount;
/* Returns, as weft_inputs does, the list of the operators that nodes of the graph call, the most
 * frequent first, then by name; nodes of bodies of control flow do not count. */
const WeftOpCount *weft_operators(Weft *, const WeftGraph *, uint32_t *n);
/* Returns the bytes of all parameters and buffers of the model, of joined graphs of all of them; 0
 * for NULL. */
uint64_t weft_weight_bytes(const WeftGraph *);
/* Sets shape[rank] to the extents of input k (of weft_inputs), if symbol[i] is the value of element
 * i of weft_symbols; symbol may be NULL if weft_symbols has none. Returns false after an error. */
bool weft_input_shape(Weft *, const WeftGraph *, uint32_t k, const int64_t *symbol, int64_t *shape);

/* ---- interpret ---- */

/* Runs the graph by the reference interpreter. inputs[n]: all of weft_inputs, with any strides;
 * they are only read. outputs (room for as many as weft_outputs): filled in, row-major; data and
 * shape belong to the Weft until weft_release. State has its initial contents, and what the graph
 * writes to it is dropped. Returns false after an error, which may be a failed check of the
 * model. */
bool weft_interpret(Weft *, WeftGraph *, const WeftTensor *inputs, uint32_t n, WeftTensor *outputs);
/* Lets collectives of graphs that this Weft interprets communicate by that provider, which stays
 * valid until another one (NULL: none) replaces it. Compiled models have WeftContext.comm. */
void weft_interpret_comm(Weft *, const WeftComm *);
/* weft_interpret with state of the caller: row-major tensors in the order of weft_states, of their
 * types. The call reads them, and writes the new values if it succeeds. state NULL: as
 * weft_interpret. Returns false after an error. */
bool weft_interpret_on(Weft *, WeftGraph *, const WeftTensor *state, const WeftTensor *inputs,
		       uint32_t n, WeftTensor *outputs);
/* weft_interpret_on that gives all of weft_results: results has room for as many. */
bool weft_interpret_all(Weft *, WeftGraph *, const WeftTensor *state, const WeftTensor *inputs,
			uint32_t n, WeftTensor *results);
/* Writes the initial contents of the state into the memory of state[]: row-major tensors of the
 * caller, in the order of weft_states, of their types. state may be NULL if weft_states has none.
 * Returns false after an error. */
bool weft_first_state(Weft *, const WeftGraph *, const WeftTensor *state);
/* Frees the outputs of all weft_interpret, _on and _all of this Weft so far. NULL is
 * allowed. */
void weft_release(Weft *);

/* ---- targets ---- */

/* A target of compilation; docs/targets.md explains the fields. Texts are "" if there is nothing to
 * say. */
typedef struct {
	const char *name, *triple, *cpu, *attributes, *attribute_features, *features, *flags,
		*masks;
	uint32_t vector_bytes, registers, l1, l2, threads, page;
	bool fma, f16, masked_memory, gathers;
	bool runs_here;   /* this processor has its features */
	bool native;      /* "native" means this target here, perhaps with more features */
	bool has_runtime; /* this compiler contains the runtime for the triple, which the LLVM back
	                     end needs */
	const char *machine; /* the machine whose costs the target assumes */
} WeftTargetInfo;
/* An operator of the table: what `weft ops` says of it. Texts are constant; "" where there is
 * nothing to say. */
typedef struct {
	uint32_t size;          /* sizeof(WeftOperator), set by the caller */
	const char *name;       /* "aten.add.Tensor" */
	const char *schema, *aliases, *doc; /* aliases: other names, blanks between */
	const char *kind;       /* "scalar", "primitive", "expansion" (a formula of others),
	                           "code" */
	const char *definition; /* the formula of a scalar function or expansion */
	const char *dtypes;     /* in which dtype an element-wise operator computes, and what
	                           results */
	const char *derivative; /* "rule", "expansion", "none" */
	const char *batch;      /* "rule", "expansion", "member by member" */
	const char *deviates;   /* where results are not PyTorch's, on purpose */
} WeftOperator;
/* Sets *out to operator k of the table, from 0 on, in an order of its own; fields behind out->size
 * are not written. Returns false, with all texts "", if there are not so many; also if out is
 * NULL. */
bool weft_table_operator(uint32_t k, WeftOperator *out);
/* Returns a list of targets, and sets *n (n may be NULL) to their number. name NULL: all known
 * targets of CPUs; else the targets that WeftOptions.target would name, one or several levels.
 * Returns NULL, with *n 0, after an error: there is no such target. */
const WeftTargetInfo *weft_targets(Weft *, const char *name, uint32_t *n);

/* ---- compile ---- */

typedef enum {
	WEFT_WEIGHTS_EMBED, /* within the shared object */
	WEFT_WEIGHTS_FILE   /* MODEL.weights beside the shared object, which `open` maps */
} WeftWeights;

/* Called during a compilation, by the thread that compiles: `done` of `total` units of the phase
 * are complete; 0 where a phase begins. */
typedef void (*WeftProgress)(void *user, const char *phase, uint32_t done, uint32_t total);

typedef enum {
	WEFT_BACKEND_DEFAULT, /* LLVM, if this build has LLVM and the runtime for the target; else,
	                         or if the option cc is set, C */
	WEFT_BACKEND_C,       /* C text and a C compiler */
	WEFT_BACKEND_LLVM     /* objects by LLVM and a linker */
} WeftBackend;
/* Loads a library that exports weft_backends_of (weft_backend.h), and registers its back ends for
 * the compilations of this Weft. The library stays loaded until weft_free. Returns false after an
 * error, and then registers none of them. */
bool weft_backend_load(Weft *, const char *path);
typedef struct {
	const char *name, *about; /* about: what it makes, in a line */
	bool available;           /* weft_has_llvm, for LLVM */
} WeftBackendInfo;
/* Returns the back ends of this build and those that were registered with this Weft, and sets *n (n
 * may be NULL) to their number. Returns NULL, with *n 0, after an error. */
const WeftBackendInfo *weft_backends(Weft *, uint32_t *n);
/* Something that compiling or running uses, and whether this machine has it. Texts live as long as
 * the Weft. */
typedef struct {
	const char *name;   /* "C compiler" */
	const char *what;   /* which one, or what is missing */
	const char *advice; /* what to do if it is missing, and what for; else "" */
	bool found;
} WeftFinding;
/* Looks for what this machine has: the processor's target, LLVM, a linker, a C compiler, LAPACK,
 * the cache of objects, which is made if it is missing, NVIDIA's driver, NVRTC and cuBLASLt. Sets
 * *n (n may be NULL) to the number of findings. Returns NULL, with *n 0, after an error. */
const WeftFinding *weft_findings(Weft *, uint32_t *n);
/* Whether the LLVM back end of this build (weft_llvm.so) is found. It is searched in
 * $WEFT_LLVM_FOLDER if that is set; else beside libweft.so or the program, in the folder weft
 * beside libweft.so, and where Weft was installed. WeftOptions.llvm_folder names another folder for
 * one compilation. The first library that is loaded stays loaded until the process ends. */
bool weft_has_llvm(void);

typedef struct {
	uint32_t size;      /* of this structure */
	const char *target; /* "native" (NULL), "x86-64-v3", "generic-c", "target.json".
	                       "x86-64-v2,v3,v4": one file with code for several levels; loading
	                       chooses one (docs/targets.md) */
	WeftWeights weights;
	bool replaceable; /* set_weights can replace parameters at run time. Costs code, but no time
	                     in models that do not use set_weights */
	bool op_by_op;    /* no fusion: each operator is a kernel of its own */
	bool no_cache;    /* neither reads nor writes the cache of objects; no effect in weft_jit */
	uint32_t jobs;         /* the most compiler processes at a time; 0: one per processor */
	const char *cc;        /* C: the compiler; NULL: $CC, else cc */
	const char *symbol;    /* the name of the exported function; NULL: weft_model */
	const char *name;      /* the model's name; NULL: from the file name */
	const char *dump;      /* weft_dump returns the graph after this pass; "all": after each */
	WeftProgress progress; /* may be NULL */
	void *progress_user;
	WeftBackend backend; /* for weft_compile only */
	const char *llvm_folder; /* the folder of weft_llvm.so; NULL: see weft_has_llvm */
	const char *tune;    /* the machine whose costs decide: "zen4", "skylake-x", "machine.json";
	                        NULL: the machine that the target assumes (docs/targets.md) */
	bool duplicate_weights; /* each kernel has its large constants in its best layout; the file
	                           may hold a constant several times */
	/* Where a shared object finds the functions of user operators (weft_op.h): files
	 * ("ops/libmylib.so", "mylib.a"), or names for the linker's -l ("mylib"). */
	uint32_t nlink;
	const char *const *link;
	/* The back end of weft_compile by its name, as in weft_backends; NULL: `backend` says. One
	 * of a library makes what it makes instead of a shared object: a file, or a folder. */
	const char *backend_name;
	bool cancellable; /* entries that write state: calls can end early at any phase, and keep
			     the old values of what they replace (WEFT_ENTRY_CANCELLABLE) */
} WeftOptions;

typedef enum {
	WEFT_EMIT_C,         /* a folder: C, weights, the runtime, a Makefile */
	WEFT_EMIT_HEADER,    /* a C header for users of the model */
	WEFT_EMIT_IR,        /* the graph after all passes */
	WEFT_EMIT_PROGRAM,   /* loop IR of `sizes` and `run` */
	WEFT_EMIT_LOOPS,     /* loop IR of the kernels, legal for the target */
	WEFT_EMIT_SCHEDULES, /* loop IR of the kernels before legalising */
	WEFT_EMIT_OBJECT,    /* LLVM: kernels, tables and weights as one relocatable object, without
				the runtime */
	WEFT_EMIT_ARCHIVE,   /* LLVM: the object and the runtime as a static library */
	WEFT_EMIT_LLVM,      /* LLVM IR as text, before optimisation */
	WEFT_EMIT_ASM,       /* LLVM: assembly */
	WEFT_EMIT_SHARED,    /* the shared object of weft_compile */
	WEFT_EMIT_CUDA,      /* NVIDIA's GPUs: CUDA C of the kernels */
	WEFT_EMIT_HIP        /* AMD's GPUs: HIP of the kernels */
} WeftEmit;

/* Compiles into a shared object at `path`, or into what WeftOptions.backend_name makes instead.
 * Returns false after an error; then no file is left or changed, but a folder that existed may have
 * some of the new files. */
bool weft_compile(Weft *, const WeftGraph *, const WeftOptions *, const char *path);
/* Writes the form of that kind to `path`: a folder for WEFT_EMIT_C, else a file. WEFT_EMIT_SHARED
 * is weft_compile. Returns false after an error; then no file is left or changed, but a folder that
 * existed may have some of the new files. */
bool weft_emit(Weft *, const WeftGraph *, const WeftOptions *, WeftEmit, const char *path);
/* What weft_emit writes into a file, in memory, byte for byte; a kind that is a folder
 * (WEFT_EMIT_C) is an error. weights: for WEFT_EMIT_SHARED with WEFT_WEIGHTS_FILE the contents of
 * the weight file, which WeftOpen.weights takes without its first 4096 bytes; else nothing (data
 * NULL), and may be NULL. The model looks for the weight file NAME.weights, of the model's name.
 * The results belong to the caller, who calls their `release`, before or after weft_free; both are
 * zeros after an error. */
bool weft_save_memory(Weft *, const WeftGraph *, const WeftOptions *, WeftEmit, WeftMemory *,
		      WeftMemory *weights);
/* Compiles into this process by the LLVM back end: writes no file, starts no program. The result is
 * used like that of weft_model(); its `open` needs no WeftOpen. Code and weights belong to the
 * Weft: close all instances before weft_free. A Weft may hold several models; threads may run them
 * while the Weft compiles another one. The option `target` must be one that runs here
 * (WeftTargetInfo); `weights`, `no_cache`, `cc`, `symbol`, `backend` and `backend_name` have no
 * effect, but wrong values of them are errors. */
const WeftModel *weft_jit(Weft *, const WeftGraph *, const WeftOptions *);
/* weft_jit, but the model owns its code, tables and weights: the Weft may be freed. Objects come
 * from the cache and go into it (docs/c-api.md), unless no_cache. The model lives until
 * weft_jit_free. A model that calls user operators is refused: their libraries end with the
 * Weft. Returns NULL after an error. */
const WeftModel *weft_jit_keep(Weft *, const WeftGraph *, const WeftOptions *);
/* Frees a model of weft_jit_keep, after all its instances were closed. Does nothing with NULL, with
 * another model, or with one that was freed. Any thread may call it. */
void weft_jit_free(const WeftModel *);
/* Makes a model whose `sizes` and `run` are executed by the interpreter of loop IR; for tests of
 * the compiler. It is valid until weft_free. Needs neither LLVM nor a C compiler, and takes any one
 * target. The results have the bits of compiled code. `sizes` and `run` return WEFT_ERR_CHECK for
 * errors that compiled code would not notice (docs/kernels.md: an access out of bounds, a read of
 * memory that was never written, tasks that disturb each other), and after 10^8 statements. Used
 * like the result of weft_jit, but only by the thread that uses the Weft, and always on one thread;
 * WeftContext.profile is not called. */
const WeftModel *weft_loops(Weft *, const WeftGraph *, const WeftOptions *);
/* Returns the text that the option `dump` asked for in the last compilation; "" if that asked for
 * nothing or failed in its passes. Valid until weft_free. */
const char *weft_dump(Weft *);

/* A schedule that did not take a kernel, and the reason. near: the kernel has the form that the
 * schedule computes, and only an index, a size or a predicted cost spoke against the schedule. */
typedef struct {
	const char *schedule, *why;
	bool near;
} WeftRefusal;

/* What a kernel for a GPU takes, in seconds, for all launches of a run: an estimate from the GPU's
 * data sheet and the plan of the kernel, no measurement. The parts go on at the same time, so they
 * add up to more than WeftKernelInfo.seconds; the longest one limits the kernel. */
typedef struct {
	const char *device; /* the GPU of the numbers, "H100 SXM" */
	double start;   /* until the GPU begins a launch */
	double memory;  /* bytes are moved from and to memory */
	double units;   /* threads compute */
	double waits;   /* threads wait for memory, one access after the other */
	double library; /* of a product or convolution: the vendor's library in place of the
	                   kernel; 0: the kernel is neither */
} WeftEstimate;

typedef struct {
	const char *name, *algorithm;
	const char *function; /* the emitted function; equal kernels share one */
	/* Counts of one run, all launches of the call together. A kernel in a loop has one launch
	 * per round; of a while loop one round is counted, of a branch both sides. flops: two for
	 * each product that is added to a sum, one for each element of any other stage that
	 * computes. bytes: each element that is read or written counts once; of an embedding, the
	 * selected rows. */
	double flops, bytes, launches;
	const char *why; /* the reason for the algorithm; NULL: unknown, as for a shared object */
	uint32_t nrefused;
	const WeftRefusal *refused;
	double seconds; /* predicted for all launches, on one core of the machine `tune`, or by
	                   the whole GPU; 0: unknown */
	const char *stored; /* why the result is stored and not computed in the kernel that reads
	                       the result; NULL: unknown, or the kernel only copies */
	const char *line; /* see WeftCallInfo.line, .nline */
	uint32_t nline;
	const char *plan; /* what the schedule decided: loops, tiles, blocks, tasks. Lines with a
	                     newline between, one for each phase of the kernel; NULL: unknown, as
	                     for a shared object, or nothing was decided, as for a user operator */
	const WeftEstimate *estimate; /* what makes up `seconds` by a GPU; NULL: no GPU, or unknown,
	                                 as at other sizes than those seen while exporting */
} WeftKernelInfo;

typedef struct {
	const char *name; /* "lower", "cc", ... */
	double seconds;
} WeftPhaseTime;

/* One entry; see WeftReport. */
typedef struct {
	const char *name;
	uint32_t operators, nkernel;
	const WeftKernelInfo *kernel;
	double flops, bytes;
	uint64_t workspace_bytes, saved_bytes;
} WeftEntryReport;

/* One state of the model. The texts list entries, "prefill, decode"; "" is none. */
typedef struct {
	const char *name;
	uint64_t bytes;
	const char *written_by, *read_by; /* read_by: entries that read but do not write the
	                                     state */
	const char *constant_in; /* entries of read_by in which the value would be a packed constant
	                            if no other entry wrote it */
} WeftStateReport;

/* What the last compilation of this Weft made. Counts are sums over all entries, each run once;
 * workspace_bytes and saved_bytes are the largest of all entries. */
typedef struct {
	uint32_t operators, kernels; /* kernels: calls */
	uint32_t distinct;           /* different kernels */
	uint32_t objects, cached;    /* translation units, and how many came from the cache */
	double flops;
	uint64_t weight_bytes, workspace_bytes, code_bytes;
	uint32_t nphase;
	const WeftPhaseTime *phase;
	uint32_t nkernel;
	const WeftKernelInfo *kernel;
	double bytes; /* read and written by all kernels; see WeftKernelInfo */
	uint64_t copied_bytes; /* the part of weight_bytes that are constants in a second layout */
	uint64_t state_bytes;
	uint64_t saved_bytes; /* the part of workspace_bytes that holds old state, restored if a
	                         call fails */
	uint32_t nentry;
	const WeftEntryReport *entry; /* the same counts by entry */
	uint32_t nstate;
	const WeftStateReport *state;
	const char *floats; /* quantised models: products of dequantised numbers that are not
	                       products of integers, a line each, "NAME: REASON"; "": none */
} WeftReport;
/* Returns the report on the last compilation, with counts at the sizes seen while exporting; valid
 * until the next compilation. Returns NULL, without a message, if nothing was compiled, or if the
 * last compilation failed (but there may be a report if only the output could not be written). */
const WeftReport *weft_report(Weft *);
/* Returns the report with counts at other sizes: symbol[k] is the value of symbol k, in the order
 * of weft_symbols, of WeftEntry.symbol and of the first slots of WeftSizes; of several entries, one
 * after the other. n is the number of all symbols. Returns NULL after an error: nothing was
 * compiled, n is wrong, or a value is out of its symbol's range. */
const WeftReport *weft_report_at(Weft *, const int64_t *symbol, uint32_t n);
/* A node of a graph that was compiled. Numbers of nodes count from 1 in program order; the nodes of
 * a body follow the node that has the body. */
typedef struct {
	const char *name, *op; /* as weft_node_name and weft_node_op */
	const char *kind;      /* "input", "state", "constant" or "call" */
	const char *user_name; /* as weft_node_user_name */
	const char *type;      /* "f32[s0, 3]"; of several results "(f32[2], i64[])" */
	const char *line;      /* "net.py:12 in layer.0"; "": unknown */
	double bytes;          /* of the results */
	uint32_t around;       /* the node whose body has this one; 0: none */
	uint32_t noperand;
	const uint32_t *operand; /* numbers of nodes; 0: absent */
} WeftNodeDetails;

/* An operator that a kernel computes, after all passes. */
typedef struct {
	const char *name, *op, *type;
	uint32_t node; /* the node of which a pass made the operator; 0: of none alone */
	bool again;    /* an earlier kernel computes the same value, too, so that it is recomputed
			  here instead of stored there; false for index maps */
} WeftKernelOp;

/* Memory that kernels read or write. */
typedef struct {
	const char *name; /* of the value of the graph, or of memory between phases of a kernel */
	const char *kind; /* "input", "output", "weights", "state", "workspace", or "room": memory
			     whose size `run` finds out */
	WeftDType dtype;
	double bytes, padding; /* bytes with padding; how many of these are padding */
	double offset;         /* in the workspace; -1: not there */
	uint32_t first, last;  /* of the workspace and of rooms: the kernels, counted from 1, from
				  which and until which the memory is the buffer's; else 0 */
} WeftBufferDetails;

typedef struct {
	uint32_t buffer; /* counted from 1 */
	bool read, written;
} WeftKernelAccess;

typedef struct {
	uint32_t node; /* the node that takes most of the kernel's time, by the kind of operator;
			  0: unknown */
	bool joins;    /* runs at the same time as the kernel before */
	bool user;     /* a user operator, or one of LAPACK */
	uint32_t nop, naccess;
	const WeftKernelOp *op; /* in the order in which they are computed */
	const WeftKernelAccess *access;
} WeftKernelDetails;

/* What an entry of the last compilation consists of. */
typedef struct {
	uint32_t nnode, nkernel, nbuffer;
	const WeftNodeDetails *node;     /* [0] is node 1 */
	const WeftKernelDetails *kernel; /* as WeftEntryReport.kernel */
	const WeftBufferDetails *buffer; /* [0] is buffer 1 */
	const char *target;              /* the target of the numbers, "x86-64-v4" */
} WeftDetails;
/* Returns the details of entry number `entry` of the last compilation, which was one of this graph.
 * symbol[n]: the values of the entry's symbols, as in weft_report_at; n 0: those seen while
 * exporting. Valid until weft_free. Returns NULL after an error: nothing was compiled, the graph is
 * another one, there is no such entry, n is wrong, or a value is out of its symbol's range. */
const WeftDetails *weft_details(Weft *, const WeftGraph *, uint32_t entry, const int64_t *symbol,
				uint32_t n);
/* Returns the code of a kernel of an entry of the last compilation, for readers: the C that
 * WEFT_EMIT_C writes, without what several kernels share; of a kernel for a GPU its loop IR.
 * Kernels with one WeftKernelInfo.function have one text. Valid until weft_free. Returns NULL after
 * an error: nothing was compiled, or there is no such kernel. */
const char *weft_kernel_source(Weft *, uint32_t entry, uint32_t kernel);
/* Plans kernels and memory as weft_compile does, without making code: fills in weft_report. Returns
 * false after an error. */
bool weft_plan(Weft *, const WeftGraph *, const WeftOptions *);

/* ---- ending early ---- */

/* For the handler of a signal that ends the process. Ends the compilers and linkers that this
 * process started, and removes the temporary files of its compilations. Async-signal-safe. The
 * process must end next: compilations in progress may not return. */
void weft_abandon(void);
/* Registers a file or folder of the caller, which weft_abandon then removes, too. Call it before
 * making the file. The text must stay valid and unchanged until weft_not_temporary. Any thread may
 * call. */
void weft_temporary(const char *path);
/* Ends the registration that weft_temporary began with the same pointer; the file stays. */
void weft_not_temporary(const char *path);

/* ---- tensor files ---- */

/* A list of named tensors, with texts as metadata. It belongs to the Weft. */
typedef struct WeftTensors WeftTensors;

/* Reads .npz or .npy, by extension, a folder of ONNX's test data (input_0.pb is x.0, output_0.pb is
 * y.0), else .safetensors; a .npy holds one tensor, named after the file. Contents may stay in the
 * mapped file, for which the rules of weft_load hold. Complex tensors that the file stores as pairs
 * of reals, listed in its metadata, become complex. Returns NULL after an error. */
WeftTensors *weft_tensors_read(Weft *, const char *path);
/* Makes an empty list. Returns NULL after an error. */
WeftTensors *weft_tensors_new(Weft *);
/* Returns the number of tensors; 0 for NULL. */
uint32_t weft_tensors_count(const WeftTensors *);
/* The name of tensor k. Tensors of a file are sorted by name (numbers in names sort as numbers);
 * tensors that are added follow. Returns NULL, without a message, if k is out of range. */
const char *weft_tensors_name(const WeftTensors *, uint32_t k);
/* Returns tensor k, valid until the next weft_tensors_add; NULL, without a message, if k is out of
 * range or the list is NULL. */
const WeftTensor *weft_tensors_at(const WeftTensors *, uint32_t k);
/* The tensor of that name, as from weft_tensors_at; NULL, without a message, if there is none. */
const WeftTensor *weft_tensors_find(const WeftTensors *, const char *name);
/* The metadata of that key in a .safetensors file that was read; NULL, without a message, if there
 * is none. */
const char *weft_tensors_meta(const WeftTensors *, const char *key);
/* The key of text k of the metadata of a .safetensors file that was read; NULL, without a message,
 * if k is out of range or the list is NULL. */
const char *weft_tensors_meta_key(const WeftTensors *, uint32_t k);
/* Adds a tensor; name and shape are copied, and so is the data of a tensor that is not row-major.
 * Other data must stay valid as long as the list is used. Returns false after an error: the name is
 * taken or empty, or the tensor has a dtype that Weft lacks, a wrong shape, or no data. */
bool weft_tensors_add(Weft *, WeftTensors *, const char *name, const WeftTensor *);
/* Sets a text of the metadata, which weft_tensors_write writes into a .safetensors file; it
 * replaces one of that key that was set before. Both texts are copied. Returns false after an
 * error: the key is empty, or is "complex", which is Weft's own. */
bool weft_tensors_set_meta(Weft *, WeftTensors *, const char *key, const char *value);
/* Writes the tensors into a file: .npz or .npy (of one tensor) by extension, else in the format of
 * .safetensors. Metadata of a file that was read is not written. Returns false after an error; then
 * no file is left or changed, also if the machine loses power. */
bool weft_tensors_write(Weft *, const WeftTensors *, const char *path);

/* Writes n bytes into a file as all functions above do: whole or not at all, through symbolic
 * links. Writes into a device, a FIFO or /dev/stdout directly. Returns false after an error: also
 * if the file is a model or target file that this Weft has read. */
bool weft_write_file(Weft *, const char *path, const void *data, size_t n);

#ifdef __cplusplus
}
#endif
#endif
