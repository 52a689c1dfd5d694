/* Random graphs of primitives whose results are predictable enough to compare: every value carries
 * a bound of its size, its granularity, and a bound of what rounding may change. What is exact must
 * agree to the bit; comparisons, rounding and indices are taken of exact values only. */
#ifndef WEFT_TESTS_FUZZ_FUZZ_H
#define WEFT_TESTS_FUZZ_FUZZ_H

#include "ir/build/build.h"
#include "ir/op/op.h"
#include "ir/interp/tensor.h"

typedef struct {
	Node n;
	int gran, mag; /* while err is 0 a multiple of 2^gran; at most 2^mag in absolute value */
	double err;    /* absolute */
} Value;

/* What an input holds: lo + k * step, at most hi. */
typedef struct {
	double lo, hi, step;
} FuzzInput;

/* The symbols of all random graphs: of a batch, of rows, of what may be empty. */
enum { FUZZ_SYMBOLS = 3 };
typedef struct {
	const char *name;
	int64_t lo, hi;
} FuzzSymbol;
extern const FuzzSymbol fuzz_symbol[FUZZ_SYMBOLS];

typedef struct {
	Sym s;
	int64_t lo, hi;
} FuzzRange;

typedef struct Fuzz {
	Graph *g;
	Ir *ir;
	Build b;
	uint64_t rng;
	const char *prefix; /* of the names of inputs and outputs */
	Sym size[FUZZ_SYMBOLS];
	FuzzRange range[256]; /* of symbolic integers, by the last bits of their handles */
	DType dtype;          /* of most inputs; DT_none: f32 */
	bool is_body;         /* of a loop: no new inputs */
	bool has_complex;     /* complex numbers too */
	ARRAY(Value) pool;
	Text *header;  /* of a file test: inputs and constants, of other random graphs in it too */
	uint64_t seed; /* of what these hold, at first */
	Text *tolerances; /* by output */
} Fuzz;

/* Adds a random graph of about nstep operations to f->g, with outputs. False after ctx_error. */
bool fuzz_graph(Fuzz *, uint32_t nstep);

/* ---- random choices ---- */

uint32_t fuzz_below(Fuzz *, uint32_t n); /* 0 .. n-1 */
bool fuzz_chance(Fuzz *, uint32_t percent);

/* ---- values ---- */

/* A value of the pool that `fits`, recent ones more often; false when there is none. */
bool fuzz_pick(Fuzz *, bool (*fits)(const Fuzz *, const Value *), Value *out);
/* Into the pool, unless the build failed or its error bound says nothing any more. */
bool fuzz_push(Fuzz *, Value);
/* A fresh input (or, sometimes, constant); of complex numbers an input with parts of -1..1. */
Value fuzz_input(Fuzz *, DType, uint32_t rank, const Sym *dim);
/* An i64 input of values lo..hi. */
Value fuzz_index(Fuzz *, uint32_t rank, const Sym *dim, int64_t lo, int64_t hi);
Value fuzz_scalar(Fuzz *, DType, double v, Value like);
/* The result of an op from what bounds its exact value: rounding is added. */
Value fuzz_value(Fuzz *, Node, int gran, int mag, double err);
DType fuzz_dtype(const Fuzz *, Value);
static inline uint32_t fuzz_rank(const Fuzz *f, Value v)
{
	return node_rank(f->g, v.n);
}
static inline Sym fuzz_dim(const Fuzz *f, Value v, uint32_t k)
{
	return node_dim(f->g, v.n, k);
}
/* Whether the value has a float dtype. */
bool fuzz_is_float(const Fuzz *, const Value *);
bool fuzz_is_exact(const Fuzz *, const Value *); /* no rounding so far; ints and bools always */
bool fuzz_any(const Fuzz *, const Value *);
bool fuzz_not_scalar(const Fuzz *, const Value *);
/* A random extent, sometimes symbolic; 0 only where it is a symbol that may be 0. */
Sym fuzz_extent(Fuzz *);
/* A random integer, often symbolic, that is lo..hi at all sizes; lo itself need not be below hi. */
Sym fuzz_amount(Fuzz *, int64_t lo, Sym hi);
/* Smallest and largest of all sizes. */
int64_t fuzz_min(Fuzz *, Sym);
int64_t fuzz_max(Fuzz *, Sym);
bool fuzz_small(Fuzz *, uint32_t rank, const Sym *dim); /* enough for the interpreter, and not
                                                           always empty */
Node fuzz_node(Fuzz *, Op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr);
Attr fuzz_ints(Fuzz *, const int64_t *v, uint32_t n);
int fuzz_log2(double v); /* smallest k with v <= 2^k */

/* ---- operations: one new value, or false ---- */

typedef bool (*FuzzStep)(Fuzz *);
/* By weight. */
typedef struct {
	FuzzStep step;
	uint32_t weight;
} FuzzChoice;
/* Each ends with NULL. */
extern const FuzzChoice fuzz_scalar_steps[], fuzz_map_steps[], fuzz_sum_steps[], fuzz_order_steps[],
	fuzz_control_steps[], fuzz_complex_steps[];
/* A row with its own reduction in it (fuzz_row.c). */
bool fuzz_own_row(Fuzz *);
/* y broadcast to the shape of x by a random route; a fresh input when nothing fits. */
Value fuzz_operand(Fuzz *, Value x);

/* A fresh value of that shape, often read through index maps. */
Value fuzz_view(Fuzz *, DType, uint32_t rank, const Sym *dim);

/* ---- patterns that have gone wrong before ---- */

enum { FUZZ_PATTERNS = 24 };
/* Adds how often each occurs in the graph and the bodies in it. */
void fuzz_patterns(const Graph *, uint32_t count[FUZZ_PATTERNS]);
/* "drawn: N PATTERN", a line each. */
void fuzz_print_patterns(const uint32_t count[FUZZ_PATTERNS]);

#endif
