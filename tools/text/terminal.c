/* The terminal: how wide it is, and what says how far a command is: a line that is rewritten, or
 * lines where stderr is no terminal. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/tool.h"

int terminal_width(int fd)
{
	struct winsize size;
	const char *text = getenv("COLUMNS");
	const int given = text ? atoi(text) : 0;
	if (given > 0)
		return given;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 100;
}

/* ---- progress ---- */

enum { LINE = 256, AFTER = 1 /* seconds, after which the line is shown, or between two lines */ };

static const char again[] = "\r\033[K"; /* removes the line */

/* A handler of a signal shows the line: what it reads changes in one step. */
static struct {
	int fd; /* a copy of stderr, which check redirects; 0: nothing is shown */
	bool plain; /* lines, which are not rewritten */
	int width;
	double start;
	double *last;       /* when a plain line was written, by this process or by another one */
	char text[2][LINE]; /* with what rewrites the line in front, or with the end of the line */
	volatile sig_atomic_t now, due; /* which text; whether it is time to show one */
	char before[100]; /* progress_prefix */
} line;

static void put(const char *text)
{
	const size_t n = strlen(text);
	if (write(line.fd, text, n) < (ssize_t)n)
		line.fd = 0;
}

/* Shows the text that stands now, if there is one. The next plain line is due a second later. */
static void put_line(void)
{
	const char *text = line.text[line.now];
	if (line.plain && *text) {
		line.due = 0;
		*line.last = now();
	}
	put(text);
}

/* Sets the clock. A program that this one starts has no such clock. */
static void set_clock(void)
{
	const double left = AFTER - (now() - (line.plain ? *line.last : line.start));
	line.due = left <= 0;
	if (!line.due)
		alarm(1);
}

static void on_time(int sig)
{
	(void)sig;
	if (!line.fd)
		return;
	set_clock();
	if (line.due)
		put_line();
}

/* Returns memory of this process and of those that it will fork. */
static double *shared_time(void)
{
	static double own;
	void *shared =
		mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? &own : shared;
}

void progress_begin(bool always)
{
	const struct sigaction on = {.sa_handler = on_time, .sa_flags = SA_RESTART};
	if (!always && !isatty(2))
		return;
	line.fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
	line.fd = line.fd < 0 ? 0 : line.fd;
	line.plain = !isatty(2);
	line.width = line.plain ? LINE : terminal_width(2);
	line.start = now();
	line.last = shared_time();
	*line.last = line.start;
	sigaction(SIGALRM, &on, NULL);
	set_clock();
}

void progress_prefix(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line.before, sizeof line.before, fmt, ap);
	va_end(ap);
}

void progress_show(const char *fmt, ...)
{
	const int next = !line.now;
	if (!line.fd)
		return;
	const char *first = line.plain ? "" : again;
	const size_t start = strlen(first);
	char *text = line.text[next];
	const size_t n = (size_t)snprintf(text, LINE, "%s%s", first, line.before);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text + n, LINE - n, fmt, ap);
	va_end(ap);
	/* what is wider than the terminal cannot be rewritten */
	const size_t most = start + (size_t)(line.width > 2 ? line.width - 1 : 1);
	text[most < LINE - 1 ? most : LINE - 2] = 0;
	for (char *p = text + start; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	if (line.plain)
		strcat(text, "\n");
	line.now = next;
	if (line.plain && !line.due)
		set_clock();
	if (line.due)
		put_line();
}

void progress_phase(void *user, const char *phase, uint32_t done, uint32_t total)
{
	static const struct {
		const char *phase, *words;
	} known[] = {{"hash", "hashing weights"}, {"lower", "kernels"},   {"schedule", "schedules"},
		     {"llvm", "code"},            {"cc", "code"},         {"link", "linking"}};
	(void)user;
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		if (!strcmp(phase, known[k].phase))
			phase = known[k].words;
	if (done == total && total < 2) /* it is over, and the next one tells */
		return;
	if (total < 2)
		progress_show("%s", phase);
	else
		progress_show("%s, %u of %u", phase, (unsigned)done, (unsigned)total);
}

void progress_clear(void)
{
	if (line.fd && line.due && !line.plain) /* also what a child has shown */
		put(again);
}

void progress_end(void)
{
	const int fd = line.fd;
	if (!fd)
		return;
	alarm(0);
	progress_clear();
	line.fd = 0;
	close(fd);
}

void progress_child(bool shows)
{
	if (!line.fd)
		return;
	if (shows)
		set_clock();
	else
		line.fd = 0;
}
