#!/bin/sh
# Runs tests as a kernel's selftests run: ./run_tests.sh TEST... Fails if one does.
cd "$(dirname "$0")" || exit 1
echo "TAP version 13"
echo "1..$#"
number=0
failed=0
for test; do
    number=$((number + 1))
    name="selftests: binderperf: $test"
    echo "# $name"
    # Each line as it comes, and the test's status behind the last.
    status=$({ { "./$test" 2>&1 3>&- 4>&-; echo $? >&3; } | sed 's/^/# /' >&4; } 3>&1)
    case $status in
    0) echo "ok $number $name" ;;
    4) echo "ok $number $name # SKIP" ;;
    *)
        echo "not ok $number $name # exit=$status"
        failed=1
        ;;
    esac
done 4>&1
exit $failed
