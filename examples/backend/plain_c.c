/* A back end outside of Weft that makes code: `plain-c` turns a program for generic-c into one C
 * file, which needs nothing but a C compiler. It knows only include/weft_backend.h and
 * docs/backends.md, and reads the text of loop IR as that page describes it. What it does not know
 * is refused with one sentence that names the statement or the operation.
 *
 *     cc -shared -fPIC -I include examples/backend/plain_c.c -o libplain_c.so
 *     weft compile model.pt2 --backend-library ./libplain_c.so --backend plain-c \
 *             --target generic-c -o model.c
 *     cc -O1 -ffp-contract=off -fno-strict-aliasing -DPLAIN_MAIN model.c -lm -o model
 *     ./model y x.raw:5x64          reads extents and rows, writes y.0.raw and prints its extents
 *
 * The compiler must keep the order of operations, so -ffp-contract=off; memory of the workspace has
 * values of several types, so -fno-strict-aliasing. Then results are Weft's to the bit. */
#include "plain_c_read.h"
#include "plain_c_text.h"

/* ---- expressions ---- */

enum { FLOATS = 1, INTEGERS = 2, BOOLS = 4, ANY = 7, TO_BOOL = 8, OF_SECOND = 16 };

/* In the form stand $a, $b, $c for operands, $T for the type of the result, $t for its name, $s for
 * the name of the first operand's type, $f for "f" where that is f32, $d for the second operand as
 * a divisor. The type of the result is
 * that of the operands, that of the second (select), or bool. */
static const struct {
	const char *name;
	uint32_t operands;
	int takes;
	const char *form;
} operations[] = {
	{"+", 2, INTEGERS, "($T)((uint64_t)$a + (uint64_t)$b)"}, /* wraps */
	{"-", 2, INTEGERS, "($T)((uint64_t)$a - (uint64_t)$b)"},
	{"*", 2, INTEGERS, "($T)((uint64_t)$a * (uint64_t)$b)"},
	{"+", 2, FLOATS, "$a + $b"},
	{"-", 2, FLOATS, "$a - $b"},
	{"*", 2, FLOATS, "$a * $b"},
	{"<", 2, ANY | TO_BOOL, "$a < $b"},
	{"<=", 2, ANY | TO_BOOL, "$a <= $b"},
	{">", 2, ANY | TO_BOOL, "$a > $b"},
	{">=", 2, ANY | TO_BOOL, "$a >= $b"},
	{"eq", 2, ANY | TO_BOOL, "$a == $b"},
	{"ne", 2, ANY | TO_BOOL, "$a != $b"},
	{"and", 2, INTEGERS | BOOLS, "($T)($a & $b)"},
	{"or", 2, INTEGERS | BOOLS, "($T)($a | $b)"},
	{"xor", 2, INTEGERS | BOOLS, "($T)($a ^ $b)"},
	{"not", 1, INTEGERS, "($T)~$a"},
	{"not", 1, BOOLS, "!$a"},
	{"neg", 1, INTEGERS, "($T)(0 - (uint64_t)$a)"},
	{"neg", 1, FLOATS, "-$a"},
	{"abs", 1, INTEGERS, "abs_$t($a)"},
	{"abs", 1, FLOATS, "fabs$f($a)"},
	{"min", 2, INTEGERS, "min_$t($a, $b)"},
	{"max", 2, INTEGERS, "max_$t($a, $b)"},
	{"lesser", 2, FLOATS, "min_$t($a, $b)"},
	{"greater", 2, FLOATS, "max_$t($a, $b)"},
	{"div", 2, FLOATS, "$a / $b"},
	{"fma", 3, FLOATS, "fma$f($a, $b, $c)"},
	{"sqrt", 1, FLOATS, "sqrt$f($a)"},
	{"floor", 1, FLOATS, "floor$f($a)"},
	{"ceil", 1, FLOATS, "ceil$f($a)"},
	{"trunc", 1, FLOATS, "trunc$f($a)"},
	{"rint", 1, FLOATS, "rint$f($a)"},
	{"quot", 2, INTEGERS, "($T)($a / $d)"},
	{"mod", 2, INTEGERS, "($T)($a % $d)"},
	{"left", 2, INTEGERS, "($T)((uint64_t)$a << $b)"},
	{"right", 2, INTEGERS, "($T)($a >> $b)"},
	{"select", 3, ANY | OF_SECOND, "$a ? $b : $c"},
};

