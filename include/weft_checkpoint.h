/* Checkpoints of a program that trains: all state of an instance in a .safetensors file, by the
 * names that PyTorch's state dicts give it, with texts of the program's own.
 *
 *     const char *meta[] = {"step", "1200", NULL};
 *     WeftStatus status;
 *     if (weft_checkpoint_save(m, in, "last.safetensors", meta, &status))
 *             return puts(status.message), 1;
 *     ...                                            -- another process, a day later
 *     if (weft_checkpoint_load(m, in, "last.safetensors", &status) ||
 *         weft_checkpoint_meta("last.safetensors", "step", text, sizeof text, &status))
 *             return puts(status.message), 1;
 *
 * A file is written whole or not at all: a process that is killed while it saves leaves the file as
 * it was, and perhaps a file PATH.part beside it, which the next save replaces. One process at a
 * time saves to a path.
 *
 * Names in a file: parameters and buffers have their own, a state of the optimiser is
 * state.PARAMETER.KEY (state.0.weight.exp_avg), an average of a parameter ema.PARAMETER. Each
 * element of "optimizer.GROUP.step" is a tensor of its own, state.PARAMETER.step, as in PyTorch.
 * `weft train`, `weft state` and safetensors in Python read and write the same files.
 *
 * Needs POSIX and a little-endian machine, and nothing else of Weft than weft_model.h. */
#ifndef WEFT_CHECKPOINT_H
#define WEFT_CHECKPOINT_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft_model.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weft_checkpoint.h: files are little-endian, and this machine is not"
#endif
#if defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE)
int fsync(int); /* which -std=c11 hides */
#endif

enum {
	WEFT_CHECKPOINT_NAME = 1024,             /* bytes of a name in a file */
	WEFT_CHECKPOINT_RANK = 16,               /* the most dimensions of a tensor */
	WEFT_CHECKPOINT_HEAD = 100 * 1000 * 1000 /* the most bytes of a header */
};

/* Private: sets the status, which may be NULL. Returns code. */
static inline int weft_checkpoint_fail(WeftStatus *status, int code, const char *path,
				       const char *format, ...)
{
	va_list args;
	if (!status)
		return code;
	status->code = code;
	const int n = snprintf(status->message, sizeof status->message, "%.200s: ", path);
	va_start(args, format);
	if (n > 0 && (size_t)n < sizeof status->message)
		vsnprintf(status->message + n, sizeof status->message - (size_t)n, format, args);
	va_end(args);
	return code;
}

/* Private: sets the status to success. Returns WEFT_OK. */
static inline int weft_checkpoint_done(WeftStatus *status)
{
	if (status)
		memset(status, 0, sizeof *status);
	return WEFT_OK;
}

/* ---- names ---- */

/* Private: returns what follows "optimizer.GROUP." in the name of a state that has a number for
 * each parameter of a group; NULL for other states. */
static inline const char *weft_checkpoint_number(const char *state)
{
	if (strncmp(state, "optimizer.", 10))
		return NULL;
	const size_t digits = strspn(state + 10, "0123456789");
	return digits && state[10 + digits] == '.' ? state + 11 + digits : NULL;
}

/* Private: returns the number of tensors that state k is in a file, if it is one for each
 * parameter; 0 if it is one tensor. The parameters are those of the states behind the numbers of
 * their group; PyTorch has no number "started". */
static inline uint32_t weft_checkpoint_parts(const WeftModel *m, uint32_t k, uint32_t *first)
{
	const WeftTensorInfo *t = weft_state_info(m, k);
	const char *number = weft_checkpoint_number(t->name);
	if (!number || !strcmp(number, "started") || t->rank != 1)
		return 0;
	const int64_t n = weft_dim(m, t, 0)->value;
	for (*first = k + 1; *first < m->nstate; ++*first)
		if (!weft_checkpoint_number(weft_state_info(m, *first)->name))
			break;
	if (n < 1 || n > (int64_t)(m->nstate - *first))
		return 0;
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		if (strncmp(weft_state_info(m, *first + i)->name, "state.", 6))
			return 0;
	return (uint32_t)n;
}

/* Returns the number of tensors that state k of the model is in a file: 1, or the number of
 * parameters of a group. k is in range. */
static inline uint32_t weft_checkpoint_tensors(const WeftModel *m, uint32_t k)
{
	uint32_t first;
	const uint32_t n = weft_checkpoint_parts(m, k, &first);
	return n ? n : 1;
}

