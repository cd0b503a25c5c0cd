/* SPDX-License-Identifier: MIT */
/*
 * Names of glibc that are not in every C library which the library meets, see libc.h: each is
 * defined here, hidden, by what all of them have. Compiled without optimisation across files,
 * which would take these definitions for the compiler's own.
 */
#include "intercept/libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "intercept/elf.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define WEAK __attribute__((weak))

extern struct r_debug _r_debug WEAK;	     /* glibc */
extern struct r_debug *_dl_debug_addr WEAK; /* musl */

/* Not by functions that only glibc has: gcompat adds those to musl. */
bool libc_is_musl(void)
{
	return &_dl_debug_addr && !&_r_debug;
}

const struct link_map *libc_objects(void)
{
	if (&_r_debug)
		return _r_debug.r_map;
	return &_dl_debug_addr ? _dl_debug_addr->r_map : NULL;
}

#ifdef LIBC_ANY /* linked with the stand-in of libc.txt */

/* The function in libc, or in the library that had it before glibc 2.34. musl has one file, whose
 * name nobody knows for sure, and which is the first that has it. */
static void *libc_find(const char *before, const char *name)
{
	void *found = elf_find_in(before, name);

	if (!found)
		found = elf_find_in("libc.so.6", name);
	return !found && libc_is_musl() ? elf_find_next(name) : found;
}

/* ---- libpthread */

#define MUTEX_FUNCTIONS(F)                                                                         \
	F(pthread_mutex_init)                                                                      \
	F(pthread_mutex_trylock)                                                                   \
	F(pthread_mutex_unlock)                                                                    \
	F(pthread_mutex_timedlock)                                                                 \
	F(pthread_mutex_consistent)                                                                \
	F(pthread_mutexattr_init)                                                                  \
	F(pthread_mutexattr_destroy)                                                               \
	F(pthread_mutexattr_setpshared)                                                            \
	F(pthread_mutexattr_setrobust)

#define DECLARE(name) static __typeof__(name) *found_##name;
MUTEX_FUNCTIONS(DECLARE)
static int (*found_clocklock)(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until);

bool libc_find_mutex(void)
{
	bool all = true;

#define FIND(name)                                                                                 \
	found_##name = (__typeof__(name) *)libc_find("libpthread.so.0", #name);                    \
	all = all && found_##name;
	MUTEX_FUNCTIONS(FIND)
	found_clocklock = (__typeof__(found_clocklock))libc_find("libpthread.so.0",
								  "pthread_mutex_clocklock");
	return all;
}

HIDDEN int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	return found_pthread_mutex_init(mutex, attributes);
}

HIDDEN int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return found_pthread_mutex_trylock(mutex);
}

HIDDEN int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return found_pthread_mutex_unlock(mutex);
}

HIDDEN int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
	return found_pthread_mutex_consistent(mutex);
}

HIDDEN int pthread_mutexattr_init(pthread_mutexattr_t *attributes)
{
	return found_pthread_mutexattr_init(attributes);
}

HIDDEN int pthread_mutexattr_destroy(pthread_mutexattr_t *attributes)
{
	return found_pthread_mutexattr_destroy(attributes);
}

HIDDEN int pthread_mutexattr_setpshared(pthread_mutexattr_t *attributes, int shared)
{
	return found_pthread_mutexattr_setpshared(attributes, shared);
}

HIDDEN int pthread_mutexattr_setrobust(pthread_mutexattr_t *attributes, int robust)
{
	return found_pthread_mutexattr_setrobust(attributes, robust);
}

/* musl waits by the time of day only. If somebody sets that clock, the wait is longer or shorter;
 * its callers look whether the holder makes progress. */
HIDDEN int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				   const struct timespec *until)
{
	struct timespec now, day;
	int64_t left;

	if (found_clocklock)
		return found_clocklock(mutex, clock, until);
	clock_gettime(clock, &now);
	clock_gettime(CLOCK_REALTIME, &day);
	left = (until->tv_sec - now.tv_sec) * 1000000000LL + until->tv_nsec - now.tv_nsec;
	left += day.tv_sec * 1000000000LL + day.tv_nsec;
	day = (struct timespec){ .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
	return found_pthread_mutex_timedlock(mutex, &day);
}

HIDDEN int pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before)
{
	int saved = errno, result = sigprocmask(how, set, ret_before) ? errno : 0;

	errno = saved;
	return result;
}

