/* model.c of an artifact: sizes, run, and the tables that describe the model. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "codegen/c/emit_priv.h"

typedef struct {
	CUnit *u;
	const Program *p;
	const EmitOptions *o;
	Text *out;
	uint32_t ndim; /* dimension arrays written */
} Model;

const char *c_string(Arena *arena, const char *s)
{
	Text t;
	text_init(&t, arena);
	text_char(&t, '"');
	for (; s && *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			text_printf(&t, "\\%c", c);
		else if (c == '\n')
			text_add(&t, "\\n");
		else if (isprint(c) && !(c == '?' && s[1] == '?'))
			text_char(&t, (char)c);
		else
			text_printf(&t, "\\%03o", c);
	}
	text_char(&t, '"');
	return t.data;
}

static const char *quoted(const Model *m, const char *s)
{
	return c_string(m->u->arena, s ? s : "");
}

/* {code, bits, lanes} of DLPack */
static const char *dlpack(const Model *m, DType d)
{
	int code = dtype_is_complex(d) ? 5 : dtype_is_float(d) ? 2 : dtype_is_signed(d) ? 0 : 1;
	if (d == DT_bf16)
		code = 4;
	else if (d == DT_bool)
		code = 6;
	else if (d == DT_f8e4m3)
		code = 10;
	else if (d == DT_f8e5m2)
		code = 12;
	return arena_printf(m->u->arena, "{%d, %u, 1}", code, dtype_size(d) * 8);
}

/* ---- inputs and outputs ---- */

static int symbol_index(const Model *m, Sym s)
{
	for (uint32_t k = 0; k < m->p->symbol.n; k++)
		if (m->p->symbol.data[k].i == s.i)
			return (int)k;
	return -1;
}

static void print_dims(Model *m, const char *name, const ProgramTensor *t)
{
	if (!t->rank)
		return;
	text_printf(m->out, "static const WeftDim %s[] = {", name);
	for (uint32_t k = 0; k < t->rank; k++) {
		int64_t value = -1;
		if (!sym_is_const(m->p->ir->syms, t->dim[k], &value))
			value = -1;
		text_printf(m->out, "%s{%lld, %d, %s}", k ? ", " : "", (long long)value,
		            symbol_index(m, t->dim[k]), quoted(m, sym_str(m->p->ir->syms, t->dim[k])));
	}
	text_add(m->out, "};\n");
}

/* Tensors of one kind; returns how many. */
static uint32_t print_tensors(Model *m, const char *name, const ProgramTensor *t, uint32_t n, bool state)
{
	uint32_t count = 0;
	Text rows;
	text_init(&rows, m->u->arena);
	for (uint32_t k = 0; k < n; k++) {
		if (t[k].is_state != state)
			continue;
		const char *dims = arena_printf(m->u->arena, "%s_dim_%u", name, count);
		print_dims(m, dims, &t[k]);
		text_printf(&rows, "\t{.name = %s, .dtype = %s, .rank = %u, .dim = %s, .offset = %llu},\n",
		            quoted(m, t[k].name), dlpack(m, t[k].dtype), t[k].rank, t[k].rank ? dims : "NULL",
		            (unsigned long long)t[k].offset);
		count++;
	}
	if (count)
		text_printf(m->out, "static const WeftTensorInfo %s[] = {\n%s};\n\n", name, rows.data);
	return count;
}

static void print_symbols(Model *m)
{
	if (!m->p->symbol.n)
		return;
	text_add(m->out, "static const WeftSymbolInfo symbols[] = {\n");
	for (uint32_t k = 0; k < m->p->symbol.n; k++) {
		int64_t lo, hi;
		Sym s = m->p->symbol.data[k];
		sym_range(m->p->ir->syms, s, &lo, &hi);
		text_printf(m->out, "\t{%s, %lld, ", quoted(m, sym_str(m->p->ir->syms, s)), (long long)lo);
		if (hi == SYM_INF)
			text_add(m->out, "INT64_MAX},\n");
		else
			text_printf(m->out, "%lld},\n", (long long)hi);
	}
	text_add(m->out, "};\n\nstatic const int64_t seen[] = {");
	for (uint32_t k = 0; k < m->p->symbol.n; k++)
		text_printf(m->out, "%s%lld", k ? ", " : "", (long long)sym_hint(m->p->ir->syms, m->p->symbol.data[k]));
	text_add(m->out, "};\n\n");
}

