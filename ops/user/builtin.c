/* Operators of the compiler's own that are calls (OP_call): their functions are in
 * runtime/lapack.c, which artifacts carry that call them. There is one for each type: weft::eigh_s,
 * _d, _c and _z, as LAPACK calls f32, f64, and pairs of these. runtime/lapack.h says what they
 * compute. */
#include <string.h>

#include "ops/user/userop.h"
#include "runtime/lapack.h"

/* In types and work: T is the dtype, "@" the dimension of pairs (if there is one), E the bytes of a
 * number and R those of a real one. Work is what LAPACK's documentation demands and what its
 * blocked algorithms want besides, for blocks of up to 64 (128 of eig); the first is for real
 * numbers, the second for pairs. tests/unit/driver_lapack.c compares with what the library asks
 * for. */
typedef struct {
	const char *name, *said, *schema, *types, *work[2], *symbol;
	WeftOpFn fn;
	bool alone; /* there is no function of our own: the library must be there */
} Builtin;

/* What Jacobi's method wants instead, of matrices m, n: planes and values of one lane, or of
 * LANES of at most 6 (here 8) rows and columns. P: "2" of pairs, else "1". */
#define EIGH_OWN(P) "16*n*(" P "*n + 1) + 1024 + 128*min(n, 8)*(" P "*min(n, 8) + 1)"
#define SVD_OWN(P)                                                                                 \
	"8*min(m, n)*(" P "*(m + n) + 2) + 16*max(m, n) + 1024 + "                                 \
	"64*min(m, min(n, 8))*(" P "*(min(m, 8) + min(n, 8)) + 2)"

#define MATRIX "(Tensor a, int part, int parts, int count, int pairs"
#define FN(name) #name, name
#define SVD_WORK                                                                                   \
	{                                                                                          \
		"max(E*(m*n + 4*min(m, n)*min(m, n) + 10*min(m, n) + max(m, n) + 64*(m + n)) + "   \
		"32*min(m, n), " SVD_OWN("1") ")",                                                 \
			"max(E*(m*n + min(m, n)*min(m, n) + 3*min(m, n) + max(m, n) + 64*(m + "    \
			"n)) + 32*min(m, n) + "                                                    \
			"R*max(5*min(m, n)*min(m, n) + 5*min(m, n), 2*max(m, n)*min(m, n) + "      \
			"2*min(m, n)*min(m, n) + min(m, n)), " SVD_OWN("2") ")"                    \
	}

static const Builtin builtin[] = {
	{"eigh", "linalg.eigh", MATRIX ", int upper) -> (Tensor, Tensor)", "T[..., n, n@] -> "
									   "T[..., n], "
									   "T[..., n, n@]",
	 {"max(E*(1 + 70*n + 2*n*n) + 4*(3 + 5*n), " EIGH_OWN("1") ")",
	  "max(E*(70*n + n*n) + R*(1 + 5*n + 2*n*n) + 4*(3 + 5*n), " EIGH_OWN("2") ")"}, FN(weft_lapack_eigh), false},
	{"eigvalsh", "linalg.eigh", MATRIX ", int upper) -> Tensor", "T[..., n, n@] -> T[..., n]",
	 {"max(E*(1 + 70*n + n*n) + 4, " EIGH_OWN("1") ")", "max(E*(1 + 70*n + n*n) + R*(1 + n) + 4, " EIGH_OWN("2") ")"}, FN(weft_lapack_eigvalsh), false},
	{"eig", "linalg.eig", MATRIX ") -> (Tensor, Tensor)", "T[..., n, n@] -> T[..., n, 2], "
							      "T[..., n, n, 2]",
	 {"E*(4160 + 264*n + 2*n*n)", "E*(4160 + 264*n + n*n) + R*2*n"}, FN(weft_lapack_eig), true},
	{"eigvals", "linalg.eig", MATRIX ") -> Tensor", "T[..., n, n@] -> T[..., n, 2]",
	 {"E*(4160 + 142*n + n*n)", "E*(4160 + 140*n + n*n) + R*2*n"}, FN(weft_lapack_eigvals), true},
	{"svd", "linalg.svd", MATRIX ") -> (Tensor, Tensor, Tensor)",
	 "T[..., n, m@] -> T[..., min(m, n)], T[..., min(m, n), m@], T[..., n, min(m, n)@]", SVD_WORK, FN(weft_lapack_svd), false},
	{"svd_full", "linalg.svd", MATRIX ") -> (Tensor, Tensor, Tensor)", "T[..., n, m@] -> "
									   "T[..., min(m, n)], "
									   "T[..., m, m@], "
									   "T[..., n, n@]",
	 SVD_WORK, FN(weft_lapack_svd), false},
	{"svdvals", "linalg.svd", MATRIX ") -> Tensor", "T[..., n, m@] -> T[..., min(m, n)]",
	 {"max(E*(m*n + 10*min(m, n) + max(m, n) + 64*(m + n)) + 32*min(m, n), " SVD_OWN("1") ")",
	  "max(E*(m*n + 3*min(m, n) + max(m, n) + 64*(m + n)) + 32*min(m, n) + R*7*min(m, n), " SVD_OWN("2") ")"},
	 FN(weft_lapack_svdvals), false},
	{"ldl_factor", "linalg.ldl_factor", MATRIX ", int hermitian) -> (Tensor, Tensor, Tensor)",
	 "T[..., n, n@] -> T[..., n, n@], i32[..., n], i32[...]", {"E*64*n", "E*64*n"}, FN(weft_lapack_ldl_factor), true},
	{"ldl_solve", "linalg.ldl_solve",
	 "(Tensor a, Tensor pivots, Tensor b, int part, int parts, int count, int pairs, int "
	 "hermitian) -> Tensor",
	 "T[..., n, n@], i32[..., n], T[..., m, n@] -> T[..., m, n@]", {NULL, NULL}, FN(weft_lapack_ldl_solve), true},
};

