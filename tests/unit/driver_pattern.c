/* weft_replace_pattern: which places match, what takes their place, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "weft_graph.h"
#include "weft_trace.h"

static WeftGraph *parsed(Weft *w, const char *text)
{
	WeftGraph *g = weft_parse(w, text, "f");
	if (!g)
		fail_msg("%s\n%s", weft_messages(w), text);
	return g;
}

/* ---- cases ---- */

typedef struct {
	const char *what, *graph, *pattern, *replacement;
	int64_t places;     /* -1: an error */
	const char *result; /* the graph after it; NULL: as before. Of an error, a part of the
	                       message */
} Case;

#define RELU2 "graph @p(%x: f32[A]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n return %b }"
#define RELU1 "graph @r(%x: f32[A]) { %a = aten.relu(%x)\n return %a }"
#define NEG1 "graph @r(%x: f32[A]) { %a = aten.neg(%x)\n return %a }"
#define SAME "graph @r(%x: f32[A]) { return %x }"
#define ADD "graph @p(%x: f32[A], %y: f32[A]) { %a = aten.add.Tensor(%x, %y)\n return %a }"
#define MUL "graph @r(%x: f32[A], %y: f32[A]) { %a = aten.mul.Tensor(%x, %y)\n return %a }"

static const Case cases[] = {
	{"once", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n return %b }", RELU2, NEG1, 1,
	 "graph @f(%x: f32[N]) { %b = aten.neg(%x)\n return %b }"},
	{"numbers for sizes", "graph @f(%x: f32[7]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n "
			      "return %b }", RELU2, NEG1, 1,
	 "graph @f(%x: f32[7]) { %b = aten.neg(%x)\n return %b }"},
	{"no place", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }", RELU2, NEG1, 0, NULL},
	{"overlap: the first counts", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
				      "aten.relu(%a)\n %c = aten.relu(%b)\n return %c }",
	 RELU2, NEG1, 1, "graph @f(%x: f32[N]) { %b = aten.neg(%x)\n %c = aten.relu(%b)\n return "
			 "%c }"},
	{"four are two", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n %c = "
			 "aten.relu(%b)\n %d = aten.relu(%c)\n return %d }",
	 RELU2, RELU1, 2, "graph @f(%x: f32[N]) { %b = aten.relu(%x)\n %d = aten.relu(%b)\n return "
			  "%d }"},
	{"nothing in their place", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
				   "aten.relu(%a)\n %c = aten.relu(%b)\n %d = aten.relu(%c)\n"
	 " %e = aten.neg(%d)\n return %e }", RELU2, SAME, 2, "graph @f(%x: f32[N]) { %e = "
							     "aten.neg(%x)\n return %e }"},
	{"an output becomes an input", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
				       "aten.relu(%a)\n return %b }", RELU2, SAME, 1,
	 "graph @f(%x: f32[N]) { return %x \"b\" }"},
	{"an inner value is read outside", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
					   "aten.relu(%a)\n %c = aten.neg(%a)\n return %b, %c }",
	 RELU2, NEG1, 0, NULL},
	{"an inner value is an output", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
					"aten.relu(%a)\n return %a, %b }", RELU2, NEG1, 0, NULL},
	{"an inner value is read twice inside", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
						"aten.add.Tensor(%a, %a)\n return %b }",
	 "graph @p(%x: f32[A]) { %a = aten.relu(%x)\n %b = aten.add.Tensor(%a, %a)\n return %b }", NEG1, 1,
	 "graph @f(%x: f32[N]) { %b = aten.neg(%x)\n return %b }"},
	{"the result is read several times", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
					     "aten.relu(%a)\n %c = aten.add.Tensor(%b, %b)\n"
	 " return %c, %b }", RELU2, NEG1, 1, "graph @f(%x: f32[N]) { %b = aten.neg(%x)\n %c = "
					     "aten.add.Tensor(%b, %b)\n return %c, %b }"},
	{"another rank", "graph @f(%x: f32[N, 2]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n "
			 "return %b }", RELU2, NEG1, 0, NULL},
	{"another dtype", "graph @f(%x: f64[N]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n return "
			  "%b }", RELU2, NEG1, 0, NULL},
	{"two inputs, one value", "graph @f(%x: f32[N]) { %a = aten.add.Tensor(%x, %x)\n return %a "
				  "}", ADD, MUL, 1,
	 "graph @f(%x: f32[N]) { %a = aten.mul.Tensor(%x, %x)\n return %a }"},
	{"one input, two values", "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.add.Tensor(%x, "
				  "%y)\n return %a }",
	 "graph @p(%x: f32[A]) { %a = aten.add.Tensor(%x, %x)\n return %a }", NEG1, 0, NULL},
	{"one input, one value", "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.add.Tensor(%y, "
				 "%y)\n return %a }",
	 "graph @p(%x: f32[A]) { %a = aten.add.Tensor(%x, %x)\n return %a }", NEG1, 1,
	 "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.neg(%y)\n return %a }"},
	{"one size, two extents", "graph @f(%x: f32[M, N]) { %a = aten.relu(%x)\n return %a }",
	 "graph @p(%x: f32[A, A]) { %a = aten.relu(%x)\n return %a }", "graph @r(%x: f32[A, A]) { "
								       "%a = aten.neg(%x)\n return "
								       "%a }", 0, NULL},
	{"one size, one extent", "graph @f(%x: f32[2*N, 2*N]) { %a = aten.relu(%x)\n return %a }",
	 "graph @p(%x: f32[A, A]) { %a = aten.relu(%x)\n return %a }", "graph @r(%x: f32[A, A]) { "
								       "%a = aten.neg(%x)\n return "
								       "%a }", 1,
	 "graph @f(%x: f32[2*N, 2*N]) { %a = aten.neg(%x)\n return %a }"},
	{"a number as an extent", "graph @f(%x: f32[3]) { %a = aten.relu(%x)\n return %a }", "graph @p(%x: f32[3]) { %a = aten.relu(%x)\n return %a }",
	 "graph @r(%x: f32[3]) { %a = aten.neg(%x)\n return %a }", 1, "graph @f(%x: f32[3]) { %a = "
								      "aten.neg(%x)\n return %a }"},
	{"another number", "graph @f(%x: f32[4]) { %a = aten.relu(%x)\n return %a }", "graph @p(%x: f32[3]) { %a = aten.relu(%x)\n return %a }",
	 "graph @r(%x: f32[3]) { %a = aten.neg(%x)\n return %a }", 0, NULL},
	{"a size that may be the number", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }",
	 "graph @p(%x: f32[3]) { %a = aten.relu(%x)\n return %a }", "graph @r(%x: f32[3]) { %a = aten.neg(%x)\n return %a }", 0, NULL},
	{"a size out of the range", "graph @f(%x: f32[N]) where 1 <= N <= 9 { %a = aten.relu(%x)\n "
				    "return %a }",
	 "graph @p(%x: f32[A]) where 1 <= A <= 8 { %a = aten.relu(%x)\n return %a }", NEG1, 0, NULL},
	{"a size in the range", "graph @f(%x: f32[N]) where 2 <= N <= 8 { %a = aten.relu(%x)\n "
				"return %a }",
	 "graph @p(%x: f32[A]) where 1 <= A <= 8 { %a = aten.relu(%x)\n return %a }", NEG1, 1,
	 "graph @f(%x: f32[N]) where 2 <= N <= 8 { %a = aten.neg(%x)\n return %a }"},
	{"equal numbers", "graph @f(%x: f32[N]) { %a = aten.mul.Scalar(%x, other=2)\n return %a }",
	 "graph @p(%x: f32[A]) { %a = aten.mul.Scalar(%x, other=2.0)\n return %a }", NEG1, 1, "graph @f(%x: f32[N]) { %a = aten.neg(%x)\n return %a }"},
	{"other numbers", "graph @f(%x: f32[N]) { %a = aten.mul.Scalar(%x, other=2)\n return %a }",
	 "graph @p(%x: f32[A]) { %a = aten.mul.Scalar(%x, other=3)\n return %a }", NEG1, 0, NULL},
	{"another default", "graph @f(%x: f32[N]) { %a = aten.add.Tensor(%x, %x, alpha=2)\n return "
			    "%a }", ADD, MUL, 0, NULL},
	{"another order", "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.neg(%x)\n %b = "
			  "aten.add.Tensor(%y, %a)\n return %b }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %a = aten.neg(%x)\n %b = aten.add.Tensor(%a, %y)\n "
	 "return %b }",
	 "graph @r(%x: f32[A], %y: f32[A]) { %b = aten.sub.Tensor(%y, %x)\n return %b }", 0, NULL},
	{"sizes as attributes", "graph @f(%x: f32[N, 4]) { %a = aten.reshape(%x, shape=[4, N])\n "
				"return %a }",
	 "graph @p(%x: f32[A, B]) { %a = aten.reshape(%x, shape=[B, A])\n return %a }",
	 "graph @r(%x: f32[A, B]) { %a = aten.neg(%x)\n %b = aten.reshape(%a, shape=[B, A])\n "
	 "return %b }", 1,
	 "graph @f(%x: f32[N, 4]) { %1 = aten.neg(%x)\n %a = aten.reshape(%1, shape=[4, N])\n "
	 "return %a }"},
	{"other sizes as attributes", "graph @f(%x: f32[N, 4]) { %a = aten.reshape(%x, shape=[2*N, "
				      "2])\n return %a }",
	 "graph @p(%x: f32[A, B]) { %a = aten.reshape(%x, shape=[B, A])\n return %a }",
	 "graph @r(%x: f32[A, B]) { %b = aten.reshape(%x, shape=[B, A])\n return %b }", 0, NULL},
	{"several outputs", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = aten.neg(%a)\n %c = "
			    "aten.exp(%a)\n %d = aten.mul.Tensor(%b, %c)\n return %d }",
	 "graph @p(%x: f32[A]) { %a = aten.relu(%x)\n %b = aten.neg(%a)\n %c = aten.exp(%a)\n "
	 "return %b, %c }",
	 "graph @r(%x: f32[A]) { %a = aten.sin(%x)\n %b = aten.cos(%x)\n return %a, %b }", 1,
	 "graph @f(%x: f32[N]) { %b = aten.sin(%x)\n %c = aten.cos(%x)\n %d = aten.mul.Tensor(%b, "
	 "%c)\n return %d }"},
	{"outputs that are connected by an input", "graph @f(%x: f32[N]) { %b = aten.neg(%x)\n %e "
						   "= aten.abs(%b)\n %c = aten.exp(%x)\n return "
						   "%e, %c }",
	 "graph @p(%x: f32[A]) { %b = aten.neg(%x)\n %c = aten.exp(%x)\n return %b, %c }",
	 "graph @r(%x: f32[A]) { %a = aten.sin(%x)\n %b = aten.cos(%x)\n return %a, %b }", 1,
	 "graph @f(%x: f32[N]) { %b = aten.sin(%x)\n %e = aten.abs(%b)\n %c = aten.cos(%x)\n "
	 "return %e, %c }"},
	{"a reader of one output leads to the other", "graph @f(%x: f32[N]) { %b = aten.neg(%x)\n "
						      "%e = aten.abs(%b)\n %c = "
						      "aten.add.Tensor(%x, %e)\n return %c }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %b = aten.neg(%x)\n %c = aten.add.Tensor(%x, %y)\n "
	 "return %b, %c }",
	 "graph @r(%x: f32[A], %y: f32[A]) { %b = aten.sin(%x)\n %c = aten.mul.Tensor(%x, %y)\n "
	 "return %b, %c }", 0, NULL},
	{"several results", "graph @f(%x: f32[N, 3]) { %m = aten.max.dim(%x, dim=1)\n %v = get(%m, "
			    "index=0)\n %i = get(%m, index=1)\n return %v, %i }",
	 "graph @p(%x: f32[A, B]) { %m = aten.max.dim(%x, dim=1)\n %v = get(%m, index=0)\n %i = "
	 "get(%m, index=1)\n return %v, %i }",
	 "graph @r(%x: f32[A, B]) { %m = aten.min.dim(%x, dim=1)\n %v = get(%m, index=0)\n %i = "
	 "get(%m, index=1)\n return %v, %i }", 1,
	 "graph @f(%x: f32[N, 3]) { %1 = aten.min.dim(%x, dim=1)\n %v = get(%1, index=0)\n %i = "
	 "get(%1, index=1)\n return %v, %i }"},
	{"all elements of a list", "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.cat([%x, %y])\n "
				   "return %a }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %a = aten.cat([%x, %y])\n return %a }",
	 "graph @r(%x: f32[A], %y: f32[A]) { %a = aten.cat([%y, %x])\n return %a }", 1,
	 "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.cat([%y, %x])\n return %a }"},
	{"a longer list", "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.cat([%x, %y, %y])\n return "
			  "%a }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %a = aten.cat([%x, %y])\n return %a }",
	 "graph @r(%x: f32[A], %y: f32[A]) { %a = aten.cat([%y, %x])\n return %a }", 0, NULL},
	{"the replacement is another pattern", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return "
					       "%a }", RELU1,
	 "graph @r(%x: f32[A]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n return %b }", 1,
	 "graph @f(%x: f32[N]) { %1 = aten.relu(%x)\n %a = aten.relu(%1)\n return %a }"},
	{"outputs that change places, twice", "graph @f(%x: f32[N], %y: f32[N]) { %a = "
					      "aten.add.Tensor(%x, %y)\n %b = aten.sub.Tensor(%x, "
					      "%y)\n"
	 " %c = aten.add.Tensor(%a, %b)\n %d = aten.sub.Tensor(%a, %b)\n %e = aten.div.Tensor(%c, "
	 "%d)\n return %e }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %b = aten.add.Tensor(%x, %y)\n %c = "
	 "aten.sub.Tensor(%x, %y)\n return %b, %c }",
	 "graph @r(%x: f32[A], %y: f32[A]) { return %y, %x }", 2, "graph @f(%x: f32[N], %y: "
								  "f32[N]) { %e = "
								  "aten.div.Tensor(%x, %y)\n "
								  "return %e }"},
	{"places that feed each other", "graph @f(%x: f32[N]) { %a = aten.neg(%x)\n %b = "
					"aten.exp(%x)\n %c = aten.neg(%b)\n %d = aten.exp(%b)\n "
					"return %a, %c, %d }",
	 "graph @p(%x: f32[A]) { %b = aten.neg(%x)\n %c = aten.exp(%x)\n return %b, %c }",
	 "graph @r(%x: f32[A]) { %a = aten.sin(%x)\n %b = aten.cos(%x)\n return %a, %b }", 2,
	 "graph @f(%x: f32[N]) { %a = aten.sin(%x)\n %b = aten.cos(%x)\n %c = aten.sin(%b)\n %d = "
	 "aten.cos(%b)\n return %a, %c, %d }"},
	{"a condition that the replacement needs", "graph @f(%x: f32[N], %y: f32[M]) { %a = "
						   "aten.outer(%x, %y)\n return %a }",
	 "graph @p(%x: f32[A], %y: f32[B]) { %a = aten.outer(%x, %y)\n return %a }",
	 "graph @r(%x: f32[A], %y: f32[B]) { %s = aten.add.Tensor(%x, %y)\n %a = aten.outer(%s, "
	 "%y)\n return %a }", 1,
	 "graph @f(%x: f32[N], %y: f32[M]) where require N == M \"sizes that are broadcast "
	 "together\" { %1 = aten.add.Tensor(%x, %y) : f32[N]\n %a = aten.outer(%1, %y)\n return %a "
	 "}"},
	{"a size that depends on data", "graph @f(%x: f32[N]) { %a = aten.nonzero(%x)\n %b = "
					"aten.neg(%a)\n return %b }",
	 "graph @p(%x: i64[U, 1]) { %b = aten.neg(%x)\n return %b }", "graph @r(%x: i64[U, 1]) { "
								      "%b = aten.abs(%x)\n return "
								      "%b }", 1,
	 "graph @f(%x: f32[N]) { %a = aten.nonzero(%x)\n %b = aten.abs(%a)\n return %b }"},
	{"another size that depends on data", "graph @f(%x: f32[N]) { %a = aten.nonzero(%x)\n "
					      "return %a }",
	 "graph @p(%x: f32[A]) { %a = aten.nonzero(%x)\n return %a }", "graph @r(%x: f32[A]) { %n "
								       "= aten.neg(%x)\n %a = "
								       "aten.nonzero(%n)\n return "
								       "%a }", -1,
	 "output 0 of the replacement is i64["},
	{"a reader of an output before the last node", "graph @f(%x: f32[N]) { %b = aten.exp(%x)\n "
						       "%c = aten.sin(%b)\n %a = aten.neg(%x)\n "
						       "return %a, %c }",
	 "graph @p(%x: f32[A]) { %b = aten.neg(%x)\n %c = aten.exp(%x)\n return %b, %c }",
	 "graph @r(%x: f32[A]) { %a = aten.abs(%x)\n %b = aten.cos(%a)\n return %a, %b }", 1,
	 "graph @f(%x: f32[N]) { %a = aten.abs(%x)\n %b = aten.cos(%a)\n %c = aten.sin(%b)\n "
	 "return %a, %c }"},
	{"a reader of an output before what is read", "graph @f(%x: f32[N], %y: f32[N]) { %b = "
						      "aten.exp(%x)\n %c = aten.sin(%b)\n %z = "
						      "aten.relu(%y)\n"
	 " %w = aten.cos(%c)\n %a = aten.add.Tensor(%x, %z)\n return %a, %w }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %b = aten.add.Tensor(%x, %y)\n %c = aten.exp(%x)\n "
	 "return %b, %c }",
	 "graph @r(%x: f32[A], %y: f32[A]) { %b = aten.mul.Tensor(%x, %y)\n return %b, %b }", 1,
	 "graph @f(%x: f32[N], %y: f32[N]) { %z = aten.relu(%y)\n %a = aten.mul.Tensor(%x, %z)\n "
	 "%c = aten.sin(%a)\n %w = aten.cos(%c)\n return %a, %w }"},
	{"what is read depends on an output", "graph @f(%x: f32[N]) { %b = aten.exp(%x)\n %c = "
					      "aten.sin(%b)\n %a = aten.add.Tensor(%x, %c)\n "
					      "return %a, %c }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %b = aten.add.Tensor(%x, %y)\n %c = aten.exp(%x)\n "
	 "return %b, %c }",
	 "graph @r(%x: f32[A], %y: f32[A]) { %b = aten.mul.Tensor(%x, %y)\n return %b, %b }", 0, NULL},
	{"two places, either of which may be one step, but not both",
	 "graph @f(%x: f32[N], %y: f32[N]) { %a = aten.exp(%x)\n %b = aten.exp(%y)\n %c = "
	 "aten.add.Tensor(%x, %b)\n %d = aten.add.Tensor(%y, %a)\n return %c, %d }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %b = aten.add.Tensor(%x, %y)\n %c = aten.exp(%x)\n "
	 "return %b, %c }",
	 "graph @r(%x: f32[A], %y: f32[A]) { %b = aten.mul.Tensor(%x, %y)\n %c = aten.neg(%y)\n "
	 "return %b, %c }", 1,
	 "graph @f(%x: f32[N], %y: f32[N]) { %b = aten.exp(%y)\n %c = aten.mul.Tensor(%x, %b)\n %a "
	 "= aten.neg(%b)\n %d = aten.add.Tensor(%y, %a)\n return %c, %d }"},
	{"an extent that is an expression", "graph @f(%x: f32[2*N], %y: f32[6]) { %a = "
					    "aten.relu(%x)\n %b = aten.relu(%y)\n return %a, %b }",
	 "graph @p(%x: f32[2*A]) { %a = aten.relu(%x)\n return %a }", "graph @r(%x: f32[2*A]) { %v "
								      "= aten.view(%x, size=[2, "
								      "A])\n %w = aten.view(%v, "
								      "size=[2*A])\n"
	 " return %w }", 2, "graph @f(%x: f32[2*N], %y: f32[6]) { %1 = aten.view(%x, size=[2, N]) "
			    ": f32[2, N]\n"
	 " %a = aten.view(%1, size=[2*N])\n %2 = aten.view(%y, size=[2, 3]) : f32[2, 3]\n %b = "
	 "aten.view(%2, size=[6])\n return %a, %b }"},
	{"an odd extent", "graph @f(%x: f32[N], %y: f32[7]) { %a = aten.relu(%x)\n %b = "
			  "aten.relu(%y)\n return %a, %b }",
	 "graph @p(%x: f32[2*A]) { %a = aten.relu(%x)\n return %a }", "graph @r(%x: f32[2*A]) { %a "
								      "= aten.neg(%x)\n return %a "
								      "}", 0, NULL},
	/* Errors. */
	{"a size that no extent gives", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }",
	 "graph @p(%x: f32[A*B]) { %a = aten.relu(%x)\n return %a }", RELU1, -1, "the pattern has the size A, whose value does not follow"},
	{"another type", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = aten.relu(%a)\n return "
			 "%b }", RELU2,
	 "graph @r(%x: f32[A]) { %a = aten.neg(%x)\n %b = aten.sum(%a)\n return %b }", -1, "output 0 of the replacement is f32[], expected f32[N]"},
	{"another type of an input", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n %b = "
				     "aten.relu(%a)\n return %b }", RELU2,
	 "graph @r(%x: f64[A]) { %a = aten.neg(%x)\n return %a }", -1, "input x of the replacement "
								       "is f64[A], "
								       "the value is f32[N]"},
	{"what the replacement cannot be called on", "graph @f(%x: f32[3]) { %a = aten.relu(%x)\n "
						     "return %a }", RELU1,
	 "graph @r(%x: f32[A]) where 4 <= A { %a = aten.neg(%x)\n return %a }", -1, "input x of the replacement is"},
	{"fewer inputs", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }", RELU1, MUL, -1, "the pattern has 1 inputs, the replacement 2"},
	{"more outputs", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }", RELU1, "graph @r(%x: f32[A]) { return %x, %x }", -1,
	 "the pattern has 1 outputs, the replacement 2"},
	{"an input as the pattern", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }", SAME, SAME, -1, "has an output that no operator computes"},
	{"not connected", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %a = aten.relu(%x)\n %b = aten.relu(%y)\n return %a, "
	 "%b }",
	 "graph @r(%x: f32[A], %y: f32[A]) { return %x, %y }", -1, "that is not connected"},
	{"an input that is not read", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }",
	 "graph @p(%x: f32[A], %y: f32[A]) { %a = aten.relu(%x)\n return %a }", MUL, -1, "that is not connected"},
	{"one value twice", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }", "graph @p(%x: f32[A]) { %a = aten.relu(%x)\n return %a, %a }",
	 "graph @r(%x: f32[A]) { return %x, %x }", -1, "two outputs that are one value"},
	{"random numbers", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }", RELU1,
	 "graph @r(%x: f32[A]) { %a = aten.rand_like(%x) : f32[A]\n return %a }", -1, "the replacement has state"},
	{"control flow", "graph @f(%x: f32[N]) { %a = aten.relu(%x)\n return %a }", RELU1,
	 "graph @r(%x: f32[A]) { %c = while([%x], [], cond=graph @t(%a: f32[A]) { %c = "
	 "full(value=false, shape=[], dtype=bool)\n return %c }, "
	 "body=graph @b(%a: f32[A]) { return %a })\n %e = get(%c, index=0)\n return %e }", -1, "the replacement has control flow"},
};

