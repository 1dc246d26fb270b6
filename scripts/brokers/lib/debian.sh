# A Debian of another release in a folder, for servers whose packages do not run on this one.

# bootstrap_debian FOLDER RELEASE PACKAGE... makes a system of another release of Debian in FOLDER, with packages that do not run on this one. Where packages come
# from, and how, is as on this machine. It is made in a namespace of its own, so that no mount outlives it.
bootstrap_debian() {
  local made=$1.part folder=$1 release=$2 mirror
  shift 2
  type -P mmdebstrap >/dev/null || install_debian mmdebstrap
  mirror=$(debian_mirror)
  [[ -n $mirror ]] || fail "$no_mirror"
  note "making a Debian $release with $* in $folder"
  rm -rf --one-file-system -- "$made"
  mkdir -p "$made"
  apt-config dump Acquire | grep -v '^Acquire::IndexTargets' >"$made.conf"
  unshare --mount mmdebstrap --quiet --mode=root --variant=apt --include="$(IFS=, && echo "$*")" --aptopt="$made.conf" --aptopt='APT::Sandbox::User "root"' \
    "$release" "$made" "$mirror" >&2 || fail "mmdebstrap could not make a Debian $release with $*"
  rm -f -- "$made.conf"
  echo '127.0.0.1 localhost' >"$made/etc/hosts"
  mv -- "$made" "$folder"
}

no_mirror="apt has no source of this machine's release among Debian's own, debian.sources or else sources.list: where that is, other releases are, too"

# debian_mirror prints where Debian's own packages come from on this machine; nothing where its sources, which are those that scripts/fresh takes, do not say.
# Other files may name the same release, and be of anybody's. Whether apt has ever read its lists does not matter.
debian_mirror() {
  local list='' parts='' file own
  own=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/f)"
  for file in "$parts/debian.sources" "$parts"/[0-9]*debian.sources "$list"; do # as mmdebstrap calls it, too
    if [[ -s $file ]]; then
      apt-get update --print-uris -o Dir::Etc::sourcelist="$file" -o Dir::Etc::sourceparts=- | sed -n "s|^'\(.*\)/dists/$own/InRelease'.*|\1|p" | sed -n 1p
      return
    fi
  done
}

# can_bootstrap_debian succeeds where bootstrap_debian and in_debian can work.
can_bootstrap_debian() { has_debian_root && grep -qx 'ID=debian' /etc/os-release && unshare --mount true 2>/dev/null; }

# in_debian FOLDER DATA fills the caller's within with what goes before a command that is to run in the system in FOLDER, with DATA at /mnt. It becomes the
# command, and what it mounts nobody else sees.
in_debian() {
  # shellcheck disable=SC2016,SC2034 # the inner shell expands it; the caller reads it
  within=(unshare --mount sh -ec 'root=$1
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --bind "$2" "$root/mnt"
    shift 2
    exec chroot "$root" "$@"' in_debian "$1" "$2")
}
