#include "ops/onnx/common/window.h"

bool window_ints(Build *b, Node n, const char *name, uint32_t want, int64_t fill, int64_t least,
		 int64_t *v)
{
	uint32_t count = 0;
	const Sym *given = aten_has(b, n, name) ? node_ints(b->g, n, name, &count) : NULL;
	bool ok = !count || count == want;
	if (!ok)
		b_error(b, "%s has %u numbers, expected %u", name, count, want);
	for (uint32_t k = 0; ok && k < want; k++) {
		v[k] = fill;
		ok = !count || aten_const(b, given[k], &v[k]);
		if (ok && (v[k] < least || v[k] > INT32_MAX)) {
			b_error(b, "%s is %lld, expected %lld to %d", name, (long long)v[k],
				(long long)least, INT32_MAX);
			ok = false;
		}
	}
	return ok;
}

/* Sets as many windows as strides cover; borders are shared out, the odd element behind or in
 * front. */
static void same_borders(Build *b, Window *w, uint32_t k, bool upper)
{
	SymTab *t = b_syms(b);
	Sym out = sym_ceildiv(t, w->in[k], b_int(b, w->stride[k]));
	Sym reach =
		sym_addi(t, sym_muli(t, sym_addi(t, out, -1), w->stride[k]), window_reach(w, k));
	Sym total = sym_max(t, b_int(b, 0), sym_sub(t, reach, w->in[k]));
	Sym half = sym_divi(t, total, 2), rest = sym_sub(t, total, half);
	w->low[k] = upper ? half : rest;
	w->high[k] = upper ? rest : half;
}

static void count_windows(Build *b, Window *w, uint32_t k, bool ceil)
{
	SymTab *t = b_syms(b);
	Sym all = sym_add(t, w->in[k], sym_add(t, w->low[k], w->high[k]));
	aten_require_le(b, b_int(b, window_reach(w, k)), all,
			"a window is larger than the padded operand");
	w->out[k] = aten_window_count(b, all, b_int(b, window_reach(w, k)), w->stride[k]);
	if (!ceil)
		return;
	/* one more window, if it does not reach over the end alone and begins within */
	Sym up = sym_addi(
		t, sym_ceildiv(t, sym_addi(t, all, -window_reach(w, k)), b_int(b, w->stride[k])),
		1);
	Sym begins = sym_ceildiv(t, sym_add(t, w->in[k], w->low[k]), b_int(b, w->stride[k]));
	w->out[k] = sym_min(t, up, begins);
}

bool window_read(Build *b, Node n, Node x, const int64_t *kernel, uint32_t ns, Window *w)
{
	int64_t pads[2 * MAX_SPACE];
	bool ceil =
		op_arg_index(node_op(b->g, n), "ceil_mode") >= 0 && node_bool(b->g, n, "ceil_mode");
	bool dilates = op_arg_index(node_op(b->g, n), "dilations") >= 0;
	*w = (Window){.ns = ns};
	bool ok = x.i && ns >= 1 && ns <= MAX_SPACE && aten_rank(b, x) == ns + 2;
	if (!ok) {
		b_error(b, "an operand of rank %u and windows of %u dimensions", aten_rank(b, x),
			ns);
		return false;
	}
	TRY(aten_check_word(b, n, "auto_pad", "NOTSET VALID SAME_UPPER SAME_LOWER"));
	TRY(window_ints(b, n, "strides", ns, 1, 1, w->stride) &&
	    window_ints(b, n, "pads", 2 * ns, 0, INT32_MIN, pads));
	for (uint32_t k = 0; k < ns; k++)
		w->dilation[k] = 1;
	TRY(!dilates || window_ints(b, n, "dilations", ns, 1, 1, w->dilation));
	const char *how = node_str(b->g, n, "auto_pad");
	uint32_t errors = b->g->ir->ctx->nerror;
	for (uint32_t k = 0; k < ns; k++) {
		bool given = how[0] == 'N';
		w->kernel[k] = kernel[k];
		w->in[k] = b_dim(b, x, (int)k + 2);
		w->low[k] = b_int(b, given ? pads[k] : 0);
		w->high[k] = b_int(b, given ? pads[ns + k] : 0);
		if (how[0] == 'S')
			same_borders(b, w, k, how[5] == 'U');
		count_windows(b, w, k, ceil);
	}
	return b->g->ir->ctx->nerror == errors;
}

bool window_is_even(Build *b, const Window *w, int64_t *pad)
{
	for (uint32_t k = 0; k < w->ns; k++)
		if (w->low[k].i != w->high[k].i || !sym_is_const(b_syms(b), w->low[k], &pad[k]) ||
		    pad[k] < 0)
			return false;
	return true;
}

Node window_pad(Build *b, Node x, const Window *w, Node fill)
{
	Sym low[MAX_RANK] = {b_int(b, 0), b_int(b, 0)}, high[MAX_RANK] = {b_int(b, 0), b_int(b, 0)};
	SymTab *t = b_syms(b);
	for (uint32_t k = 0; k < w->ns; k++) {
		Sym reach = sym_addi(t, sym_muli(t, sym_addi(t, w->out[k], -1), w->stride[k]),
				     window_reach(w, k));
		low[k + 2] = w->low[k];
		high[k + 2] =
			sym_max(t, w->high[k], sym_sub(t, reach, sym_add(t, w->in[k], w->low[k])));
	}
	return b_pad(b, x, low, high, fill);
}

Node window_elements(Build *b, Node x, const Window *w, Node fill)
{
	x = window_pad(b, x, w, fill);
	for (uint32_t k = 0; k < w->ns; k++)
		x = b_window(b, x, k + 2, w->kernel[k], w->stride[k], w->dilation[k], 0, w->out[k]);
	return x;
}
