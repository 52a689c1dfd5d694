/* Helper functions from the texts of rows (ir/loop/prelude.h). In a text:
 *   $T result type      $S its element $I $U int vectors of its element size, signed and
 *                       unsigned
 *   $A operand type     $s its element     $i $u the same for the operand
 *   $M mask type        $L lanes           $N all lanes of a mask register
 *   $P _mm512 / _mm256 / _mm, $E epi32 epu32 ps pd, $e the same without sign: of the operand type
 *   $a $b $c            the operands as intrinsic types
 *   $v(x) $f(x) $q(x)   x as the operand's, the float, the int intrinsic type of its width
 *   $Z $Y               smallest value of signed int type $S, and the largest plus one as float
 *   $[dt]               the type of dtype dt with these lanes
 *   $m(k)               lane k of mask m, as a condition
 *   $each(expr)         expr for every lane, separated by commas, @ being the lane
 *   $all(stmt)          stmt for every lane
 *   $fn[op:to:from:n]   a helper; to and from are dtypes, T or A; n is L, H (half) or 1 */
#include <ctype.h>
#include <string.h>

#include "codegen/print/c/emit_priv.h"

typedef struct {
	CUnit *u;
	LType to, from;
	Text *out;
} Expand;

/* ---- signatures ---- */

typedef struct {
	const char *op, *result, *params;
	bool by_operand, by_both; /* named after the operand's type, or both */
} Signature;

/* Of operations that are none of these, by the number of operands. */
static const Signature lane_wise[] = {{"", "", "", 0, 0},
				      {"", "$T", "$T a", 0, 0},
				      {"", "$T", "$T a, $T b", 0, 0},
				      {"", "$T", "$T a, $T b, $T c", 0, 0}};

static const Signature signatures[] = {
	{"fit", "$T", "$A a", 0, 1},
	{"eq", "$M", "$A a, $A b", 1, 0}, {"ne", "$M", "$A a, $A b", 1, 0},
	{"lt", "$M", "$A a, $A b", 1, 0}, {"le", "$M", "$A a, $A b", 1, 0},
	{"gt", "$M", "$A a, $A b", 1, 0}, {"ge", "$M", "$A a, $A b", 1, 0},
	{"select", "$T", "$M m, $T a, $T b", 0, 0},
	{"convert", "$T", "$A a", 0, 1}, {"bitcast", "$T", "$A a", 0, 1},
	{"splat", "$T", "$S a", 0, 0}, {"ramp", "$T", "$S a, $S b", 0, 0}, {"mask", "$M", "int64_t n", 0, 0},
	{"any", "bool", "$M m", 0, 0},
	{"load", "$T", "const $S *p", 0, 0}, {"load_masked", "$T", "const $S *p, $M m", 0, 0},
	{"store", "void", "$S *p, $T v", 0, 0}, {"stream", "void", "$S *p, $T v", 0, 0},
	{"store_masked", "void", "$S *p, $T v, $M m", 0, 0},
	{"reverse", "$T", "$T a", 0, 0}, {"even", "$T", "$T a, $T b", 0, 0},
	{"evens", "$T", "$T a, $T b", 0, 0}, {"odds", "$T", "$T a, $T b", 0, 0},
	{"turn_evens", "$T", "$T a, $T b", 0, 0}, {"turn_odds", "$T", "$T a, $T b", 0, 0},
	{"lows", "$T", "$T a, $T b", 0, 0}, {"highs", "$T", "$T a, $T b", 0, 0},
	{"zip_lo", "$T", "$T a, $T b", 0, 0}, {"zip_hi", "$T", "$T a, $T b", 0, 0},
	{"gather", "$T", "const $S *p, $A i", 0, 1},
	{"gather_masked", "$T", "const $S *p, $A i, $M m", 0, 1},
	{"scatter", "void", "$S *p, $A i, $T v", 0, 1},
	{"scatter_masked", "void", "$S *p, $A i, $T v, $M m", 0, 1},
	{"dot2_bf16", "$T", "$A a, $A b, $T c", 0, 0}, {"dot2_s16", "$T", "$A a, $A b, $T c", 0, 0},
	{"pairs_u8s8", "$T", "$A a, $A b, $T c", 0, 0},
	{"pairs_s8s8", "$T", "$A a, $A b, $T c", 0, 0},
	{"dot4_u8s8", "$T", "$A a, $A b, $T c", 0, 0}, {"dot4_s8s8", "$T", "$A a, $A b, $T c", 0, 0},
	{"nearest", "$T", "$A a", 0, 0}, {"from_f16", "$T", "$[u16] a", 0, 0}, {"to_f16", "$[u16]", "$T a", 0, 0},
	{"flush_bf16", "$[u16]", "$T a", 0, 0},
	{"lo", "$fn[half:T:T:H]", "$T a", 0, 0}, {"hi", "$fn[half:T:T:H]", "$T a", 0, 0},
	{"join", "$T", "$fn[half:T:T:H] a, $fn[half:T:T:H] b", 0, 0},
};