/* ---- libdl */

HIDDEN void *dlopen(const char *name, int flags)
{
	__typeof__(dlopen) *real = (__typeof__(dlopen) *)libc_find("libdl.so.2", "dlopen");

	return real ? real(name, flags) : NULL;
}

HIDDEN char *dlerror(void)
{
	__typeof__(dlerror) *real = (__typeof__(dlerror) *)libc_find("libdl.so.2", "dlerror");

	return real ? real() : NULL;
}

/* ---- sizes that the compiler knows (_FORTIFY_SOURCE) */

HIDDEN void *__memcpy_chk(void *to, const void *from, size_t length, size_t size);
HIDDEN int __snprintf_chk(char *text, size_t size, int flag, size_t real_size, const char *format, ...);
HIDDEN int __vsnprintf_chk(char *text, size_t size, int flag, size_t real_size, const char *format,
			   va_list arguments);

HIDDEN void *__memcpy_chk(void *to, const void *from, size_t length, size_t size)
{
	if (length > size)
		abort();
	return memcpy(to, from, length);
}

HIDDEN int __vsnprintf_chk(char *text, size_t size, int flag, size_t real_size, const char *format,
			   va_list arguments)
{
	(void)flag;
	if (size > real_size)
		abort();
	return vsnprintf(text, size, format, arguments);
}

HIDDEN int __snprintf_chk(char *text, size_t size, int flag, size_t real_size, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = __vsnprintf_chk(text, size, flag, real_size, format, arguments);
	va_end(arguments);
	return length;
}

/* ---- numbers: headers since glibc 2.38 call these, which read "0b1" with base 0, too */

long plain_strtol(const char *text, char **ret_end, int base) __asm__("strtol");
unsigned long plain_strtoul(const char *text, char **ret_end, int base) __asm__("strtoul");
unsigned long long plain_strtoull(const char *text, char **ret_end, int base) __asm__("strtoull");
HIDDEN long __isoc23_strtol(const char *text, char **ret_end, int base);
HIDDEN unsigned long __isoc23_strtoul(const char *text, char **ret_end, int base);
HIDDEN unsigned long long __isoc23_strtoull(const char *text, char **ret_end, int base);

HIDDEN long __isoc23_strtol(const char *text, char **ret_end, int base)
{
	return plain_strtol(text, ret_end, base);
}

HIDDEN unsigned long __isoc23_strtoul(const char *text, char **ret_end, int base)
{
	return plain_strtoul(text, ret_end, base);
}

HIDDEN unsigned long long __isoc23_strtoull(const char *text, char **ret_end, int base)
{
	return plain_strtoull(text, ret_end, base);
}

/* ---- stat, which glibc has since 2.33; before, programs had a function of another name in them.
 * The kernel's structure is that of both libraries on machines of 64 bits. */

HIDDEN int stat(const char *path, struct stat *ret_status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret_status, 0);
}

HIDDEN int lstat(const char *path, struct stat *ret_status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret_status, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int fstat(int fd, struct stat *ret_status)
{
	return (int)syscall(SYS_fstat, fd, ret_status);
}

/* Headers before glibc 2.33 call these, with the version of the structure. */
HIDDEN int __xstat(int version, const char *path, struct stat *ret_status);
HIDDEN int __lxstat(int version, const char *path, struct stat *ret_status);
HIDDEN int __fxstat(int version, int fd, struct stat *ret_status);

HIDDEN int __xstat(int version, const char *path, struct stat *ret_status)
{
	(void)version;
	return stat(path, ret_status);
}

HIDDEN int __lxstat(int version, const char *path, struct stat *ret_status)
{
	(void)version;
	return lstat(path, ret_status);
}

HIDDEN int __fxstat(int version, int fd, struct stat *ret_status)
{
	(void)version;
	return fstat(fd, ret_status);
}

#else

bool libc_find_mutex(void)
{
	return true;
}

#endif