static Value expression(Reader *r);

static bool takes(int what, Type t)
{
	return what & (is_float(t) ? FLOATS : is_integer(t) ? INTEGERS : t == BOOL ? BOOLS : 0);
}

/* Returns the text of a divisor. A literal 0 divides only over an empty extent, where nothing is
 * executed; C compilers warn of it. */
static const char *divisor(Reader *r, const Value *v)
{
	const char *zero = format(r, "((%s)INT64_C(0))", types[v->type].c);
	return strcmp(v->text, zero) ? v->text : "1";
}

static Value filled(Reader *r, const char *form, const Value *in, Type result)
{
	Text kept = r->made;
	r->made = (Text){0};
	put(r, "(");
	for (; *form; form++) {
		if (*form != '$') {
			put(r, "%c", *form);
			continue;
		}
		char letter = *++form;
		if (letter == 'T' || letter == 't')
			put(r, "%s", letter == 'T' ? types[result].c : types[result].name);
		else if (letter == 's')
			put(r, "%s", types[in[0].type].name);
		else if (letter == 'f')
			put(r, "%s", in[0].type == F32 ? "f" : "");
		else if (letter == 'd')
			put(r, "%s", divisor(r, &in[1]));
		else
			put(r, "%s", in[letter - 'a'].text);
	}
	put(r, ")");
	const char *text = format(r, "%s", r->made.data);
	free(r->made.data);
	r->made = kept;
	return (Value){text, result};
}

static Value operation(Reader *r, const char *name, const Value *in, uint32_t n)
{
	for (size_t k = 0; !r->failed && k < sizeof operations / sizeof *operations; k++) {
		const int what = operations[k].takes;
		if (strcmp(operations[k].name, name) || operations[k].operands != n)
			continue;
		if (takes(what, in[n > 1 ? 1 : 0].type))
			return filled(r, operations[k].form, in,
				      what & TO_BOOL     ? BOOL
				      : what & OF_SECOND ? in[1].type
							 : in[0].type);
	}
	refuse(r, "the operation %s of %s", name, n ? types[in[0].type].name : "nothing");
	return (Value){"0", I64};
}

/* convert, fit, bitcast: to a type that is part of the name. */
static Value conversion(Reader *r, const char *name, Type to, const Value *in)
{
	if (!strcmp(name, "bitcast"))
		return filled(r, "bitcast_$s_$t($a)", in, to);
	if (to == BOOL || in->type > BOOL)
		refuse(r, "the operation %s to %s", name, types[to].name);
	bool checked = !strcmp(name, "convert") && is_float(in->type) && !is_float(to);
	if (checked && to != I32 && to != I64)
		refuse(r, "the operation %s of %s to %s", name, types[in->type].name,
		       types[to].name);
	if (strcmp(name, "convert") && strcmp(name, "fit"))
		refuse(r, "the operation %s", name);
	return filled(r, checked ? "convert_$s_$t($a)" : "($T)$a", in, to);
}

static uint32_t arguments(Reader *r, Value *in, uint32_t most)
{
	uint32_t n = 0;
	while (!r->failed && !accept(r, ")")) {
		if (n)
			expect(r, ", ");
		if (n == most)
			refuse(r, "a call with more than %u arguments", (unsigned)most);
		else
			in[n++] = expression(r);
	}
	return n;
}

static Type table_type(Reader *r, const WeftBackendTable *t)
{
	const char letter = t->dtype.code == WEFT_FLOAT ? 'f'
			    : t->dtype.code == WEFT_INT ? 'i'
							: 'u';
	return type_of(r, format(r, "%c%u", letter, (unsigned)t->dtype.bits));
}