/* Sets out to the name of tensor i of state k in a file; i < weft_checkpoint_tensors. Returns
 * WEFT_OK, or WEFT_ERR_ARGUMENT if the name is too long. */
static inline int weft_checkpoint_name(const WeftModel *m, uint32_t k, uint32_t i,
				       char out[WEFT_CHECKPOINT_NAME])
{
	uint32_t first;
	const char *name = weft_state_info(m, k)->name;
	size_t n = strlen(name);
	const char *key = "";
	if (weft_checkpoint_parts(m, k, &first)) {
		key = weft_checkpoint_number(name);
		name = weft_state_info(m, first + i)->name;
		n = (size_t)(strrchr(name, '.') - name) + 1;
	}
	if (n + strlen(key) >= WEFT_CHECKPOINT_NAME)
		return WEFT_ERR_ARGUMENT;
	memcpy(out, name, n);
	memcpy(out + n, key, strlen(key) + 1);
	return WEFT_OK;
}

/* Private: returns the name of a dtype in a file; NULL if it has none. */
static inline const char *weft_checkpoint_dtype(WeftDType d)
{
	static const struct {
		uint8_t code, bits;
		const char *name;
	} all[] = {{WEFT_FLOAT, 64, "F64"},
		   {WEFT_FLOAT, 32, "F32"},
		   {WEFT_FLOAT, 16, "F16"},
		   {WEFT_BFLOAT, 16, "BF16"},
		   {WEFT_INT, 64, "I64"},
		   {WEFT_INT, 32, "I32"},
		   {WEFT_INT, 16, "I16"},
		   {WEFT_INT, 8, "I8"},
		   {WEFT_UINT, 64, "U64"},
		   {WEFT_UINT, 32, "U32"},
		   {WEFT_UINT, 16, "U16"},
		   {WEFT_UINT, 8, "U8"},
		   {WEFT_BOOL, 8, "BOOL"},
		   {WEFT_COMPLEX, 64, "C64"},
		   {WEFT_F8_E4M3FN, 8, "F8_E4M3"},
		   {WEFT_F8_E5M2, 8, "F8_E5M2"},
		   {WEFT_F8_E4M3FNUZ, 8, "F8_E4M3FNUZ"},
		   {WEFT_F8_E5M2FNUZ, 8, "F8_E5M2FNUZ"}};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (all[k].code == d.code && all[k].bits == d.bits)
			return all[k].name;
	return NULL;
}

/* Private: returns the bytes of a state, row-major. */
static inline uint64_t weft_checkpoint_bytes(const WeftModel *m, const WeftTensorInfo *t)
{
	uint64_t n = t->dtype.bits / 8;
	for (uint32_t d = 0; d < t->rank; d++)
		n *= (uint64_t)weft_dim(m, t, d)->value;
	return n;
}

/* Private: returns the memory for the largest state; NULL if there is none. */
static inline void *weft_checkpoint_room(const WeftModel *m)
{
	uint64_t most = 1;
	for (uint32_t k = 0; k < m->nstate; k++) {
		const uint64_t n = weft_checkpoint_bytes(m, weft_state_info(m, k));
		most = n > most ? n : most;
	}
	return malloc((size_t)most);
}

/* Private: copies state k out of the instance into memory, or into it. */
static inline int weft_checkpoint_move(const WeftModel *m, WeftInstance *in, uint32_t k, int set,
				       void *data, WeftStatus *status)
{
	const WeftTensorInfo *info = weft_state_info(m, k);
	int64_t shape[WEFT_CHECKPOINT_RANK];
	WeftTensor t;
	memset(&t, 0, sizeof t);
	for (uint32_t d = 0; d < info->rank; d++)
		shape[d] = weft_dim(m, info, d)->value;
	t.data = data;
	t.device.type = WEFT_CPU;
	t.dtype = info->dtype;
	t.ndim = (int32_t)info->rank;
	t.shape = shape;
	return (set ? m->state_set : m->state_get)(in, k, &t, status);
}

/* ---- saving ---- */

/* Private: a text that grows. */
typedef struct {
	char *text;
	size_t n, room;
	int failed; /* there is no memory */
} WeftCheckpointText;

/* Private: appends n bytes, and a 0 that does not count. */
static inline void weft_checkpoint_add(WeftCheckpointText *t, const char *s, size_t n)
{
	if (t->n + n + 1 > t->room && !t->failed) {
		const size_t room = 2 * t->room + n + 256;
		char *more = (char *)realloc(t->text, room);
		t->failed = !more;
		t->text = more ? more : t->text;
		t->room = more ? room : t->room;
	}
	if (t->failed)
		return;
	memcpy(t->text + t->n, s, n);
	t->n += n;
	t->text[t->n] = 0;
}

