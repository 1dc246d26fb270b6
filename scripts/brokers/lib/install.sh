# Installing into the cache. Each is made beside its place and moved there when it is complete, so that an interrupted
# one is not taken for done.

# install_alone installs what $name needs, which its variants share, while nobody else does.
install_alone() { (lock "$cache/${name%%-*}.lock" && install); }

# go_install MODULE@VERSION FOLDER builds a command with the Go toolchain.
go_install() {
  local made=$2.part
  rm -rf -- "$made"
  mkdir -p "$made"
  CGO_ENABLED=0 GOBIN=$made GOFLAGS=-mod=mod go install "$1" || fail "go install $1 failed"
  mv -- "$made" "$2"
}

# unpack_debian FOLDER PACKAGE... unpacks Debian packages, and whatever they depend on that this machine lacks, below
# FOLDER. That needs no root, starts no service, and goes away with the cache.
unpack_debian() {
  local made=$1.part folder=$1 apt=(apt-get -qq -o APT::Sandbox::User=root)
  shift
  rm -rf -- "$made"
  mkdir -p "$made/debs"
  if ! download_debian "$made/debs" "$@"; then
    note "the machine's list of packages is missing or old, reading a new one"
    mkdir -p "$made/apt/lists/partial" "$made/apt/archives/partial"
    apt+=(-o "Dir::State::Lists=$made/apt/lists" -o "Dir::Cache=$made/apt")
    "${apt[@]}" update >&2 || fail "apt-get update failed"
    download_debian "$made/debs" "$@" >&2 || fail "apt-get download failed for $*"
  fi
  local deb
  for deb in "$made"/debs/*.deb; do
    dpkg -x "$deb" "$made"
  done
  rm -rf -- "$made/debs" "$made/apt"
  mv -- "$made" "$folder"
}

# download_debian FOLDER PACKAGE... downloads with the caller's apt command what an installation would install.
download_debian() (
  cd "$1" || exit 1
  shift
  mapfile -t packages < <("${apt[@]}" -s install --no-install-recommends "$@" 2>/dev/null | awk '/^Inst / { print $2 }')
  ((${#packages[@]} > 0)) || exit 1
  note "downloading the Debian packages ${packages[*]}"
  "${apt[@]}" download "${packages[@]}" 2>/dev/null
)

# install_debian PACKAGE... installs packages on the machine, for what does not work from another folder. One does so at a time: apt's own lock
# makes those that come second fail, and its option to wait is not for the lists.
install_debian() {
  note "installing the Debian packages $*"
  export DEBIAN_FRONTEND=noninteractive
  local install=(apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@")
  (
    flock 9
    "${install[@]}" >&2 || { apt-get update -qq >&2 && "${install[@]}" >&2; }
  ) 9</var/lib/apt || fail "apt-get install $* failed"
}

# has_debian_root succeeds where install_debian can work.
has_debian_root() { has_debian && ((EUID == 0)); }

# has_debian succeeds where unpack_debian can work.
has_debian() { command -v apt-get >/dev/null && command -v dpkg >/dev/null; }

# libraries FOLDER prints the library path of what unpack_debian left in FOLDER.
libraries() {
  local folder path=''
  for folder in "$1"/usr/lib/*-linux-gnu* "$1"/lib/*-linux-gnu*; do
    [[ ! -d $folder ]] || path+=${path:+:}$folder
  done
  printf '%s' "$path"
}

# locate FOLDER PROGRAM prints where a program is: what unpack_debian left in FOLDER goes before what is on PATH.
locate() {
  if [[ -x $1/usr/bin/$2 ]]; then
    printf '%s' "$1/usr/bin/$2"
  else
    type -P "$2"
  fi
}

# show_program prints where PROGRAM of $name is, on any backend, for those who run one of their own. What was unpacked is run by a
# script beside it, because it needs its libraries.
show_program() {
  local folder=$cache/${name%%-*} lacking path script
  lacking=$(lacks)
  [[ -z $lacking ]] || fail "$lacking"
  install_alone
  path=$(programs)/$2
  [[ -x $path ]] || path=$(locate "$folder" "$2") || fail "has no program \"$2\""
  if [[ $path == "$folder"/* ]]; then
    script=$folder/$2
    printf '#!/usr/bin/env bash\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$(libraries "$folder")" "$path" >"$script.part"
    chmod +x "$script.part"
    mv -- "$script.part" "$script"
    path=$script
  fi
  printf '%s\n' "$path"
}

# java_lacking FOLDER prints the Debian packages of the tools that are not here and that what Maven gets into FOLDER needs: Maven only until it is there.
java_lacking() {
  local packages=()
  type -P java >/dev/null || packages+=(default-jre-headless)
  [[ -d $1 ]] || type -P mvn >/dev/null || packages+=(maven)
  printf '%s' "${packages[*]}"
}

# cannot_be_got PACKAGES prints why a broker that lacks these Debian packages cannot be started; nothing if they can be installed.
cannot_be_got() { [[ -z $1 ]] || has_debian_root || echo "it needs what Debian's packages ${1// / and } hold"; }

# install_lacking PACKAGES installs those that java_lacking has printed, or another.
install_lacking() {
  local packages
  read -ra packages <<<"$1"
  ((${#packages[@]} == 0)) || install_debian "${packages[@]}"
}

# install_java FOLDER TITLE COMMAND ARGUMENT... has FOLDER filled by copy_maven or unpack_maven, unless it is there, and installs what that and its servers need.
install_java() {
  local folder=$1 title=$2 get=$3
  shift 3
  install_lacking "$(java_lacking "$folder")"
  [[ ! -d $folder ]] || return 0
  note "getting $title with Maven"
  "$get" "$folder" "$@"
}

# copy_maven FOLDER POM copies what a pom depends on, and what that depends on, into FOLDER.
copy_maven() {
  local made=$1.part
  rm -rf -- "$made"
  mkdir -p "$made"
  mvn -q -B -Dstyle.color=never -f "$2" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$made" >&2 ||
    fail "Maven could not copy the dependencies of $2"
  mv -- "$made" "$1"
}

# unpack_maven FOLDER ARTIFACT [OPTION...] unpacks an archive, group:name:version:tar.gz:classifier, without its first folder, into FOLDER. Options are tar's.
unpack_maven() {
  local made=$1.part folder=$1 artifact=$2
  shift 2
  rm -rf -- "$made"
  mkdir -p "$made"
  mvn -q -B -Dstyle.color=never dependency:copy -Dartifact="$artifact" -DoutputDirectory="$made" >&2 || fail "Maven could not copy $artifact"
  tar -xz -C "$made" --strip-components=1 "$@" -f "$made"/*.tar.gz || fail "$artifact could not be unpacked"
  rm -f -- "$made"/*.tar.gz
  mv -- "$made" "$folder"
}
