#!/bin/sh
# Random traffic of processes that are killed on this kernel's Binder driver. CHAOS has further words, as --seed 1.
# Status 3, no usable driver, is kselftest's 4: skipped.
# shellcheck disable=SC2086  # words
"${BINDERPERF:-./binderperf}" chaos ${CHAOS:---driver kernel --seconds 10}
status=$?
[ $status != 3 ] || exit 4
exit $status
