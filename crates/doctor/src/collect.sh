#!/bin/sh
# Prints a machine's files that binderperf's doctor reads, as a tar archive:
#     binderperf doctor --collect | adb shell sh > phone.tar
#     binderperf doctor --collect | ssh HOST sh > host.tar
#     binderperf doctor --from phone.tar
# Changes nothing. Root is not needed; a file that may not be read is noted with the reason.
# Left out: host name, mounts other than binder's and tracing's, modules other than binder's.
# The kernel's command line is copied whole.
LC_ALL=C
export LC_ALL
umask 077
root=${BINDERPERF_ROOT:-/}
root=${root%/}

collect() {
    if [ -t 1 ]; then
        echo "the archive would go to the terminal: append > machine.tar" >&2
        return 2
    fi
    out=
    # No name that another user could have taken.
    name=$(od -An -tx1 -N8 /dev/urandom 2>/dev/null | tr -d ' \n')
    for folder in "${TMPDIR:-/tmp}" /data/local/tmp /tmp .; do
        out=$folder/binderperf-collect.${name:-$$}
        mkdir "$out" 2>/dev/null && break
        out=
    done
    if [ -z "$out" ]; then
        echo "no folder for temporary files: set TMPDIR" >&2
        return 4
    fi
    trap 'rm -rf "$out"' EXIT
    trap 'exit 130' HUP INT TERM
    mkdir "$out/files"
    unreadable=

    release=$(cat "$root/proc/sys/kernel/osrelease" 2>/dev/null)
    for pattern in @FILES@; do
        case $pattern in
        *RELEASE*)
            [ -n "$release" ] || continue
            pattern=${pattern%%RELEASE*}$release${pattern#*RELEASE}
            ;;
        esac
        # A pattern without a match stays as it is.
        for path in "$root"/$pattern; do
            case $path in
            *\**) ;;
            *) copy "${path#"$root"/}" ;;
            esac
        done
    done
    for path in @FOLDERS@; do
        [ -d "$root/$path" ] && mkdir -p "$out/files/$path"
    done
    for name in pid user ipc; do
        if link=$(readlink "$root/proc/self/ns/$name" 2>/dev/null || cat "$root/proc/self/ns/$name" 2>/dev/null); then
            mkdir -p "$out/files/proc/self/ns"
            echo "$link" > "$out/files/proc/self/ns/$name"
        fi
    done
    groups
    mounts
    modules
    if [ -z "$root" ]; then
        getprop 2>/dev/null </dev/null | while read -r line; do
            case $line in
            "[ro.build."* | "[ro.debuggable"* | "[ro.soc."*) echo "$line" ;;
            esac
        done > "$out/getprop.txt"
        [ -s "$out/getprop.txt" ] && mv "$out/getprop.txt" "$out/files/getprop.txt"
        dumpsys -t 2 battery > "$out/battery.txt" 2>/dev/null </dev/null
        [ -s "$out/battery.txt" ] && mv "$out/battery.txt" "$out/files/dumpsys-battery.txt"
    fi
    facts > "$out/files/binderperf-snapshot.json"
    cd "$out/files" && tar -cf - . </dev/null
}

# copy PATH: copies a file, or notes why it cannot be read. A file of /proc has no size: tar alone would not do.
copy() {
    if why=$(cat "$root/$1" 2>&1 >"$out/file" </dev/null); then
        case $1 in
        */*) mkdir -p "$out/files/${1%/*}" ;;
        esac
        mv "$out/file" "$out/files/$1"
        return
    fi
    case $why in
    *"o such file"* | *"ot a directory"* | *"s a directory"*) return ;;
    *"ermission denied"*) why=EACCES ;;
    *"not permitted"*) why=EPERM ;;
    *"not supported"*) why=EOPNOTSUPP ;;
    *) why="an error" ;;
    esac
    case $1 in
    *[!A-Za-z0-9_./,:@-]*) ;;
    *) unreadable="$unreadable${unreadable:+,}\"$1\":\"$why\"" ;;
    esac
}

# groups: the files of this process's control groups and the groups above them.
groups() {
    [ -r "$root/proc/self/cgroup" ] || return 0
    while IFS=: read -r _ controllers path; do
        case ",$controllers," in
        ,,) mounts="sys/fs/cgroup sys/fs/cgroup/unified" ;;
        *,cpu,*) mounts="sys/fs/cgroup/cpu sys/fs/cgroup/cpu,cpuacct dev/cpuctl" ;;
        *) continue ;;
        esac
        case /$path/ in
        */../*) continue ;;
        esac
        path=${path#/}
        while :; do
            for mount in $mounts; do
                for name in @GROUP@; do
                    copy "$mount/${path:+$path/}$name"
                done
            done
            case $path in
            */*) path=${path%/*} ;;
            "") break ;;
            *) path= ;;
            esac
        done
    done < "$root/proc/self/cgroup"
}

# mounts: the mounts of binder and tracing, and the driver's statistics there.
mounts() {
    [ -r "$root/proc/self/mounts" ] || return 0
    mkdir -p "$out/files/proc/self"
    while read -r what place kind rest; do
        case $kind in
        binder) stats=binder_logs/stats ;;
        debugfs) stats=binder/stats ;;
        tracefs) stats= ;;
        *) continue ;;
        esac
        echo "$what $place $kind $rest" >&3
        case $place in
        *\\* | */../*) ;;
        *) [ -z "$stats" ] || copy "${place#/}/$stats" ;;
        esac
    done < "$root/proc/self/mounts" 3> "$out/files/proc/self/mounts"
}

# modules: binder's modules in the list of installed ones, and that their files exist.
modules() {
    folder=lib/modules/$release
    [ -n "$release" ] && [ -r "$root/$folder/modules.dep" ] || return 0
    mkdir -p "$out/files/$folder"
    while read -r line; do
        case $line in
        *binder*) ;;
        *) continue ;;
        esac
        echo "$line" >&3
        file=${line%%:*}
        case $file in
        *../*) ;;
        *binder*)
            if [ -e "$root/$folder/$file" ]; then
                mkdir -p "$out/files/$folder/${file%/*}"
                : > "$out/files/$folder/$file"
            fi
            ;;
        esac
    done < "$root/$folder/modules.dep" 3> "$out/files/$folder/modules.dep"
}

# facts: what no file tells, as JSON.
facts() {
    devices=
    for path in /dev/*binder /dev/binderfs/*binder; do
        [ -z "$root" ] && [ -c "$path" ] || continue
        case $path in
        *[!A-Za-z0-9_/-]*) continue ;;
        esac
        stat=$(stat -L -c '%a %u' "$path" 2>/dev/null) || continue
        if why=$( (exec 3<>"$path") 2>&1); then
            why=null
        else
            case $why in
            *ermission*) why='"EACCES"' ;;
            *"o such device or address"*) why='"ENXIO"' ;;
            *"o such device"*) why='"ENODEV"' ;;
            *"o such process"*) why='"ESRCH"' ;;
            *) why='"it cannot be opened"' ;;
            esac
        fi
        devices="$devices${devices:+,}{\"path\":\"$path\",\"mode\":$((0${stat%% *})),\"uid\":${stat##* },\"refused\":$why}"
    done
    echo "{\"schema\":\"binderperf.snapshot\",\"version\":1,\"tool\":\"@VERSION@\","
    if [ -z "$root" ]; then
        cpus=$(nproc 2>/dev/null) && echo "\"usable_cpus\":$cpus,"
        echo "\"devices\":[$devices],"
    fi
    echo "\"unreadable\":{$unreadable}}"
}

collect