static Value call(Reader *r, const char *name)
{
	Value in[8];
	Type to = I64;
	bool typed = accept(r, ":");
	if (typed)
		to = type_of(r, word(r));
	expect(r, "(");
	uint32_t n = arguments(r, in, 8);
	if (typed && n == 1)
		return conversion(r, name, to, in);
	for (uint32_t k = 0; k < r->p->ntable; k++)
		if (!strcmp(r->p->table[k].name, name) && n == 1)
			return (Value){format(r, "table_%s[%s]", name, in[0].text),
				       table_type(r, &r->p->table[k])};
	int64_t f = name_find(&r->function_type, name);
	if (f >= 0) {
		const char *list = "";
		for (uint32_t k = 0; k < n; k++)
			list = format(r, "%s%s%s", list, k ? ", " : "", in[k].text);
		return (Value){format(r, "fn_%s(%s)", name, list), r->function_type.data[f].type};
	}
	/* +.i and .n say what need not be known here */
	size_t len = strlen(name);
	if (len > 2 && (!strcmp(name + len - 2, ".i") || !strcmp(name + len - 2, ".n")))
		name = format(r, "%.*s", (int)len - 2, name);
	return operation(r, name, in, n);
}

static Value infix(Reader *r)
{
	Value in[2];
	expect(r, "(");
	in[0] = expression(r);
	expect(r, " ");
	const char *op = format(r, "%.*s", (int)strcspn(r->at, " .\n"), r->at);
	r->at += strcspn(r->at, " \n");
	expect(r, " ");
	in[1] = expression(r);
	expect(r, ")");
	return operation(r, op, in, 2);
}

/* &b2(offset) */
static Value address(Reader *r)
{
	expect(r, "&b");
	const char *k = word(r);
	expect(r, "(");
	Value in = expression(r);
	expect(r, ")");
	return (Value){format(r, "(b%s + %s)", k, in.text), ADDRESS};
}

/* Whether a literal stands here; *n: its length. A variable ends in a number, too: "12.5" is one,
 * since the literal says its type, "12.5:f32". */
static bool is_literal(const Reader *r, size_t *n)
{
	const char *s = r->at + (*r->at == '-');
	if (!strncmp(s, "inf:", 4) || !strncmp(s, "nan:", 4)) {
		*n = (size_t)(s + 3 - r->at);
		return true;
	}
	const char *digits = s;
	while (isdigit((unsigned char)*s) || *s == '.' ||
	       (s > digits && (*s == 'e' || ((*s == '+' || *s == '-') && s[-1] == 'e'))))
		s++;
	*n = (size_t)(s - r->at);
	return s > digits && (*s == ':' || !memchr(digits, '.', (size_t)(s - digits))) &&
	       !isalnum((unsigned char)*s) && *s != '_' && *s != '$';
}

static Value literal(Reader *r, size_t n)
{
	const char *s = format(r, "%.*s", (int)n, r->at);
	r->at += n;
	Type t = accept(r, ":") ? type_of(r, word(r)) : I64;
	if (is_float(t)) {
		bool negative = *s == '-';
		const char *digits = s + negative;
		digits = !strcmp(digits, "inf")   ? "INFINITY"
			 : !strcmp(digits, "nan") ? "NAN"
						  : digits;
		return (Value){format(r, "((%s)%s%s)", types[t].c, negative ? "-" : "", digits), t};
	}
	if (!strcmp(s, "-9223372036854775808"))
		return (Value){format(r, "((%s)INT64_MIN)", types[t].c), t};
	return (Value){format(r, "((%s)INT64_C(%s))", types[t].c, s), t};
}

/* The number at the end of a variable's name, by which the variable is one of the function. */
static const char *number_of(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot ? dot + 1 : name;
}

static Value variable(Reader *r)
{
	const char *name = word(r);
	if (see(r, "(") || see(r, ":"))
		return call(r, name);
	int64_t temp = strchr(name, '.') ? -1 : name_find(&r->temp, name);
	if (temp >= 0)
		return (Value){format(r, "%s", name), r->temp.data[temp].type};
	const char *v = format(r, "v%s", number_of(name));
	int64_t k = name_find(&r->var, v);
	if (k < 0)
		refuse(r, "the name \"%s\"", name);
	return (Value){v, k < 0 ? I64 : r->var.data[k].type};
}

