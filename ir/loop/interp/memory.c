/* Memory as compiled code sees it, and the shadow that knows better. */
#include "ir/loop/interp/priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

bool loop_stop(Interp *in, LoopOutcome outcome, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (in->outcome == LOOP_DONE) {
		in->outcome = outcome;
		vsnprintf(in->report->message, sizeof in->report->message, fmt, ap);
	}
	va_end(ap);
	return false;
}

bool loop_finding(const Access *a, const char *fmt, ...)
{
	char where[200] = "", what[240], thread[24] = "";
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (a->s && *ls_subject(a->f, a->s))
		snprintf(where, sizeof where, "%s %s: ", ls_row(a->s->kind)->name,
			 ls_subject(a->f, a->s));
	else if (a->s && ls_row(a->s->kind)->block)
		snprintf(where, sizeof where, "%s %u: ", ls_row(a->s->kind)->name,
			 ls_number(a->f, a->s));
	else if (a->s)
		snprintf(where, sizeof where, "%s: ", ls_row(a->s->kind)->name);
	if (a->f->threads > 1)
		snprintf(thread, sizeof thread, ", thread %u", a->thread);
	if (!a->in->call)
		return loop_stop(a->in, LOOP_FINDING, "loop IR of %s: %s%s", a->f->name, where,
				 what);
	return loop_stop(a->in, LOOP_FINDING, "loop IR of %.60s (kernel %.60s), task %u%s: %s%s",
			 a->in->call, a->f->name, a->task, thread, where, what);
}

static const char *owner_name(const ProgramEntry *e, uint32_t owner)
{
	for (uint32_t c = 0; c < e->ncall; c++) {
		const ProgramCall *call = program_call(e, c);
		for (uint32_t k = 0; call->arg && k < e->program->fn.data[call->fn]->buf.n; k++)
			if (call->arg[k].owner == owner)
				return call->arg[k].name;
	}
	return "another buffer";
}

/* ---- touching ---- */

static bool race(const Access *a, const View *v, uint64_t at, const char *how, uint32_t other)
{
	if (other == SEVERAL_TASKS)
		return loop_finding(
			a, "%s byte %llu of buffer %s, which other tasks of the same phase read",
			how, (unsigned long long)at, v->name);
	return loop_finding(
		a, "%s byte %llu of buffer %s, which task %u of the same phase touches too", how,
		(unsigned long long)at, v->name, other);
}

static bool bad_read(const Access *a, const View *v, uint64_t at, const Shadow *s)
{
	if (!s->write.phase)
		return loop_finding(a, "reads byte %llu of buffer %s, which was never written",
				    (unsigned long long)at, v->name);
	if (s->owner != v->owner && s->owner && v->owner)
		return loop_finding(
			a,
			"reads byte %llu of buffer %s, whose place in the workspace %s has taken",
			(unsigned long long)at, v->name, owner_name(a->in->entry, s->owner));
	return race(a, v, at, "reads", s->write.task);
}

static bool read_bytes(const Access *a, const View *v, uint64_t at, Shadow *s, uint32_t n)
{
	const uint32_t phase = a->in->phase, task = a->in->first_task + a->task, owner = v->owner;
	for (uint32_t k = 0; k < n; k++, s++) {
		bool owned = s->owner == owner || !s->owner || !owner;
		if (!s->write.phase || !owned || (s->write.phase == phase && s->write.task != task))
			return bad_read(a, v, at + k, s);
		bool again = s->read.phase == phase && s->read.task != task;
		s->read = (Touch){phase, again ? SEVERAL_TASKS : task};
	}
	return true;
}

static bool write_bytes(const Access *a, const View *v, uint64_t at, Shadow *s, uint32_t n)
{
	const uint32_t phase = a->in->phase, task = a->in->first_task + a->task;
	for (uint32_t k = 0; k < n; k++, s++) {
		if (s->write.phase == phase && s->write.task != task)
			return race(a, v, at + k, "writes", s->write.task);
		if (s->read.phase == phase && s->read.task != task)
			return race(a, v, at + k, "writes", s->read.task);
		s->write = (Touch){phase, task};
		s->owner = v->owner;
	}
	return true;
}

