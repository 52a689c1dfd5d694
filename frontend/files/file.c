#include "frontend/files/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
	void *data;
	size_t size;
	int fd;
} Mapping;

static void unmap(void *arg)
{
	Mapping *m = arg;
	if (m->data)
		munmap(m->data, m->size);
	if (m->fd >= 0)
		close(m->fd);
}

bool file_map(Ctx *ctx, const char *path, FileMap *out)
{
	static uint8_t empty;
	*out = (FileMap){arena_strdup(ctx->arena, path), &empty, 0};
	Mapping *m = ARENA_NEW(ctx->arena, Mapping);
	m->fd = -1;
	ctx_defer(ctx, unmap, m);
	/* a FIFO would wait for a writer */
	m->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (m->fd < 0)
		return ctx_error(ctx, path, "cannot open: %s", strerror(errno)) ||
		       ctx_kind(ctx, REFUSAL_PATH);
	struct stat st;
	if (fstat(m->fd, &st) < 0)
		return ctx_error(ctx, path, "cannot read: %s", strerror(errno)) ||
		       ctx_kind(ctx, REFUSAL_PATH);
	if (!S_ISREG(st.st_mode))
		return ctx_error(ctx, path, "not a regular file") || ctx_kind(ctx, REFUSAL_PATH);
	if (st.st_size > 0) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, m->fd,
			       0);
		if (p == MAP_FAILED)
			return ctx_error(ctx, path, "cannot map: %s", strerror(errno));
		m->data = p;
		m->size = (size_t)st.st_size;
		out->data = p;
		out->size = m->size;
	}
	close(m->fd);
	m->fd = -1;
	return true;
}

bool file_map_full(Ctx *ctx, const char *path, FileMap *out)
{
	TRY(file_map(ctx, path, out));
	return out->size || ctx_error(ctx, path, "the file is empty") ||
	       ctx_kind(ctx, REFUSAL_FILE);
}

const char *file_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static const char *skip_zeros(const char *s)
{
	while (*s == '0' && isdigit((unsigned char)s[1]))
		s++;
	return s;
}

static int compare_digits(const char **a, const char **b)
{
	const char *x = skip_zeros(*a), *y = skip_zeros(*b);
	size_t nx = strspn(x, "0123456789"), ny = strspn(y, "0123456789");
	*a = x + nx;
	*b = y + ny;
	return nx != ny ? (nx < ny ? -1 : 1) : strncmp(x, y, nx);
}

int name_compare(const char *a, const char *b)
{
	const char *x = a, *y = b;
	while (*x && *y) {
		if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
			int c = compare_digits(&x, &y);
			if (c)
				return c;
		} else if (*x != *y) {
			return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
		} else {
			x++, y++;
		}
	}
	if (*x || *y)
		return *x ? 1 : -1;
	return strcmp(a, b); /* "x.01" and "x.1" are different names */
}
