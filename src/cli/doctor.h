/* SPDX-License-Identifier: MIT */
/* What the checks of doctor share; each is a row of doctor.def and a function check_NAME. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <limits.h>

#include "cli/collector.h"

/* "OK" is for what was tried and works. */
struct level {
	const char *name;
	const char *title;
	const char *colour;
};

extern const struct level fine, doubtful, broken, untried;

enum { FINDING_TEXT = PATH_MAX + 512 };

struct finding {
	const char *check;
	const struct level *level; /* NULL: nothing to say */
	char text[FINDING_TEXT];
	const char *hint; /* how to put it right */
	char command[256]; /* the same with words of this host; "" */
};

/* What several checks want to know. */
struct facts {
	char path[PROTO_PATH]; /* of the collector's socket */
	int answer;	       /* of the collector to a STATUS: 0 or -errno */
	struct proto_status status;
	char problem[PROBLEM_SIZE]; /* why it did not answer */
};

/* The hint and the format are translated here. */
void finding_set(struct finding *finding, const struct level *level, const char *hint,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

#define DOCTOR(name, function)                                                                     \
	void check_##function(const struct facts *facts, struct finding *finding);
#include "cli/doctor.def"
#undef DOCTOR

#endif