static void print_calls(Model *m)
{
	if (!m->p->call.n)
		return;
	text_add(m->out, "static const WeftCallInfo calls[] = {\n");
	for (uint32_t k = 0; k < m->p->call.n; k++) {
		const ProgramCall *c = &m->p->call.data[k];
		ProgramCount n = program_count(m->p, k, NULL);
		text_printf(m->out, "\t{%s, %s, %.17g, %.17g},\n", quoted(m, c->name), quoted(m, c->algorithm),
		            n.flops, n.bytes);
	}
	text_add(m->out, "};\n\n");
}

static void print_messages(Model *m)
{
	text_add(m->out, "static const char *const messages[] = {\n");
	for (uint32_t k = 0; k < m->p->message.n; k++)
		text_printf(m->out, "\t%s,\n", quoted(m, m->p->message.data[k]));
	text_add(m->out, "};\n\n");
}

/* ---- parameters ---- */

static void print_param_arrays(Model *m, uint32_t k, const Const *c, const Layout *l, bool plain)
{
	if (c->rank) {
		text_printf(m->out, "static const int64_t param_dim_%u[] = {", k);
		for (uint32_t d = 0; d < c->rank; d++)
			text_printf(m->out, "%s%lld", d ? ", " : "", (long long)c->dim[d]);
		text_add(m->out, "};\n");
	}
	if (plain)
		return;
	text_printf(m->out, "static const WeftLayoutDim param_layout_%u[] = {", k);
	for (uint32_t d = 0; d < l->n; d++) {
		int64_t extent = 0, padded = 0;
		sym_is_const(m->p->ir->syms, l->dim[d].extent, &extent);
		sym_is_const(m->p->ir->syms, l->dim[d].padded, &padded);
		text_printf(m->out, "%s{%u, %lld, %lld, %lld}", d ? ", " : "", l->dim[d].axis,
		            (long long)l->dim[d].divisor, (long long)extent, (long long)padded);
	}
	text_add(m->out, "};\n");
}

static void print_params(Model *m)
{
	if (!m->p->constant.n)
		return;
	Text rows;
	text_init(&rows, m->u->arena);
	for (uint32_t k = 0; k < m->p->constant.n; k++) {
		const ProgramConst *pc = &m->p->constant.data[k];
		const Const *c = ir_const_of(m->p->ir, pc->source);
		bool plain = pc->layout.n == 0 || layout_is_row_major(&pc->layout, c->rank);
		print_param_arrays(m, k, c, &pc->layout, plain);
		text_printf(&rows, "\t{.name = %s, .dtype = %s, .rank = %u, .dim = ",
		            quoted(m, c->is_param ? c->name : ""), dlpack(m, pc->dtype), c->rank);
		text_printf(&rows, c->rank ? "param_dim_%u" : "NULL", k);
		if (!plain)
			text_printf(&rows, ",\n\t .nlayout = %u, .layout = param_layout_%u", pc->layout.n, k);
		text_printf(&rows, ",\n\t .offset = %llu, .bytes = %llu},\n", (unsigned long long)pc->offset,
		            (unsigned long long)pc->bytes);
	}
	text_printf(m->out, "static const WeftParamInfo params[] = {\n%s};\n\n", rows.data);
}

/* ---- the table ---- */

static void print_entry(Model *m, uint32_t nin, uint32_t nout, uint32_t nstate)
{
	const Program *p = m->p;
	uint32_t nextent = program_nextent(p), nslot = program_nslot(p);
	text_add(m->out, "static const WeftEntry entry = {\n\t.size = sizeof(WeftEntry),\n");
	text_printf(m->out, "\t.name = %s,\n", quoted(m, p->name));
	if (nstate)
		text_add(m->out, "\t.flags = WEFT_ENTRY_MUTATES,\n");
	text_printf(m->out, "\t.ninput = %u, .noutput = %u, .nsymbol = %u, .ncall = %u,\n", nin, nout,
	            p->symbol.n, p->call.n);
	text_printf(m->out, "\t.input = %s, .output = %s, .symbol = %s, .call = %s,\n", nin ? "inputs" : "NULL",
	            nout ? "outputs" : "NULL", p->symbol.n ? "symbols" : "NULL", p->call.n ? "calls" : "NULL");
	text_printf(m->out, "\t.flops = %.17g,\n\t.sizes_bytes = WEFT_SIZES_BYTES(%u, %u),\n",
	            program_total(p, NULL).flops, nslot,
	            nextent);
	text_printf(m->out, "\t.nslot = %u,\n\t.sizes_fn = sizes, .run_fn = run,\n", nslot);
	text_printf(m->out, "\t.message = messages, .nmessage = %u,\n%s};\n", p->message.n,
	            p->symbol.n ? "\t.seen = seen,\n" : "");
	text_add(m->out, "static const WeftEntry *const entries[] = {&entry};\n\n");
}

