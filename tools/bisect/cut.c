/* The steps of a model, and pieces of it as graphs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bisect/bisect.h"

/* ---- the model ---- */

/* Lists the nodes in program order, the same in each copy; the caller frees the list. */
static WeftNode *nodes_of(Weft *w, WeftGraph *g, uint32_t *n)
{
	WeftNode *list = NULL;
	uint32_t room = 0;
	*n = 0;
	for (WeftNode k = weft_node_first(w, g); k.index; k = weft_node_next(w, k)) {
		if (*n == room) {
			room = 2 * room + 64;
			WeftNode *more = realloc(list, room * sizeof *list);
			if (!more)
				return free(list), NULL;
			list = more;
		}
		list[(*n)++] = k;
	}
	return list;
}

static bool is_tensor(Weft *w, WeftNode n)
{
	return weft_node_nresult(w, n) == 1 && weft_node_shape(w, n, 0, NULL, NULL) >= 0;
}

/* Whether a node can be an input: its extents do not depend on data. */
static bool can_be_input(Weft *w, WeftGraph *scratch, WeftNode n, uint32_t k)
{
	char name[32];
	const char *type = weft_node_type(w, n, 0);
	snprintf(name, sizeof name, "weft.cut.%u", (unsigned)k);
	return type && weft_graph_add_input(w, scratch, name, type).index;
}

/* Reads what a copy of the graph gives that has all values as outputs. */
static bool read_values(Model *m, WeftGraph *g, const WeftNode *node)
{
	uint32_t n = m->nout;
	char name[32];
	for (uint32_t k = 0; k < m->n; k++) {
		if (!m->step[k].cuts)
			continue;
		snprintf(name, sizeof name, "weft.step.%u", (unsigned)k);
		if (weft_graph_add_output(m->w, g, name, node[k]))
			n++;
		else
			m->step[k].cuts = false;
	}
	WeftTensor *out = calloc(n + 1, sizeof *out);
	if (!out)
		return fail("out of memory"), false;
	if (!weft_interpret(m->w, g, m->in, m->nin, out))
		return free(out), fail_messages(m->w), false;
	n = m->nout;
	for (uint32_t k = 0; k < m->n; k++)
		if (m->step[k].cuts)
			m->step[k].value = out[n++];
	m->out = out;
	return true;
}

static int64_t number_in(const Model *m, WeftNode n)
{
	for (uint32_t k = 0; n.index && k < m->n; k++)
		if (weft_node_same(m->step[k].node, n))
			return k;
	return -1;
}

static bool read_operands(Model *m)
{
	for (uint32_t k = 0; k < m->n; k++) {
		Step *s = &m->step[k];
		s->noperand = s->kind == WEFT_NODE_CALL ? weft_node_noperand(m->w, s->node) : 0;
		s->operand = calloc(s->noperand + 1, sizeof *s->operand);
		if (!s->operand)
			return fail("out of memory"), false;
		for (uint32_t i = 0; i < s->noperand; i++)
			s->operand[i] = number_in(m, weft_node_operand(m->w, s->node, i));
	}
	return true;
}

bool bisect_counts(const Model *m, uint32_t k)
{
	return m->step[k].kind == WEFT_NODE_CALL &&
	       strcmp(weft_node_op(m->w, m->step[k].node), "get") != 0;
}

const char *bisect_name(const Model *m, uint32_t k)
{
	const char *name = weft_node_name(m->w, m->step[k].node);
	for (uint32_t i = k + 1; *name >= '0' && *name <= '9' && i < m->n; i++)
		if (m->step[i].noperand && m->step[i].operand[0] == k && !bisect_counts(m, i))
			return weft_node_name(m->w, m->step[i].node);
	return name;
}

void bisect_close(const Model *m, bool *keep)
{
	for (uint32_t k = m->n; k-- > 0;) {
		const Step *s = &m->step[k];
		for (uint32_t i = 0; keep[k] && i < s->noperand; i++) {
			const int64_t at = s->operand[i];
			if (at >= 0 && m->step[at].kind == WEFT_NODE_CALL && !m->step[at].cuts)
				keep[at] = true;
		}
	}
}