static void run_case(const Case *c)
{
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, c->graph);
	const char *before = weft_graph_text(w, g, NULL);
	int64_t n = weft_replace_pattern(w, g, parsed(w, c->pattern), parsed(w, c->replacement));
	if (n != c->places)
		fail_msg("%s: %lld places\n%s%s", c->what, (long long)n, weft_messages(w),
			 weft_graph_text(w, g, NULL));
	if (n < 0 && (weft_nmessages(w) != 1 || !strstr(weft_messages(w), c->result)))
		fail_msg("%s: %s", c->what, weft_messages(w));
	if (n >= 0 && weft_nmessages(w))
		fail_msg("%s: %s", c->what, weft_messages(w));
	const char *want =
		n >= 0 && c->result ? weft_graph_text(w, parsed(w, c->result), NULL) : before;
	const char *got = weft_graph_text(w, g, NULL);
	if (!got || strcmp(got, want) != 0)
		fail_msg("%s: %s%s\nexpected\n%s", c->what, weft_messages(w), got, want);
	weft_free(w);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
		run_case(&cases[k]);
}

/* ---- constants, traced graphs ---- */

static WeftValue scaled(WeftTrace *t, WeftValue x, const float *by, const char *name)
{
	return weft_mul(t, x, weft_trace_param(t, name, "f32[3]", by));
}