static const Signature *signature_of(const char *name)
{
	for (uint32_t k = 0; k < sizeof signatures / sizeof *signatures; k++)
		if (strcmp(signatures[k].op, name) == 0)
			return &signatures[k];
	for (ScOp op = SC_add; op < SC_COUNT; op++)
		if (strcmp(sc_name(op), name) == 0)
			return &lane_wise[sc_arity(op)];
	return NULL;
}

bool is_helper_op(const char *name, size_t n)
{
	for (uint32_t k = 0; k < sizeof signatures / sizeof *signatures; k++)
		if (strlen(signatures[k].op) == n && memcmp(signatures[k].op, name, n) == 0)
			return true;
	for (ScOp op = SC_add; op < SC_call; op++)
		if (op != SC_div && strlen(sc_name(op)) == n && memcmp(sc_name(op), name, n) == 0)
			return true;
	return false;
}

/* ---- which row ---- */

static const Prelude preludes[] = {
	{"x86-64", x86_header, "immintrin.h"},
	{"aarch64", neon_header, "arm_neon.h"},
	{"", NULL, NULL},
};

const Prelude *prelude_of(const Target *t)
{
	const Prelude *p = preludes;
	while (*p->family && (!t->isa.vector_bytes || strcmp(p->family, t->isa.family)))
		p++;
	return p;
}

static const PreludeRow *find_row(const CUnit *u, const PreludeRow *rows, const char *op, LType to,
				  LType from)
{
	return prelude_find(&u->target->isa, rows, op, to, from, 0, false);
}

/* ---- expansion ---- */

static void expand(Expand *e, const char *s, size_t n, int lane);

static size_t closing(const char *s, char open, char close)
{
	int depth = 0;
	for (size_t k = 0; s[k]; k++) {
		depth += (s[k] == open) - (s[k] == close);
		if (depth == 0)
			return k;
	}
	return strlen(s);
}

static const char *int_type(Expand *e, LType t, bool sign)
{
	static const DType s[9] = {[1] = DT_i8, [2] = DT_i16, [4] = DT_i32, [8] = DT_i64};
	static const DType un[9] = {[1] = DT_u8, [2] = DT_u16, [4] = DT_u32, [8] = DT_u64};
	uint32_t size = t.dtype == DT_bool ? 4 : dtype_size(t.dtype);
	return c_type(e->u, (LType){sign ? s[size] : un[size], t.lanes});
}

static const char *register_prefix(LType t)
{
	return prelude_bits(t) == 512 ? "_mm512" : prelude_bits(t) == 256 ? "_mm256" : "_mm";
}

static const char *suffix(Expand *e, LType t, bool keep_sign)
{
	if (t.dtype == DT_f32)
		return "ps";
	if (t.dtype == DT_f64)
		return "pd";
	uint32_t size = t.dtype == DT_bool ? 4 : dtype_size(t.dtype);
	bool is_unsigned = keep_sign && !dtype_is_signed(t.dtype) && t.dtype != DT_bool;
	return arena_printf(e->u->arena, "ep%c%u", is_unsigned ? 'u' : 'i', size * 8);
}

static void intrinsic_cast(Expand *e, LType t, char how)
{
	uint32_t bits = prelude_bits(t);
	const char *kind = how == 'f' || (how == 'v' && t.dtype == DT_f32)   ? ""
	                   : how == 'v' && t.dtype == DT_f64 ? "d" : "i";
	text_printf(e->out, "(__m%u%s)", bits, kind);
}

/* Appends a bound of a signed int type, for conversion from floats: 'Z' its smallest value, 'Y' its
 * largest plus one, as a float. */
static void int_bound(Expand *e, char which)
{
	uint32_t bits = dtype_size(e->to.dtype) * 8;
	if (which == 'Y')
		text_printf(e->out, "0x1p%u%s", bits - 1, e->from.dtype == DT_f32 ? "f" : "");
	else
		text_printf(e->out, "INT%u_MIN", bits);
}