/* Private: appends a text as a string of JSON. */
static inline void weft_checkpoint_quote(WeftCheckpointText *t, const char *s)
{
	weft_checkpoint_add(t, "\"", 1);
	for (; *s; s++) {
		char code[8];
		if (*s == '"' || *s == '\\' || (unsigned char)*s < ' ') {
			snprintf(code, sizeof code, "\\u%04x", (unsigned)(unsigned char)*s);
			weft_checkpoint_add(t, code, 6);
		} else {
			weft_checkpoint_add(t, s, 1);
		}
	}
	weft_checkpoint_add(t, "\"", 1);
}

/* Private: appends what a file says of the tensors of state k, and moves *at behind their data. */
static inline int weft_checkpoint_describe(WeftCheckpointText *out, const WeftModel *m, uint32_t k,
					   uint64_t *at)
{
	const WeftTensorInfo *t = weft_state_info(m, k);
	uint32_t first;
	const uint32_t parts = weft_checkpoint_parts(m, k, &first), n = parts ? parts : 1;
	const uint64_t bytes = weft_checkpoint_bytes(m, t) / n;
	for (uint32_t i = 0; i < n; i++, *at += bytes) {
		char name[WEFT_CHECKPOINT_NAME], text[64];
		if (weft_checkpoint_name(m, k, i, name))
			return WEFT_ERR_ARGUMENT;
		weft_checkpoint_add(out, ",", out->n > 1);
		weft_checkpoint_quote(out, name);
		snprintf(text, sizeof text, ":{\"dtype\":\"%s\",\"shape\":[",
			 weft_checkpoint_dtype(t->dtype));
		weft_checkpoint_add(out, text, strlen(text));
		for (uint32_t d = 0; !parts && d < t->rank; d++) {
			snprintf(text, sizeof text, "%s%lld", d ? "," : "",
				 (long long)weft_dim(m, t, d)->value);
			weft_checkpoint_add(out, text, strlen(text));
		}
		snprintf(text, sizeof text, "],\"data_offsets\":[%llu,%llu]}",
			 (unsigned long long)*at, (unsigned long long)(*at + bytes));
		weft_checkpoint_add(out, text, strlen(text));
	}
	return WEFT_OK;
}

/* Private: appends the texts of the program, key and value in turn, behind one of this header. */
static inline void weft_checkpoint_texts(WeftCheckpointText *out, const char *const *meta)
{
	static const char begin[] = "\"__metadata__\":{\"weft.checkpoint\":\"1\"";
	weft_checkpoint_add(out, begin, sizeof begin - 1);
	for (uint32_t k = 0; meta && meta[k]; k += 2) {
		weft_checkpoint_add(out, ",", 1);
		weft_checkpoint_quote(out, meta[k]);
		weft_checkpoint_add(out, ":", 1);
		weft_checkpoint_quote(out, meta[k + 1] ? meta[k + 1] : "");
		if (!meta[k + 1])
			break;
	}
	weft_checkpoint_add(out, "}", 1);
}

/* Private: makes the header of a file: its length in 8 bytes, then JSON. Data lie in the order of
 * their sizes of elements, so that each is aligned. */
static inline int weft_checkpoint_header(WeftCheckpointText *out, const WeftModel *m,
					 const char *const *meta, const char *path,
					 WeftStatus *status)
{
	unsigned char length[8] = {0};
	uint64_t at = 0;
	weft_checkpoint_add(out, "{", 1);
	weft_checkpoint_texts(out, meta);
	for (int bits = 64; bits >= 8; bits /= 2)
		for (uint32_t k = 0; k < m->nstate; k++)
			if (weft_state_info(m, k)->dtype.bits == bits &&
			    weft_checkpoint_describe(out, m, k, &at))
				return weft_checkpoint_fail(status, WEFT_ERR_ARGUMENT, path,
							    "the name of state %.200s is too long",
							    weft_state_info(m, k)->name);
	weft_checkpoint_add(out, "}", 1);
	while (out->n % 8 && !out->failed)
		weft_checkpoint_add(out, " ", 1);
	if (out->failed)
		return weft_checkpoint_fail(status, WEFT_ERR_MEMORY, path, "out of memory");
	for (unsigned k = 0; k < 8; k++)
		length[k] = (unsigned char)((uint64_t)out->n >> 8 * k);
	weft_checkpoint_add(out, (const char *)length, 8);
	if (out->failed)
		return weft_checkpoint_fail(status, WEFT_ERR_MEMORY, path, "out of memory");
	memmove(out->text + 8, out->text, out->n - 8);
	memcpy(out->text, length, 8);
	return WEFT_OK;
}

