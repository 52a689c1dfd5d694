/* What is found, as a folder or a .zip file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/bisect/bisect.h"

extern const char values_py[]; /* tools/bisect/values.py, embedded at build time */

enum { FILES = 3 };

typedef struct {
	const char *name;
	const char *data;
	size_t n;
} File;

/* ---- tensors ---- */

static bool add_all(Weft *w, WeftTensors *t, const char *kind, const WeftTensor *from, uint32_t n)
{
	char name[32];
	for (uint32_t k = 0; k < n; k++) {
		snprintf(name, sizeof name, "%s.%u", kind, (unsigned)k);
		if (!weft_tensors_add(w, t, name, &from[k]))
			return false;
	}
	return true;
}

/* Reads the bytes of a file, which the caller frees. */
static char *read_file(const char *path, size_t *n)
{
	struct stat st;
	FILE *f = stat(path, &st) == 0 ? fopen(path, "rb") : NULL;
	char *data = f ? malloc((size_t)st.st_size + 1) : NULL;
	*n = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
	if (f)
		fclose(f);
	if (!data || *n != (size_t)st.st_size)
		return free(data), fail("%s: cannot be read again", path), NULL;
	return data;
}

/* Makes a temporary file of tensors; sets path to its name. */
static bool new_file(char path[4096])
{
	const char *base = getenv("TMPDIR");
	snprintf(path, 4096, "%s/weft-bisect-XXXXXX.safetensors", base && *base ? base : "/tmp");
	const int fd = mkstemps(path, (int)strlen(".safetensors"));
	if (fd < 0)
		return fail_open(path), false;
	weft_temporary(path);
	close(fd);
	return true;
}

static void end_file(const char *path)
{
	unlink(path);
	weft_not_temporary(path);
}

/* Returns the bytes that a file of tensors has: there is one for a while. */
static char *tensors_text(Weft *w, const Piece *p, size_t *n)
{
	char path[4096];
	if (!new_file(path))
		return NULL;
	WeftTensors *t = weft_tensors_new(w);
	const bool ok = t && add_all(w, t, "x", p->in, p->nin) &&
			add_all(w, t, "y", p->out, p->nout) && weft_tensors_write(w, t, path);
	char *data = ok ? read_file(path, n) : (fail_messages(w), NULL);
	end_file(path);
	return data;
}

const WeftTensors *peer_values(Weft *w, const char *python, const char *peer, const char *path,
			       const WeftTensor *in, uint32_t nin)
{
	char inputs[4096], output[4096];
	const WeftTensors *values = NULL;
	WeftTensors *t = weft_tensors_new(w);
	FILE *out = tmpfile();
	if (!t || !out || !new_file(inputs))
		return NULL;
	if (new_file(output)) {
		const char *arg[] = {path, peer, inputs, output};
		if (!add_all(w, t, "x", in, nin) || !weft_tensors_write(w, t, inputs))
			fail_messages(w);
		else if (python_run(python, peer, values_py, arg, 4, out) &&
			 !(values = weft_tensors_read(w, output)))
			fail_messages(w);
		end_file(output);
	}
	end_file(inputs);
	fclose(out);
	return values;
}

/* ---- a zip file: its members are stored ---- */

typedef struct {
	char *data;
	size_t n, room;
	bool failed;
} GrowingBytes;

static void put(GrowingBytes *b, const void *data, size_t n)
{
	if (b->n + n > b->room) {
		const size_t room = 2 * (b->n + n) + 256;
		char *more = b->failed ? NULL : realloc(b->data, room);
		b->failed |= !more;
		if (!more)
			return;
		b->data = more;
		b->room = room;
	}
	memcpy(b->data + b->n, data, n);
	b->n += n;
}

/* Puts a number, the lowest byte first. */
static void put_number(GrowingBytes *b, uint64_t v, int bytes)
{
	unsigned char text[8];
	for (int k = 0; k < bytes; k++)
		text[k] = (unsigned char)(v >> (8 * k));
	put(b, text, (size_t)bytes);
}

