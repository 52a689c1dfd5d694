/* Private to the transforms of lines: fft.c (many lines, a lane each), fft_line.c (one line, lanes
 * along it), fft_codelet.c (transforms of a few elements). */
#ifndef WEFT_CODEGEN_CPU_FFT_H
#define WEFT_CODEGEN_CPU_FFT_H

#include "codegen/cpu/cpu.h"
#include "codegen/plan/axes.h"

enum {
	MAX_CODELET = 16, /* factors whose sums have numbers for roots */
	MAX_STEPS = 64
};

typedef struct {
	Lx re, im;
} Cx;

/* How lines are read and written: BY_PAIRS and BY_VALUE by tiles (fft.c), BY_NEIGHBOURS as two
 * vectors of the pairs of neighbouring lines, which are contiguous. */
typedef struct {
	enum { BY_ELEMENT, BY_PAIRS, BY_VALUE, BY_NEIGHBOURS } operand, result;
	Lx there[2]; /* masks of the two vectors of BY_NEIGHBOURS; none: all lines are there */
} Access;

typedef struct {
	Cpu *s;
	LoopFn *f;
	uint32_t re, im, root_re, root_im; /* stages */
	uint32_t axis, table; /* of the line, and of the roots */
	bool exchanged;       /* the inverse is the transform of exchanged parts, exchanged */
	bool real;            /* see fft_half */
	int64_t turns;        /* of a real one: the number in the table of exp(-pi i 0 / n) */
	LType type;           /* of a value of all lanes */
	LMem rooms;
	Lx n;
	Access as;
} Fft;

/* Returns the complex values that lie as pairs at the offset and behind it; mask: of either vector,
 * or none. */
Cx fft_load_pairs(Fft *, LMem, Lx offset, const Lx mask[2]);
void fft_store_pairs(Fft *, LMem, Lx offset, Cx, const Lx mask[2]);
/* Returns complex values in new variables. */
Cx fft_let(Fft *, const char *name, Cx);
/* Returns an index in a new variable, or an integer literal. */
Lx fft_let_index(Fft *, const char *name, Lx);
/* Returns acc + a * b, and a * b. */
Cx fft_mul_add(Fft *, Cx a, Cx b, Cx acc);
Cx fft_mul(Fft *, Cx a, Cx b);
/* Returns a number in all lanes. */
Lx fft_number(Fft *, double);
/* Whether fft_transform has code for r elements. */
bool fft_has_codelet(int64_t r);
/* Replaces a[0] to a[r - 1] by their transform: a[k] = sum_j a[j] exp(-2 pi i j k / r). */
void fft_transform(Fft *, Cx *a, uint32_t r);
/* Sets factor[], room for MAX_STEPS, to the factors of n that steps have: of powers of two as few
 * as there are, of about one size, then the odd primes. Returns their number. */
uint32_t fft_factors(int64_t n, int64_t *factor);

/* Returns the complex value with its parts exchanged if the transform is an inverse. */
Cx fft_exchange(const Fft *, Cx);
/* Returns the value of a stage at the current point in all lanes, of the transform's dtype. */
Lx fft_value(Fft *, uint32_t stage);
/* Returns exp(-2 pi i k / n) in all lanes, 0 <= k < n. */
Cx fft_root(Fft *, Lx k);
/* Returns element k <= n of the transform of 2 n real numbers, which is computed as one of n pairs
 * z: a is z[k] and b is z[n - k], where z[n] is z[0]. Of the inverse, whose operand is half[],
 * returns z[k]: a is half[k] and b is half[n - k]. w: exp(-pi i k / n). */
Cx fft_half(Fft *, Cx a, Cx b, Cx w);
/* Makes t->rooms an array of `count` elements: of the task if they are a number of at most `limit`
 * bytes, else the task's part of a temporary. Returns where it begins. */
Lx fft_rooms(Fft *, Sym count, int64_t limit, Sym ntasks);
/* Opens the loop over [0, n) by `step`, unless all is one round. Returns its variable, or 0. */
Lx fft_loop(Fft *, const char *name, Lx n, int64_t step);
/* Closes the loop of fft_loop with the same n and step. */
void fft_end_loop(Fft *, Lx n, int64_t step);

/* The lines at hand: the first one, how many there are, and whether there may be fewer than
 * lanes. */
typedef struct {
	Lx first, count;
	bool some;
} Lines;

/* Returns the lines at hand, a line for each lane. */
Lines fft_lines_at_hand(Fft *);
/* Returns line number r of those at hand; the last one if there are fewer. */
Lx fft_line_of(Fft *, const Lines *, Lx r);

/* Whether fft_short_lines can transform lines of n pairs that are contiguous (fft_line.c). */
bool fft_is_short(const Fft *, int64_t n);
/* Transforms the lines at hand, a few at a time, in registers. */
void fft_short_lines(Fft *, int64_t n);
/* Writes the transform of the line at the current point, with lanes along the line;
 * axes_transforms_along holds (fft_line.c). ntasks: as of cpu_fft. */
void fft_along_line(Fft *, int64_t n, Sym ntasks);

#endif
