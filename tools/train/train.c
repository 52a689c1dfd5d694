/* weft train */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/train/checkpoint.h"
#include "tools/train/data.h"
#include "tools/train/settings.h"
#include "tools/train/step.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "Data", false},
	{"--data FILE",
	 ".npz or .safetensors with a tensor for each input, by its name or as x.0, x.1, ..., and "
	 "label; the first dimension is that of samples",
	 true},
	{"--eval FILE", "data of the same form: its loss in evaluation mode ends each line", true},
	{"--batch N", "samples of a step (default: as the model was exported)", false},
	{"--accumulate N", "one update for N batches, by their mean gradient (default 1)", false},
	{"--epochs N",
	 "how often all samples are used (default 1), in an order that --seed decides", true},
	{NULL, "Files", false},
	{"--save FILE",
	 "a checkpoint (.safetensors) after each epoch, and where a signal stops the training; "
	 "written whole or not at all",
	 true},
	{"--save-every N", "also after every N steps", false},
	{"--resume FILE", "go on where that checkpoint was made, with the same bits", true},
	{NULL, "The step", false},
	{"--optimizer TEXT", "adamw (default), sgd(momentum=0.9), ...: see weft compile --train",
	 true},
	{"--lr X", "the learning rate (default: that of the optimiser)", true},
	{"--schedule TEXT",
	 "of --lr: constant, linear, cosine, all with (warmup=STEPS, min=X), or "
	 "step(every=STEPS, factor=X)",
	 false},
	{"--number NAME=X", "the value of another number that the step takes (repeatable)", false},
	STEP_HELP,
	{"--on-nan stop|skip|go",
	 "when the loss is not finite: stop (default), leave the step out, or nothing", false},
	{NULL, "How it runs", false},
	{"--threads N", "default: as many as there are processors", false},
	{"--target NAME|FILE", "see weft compile", false},
	{"--backend jit|c|llvm|loops", "see weft run", false},
	{"--cc COMMAND", "C compiler, for --backend c", false},
	PROGRESS_HELP,
	LOAD_HELP,
	{0}};

const Command command_train = {
	.name = "train",
	.summary = "train a model on data in a file",
	.usage = "MODEL|STEP.so --data FILE --save FILE [options]",
	.about =
		"Train MODEL (.pt2, .onnx), or a file that weft compile --train or weft.train_step "
		"made, and write the parameters and the optimiser's state into a checkpoint. "
		"weft compile MODEL --weights-from CHECKPOINT then makes the model for inference.",
	.more = "",
	.row = rows,
	.run = run};

enum { MOST_NUMBERS = MAX_LIST + 2 };

typedef struct {
	const char *data, *eval, *save, *resume, *lr, *schedule, *batch, *epochs, *every,
		*backend, *accumulate;
	StringList number;
	StepArgs step;
	LoadArgs load;
	WeftOptions o;
	Settings settings;
	int threads;
	bool progress;
} TrainArgs;

typedef enum { CONSTANT, LINEAR, COSINE, STEPS } ScheduleKind;

/* A function of the number of steps. */
typedef struct {
	ScheduleKind kind;
	double value, warmup, min, every, factor;
} Schedule;

typedef struct {
	const TrainArgs *a;
	Runner r;
	EntryCall step, apply, test; /* step: the entry accumulate where there is apply */
	Data data, eval;
	Number number[MOST_NUMBERS];
	uint32_t nnumber, lr; /* lr: the index in number[], or nnumber */
	Schedule schedule;
	Place place;
	int64_t every;   /* steps between checkpoints; 0: none within an epoch */
	int64_t total;   /* steps of the whole training */
	int64_t samples; /* of the last batch */
	int64_t first;   /* samples that this run has trained */
	double start;    /* when it began */
	char *settings;  /* what the checkpoint records of the options */
	double busy;     /* seconds in which it trained: neither tested nor saved */
} Training;

static volatile sig_atomic_t stopped; /* the number of the signal */

static void stop(int number)
{
	stopped = number;
}

/* ---- options ---- */