static LType fn_type(Expand *e, const char *name, size_t n, char lanes)
{
	LType t = e->to;
	if (n == 1 && *name == 'A')
		t = e->from;
	else if (!(n == 1 && *name == 'T'))
		t.dtype = dtype_parse(name, (uint32_t)n);
	t.lanes = lanes == '1' ? 1 : lanes == 'H' ? e->to.lanes / 2 : e->to.lanes;
	return t;
}

/* Appends the name of the helper that $fn[op:to:from:n] names; s begins behind the bracket. */
static void expand_fn(Expand *e, const char *s)
{
	size_t op = strcspn(s, ":"), to = strcspn(s + op + 1, ":");
	const char *from = s + op + 1 + to + 1;
	size_t nfrom = strcspn(from, ":");
	char lanes = from[nfrom + 1];
	LType t = fn_type(e, s + op + 1, to, lanes), f = fn_type(e, from, nfrom, lanes);
	const char *name = arena_strndup(e->u->arena, s, op);
	if (strcmp(name, "half") == 0)
		text_add(e->out, c_type(e->u, t));
	else
		text_add(e->out, c_helper(e->u, name, t, f));
}

static void expand_lanes(Expand *e, const char *s, size_t n, const char *separator)
{
	for (uint32_t k = 0; k < e->to.lanes; k++) {
		if (k)
			text_add(e->out, separator);
		expand(e, s, n, (int)k);
	}
}

static void lane_of_mask(Expand *e, const char *s, size_t n, int lane)
{
	bool bits = e->u->target->isa.masks == MASK_BITS;
	text_add(e->out, bits ? "(m >> " : "m[");
	expand(e, s, n, lane);
	text_add(e->out, bits ? " & 1)" : "]");
}

static bool starts(const char *s, const char *word)
{
	return strncmp(s, word, strlen(word)) == 0;
}

/* Expands a placeholder with an argument; s begins behind the "$". Returns the length of the
 * placeholder; 0, with nothing appended, if s begins with none. */
static size_t expand_call(Expand *e, const char *s, int lane)
{
	if (*s == '[') {
		size_t end = closing(s, '[', ']');
		DType d = dtype_parse(s + 1, (uint32_t)end - 1);
		text_add(e->out, c_type(e->u, (LType){d, e->to.lanes}));
		return end + 1;
	}
	if (starts(s, "fn[")) {
		expand_fn(e, s + 3);
		return closing(s + 2, '[', ']') + 3;
	}
	size_t word = strcspn(s, "(");
	if (!starts(s, "each(") && !starts(s, "all(") && !starts(s, "m(") && !starts(s, "v(") &&
	    !starts(s, "f(") && !starts(s, "q("))
		return 0;
	size_t end = closing(s + word, '(', ')');
	const char *arg = s + word + 1;
	if (*s == 'e')
		expand_lanes(e, arg, end - 1, ", ");
	else if (*s == 'a')
		expand_lanes(e, arg, end - 1, "\n\t");
	else if (*s == 'm')
		lane_of_mask(e, arg, end - 1, lane);
	else {
		intrinsic_cast(e, e->from, *s);
		text_char(e->out, '(');
		expand(e, arg, end - 1, lane);
		text_char(e->out, ')');
	}
	return word + end + 1;
}

static void expand_letter(Expand *e, char c)
{
	CUnit *u = e->u;
	LType t1 = {e->to.dtype, 1}, f1 = {e->from.dtype, 1};
	switch (c) {
	case 'T': text_add(e->out, c_type(u, e->to)); break;
	case 'A': text_add(e->out, c_type(u, e->from)); break;
	case 'S': text_add(e->out, c_type(u, t1)); break;
	case 's': text_add(e->out, c_type(u, f1)); break;
	case 'M': text_add(e->out, c_type(u, (LType){DT_bool, e->from.lanes})); break;
	case 'I': text_add(e->out, int_type(e, e->to, true)); break;
	case 'U': text_add(e->out, int_type(e, e->to, false)); break;
	case 'i': text_add(e->out, int_type(e, e->from, true)); break;
	case 'u': text_add(e->out, int_type(e, e->from, false)); break;
	case 'L': text_printf(e->out, "%u", e->to.lanes); break;
	case 'H': text_printf(e->out, "%u", e->to.lanes / 2); break;
	case 'N':
		text_printf(e->out, "0x%llx",
			    (unsigned long long)(((uint64_t)1 << e->to.lanes) - 1));
		break;
	case 'P': text_add(e->out, register_prefix(e->from)); break;
	case 'E': text_add(e->out, suffix(e, e->from, true)); break;
	case 'e': text_add(e->out, suffix(e, e->from, false)); break;
	case 'a': case 'b': case 'c':
		intrinsic_cast(e, e->from, 'v');
		text_char(e->out, c);
		break;
	case 'Y': case 'Z': int_bound(e, c); break;
	default: ctx_bug(u->ctx, "prelude: unknown placeholder $%c", c);
	}
}

