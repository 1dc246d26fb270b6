# What is said to people goes to standard error; standard output is for URLs and listings.

note() { printf '%s\n' "${name:+$name: }$*" >&2; }

fail() {
  note "$*"
  exit 1
}