/* Private: writes all bytes. Returns 0, or -1 with errno. */
static inline int weft_checkpoint_write(int file, const void *data, uint64_t n)
{
	const char *p = (const char *)data;
	while (n) {
		const ssize_t k = write(file, p, n < 1 << 30 ? (size_t)n : 1 << 30);
		if (k < 0 && errno != EINTR)
			return -1;
		p += k > 0 ? k : 0;
		n -= k > 0 ? (uint64_t)k : 0;
	}
	return 0;
}

/* Private: writes header and data, and waits until the disk has them. */
static inline int weft_checkpoint_contents(int file, const char *path, const WeftModel *m,
					   WeftInstance *in, const WeftCheckpointText *head,
					   void *room, WeftStatus *status)
{
	int bad = weft_checkpoint_write(file, head->text, head->n);
	for (int bits = 64; bits >= 8 && !bad; bits /= 2)
		for (uint32_t k = 0; k < m->nstate && !bad; k++) {
			const WeftTensorInfo *t = weft_state_info(m, k);
			if (t->dtype.bits != bits)
				continue;
			const int code = weft_checkpoint_move(m, in, k, 0, room, status);
			if (code)
				return code;
			bad = weft_checkpoint_write(file, room, weft_checkpoint_bytes(m, t));
		}
	if (!bad && (!fsync(file) || errno == EINVAL || errno == EROFS))
		return WEFT_OK;
	return weft_checkpoint_fail(status, WEFT_ERR_FILE, path, "cannot write: %s",
				    strerror(errno));
}

/* Private: asks the disk to keep a new name. A folder that cannot be asked is none of the
 * caller's errors: the file is there. */
static inline void weft_checkpoint_keep(const char *path)
{
	const char *slash = strrchr(path, '/');
	const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
	char *folder = (char *)malloc(n + 2);
	if (!folder)
		return;
	memcpy(folder, n ? path : ".", n ? n : 2);
	folder[n ? n : 1] = 0;
	const int f = open(folder, O_RDONLY);
	if (f >= 0 && !fsync(f))
		errno = 0;
	if (f >= 0)
		close(f);
	free(folder);
}

/* Private: writes a file beside the path, and gives it the name. */
static inline int weft_checkpoint_put(const char *path, const char *part, const WeftModel *m,
				      WeftInstance *in, const WeftCheckpointText *head, void *room,
				      WeftStatus *status)
{
	const int file = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (file < 0)
		return weft_checkpoint_fail(status, WEFT_ERR_FILE, path, "cannot write: %s",
					    strerror(errno));
	int code = weft_checkpoint_contents(file, path, m, in, head, room, status);
	if (close(file) && !code)
		code = weft_checkpoint_fail(status, WEFT_ERR_FILE, path, "cannot write: %s",
					    strerror(errno));
	if (!code && rename(part, path))
		code = weft_checkpoint_fail(status, WEFT_ERR_FILE, path, "cannot write: %s",
					    strerror(errno));
	if (code)
		remove(part);
	else
		weft_checkpoint_keep(path);
	return code;
}

/* Private: checks the arguments, and that files have names for the dtypes of all states. */
static inline int weft_checkpoint_check(const WeftModel *m, const WeftInstance *in,
					const char *path, WeftStatus *status)
{
	const char *wrong = weft_model_check(m);
	if (wrong)
		return weft_checkpoint_fail(status, WEFT_ERR_ABI, path ? path : "?", "%s", wrong);
	if (!in || !path)
		return weft_checkpoint_fail(status, WEFT_ERR_ARGUMENT, path ? path : "?",
					    "the instance or the path is missing: NULL");
	for (uint32_t k = 0; k < m->nstate; k++) {
		const WeftTensorInfo *t = weft_state_info(m, k);
		if (!weft_checkpoint_dtype(t->dtype) || t->rank > WEFT_CHECKPOINT_RANK)
			return weft_checkpoint_fail(
				status, WEFT_ERR_ARGUMENT, path,
				"state %.200s has a dtype or rank that files do not have", t->name);
	}
	return m->nstate ? WEFT_OK
			 : weft_checkpoint_fail(status, WEFT_ERR_ARGUMENT, path,
						"the model has no state");
}