static bool read_count(const char *option, const char *text, int64_t by_default, int64_t *out)
{
	char *end = NULL;
	errno = 0;
	*out = text ? strtoll(text, &end, 10) : by_default;
	return !text || (!errno && end != text && !*end && *out >= 1 && *out < INT64_C(1) << 40) ||
	       (fail_usage("%s is a number from 1 on, not %s", option, text), false);
}

static bool read_real(const char *option, const char *text, double *out)
{
	char *end;
	*out = strtod(text, &end);
	return (end != text && !*end && isfinite(*out)) ||
	       (fail_usage("%s is a number, not %s", option, text), false);
}

static bool schedule_number(Schedule *s, const char *name, size_t n, double v)
{
	const struct {
		const char *name;
		double *to;
		bool steps; /* of the kind STEPS */
	} all[] = {{"warmup", &s->warmup, false},
		   {"min", &s->min, false},
		   {"every", &s->every, true},
		   {"factor", &s->factor, true}};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (strlen(all[k].name) == n && !strncmp(all[k].name, name, n) &&
		    all[k].steps == (s->kind == STEPS)) {
			*all[k].to = v;
			return v >= 0;
		}
	return false;
}

/* Reads "cosine(warmup=100, min=1e-5)". */
static bool read_schedule(const char *text, double lr, Schedule *s)
{
	static const char *const kind[] = {"constant", "linear", "cosine", "step"};
	*s = (Schedule){.kind = CONSTANT, .value = lr, .factor = 0.1};
	if (!text)
		return true;
	size_t n = strcspn(text, "(");
	int k = 0;
	while (k < 4 && (strlen(kind[k]) != n || strncmp(kind[k], text, n) != 0))
		k++;
	s->kind = k == 4 ? CONSTANT : (ScheduleKind)k;
	bool good = k < 4;
	for (const char *p = text + n; good && *p;) {
		char *end;
		if (!strcmp(p, ")"))
			break;
		p++; /* "(" or "," */
		p += strspn(p, " ");
		n = strcspn(p, "=");
		const double v = p[n] ? strtod(p + n + 1, &end) : 0;
		good = p[n] && end != p + n + 1 && schedule_number(s, p, n, v) &&
		       (*end == ',' || !strcmp(end, ")"));
		if (good)
			p = end;
	}
	good &= s->kind != STEPS || s->every >= 1;
	return good ||
	       (fail_usage(
			"--schedule %s: expected constant, linear or cosine, with (warmup=STEPS, "
			"min=X), or step(every=STEPS, factor=X)",
			text),
		false);
}

/* Returns the learning rate of a step, of `total` in all; the same function as the schedule of that
 * name in ops/optim/formulas.c. */
static double rate(const Schedule *s, int64_t step, int64_t total)
{
	const double t = (double)step, warm = fmin(1, (t + 1) / (s->warmup + 1)),
		     all = (double)total - s->warmup,
		     done = all > 0 ? fmin(1, fmax(0, (t - s->warmup) / all)) : 1;
	switch (s->kind) {
	case LINEAR:
		return warm * (s->value + (s->min - s->value) * done);
	case COSINE:
		return warm *
		       (s->min + (s->value - s->min) * (0.5 + 0.5 * cos(3.141592653589793 * done)));
	case STEPS:
		return s->value * pow(s->factor, floor(t / s->every));
	default:
		return s->value * warm;
	}
}

/* Adds a number that the step takes. Of several values of one name the last counts. */
static void set_number(Training *t, const char *name, double v)
{
	for (uint32_t k = 0; k < t->nnumber; k++)
		if (!strcmp(t->number[k].name, name)) {
			t->number[k].value = v;
			return;
		}
	t->number[t->nnumber++] = (Number){name, v};
}

static bool read_numbers(Training *t, char *room)
{
	double v;
	t->lr = MOST_NUMBERS;
	if (t->a->lr) {
		if (!read_real("--lr", t->a->lr, &v) ||
		    !read_schedule(t->a->schedule, v, &t->schedule))
			return false;
		if (v < 0)
			return fail_usage("--lr is 0 or more, not %s", t->a->lr), false;
		t->lr = t->nnumber;
		set_number(t, "lr", v);
	}
	for (uint32_t k = 0; k < t->a->number.n; k++) {
		const char *text = t->a->number.item[k], *equals = strchr(text, '=');
		if (!equals || equals == text)
			return fail_usage("--number %s: expected NAME=X", text), false;
		if (!read_real("--number", equals + 1, &v))
			return false;
		memcpy(room, text, (size_t)(equals - text));
		room[equals - text] = 0;
		set_number(t, room, v);
		room += equals - text + 1;
	}
	return true;
}