static Value expression(Reader *r)
{
	size_t n;
	if (r->failed)
		return (Value){"0", I64};
	if (see(r, "("))
		return infix(r);
	if (see(r, "&b"))
		return address(r);
	if (is_literal(r, &n))
		return literal(r, n);
	if (!accept(r, "$"))
		return variable(r);
	const char *name = word(r);
	int64_t k = name_find(&r->param, name);
	if (k < 0)
		refuse(r, "the parameter \"%s\"", name);
	return (Value){format(r, "p%lld", (long long)k), I64};
}

/* ---- statements ---- */

static void line(Reader *r)
{
	for (int k = 0; k < r->indent; k++)
		put(r, "\t");
}

static const char *declare(Reader *r, const char *name, Type type)
{
	const char *v = format(r, "v%s", number_of(name));
	name_add(&r->var, v, type);
	return v;
}

/* "v: T = x" behind let, var and in front of a load. */
static void define(Reader *r, const char *name)
{
	expect(r, ": ");
	Type type = type_of(r, word(r));
	expect(r, " = ");
	Value x = expression(r);
	line(r);
	put(r, "%s %s = %s;\n", types[type].c, declare(r, name, type), x.text);
}

/* The element of memory that stands here, "@x.f32[i]" or "row.7.f32[i]". */
static Value element(Reader *r)
{
	bool buffer = accept(r, "@");
	char *name = (char *)(uintptr_t)word(r);
	char *dot = strrchr(name, '.');
	if (!dot) {
		refuse(r, "the memory \"%s\"", name);
		return (Value){"0", I64};
	}
	*dot = 0;
	Type type = type_of(r, dot + 1);
	int64_t k = buffer ? name_find(&r->buffer, name) : 0;
	if (k < 0)
		refuse(r, "the buffer @%s", name);
	expect(r, "[");
	Value at = expression(r);
	if (see(r, " + "))
		refuse(r, "a gather or scatter");
	expect(r, "]");
	return (Value){buffer ? format(r, "((%s *)b%lld)[%s]", types[type].c, (long long)k, at.text)
			      : format(r, "v%s[%s]", number_of(name), at.text),
		       type};
}

static void load(Reader *r, const char *name)
{
	expect(r, ": ");
	Type type = type_of(r, word(r));
	expect(r, " = ");
	Value x = element(r);
	accept(r, " in order");
	line(r);
	put(r, "%s %s = %s;\n", types[type].c, declare(r, name, type), x.text);
}

static void store(Reader *r)
{
	Value to = element(r);
	expect(r, " = ");
	Value x = expression(r);
	line(r);
	put(r, "%s = %s;\n", to.text, x.text);
}

static void local(Reader *r)
{
	const char *name = word(r);
	expect(r, ": ");
	Type type = type_of(r, word(r));
	expect(r, "[");
	const char *n = word(r);
	expect(r, "]");
	line(r);
	put(r, "%s %s[%s + 1];\n", types[type].c, declare(r, name, type), n);
}

static void statements(Reader *r);

static void body(Reader *r)
{
	expect(r, " {\n");
	r->indent++;
	statements(r);
	r->indent--;
	line(r);
	put(r, "}");
}

/* The end is computed once. */
static void loop(Reader *r)
{
	const char *name = word(r), *step = "1";
	expect(r, " in ");
	Value a = expression(r);
	expect(r, " .. ");
	Value b = expression(r);
	if (accept(r, " step "))
		step = word(r);
	const char *v = declare(r, name, I64);
	unsigned k = ++r->nloop;
	line(r);
	put(r, "for (int64_t %s = %s, end%u = %s; %s < end%u; %s += %s) {\n", v, a.text, k, b.text,
	    v, k, v, step);
	body(r);
	put(r, "\n");
}

static void branch(Reader *r)
{
	Value c = expression(r);
	line(r);
	put(r, "if (%s) {\n", c.text);
	body(r);
	if (accept(r, " else")) {
		put(r, " else {\n");
		body(r);
	}
	put(r, "\n");
}

static void repeat(Reader *r)
{
	Value c = expression(r);
	line(r);
	put(r, "while (%s) {\n", c.text);
	body(r);
	put(r, "\n");
}