/* ---- threads of a block ---- */

/* Records that the thread must not read or write the byte. */
static bool cell_race(const Access *a, const Cell *c, const char *name, uint64_t at, bool write)
{
	const char *how = write ? "writes" : "reads";
	bool written = c->write == a->in->epoch && c->writer != a->thread;
	const uint32_t other = written ? c->writer : c->reader;
	if (c->write == UNDER_WAY)
		return loop_finding(
			a, "%s byte %llu of %s, to which thread %u copies and has not waited", how,
			(unsigned long long)at, name, c->writer);
	if (other == SEVERAL_THREADS)
		return loop_finding(
			a, "%s byte %llu of %s, which other threads read since the last barrier",
			how, (unsigned long long)at, name);
	return loop_finding(a, "%s byte %llu of %s, which thread %u %s since the last barrier", how,
			    (unsigned long long)at, name, other, written ? "wrote" : "read");
}

static bool cells_read(const Access *a, Cell *c, const char *name, uint64_t at, uint32_t n)
{
	const uint32_t epoch = a->in->epoch;
	const uint16_t thread = (uint16_t)a->thread;
	for (uint32_t k = 0; k < n; k++, c++) {
		if (c->write == UNDER_WAY || (c->write == epoch && c->writer != thread))
			return cell_race(a, c, name, at + k, false);
		c->reader = c->read == epoch && c->reader != thread ? SEVERAL_THREADS : thread;
		c->read = epoch;
	}
	return true;
}

static bool cells_write(const Access *a, Cell *c, const char *name, uint64_t at, uint32_t n)
{
	const uint32_t epoch = a->in->epoch;
	const uint16_t thread = (uint16_t)a->thread;
	for (uint32_t k = 0; k < n; k++, c++) {
		bool other = (c->write == epoch && c->writer != thread) ||
			     (c->read == epoch && c->reader != thread);
		if (c->write == UNDER_WAY || other)
			return cell_race(a, c, name, at + k, true);
		c->write = epoch;
		c->writer = thread;
	}
	return true;
}

bool cells_touch(const Access *a, Cell *c, const char *name, uint64_t at, uint32_t n, bool write)
{
	return (write ? cells_write : cells_read)(a, c, name, at, n);
}

/* ---- buffers ---- */

bool view_has(const Access *a, const View *v, int64_t at, uint32_t n, bool write)
{
	uint64_t from = (uint64_t)at;
	if (at < 0 || from > v->bytes || n > v->bytes - from)
		return loop_finding(a, "%s %u bytes at byte %lld of buffer %s, which has %llu",
				    write ? "writes" : "reads", n, (long long)at, v->name,
				    (unsigned long long)v->bytes);
	return true;
}

bool view_touch(const Access *a, const View *v, int64_t at, uint32_t n, bool write, char **out)
{
	uint64_t from = (uint64_t)at;
	TRY(view_has(a, v, at, n, write));
	*out = v->region->data + v->first + from;
	if (!v->region->shadow)
		return !write || loop_finding(a, "writes buffer %s, which belongs to the %s",
					      v->name, v->region->name);
	if (a->f->threads > 1)
		TRY(cells_touch(a, v->region->cell + v->first + from, v->name, from, n, write));
	return (write ? write_bytes : read_bytes)(a, v, from, v->region->shadow + v->first + from,
						  n);
}

bool region_complete(const Access *a, const Region *r)
{
	for (uint64_t k = 0; k < r->bytes; k++)
		if (!r->shadow[k].write.phase)
			return loop_finding(a, "byte %llu of the %s is never written",
					    (unsigned long long)k, r->name);
	return true;
}
