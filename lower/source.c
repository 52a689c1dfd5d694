/* Which lines of the model's source became a kernel.
 *
 * The place shown is that of the operator that takes most of the kernel's time, by its kind: a
 * contraction or convolution before what reduces, scans, sorts or scatters, before element-wise
 * arithmetic, before index maps; of several of a kind the last one in program order that has a
 * location. Lines count once, whatever modules execute them. A copy is made for the operator whose
 * steps are at hand, and has the place of that one alone, or, if it has none, of the value. What
 * has none in a loop or branch has that of the loop. */
#include "lower/stage.h"

enum { HEAVIEST = 4 };

static uint32_t weight(Op op)
{
	switch (op_lower(op)->role) {
	case LOWER_ANCHOR:
	case LOWER_TILES:
		return HEAVIEST;
	case LOWER_REDUCE:
	case LOWER_ROOT:
		return 3;
	case LOWER_MAP:
		return 2;
	default:
		return 1;
	}
}

static LocId loc_at(const Lower *s)
{
	return s->at.i ? node_data(s->g, s->at)->loc : (LocId){0};
}

static SourceLines one_line(const Lower *s, LocId at)
{
	return (SourceLines){at, *ir_loc_text(s->ir, at) != 0};
}

/* Returns the line of the loop or branch around; if it has none, that of the next one around
 * that. */
static SourceLines outer_line(const Lower *s)
{
	SourceLines lines = {0};
	while (!lines.nline && (s = s->parent))
		lines = one_line(s, loc_at(s));
	return lines;
}

SourceLines lower_computed_lines(const Graph *g, const Node *computes, uint32_t n)
{
	SourceLines lines = {0};
	const char *before = NULL;
	Intern seen;
	uint32_t most = 0;
	intern_init(&seen, g->ir->ctx->scratch);
	for (uint32_t k = 0; k < n; k++) {
		LocId at = node_data(g, computes[k])->loc;
		const char *text = ir_loc_text(g->ir, at);
		/* one with a line before one that has a number only */
		uint32_t w = !at.i ? 0 : weight(node_op(g, computes[k])) + (*text ? HEAVIEST : 0);
		if (w && w >= most) {
			most = w;
			lines.at = at;
		}
		if (!*text || text == before) /* most often: a line is several operators */
			continue;
		intern(&seen, text, ir_loc_line(text), NULL);
		before = text;
	}
	lines.nline = seen.entry.n;
	return lines;
}

SourceLines lower_lines(const Lower *s, Node root)
{
	ARRAY(Node) computes = {0};
	for (Node n = s->member[root.i]; n.i; n = s->next_member[n.i])
		array_push(s->ir->ctx->scratch, &computes, n);
	const SourceLines lines = lower_computed_lines(s->g, computes.data, computes.n);
	const SourceLines outer = lines.nline ? lines : outer_line(s);
	return outer.nline ? outer : lines;
}

SourceLines lower_line(const Lower *s, Node n)
{
	const SourceLines here = one_line(s, loc_at(s)), own = one_line(s, node_data(s->g, n)->loc),
			  lines = here.nline  ? here
				  : own.nline ? own
					      : outer_line(s);
	return lines.nline ? lines : here.at.i ? here : own;
}