/* "message 3 (a, b)": C's call that keeps the first of them. */
static void message(Reader *r, const char *test)
{
	Value in[16];
	expect(r, "message ");
	const char *k = word(r);
	expect(r, " (");
	uint32_t n = arguments(r, in, 16);
	line(r);
	put(r, "%sfail(%s", test, k);
	for (uint32_t i = 0; i < n; i++)
		put(r, ", (long long)%s", in[i].text);
	put(r, ");\n");
}

/* The call of the model ends. */
static void check(Reader *r)
{
	Value c = expression(r);
	expect(r, " ");
	message(r, format(r, "if (!%s)\n\t\t\treturn ", c.text));
}

/* Every task of a kernel, one after the other; the call ends if a check failed. */
static void launch(Reader *r)
{
	Value arg[512];
	const char *number = word(r);
	expect(r, " [");
	Value n = expression(r);
	expect(r, "] (");
	uint32_t count = 0;
	while (!r->failed && !accept(r, ")"))
		if (!accept(r, ", ") && !accept(r, "; ")) {
			if (count == 512)
				refuse(r, "a launch with more than 512 arguments");
			else
				arg[count++] = expression(r);
		}
	accept(r, " same_phase");
	if (r->failed)
		return;
	uint32_t kernel = r->entry->kernel[strtoul(number, NULL, 10)];
	line(r);
	put(r, "for (int64_t task = 0, n = %s; task < n; task++)\n", n.text);
	line(r);
	put(r, "\t%s(task", r->p->kernel[kernel].name);
	for (uint32_t k = 0; k < count; k++)
		put(r, ", %s", arg[k].text);
	put(r, ");\n");
	line(r);
	put(r, "if (failed)\n\t\treturn failed;\n");
}

/* "0 from 3 ()" in `sizes`: the extents from number 3 on; in `run` the slots, or the arguments. */
static void outlined(Reader *r)
{
	Value in[64];
	const char *k = word(r);
	expect(r, " from ");
	const char *first = word(r);
	expect(r, " (");
	uint32_t n = arguments(r, in, 64);
	line(r);
	if (!strcmp(r->function, "sizes")) {
		put(r, "if (sizes_%u_%s(given + %s, slot))\n\t\treturn failed;\n",
		    (unsigned)r->number, k, first);
		return;
	}
	put(r, "if (run_%u_%s(", (unsigned)r->number, k);
	for (uint32_t i = 0; i < n; i++)
		put(r, "%s%s", i ? ", " : "(const int64_t[]){", in[i].text);
	put(r, "%s, buffer))\n\t\treturn failed;\n", n ? "}" : "given");
}

/* "(values) {": what is computed in front of the launches that the block has. */
static void launches(Reader *r)
{
	Value in[512];
	expect(r, "(");
	arguments(r, in, 512);
	line(r);
	put(r, "{\n");
	body(r);
	put(r, "\n");
}

static void read_number(Reader *r)
{
	const char *name = word(r);
	expect(r, ": ");
	Type type = type_of(r, word(r));
	expect(r, " = ");
	Type stored = type_of(r, word(r));
	expect(r, " at ");
	Value from = expression(r);
	line(r);
	put(r, "%s %s = *(%s *)%s;\n", types[type].c, declare(r, name, type), types[stored].c,
	    from.text);
}

static void copy(Reader *r)
{
	Value in[3];
	expect(r, "(");
	if (arguments(r, in, 3) != 3)
		refuse(r, "a copy without three arguments");
	line(r);
	put(r, "memmove(%s, %s, (size_t)%s);\n", in[0].text, in[1].text, in[2].text);
}

static void slot(Reader *r)
{
	const char *k = word(r);
	expect(r, " = ");
	Value x = expression(r);
	line(r);
	put(r, "slot[%s] = %s;\n", k, x.text);
}

static void let(Reader *r)
{
	define(r, word(r));
}

static void fail(Reader *r)
{
	message(r, "");
}

static void nothing(Reader *r)
{
	r->at += strcspn(r->at, "\n");
}

static const struct {
	const char *word;
	void (*read)(Reader *);
} statement[] = {
	{"let ", let},           {"var ", let},           {"local ", local},
	{"for ", loop},          {"while ", repeat},      {"if ", branch},
	{"fail ", fail},         {"stream ", store},      {"assert ", check},
	{"launch ", launch},     {"read ", read_number},  {"copy ", copy},
	{"outlined ", outlined}, {"launches ", launches}, {"result ", slot},
	{"prefetch", nothing},   {"fence", nothing},      {"; ", nothing},
};

