/* Random complex numbers: made of two real values, or an input, and taken apart again. */
#include <math.h>

#include "fuzz.h"

static bool fits(const Fuzz *f, const Value *x)
{
	return fuzz_dtype(f, *x) == DT_f32 && x->mag <= 2 && x->err < 1e-3;
}

typedef struct {
	Node n;
	int mag; /* both parts are at most 2^mag */
} Complex;

static Complex times(Fuzz *f, Complex x, Complex y)
{
	return (Complex){fuzz_node(f, OP_aten_mul_Tensor, (Node[]){x.n, y.n}, 2, NULL, 0),
			 x.mag + y.mag + 1};
}

static Node un(Fuzz *f, Op op, Node x)
{
	return fuzz_node(f, op, &x, 1, NULL, 0);
}

/* Of the type of x: its conjugate, an input, or what it is itself. */
static Complex another(Fuzz *f, Complex x)
{
	const Type t = *node_type(f->g, x.n);
	if (fuzz_chance(f, 40))
		return (Complex){un(f, OP_aten_conj_physical, x.n), x.mag};
	if (fuzz_chance(f, 60))
		return (Complex){fuzz_input(f, DT_c64, t.n, t.dim).n, 0};
	return x;
}

/* z times its own adjoint matrix */
static Complex gram(Fuzz *f, Complex z)
{
	Node conj = un(f, OP_aten_conj_physical, z.n);
	Node t = b_permute(&f->b, conj, (const uint32_t[]){1, 0});
	return (Complex){fuzz_node(f, OP_aten_matmul, (Node[]){z.n, t}, 2, NULL, 0), 2 * z.mag + 5};
}

static Complex some_step(Fuzz *f, Complex z)
{
	Complex y;
	switch (fuzz_below(f, 6)) {
	case 0:
		return z.mag > 1 ? z : (Complex){un(f, OP_aten_exp, z.n), 3};
	case 1:
		return z.mag > 1 ? z : (Complex){un(f, OP_aten_sin, z.n), 3};
	case 2:
		y = another(f, z);
		return (Complex){fuzz_node(f, OP_aten_add_Tensor, (Node[]){z.n, y.n}, 2,
					   (Attr[]){attr_none(), attr_none(), attr_int(f->ir, 1)},
					   3),
				 (z.mag > y.mag ? z.mag : y.mag) + 1};
	case 3:
		return node_rank(f->g, z.n) == 2 && z.mag <= 2 ? gram(f, z) : z;
	default:
		return z.mag <= 3 ? times(f, z, another(f, z)) : z;
	}
}

static bool push_part(Fuzz *f, Op op, Complex z)
{
	return fuzz_push(f, (Value){un(f, op, z.n), -100, z.mag, ldexp(1e-5, z.mag)});
}

static bool step_complex(Fuzz *f)
{
	Value x;
	if (f->is_body || !fuzz_pick(f, fits, &x))
		return false;
	Value y = fuzz_operand(f, x);
	if (y.mag > 2)
		return false;
	Complex z = {fuzz_node(f, OP_aten_complex, (Node[]){x.n, y.n}, 2, NULL, 0),
		     x.mag > y.mag ? x.mag : y.mag};
	for (uint32_t k = fuzz_below(f, 4); k > 0 && z.n.i; k--)
		z = some_step(f, z);
	if (!z.n.i)
		return false;
	if (fuzz_chance(f, 30)) {
		graph_add_output(
			f->g, arena_printf(f->ir->ctx->arena, "%sz%u", f->prefix, f->g->output.n),
			z.n, -1);
		text_printf(f->tolerances, " %.3g", ldexp(1e-5, z.mag));
	}
	return push_part(f, OP_aten_real, z) && push_part(f, OP_aten_imag, z);
}

const FuzzChoice fuzz_complex_steps[] = {{step_complex, 1}, {NULL, 0}};