/* Writes the optimiser with lr=input into out[n]: "adamw(lr=input, weight_decay=0)". */
static bool with_rate(const char *text, char *out, size_t n)
{
	const char *open = strchr(text, '(');
	const size_t name = open ? (size_t)(open - text) : strlen(text);
	const char *rest = open ? open + 1 : ")";
	rest += strspn(rest, " ");
	const int length = snprintf(out, n, "%.*s(lr=input%s%s", (int)name, text,
				    *rest == ')' ? "" : ", ", rest);
	return (length > 0 && (size_t)length < n) || (fail_usage("--optimizer: too long"), false);
}

/* ---- the model ---- */

/* Returns the name of the entry that takes data. */
static const char *main_entry(const Training *t)
{
	return t->place.parts > 1 ? "accumulate" : "step";
}

/* Returns the name of an option that is for model files, or NULL. */
static const char *model_option(const TrainArgs *a)
{
	LoadArgs load = a->load;
	load.seed = NULL; /* is that of the order of samples, too */
	return a->step.optimizer             ? "--optimizer"
	       : a->backend                  ? "--backend"
	       : step_option_given(&a->step) ? step_option_given(&a->step)
					     : load_option_given(&load);
}

static bool open_file(Training *t, const char *path)
{
	const RunnerOptions o = {.entry = main_entry(t), .compile = &t->a->o};
	if (model_option(t->a))
		return fail_usage("%s is compiled: %s is for model files", path,
				  model_option(t->a)),
		       false;
	return runner_open(&t->r, path, &o);
}

static bool compile_model(Training *t, Weft *w, const char *path)
{
	char text[1000];
	StepArgs step = t->a->step;
	RunnerOptions o = {.entry = main_entry(t), .compile = &t->a->o, .load = &t->a->load};
	step.accumulate = t->place.parts > 1;
	if (t->a->lr && !with_rate(step.optimizer, text, sizeof text))
		return false;
	if (t->a->lr)
		step.optimizer = text;
	if (!parse_backend(t->a->backend, &o.backend))
		return false;
	if (o.backend == RUN_INTERP || o.backend == RUN_GPU_HOST)
		return fail_usage("--backend is jit, c, llvm or loops for training, not %s",
				  t->a->backend),
		       false;
	LoadArgs load = t->a->load;
	load.seed = NULL; /* the state is set, if there is one */
	WeftGraph *g = load_step(w, path, &step, &load, t->a->eval);
	if (!g)
		return fail_messages(w), false;
	if (weft_nmessages(w)) {
		progress_clear();
		fputs(weft_messages(w), stderr);
	}
	return runner_take(&t->r, w, g, path, &o);
}

/* Gives the model's own random numbers the seed. */
static bool seed_state(const Training *t)
{
	WeftStatus status = {0};
	uint64_t v[2] = {t->place.seed, 0};
	int64_t shape[1] = {2};
	const WeftTensor x = {.device = {WEFT_CPU, 0},
			      .ndim = 1,
			      .dtype = {WEFT_UINT, 64, 1},
			      .data = v,
			      .shape = shape};
	for (uint32_t k = 0; k < runner_nstate(&t->r); k++)
		if (!strcmp(runner_state(&t->r, k)->name, "weft.rng") &&
		    t->r.model->state_set(t->r.instance, k, &x, &status) != WEFT_OK)
			return fail_status(t->r.path, status.code, status.message), false;
	return true;
}

static bool takes_number(const EntryCall *c, const char *name)
{
	for (uint32_t k = 0; c->entry && k < c->entry->ninput; k++)
		if (!strcmp(entry_input(c, k)->name, name))
			return true;
	return false;
}

