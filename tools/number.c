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

/* A float of e exponent and m mantissa bits; f8e4m3fn has no infinity. */
static double small_float(uint32_t bits, int e, int m, bool finite_only)
{
	int sign = (int)(bits >> (e + m)) & 1, bias = (1 << (e - 1)) - 1;
	int exponent = (int)(bits >> m) & ((1 << e) - 1), mantissa = (int)bits & ((1 << m) - 1);
	double v;
	if (exponent == (1 << e) - 1 && !finite_only)
		v = mantissa ? (double)NAN : (double)INFINITY;
	else if (finite_only && exponent == (1 << e) - 1 && mantissa == (1 << m) - 1)
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
		return small_float(((const uint16_t *)p)[i], 5, 10, false);
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
	case WEFT_BFLOAT:
		return small_float(((const uint16_t *)p)[i], 8, 7, false);
	case WEFT_BOOL:
		return AT(uint8_t) != 0;
	case WEFT_F8_E4M3FN:
		return small_float(((const uint8_t *)p)[i], 4, 3, true);
	default:
		return small_float(((const uint8_t *)p)[i], 5, 2, false);
	}
}

const char *dtype_text(WeftDType t, char buf[16])
{
	const char *kind = t.code == WEFT_INT       ? "i"
			   : t.code == WEFT_UINT    ? "u"
			   : t.code == WEFT_FLOAT   ? "f"
			   : t.code == WEFT_BFLOAT  ? "bf"
			   : t.code == WEFT_COMPLEX ? "c"
						    : NULL;
	if (kind)
		snprintf(buf, 16, "%s%u", kind, (unsigned)t.bits);
	else
		snprintf(buf, 16, "%s",
			 t.code == WEFT_BOOL        ? "bool"
			 : t.code == WEFT_F8_E4M3FN ? "f8e4m3"
						    : "f8e5m2");
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

/* Not getrusage's, which begins with that of the process that started this one. */
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
