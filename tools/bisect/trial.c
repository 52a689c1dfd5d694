/* Whether a piece differs, found out in a process of its own, which may crash; and pieces that
 * become smaller while they do. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bisect/bisect.h"

/* ---- in the process of a trial ---- */

/* What the process says of an output. */
typedef struct {
	uint32_t at; /* the step */
	Comparison c;
} Finding;

/* Whether the output is the new value of an input: these are among the results, but not among the
 * graph's outputs. */
static bool is_written_input(const Runner *r, uint32_t k)
{
	for (uint32_t i = 0; i < r->ninput; i++)
		if (!strcmp(runner_input(r, i)->name, runner_output(r, k)->name))
			return true;
	return false;
}

static bool compare_all(const Runner *r, const Piece *p, FILE *findings)
{
	const Tolerance usual = {.eager_err = -1};
	uint32_t n = 0;
	for (uint32_t k = 0; k < r->noutput && n < p->nout; k++) {
		if (is_written_input(r, k))
			continue;
		const WeftTensor *want = &p->out[n];
		const Finding f = {p->from[n++],
				   compare(&r->result[k], want, want->dtype, &usual)};
		if (fwrite(&f, sizeof f, 1, findings) != 1)
			return false;
	}
	return n == p->nout;
}

static bool try_piece(const Judge *j, const Model *m, const bool *keep, Form form, FILE *findings)
{
	Piece p;
	Runner r;
	return (keep ? piece_make(m, keep, form, &p) : piece_whole(m, &p)) &&
	       (form.weights == AS_CONSTANTS || piece_print(m, &p)) && piece_interpret(m, &p) &&
	       runner_take(&r, m->w, p.g, m->path, &j->run) && runner_prepare(&r, p.in) &&
	       runner_reset(&r) && runner_call(&r, p.in, j->threads, NULL, NULL) &&
	       compare_all(&r, &p, findings);
}

/* ---- the verdict ---- */

static Verdict read_findings(FILE *f, bool *wrong, Comparison *worst, uint32_t *at)
{
	Finding one;
	bool differs = false;
	rewind(f);
	while (fread(&one, sizeof one, 1, f) == 1) {
		if (wrong && !one.c.ok)
			wrong[one.at] = true;
		if (!one.c.ok && worst && (!differs || one.c.share > worst->share)) {
			*worst = one.c;
			*at = one.at;
		}
		differs |= !one.c.ok;
	}
	return differs ? DIFFERS : AGREES;
}

/* Tries a piece in a child. Messages of pieces that are refused say nothing to the user: only
 * the whole model's are shown. */
static int run_child(const Judge *j, const Model *m, const bool *keep, Form form, FILE *findings)
{
	die_with_parent();
	progress_child(false);
	if (keep && !freopen("/dev/null", "w", stderr))
		return 1;
	const bool ok = try_piece(j, m, keep, form, findings);
	fflush(NULL);
	return ok ? 0 : 1;
}

Verdict judge(Judge *j, const Model *m, const bool *keep, Form form, bool *wrong, Comparison *worst,
	      uint32_t *at)
{
	int status;
	FILE *findings = tmpfile();
	j->trials++;
	fflush(NULL);
	const pid_t pid = findings ? fork() : -1;
	if (pid == 0)
		_exit(run_child(j, m, keep, form, findings));
	Verdict v = REFUSED;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		fail("cannot start a process");
	else if (WIFSIGNALED(status))
		v = j->crashes || !keep ? DIFFERS : REFUSED;
	else if (!WEXITSTATUS(status))
		v = j->crashes ? AGREES : read_findings(findings, wrong, worst, at);
	if (!keep)
		j->crashes = pid > 0 && WIFSIGNALED(status);
	if (findings)
		fclose(findings);
	return v;
}

bool fails_again(const char *const *words)
{
	int status;
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		die_with_parent();
		progress_child(false);
		if (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr))
			execv("/proc/self/exe", (char *const *)(uintptr_t)words);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid &&
	       (WIFSIGNALED(status) || WEXITSTATUS(status) == 1);
}