/* Whether the update gets all that it takes. */
static bool has_numbers(const Training *t)
{
	const EntryCall *c = &t->apply;
	for (uint32_t k = 0; c->entry && k < c->entry->ninput; k++) {
		uint32_t i = 0;
		const char *name = entry_input(c, k)->name;
		while (i < t->nnumber && strcmp(t->number[i].name, name) != 0)
			i++;
		if (i == t->nnumber)
			return fail("%s: the entry apply takes %s: give it by --%s", t->r.path,
				    name, strcmp(name, "lr") ? "number" : "lr"),
			       false;
	}
	return true;
}

static bool on_nan(const Training *t, const char *what)
{
	return !strcmp(t->a->step.on_nan ? t->a->step.on_nan : "stop", what);
}

static bool open_entries(Training *t, const char *path)
{
	if (t->place.parts > 1)
		set_number(t, "weight", 1);
	if (!entry_find(&t->step, &t->r, main_entry(t)) || entry_output(&t->step, "loss") < 0)
		return fail("%s: no entry %s that gives a loss", path, main_entry(t)), false;
	if (t->place.parts > 1 && !entry_find(&t->apply, &t->r, "apply"))
		return fail("%s: no entry apply", path), false;
	for (uint32_t k = 0; k < t->nnumber; k++)
		if (!takes_number(&t->step, t->number[k].name) &&
		    !takes_number(&t->apply, t->number[k].name))
			return fail("%s: the step takes no number %s", path, t->number[k].name),
			       false;
	if (!has_numbers(t))
		return false;
	if (on_nan(t, "skip") &&
	    entry_output(t->place.parts > 1 ? &t->apply : &t->step, "skipped") < 0)
		return fail("%s: its step leaves nothing out: compile it with --on-nan skip", path),
		       false;
	return !t->a->eval || entry_find(&t->test, &t->r, "test") ||
	       (fail("%s: --eval needs an entry test, which weft train makes of a model file",
		     path),
		false);
}

/* ---- lines ---- */

/* Writes a number with commas between thousands. */
static const char *grouped(double v, char out[40])
{
	char digits[32];
	const int n = snprintf(digits, sizeof digits, "%.0f", v);
	int to = 0;
	for (int k = 0; k < n; k++) {
		if (k && (n - k) % 3 == 0)
			out[to++] = ',';
		out[to++] = digits[k];
	}
	out[to] = 0;
	return out;
}

/* Writes a loss with four digits; one that is no number has no sign. */
static const char *number_text(double v, char out[40])
{
	snprintf(out, 40, "%.4g", isnan(v) ? (double)NAN : v);
	return out;
}

/* Returns how long the rest takes, in seconds, and sets *speed to samples in a second. */
static double left(const Training *t, double *speed)
{
	const double seconds = now() - t->start, done = (double)t->first;
	const int64_t of_epoch = t->data.rows - data_left_out(&t->data),
		      rest = (t->place.epochs - t->place.epoch) * of_epoch - t->place.seen;
	*speed = t->busy > 0 ? done / t->busy : 0;
	return done > 0 ? (double)rest * seconds / done : 0;
}

/* Returns the mean loss of the epoch so far. */
static double mean_loss(const Place *p)
{
	return p->loss / (double)(p->seen - p->lost);
}

static void show(const Training *t)
{
	char rows_text[40], all[40];
	double speed;
	const double rest = left(t, &speed);
	progress_show("epoch %lld/%lld  %s/%s  loss %.4g  %.0f:%02.0f left",
		      (long long)t->place.epoch + 1, (long long)t->place.epochs,
		      grouped((double)t->place.seen, rows_text), grouped((double)t->data.rows, all),
		      mean_loss(&t->place), floor(rest / 60),
		      floor(fmod(rest, 60)));
}

/* Computes the mean loss of the data of --eval. */
static bool test_loss(Training *t, double *out)
{
	const int at = entry_output(&t->test, "loss");
	double sum = 0;
	int64_t seen = 0;
	int64_t samples, before = 0;
	for (int64_t k = 0; k < data_batches(&t->eval); k++, before = samples) {
		samples = data_batch(&t->eval, k, NULL, 0);
		if (samples != before)
			entry_reshape(&t->test);
		if (!entry_call(&t->test, t->eval.in, t->a->threads))
			return data_tell_labels(&t->eval), false;
		sum += value_at(&t->test.result[at], 0) * (double)samples;
		seen += samples;
	}
	*out = sum / (double)seen;
	return true;
}

