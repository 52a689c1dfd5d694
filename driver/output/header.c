#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "codegen/print/names.h"
#include "driver/output/header.h"
#include "ir/build/text.h"
#include "runtime/runtime.h"

/* An extent that the program passes to the function of an entry. */
typedef struct {
	Sym symbol; /* which the extent is; none: an expression of symbols, of one dimension alone
		     */
	const char *name;
} Extent;

/* An input or output as an argument. */
typedef struct {
	const ProgramTensor *tensor;
	const char *name;
	const char **extent; /* of an input, by dimension: C text */
	bool found;          /* of an output: an extent depends on data */
} Argument;

/* The function of one entry. */
typedef struct {
	Arena *arena;
	const SymTab *syms;
	const ProgramEntry *e;
	uint32_t number;   /* of the entry */
	const char *table; /* the function that returns the table */
	bool device;       /* the entry runs on a GPU */
	const char *name;  /* of the function */
	const char *workspace; /* the function that finds the bytes of the workspace */
	Names names;           /* of the arguments */
	Names *macros;         /* of the header */
	ARRAY(Extent) extent;
	Argument *input, *output;
} EntryText;

/* ---- arguments ---- */

static const char *element_type(DType d)
{
	static const char *const integer[2][4] = {{"uint8_t", "uint16_t", "uint32_t", "uint64_t"},
						  {"int8_t", "int16_t", "int32_t", "int64_t"}};
	const DType part = dtype_raw(dtype_real(d));
	if (part == DT_f64 || part == DT_f32)
		return part == DT_f64 ? "double" : "float";
	uint32_t log = 0;
	while (1U << log < dtype_size(part))
		log++;
	return integer[dtype_is_signed(part)][log];
}

/* Returns a name for an argument: no macro, type or function of the headers. */
static const char *argument_name(EntryText *x, const char *stem)
{
	const char *name = c_identifier(x->arena, stem);
	const size_t n = strlen(name);
	bool lower = false;
	for (const char *c = name; *c; c++)
		lower |= islower((unsigned char)*c);
	if (!lower || !strncasecmp(name, "weft", 4) || (n > 2 && !strcmp(name + n - 2, "_t")))
		name = arena_printf(x->arena, "%s_", name);
	return names_add(&x->names, name);
}

/* Returns the argument that passes an extent of an input: one argument for each symbol. */
static const char *extent_argument(EntryText *x, const Argument *a, uint32_t d)
{
	const Sym dim = a->tensor->dim[d];
	const bool symbol = sym_kind(x->syms, dim) == SYM_VAR;
	for (uint32_t k = 0; symbol && k < x->extent.n; k++)
		if (x->extent.data[k].symbol.i == dim.i)
			return x->extent.data[k].name;
	const char *stem =
		symbol ? sym_name(x->syms, dim) : arena_printf(x->arena, "%s_dim%u", a->name, d);
	const Extent e = {symbol ? dim : (Sym){0}, argument_name(x, stem)};
	array_push(x->arena, &x->extent, e);
	return e.name;
}

static void add_input(EntryText *x, uint32_t k)
{
	Argument *a = &x->input[k];
	a->tensor = &x->e->input.data[k];
	a->name = argument_name(x, a->tensor->name);
	a->extent = ARENA_ARRAY(x->arena, const char *, a->tensor->rank + 1);
	for (uint32_t d = 0; d < a->tensor->rank; d++) {
		int64_t value;
		a->extent[d] = sym_is_const(x->syms, a->tensor->dim[d], &value)
				       ? arena_printf(x->arena, "%lld", (long long)value)
				       : extent_argument(x, a, d);
	}
}

