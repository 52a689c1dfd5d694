/* libFuzzer: the bytes are a .safetensors file. What is read is read to its last value, written,
 * and read again. Seeds: tests/data. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/files/safetensors.h"
#include "tests/fuzz/mutate.h"

/* Every tensor lies in memory and its values can be looked at. */
static double sum_of(const StFile *f)
{
	double sum = 0;
	for (uint32_t k = 0; k < f->n; k++)
		for (int64_t i = 0, n = tensor_numel(&f->tensor[k].tensor); i < n; i++)
			sum += tensor_f64(&f->tensor[k].tensor, i);
	return sum;
}

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	StFile f, again;
	bool loaded = st_open_bytes(ctx, "fuzz", data, size, &f);
	fuzz_count(loaded);
	if (!loaded) {
		if (!ctx->nerror)
			abort(); /* refused without saying why */
		return;
	}
	if (fuzz_only_reads)
		return;
	char path[] = "/tmp/weft-fuzz-XXXXXX";
	int fd = mkstemp(path);
	StMeta *meta = f.meta;
	bool same = fd >= 0 && st_save(ctx, path, f.tensor, f.n, meta, f.nmeta) &&
		    st_open(ctx, path, &again) && again.n == f.n && again.nmeta == f.nmeta;
	double a = sum_of(&f), b = same ? sum_of(&again) : 0;
	if (!same || (a != b && a == a && b == b))
		abort();
	close(fd);
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 0, read_all);
}

/* ---- mutants ---- */

static const char *const same_size[][4] = {{"F32", "I32", "U32", "F32"},
					   {"F16", "BF16", "I16", "U16"},
					   {"F64", "I64", "U64", "F64"},
					   {"U8", "I8", "BOOL", "F8_E4M3"}};

/* The header is text of known length at the front: a change in place keeps the length, another one
 * tells it. */
static size_t put_header(uint8_t *data, size_t size, size_t before)
{
	uint64_t n = 0;
	memcpy(&n, data, 8);
	n += size - before;
	memcpy(data, &n, 8);
	return size;
}

static size_t change_dtype(uint8_t *data, size_t size, size_t max, size_t header, unsigned *state)
{
	uint32_t first = fuzz_below(state, 16);
	for (uint32_t k = 0; k < 16; k++) {
		uint32_t row = (first + k) / 4 % 4;
		const char *from = same_size[row][(first + k) % 4],
			   *to = same_size[row][fuzz_below(state, 4)];
		char quoted[16];
		int n = snprintf(quoted, sizeof quoted, "\"%s\"", from);
		uint8_t *at = memmem(data + 8, header, quoted, (size_t)n);
		if (at)
			return put_header(data,
					  fuzz_splice(data, size, max, (size_t)(at - data) + 1,
						      (size_t)n - 2, to, strlen(to)),
					  size);
	}
	return size;
}

/* Is byte i of the header within a tensor's name: a key whose value is an object? */
static bool in_name(const uint8_t *data, size_t end, size_t i)
{
	while (i < end && data[i] != '"')
		i++;
	return i + 2 < end && data[i + 1] == ':' && data[i + 2] == '{';
}

/* A letter of a name; now and then a digit of a shape or an offset, which is mostly refused. */
static size_t change_text(uint8_t *data, size_t size, size_t header, unsigned *state)
{
	bool digit = fuzz_below(state, 4) == 0;
	for (int tries = 0; tries < 64; tries++) {
		size_t i = 8 + fuzz_below(state, (uint32_t)header);
		if (digit && isdigit(data[i])) {
			data[i] = (uint8_t)('0' + fuzz_below(state, 10));
			break;
		}
		if (!digit && islower(data[i]) && in_name(data, 8 + header, i)) {
			data[i] = (uint8_t)('a' + fuzz_below(state, 26));
			break;
		}
	}
	return size;
}

static size_t add_metadata(uint8_t *data, size_t size, size_t max, unsigned *state)
{
	char text[64];
	if (memmem(data, size, "__metadata__", 12) || data[8] != '{')
		return size;
	int n = snprintf(text, sizeof text, "\"__metadata__\":{\"%c\":\"%u\"},",
			 'a' + (int)fuzz_below(state, 26), (unsigned)fuzz_below(state, 1000));
	return put_header(data, fuzz_splice(data, size, max, 9, 0, text, (size_t)n), size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	unsigned state = seed;
	uint64_t header = 0;
	if (size >= 8)
		memcpy(&header, data, 8);
	if (size < 10 || header < 2 || header > size - 8 || fuzz_below(&state, 8) == 0)
		return LLVMFuzzerMutate(data, size, max);
	switch (fuzz_below(&state, 4)) {
	case 0:
		return change_dtype(data, size, max, (size_t)header, &state);
	case 1:
		return change_text(data, size, (size_t)header, &state);
	case 2:
		return add_metadata(data, size, max, &state);
	default:
		if (size > 8 + header)
			data[8 + header + fuzz_below(&state, (uint32_t)(size - 8 - header))] ^=
				(uint8_t)(1u << fuzz_below(&state, 8));
		return size;
	}
}
