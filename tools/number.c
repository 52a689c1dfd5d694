/* Elements of tensors as numbers, numbers as text, what is printed of kernels. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "tool.h"

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int64_t numel_of(const WeftTensor *t)
{
	int64_t n = 1;
	for (int32_t k = 0; k < t->ndim; k++)
		n *= t->shape[k];
	return n;
}

uint64_t bytes_of(const WeftTensor *t)
{
	return (uint64_t)numel_of(t) * ((t->dtype.bits + 7u) / 8);
}

int64_t values_of(const WeftTensor *t)
{
	return numel_of(t) * (t->dtype.code == WEFT_COMPLEX ? 2 : 1);
}

static const FloatKind kinds[] = {
	{WEFT_FLOAT, 16, 5, 10, 15, true, "f16"},
	{WEFT_FLOAT, 32, 8, 23, 127, true, "f32"},
	{WEFT_FLOAT, 64, 11, 52, 1023, true, "f64"},
	{WEFT_BFLOAT, 16, 8, 7, 127, true, "bf16"},
	{WEFT_F8_E4M3FN, 8, 4, 3, 7, false, "f8e4m3"},
	{WEFT_F8_E5M2, 8, 5, 2, 15, true, "f8e5m2"},
	{WEFT_F8_E4M3FNUZ, 8, 4, 3, 8, false, "f8e4m3fnuz"},
	{WEFT_F8_E5M2FNUZ, 8, 5, 2, 16, false, "f8e5m2fnuz"},
};

const FloatKind *float_kind(WeftDType t)
{
	bool complex = t.code == WEFT_COMPLEX;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		if (kinds[k].code == (complex ? WEFT_FLOAT : t.code) &&
		    kinds[k].bits == (complex ? t.bits / 2 : t.bits))
			return &kinds[k];
	return NULL;
}

static bool is_fnuz(const FloatKind *k)
{
	return k->bias == 1 << (k->exponent - 1);
}

/* Returns the number with these bits, of a kind of at most 16. */
static double small_float(const FloatKind *k, uint32_t bits)
{
	int e = k->exponent, m = k->mantissa, sign = (int)(bits >> (e + m)) & 1, bias = k->bias;
	int exponent = (int)(bits >> m) & ((1 << e) - 1), mantissa = (int)bits & ((1 << m) - 1);
	double v;
	if (exponent == (1 << e) - 1 && k->infinite)
		v = mantissa ? (double)NAN : (double)INFINITY;
	else if (is_fnuz(k) ? bits == 1u << (e + m)
			    : !k->infinite && exponent == (1 << e) - 1 && mantissa == (1 << m) - 1)
		v = (double)NAN;
	else if (exponent)
		v = ldexp(1 + ldexp(mantissa, -m), exponent - bias);
	else
		v = ldexp(mantissa, 1 - bias - m);
	return sign ? -v : v;
}

#define AT(T) ((double)((const T *)p)[i])

static double read_float(const char *p, int64_t i, uint8_t bits)
{
	if (bits == 16)
		return small_float(&kinds[0], ((const uint16_t *)p)[i]);
	return bits == 32 ? AT(float) : AT(double);
}

double value_at(const WeftTensor *t, int64_t i)
{
	const char *p = (const char *)t->data + t->byte_offset;
	uint8_t bits = t->dtype.bits;
	switch (t->dtype.code) {
	case WEFT_INT:
		return bits == 8    ? AT(int8_t)
		       : bits == 16 ? AT(int16_t)
		       : bits == 32 ? AT(int32_t)
				    : AT(int64_t);
	case WEFT_UINT:
		return bits == 8    ? AT(uint8_t)
		       : bits == 16 ? AT(uint16_t)
		       : bits == 32 ? AT(uint32_t)
				    : AT(uint64_t);
	case WEFT_FLOAT:
		return read_float(p, i, bits);
	case WEFT_COMPLEX:
		return read_float(p, i, bits / 2);
	case WEFT_BOOL:
		return AT(uint8_t) != 0;
	default:
		return small_float(float_kind(t->dtype), bits == 16 ? ((const uint16_t *)p)[i]
								    : ((const uint8_t *)p)[i]);
	}
}

const char *dtype_text(WeftDType t, char buf[16])
{
	const char *kind = t.code == WEFT_INT       ? "i"
			   : t.code == WEFT_UINT    ? "u"
			   : t.code == WEFT_COMPLEX ? "c"
						    : NULL;
	if (kind)
		snprintf(buf, 16, "%s%u", kind, (unsigned)t.bits);
	else
		snprintf(buf, 16, "%s", t.code == WEFT_BOOL ? "bool" : float_kind(t)->name);
	return buf;
}

const char *human(double v, char buf[32])
{
	static const char unit[] = " kMGTP";
	int k = 0;
	while (fabs(v) >= 999.5 && k < 5) {
		v /= 1000;
		k++;
	}
	snprintf(buf, 32,
		 v < 9.995 && k   ? "%.2f %c"
		 : v < 99.95 && k ? "%.1f %c"
				  : "%.0f %c",
		 v, unit[k]);
	if (!k)
		buf[strlen(buf) - 1] = 0;
	return buf;
}

void print_lines(const WeftKernelInfo *k)
{
	if (!k->line)
		return;
	fputs(k->line, stdout);
	if (k->nline > 1)
		printf(" (+%u line%s)", k->nline - 1, k->nline > 2 ? "s" : "");
}

WeftKernelInfo call_info(const WeftModel *m, const WeftCallInfo *c)
{
	WeftKernelInfo k = {.name = c->name,
			    .algorithm = c->algorithm,
			    .flops = c->flops,
			    .bytes = c->bytes,
			    .launches = 1};
	if (WEFT_HAS(m->stride[WEFT_CALL_INFO], WeftCallInfo, nline)) {
		k.line = c->line;
		k.nline = c->nline;
	}
	return k;
}

/* Returns the most memory that this process had. Not getrusage's, which begins with that of the
 * process that started this one. */
double peak_bytes(void)
{
	char line[256];
	double kb = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmHWM: %lf", &kb) == 1)
			break;
	if (f)
		fclose(f);
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return 1024 * (kb >= 0 ? kb : (double)u.ru_maxrss);
}
