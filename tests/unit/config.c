/* SPDX-License-Identifier: MIT */
/* Which limits and modes a set of variables means. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "intercept/config.h"

static const char *variables; /* "NAME=value\n..." without the prefix */

static const char *lookup(const char *name)
{
	static char value[512];
	const char *at = variables;
	size_t length = strlen(name) - strlen(CONFIG_PREFIX);

	name += strlen(CONFIG_PREFIX);
	while (*at) {
		size_t line = strcspn(at, "\n");

		if (line > length && !strncmp(at, name, length) && at[length] == '=') {
			snprintf(value, sizeof(value), "%.*s", (int)(line - length - 1), at + length + 1);
			return value;
		}
		at += line + (at[line] == '\n');
	}
	return NULL;
}

static struct config config;

static const struct ledger_limits *read_as(const char *text)
{
	variables = text;
	config_read(&config, lookup);
	return &config.limits;
}

#define NONE UNLIMITED

static void limits_are(const char *text, int kind, uint64_t process, uint64_t host)
{
	const struct ledger_limits *limits = read_as(text);

	CHECK(config.complaints == 0, "%s: %s", text, config.complaint[0]);
	CHECK(limits->process[kind] == process, "%s: process %llu", text,
	      (unsigned long long)limits->process[kind]);
	CHECK(limits->host[kind] == host, "%s: host %llu", text, (unsigned long long)limits->host[kind]);
}

static void qp_limits(void)
{
	limits_are("", KIND_qp, NONE, NONE);
	/* A limit that is set needs no switch, and brings no defaults of others. */
	limits_are("MAX_QP_PER_PROCESS=3\nMAX_GLOBAL_QP=9", KIND_qp, 3, 9);
	limits_are("MAX_QP_PER_PROCESS=3", KIND_qp, 3, NONE);
	limits_are("MAX_GLOBAL_QP=9", KIND_qp, NONE, 9);
	CHECK(!config.idle[0], "%s", config.idle);
	limits_are("ENABLE_QP_CONTROL=0\nMAX_QP_PER_PROCESS=3", KIND_qp, NONE, NONE);
	CHECK(!strcmp(config.idle, CONFIG_PREFIX "MAX_QP_PER_PROCESS"), "%s", config.idle);
	limits_are("ENABLE_QP_CONTROL=1", KIND_qp, 100, 1000);
	CHECK(config.limits.host_defaults & 1ull << KIND_qp);
	limits_are("ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=3\nMAX_GLOBAL_QP=9", KIND_qp, 3, 9);
	CHECK(!(config.limits.host_defaults & 1ull << KIND_qp));
	limits_are("ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=0", KIND_qp, 0, 1000);
	limits_are("ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=unlimited", KIND_qp, NONE, 1000);
	/* The first version's name, which had no switch. */
	limits_are("MAX_QP=4", KIND_qp, 4, 1000);
	limits_are("MAX_QP=4\nMAX_GLOBAL_QP=7", KIND_qp, 4, 7);
	limits_are("MAX_QP=4\nENABLE_QP_CONTROL=0", KIND_qp, NONE, NONE);
	limits_are("MAX_QP=4\nMAX_QP_PER_PROCESS=5", KIND_qp, 5, 1000);
}

static void variable_is(const char *text, enum limit_scope scope, enum kind kind,
			const char *expected)
{
	const char *variable;

	read_as(text);
	variable = config_limit_variable(&config, scope, kind);
	CHECK(variable && !strcmp(variable, expected), "%s: %s", text, variable ? variable : "none");
}

/* A refusal names the variable that set the limit. */
static void variables_of_limits(void)
{
	variable_is("ENABLE_QP_CONTROL=1", SCOPE_PROCESS, KIND_qp, "RDMA_INTERCEPT_ENABLE_QP_CONTROL");
	variable_is("ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=3", SCOPE_PROCESS, KIND_qp,
		    "RDMA_INTERCEPT_MAX_QP_PER_PROCESS");
	variable_is("ENABLE_QP_CONTROL=1\nMAX_QP_PER_PROCESS=3", SCOPE_HOST, KIND_qp,
		    "RDMA_INTERCEPT_ENABLE_QP_CONTROL");
	variable_is("MAX_QP=4\nMAX_GLOBAL_QP=7", SCOPE_PROCESS, KIND_qp, "RDMA_INTERCEPT_MAX_QP");
	variable_is("MAX_QP=4\nMAX_GLOBAL_QP=7", SCOPE_HOST, KIND_qp,
		    "RDMA_INTERCEPT_MAX_GLOBAL_QP");
	variable_is("MAX_MEMORY_PER_PROCESS=3", SCOPE_PROCESS, KIND_mr_bytes,
		    "RDMA_INTERCEPT_MAX_MEMORY_PER_PROCESS");
	variable_is("MAX_GLOBAL_MR=3", SCOPE_HOST, KIND_mr, "RDMA_INTERCEPT_MAX_GLOBAL_MR");
	variable_is("MAX_MR_PER_PROCESS=9\nLIMITS=process:mr=3;host:cq=4", SCOPE_PROCESS, KIND_mr,
		    "RDMA_INTERCEPT_LIMITS");
	variable_is("LIMITS=host:cq=4", SCOPE_HOST, KIND_cq, "RDMA_INTERCEPT_LIMITS");
	variable_is("LIMITS=device:rxe0:cq=4", SCOPE_DEVICE, KIND_cq, "RDMA_INTERCEPT_LIMITS");
	read_as("");
	CHECK(!config_limit_variable(&config, SCOPE_PROCESS, KIND_cq));
}

