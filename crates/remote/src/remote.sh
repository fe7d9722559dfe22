# The other side of binderperf --on: one call of a connection, by any POSIX shell (mksh, dash, busybox).
# The first line, put in front of this, is `set -- ACTION ARGUMENTS`. Reads nothing; answers on stdout in lines:
#     @binderperf        the begin: what stands before it is a login's chatter
#     =NAME VALUE        a fact
#     O N, E N, F N PATH N bytes of the command's stdout, of its stderr, of one of its files
#     D PATH             one of its folders
#     .                  still running
#     ! CODE TEXT        it failed
#     X STATUS           the end
# Folders: BASE/binderperf-on-UID is this user's; in it bin-HASH is the program, and a folder for each command that runs:
# files/ (its working folder), out, err, status, pid.
LC_ALL=C
export LC_ALL
umask 077
set -f
exec 2>/dev/null
echo @binderperf

# What each command is started by: notes its pid and start, runs it, notes its status. The file of the status is as long
# before as it will be, so that a full disk cannot take it.
job='
trap "" HUP
trap : INT TERM
folder=$1 program=$2
shift 2
cd "$folder/files" || exit
stat=$(cat /proc/$$/stat) && set -- $$ "${stat##*) }" "$@" || exit
pid=$1 rest=$2
shift 2
begin() { shift 19; start=$1; }
begin $rest
echo "$pid $start" >"$folder/pid" || exit
"$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null
echo "$?           " 1<>"$folder/status"
'

# fail CODE TEXT: ends with this error, in one line.
fail() {
    # shellcheck disable=SC2086  # split at white space, so that it becomes one line
    echo ! $1 $2
    exit 0
}

# failed TEXT: ends with the error of a program that could not write.
failed() {
    case $1 in
    *"o space left"* | *uota*) fail space "$1" ;;
    *) fail folder "$1" ;;
    esac
}

# probe BASE...: what this machine is, and the folder for this program. An empty BASE means $TMPDIR.
probe() {
    echo "=machine $(uname -m)"
    abi=$(getprop ro.product.cpu.abi </dev/null) && echo "=abi $abi"
    echo "=elf $(od -An -tu1 -j4 -N1 /proc/self/exe)"
    echo "=host $(uname -n)"
    uid=$(id -u)
    why=
    for base; do
        base=${base:-$TMPDIR}
        base=${base%/}
        [ -d "$base" ] || continue
        case $base in
        *[!A-Za-z0-9/._-]*) continue ;;
        esac
        home=$base/binderperf-on-$uid
        # Another desk may make it at this moment.
        if ! [ -d "$home" ] && ! said=$(mkdir "$home" 2>&1) && ! [ -d "$home" ]; then
            why="${why:+$why; }$said"
            continue
        fi
        # Looked at from inside, where no other user can put a link in its place between two looks.
        if ! (inside "$base" "$home"); then
            why="${why:+$why; }$home is not this user's"
            continue
        fi
        said=$( (echo >"$home/.$$") 2>&1) || {
            why="${why:+$why; }$said"
            continue
        }
        chmod 700 "$home/.$$"
        # A script without #! is this shell's to run, after the kernel had to open it as a program; not every -x asks it.
        if "$home/.$$"; then
            rm -f "$home/.$$"
            echo "=home $home"
            return
        fi
        rm -rf "$home/.$$"
        rmdir "$home"
        why="${why:+$why; }$base is mounted noexec"
    done
    case $why in
    *"o space left"*) fail space "$why" ;;
    *noexec*) fail noexec "$why" ;;
    *) fail folder "${why:-none of the folders $* is there}" ;;
    esac
}

# inside BASE HOME: enters HOME; whether it is this user's folder, in BASE, and no way to another place. Its mode is 0700 then.
inside() {
    real=$(cd -P "$1" && pwd -P) && cd -P "$2" || return
    [ "$(pwd -P)" = "${real%/}/${2##*/}" ] && [ -O . ] && chmod 700 .
}