void c_export(Text *out, const char *export_name)
{
	const char *name = export_name ? export_name : "weft_model";
	text_printf(out,
	            "#if defined(__GNUC__)\n__attribute__((visibility(\"default\")))\n#endif\n"
	            "const WeftModel *%s(void);\n\nconst WeftModel *%s(void)\n",
	            name, name);
}

static void print_table(Model *m, uint32_t nstate)
{
	const EmitOptions *o = m->o;
	const Target *t = m->u->target;
	text_printf(m->out,
	            "static const WeftManifest manifest = {\n\t.name = %s, .weft_version = %s, .target = %s,\n"
	            "\t.features = %s, .source_hash = %s, .compiler = %s,\n};\n\n",
	            quoted(m, m->p->name), quoted(m, o->version), quoted(m, t->isa.name), quoted(m, t->isa.features),
	            quoted(m, o->source_hash), quoted(m, o->compiler));
	if (o->weights_symbol)
		text_printf(m->out, "extern const unsigned char %s[];\n\n", o->weights_symbol);
	text_add(m->out, "static const WeftModel model = {\n\t.size = sizeof(WeftModel), .abi = WEFT_ABI_VERSION,"
	                 "\n\t.manifest = &manifest,\n");
	text_printf(m->out, "\t.nentry = 1, .nparam = %u, .entry = entries, .param = %s,\n\t.replaceable = %d,\n",
	            m->p->constant.n, m->p->constant.n ? "params" : "NULL", o->replaceable);
	text_printf(m->out, "\t.weights = %s, .weights_file = %s,\n",
	            o->weights_symbol ? o->weights_symbol : "NULL",
	            o->weights_file ? quoted(m, o->weights_file) : "NULL");
	if (o->weights_hash)
		text_printf(m->out, "\t.weights_hash = %s,\n", quoted(m, o->weights_hash));
	text_printf(m->out, "\t.weights_bytes = %llu, .state_bytes = %llu, .state_init = %llu,\n",
	            (unsigned long long)m->p->weight_bytes, (unsigned long long)m->p->state_bytes,
	            (unsigned long long)m->p->state_init);
	text_printf(m->out, "\t.nstate = %u, .state = %s,\n\tWEFT_RUNTIME_FUNCTIONS,\n};\n\n", nstate,
	            nstate ? "states" : "NULL");
	if (o->hidden)
		text_printf(m->out, "const WeftModel *%s(void);\n\nconst WeftModel *%s(void)\n", o->export_name, o->export_name);
	else
		c_export(m->out, o->export_name);
	text_add(m->out, "{\n\treturn &model;\n}\n");
}

/* Inlined, they would make the long function again that they were cut from. */
static void print_parts(Model *m, LoopFn *const *part, uint32_t n, FnRole role, const char *const *kernel_name)
{
	for (uint32_t k = 0; k < n; k++) {
		text_add(m->out, "#if defined(__GNUC__)\n__attribute__((noinline))\n#endif\n");
		c_function(m->u, part[k], part[k]->name, role, m->p, kernel_name, m->out);
		text_char(m->out, '\n');
	}
}

void c_model(CUnit *u, const Program *p, const EmitOptions *o, const char *const *kernel_name, Text *out)
{
	Model m = {u, p, o, out, 0};
	print_parts(&m, p->sizes_part.data, p->sizes_part.n, FN_SIZES, kernel_name);
	print_parts(&m, p->run_part.data, p->run_part.n, FN_RUN, kernel_name);
	c_function(u, p->sizes, "sizes", FN_SIZES, p, kernel_name, out);
	text_char(out, '\n');
	c_function(u, p->run, "run", FN_RUN, p, kernel_name, out);
	text_char(out, '\n');
	uint32_t nin = print_tensors(&m, "inputs", p->input.data, p->input.n, false);
	uint32_t nout = print_tensors(&m, "outputs", p->output.data, p->output.n, false);
	uint32_t nstate = print_tensors(&m, "states", p->input.data, p->input.n, true);
	print_symbols(&m);
	print_calls(&m);
	print_messages(&m);
	print_params(&m);
	print_entry(&m, nin, nout, nstate);
	print_table(&m, nstate);
}