static void add_arguments(EntryText *x)
{
	static const char *const own[] = {"instance", "workspace", "workspace_bytes", "context",
					  "status",   "model",     "bytes",           "sizes",
					  "memory",   "inputs",    "outputs",         "code",
					  "extents",  "snprintf"};
	names_init(&x->names, x->arena);
	names_reserve_cpp(&x->names);
	for (uint32_t k = 0; k < sizeof own / sizeof *own; k++)
		names_reserve(&x->names, own[k]);
	x->input = ARENA_ARRAY(x->arena, Argument, x->e->input.n + 1);
	x->output = ARENA_ARRAY(x->arena, Argument, x->e->output.n + 1);
	for (uint32_t k = 0; k < x->e->input.n; k++)
		add_input(x, k);
	for (uint32_t k = 0; k < x->e->output.n; k++) {
		const ProgramTensor *t = &x->e->output.data[k];
		x->output[k] = (Argument){.tensor = t,
					  .name = argument_name(x, t->name),
					  .found = program_is_found(x->e, k)};
	}
}

/* ---- sizes ---- */

static bool is_constant(const EntryText *x, const ProgramTensor *t, int64_t *elements)
{
	*elements = 1;
	for (uint32_t d = 0; d < t->rank; d++) {
		int64_t extent;
		if (!sym_is_const(x->syms, t->dim[d], &extent))
			return false;
		*elements *= extent;
	}
	return true;
}

/* Whether all extents are numbers, so that the workspace is one. */
static bool has_constant_sizes(const EntryText *x)
{
	int64_t n;
	for (uint32_t k = 0; k < x->e->input.n; k++)
		if (!is_constant(x, x->input[k].tensor, &n))
			return false;
	for (uint32_t k = 0; k < x->e->output.n; k++)
		if (!is_constant(x, x->output[k].tensor, &n))
			return false;
	return !x->e->symbol.n && !x->e->nroom;
}

static const char *macro_name(const EntryText *x, const char *what)
{
	char *name = (char *)(uintptr_t)arena_printf(x->arena, "%s_%s", x->name, what);
	for (char *c = name; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return name;
}

/* Defines the macro of that name; another name if it is taken. */
static void size_macro(const EntryText *x, Text *t, const char *what, uint64_t value)
{
	text_printf(t, "#define %s %llu\n", names_add(x->macros, macro_name(x, what)),
		    (unsigned long long)value);
}

static void element_macros(const EntryText *x, Text *t, const Argument *a, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		int64_t elements;
		if (is_constant(x, a[k].tensor, &elements))
			size_macro(x, t, arena_printf(x->arena, "%s_elements", a[k].name),
				   (uint64_t)elements);
	}
}

static void size_macros(const EntryText *x, Text *t)
{
	size_macro(x, t, "slots", program_nslot(x->e));
	if (has_constant_sizes(x)) {
		size_macro(x, t, "serial_workspace", x->e->workspace_hint);
		if (!x->device)
			size_macro(x, t, "workspace", WEFT_WORKSPACE_BYTES(x->e->workspace_hint));
	}
	element_macros(x, t, x->input, x->e->input.n);
	element_macros(x, t, x->output, x->e->output.n);
}

/* ---- the function ---- */

static void list_extents(const EntryText *x, Text *t)
{
	bool any = false;
	text_add(t, "\tint64_t extents[] = {");
	for (uint32_t k = 0; k < x->e->input.n; k++)
		for (uint32_t d = 0; d < x->input[k].tensor->rank; d++, any = true)
			text_printf(t, "%s%s", any ? ", " : "", x->input[k].extent[d]);
	text_add(t, any ? "};\n" : "0};\n");
}

/* Prints the initial value of a WeftTensor. */
static void list_tensor(Text *t, const char *data, const ProgramTensor *p, const char *shape)
{
	const WeftDType d = dtype_to_api(p->dtype);
	text_printf(t, "\t\t{%s, {WEFT_CPU, 0}, %u, {%u, %u, 1}, %s, NULL, 0},\n", data, p->rank,
		    d.code, d.bits, shape);
}

