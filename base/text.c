#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"
#include "base/temp.h"

enum { FIRST_CAP = 64 };

void text_init(Text *t, Arena *arena)
{
	*t = (Text){arena, arena_alloc(arena, FIRST_CAP), 0, FIRST_CAP};
}

/* Makes room for n more bytes and the NUL. */
static void reserve(Text *t, size_t n)
{
	if (n < t->cap - t->n)
		return;
	size_t cap = t->cap > n ? t->cap * 2 : t->cap + n + 1;
	char *data = arena_alloc(t->arena, cap);
	memcpy(data, t->data, t->n);
	t->data = data;
	t->cap = cap;
}

void text_addn(Text *t, const char *s, size_t n)
{
	if (!n)
		return;
	reserve(t, n);
	memcpy(t->data + t->n, s, n);
	t->n += n;
	t->data[t->n] = 0;
}

void text_add(Text *t, const char *s)
{
	text_addn(t, s, strlen(s));
}

void text_char(Text *t, char c)
{
	text_addn(t, &c, 1);
}

void text_vprintf(Text *t, const char *fmt, va_list args)
{
	va_list again;
	va_copy(again, args);
	int n = format_text(t->data + t->n, t->cap - t->n, fmt, args);
	if (n > 0 && (size_t)n >= t->cap - t->n) {
		reserve(t, (size_t)n);
		format_text(t->data + t->n, t->cap - t->n, fmt, again);
	}
	va_end(again);
	t->n += n > 0 ? (size_t)n : 0;
}

void text_printf(Text *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	text_vprintf(t, fmt, args);
	va_end(args);
}

void text_format(Text *t, const char *s)
{
	for (; *s; s++)
		text_addn(t, *s == '%' ? "%%" : s, *s == '%' ? 2 : 1);
}

void text_double(Text *t, double v)
{
	if (isnan(v)) {
		text_add(t, "nan");
		return;
	}
	if (isinf(v)) {
		text_add(t, v < 0 ? "-inf" : "inf");
		return;
	}
	char s[40];
	/* %g drops trailing zeros, so 9 digits give the shortest of 1 to 9 where v has that
	 * many. */
	for (int digits = fabs(v) < DBL_MIN ? 1 : 9; digits <= 17; digits++) {
		snprintf(s, sizeof s - 2, "%.*g", digits, v);
		if (strtod(s, NULL) == v)
			break;
	}
	for (char *p = s; *p; p++)
		if (*p == ',') /* the locale's decimal point */
			*p = '.';
	if (!strpbrk(s, ".e"))
		strcat(s, ".0");
	text_add(t, s);
}

static bool write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

static bool write_and_close(int fd, const Text *t)
{
	bool ok = write_all(fd, t->data, t->n);
	int why = errno;
	if (close(fd) && ok)
		return false;
	errno = why;
	return ok;
}

/* Creates a new file beside path and returns its descriptor; sets *temp to its name. Returns a
 * negative number after an error. */
static int open_temp(const Text *t, const char *path, char **temp)
{
	for (int k = 0;; k++) {
		*temp = arena_printf(t->arena, "%s.tmp%ld.%d", path, (long)getpid(), k);
		temp_begin(*temp);
		int fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		temp_end(*temp);
		if (errno != EEXIST || k == 1000)
			return fd;
	}
}

bool text_write_file(const Text *t, const char *path)
{
	struct stat st;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) { /* a terminal, a pipe, /dev/null */
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		return fd >= 0 && write_and_close(fd, t);
	}
	char *temp;
	int fd = open_temp(t, path, &temp);
	if (fd < 0)
		return false;
	bool ok = write_and_close(fd, t) && !rename(temp, path);
	int why = errno;
	if (!ok)
		unlink(temp);
	temp_end(temp);
	errno = why;
	return ok;
}

bool text_ends(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n >= k && !strcmp(s + n - k, end);
}

bool text_is_identifier(const char *s)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	return *s && !strchr("0123456789", *s) && !s[strspn(s, letters)];
}