/* Prints the line of an epoch that is done. */
static bool print_line(Training *t)
{
	char text[40], test[60] = "", skipped[60] = "", loss[40];
	double speed, other;
	const double rest = left(t, &speed);
	if (t->a->eval) {
		if (!test_loss(t, &other))
			return false;
		snprintf(test, sizeof test, "  test %s", number_text(other, loss));
	}
	if (t->place.skipped)
		snprintf(skipped, sizeof skipped, "  %lld skipped", (long long)t->place.skipped);
	progress_clear();
	printf("epoch %lld/%lld  loss %s%s%s  %s samples/s  %.0f:%02.0f left\n",
	       (long long)t->place.epoch + 1, (long long)t->place.epochs,
	       number_text(mean_loss(&t->place), loss), test, skipped, grouped(speed, text),
	       floor(rest / 60), floor(fmod(rest, 60)));
	return fflush(stdout) == 0 ||
	       (fail("cannot write to standard output: %s", strerror(errno)), false);
}

/* ---- training ---- */

static bool save(const Training *t)
{
	return !t->a->save || checkpoint_save(&t->r, t->a->save, &t->place, t->settings);
}

/* Returns the first batch behind those whose gradients the next update takes, which begin with
 * batch p->done or before. */
static int64_t end_of_update(const Training *t)
{
	const int64_t all = data_batches(&t->data),
		      end = (t->place.done / t->place.parts + 1) * t->place.parts;
	return end < all ? end : all;
}

/* Returns the samples from one batch to another one. */
static int64_t samples_between(const Training *t, int64_t from, int64_t to)
{
	const int64_t end = to * t->data.batch;
	return (end < t->data.rows ? end : t->data.rows) - from * t->data.batch;
}

/* Updates the parameters by the gradients that were added up. */
static bool apply(Training *t)
{
	WeftTensor in[MOST_NUMBERS];
	for (uint32_t k = 0; k < t->apply.entry->ninput; k++)
		for (uint32_t i = 0; i < t->nnumber; i++)
			if (!strcmp(t->number[i].name, entry_input(&t->apply, k)->name))
				in[k] = (WeftTensor){.device = {WEFT_CPU, 0},
						     .dtype = {WEFT_FLOAT, 64, 1},
						     .data = &t->number[i].value};
	return entry_call(&t->apply, in, t->a->threads);
}

/* Counts a loss of the epoch. Returns false after a message: it is not finite, and the training
 * stops. */
static bool count_loss(Training *t, double loss, int64_t samples)
{
	Place *p = &t->place;
	char text[40];
	const bool left_out = !isfinite(loss) && on_nan(t, "skip");
	p->done++;
	p->seen += samples;
	p->lost += left_out ? samples : 0;
	p->loss += left_out ? 0 : loss * (double)samples;
	t->first += samples;
	return isfinite(loss) || !on_nan(t, "stop") ||
	       (fail("the loss of batch %lld of epoch %lld is %s: stopped%s%s%s",
		     (long long)p->done, (long long)p->epoch + 1, number_text(loss, text),
		     t->a->save ? "; " : "", t->a->save ? t->a->save : "",
		     t->a->save ? " is as it was before" : ""),
		false);
}

/* Counts an update that a call has made or left out. */
static void count_update(Training *t, const EntryCall *c)
{
	const int at = entry_output(c, "skipped");
	t->place.step++;
	t->place.skipped += at >= 0 && value_at(&c->result[at], 0) != 0;
}

