/* The terminal: how wide it is, and the line that says how far a command is. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

enum { LINE = 256, AFTER = 1 /* seconds, after which the line is shown */ };

/* A handler of a signal shows the line: what it reads changes in one step. */
static struct {
	int fd; /* a copy of stderr, which check redirects; 0: nothing is shown */
	int width;
	double start;
	char text[2][LINE];   /* with what rewrites the line in front */
	volatile sig_atomic_t now, due; /* which text; whether it is time to show one */
	char before[100]; /* progress_prefix */
} line;

static void put(const char *text)
{
	const size_t n = strlen(text);
	if (write(line.fd, text, n) < (ssize_t)n)
		line.fd = 0;
}

static void on_time(int sig)
{
	(void)sig;
	line.due = 1;
	if (line.fd)
		put(line.text[line.now]);
}

/* Sets the clock. A program that this one starts has no such clock. */
static void set_clock(void)
{
	const double left = AFTER - (now() - line.start);
	line.due = left <= 0;
	if (!line.due)
		alarm(1);
}

void progress_begin(bool always)
{
	const struct sigaction on = {.sa_handler = on_time, .sa_flags = SA_RESTART};
	if (!always && !isatty(2))
		return;
	line.fd = fcntl(2, F_DUPFD_CLOEXEC, 3);
	line.fd = line.fd < 0 ? 0 : line.fd;
	line.width = terminal_width(2);
	line.start = now();
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
	static const char again[] = "\r\033[K";
	const int next = !line.now;
	if (!line.fd)
		return;
	char *text = line.text[next];
	size_t n = (size_t)snprintf(text, LINE, "%s%s", again, line.before);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text + n, LINE - n, fmt, ap);
	va_end(ap);
	/* what is wider than the terminal cannot be rewritten */
	const size_t most = sizeof again - 1 + (size_t)(line.width > 2 ? line.width - 1 : 1);
	text[most < LINE ? most : LINE - 1] = 0;
	for (char *p = text + sizeof again - 1; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	line.now = next;
	if (line.due)
		put(text);
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
	if (line.fd && line.due) /* also what a child has shown */
		put("\r\033[K");
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
