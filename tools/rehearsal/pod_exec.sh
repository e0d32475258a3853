# sh pod_exec.sh FILES COMMAND...: a stand-in for a container's file system. What lies in FILES is mounted over this
# machine's own files, which are read-only but for /dev, /proc and /sys; /tmp and /dev/shm are empty. All of it in a
# mount namespace that ends with the command. A mount that fails ends it before the command: it could write anywhere.
set -e
if [ -z "$POD_EXEC_INSIDE" ]; then
    POD_EXEC_INSIDE=1 exec unshare --mount sh "$0" "$@"
fi
unset POD_EXEC_INSIDE TMPDIR
files=$1
shift
root=$files.root
mkdir -p "$root"
mount -t tmpfs container "$root"
for entry in /*; do
    name=${entry#/}
    if [ -e "$files/$name" ] || [ "$name" = tmp ]; then
        continue
    elif [ -L "$entry" ]; then
        cp -P "$entry" "$root/$name"
    elif [ -d "$entry" ]; then
        mkdir "$root/$name"
        mount --rbind "$entry" "$root/$name"
    fi
done
# Each mount below is remounted by itself: `remount` takes none along, and mount(8) knows `ro=recursive` only from 2.39.
while read -r _ _ _ _ point _; do
    point=$(printf %b "$point")  # a space stands there as \040 (proc_pid_mountinfo(5))
    case $point in
        "$root"/dev | "$root"/dev/* | "$root"/proc | "$root"/proc/* | "$root"/sys | "$root"/sys/*) ;;
        "$root"/*) mount -o remount,bind,ro "$point" ;;
    esac
done <<MOUNTS
$(cat /proc/self/mountinfo)
MOUNTS
if [ -d "$root/dev/shm" ]; then
    mount -t tmpfs container "$root/dev/shm"
fi
for entry in "$files"/*; do
    name=${entry##*/}
    if [ -d "$entry" ]; then
        mkdir "$root/$name"
        mount --bind "$entry" "$root/$name"
    elif [ -e "$entry" ]; then
        touch "$root/$name"
        mount --bind "$entry" "$root/$name"
    fi
done
[ -d "$root/tmp" ] || mkdir -m 1777 "$root/tmp"
exec chroot "$root" "$@"
