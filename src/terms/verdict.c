/* SPDX-License-Identifier: MIT */
/* Modes to verdicts; see verdict.h. */
#include "terms/verdict.h"

#include "terms/terms.h"

enum verdict verdict_at_limit(enum limit_owner owner, uint32_t tenant_mode, uint32_t program_mode)
{
	static const enum verdict of_mode[MODES] = { [MODE_ENFORCE] = VERDICT_REFUSED,
						     [MODE_WARN] = VERDICT_TOLD,
						     [MODE_AUDIT] = VERDICT_SILENT };
	uint32_t mode = owner == LIMIT_OF_PROGRAM ? program_mode : tenant_mode;

	return mode < MODES ? of_mode[mode] : VERDICT_REFUSED;
}
