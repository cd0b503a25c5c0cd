#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A first look, on the stand-in libibverbs.
exit 0