static void expand(Expand *e, const char *s, size_t n, int lane)
{
	for (size_t k = 0; k < n; k++) {
		if (s[k] == '@' && lane >= 0) {
			text_printf(e->out, "%d", lane);
		} else if (s[k] == '$') {
			size_t used = expand_call(e, s + k + 1, lane);
			if (!used) {
				expand_letter(e, s[k + 1]);
				used = 1;
			}
			k += used;
		} else {
			text_char(e->out, s[k]);
		}
	}
}

static const char *expand_text(CUnit *u, LType to, LType from, const char *s)
{
	Text out;
	text_init(&out, u->arena);
	Expand e = {u, to, from, &out};
	expand(&e, s, strlen(s), -1);
	return out.data ? out.data : "";
}

/* ---- definition ---- */

/* Returns the body of a helper for vectors wider than a register: the helper for half the lanes is
 * called for each half, and the results are joined. */
static const char *split_text(CUnit *u, const char *op, LType to, LType from)
{
	Text t;
	text_init(&t, u->arena);
	LType th = {to.dtype, to.lanes / 2}, fh = {from.dtype, from.lanes / 2};
	LType mask = {DT_bool, from.lanes};
	const char *half = c_helper(u, op, th, fh), *half_name[2] = {"lo", "hi"};
	bool cmp = signature_of(op)->by_operand, select = strcmp(op, "select") == 0;
	uint32_t nin = 1 - (uint32_t)select; /* the mask has another type */
	for (const char *c = signature_of(op)->params; *c; c++)
		nin += *c == ',';
	text_printf(&t, "%s(", c_helper(u, "join", cmp ? mask : to, cmp ? mask : to));
	for (int k = 0; k < 2; k++) {
		const char *part = c_helper(u, half_name[k], from, from);
		text_printf(&t, "%s%s(", k ? ", " : "", half);
		if (select)
			text_printf(&t, "%s(m), ", c_helper(u, half_name[k], mask, mask));
		for (uint32_t j = 0; j < nin; j++)
			text_printf(&t, "%s%s(%c)", j ? ", " : "", part, "abc"[j]);
		text_char(&t, ')');
	}
	text_char(&t, ')');
	return t.data;
}

static const char *body_text(CUnit *u, const char *op, LType to, LType from)
{
	const PreludeRow *r = find_row(u, prelude_rows(&u->target->isa), op, to, from);
	u->intrinsics |= r != NULL;
	if (!r && prelude_splits(&u->target->isa, op, to, from))
		return split_text(u, op, to, from);
	if (!r)
		r = find_row(u, prelude_generic, op, to, from);
	if (!r)
		ctx_bug(u->ctx, "C prelude: no %s of %s from %s on %s", op, type_label(u, to),
		        type_label(u, from), u->target->isa.name);
	return expand_text(u, to, from, r->c + (*r->c == '='));
}

static const char *helper_name(CUnit *u, const char *op, const Signature *s, LType to, LType from)
{
	const char *t = type_label(u, to), *f = type_label(u, from);
	if (s->by_operand)
		return arena_printf(u->arena, "%s_%s", op, f);
	if (s->by_both)
		return arena_printf(u->arena, "%s_%s_%s", op, t, f);
	return arena_printf(u->arena, "%s_%s", op, t);
}

const char *c_helper(CUnit *u, const char *op, LType to, LType from)
{
	const Signature *s = signature_of(op);
	if (!s)
		ctx_bug(u->ctx, "C prelude: unknown helper %s", op);
	const char *name = helper_name(u, op, s, to, from);
	bool fresh;
	intern(&u->known, name, strlen(name), &fresh);
	if (!fresh)
		return name;
	const char *body = body_text(u, op, to, from); /* writes what it needs first */
	const char *result = expand_text(u, to, from, s->result);
	const char *params = expand_text(u, to, from, s->params);
	text_printf(&u->helpers, "%s %s %s(%s)\n{\n", u->dialect->helper, result, name, params);
	if (*body == '{')
		text_printf(&u->helpers, "\t%.*s\n}\n\n", (int)strlen(body) - 2, body + 1);
	else
		text_printf(&u->helpers, "\treturn %s;\n}\n\n", body);
	return name;
}