static void mr_limits(void)
{
	limits_are("ENABLE_QP_CONTROL=1", KIND_mr, NONE, NONE);
	limits_are("MAX_MR_PER_PROCESS=5", KIND_mr, 5, NONE);
	limits_are("MAX_MR_PER_PROCESS=5", KIND_mr_bytes, NONE, NONE);
	limits_are("MAX_GLOBAL_MR=6", KIND_mr, NONE, 6);
	limits_are("ENABLE_MR_CONTROL=1", KIND_mr, 1000, 1000);
	limits_are("ENABLE_MR_CONTROL=1", KIND_mr_bytes, 10240ull << 20, 10737418240ull);
	limits_are("ENABLE_MR_CONTROL=1\nMAX_MR_PER_PROCESS=unlimited", KIND_mr, NONE, 1000);
	limits_are("MAX_MEMORY_PER_PROCESS=3", KIND_mr_bytes, 3ull << 20, NONE);
	limits_are("MAX_MEMORY_PER_PROCESS=512M", KIND_mr_bytes, 512ull << 20, NONE);
	limits_are("MAX_GLOBAL_MEMORY=4096", KIND_mr_bytes, NONE, 4096);
	limits_are("MAX_GLOBAL_MEMORY=10G", KIND_mr_bytes, NONE, 10ull << 30);
}

static void any_limits(void)
{
	const struct ledger_limits *limits;

	limits_are("LIMITS=process:qp=10,mr_bytes=1G;host:qp=1000;device:rxe0:qp=50", KIND_qp, 10, 1000);
	limits = &config.limits;
	CHECK(limits->process[KIND_mr_bytes] == 1ull << 30);
	CHECK(limits->devices == 1 && !strcmp(limits->device[0].name, "rxe0") &&
	      limits->device[0].limit[KIND_qp] == 50 && limits->device[0].limit[KIND_mr] == NONE);
	limits_are("ENABLE_QP_CONTROL=1\nMAX_GLOBAL_QP=5\nLIMITS=process:qp=unlimited", KIND_qp, NONE, 5);
	limits_are("ENABLE_QP_CONTROL=1\nLIMITS=host:qp=2", KIND_qp, 100, 2);
	CHECK(!(config.limits.host_defaults & 1ull << KIND_qp));
	limits_are("LIMITS=process:qp=1;process:qp=2", KIND_qp, 2, NONE);
	limits_are("LIMITS=", KIND_qp, NONE, NONE);
	/* One mistake and none of it counts. */
	limits = read_as("LIMITS=process:qp=1;host:nosuch=2");
	CHECK(config.complaints == 1 && limits->process[KIND_qp] == NONE);
}

static void other_settings(void)
{
	read_as("");
	CHECK(config.enable && config.mode == MODE_ENFORCE && config.deny_errno == EDQUOT &&
	      !config.fail_closed && !config.quiet && config.log_level == LOG_INFO &&
	      !config.log_path && config.shm_mode == 0600);
	if (geteuid() == 0)
		CHECK(!strcmp(config.shm_name, "rdma_intercept_shm"));
	else
		CHECK(strstr(config.shm_name, "rdma_intercept_shm.") == config.shm_name);
	read_as("ENABLE=0\nMODE=Audit\nDENY_ERRNO=enomem\nFAIL=closed\nQUIET=1\nLOG_LEVEL=2");
	CHECK(!config.enable && config.mode == MODE_AUDIT && config.deny_errno == ENOMEM &&
	      config.fail_closed && config.quiet && config.log_level == LOG_DEBUG);
	read_as("LOG_LEVEL=0");
	CHECK(config.log_level == LOG_OFF);
	read_as("LOG_LEVEL=1\nDENY_ERRNO=11\nSHM_NAME=/mine\nSHM_MODE=0660");
	CHECK(config.log_level == LOG_INFO && config.deny_errno == 11 &&
	      !strcmp(config.shm_name, "mine") && config.shm_mode == 0660);
	read_as("SHM_MODE=0666"); /* a shared file has the documented name for everybody */
	CHECK(!strcmp(config.shm_name, "rdma_intercept_shm"));
}

static void driver(void)
{
	RUN(qp_limits);
	RUN(variables_of_limits);
	RUN(mr_limits);
	RUN(any_limits);
	RUN(other_settings);
}

int main(int argc, char **argv)
{
	return harness_main(argc, argv, NULL, driver);
}