/* "t3 = x", "v := x", "v: T = memory" or "memory = x" */
static void other(Reader *r)
{
	const char *start = r->at, *name = see(r, "@") ? "" : word(r);
	if (*name == 't' && !strchr(name, '.') && accept(r, " = ")) {
		Value x = expression(r);
		name_add(&r->temp, name, x.type);
		line(r);
		put(r, "%s const %s = %s;\n", types[x.type].c, name, x.text);
	} else if (*name && accept(r, " := ")) {
		const char *v = format(r, "v%s", number_of(name));
		Value x = expression(r);
		line(r);
		put(r, "%s = %s;\n", v, x.text);
	} else if (*name && see(r, ": ")) {
		load(r, name);
	} else if (see(r, "@") || see(r, "[")) {
		r->at = start;
		store(r);
	} else {
		refuse(r, "the statement \"%.*s\"", (int)strcspn(start, " (\n"), start);
	}
}

/* The statements of a block, and its bracket. */
static void statements(Reader *r)
{
	while (!r->failed) {
		r->at += strspn(r->at, " ");
		if (accept(r, "}"))
			return;
		/* the value of a library function, which is no statement */
		if (see(r, "result ") && !isdigit((unsigned char)r->at[strcspn(r->at, " ") + 1]))
			return;
		if (see(r, "result ") &&
		    !see(r, format(r, "result %lld = ", strtoll(r->at + 7, NULL, 10))))
			return;
		size_t k = 0, n = sizeof statement / sizeof *statement;
		while (k < n && !see(r, statement[k].word))
			k++;
		if (k < n)
			r->at += strlen(statement[k].word);
		(k < n ? statement[k].read : other)(r);
		expect(r, "\n");
	}
}

/* ---- functions ---- */

static void begin(Reader *r, const char *name, const char *text)
{
	r->at = text;
	r->function = name;
	r->var.n = r->temp.n = r->param.n = r->buffer.n = r->nloop = 0;
	r->indent = 1;
}

/* "fn exp_f32(x.1: f32) -> f32 {" statements "result x" "}" */
static void library_function(Reader *r, const WeftBackendFunction *f)
{
	begin(r, f->name, f->text);
	expect(r, "fn ");
	const char *name = word(r), *list = "";
	expect(r, "(");
	while (!r->failed && !accept(r, ")")) {
		accept(r, ", ");
		const char *arg = word(r);
		expect(r, ": ");
		Type type = type_of(r, word(r));
		const char *v = declare(r, arg, type);
		list = format(r, "%s%s%s %s", list, *list ? ", " : "", types[type].c, v);
	}
	expect(r, " -> ");
	Type type = type_of(r, word(r));
	expect(r, " {\n");
	put(r, "static %s fn_%s(%s)\n{\n", types[type].c, name, *list ? list : "void");
	statements(r);
	expect(r, "result ");
	put(r, "\treturn %s;\n}\n\n", expression(r).text);
	name_add(&r->function_type, name, type);
}

/* "loop k_y($n)", its buffers, and the number of a task in front of the statements. */
static void head(Reader *r)
{
	expect(r, "loop ");
	word(r);
	expect(r, "(");
	while (!r->failed && !accept(r, ")")) {
		accept(r, ", ");
		expect(r, "$");
		name_add(&r->param, word(r), I64);
	}
	expect(r, "\n");
	while (!r->failed && accept(r, "  @")) {
		name_add(&r->buffer, word(r), ADDRESS);
		nothing(r);
		expect(r, "\n");
	}
	if (!see(r, "task "))
		refuse(r, "\"%.*s\"", (int)strcspn(r->at, "\n"), r->at);
	expect(r, "task ");
	declare(r, word(r), I64);
	expect(r, " {\n");
}