static WeftGraph *scale_graph(Weft *w, const float *by, const char *op)
{
	WeftTrace *t = weft_trace_new(w, "scale");
	WeftValue x = weft_trace_input(t, "x", "f32[B, 3]");
	weft_trace_output(t, "y", weft_unary(t, op, by ? scaled(t, x, by, "by") : x));
	return weft_trace_end(t);
}

static void test_constants(void **state)
{
	(void)state;
	static const float two[] = {2, 2, 2}, also[] = {2, 2, 2}, three[] = {3, 3, 3};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "model");
	WeftValue x = weft_trace_input(t, "x", "f32[4, 3]");
	weft_trace_output(t, "a", weft_relu(t, scaled(t, x, also, "a")));
	weft_trace_output(t, "b", weft_relu(t, scaled(t, x, three, "b")));
	WeftGraph *g = weft_trace_end(t);
	assert_int_equal(weft_replace_pattern(w, g, scale_graph(w, two, "aten.relu"),
					      scale_graph(w, three, "aten.neg")),
			 1);
	assert_string_equal(weft_node_op(w, weft_node_of_output(w, g, 0)), "aten.neg");
	assert_string_equal(weft_node_op(w, weft_node_of_output(w, g, 1)), "aten.relu");
	WeftNode by =
		weft_node_operand(w, weft_node_operand(w, weft_node_of_output(w, g, 0), 0), 1);
	WeftTensor data;
	assert_true(weft_node_tensor(w, by, &data));
	assert_memory_equal(data.data, three, sizeof three);
	assert_string_equal(weft_node_user_name(w, by), "");
	assert_int_equal(weft_replace_pattern(w, g, scale_graph(w, NULL, "aten.neg"),
					      scale_graph(w, NULL, "aten.exp")),
			 1);
	assert_true(weft_graph_verify(w, g));
	assert_int_equal(weft_nmessages(w), 0);
	weft_free(w);
}