enum { COUNT = sizeof builtin / sizeof *builtin, TYPES = 4 };

struct Builtins {
	const UserOp *op[COUNT][TYPES];
};

/* Fills in the text for one type. */
static const char *fill_in(Arena *a, const char *text, bool wide, bool pairs)
{
	Text t;
	text_init(&t, a);
	for (; *text; text++) {
		const int real = wide ? 8 : 4;
		switch (*text) {
		case 'T': text_add(&t, wide ? "f64" : "f32"); break;
		case '@': text_add(&t, pairs ? ", 2" : ""); break;
		case 'E': text_printf(&t, "%d", pairs ? 2 * real : real); break;
		case 'R': text_printf(&t, "%d", real); break;
		default: text_char(&t, *text);
		}
	}
	return t.data;
}

static const UserOp *make(Ctx *ctx, const Builtin *from, uint32_t type)
{
	Arena *a = ctx->arena;
	const bool wide = type & 1, pairs = type >= 2;
	const char *work = from->work[pairs];
	WeftOpDef def = {.size = sizeof def,
			 .flags = WEFT_OP_THREAD_SAFE,
			 .schema = arena_printf(a, "weft::%s_%c%s", from->name, "sdcz"[type],
						from -> schema),
			 .types = fill_in(a, from->types, wide, pairs),
			 .symbol = from->symbol,
			 .fn = from->fn};
	if (work) /* a part's begins and its areas begin at multiples of 16 */
		def.work_bytes = arena_printf(a, "(%s + 191)/64*64", fill_in(a, work, wide, pairs));
	const UserOp *op = userop_new(ctx, "weft", &def);
	if (!op)
		ctx_bug(ctx, "weft::%s is no operator", from->name);
	UserOp *own = arena_dup(a, op, sizeof *op);
	own->said = from->said;
	own->own = own->divided = true;
	own->needs_lapack = from->alone;
	return own;
}

const UserOp *userop_builtin(const Ir *ir, const char *name)
{
	const char *colon = strstr(name, "::"), *stem = colon ? colon + 2 : name + strlen("weft.");
	const size_t n = strlen(stem);
	if (!*ir->builtins)
		*ir->builtins = ARENA_NEW(ir->ctx->arena, struct Builtins);
	for (uint32_t k = 0; k < COUNT; k++) {
		const size_t length = strlen(builtin[k].name);
		const char *type = length + 2 == n && !strncmp(stem, builtin[k].name, length) &&
						   stem[length] == '_'
					   ? strchr("sdcz", stem[length + 1])
					   : NULL;
		if (!type || !*type)
			continue;
		const UserOp **op = &(*ir->builtins)->op[k][type - strchr("sdcz", 's')];
		if (!*op)
			*op = make(ir->ctx, &builtin[k], (uint32_t)(type - strchr("sdcz", 's')));
		return *op;
	}
	return userop_collective(ir, stem);
}
