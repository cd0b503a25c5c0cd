/* SPDX-License-Identifier: MIT */
/*
 * Look-up of the real verbs and the decisions of the dlsym hook; see dl.h.
 *
 * A real verb is the next definition after this library in the application's
 * own symbol order, so that another preloaded library which wraps the same
 * verb stays in the chain; or, where libibverbs came in by dlopen with
 * RTLD_LOCAL, that library's default definition. We never load a library
 * that the application did not load. Where this library itself is loaded
 * twice, the copies pass over each other, and all but the first stand back.
 */
#include "intercept/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "intercept/elf.h"
#include "intercept/libc.h"
#include "intercept/prototypes.h"

typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);

/* The next in line, which dlhooks.S jumps to; set by next_find before it does. */
__attribute__((visibility("hidden"))) dlsym_function *dl_next_dlsym;
__attribute__((visibility("hidden"))) dlvsym_function *dl_next_dlvsym;

/* libc's own, for our own questions: a hook of another library would answer them
 * as if it had asked. */
static dlsym_function *libc_dlsym;

static bool stands_back; /* another copy of this library comes first */

struct real_verbs real_verbs;

/* Where applications enter; in exports.S. */
#define DECLARE_ENTRY(verb) extern char entry_##verb[] __attribute__((visibility("hidden")));
#define CREATE(library, node, verb, ...) DECLARE_ENTRY(verb)
#define DESTROY(library, node, verb, ...) DECLARE_ENTRY(verb)
#define SPECIAL(library, node, verb, ...) DECLARE_ENTRY(verb)
#define UNVERSIONED(library, verb, ...) DECLARE_ENTRY(verb)
#include "intercept/verbs.def"

static const struct {
	const char *name;
	const char *soname;
	void **real;
	void *entry;
} verbs[VERBS] = {
#define ROW(library, verb)                                                                         \
	[VERB_##verb] = { #verb, "lib" #library ".so.1", (void **)&real_verbs.verb, entry_##verb },
#define CREATE(library, node, verb, ...) ROW(library, verb)
#define DESTROY(library, node, verb, ...) ROW(library, verb)
#define SPECIAL(library, node, verb, ...) ROW(library, verb)
#define UNVERSIONED(library, verb, ...) ROW(library, verb)
#include "intercept/verbs.def"
};

/* Where the loader knows no versions; musl has no dlvsym, and programs for it do not call one. */
static void *dl_without_version(void *handle, const char *name, const char *version)
{
	return dl_next_dlsym(handle, name);
}

/* Before glibc 2.34, in a program without libdl: whoever calls the hooks all the same gets NULL. */
static void *dl_missing(void *handle, const char *name)
{
	return NULL;
}

static void *dl_missing_version(void *handle, const char *name, const char *version)
{
	return NULL;
}

static void dl_next_find(void)
{
	void *next, *next_versioned, *own;

	if (__atomic_load_n(&libc_dlsym, __ATOMIC_ACQUIRE))
		return;
	stands_back = elf_is_copy();
	next = elf_find_next("dlsym");
	next_versioned = elf_find_next("dlvsym");
	/* At once, never NULL: other threads may be on their way to it. */
	dl_next_dlsym = next ? (dlsym_function *)next : dl_missing;
	dl_next_dlvsym = next_versioned	  ? (dlvsym_function *)next_versioned :
			 libc_is_musl() ? dl_without_version :
					  dl_missing_version;
	own = elf_find_in("libc.so.6", "dlsym");
	if (!own)
		own = elf_find_in("libdl.so.2", "dlsym"); /* before glibc 2.34 */
	/* Release: who sees this one sees the others. NULL: libdl may come later. */
	__atomic_store_n(&libc_dlsym, (dlsym_function *)(own ? own : next), __ATOMIC_RELEASE);
}

/* While there is one thread, and before a sanitizer that starts after us asks. */
static __attribute__((constructor)) void dl_begin(void)
{
	dl_next_find();
	elf_begin_locking();
}

/* Our own questions must not leave an error for the application's dlerror(). */
static void *dl_ask(void *handle, const char *name)
{
	void *found;

	if (!libc_dlsym) /* before glibc 2.34, in a program without libdl */
		return handle == RTLD_NEXT ? elf_find_next(name) : NULL;
	found = libc_dlsym(handle, name);
	if (!found)
		dlerror();
	return found;
}

/* The library if the application loaded it, then never unloaded: we keep its addresses. */
static void *dl_library_handle(const char *soname)
{
	void *handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);

	if (!handle)
		dlerror();
	return handle;
}

void *real_helper(const char *soname, const char *name)
{
	void *handle = dl_library_handle(soname);

	dl_next_find();
	if (!handle && libc_is_musl()) /* which knows it by the name of its file, and never unloads */
		return elf_find_in(soname, name);
	return handle ? dl_ask(handle, name) : NULL;
}

