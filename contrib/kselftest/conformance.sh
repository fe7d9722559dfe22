#!/bin/sh
# Each promise of the contract on this kernel's Binder driver, as KTAP. CONFORMANCE has further words, as --filter TX-.
# shellcheck disable=SC2086  # words
exec "${BINDERPERF:-./binderperf}" conformance --for-ci ${CONFORMANCE:---driver kernel}