/* Executes a step on the next batch. */
static bool train_batch(Training *t)
{
	Place *p = &t->place;
	const int64_t end = end_of_update(t), from = p->done - p->done % p->parts;
	if (t->lr < t->nnumber)
		t->number[t->lr].value = rate(&t->schedule, p->step, t->total);
	if (p->parts > 1)
		set_number(t, "weight",
			   (double)samples_between(t, p->done, p->done + 1) /
				   (double)samples_between(t, from, end));
	const int64_t samples = data_batch(&t->data, p->done, t->number, t->nnumber);
	if (samples != t->samples)
		entry_reshape(&t->step);
	t->samples = samples;
	if (!entry_call(&t->step, t->data.in, t->a->threads))
		return data_tell_labels(&t->data), false;
	const double loss = value_at(&t->step.result[entry_output(&t->step, "loss")], 0);
	if (!count_loss(t, loss, samples))
		return false;
	if (p->done < end)
		return true;
	if (p->parts > 1 && !apply(t))
		return false;
	count_update(t, p->parts > 1 ? &t->apply : &t->step);
	return true;
}

/* Whether a signal has come: saves then. */
static bool interrupted(Training *t)
{
	if (!stopped)
		return false;
	if (save(t))
		fail("stopped in epoch %lld after %lld of %lld batches%s%s",
		     (long long)t->place.epoch + 1, (long long)t->place.done,
		     (long long)data_batches(&t->data),
		     t->a->save ? "; saved: go on with --resume " : "",
		     t->a->save ? t->a->save : "");
	return true;
}

static bool train_epoch(Training *t)
{
	const int64_t batches = data_batches(&t->data);
	data_shuffle(&t->data, t->place.seed, (uint64_t)t->place.epoch);
	while (t->place.done < batches) {
		const double start = now();
		if (!train_batch(t))
			return false;
		t->busy += now() - start;
		show(t);
		if (interrupted(t))
			return false;
		if (t->every && t->place.step % t->every == 0 && t->place.done < batches &&
		    !save(t))
			return false;
	}
	/* what is trained is kept if the data of --eval are bad */
	const Place end = t->place;
	t->place.epoch++;
	t->place.done = t->place.seen = t->place.lost = t->place.skipped = 0;
	t->place.loss = 0;
	const Place next = t->place;
	if (!save(t))
		return false;
	t->place = end;
	if (!print_line(t))
		return false;
	t->place = next;
	return true;
}

/* ---- beginning ---- */

/* Goes on where a checkpoint was made. */
static bool resume(Training *t, const char *path)
{
	const Place here = t->place;
	Place there;
	if (!checkpoint_load(&t->r, path, &there))
		return false;
	if (there.rows != here.rows || there.data != here.data)
		return fail("%s: the data in %s are others than those that it was trained with",
			    path, t->data.path),
		       false;
	if (there.batch != here.batch)
		return fail("%s was trained with --batch %lld, not %lld", path,
			    (long long)there.batch, (long long)here.batch),
		       false;
	if (there.parts != here.parts)
		return fail("%s was trained with --accumulate %lld, not %lld", path,
			    (long long)there.parts, (long long)here.parts),
		       false;
	if (there.seed != here.seed)
		return fail("%s was trained with --seed %llu, not %s", path,
			    (unsigned long long)there.seed, t->a->load.seed),
		       false;
	t->place = there;
	t->place.epochs = here.epochs;
	return t->place.epoch < t->place.epochs ||
	       (fail("%s: all %lld epochs are done: give more by --epochs", path,
		     (long long)t->place.epochs),
		false);
}

static void tell_left_out(const Data *d)
{
	if (data_left_out(d) == 1 && d->several && !d->fixed)
		fprintf(stderr,
			"%s: note: 1 of %lld samples is left out of each epoch: batch norm of one "
			"sample has no variance\n",
			d->path, (long long)d->rows);
	else if (data_left_out(d))
		fprintf(stderr,
			"%s: note: %lld of %lld samples are left out of each epoch: they are no "
			"whole "
			"batch, and the model takes no smaller one\n",
			d->path, (long long)data_left_out(d), (long long)d->rows);
}