static void kernel(Reader *r, const WeftBackendFunction *f)
{
	begin(r, f->name, f->text);
	head(r);
	put(r, "static void %s(int64_t v1", f->name);
	for (uint32_t k = 0; k < r->buffer.n; k++)
		put(r, ", char *b%u", (unsigned)k);
	for (uint32_t k = 0; k < r->param.n; k++)
		put(r, ", int64_t p%u", (unsigned)k);
	put(r, ")\n{\n\t(void)v1;\n");
	statements(r);
	put(r, "}\n\n");
}

/* `sizes` or a function outlined from it: from extents to slots. `run` or a function outlined from
 * it: from slots, or the arguments of `outlined`, and buffers. All return the number of a message,
 * or 0. */
static void part(Reader *r, const WeftBackendFunction *f, bool sizes, const char *name, bool whole)
{
	begin(r, sizes ? "sizes" : "run", f->text);
	head(r);
	put(r,
	    sizes ? "static int %s(const int64_t *given, int64_t *slot)\n{\n"
		  : "static int %s(const int64_t *given, char *const *buffer)\n{\n",
	    name);
	for (uint32_t k = 0; k < r->param.n; k++)
		put(r, "\tint64_t p%u = given[%u];\n", (unsigned)k, (unsigned)k);
	for (uint32_t k = 0; k < r->buffer.n; k++)
		put(r, "\tchar *b%u = buffer[%u];\n", (unsigned)k, (unsigned)k);
	put(r, "\t(void)given;\n\t(void)%s;\n", sizes ? "slot" : "buffer");
	if (whole)
		put(r, "\tfailed = 0;\n");
	statements(r);
	put(r, "\treturn 0;\n}\n\n");
}

static void entry(Reader *r, uint32_t number, const WeftBackendEntry *e)
{
	r->entry = e;
	r->number = number;
	for (int sizes = 1; sizes >= 0; sizes--) {
		const char *name = format(r, "%s_%u", sizes ? "sizes" : "run", (unsigned)number);
		const WeftBackendFunction *f = sizes ? e->sizes_outlined : e->run_outlined;
		for (uint32_t k = 0; k < (sizes ? e->nsizes_outlined : e->nrun_outlined); k++)
			part(r, &f[k], sizes, format(r, "%s_%u", name, (unsigned)k), false);
		part(r, sizes ? &e->sizes : &e->run, sizes, name, true);
	}
}

/* ---- the file ---- */

static void put_bytes(Reader *r, const char *head, const unsigned char *data, uint64_t n)
{
	put(r, "%s = {", head);
	for (uint64_t k = 0; k < n; k++)
		put(r, "%s%u,", k % 32 ? "" : "\n\t", data[k]);
	put(r, "%s\n};\n\n", n ? "" : "0");
}

/* Elements as bits, so that every float is what it was. */
static void tables(Reader *r)
{
	for (uint32_t k = 0; k < r->p->ntable; k++) {
		const WeftBackendTable *t = &r->p->table[k];
		const Type type = table_type(r, t);
		const unsigned bytes = t->dtype.bits / 8;
		put(r,
		    "static const union {\n\tuint%u_t bits[%u];\n\t%s value[%u];\n} bits_%s = {{",
		    bytes * 8, (unsigned)t->n, types[type].c, (unsigned)t->n, t->name);
		for (uint32_t i = 0; i < t->n; i++) {
			uint64_t v = 0;
			memcpy(&v, (const char *)t->data + (size_t)i * bytes, bytes);
			put(r, "%sUINT64_C(%llu),", i % 8 ? " " : "\n\t", (unsigned long long)v);
		}
		put(r, "\n}};\n#define table_%s bits_%s.value\n\n", t->name, t->name);
	}
}

static void messages(Reader *r)
{
	put(r, "static const char *const message[] = {\n\t\"\",\n");
	for (uint32_t k = 1; k < r->p->nmessage; k++) {
		put(r, "\t\"");
		for (const char *s = r->p->message[k]; *s; s++)
			put(r, *s == '"' || *s == '\\' ? "\\%c" : *s == '\n' ? "\\n" : "%c", *s);
		put(r, "\",\n");
	}
	put(r, "};\n\n");
}

