#include "ir/sym/reshape.h"

/* Sets out[] to the index idx[] in one group of dimensions with equal element counts: linearises
 * over `from`, splits over `to`. */
static void regroup(SymTab *syms, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to,
                    Sym *out, uint32_t nto)
{
	Sym linear = sym_int(syms, 0);
	for (uint32_t k = 0; k < nfrom; k++)
		if (!sym_is(syms, from[k], 1))
			linear = sym_add(syms, sym_mul(syms, linear, from[k]), idx[k]);
	uint32_t first = nto;
	for (uint32_t k = 0; k < nto && first == nto; k++)
		if (!sym_is(syms, to[k], 1))
			first = k;
	for (uint32_t k = nto; k-- > 0;) {
		/* without elements no index is ever used */
		if (sym_is(syms, to[k], 1) || sym_is(syms, to[k], 0)) {
			out[k] = sym_int(syms, 0);
		} else if (k == first) {
			out[k] = linear;
		} else {
			out[k] = sym_mod(syms, linear, to[k]);
			linear = sym_floordiv(syms, linear, to[k]);
		}
	}
}

bool reshape_group(SymTab *syms, const Sym *from, uint32_t nfrom, const Sym *to, uint32_t nto,
		   ReshapeGroup *g)
{
	uint32_t i = g->from_end, j = g->to_end;
	if (i >= nfrom && j >= nto)
		return false;
	*g = (ReshapeGroup){.from = i, .to = j};
	Sym a = i < nfrom ? from[i++] : sym_int(syms, 1);
	Sym b = j < nto ? to[j++] : sym_int(syms, 1);
	while (sym_eq(syms, a, b) != YES && (i < nfrom || j < nto)) {
		bool more_from = i < nfrom && (j == nto || sym_le(syms, a, b) == YES);
		if (!more_from && i < nfrom && sym_le(syms, b, a) != YES)
			more_from = i - g->from <= j - g->to;
		if (more_from)
			a = sym_mul(syms, a, from[i++]);
		else if (j < nto)
			b = sym_mul(syms, b, to[j++]);
		else
			a = sym_mul(syms, a, from[i++]);
	}
	/* trailing ones belong to this group when nothing else is left */
	while (i < nfrom && j == nto && sym_is(syms, from[i], 1))
		i++;
	while (j < nto && i == nfrom && sym_is(syms, to[j], 1))
		j++;
	g->from_end = i;
	g->to_end = j;
	return true;
}

void reshape_index(SymTab *syms, const Sym *from, const Sym *idx, uint32_t nfrom, const Sym *to,
                   Sym *out, uint32_t nto)
{
	ReshapeGroup g = {0};
	while (reshape_group(syms, from, nfrom, to, nto, &g))
		regroup(syms, from + g.from, idx + g.from, g.from_end - g.from, to + g.to,
			out + g.to, g.to_end - g.to);
}
