#!/bin/sh
# The guest's first program: this machine's own files over 9p, read-only, with what the guest writes in its memory; then
# a bash script a line from the second serial port (base64), answered by its exit code and its output (base64).
/bin/busybox --install -s /bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
for module in /m/*; do insmod "$module"; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro host /host || echo "labvm: no files"
mount -t tmpfs t /up; mkdir -p /up/upper /up/work
mount -t overlay -o lowerdir=/host,upperdir=/up/upper,workdir=/up/work o /root
for name in proc sys dev; do mount --move /$name /root/$name; done
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts d /root/dev/pts; mount -t tmpfs s /root/dev/shm; mount -t tmpfs t /root/run
mount -t configfs c /root/sys/kernel/config 2>/dev/null
for word in $(cat /root/proc/cmdline); do case $word in labvm.tree=*) tree=${word#labvm.tree=} ;; esac; done
rm -rf /root/lib/modules; ln -s "$tree/lib/modules" /root/usr/lib/modules 2>/dev/null || ln -s "$tree/lib/modules" /root/lib/modules
ip link set lo up
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run LANG=C.UTF-8
cat >/root/run/labvm <<'S'
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo ready >&3
while read -r script <&3; do
  echo "$script" | base64 -d >/run/script
  bash /run/script >/run/out 2>&1 </dev/null 3>&-
  code=$?
  { echo "$code"; base64 -w 0 /run/out; echo; } >&3
done
S
chroot /root /bin/bash /run/labvm
chroot /root /usr/bin/busybox poweroff -f