/* ---- smaller ones ---- */

typedef struct {
	Judge *j;
	const Model *m;
	bool *keep;     /* differs */
	bool *trial;
	uint32_t *step; /* those that are kept, n of them */
	uint32_t n, all;
} Reducing;

static bool differs(Reducing *r, const bool *keep)
{
	const Form same = {AS_CONSTANTS, KEEP_VALUES, KEEP_VALUES, false};
	progress_show("%u of %u operators still differ, trial %u", (unsigned)r->n,
		      (unsigned)r->all, (unsigned)r->j->trials + 1);
	return judge(r->j, r->m, keep, same, NULL, NULL, NULL) == DIFFERS;
}

static void list_kept(Reducing *r)
{
	r->n = 0;
	for (uint32_t k = 0; k < r->m->n; k++)
		if (r->keep[k])
			r->step[r->n++] = k;
}

static bool time_left(const Reducing *r)
{
	return now() < r->j->end;
}

/* Tries part k of n of the steps that are kept alone, or all but that part. */
static bool try_part(Reducing *r, uint32_t k, uint32_t n, bool alone)
{
	const uint32_t from = (uint32_t)((uint64_t)r->n * k / n),
		       to = (uint32_t)((uint64_t)r->n * (k + 1) / n);
	memset(r->trial, 0, r->m->n * sizeof *r->trial);
	for (uint32_t i = 0; i < r->n; i++)
		r->trial[r->step[i]] = (i >= from && i < to) == alone;
	if (!differs(r, r->trial))
		return false;
	memcpy(r->keep, r->trial, r->m->n * sizeof *r->keep);
	list_kept(r);
	return true;
}

/* Finds the one operator that is wrong by itself, as it is most often: all of them in one graph,
 * each on its own inputs, tell which; alone it must differ, too. */
static bool find_single(Reducing *r)
{
	const Form apart = {AS_CONSTANTS, KEEP_VALUES, KEEP_VALUES, true};
	bool *wrong = calloc(r->m->n + 1, sizeof *wrong), found = false;
	if (wrong)
		judge(r->j, r->m, r->keep, apart, wrong, NULL, NULL);
	for (uint32_t k = 0; wrong && k < r->m->n && !found && time_left(r); k++) {
		if (!wrong[k])
			continue;
		memset(r->trial, 0, r->m->n * sizeof *r->trial);
		r->trial[k] = true;
		found = differs(r, r->trial);
	}
	if (found) {
		memcpy(r->keep, r->trial, r->m->n * sizeof *r->keep);
		list_kept(r);
	}
	free(wrong);
	return found;
}

/* Tries parts of half the steps, a quarter, ...: as long as one of them alone, or all without
 * one, differs. */
static void halve(Reducing *r)
{
	for (uint32_t n = 2; r->n > 1 && time_left(r);) {
		bool smaller = false;
		for (uint32_t k = 0; k < n && !smaller && n < r->n && time_left(r); k++)
			if ((smaller = try_part(r, k, n, true)))
				n = 2;
		for (uint32_t k = 0; k < n && !smaller && time_left(r); k++)
			if ((smaller = try_part(r, k, n, false)))
				n = n > 2 ? n - 1 : 2;
		if (!smaller && n >= r->n)
			return;
		if (!smaller)
			n = 2 * n < r->n ? 2 * n : r->n;
		n = n > r->n ? r->n : n;
	}
}

void reduce(Judge *j, const Model *m, bool *keep)
{
	Reducing r = {.j = j, .m = m, .keep = keep};
	r.trial = calloc(m->n + 1, sizeof *r.trial);
	r.step = calloc(m->n + 1, sizeof *r.step);
	if (r.trial && r.step) {
		list_kept(&r);
		r.all = r.n;
		if (!find_single(&r))
			halve(&r);
	}
	free(r.trial);
	free(r.step);
}