const char *bisect_operator(const Model *m, uint32_t k)
{
	WeftAttr name;
	const Step *s = &m->step[k];
	const char *op = weft_node_op(m->w, s->node);
	if (!bisect_counts(m, k) && s->noperand && s->operand[0] >= 0)
		return bisect_operator(m, (uint32_t)s->operand[0]);
	if (!strcmp(op, "call") && weft_node_attr(m->w, s->node, "op", &name) &&
	    name.kind == WEFT_ATTR_TEXT)
		return name.u.text;
	return op;
}

void model_free(Model *m)
{
	for (uint32_t k = 0; m->step && k < m->n; k++)
		free(m->step[k].operand);
	free(m->step);
	free((void *)(uintptr_t)m->out);
	*m = (Model){0};
}

static bool same_type(const WeftTensor *a, const WeftTensor *b)
{
	bool same = a->dtype.code == b->dtype.code && a->dtype.bits == b->dtype.bits &&
		    a->ndim == b->ndim;
	for (int32_t d = 0; same && d < a->ndim; d++)
		same = a->shape[d] == b->shape[d];
	return same;
}

/* Takes the peer's values in place of the interpreter's. */
static bool take_peer(Model *m, const WeftTensors *peer)
{
	WeftTensor *out = (WeftTensor *)(uintptr_t)m->out;
	char name[32];
	m->by_peer = true;
	for (uint32_t k = 0; k < m->n; k++) {
		Step *s = &m->step[k];
		const WeftTensor *t =
			s->cuts ? weft_tensors_find(peer, weft_node_name(m->w, s->node)) : NULL;
		s->cuts = t && same_type(t, &s->value);
		if (s->cuts)
			s->value = *t;
	}
	for (uint32_t k = 0; k < m->nout; k++) {
		snprintf(name, sizeof name, "y.%u", (unsigned)k);
		const WeftTensor *t = weft_tensors_find(peer, name);
		if (!t || !same_type(t, &out[k]))
			return fail("%s: the other system gives no result %u of the dtype and "
				    "shape that it has here",
				    m->path, (unsigned)k),
			       false;
		out[k] = *t;
	}
	return true;
}

bool model_read(Model *m, Weft *w, WeftGraph *g, const char *path, const WeftTensor *in,
		uint32_t nin, const WeftTensors *peer)
{
	*m = (Model){.w = w, .g = g, .path = path, .in = in, .nin = nin};
	WeftGraph *copy = weft_copy_graph(w, g), *scratch = weft_copy_graph(w, g);
	WeftNode *node = copy && scratch ? nodes_of(w, copy, &m->n) : NULL,
		 *own = node ? nodes_of(w, g, &m->n) : NULL;
	m->step = own ? calloc(m->n + 1, sizeof *m->step) : NULL;
	weft_outputs(w, g, &m->nout);
	if (!m->step)
		return free(node), free(own), fail_messages(w), false;
	for (uint32_t k = 0; k < m->n; k++) {
		Step *s = &m->step[k];
		s->node = own[k];
		s->kind = weft_node_kind(w, node[k]);
		m->ncall += bisect_counts(m, k);
		if (s->kind == WEFT_NODE_CALL)
			s->cuts = is_tensor(w, node[k]) && can_be_input(w, scratch, node[k], k);
		else if (s->kind != WEFT_NODE_INPUT)
			weft_node_tensor(w, node[k], &s->value);
	}
	const bool ok = read_operands(m) && read_values(m, copy, node) &&
			(!peer || take_peer(m, peer));
	free(node);
	free(own);
	return ok;
}

/* ---- numbers that are drawn ---- */