/* Writes all state of the instance into a file, and the texts meta: key, value, key, value, ...,
 * NULL; meta may be NULL. Keys that begin with "weft." are those of Weft's own programs. No other
 * thread calls entries that write state meanwhile; save a clone where they do. Returns WEFT_OK, or
 * an error code with the reason in the status, which may be NULL; the file is then as it was. */
static inline int weft_checkpoint_save(const WeftModel *m, WeftInstance *in, const char *path,
				       const char *const *meta, WeftStatus *status)
{
	WeftCheckpointText head = {NULL, 0, 0, 0};
	int code = weft_checkpoint_check(m, in, path, status);
	if (code)
		return code;
	void *room = weft_checkpoint_room(m);
	char *part = (char *)malloc(strlen(path) + 6);
	if (!room || !part)
		code = weft_checkpoint_fail(status, WEFT_ERR_MEMORY, path, "out of memory");
	else
		code = weft_checkpoint_header(&head, m, meta, path, status);
	if (!code) {
		memcpy(part, path, strlen(path));
		memcpy(part + strlen(path), ".part", 6);
		code = weft_checkpoint_put(path, part, m, in, &head, room, status);
	}
	free(head.text);
	free(part);
	free(room);
	return code ? code : weft_checkpoint_done(status);
}

/* ---- reading ---- */

/* Private: a tensor of a file. Its texts are in the header. */
typedef struct {
	const char *name, *dtype;
	uint32_t rank;
	int64_t shape[WEFT_CHECKPOINT_RANK];
	uint64_t from, to; /* of its data, in the file */
} WeftCheckpointTensor;

/* Private: a file that is open. */
typedef struct {
	FILE *f;
	const char *path;
	char *head; /* JSON, whose strings are decoded in place */
	uint64_t data, end;
	const char *find;  /* a key of the texts; NULL: none */
	const char *found; /* its value */
	WeftCheckpointTensor *tensor;
	uint32_t n, room;
} WeftCheckpointFile;

/* Private: passes over blanks and the character c. Returns 0 if another one comes. */
static inline int weft_checkpoint_next(char **p, char c)
{
	*p += strspn(*p, " \t\r\n");
	if (**p != c)
		return 0;
	++*p;
	return 1;
}

/* Private: writes a character in UTF-8. Returns its bytes. */
static inline size_t weft_checkpoint_utf8(char *out, uint32_t c)
{
	const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	if (n == 1) {
		*out = (char)c;
		return 1;
	}
	for (size_t k = n; k-- > 1; c >>= 6)
		out[k] = (char)(0x80 | (c & 0x3f));
	*out = (char)((0xf0u << (4 - n) & 0xffu) | c);
	return n;
}

/* Private: reads the four digits of \u. Returns 0 if there are none. */
static inline uint32_t weft_checkpoint_hex(char **p)
{
	uint32_t c = 0;
	for (int k = 0; k < 4; k++, ++*p) {
		static const char digits[] = "0123456789abcdef0123456789ABCDEF";
		const char *at = **p ? strchr(digits, **p) : NULL;
		if (!at)
			return 0;
		c = c * 16 + (uint32_t)(at - digits) % 16;
	}
	return c;
}

/* Private: decodes what follows a backslash. Returns its bytes in out; 0 if it is none. */
static inline size_t weft_checkpoint_escape(char **p, char *out)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *at = **p ? strchr(letters, **p) : NULL;
	if (at) {
		++*p;
		*out = meant[at - letters];
		return 1;
	}
	if (*(*p)++ != 'u')
		return 0;
	uint32_t c = weft_checkpoint_hex(p);
	if (c >= 0xd800 && c < 0xdc00 && (*p)[0] == '\\' && (*p)[1] == 'u') {
		*p += 2;
		const uint32_t low = weft_checkpoint_hex(p);
		c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + low - 0xdc00
						  : 0;
	}
	return c ? weft_checkpoint_utf8(out, c) : 0;
}

/* Private: reads a string, and decodes it where it lies. */
static inline int weft_checkpoint_string(char **p, const char **out)
{
	if (!weft_checkpoint_next(p, '"'))
		return 0;
	char *to = *p;
	*out = to;
	while (**p && **p != '"') {
		if (**p != '\\') {
			*to++ = *(*p)++;
			continue;
		}
		++*p;
		const size_t n = weft_checkpoint_escape(p, to);
		if (!n)
			return 0;
		to += n;
	}
	if (**p != '"')
		return 0;
	++*p;
	*to = 0;
	return 1;
}

/* Private: reads "[1, 2]" into out. Returns the number of elements; -1 if it is none, or they are
 * more than `most`. */