/* State begins with what the weight section has for it, or with zeros. */
static void state(Reader *r)
{
	const WeftModel *m = r->p->model;
	uint64_t bytes = 1;
	for (uint32_t k = 0; k < m->nstate; k++) {
		const WeftTensorInfo *t = weft_state_info(m, k);
		bytes = t->offset + t->bytes > bytes ? t->offset + t->bytes : bytes;
	}
	put(r, "static _Alignas(64) char state[%llu];\n\nstatic void first_state(void)\n{\n",
	    (unsigned long long)bytes);
	for (uint32_t k = 0; k < m->nstate; k++) {
		const WeftTensorInfo *t = weft_state_info(m, k);
		if (t->init != WEFT_ZEROS)
			put(r, "\tmemcpy(state + %llu, weights + %llu, %llu);\n",
			    (unsigned long long)t->offset, (unsigned long long)t->init,
			    (unsigned long long)t->bytes);
	}
	put(r, "}\n\n");
}

static const WeftTensorInfo *tensor(const Reader *r, const WeftEntry *e, bool in, uint32_t k)
{
	return in ? weft_input(r->p->model, e, k) : weft_output(r->p->model, e, k);
}

/* Writes what `main` asks of the tensors of entry 0. */
static void tensors(Reader *r, const WeftEntry *e, bool in)
{
	const char *what = in ? "input" : "output";
	const uint32_t n = in ? e->ninput : e->noutput;
	put(r, "static const int %s_rank[] = {", what);
	for (uint32_t k = 0; k < n; k++)
		put(r, "%u, ", (unsigned)tensor(r, e, in, k)->rank);
	put(r, "0}, %s_bytes[] = {", what);
	for (uint32_t k = 0; k < n; k++)
		put(r, "%u, ", (tensor(r, e, in, k)->dtype.bits + 7u) / 8);
	put(r, "0};\n");
}

static void numbers(Reader *r, const WeftEntry *e)
{
	uint32_t extents = 0, sizes = 0;
	for (uint32_t k = 0; k < e->ninput; k++)
		extents += tensor(r, e, true, k)->rank;
	for (uint32_t k = 0; k < e->noutput; k++)
		sizes += tensor(r, e, false, k)->rank;
	put(r, "enum { INPUTS = %u, OUTPUTS = %u, SYMBOLS = %u, EXTENTS = %u, SLOTS = %u };\n",
	    (unsigned)e->ninput, (unsigned)e->noutput, (unsigned)e->nsymbol, (unsigned)extents,
	    (unsigned)(e->nsymbol + sizes + 1));
	tensors(r, e, true);
	tensors(r, e, false);
	put(r, "\n");
}

static int emit(void *user, const WeftBackendProgram *p, WeftBackendOutput *out)
{
	Reader r = {.p = p, .out = out, .function = p->name};
	(void)user;
	put(&r, "/* %s, by the back end plain-c */\n%s", p->name, prelude);
	put_bytes(&r, "static const _Alignas(64) unsigned char weights[]", p->model->weights,
		  p->model->weights_bytes);
	tables(&r);
	messages(&r);
	state(&r);
	for (uint32_t k = 0; !r.failed && k < p->nfunction; k++)
		library_function(&r, &p->function[k]);
	for (uint32_t k = 0; !r.failed && k < p->nkernel; k++)
		kernel(&r, &p->kernel[k]);
	for (uint32_t k = 0; !r.failed && k < p->nentry; k++)
		entry(&r, k, &p->entry[k]);
	numbers(&r, weft_entry(p->model, 0));
	put(&r, "%s", program);
	bool ok = !r.failed && out->add(out, NULL, r.made.data, r.made.n);
	drop(&r);
	return !ok;
}

static const char *scalar_only(void *user, const WeftTargetInfo *t)
{
	(void)user;
	return t->vector_bytes ? "has vectors: expected a target with one lane, generic-c" : NULL;
}

const WeftBackendLibrary *weft_backends_of(void);
const WeftBackendLibrary *weft_backends_of(void)
{
	static const WeftBackendDef plain = {.size = sizeof plain,
					     .name = "plain-c",
					     .about = "one C file, of programs for generic-c",
					     .refuses = scalar_only,
					     .emit = emit};
	static const WeftBackendDef *const list[] = {&plain, NULL};
	static const WeftBackendLibrary library = {WEFT_BACKEND_VERSION, list};
	return &library;
}