static double drawn(uint64_t *seed)
{
	*seed += 0x9e3779b97f4a7c15u;
	uint64_t z = *seed;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static bool is_plain_float(WeftDType t)
{
	return t.code == WEFT_FLOAT && (t.bits == 32 || t.bits == 64);
}

/* Returns the root of the mean of the squares of what is finite; 1 without any. */
static double size_of_values(const WeftTensor *t)
{
	double sum = 0;
	int64_t n = 0;
	for (int64_t i = 0; i < values_of(t); i++) {
		const double v = value_at(t, i);
		sum += isfinite(v) ? v * v : 0;
		n += isfinite(v) != 0;
	}
	return n && sum > 0 ? sqrt(sum / (double)n) : 1;
}

static bool has_negative(const WeftTensor *t)
{
	for (int64_t i = 0; i < values_of(t); i++)
		if (value_at(t, i) < 0)
			return true;
	return false;
}

/* Numbers between -1.7 and 1.7 times the size of the values, f32 or f64; none below 0 where no
 * value is. Other dtypes stay. */
static bool draw_values(WeftTensor *t, uint64_t seed)
{
	if (!is_plain_float(t->dtype))
		return true;
	const double size = sqrt(3) * size_of_values(t), least = has_negative(t) ? -1 : 0;
	void *data = malloc(bytes_of(t) + 1);
	if (!data)
		return false;
	for (int64_t i = 0; i < numel_of(t); i++) {
		const double v = size * (least + (1 - least) * drawn(&seed));
		if (t->dtype.bits == 32)
			((float *)data)[i] = (float)v;
		else
			((double *)data)[i] = v;
	}
	t->data = data;
	t->byte_offset = 0;
	t->strides = NULL;
	return true;
}

/* ---- pieces ---- */

typedef struct {
	const Model *m;
	WeftGraph *g;
	WeftNode *node; /* of the copy, by number */
	bool *keep;     /* what is kept, with what cannot be cut off */
	bool *read;     /* by a step that is kept */
	Form form;
	Piece *out;
} ModelCut;

static int64_t number_of(const ModelCut *c, WeftNode n)
{
	for (uint32_t k = 0; n.index && k < c->m->n; k++)
		if (weft_node_same(c->node[k], n))
			return k;
	return -1;
}

static void note_reads(ModelCut *c)
{
	for (uint32_t k = 0; k < c->m->n; k++)
		for (uint32_t i = 0; c->keep[k] && i < c->m->step[k].noperand; i++)
			if (c->m->step[k].operand[i] >= 0)
				c->read[c->m->step[k].operand[i]] = true;
}

static bool add_value(ModelCut *c, WeftTensor value, bool weight)
{
	Piece *p = c->out;
	const bool draw =
		(weight ? c->form.weight_values : c->form.input_values) == DRAW_VALUES;
	if (draw && !draw_values(&value, p->nin + 1))
		return false;
	p->in[p->nin++] = value;
	return true;
}

static bool by_input(ModelCut *c, uint32_t k)
{
	Weft *w = c->m->w;
	char name[32];
	snprintf(name, sizeof name, "in%u", (unsigned)k);
	const char *type = weft_node_type(w, c->node[k], 0);
	const WeftNode by = type ? weft_graph_add_input(w, c->g, name, type) : (WeftNode){0};
	return by.index && weft_node_replace(w, c->node[k], by) &&
	       add_value(c, c->m->step[k].value, c->m->step[k].kind != WEFT_NODE_CALL);
}

/* Replaces a constant by sin(0.7548776662 * i) of as many elements, in its shape and dtype,
 * times the size of its values. */
static bool by_formula(ModelCut *c, uint32_t k)
{
	Weft *w = c->m->w;
	const WeftTensor *t = &c->m->step[k].value;
	const char *dtype = t->dtype.bits == 32 ? "f32" : "f64";
	const WeftAttr count[] = {weft_attr_named("end", weft_attr_int(numel_of(t))),
				  weft_attr_named("dtype", weft_attr_text(dtype))};
	WeftNode n = weft_node_insert_after(w, c->node[k], "aten.arange", count, 2);
	const double factor[] = {0.7548776662, sqrt(2) * size_of_values(t)};
	for (int i = 0; i < 2 && n.index; i++) {
		const WeftAttr times[] = {weft_attr_node(n), weft_attr_float(factor[i])};
		n = weft_node_insert_after(w, n, "aten.mul.Scalar", times, 2);
		const WeftAttr of[] = {weft_attr_node(n)};
		if (!i && n.index)
			n = weft_node_insert_after(w, n, "aten.sin", of, 1);
	}
	if (!n.index)
		return false;
	const WeftAttr shape[] = {weft_attr_node(n), weft_attr_ints(t->shape, (uint32_t)t->ndim)};
	n = weft_node_insert_after(w, n, "aten.reshape", shape, 2);
	return n.index && weft_node_replace(w, c->node[k], n);
}

/* Replaces what kept steps read of others. */
static bool replace_reads(ModelCut *c)
{
	for (uint32_t k = 0; k < c->m->n; k++) {
		const Step *s = &c->m->step[k];
		const bool stays = c->keep[k] && !(c->form.apart && s->cuts);
		if (!c->read[k] || stays || s->kind == WEFT_NODE_INPUT)
			continue;
		const bool weight = s->kind != WEFT_NODE_CALL;
		if (weight && (c->form.weights == AS_CONSTANTS || !s->value.data))
			continue;
		const bool formula = weight && c->form.weights == AS_FORMULAS &&
				     is_plain_float(s->value.dtype) && numel_of(&s->value) > 1;
		if (formula ? !by_formula(c, k) : !by_input(c, k))
			return false;
	}
	return true;
}

/* Puts those of the model's inputs that are read in front of the others. */
static bool take_inputs(ModelCut *c)
{
	for (uint32_t k = 0; k < c->m->nin; k++) {
		const int64_t at = number_of(c, weft_node_of_input(c->m->w, c->g, k));
		if (at >= 0 && c->read[at] && !add_value(c, c->m->in[k], false))
			return false;
	}
	return true;
}

/* Whether some step outside of the piece, or nothing inside of it, reads a step. */
static bool *outputs_of(const ModelCut *c)
{
	const Model *m = c->m;
	bool *out = calloc(m->n + 1, sizeof *out);
	for (uint32_t k = 0; out && k < m->n; k++)
		out[k] = c->keep[k] && m->step[k].cuts && (c->form.apart || !c->read[k]);
	for (uint32_t k = 0; out && k < m->n; k++) {
		if (c->keep[k])
			continue;
		for (uint32_t i = 0; i < m->step[k].noperand; i++) {
			const int64_t at = m->step[k].operand[i];
			if (at >= 0 && c->keep[at] && m->step[at].cuts)
				out[at] = true;
		}
	}
	for (uint32_t k = 0; out && k < m->nout; k++) {
		const int64_t at = number_of(c, weft_node_of_output(m->w, c->g, k));
		if (at >= 0 && c->keep[at] && m->step[at].cuts)
			out[at] = true;
	}
	return out;
}

/* Sets the outputs of the piece in place of the model's. */
static bool set_outputs(ModelCut *c, const bool *is_out)
{
	Piece *p = c->out;
	const bool known = c->form.weight_values == KEEP_VALUES &&
			   c->form.input_values == KEEP_VALUES && c->form.weights != AS_FORMULAS;
	char name[32];
	if (known && !(p->out = calloc(c->m->n + 1, sizeof *p->out)))
		return false;
	for (uint32_t k = 0; k < c->m->n; k++) {
		if (!is_out[k])
			continue;
		snprintf(name, sizeof name, "out%u", (unsigned)k);
		if (!weft_graph_add_output(c->m->w, c->g, name, c->node[k]))
			return false;
		if (known)
			p->out[p->nout] = c->m->step[k].value;
		p->from[p->nout++] = k;
	}
	for (uint32_t k = 0; p->nout && k < c->m->nout; k++)
		if (!weft_graph_remove_output(c->m->w, c->g, 0))
			return false;
	return p->nout;
}

/* Erases the rest from the last node on, so that readers go first. */
static void erase_rest(ModelCut *c)
{
	for (uint32_t k = c->m->n; k-- > 0;)
		if (!c->keep[k] && !weft_node_nread(c->m->w, c->node[k]))
			weft_node_erase(c->m->w, c->node[k]);
}

/* Makes inputs and state that the model writes keep their values. */
static bool write_nothing(ModelCut *c)
{
	for (uint32_t k = 0; k < c->m->n; k++) {
		const WeftNodeKind kind = c->m->step[k].kind;
		if ((kind == WEFT_NODE_INPUT || kind == WEFT_NODE_STATE) &&
		    weft_node_written(c->m->w, c->node[k]).index &&
		    !weft_graph_set_written(c->m->w, c->node[k], c->node[k]))
			return false;
	}
	return true;
}

static bool make(ModelCut *c)
{
	const uint32_t n = c->m->n;
	uint32_t same;
	c->g = weft_copy_graph(c->m->w, c->m->g);
	c->node = c->g ? nodes_of(c->m->w, c->g, &same) : NULL;
	if (!c->node || same != n)
		return false;
	c->out->g = c->g;
	c->out->in = calloc(n + c->m->nin + 1, sizeof *c->out->in);
	c->out->from = calloc(n + 1, sizeof *c->out->from);
	if (!c->out->in || !c->out->from)
		return false;
	bisect_close(c->m, c->keep);
	note_reads(c);
	bool *is_out = outputs_of(c);
	const bool ok = is_out && write_nothing(c) && take_inputs(c) && replace_reads(c) &&
			set_outputs(c, is_out);
	free(is_out);
	if (!ok)
		return false;
	erase_rest(c);
	uint32_t nin = 0;
	weft_inputs(c->m->w, c->g, &nin);
	return nin == c->out->nin && weft_graph_verify(c->m->w, c->g);
}

bool piece_make(const Model *m, const bool *keep, Form form, Piece *p)
{
	ModelCut c = {.m = m, .form = form, .out = p};
	*p = (Piece){0};
	c.keep = calloc(m->n + 1, sizeof *c.keep);
	c.read = calloc(m->n + 1, sizeof *c.read);
	bool ok = c.keep && c.read;
	if (ok) {
		memcpy(c.keep, keep, m->n * sizeof *keep);
		ok = make(&c);
	}
	free(c.keep);
	free(c.read);
	free(c.node);
	return ok;
}

bool piece_whole(const Model *m, Piece *p)
{
	*p = (Piece){.g = m->g, .nin = m->nin, .nout = m->nout};
	p->in = calloc(m->nin + 1, sizeof *p->in);
	p->out = calloc(m->nout + 1, sizeof *p->out);
	p->from = calloc(m->nout + 1, sizeof *p->from);
	if (!p->in || !p->out || !p->from)
		return false;
	memcpy(p->in, m->in, m->nin * sizeof *m->in);
	memcpy(p->out, m->out, m->nout * sizeof *m->out);
	return true;
}

const char *piece_print(const Model *m, Piece *p)
{
	const char *text = weft_graph_text(m->w, p->g, NULL);
	if (!text || strstr(text, " = const #"))
		return NULL;
	p->g = weft_parse(m->w, text, "graph.ir");
	return p->g ? text : NULL;
}

bool piece_interpret(const Model *m, Piece *p)
{
	if (p->out)
		return true;
	p->out = calloc(p->nout + 1, sizeof *p->out);
	return p->out && weft_interpret(m->w, p->g, p->in, p->nin, p->out);
}

void piece_free(Piece *p)
{
	free(p->in);
	free(p->from);
	free(p->out);
	*p = (Piece){0};
}
