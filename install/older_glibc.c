/* Functions whose newest versions would need glibc 2.35 or 2.36 where a wheel is installed. Static
 * libraries call them: LLVM's hypot, libstdc++'s arc4random (std::random_device), libgcc's
 * _dl_find_object. Linked into what a wheel holds, never exported. */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

double hypot(double, double);
int _dl_find_object(void *, struct dl_find_object *);
uint32_t arc4random(void);

/* Returns libm's hypot of any version: 2.35's differs from older ones by errno alone. */
double hypot(double x, double y)
{
	static double (*libm)(double, double);
	double (*f)(double, double) = __atomic_load_n(&libm, __ATOMIC_RELAXED);
	if (!f) {
		*(void **)&f = dlsym(RTLD_NEXT, "hypot");
		__atomic_store_n(&libm, f, __ATOMIC_RELAXED);
	}
	return f(x, y);
}

uint32_t arc4random(void)
{
	uint32_t v;
	if (getentropy(&v, sizeof v))
		abort();
	return v;
}

typedef struct {
	uintptr_t pc;
	struct dl_find_object *found;
} Search;

/* Sets what is found and returns 1 if the object has a segment with the address. */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	Search *s = arg;
	const ElfW(Phdr) *frames = NULL, *load = NULL;
	for (const ElfW(Phdr) *p = info->dlpi_phdr; p < info->dlpi_phdr + info->dlpi_phnum; p++) {
		const uintptr_t at = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && s->pc >= at && s->pc - at < p->p_memsz)
			load = p;
		if (p->p_type == PT_GNU_EH_FRAME)
			frames = p;
	}
	if (!load || !frames)
		return 0;
	*s->found = (struct dl_find_object){
		.dlfo_map_start = (void *)(info->dlpi_addr + load->p_vaddr),
		.dlfo_map_end = (void *)(info->dlpi_addr + load->p_vaddr + load->p_memsz),
		.dlfo_eh_frame = (void *)(info->dlpi_addr + frames->p_vaddr)};
	return 1;
}

/* Returns 0 and sets the object's unwind table, as glibc's does, or returns -1. */
int _dl_find_object(void *pc, struct dl_find_object *found)
{
	Search s = {(uintptr_t)pc, found};
	return dl_iterate_phdr(look, &s) ? 0 : -1;
}
