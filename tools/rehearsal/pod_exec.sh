# sh pod_exec.sh FILES COMMAND...: a stand-in for a container's file system. What lies in FILES is mounted over this
# machine's own files, which are read-only; /tmp is empty. All of it in a mount namespace that ends with the command.
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
        case $name in dev|proc|sys) ;; *) mount -o remount,bind,ro "$root/$name" || true ;; esac
    fi
done
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
