/* Which lines of the model's source became a kernel.
 *
 * The place shown is that of the operator that takes most of the kernel's time, by its kind: a
 * contraction or convolution before what reduces, scans, sorts or scatters, before element-wise
 * arithmetic, before index maps; of several of a kind the last one in program order that has a
 * location. Lines count once, whatever modules execute them. A copy is made for the operator whose
 * steps are at hand, and has the place of that one alone, or, if it has none, of the value. What
 * has none in a loop or branch has that of the loop. */
#include "lower/stage.h"

static uint32_t weight(Op op)
{
	switch (op_lower(op)->role) {
	case LOWER_ANCHOR:
	case LOWER_TILES:
		return 4;
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

static SourceLines one_line(LocId at)
{
	return (SourceLines){at, at.i != 0};
}

/* Returns the line of the loop or branch around; if it has none, that of the next one around
 * that. */
static SourceLines outer_line(const Lower *s)
{
	LocId at = {0};
	while (!at.i && (s = s->parent))
		at = loc_at(s);
	return one_line(at);
}

SourceLines lower_computed_lines(const Graph *g, const Node *computes, uint32_t n)
{
	SourceLines lines = {0};
	LocId before = {0};
	Intern seen;
	uint32_t most = 0;
	intern_init(&seen, g->ir->ctx->scratch);
	for (uint32_t k = 0; k < n; k++) {
		LocId at = node_data(g, computes[k])->loc;
		uint32_t w = weight(node_op(g, computes[k]));
		if (!at.i)
			continue;
		if (w >= most) {
			most = w;
			lines.at = at;
		}
		if (at.i == before.i) /* most often: a line is several operators */
			continue;
		const char *text = ir_loc_text(g->ir, at);
		intern(&seen, text, ir_loc_line(text), NULL);
		before = at;
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
	return lines.nline ? lines : outer_line(s);
}

SourceLines lower_line(const Lower *s, Node n)
{
	LocId at = loc_at(s);
	at = at.i ? at : node_data(s->g, n)->loc;
	return at.i ? one_line(at) : outer_line(s);
}