static inline int weft_checkpoint_list(char **p, int64_t *out, int most)
{
	if (!weft_checkpoint_next(p, '['))
		return -1;
	if (weft_checkpoint_next(p, ']'))
		return 0;
	for (int n = 0; n < most;) {
		char *end;
		*p += strspn(*p, " \t\r\n");
		errno = 0;
		const long long v = **p >= '0' && **p <= '9' ? strtoll(*p, &end, 10) : -1;
		if (v < 0 || errno)
			return -1;
		*p = end;
		out[n++] = v;
		if (weft_checkpoint_next(p, ']'))
			return n;
		if (!weft_checkpoint_next(p, ','))
			return -1;
	}
	return -1;
}

/* Private: reads what a file says of a tensor. */
static inline int weft_checkpoint_tensor(char **p, WeftCheckpointFile *c, WeftCheckpointTensor *t)
{
	int64_t place[2];
	int rank = -1, ends = -1;
	t->dtype = NULL;
	if (!weft_checkpoint_next(p, '{'))
		return 0;
	do {
		const char *key;
		if (!weft_checkpoint_string(p, &key) || !weft_checkpoint_next(p, ':'))
			return 0;
		if (!strcmp(key, "dtype")) {
			if (!weft_checkpoint_string(p, &t->dtype))
				return 0;
		} else if (!strcmp(key, "shape")) {
			rank = weft_checkpoint_list(p, t->shape, WEFT_CHECKPOINT_RANK);
		} else if (!strcmp(key, "data_offsets")) {
			ends = weft_checkpoint_list(p, place, 2);
		} else {
			return 0;
		}
	} while (weft_checkpoint_next(p, ','));
	if (!weft_checkpoint_next(p, '}') || !t->dtype || rank < 0 || ends != 2)
		return 0;
	if (place[0] > place[1] || (uint64_t)place[1] > c->end - c->data)
		return 0;
	t->rank = (uint32_t)rank;
	t->from = c->data + (uint64_t)place[0];
	t->to = c->data + (uint64_t)place[1];
	return 1;
}

/* Private: reads the texts of a file, and keeps the one that is looked for. */
static inline int weft_checkpoint_read_texts(char **p, WeftCheckpointFile *c)
{
	if (!weft_checkpoint_next(p, '{'))
		return 0;
	if (weft_checkpoint_next(p, '}'))
		return 1;
	do {
		const char *key, *value;
		if (!weft_checkpoint_string(p, &key) || !weft_checkpoint_next(p, ':') ||
		    !weft_checkpoint_string(p, &value))
			return 0;
		if (c->find && !strcmp(c->find, key))
			c->found = value;
	} while (weft_checkpoint_next(p, ','));
	return weft_checkpoint_next(p, '}');
}

/* Private: makes room for one more tensor. */
static inline int weft_checkpoint_grow(WeftCheckpointFile *c)
{
	if (c->n < c->room)
		return 1;
	c->room = 2 * c->room + 64;
	WeftCheckpointTensor *more =
		(WeftCheckpointTensor *)realloc(c->tensor, c->room * sizeof *more);
	c->tensor = more ? more : c->tensor;
	return more != NULL;
}

/* Private: reads the JSON. */
static inline int weft_checkpoint_parse(WeftCheckpointFile *c)
{
	char *p = c->head;
	if (!weft_checkpoint_next(&p, '{'))
		return 0;
	if (weft_checkpoint_next(&p, '}'))
		return !p[strspn(p, " \t\r\n")];
	do {
		const char *name;
		if (!weft_checkpoint_string(&p, &name) || !weft_checkpoint_next(&p, ':'))
			return 0;
		if (!strcmp(name, "__metadata__")) {
			if (!weft_checkpoint_read_texts(&p, c))
				return 0;
			continue;
		}
		if (!weft_checkpoint_grow(c) || !weft_checkpoint_tensor(&p, c, &c->tensor[c->n]))
			return 0;
		c->tensor[c->n++].name = name;
	} while (weft_checkpoint_next(&p, ','));
	return weft_checkpoint_next(&p, '}') && !p[strspn(p, " \t\r\n")];
}

/* Private: closes a file. */
static inline void weft_checkpoint_close(WeftCheckpointFile *c)
{
	if (c->f)
		fclose(c->f);
	free(c->head);
	free(c->tensor);
}

/* Private: opens a file, and reads its header. find: a key of the texts, or NULL. The caller closes
 * it, also after an error. */
