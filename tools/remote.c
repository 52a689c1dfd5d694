/* Executing a compiled model through another program (examples/run_file.c): under an emulator, on
 * another machine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

static bool write_inputs(const char *path, const WeftTensor *t, uint32_t n)
{
	FILE *f = fopen(path, "wb");
	if (!f)
		return fail_open(path), false;
	fwrite(&n, sizeof n, 1, f);
	for (uint32_t k = 0; k < n; k++) {
		fwrite(&t[k].dtype, sizeof t[k].dtype, 1, f);
		fwrite(&t[k].ndim, sizeof t[k].ndim, 1, f);
		fwrite(t[k].shape, sizeof *t[k].shape, (size_t)t[k].ndim, f);
		fwrite((char *)t[k].data + t[k].byte_offset, 1, bytes_of(&t[k]), f);
	}
	bool ok = !ferror(f);
	return (fclose(f) == 0 && ok) || (fail("%s: cannot write", path), false);
}

static bool read_output(FILE *f, WeftTensor *t, const WeftTensorInfo *info)
{
	*t = (WeftTensor){.device = {WEFT_CPU, 0}};
	if (fread(&t->dtype, sizeof t->dtype, 1, f) != 1 ||
	    fread(&t->ndim, sizeof t->ndim, 1, f) != 1 ||
	    memcmp(&t->dtype, &info->dtype, sizeof t->dtype) || t->ndim != (int32_t)info->rank)
		return false;
	t->shape = malloc((info->rank + 1) * sizeof *t->shape);
	if (!t->shape || fread(t->shape, sizeof *t->shape, info->rank, f) != info->rank)
		return false;
	t->data = malloc(bytes_of(t) + 1);
	return t->data && fread(t->data, 1, bytes_of(t), f) == bytes_of(t);
}

static bool read_outputs(const char *path, Runner *r)
{
	uint32_t n = 0;
	FILE *f = fopen(path, "rb");
	if (!f)
		return fail_open(path), false;
	bool ok = fread(&n, sizeof n, 1, f) == 1 && n == r->noutput;
	for (uint32_t k = 0; ok && k < n; k++)
		ok = read_output(f, &r->result[k], runner_output(r, k));
	fclose(f);
	return ok || (fail("%s: not the outputs of this model", r->remote), false);
}

/* Executes the words of the command, then the model, inputs, outputs, the number of threads, and
 * the entry where there are several. */
static void execute(const char *command, char *const last[6])
{
	char *argv[64], *text = strdup(command);
	int n = 0;
	for (char *p = text ? strtok(text, " ") : NULL; p && n < 57; p = strtok(NULL, " "))
		argv[n++] = p;
	memcpy(&argv[n], last, 6 * sizeof *last);
	die_with_parent();
	execvp(argv[0], argv);
	fail_id("W0012", "cannot run %s: %s", argv[0], strerror(errno));
	_exit(127);
}

static bool start(const Runner *r, char *const last[6])
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		execute(r->remote, last);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return fail("cannot start a process"), false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	return fail("%s: %s %d", r->remote, WIFSIGNALED(status) ? "signal" : "status",
		    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)),
	       false;
}

bool remote_call(Runner *r, const WeftTensor *inputs, int threads)
{
	char so[4096], in[4096], out[4096], n[16];
	snprintf(so, sizeof so, "%s/model.so", r->folder);
	snprintf(in, sizeof in, "%s/inputs", r->folder);
	snprintf(out, sizeof out, "%s/outputs", r->folder);
	snprintf(n, sizeof n, "%d", threads);
	char *const last[6] = {so,  in, out, n, r->one == r->g ? NULL : (char *)(uintptr_t)r->want,
			       NULL};
	bool ok = write_inputs(in, inputs, r->ninput) && start(r, last) && read_outputs(out, r);
	unlink(in);
	unlink(out);
	return ok;
}