# begin HOME NAME HASH SIZE COUNT VARIABLE... COUNT FOLDER... WORD...: starts a command.
begin() {
    home=$1 run=$1/$2 program=$1/bin-$3
    part=$home/part-$2
    command -v setsid >/dev/null || fail tools "there is no setsid"
    if [ -f "$part" ]; then
        if [ "$(wc -c <"$part")" -ne "$4" ]; then
            rm -f "$part"
            fail short "a part of the program arrived"
        fi
        chmod 700 "$part"
        mv -f "$part" "$program"
    fi
    [ -f "$program" ] && [ "$(wc -c <"$program")" -eq "$4" ] || fail absent "the program is not here"
    said=$( ("$program" --version >/dev/null </dev/null) 2>&1)
    status=$?
    if [ "$status" -ne 0 ]; then
        rm -f "$program"
        fail exec "status $status of $program --version: $said"
    fi
    touch "$program"
    forget "$home" "$program"
    said=$(mkdir "$run" "$run/files" 2>&1) || failed "$said"
    shift 4
    variables=$1
    shift
    while [ "$variables" -gt 0 ]; do
        export "$1"
        shift
        variables=$((variables - 1))
    done
    folders=$1
    shift
    while [ "$folders" -gt 0 ]; do
        said=$(mkdir -p "$run/files/$1" 2>&1) || failed "$said"
        shift
        folders=$((folders - 1))
    done
    if [ -z "$TMPDIR" ] && [ ! -w /tmp ]; then
        TMPDIR=$home
        export TMPDIR
    fi
    said=$( (echo "running     " >"$run/status" && : >"$run/out" && : >"$run/err") 2>&1) || {
        rm -rf "$run"
        failed "$said"
    }
    setsid sh -c "$job" job "$run" "$program" "$@" </dev/null >/dev/null 2>&1 &
    tries=0
    until [ -s "$run/pid" ]; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ]; then
            rm -rf "$run"
            fail folder "the command did not start"
        fi
        nap 0.1
    done
    echo "=started $run"
}

# nap SECONDS: not every sleep knows fractions.
nap() {
    sleep "$1" || sleep 1
}

# forget HOME PROGRAM: removes what was left here a week ago and is not in use.
forget() {
    set +f
    for old in "$1"/bin-* "$1"/part-* "$1"/run-*; do
        [ -e "$old" ] && [ "$old" != "$2" ] || continue
        [ -n "$(find "$old" -prune -mtime +7)" ] || continue
        alive "$old" || rm -rf "$old"
    done
    set -f
}

# alive RUN: whether its job is still there; sets pid.
alive() {
    read -r pid start <"$1/pid" && stat=$(cat "/proc/$pid/stat") || return
    since() { [ "${20}" = "$start" ]; }
    # shellcheck disable=SC2086  # the fields behind the name
    since ${stat##*) }
}

# follow RUN OUT ERR: passes on what the command writes, from these positions on, until it has ended.
follow() {
    run=$1 out=$2 err=$3
    [ -f "$run/status" ] || fail gone "there is no $run"
    rounds=0
    while :; do
        # In this order: what it wrote before its end is not missed, and an end between the two readings is seen.
        dead=
        alive "$run" || dead=lost
        # Somebody may have removed it.
        status=
        read -r status <"$run/status"
        status=${status%% *}
        case $status in
        '' | running) status=$dead ;;
        esac
        sizes
        piece O "$run/out" "$out" "$written"
        out=$written
        piece E "$run/err" "$err" "$said"
        err=$said
        if [ -n "$status" ]; then
            (echo full >"$run/probe") || echo "=full ${run%/*}"
            echo "X $status"
            return
        fi
        echo .
        rounds=$((rounds + 1))
        if [ "$rounds" -lt 10 ]; then nap 0.1; elif [ "$rounds" -lt 20 ]; then nap 0.3; else sleep 1; fi
    done
}

# sizes: written and said, the lengths of both outputs.
sizes() {
    pair() { written=$1 said=$3; }
    # shellcheck disable=SC2046  # two lines of two words, and the sum
    pair $(wc -c "$run/out" "$run/err")
}

# piece LETTER FILE FROM TO: these bytes of a file.
piece() {
    [ "$4" -gt "$3" ] || return
    echo "$1 $(($4 - $3))"
    tail -c "+$(($3 + 1))" "$2" | head -c "$(($4 - $3))"
}

# stop RUN SIGNAL: signals the command and every process of its session's first group.
stop() {
    alive "$1" && kill -s "$2" -- "-$pid"
}

# fetch RUN [PART]: every folder and file that the command left, or those of a folder among them.
fetch() {
    cd "$1/files" || fail gone "there is no $1"
    part=./${2:-}
    find "${part%/}" -type d | while read -r folder; do
        echo "D ${folder#./}"
    done
    find "${part%/}" -type f | while IFS= read -r file; do
        [ -r "$file" ] || {
            echo "=skipped ${file#./}"
            continue
        }
        echo "F $(($(wc -c <"$file"))) ${file#./}"
        cat "$file"
    done
}

# clean HOME NAME: removes a command's folder, the command if it still runs, and a part of the program.
clean() {
    alive "$1/$2" && kill -s KILL -- "-$pid"
    said=$(rm -rf "$1/$2" "$1/part-$2" 2>&1) || failed "$said"
}

# refuse HOME NAME: removes a command that may not have begun yet, and leaves a file with which it cannot begin.
refuse() {
    clean "$1" "$2"
    : >"$1/$2"
}

# Read as a whole before anything runs: what runs could read the rest of it.
main() {
    "$@" </dev/null
    [ "$1" = follow ] || echo "X 0"
    exit 0
}
main "$@"
