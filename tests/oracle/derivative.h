/* The derivatives of a graph, against each other and against differences of its values. */
#ifndef WEFT_TESTS_ORACLE_DERIVATIVE_H
#define WEFT_TESTS_ORACLE_DERIVATIVE_H

#include "ir/interp/tensor.h"
#include "ir/op/op.h"

/* A graph and values of its inputs. What is derived by, `wrt`, is of a float or complex dtype. */
typedef struct {
	Graph *g;
	uint32_t nin;
	const Tensor *in;
	const bool *wrt;
} Point;

typedef struct {
	Ctx *ctx;
	uint64_t rng;
	bool no_differences; /* the graph has kinks where its values are */
	bool no_products;    /* its cotangents are not those of its tangents: places that are
	                        written twice */
	bool no_hessian;     /* its second derivatives backwards are not those forwards */
	bool print;
	bool no_second;      /* derivative_check_twice: first derivatives only */
	const char *what;  /* "derivative of vjp" */
	uint32_t checked;  /* elements that were compared with differences */
	uint32_t first;    /* those of first derivatives, after derivative_check_twice */
	uint32_t products; /* elements of Hessians' products that agree forwards and backwards */
	void (*failed)(void *user, const char *what);
	void *user;
} Derivative;

/* The graph with every fraction an f64, for differences: what is rounded has none. In an Ir of its
 * own and the same context. NULL after ctx_error. */
Graph *graph_widened(const Graph *);
/* All inputs that are float or complex; false if there are none, or no such results. */
bool point_of(Graph *, const Tensor *in, uint32_t nin, Arena *, Point *);
/* With each value that it is derived by moved a little, away from kinks; what is infinite, NaN or
 * large becomes something moderate. */
Point point_near(Derivative *, Point);
/* The first derivative: both transforms, whose results verify, read back and have only nodes that
 * can be derived again; <ct, J t> = <J' ct, t>; differences. The derivatives as points. False after
 * `failed`. */
bool derivative_check(Derivative *, Point, Point *vjp, Point *jvp);
/* The same, and of its results again: second derivatives in every nesting; products with the
 * Hessian, forwards over backwards against backwards twice, element by element. */
bool derivative_check_twice(Derivative *, Point);

#endif