/* The function in the verb's own library, or NULL. */
static void *verb_library_symbol(enum verb verb)
{
	void *found = real_helper(verbs[verb].soname, verbs[verb].name);

	return found == verbs[verb].entry ? NULL : found;
}

/* The default definition in the object that RTLD_NEXT leads to. glibc before 2.36 answers with that
 * of the object's first node, which is a verb of IBVERBS_1.0 with other structures. */
static void *verb_next(enum verb verb)
{
	void *found = dl_ask(RTLD_NEXT, verbs[verb].name), *by_default = NULL;
	const struct link_map *object = found ? elf_find_object(found) : NULL;

	if (object)
		by_default = elf_find_in_object(object, verbs[verb].name);
	return by_default ? by_default : found;
}

static void *verb_resolve(enum verb verb)
{
	void *found;

	dl_next_find();
	found = verb_next(verb);
	if (found && elf_has_copies()) /* then it may be of one, with nothing real behind it */
		found = elf_find_next(verbs[verb].name);
	if (!found || found == verbs[verb].entry)
		found = verb_library_symbol(verb);
	else
		dl_library_handle(verbs[verb].soname);
	return found;
}

void *real_find(enum verb verb)
{
	int saved = errno;
	void *found = verb_resolve(verb);

	if (found)
		__atomic_store_n(verbs[verb].real, found, __ATOMIC_RELEASE);
	errno = found ? saved : EOPNOTSUPP;
	return found;
}

static bool object_has_verbs(const struct link_map *object)
{
	/* Providers are loaded from files of such names, and need not export anything. */
	if (strstr(object->l_name, "-rdmav"))
		return true;
	for (int verb = 0; verb < VERBS; verb++)
		if (elf_find_in_object(object, verbs[verb].name))
			return true;
	return false;
}

/* The callers of nested verbs are few and stay where they are, so that each is looked for
 * once: twice the address, and the answer in the lowest bit. */
bool dl_is_verbs(const void *address)
{
	static uintptr_t known[16];
	uintptr_t *place = &known[(uintptr_t)address / 4 % (sizeof(known) / sizeof(known[0]))];
	uintptr_t answer = __atomic_load_n(place, __ATOMIC_RELAXED), twice = 2 * (uintptr_t)address;
	const struct link_map *object;

	if (__builtin_expect((answer & ~(uintptr_t)1) != twice, 0)) {
		answer = twice |
			 ((object = elf_find_object(address)) && object_has_verbs(object));
		__atomic_store_n(place, answer, __ATOMIC_RELAXED);
	}
	return answer & 1;
}

static bool name_begins(const char *name, const char *prefix)
{
	while (*prefix && *name == *prefix)
		name++, prefix++;
	return !*prefix;
}

static int verb_find(const char *name)
{
	if (!name_begins(name, "ibv_") && !name_begins(name, "rdma_") &&
	    !name_begins(name, "verbs_") && !name_begins(name, "mlx5dv_") &&
	    !name_begins(name, "__mlx5dv_") && !name_begins(name, "mlx4dv_") &&
	    !name_begins(name, "efadv_") && !name_begins(name, "hnsdv_") &&
	    !name_begins(name, "manadv_"))
		return -1;
	for (int verb = 0; verb < VERBS; verb++)
		if (elf_same_name(name, verbs[verb].name))
			return verb;
	return -1;
}

/* The answer to a probe for what nobody has: NULL, and dlerror says so. */
static void *verb_not_found(const char *name)
{
	if (!libc_dlsym)
		return NULL;
	/* Another copy of this library would be found behind us. */
	return libc_dlsym(elf_has_copies() ? dl_library_handle("libc.so.6") : RTLD_NEXT, name);
}

void *dl_decide(void *handle, const char *name, const char *version)
{
	int verb;
	void *found, *real;

	dl_next_find();
	verb = name && !stands_back ? verb_find(name) : -1;
	if (verb < 0)
		return DL_GO_ON;
	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
		/* The loader finds us, or whoever else is first. But a probe for a verb
		 * that nobody has must fail as it would without us. */
		if (real_find((enum verb)verb))
			return DL_GO_ON;
		return verb_not_found(name);
	}
	found = version ? dl_next_dlvsym(handle, name, version) : dl_next_dlsym(handle, name);
	if (!found)
		return NULL;
	real = verb_resolve((enum verb)verb);
	if (found == verbs[verb].entry && !real) /* a handle through which we are seen */
		return verb_not_found(name);
	if (found == real || found == verb_library_symbol((enum verb)verb))
		return verbs[verb].entry;
	return found;
}