static uint32_t crc_of(const char *data, size_t n)
{
	uint32_t crc = 0xffffffffu;
	for (size_t i = 0; i < n; i++) {
		crc ^= (unsigned char)data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return ~crc;
}

/* Puts what the header in front of a member and its line of the directory share: version, flags,
 * method, time, date (1 January 1980), checksum, sizes, the length of the name, and no more
 * fields. */
static void put_facts(GrowingBytes *b, const File *f)
{
	put_number(b, 20, 2);
	put_number(b, 0, 2);
	put_number(b, 0, 2);
	put_number(b, 0, 2);
	put_number(b, 1 << 5 | 1, 2);
	put_number(b, crc_of(f->data, f->n), 4);
	put_number(b, f->n, 4);
	put_number(b, f->n, 4);
	put_number(b, strlen(f->name), 2);
	put_number(b, 0, 2);
}

static bool make_zip(const File *file, GrowingBytes *b)
{
	uint64_t at[FILES];
	for (int k = 0; k < FILES; k++) {
		at[k] = b->n;
		put_number(b, 0x04034b50, 4);
		put_facts(b, &file[k]);
		put(b, file[k].name, strlen(file[k].name));
		put(b, file[k].data, file[k].n);
	}
	const uint64_t start = b->n;
	for (int k = 0; k < FILES; k++) {
		put_number(b, 0x02014b50, 4);
		put_number(b, 20, 2);
		put_facts(b, &file[k]);
		put_number(b, 0, 2); /* no comment, disk 0, attributes */
		put_number(b, 0, 2);
		put_number(b, 0, 2);
		put_number(b, 0, 4);
		put_number(b, at[k], 4);
		put(b, file[k].name, strlen(file[k].name));
	}
	const uint64_t end = b->n;
	put_number(b, 0x06054b50, 4);
	put_number(b, 0, 4);
	put_number(b, FILES, 2);
	put_number(b, FILES, 2);
	put_number(b, end - start, 4);
	put_number(b, start, 4);
	put_number(b, 0, 2);
	if (b->failed)
		return fail("out of memory"), false;
	return b->n < UINT32_MAX ||
	       (fail("%zu bytes are too many for a .zip file: -o FOLDER", b->n), false);
}

/* ---- both ---- */

static bool write_folder(Weft *w, const char *folder, const File *file)
{
	char path[4096];
	if (mkdir(folder, 0777) && errno != EEXIST)
		return fail("%s: cannot make the folder: %s", folder, strerror(errno)), false;
	for (int k = 0; k < FILES; k++) {
		snprintf(path, sizeof path, "%s/%s", folder, file[k].name);
		if (!weft_write_file(w, path, file[k].data, file[k].n))
			return fail_messages(w), false;
	}
	return true;
}

void archive_remove(const char *folder)
{
	static const char *const name[FILES] = {"report.txt", "graph.ir", "graph.safetensors"};
	char path[4096];
	for (int k = 0; k < FILES; k++) {
		snprintf(path, sizeof path, "%s/%s", folder, name[k]);
		unlink(path);
	}
	rmdir(folder);
}

static bool write_zip(Weft *w, const char *path, const File *file)
{
	GrowingBytes b = {0};
	const bool ok = make_zip(file, &b) &&
			(weft_write_file(w, path, b.data, b.n) || (fail_messages(w), false));
	free(b.data);
	return ok;
}

bool archive_write(Weft *w, const Piece *p, const Archive *a)
{
	size_t n = 0;
	char *tensors = tensors_text(w, p, &n);
	if (!tensors)
		return false;
	const File file[FILES] = {{"report.txt", a->report, strlen(a->report)},
				  {"graph.ir", a->graph, strlen(a->graph)},
				  {"graph.safetensors", tensors, n}};
	const bool ok = has_suffix(a->out, ".zip") ? write_zip(w, a->out, file)
						   : write_folder(w, a->out, file);
	free(tensors);
	return ok;
}
