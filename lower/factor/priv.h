/* Private to factorisations: what their steps are made of. A factorisation is a loop over panels of
 * columns or rows. What a round does is a graph whose inputs and outputs are regions of buffers,
 * and whose extents depend on the round: so panels get smaller, and what is updated is a
 * contraction with the schedules of all contractions. With k1 = min(k0 + PANEL, n), round u of a
 * panel handles row or column k0 + u. All steps follow each other: each reads what the one before
 * has stored. */
#ifndef WEFT_LOWER_FACTOR_PRIV_H
#define WEFT_LOWER_FACTOR_PRIV_H

#include "lower/priv.h"
#include "ops/prim/matrix.h"

enum { PANEL_ROWS = 64, PANEL_COLUMNS = 32, BODY_PLACES = 8 };

/* A node that is lowered, and the matrices of its operand 0. */
typedef struct {
	Lower *s;
	Node n;
	SymTab *syms;
	DType dtype;
	bool pairs;    /* complex numbers, which are pairs: a last dimension of two */
	uint32_t lead; /* batch dimensions */
	Sym batch[MAX_RANK];
	Sym rows, columns;
	bool inside; /* buffers have the batches behind the matrices, for vectors of members */
} Factor;

Factor factor_of(Lower *, Node);
/* Returns the number as a size. */
Sym factor_int(const Factor *, int64_t);

/* ---- places ---- */

/* Writes the batches, then the n extents, to dim[]; returns the rank. pairs: with a last dimension
 * of two. */
uint32_t factor_shape(const Factor *, const Sym *extent, uint32_t n, bool pairs, Sym *dim);
/* Returns a new buffer for values of factor_shape. */
NodePlace factor_new_place(const Factor *, DType, const Sym *extent, uint32_t n, bool pairs);
/* Returns a new buffer for matrices of the node's dtype. */
NodePlace factor_new_matrix(const Factor *, Sym rows, Sym columns);
/* Returns the part of a place that begins at the n indices at[], which follow the batches. */
NodePlace factor_part(const Factor *, NodePlace, const Sym *at, uint32_t n);
/* Returns the part of a place of matrices that begins at a row and a column. */
NodePlace factor_region(const Factor *, NodePlace, Sym row, Sym column);

/* ---- graphs over places ---- */

/* A graph of at most BODY_PLACES inputs and outputs, and where each is read or written. */
typedef struct {
	const Factor *f;
	Build b;
	NodePlace in[BODY_PLACES], out[BODY_PLACES];
} Body;

Body body_new(const Factor *, const char *name);
/* Adds an input: what is at the place, with its batches in front. */
Node body_take(Body *, NodePlace, DType, const Sym *extent, uint32_t n, bool pairs);
/* Adds an input: the matrices at a region of the place. */
Parts body_take_matrix(Body *, NodePlace, Sym row, Sym column, Sym rows, Sym columns);
/* Adds an output: x, which has its batches in front, goes to the place. Nothing if x is none. */
void body_put(Body *, Node x, NodePlace);
/* Adds an output: the matrices go to a region of the place. */
void body_put_matrix(Body *, Parts x, NodePlace, Sym row, Sym column);
/* Adds the steps of the graph to a list. No more is added to the graph. */
void body_lower(Body *, StepList *to);

/* ---- loops ---- */

/* Rounds 0 .. extent - 1: a loop, or the steps of the one round themselves. */
typedef struct {
	Step step;
	bool none, loops; /* extent is 0; a loop */
	Sym at;           /* the round */
	StepList *body;   /* where the steps of a round are added, unless none */
} Rounds;

/* Begins rounds 0 .. extent - 1, with the variable `name`; rounds_end adds them to the list. */
Rounds rounds_of(const Factor *, const char *name, Sym extent, StepList *list);
/* Hands n values from round to round, each in a pair of places: a round reads the first place and
 * writes the second one, which the next round reads. Behind the rounds, the last value is in the
 * second place. */
void rounds_carry(const Factor *, Rounds *, const NodePlace *pair, uint32_t n);
void rounds_end(const Factor *, const Rounds *, StepList *list);

/* Elements first .. end - 1. */
typedef struct {
	Sym first, width, end;
} Panel;

/* Returns panel t of `extent` elements. A panel has `most` elements, the last one perhaps fewer. */
Panel panel_at(const Factor *, Sym t, Sym extent, int64_t most);
Sym panel_count(const Factor *, Sym extent, int64_t most);

/* ---- small graphs ---- */

/* Adds a step to the list: zeros in the whole place, of factor_shape. */
void factor_fill(const Factor *, StepList *, NodePlace, DType, const Sym *extent, uint32_t n,
		 bool pairs);
/* Adds a step to the list: a copy of matrices from the beginning of one place to that of
 * another. */
void factor_copy(const Factor *, StepList *, NodePlace from, NodePlace to, Sym rows, Sym columns);
/* Returns the place of operand k, matrices, for reading regions of it: the operand's own place or,
 * with f->inside, a copy that a step makes now. */
NodePlace factor_operand_inside(const Factor *, uint32_t k, Sym rows, Sym columns);
/* Returns the place where result k, of factor_shape, is computed. factor_publish makes the result
 * known to its readers, behind the steps that compute it. */
NodePlace factor_result_inside(const Factor *, uint32_t k, DType, const Sym *extent, uint32_t n,
			       bool pairs);
void factor_publish(const Factor *, uint32_t k, NodePlace, DType, const Sym *extent, uint32_t n,
		    bool pairs);
/* Returns the number, counted from 1, of the first true element of a bool [.., n], as i32; 0 if
 * none is true. */
Node factor_first_true(Build *, Node wrong);
/* Returns the diagonal of [.., n, n], as [.., n]. */
Node factor_diagonal(Build *, Node x, Sym n);

#endif