/* The graphs share their sizes with a copy, and their constants with what weft_parse_like gives. */
static void test_same_ir(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *p = parsed(w, RELU1), *r = weft_parse_like(w, p, NEG1, "r");
	WeftGraph *g = weft_parse_like(w, p,
				       "graph @f(%x: f32[A], %y: f32[N]) { %a = aten.relu(%x)\n %b "
				       "= aten.relu(%y)\n return %a, %b }",
				       "g");
	assert_int_equal(weft_replace_pattern(w, g, p, r), 2);
	assert_string_equal(weft_node_text(w, weft_node_of_output(w, g, 1)),
			    "%b = aten.neg(%y) : f32[N]");
	assert_int_equal(weft_replace_pattern(w, g, g, r), -1);
	assert_int_equal(weft_replace_pattern(w, g, p, g), -1);
	assert_int_equal(weft_nmessages(w), 2);
	weft_free(w);
}

static void test_body(void **state)
{
	(void)state;
	static const char loop[] =
		"graph @f(%x: f32[2]) {\n  %w = while([%x], [], cond=graph @test(%a: f32[2]) {\n"
		"    %c = full(value=false, shape=[], dtype=bool)\n    return %c\n  }, body=graph "
		"@half(%a: f32[2]) {\n"
		"    %m = aten.relu(%a)\n    return %m\n  })\n  %e = get(%w, index=0)\n  return "
		"%e\n}\n";
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, loop),
		  *body = weft_node_body(w, weft_node_find(w, g, "w"), "body");
	assert_int_equal(weft_replace_pattern(w, g, parsed(w, RELU1), parsed(w, NEG1)), 0);
	assert_int_equal(weft_replace_pattern(w, body, parsed(w, RELU1), parsed(w, NEG1)), 1);
	assert_non_null(strstr(weft_graph_text(w, g, NULL), "%m = aten.neg(%a)"));
	assert_int_equal(weft_nmessages(w), 0);
	weft_free(w);
}

/* Long chains, and a pattern as long. */
static void test_long(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *made[2];
	for (int k = 0; k < 2; k++) {
		WeftTrace *t = weft_trace_new(w, "long");
		WeftValue x = weft_trace_input(t, "x", "f32[A]");
		for (int i = 0; i < (k ? 10000 : 2000); i++)
			x = weft_relu(t, x);
		weft_trace_output(t, "y", x);
		made[k] = weft_trace_end(t);
	}
	assert_int_equal(weft_replace_pattern(w, made[1], made[0], parsed(w, NEG1)), 5);
	assert_int_equal(
		weft_replace_pattern(
			w, made[1],
			parsed(w, "graph @p(%x: f32[A]) { %a = aten.neg(%x)\n return %a }"),
			parsed(w, RELU1)),
		5);
	assert_int_equal(weft_replace_pattern(w, made[1], parsed(w, RELU2), parsed(w, SAME)), 2);
	assert_int_equal(weft_nmessages(w), 0);
	assert_int_equal(weft_replace_pattern(w, made[0], made[0], made[0]), -1);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases), cmocka_unit_test(test_constants),
		cmocka_unit_test(test_same_ir), cmocka_unit_test(test_body),
		cmocka_unit_test(test_long)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
