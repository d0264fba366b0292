"""The lab VM: a QEMU guest with Debian's own kernel and this machine's own files, where labd meets real drivers."""