static inline int weft_checkpoint_open(WeftCheckpointFile *c, const char *path, const char *find,
				       WeftStatus *status)
{
	unsigned char length[8];
	uint64_t n = 0;
	memset(c, 0, sizeof *c);
	c->path = path;
	c->find = find;
	c->f = fopen(path, "rb");
	if (!c->f || fseek(c->f, 0, SEEK_END) || ftell(c->f) < 0)
		return weft_checkpoint_fail(status, WEFT_ERR_FILE, path, "cannot be read: %s",
					    strerror(errno));
	c->end = (uint64_t)ftell(c->f);
	rewind(c->f);
	if (fread(length, 1, 8, c->f) != 8 && ferror(c->f))
		return weft_checkpoint_fail(status, WEFT_ERR_FILE, path, "cannot be read: %s",
					    strerror(errno));
	if (feof(c->f))
		return weft_checkpoint_fail(status, WEFT_ERR_FILE, path,
					    "is no .safetensors file, or truncated");
	for (unsigned k = 8; k--;)
		n = n << 8 | length[k];
	if (n > WEFT_CHECKPOINT_HEAD || n > c->end - 8)
		return weft_checkpoint_fail(status, WEFT_ERR_FILE, path,
					    "is no .safetensors file, or truncated");
	c->data = n + 8;
	c->head = (char *)malloc((size_t)n + 1);
	if (!c->head)
		return weft_checkpoint_fail(status, WEFT_ERR_MEMORY, path, "out of memory");
	if (fread(c->head, 1, (size_t)n, c->f) != n)
		return weft_checkpoint_fail(status, WEFT_ERR_FILE, path, "cannot be read");
	c->head[n] = 0;
	return weft_checkpoint_parse(c)
		       ? WEFT_OK
		       : weft_checkpoint_fail(status, WEFT_ERR_FILE, path,
					      "is no .safetensors file, or damaged or truncated");
}

/* Private: finds the tensor of that name, from *next on, where the search before it ended; NULL if
 * there is none. */
static inline const WeftCheckpointTensor *weft_checkpoint_find(const WeftCheckpointFile *c,
							       const char *name, uint32_t *next)
{
	for (uint32_t k = 0; k < c->n; k++) {
		const uint32_t at = (*next + k) % c->n;
		if (strcmp(c->tensor[at].name, name))
			continue;
		*next = at + 1;
		return &c->tensor[at];
	}
	return NULL;
}

/* Private: writes dtype and shape, "F32[2,3]". */
static inline void weft_checkpoint_type(char out[400], const char *dtype, uint32_t rank,
					const int64_t *shape)
{
	int n = snprintf(out, 400, "%.20s[", dtype);
	for (uint32_t d = 0; d < rank; d++)
		n += snprintf(out + n, (size_t)(400 - n), "%s%lld", d ? "," : "",
			      (long long)shape[d]);
	snprintf(out + n, (size_t)(400 - n), "]");
}

/* Private: compares a tensor with the state that it is of, or a part of. */
static inline int weft_checkpoint_like(const WeftCheckpointFile *c, const WeftModel *m, uint32_t k,
				       const WeftCheckpointTensor *t, WeftStatus *status)
{
	const WeftTensorInfo *info = weft_state_info(m, k);
	uint32_t first;
	const uint32_t parts = weft_checkpoint_parts(m, k, &first);
	const uint32_t rank = parts ? 0 : info->rank;
	int64_t shape[WEFT_CHECKPOINT_RANK] = {0};
	char has[400], want[400];
	for (uint32_t d = 0; d < rank; d++)
		shape[d] = weft_dim(m, info, d)->value;
	weft_checkpoint_type(has, t->dtype, t->rank, t->shape);
	weft_checkpoint_type(want, weft_checkpoint_dtype(info->dtype), rank, shape);
	if (strcmp(has, want))
		return weft_checkpoint_fail(status, WEFT_ERR_INPUT, c->path,
					    "%.100s is %.150s, the model's state %.150s", t->name,
					    has, want);
	if (t->to - t->from != weft_checkpoint_bytes(m, info) / (parts ? parts : 1))
		return weft_checkpoint_fail(status, WEFT_ERR_FILE, c->path,
					    "%.200s has another number of bytes than its shape",
					    t->name);
	return WEFT_OK;
}

