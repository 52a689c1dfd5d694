/* Private to the driver: a linker for the shared objects of models, where no linker is installed.
 * For x86-64 and the objects that this compiler makes: position-independent code without
 * thread-local variables, which needs libc and libm and nothing else. */
#ifndef WEFT_DRIVER_ELF_LINK_H
#define WEFT_DRIVER_ELF_LINK_H

#include "base/ctx.h"

typedef struct {
	const char *const *object; /* paths of relocatable objects; sections that nothing refers to
	                              are left out */
	uint32_t nobject;
	const char *const *library; /* paths of shared libraries, in the order in which they are
	                               searched; those that define nothing the objects need are left
	                               out */
	uint32_t nlibrary;
} ElfLink;

/* Whether elf_link can link for this machine (e_machine of ELF). */
bool elf_links_for(uint16_t machine);
/* Links the objects into the shared object `out`, which is overwritten. It exports the symbols of
 * default visibility that the objects define. All symbols are bound when it is loaded; tables that
 * relocations write are read-only afterwards. Frames of exceptions are left out. Returns false
 * after an error: a symbol is defined nowhere or twice, an object is none for this linker, or the
 * file cannot be written. */
bool elf_link(Ctx *, const ElfLink *, const char *out);

#endif