/* Reads the numbers of the command line. What a checkpoint says counts where nothing is given. */
static bool read_counts(Training *t)
{
	const TrainArgs *a = t->a;
	char *end = NULL;
	if (a->resume && !checkpoint_place(a->resume, &t->place))
		return false;
	if (!read_count("--batch", a->batch, t->place.batch, &t->place.batch) ||
	    !read_count("--epochs", a->epochs, a->resume ? t->place.epochs : 1, &t->place.epochs) ||
	    !read_count("--accumulate", a->accumulate, a->resume ? t->place.parts : 1,
			&t->place.parts) ||
	    !read_count("--save-every", a->every, 0, &t->every))
		return false;
	errno = 0;
	if (a->load.seed)
		t->place.seed = strtoull(a->load.seed, &end, 0);
	return !a->load.seed || (!errno && !*end && isdigit((unsigned char)*a->load.seed)) ||
	       (fail_usage("--seed is a number of 64 bits, not %s", a->load.seed), false);
}

/* Whether the model keeps running variances: batch norm, of which a batch of one sample has none.
 */
static bool has_variances(const Training *t)
{
	const WeftModel *m = t->r.model;
	for (uint32_t k = 0; k < m->nstate; k++)
		if (has_suffix(weft_state_info(m, k)->name, "running_var"))
			return true;
	return false;
}

static bool begin(Training *t, Weft *w, const char *path)
{
	const TrainArgs *a = t->a;
	if (!read_counts(t))
		return false;
	if (!(is_shared_object(path) ? open_file(t, path) : compile_model(t, w, path)))
		return false;
	if (!open_entries(t, path) ||
	    !data_open(&t->data, w, a->data, &t->step, t->number, t->nnumber, t->place.batch))
		return false;
	if (a->eval && !data_open(&t->eval, w, a->eval, &t->test, NULL, 0, t->data.batch))
		return false;
	t->data.several = has_variances(t);
	progress_clear();
	if (!a->save)
		fprintf(stderr, "%s: note: there is no --save: what is trained is not kept\n",
			path);
	tell_left_out(&t->data);
	if (a->eval)
		tell_left_out(&t->eval);
	t->place.rows = t->data.rows;
	t->place.batch = t->data.batch;
	t->place.data = data_hash(&t->data);
	if (!(a->resume ? resume(t, a->resume) : seed_state(t)))
		return false;
	t->total =
		t->place.epochs * ((data_batches(&t->data) + t->place.parts - 1) / t->place.parts);
	if (t->schedule.warmup >= (double)t->total)
		return fail_usage("--schedule %s: the warmup takes all of the %lld steps",
				  a->schedule, (long long)t->total),
		       false;
	return true;
}

static bool train(Training *t, Weft *w, const char *path)
{
	if (!begin(t, w, path))
		return false;
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	t->start = now();
	while (t->place.epoch < t->place.epochs)
		if (!train_epoch(t))
			return false;
	progress_clear();
	if (t->a->save)
		printf("%s: saved after %lld steps\n", t->a->save, (long long)t->place.step);
	return true;
}

static bool parse(TrainArgs *a, int *argc, char **argv)
{
	const Opt opt[] = {{"--data", OPT_STRING, &a->data},
			   {"--eval", OPT_STRING, &a->eval},
			   {"--batch", OPT_STRING, &a->batch},
			   {"--epochs", OPT_STRING, &a->epochs},
			   {"--accumulate", OPT_STRING, &a->accumulate},
			   {"--save", OPT_STRING, &a->save},
			   {"--save-every", OPT_STRING, &a->every},
			   {"--resume", OPT_STRING, &a->resume},
			   {"--optimizer", OPT_STRING, &a->step.optimizer},
			   {"--lr", OPT_STRING, &a->lr},
			   {"--schedule", OPT_STRING, &a->schedule},
			   {"--number", OPT_LIST, &a->number},
			   {"--on-nan", OPT_STRING, &a->step.on_nan},
			   {"--threads", OPT_INT, &a->threads},
			   {"--target", OPT_STRING, &a->o.target},
			   {"--backend", OPT_STRING, &a->backend},
			   {"--cc", OPT_STRING, &a->o.cc},
			   {"--progress", OPT_FLAG, &a->progress},
			   STEP_OPTIONS(&a->step),
			   LOAD_OPTIONS(&a->load),
			   {0}};
	if (!options_parse(&command_train, opt, argc, argv))
		return false;
	if (*argc != 2)
		return fail_usage("train takes one model; see weft train --help"), false;
	if (!a->data)
		return fail_usage("train: name the data with --data"), false;
	if (a->step.on_nan && strcmp(a->step.on_nan, "stop") && strcmp(a->step.on_nan, "skip") &&
	    strcmp(a->step.on_nan, "go"))
		return fail_usage("--on-nan is stop, skip or go, not %s", a->step.on_nan), false;
	const OptUse use[] = {{a->schedule, a->lr || a->resume, "--schedule", "--lr"},
			      {a->every, a->save, "--save-every", "--save"}};
	if (!options_used(&command_train, use, sizeof use / sizeof *use))
		return false;
	return !a->save || has_suffix(a->save, ".safetensors") ||
	       (fail_usage("--save %s: a name that ends with .safetensors is expected", a->save),
		false);
}