/* Private: compares names, dtypes and shapes with the model's. */
static inline int weft_checkpoint_fits(const WeftCheckpointFile *c, const WeftModel *m,
				       WeftStatus *status)
{
	char name[WEFT_CHECKPOINT_NAME], *used = (char *)calloc(c->n + 1, 1);
	int code = used ? WEFT_OK
			: weft_checkpoint_fail(status, WEFT_ERR_MEMORY, c->path, "out of memory");
	uint32_t next = 0;
	for (uint32_t k = 0; k < m->nstate && !code; k++)
		for (uint32_t i = 0; i < weft_checkpoint_tensors(m, k) && !code; i++) {
			const WeftCheckpointTensor *t =
				weft_checkpoint_name(m, k, i, name)
					? NULL
					: weft_checkpoint_find(c, name, &next);
			if (!t)
				code = weft_checkpoint_fail(
					status, WEFT_ERR_ARGUMENT, c->path,
					"no tensor %.200s, which is state of the model", name);
			else
				code = weft_checkpoint_like(c, m, k, t, status);
			if (t)
				used[t - c->tensor] = 1;
		}
	for (uint32_t k = 0; k < c->n && !code; k++)
		if (!used[k])
			code = weft_checkpoint_fail(status, WEFT_ERR_ARGUMENT, c->path,
						    "the model has no state %.200s",
						    c->tensor[k].name);
	free(used);
	return code;
}

/* Private: reads all state of a file that fits. */
static inline int weft_checkpoint_set(const WeftCheckpointFile *c, const WeftModel *m,
				      WeftInstance *in, void *room, WeftStatus *status)
{
	char name[WEFT_CHECKPOINT_NAME];
	uint32_t next = 0;
	for (uint32_t k = 0; k < m->nstate; k++) {
		char *to = (char *)room;
		for (uint32_t i = 0; i < weft_checkpoint_tensors(m, k); i++) {
			weft_checkpoint_name(m, k, i, name);
			const WeftCheckpointTensor *t = weft_checkpoint_find(c, name, &next);
			const size_t n = (size_t)(t->to - t->from);
			if (fseek(c->f, (long)t->from, SEEK_SET) || fread(to, 1, n, c->f) != n)
				return weft_checkpoint_fail(
					status, WEFT_ERR_FILE, c->path,
					"%.200s cannot be read; state before it was set", name);
			to += n;
		}
		const int code = weft_checkpoint_move(m, in, k, 1, room, status);
		if (code)
			return code;
	}
	return WEFT_OK;
}

/* Sets all state of the instance from a file. Names, dtypes and shapes are compared first: a file
 * of another model, or one that is not whole, changes nothing, and the message names the first
 * tensor that differs. Returns WEFT_OK, or an error code with the reason in the status, which may
 * be NULL. */
static inline int weft_checkpoint_load(const WeftModel *m, WeftInstance *in, const char *path,
				       WeftStatus *status)
{
	WeftCheckpointFile c;
	int code = weft_checkpoint_check(m, in, path, status);
	if (code)
		return code;
	code = weft_checkpoint_open(&c, path, NULL, status);
	if (!code)
		code = weft_checkpoint_fits(&c, m, status);
	if (!code) {
		void *room = weft_checkpoint_room(m);
		code = room ? weft_checkpoint_set(&c, m, in, room, status)
			    : weft_checkpoint_fail(status, WEFT_ERR_MEMORY, path, "out of memory");
		free(room);
	}
	weft_checkpoint_close(&c);
	return code ? code : weft_checkpoint_done(status);
}

/* Copies the text of a key into text[bytes]. Returns WEFT_OK, or an error code with the reason in
 * the status, which may be NULL: the file has no such key, or the text is longer. */
static inline int weft_checkpoint_meta(const char *path, const char *key, char *text, size_t bytes,
				       WeftStatus *status)
{
	WeftCheckpointFile c;
	if (!path || !key || !text || !bytes)
		return weft_checkpoint_fail(status, WEFT_ERR_ARGUMENT, path ? path : "?",
					    "the path, the key or the text is missing: NULL");
	int code = weft_checkpoint_open(&c, path, key, status);
	if (!code && !c.found)
		code = weft_checkpoint_fail(status, WEFT_ERR_ARGUMENT, path,
					    "it has no text %.200s", key);
	if (!code && strlen(c.found) >= bytes)
		code = weft_checkpoint_fail(status, WEFT_ERR_ARGUMENT, path,
					    "its text %.200s is longer than %llu bytes", key,
					    (unsigned long long)bytes - 1);
	if (!code)
		memcpy(text, c.found, strlen(c.found) + 1);
	weft_checkpoint_close(&c);
	return code ? code : weft_checkpoint_done(status);
}

#ifdef __cplusplus
}
#endif
#endif
