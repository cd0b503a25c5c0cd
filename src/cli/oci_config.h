/* SPDX-License-Identifier: MIT */
/*
 * The configuration that a container engine hands to a runtime (config.json), as text. It is changed
 * where the environment says LD_PRELOAD and nowhere else: a JSON library would change other values,
 * such as the unlimited locked memory that engines write as 18446744073709551615.
 */
#ifndef CLI_OCI_CONFIG_H
#define CLI_OCI_CONFIG_H

#include <stddef.h>

/* 1 if the container has a mount at `library`: *ret_text, to be freed, is the configuration with the
 * library first in LD_PRELOAD, before what stands there. 0 if it has not, or if LD_PRELOAD names the
 * library already. -EINVAL for a text that is no configuration. */
int oci_config_preload(const char *config, const char *library, char **ret_text);

#endif