/* Prints the statements that find the sizes. data: whether the function has the inputs' data. */
static void list_sizes(const EntryText *x, Text *t, bool data)
{
	uint32_t at = 0;
	text_printf(t,
		    "{\n\tconst WeftModel *model = %s();\n\tint64_t memory[%u];\n"
		    "\tWeftSizes *sizes = (WeftSizes *)(void *)memory;\n",
		    x->table,
		    (uint32_t)(WEFT_SIZES_BYTES(program_nslot(x->e), program_nextent(x->e)) /
			       sizeof(int64_t)));
	list_extents(x, t);
	text_add(t,
		 x->e->input.n ? "\tWeftTensor inputs[] = {\n" : "\tWeftTensor *inputs = NULL;\n");
	for (uint32_t k = 0; k < x->e->input.n; at += x->input[k].tensor->rank, k++)
		list_tensor(t,
			    data ? arena_printf(x->arena, "(void *)(uintptr_t)%s", x->input[k].name)
				 : "NULL",
			    x->input[k].tensor, arena_printf(x->arena, "extents + %u", at));
	text_add(t, x->e->input.n ? "\t};\n" : "\t(void)extents;\n");
	text_printf(t, "\tint code = model->sizes(instance, %u, inputs, sizes, status);\n",
		    x->number);
}

static void list_outputs(const EntryText *x, Text *t)
{
	text_add(t, x->e->output.n ? "\tWeftTensor outputs[] = {\n"
				   : "\tWeftTensor *outputs = NULL;\n");
	for (uint32_t k = 0; k < x->e->output.n; k++)
		if (x->output[k].found)
			text_printf(t, "\t\t*%s,\n", x->output[k].name);
		else
			list_tensor(t, x->output[k].name, x->output[k].tensor,
				    arena_printf(x->arena,
						 "(int64_t *)(uintptr_t)weft_output_shape("
						 "model, model->entry[%u], sizes, %u)",
						 x->number, k));
	text_add(t, x->e->output.n ? "\t};\n" : "");
}

static void list_extent_arguments(const EntryText *x, Text *t)
{
	for (uint32_t k = 0; k < x->extent.n; k++)
		text_printf(t, ", int64_t %s", x->extent.data[k].name);
}

/* Prints the function that finds the bytes of the workspace at run time. */
static void workspace_function(const EntryText *x, Text *t)
{
	text_printf(
		t,
		"\n/* Sets *bytes to the size of the workspace of %s at these extents. Returns\n"
		" * WEFT_OK or an error code. */\nstatic inline int %s(WeftInstance *instance",
		x->name, x->workspace);
	list_extent_arguments(x, t);
	text_add(t, ", uint64_t *bytes, WeftStatus *status)\n");
	list_sizes(x, t, false);
	text_add(t, "\tif (!code)\n\t\t*bytes = sizes->workspace_bytes;\n\treturn code;\n}\n");
}

static void run_comment(const EntryText *x, Text *t)
{
	text_printf(t,
		    "\n/* Runs entry %s on row-major arrays: see WeftModel.run for ownership and "
		    "errors.\n",
		    x->e->name);
	for (uint32_t k = 0; k < x->e->output.n; k++)
		if (x->output[k].found)
			text_printf(t,
				    " * %s: a tensor, as WeftModel.run fills it in: its size "
				    "depends on data.\n",
				    x->output[k].name);
	text_printf(t, " * workspace: of at least %s bytes. context and status may be NULL. */\n",
		    has_constant_sizes(x) ? macro_name(x, "workspace") : x->workspace);
}

