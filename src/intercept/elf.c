/* SPDX-License-Identifier: MIT */
/*
 * A small reader of loaded ELF objects; see elf.h. It walks the list that the
 * loader keeps for debuggers, in load order, and needs no allocation. Other threads
 * unload objects meanwhile: it walks inside dl_iterate_phdr, which keeps them waiting.
 * Only what is asked up to our constructor goes without that lock: there is one
 * thread then, and a sanitizer's own dl_iterate_phdr may not work yet.
 */
#include "intercept/elf.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "intercept/libc.h"

enum { VERSION_HIDDEN = 0x8000 }; /* not the default definition */

struct symbols {
	const ElfW(Sym) *table;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	const uint16_t *versions;
	const char *soname;
};

/* glibc relocates these addresses in place, other loaders leave offsets. */
static const void *address_in(const struct link_map *object, ElfW(Addr) value)
{
	return (const void *)(value < object->l_addr ? value + object->l_addr : value);
}

static struct symbols elf_symbols(const struct link_map *object)
{
	struct symbols symbols = { 0 };
	ElfW(Xword) soname = 0;

	for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		const void *address = address_in(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB:
			symbols.table = address;
			break;
		case DT_STRTAB:
			symbols.names = address;
			break;
		case DT_GNU_HASH:
			symbols.gnu_hash = address;
			break;
		case DT_HASH:
			symbols.hash = address;
			break;
		case DT_VERSYM:
			symbols.versions = address;
			break;
		case DT_SONAME:
			soname = entry->d_un.d_val;
			break;
		}
	}
	symbols.soname = symbols.names && soname ? symbols.names + soname : "";
	return symbols;
}

/* The symbol's address if it is a definition of the name; default ones win. */
static void elf_consider(const struct link_map *object, const struct symbols *symbols,
			 uint32_t index, const char *name, void **ret_default, void **ret_hidden)
{
	const ElfW(Sym) *symbol = &symbols->table[index];
	void *address = (void *)(object->l_addr + symbol->st_value);

	if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
	    !elf_same_name(symbols->names + symbol->st_name, name))
		return;
	if (symbols->versions && symbols->versions[index] & VERSION_HIDDEN)
		*ret_hidden = address;
	else
		*ret_default = address;
}

void *elf_find_in_object(const struct link_map *object, const char *name)
{
	struct symbols symbols = elf_symbols(object);
	void *found = NULL, *hidden = NULL;

	if (!symbols.table || !symbols.names)
		return NULL;
	if (symbols.gnu_hash) {
		uint32_t count = symbols.gnu_hash[0], first = symbols.gnu_hash[1];
		const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(symbols.gnu_hash + 4) +
							    symbols.gnu_hash[2]);
		const uint32_t *chain = bucket + count;
		uint32_t hash = 5381, index;

		for (const char *at = name; *at; at++)
			hash = hash * 33 + (unsigned char)*at;
		index = count ? bucket[hash % count] : 0;
		for (; index >= first && index; index++) {
			if ((chain[index - first] | 1) == (hash | 1))
				elf_consider(object, &symbols, index, name, &found, &hidden);
			if (chain[index - first] & 1)
				break;
		}
	} else if (symbols.hash) {
		for (uint32_t index = 1; index < symbols.hash[1]; index++)
			elf_consider(object, &symbols, index, name, &found, &hidden);
	}
	return found ? found : hidden;
}

/* ---- questions to the list */

struct elf_question {
	void *(*answer)(const struct elf_question *question);
	const char *soname, *name;
	void *found;
};

static bool elf_locks;

void elf_begin_locking(void)
{
	elf_locks = true;
}

/* Called for the first object, and for no other. */
static int elf_answer_locked(struct dl_phdr_info *object, size_t size, void *argument)
{
	struct elf_question *question = argument;

	question->found = question->answer(question);
	return 1;
}

static void *elf_ask(struct elf_question question)
{
	if (!elf_locks || !dl_iterate_phdr(elf_answer_locked, &question))
		question.found = question.answer(&question);
	return question.found;
}

static void *elf_answer_in(const struct elf_question *question)
{
	for (const struct link_map *object = libc_objects(); object; object = object->l_next)
		if (elf_same_name(elf_symbols(object).soname, question->soname))
			return elf_find_in_object(object, question->name);
	return NULL;
}

void *elf_find_in(const char *soname, const char *name)
{
	return elf_ask((struct elf_question){ .answer = elf_answer_in, .soname = soname, .name = name });
}

struct elf_search {
	uintptr_t address;
	const struct link_map *found;
};

static const struct link_map *elf_object_of(const struct dl_phdr_info *entry)
{
	const struct link_map *object = libc_objects();

	while (object && (object->l_addr != entry->dlpi_addr ||
			  (object->l_addr == 0 && !elf_same_name(object->l_name, entry->dlpi_name))))
		object = object->l_next;
	return object;
}

static int elf_search_visit(struct dl_phdr_info *entry, size_t size, void *argument)
{
	struct elf_search *search = argument;

	for (unsigned i = 0; i < entry->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &entry->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD ||
		    search->address - entry->dlpi_addr - segment->p_vaddr >= segment->p_memsz)
			continue;
		search->found = elf_object_of(entry);
		return 1;
	}
	return 0;
}

const struct link_map *elf_find_object(const void *address)
{
	struct elf_search search = { .address = (uintptr_t)address };

	dl_iterate_phdr(elf_search_visit, &search);
	return search.found;
}

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static bool elf_is_other_copy(const struct link_map *object)
{
	return object->l_ld != _DYNAMIC &&
	       elf_same_name(elf_symbols(object).soname, "librdma_intercept.so");
}

static void *elf_find_unless_copy(const struct link_map *object, const char *name)
{
	void *found = elf_find_in_object(object, name);

	return found && elf_is_other_copy(object) ? NULL : found;
}

static void *elf_answer_next(const struct elf_question *question)
{
	const struct link_map *first = libc_objects(), *object = first;
	void *found = NULL;

	while (object && object->l_ld != _DYNAMIC)
		object = object->l_next;
	for (object = object ? object->l_next : NULL; object && !found; object = object->l_next)
		found = elf_find_unless_copy(object, question->name);
	for (object = first; object && !found && object->l_ld != _DYNAMIC; object = object->l_next)
		found = elf_find_unless_copy(object, question->name);
	return found;
}

void *elf_find_next(const char *name)
{
	return elf_ask((struct elf_question){ .answer = elf_answer_next, .name = name });
}

/* The first copy of this library that is not this one. */
static void *elf_answer_copy(const struct elf_question *question)
{
	const struct link_map *object = libc_objects();

	while (object && !elf_is_other_copy(object))
		object = object->l_next;
	return object ? object->l_ld : NULL;
}

bool elf_has_copies(void)
{
	return elf_ask((struct elf_question){ .answer = elf_answer_copy });
}

/* The first copy, which may be this one. */
static void *elf_answer_first(const struct elf_question *question)
{
	const struct link_map *object = libc_objects();

	while (object && object->l_ld != _DYNAMIC && !elf_is_other_copy(object))
		object = object->l_next;
	return object ? object->l_ld : NULL;
}

bool elf_is_copy(void)
{
	void *first = elf_ask((struct elf_question){ .answer = elf_answer_first });

	return first && first != _DYNAMIC;
}
