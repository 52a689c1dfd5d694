#include "driver/artifact/shared_check.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/cpu/host.h"
#include "driver/artifact/backend.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_RISCV
#endif

/* ---- the file ---- */

typedef struct {
	const char *data;
	uint64_t size;
} File;

/* Returns n bytes at that place; NULL if the file ends before, or they are not aligned for what
 * is read there. */
static const void *bytes_at(const File *f, uint64_t at, uint64_t n)
{
	return at > f->size || n > f->size - at || at % 8 ? NULL : f->data + at;
}

static bool names_symbol(const File *f, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
			 const char *want)
{
	const Elf64_Sym *sym = bytes_at(f, symbols->sh_offset, symbols->sh_size);
	const char *text = f->data + names->sh_offset;
	if (!sym || !names->sh_size || text[names->sh_size - 1])
		return false;
	for (uint64_t k = 0; k < symbols->sh_size / sizeof *sym; k++)
		if (sym[k].st_shndx != SHN_UNDEF && sym[k].st_name < names->sh_size &&
		    !strcmp(text + sym[k].st_name, want))
			return true;
	return false;
}

/* Whether the object defines the symbol. The section headers lie at the end, so what is cut off
 * fails here. */
static bool defines(const File *f, const Elf64_Ehdr *e, const char *want)
{
	const Elf64_Shdr *s = e->e_shentsize == sizeof *s
				      ? bytes_at(f, e->e_shoff, (uint64_t)e->e_shnum * sizeof *s)
				      : NULL;
	for (uint32_t k = 0; s && k < e->e_shnum; k++)
		if (s[k].sh_type != SHT_NOBITS &&
		    (s[k].sh_offset > f->size || s[k].sh_size > f->size - s[k].sh_offset))
			return false;
	for (uint32_t k = 0; s && k < e->e_shnum; k++)
		if (s[k].sh_type == SHT_DYNSYM && s[k].sh_link < e->e_shnum &&
		    s[s[k].sh_link].sh_type == SHT_STRTAB)
			return names_symbol(f, &s[k], &s[s[k].sh_link], want);
	return false;
}

/* Whether the file is a complete shared object. Sets *machine to what it is for; EM_NONE:
 * nothing this process could load. */
static bool is_complete(const File *f, const char *want, uint16_t *machine)
{
	const Elf64_Ehdr *e = bytes_at(f, 0, sizeof *e);
	*machine = EM_NONE;
	if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG))
		return false;
	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_ident[EI_DATA] != ELFDATA2LSB)
		return true; /* by a compiler for some other machine: its own affair */
	*machine = e->e_machine;
	return e->e_type == ET_DYN && defines(f, e, want);
}

static bool file_check(const char *so, const char *want, uint16_t *machine)
{
	struct stat st;
	int fd = open(so, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size_t size = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
	void *p = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (p == MAP_FAILED)
		return false;
	bool ok = is_complete(&(File){p, size}, want, machine);
	munmap(p, size);
	return ok;
}

/* ---- loading ---- */

static const char *const loaded = "ok";

/* Loads the object. Returns what is wrong with it, or `loaded`. */
static const char *try_load(const char *so, const char *symbol, const char *source_hash)
{
	const WeftModel *(*get)(void);
	void *handle = dlopen(so, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return dlerror();
	*(void **)&get = dlsym(handle, symbol);
	const WeftModel *m = get ? get() : NULL;
	if (weft_model_check(m))
		return "it has no table of a model";
	return strcmp(m->manifest->source_hash, source_hash) ? "it holds another model" : loaded;
}

/* Loads the object, in a child, which ends without handlers of this process and leaves no core.
 * A lock that another thread held when this process was copied may block it: then the alarm ends
 * it, and nothing is known. */
static _Noreturn void child(int to, const Compilation *c, const char *so, const char *symbol)
{
	enum { SECONDS = 30 };
	static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
	for (size_t k = 0; k < sizeof deadly / sizeof *deadly; k++)
		signal(deadly[k], SIG_DFL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	alarm(SECONDS);
	for (uint32_t k = 0; k < c->o.nlink; k++) /* may lie where nobody looks yet */
		dlopen(c->o.link[k], RTLD_NOW | RTLD_GLOBAL);
	const char *text = try_load(so, symbol, c->source_hash);
	size_t n = text ? strlen(text) : 0;
	_exit(write(to, text, n) != (ssize_t)n);
}

/* Reads everything until the other end is closed. */
static void read_answer(int from, char *buf, size_t size)
{
	size_t n = 0;
	ssize_t got;
	while (n < size - 1 &&
	       ((got = read(from, buf + n, size - 1 - n)) > 0 || (got < 0 && errno == EINTR)))
		n += got > 0 ? (size_t)got : 0;
	buf[n] = 0;
}

static bool load_check(Compilation *c, const char *so, const char *symbol)
{
	char answer[1000];
	int fd[2], status = 0;
	const char *path = arena_printf(c->ctx->arena, "%s%s", strchr(so, '/') ? "" : "./", so);
	if (pipe2(fd, O_CLOEXEC)) /* another thread's compiler would keep it open */
		return true;
	pid_t pid = fork();
	if (pid == 0)
		child(fd[1], c, path, symbol);
	close(fd[1]);
	if (pid > 0)
		read_answer(fd[0], answer, sizeof answer);
	close(fd[0]);
	if (pid < 0)
		return true; /* no room for another process: the file itself was right */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!strcmp(answer, loaded) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM))
		return true;
	if (WIFSIGNALED(status))
		return ctx_error(c->ctx, NULL,
				 "the linked object ends a process that loads it (signal %d)",
				 WTERMSIG(status));
	return ctx_error(c->ctx, NULL, "the linked object cannot be loaded: %s", answer);
}

/* ---- both ---- */

static bool is_loadable(const Compilation *c, uint16_t machine)
{
	bool trusted = c->backend->trusted && c->backend->trusted(c);
	return trusted && machine == MACHINE && target_runs_here(c->level.data[0].target);
}

bool shared_check(Compilation *c, const char *so)
{
	const char *symbol = c->o.symbol ? c->o.symbol : "weft_model";
	uint16_t machine;
	if (!file_check(so, symbol, &machine))
		return ctx_error(c->ctx, NULL,
				 "the linker left no complete shared object that defines %s",
				 symbol);
	return !is_loadable(c, machine) || load_check(c, so, symbol);
}