/* Checks, before hours of training, that a checkpoint can be written, and replaces no input. */
static bool check_output(const TrainArgs *a, const char *model)
{
	char folder[4096] = ".";
	const char *slash = a->save ? strrchr(a->save, '/') : NULL;
	if (!a->save)
		return true;
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - a->save) + 1, a->save);
	if (access(folder, W_OK))
		return fail("%s: cannot write: %s", a->save, strerror(errno)), false;
	return keep_input(a->save, model) && keep_input(a->save, a->data) &&
	       keep_input(a->save, a->eval);
}

/* Lists the options that checkpoints record. */
static void list_settings(TrainArgs *a)
{
	const Setting all[] = {{"--lr", &a->lr, NULL, true, false},
			       {"--schedule", &a->schedule, NULL, true, false},
			       {"--number", NULL, &a->number, true, false},
			       {"--optimizer", &a->step.optimizer, NULL, false, true},
			       {"--loss", &a->step.loss, NULL, false, true},
			       {"--group", NULL, &a->step.group, false, true},
			       {"--trainable", NULL, &a->step.trainable, false, true},
			       {"--clip-norm", &a->step.clip_norm, NULL, false, true},
			       {"--clip-value", &a->step.clip_value, NULL, false, true},
			       {"--ema", &a->step.ema, NULL, false, true},
			       {"--precision", NULL, &a->load.precision, false, true},
			       {"--loss-scale", &a->step.loss_scale, NULL, false, true},
			       {"--set-mode", NULL, &a->load.mode, false, true}};
	a->settings.n = sizeof all / sizeof *all;
	memcpy(a->settings.of, all, sizeof all);
}

/* Takes the options that are not given from a checkpoint, and writes down what they are. */
static bool settle(Training *t, TrainArgs *a, bool of_model)
{
	list_settings(a);
	if (a->resume) {
		char *text = checkpoint_settings(a->resume);
		if (!text || !settings_resume(&a->settings, text, a->resume, of_model))
			return false;
	}
	if (a->schedule && !a->lr)
		return fail_usage("--schedule is for --lr"), false;
	if (of_model && !a->step.optimizer)
		a->step.optimizer = "adamw";
	t->settings = settings_text(&a->settings);
	return t->settings;
}

static int run(int argc, char **argv)
{
	TrainArgs a = {.o = {.size = sizeof a.o}};
	Training t = {.a = &a};
	if (!parse(&a, &argc, argv))
		return argc == -1 ? 0 : 1;
	const bool of_model = !is_shared_object(argv[1]);
	const bool settled = settle(&t, &a, of_model);
	size_t length = 1;
	for (uint32_t k = 0; k < a.number.n; k++)
		length += strlen(a.number.item[k]) + 1;
	char *room = malloc(length);
	Weft *w = weft_new();
	bool ok = settled && room && w && check_output(&a, argv[1]) && read_numbers(&t, room);
	if (!room || !w)
		fail("out of memory");
	progress_begin(a.progress);
	progress_show("reading %s", argv[1]);
	a.o.progress = progress_phase;
	ok = ok && train(&t, w, argv[1]);
	progress_end();
	data_close(&t.data); /* which knows the entry */
	data_close(&t.eval);
	entry_close(&t.step);
	entry_close(&t.apply);
	entry_close(&t.test);
	runner_close(&t.r);
	weft_free(w);
	free(room);
	free(t.settings);
	settings_free(&a.settings);
	return ok ? 0 : 1;
}