static void run_function(const EntryText *x, Text *t)
{
	run_comment(x, t);
	text_printf(t, "static inline int %s(WeftInstance *instance", x->name);
	list_extent_arguments(x, t);
	for (uint32_t k = 0; k < x->e->input.n; k++)
		text_printf(t, ",\n\tconst %s *%s", element_type(x->input[k].tensor->dtype),
			    x->input[k].name);
	for (uint32_t k = 0; k < x->e->output.n; k++)
		text_printf(t, ",\n\t%s *%s",
			    x->output[k].found ? "WeftTensor"
					       : element_type(x->output[k].tensor->dtype),
			    x->output[k].name);
	text_add(t, ",\n\tvoid *workspace, uint64_t workspace_bytes, const WeftContext *context, "
		    "WeftStatus *status)\n");
	list_sizes(x, t, true);
	text_add(t, "\tif (code)\n\t\treturn code;\n");
	text_printf(t,
		    "\tif (sizes->workspace_bytes > workspace_bytes) {\n"
		    "\t\tif (status) {\n\t\t\tstatus->code = WEFT_ERR_ARGUMENT;\n"
		    "\t\t\tsnprintf(status->message, sizeof status->message,\n"
		    "\t\t\t\t\"%s: a workspace of %%llu bytes, expected at least %%llu\",\n"
		    "\t\t\t\t(unsigned long long)workspace_bytes,\n"
		    "\t\t\t\t(unsigned long long)sizes->workspace_bytes);\n\t\t}\n"
		    "\t\treturn WEFT_ERR_ARGUMENT;\n\t}\n",
		    x->name);
	list_outputs(x, t);
	text_add(t, "\tcode = model->run(instance, sizes, inputs, outputs, workspace, context, "
		    "status);\n");
	for (uint32_t k = 0; k < x->e->output.n; k++)
		if (x->output[k].found)
			text_printf(t, "\t*%s = outputs[%u];\n", x->output[k].name, k);
	text_add(t, "\treturn code;\n}\n");
}

static void entry_functions(const Compilation *c, Names *names, Names *macros, uint32_t number,
			    Text *t)
{
	EntryText x = {.arena = c->ctx->arena,
		       .syms = c->program->ir->syms,
		       .e = &c->program->entry.data[number],
		       .number = number,
		       .table = c->o.symbol ? c->o.symbol : "weft_model",
		       .device = c->target->gpu != NULL,
		       .macros = macros};
	x.name = names_add(names, arena_printf(x.arena, "%s_%s", x.table, x.e->name));
	x.workspace = names_add(names, arena_printf(x.arena, "%s_workspace", x.name));
	add_arguments(&x);
	text_printf(t, "\n/* ---- entry %s ---- */\n\n", x.e->name);
	size_macros(&x, t);
	if (!has_constant_sizes(&x))
		workspace_function(&x, t);
	run_function(&x, t);
}

/* ---- the header ---- */

static void list_type(const Graph *g, Text *t, uint32_t k, const char *name, Node n)
{
	text_printf(t, " *   %u %s: ", k, strstr(name, "*/") ? "" : name);
	type_print(g->ir, node_type_id(g, n), t);
	text_char(t, '\n');
}

static void list_interface(const Graph *g, Text *t)
{
	text_add(t, " *\n * Inputs:\n");
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].kind == INPUT_USER)
			list_type(g, t, k, g->input.data[k].name, g->input.data[k].node);
	text_add(t, " * Outputs:\n");
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].node.i && g->output.data[k].writes < 0)
			list_type(g, t, k, g->output.data[k].name, g->output.data[k].node);
}

static void list_entries(const Compilation *c, const WeftGraph *from, Text *t)
{
	text_printf(t, "/* The compiled model %s.\n", c->name);
	for (uint32_t k = 0; k < from->nentry; k++) {
		if (!from->g)
			text_printf(t, " *\n * Entry %u, %s.\n", k, from->entry[k].name);
		list_interface(from->entry[k].g, t);
	}
	text_printf(t, " */\n");
}

void header_text(const Compilation *c, const WeftGraph *from, Text *t)
{
	Names names, macros;
	const char *table = c->o.symbol ? c->o.symbol : "weft_model";
	names_init(&names, c->ctx->arena);
	names_init(&macros, c->ctx->arena);
	names_reserve(&names, "weft_model_check");
	names_reserve(&names, arena_printf(c->ctx->arena, "%s_device", table));
	list_entries(c, from, t);
	text_printf(t, "#ifndef WEFT_HEADER_%s_%s\n#define WEFT_HEADER_%s_%s\n\n", c->name, table,
		    c->name, table);
	text_printf(t,
		    "#include <stdio.h>\n\n#include \"weft_model.h\"\n\n#ifdef __cplusplus\n"
		    "extern \"C\" {\n#endif\n\nconst WeftModel *%s(void);\n",
		    table);
	for (uint32_t k = 0; k < c->program->entry.n; k++)
		entry_functions(c, &names, &macros, k, t);
	text_add(t, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
