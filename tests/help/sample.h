/* Samples of the op table as graphs and values; the language of `.sample` is described in
 * ir/op/op.h. */
#ifndef WEFT_TESTS_HELP_SAMPLE_H
#define WEFT_TESTS_HELP_SAMPLE_H

#include "ir/interp/tensor.h"
#include "ir/op/op.h"

enum { SAMPLE_SIZES = 8, SAMPLE_INPUTS = 32 };

/* What to make of a text. */
typedef struct {
	bool symbolic; /* the named sizes are symbols, not their numbers */
	DType real;    /* in place of f32, where an operand is written so; DT_none: f32 */
} SampleForm;

/* One call: its operands are inputs, its results outputs. */
typedef struct {
	Graph *g;
	Node node;
	uint32_t nin;
	Tensor in[SAMPLE_INPUTS];
} Sample;

/* The operator that OP in the environment names, NULL: all. A name that is nobody's, or of one
 * without samples, ends the process with status 1 after a line: it would pass otherwise. */
const char *sample_only(void);
/* Text k of an operator's samples, in the arena; NULL if there are no more. */
const char *sample_text(Arena *, Op, uint32_t k);
uint32_t sample_count(Op);
/* False after ctx_error: the text is bad, or the op does not accept its operands in this form. */
bool sample_build(Ir *, Op, const char *text, SampleForm, Sample *out);

#endif
