#!/bin/sh
# Installs wasmgate and wasmgate-hook from a release, for Linux and macOS.
#
#   sh install.sh [--dir FOLDER] [--version VERSION] [--from URL] [--signer FILE]
#
#   --dir      where to install; ~/.local/bin if not given
#   --version  the release; the one that this script comes from if not given
#   --from     where the files of the release are; https, or http on this machine
#   --signer   the public key (SSH) that must have signed the release
#
# Nothing that was downloaded is unpacked or run before its checksum is right. The checksums are signed: they are checked with
# the key that .ci/release writes below, if ssh-keygen is installed. With --signer they must be.
set -eu
version=
signer=

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# fetch NAME downloads a file of the release into the folder $tmp.
fetch() {
  if has curl; then
    curl -fsSL --proto "$protocols" --proto-redir "$protocols" --retry 2 -o "$tmp/$1" "$from/$1"
  elif has wget; then
    wget -q -O "$tmp/$1" "$from/$1"
  else
    fail "install curl or wget first"
  fi
}

checksum() {
  if has sha256sum; then
    sha256sum "$1"
  elif has shasum; then
    shasum -a 256 "$1"
  else
    fail "neither sha256sum nor shasum is installed: the download cannot be checked"
  fi | cut -d' ' -f1
}

# verify checks the signature of the checksums.
verify() {
  if [ -z "$signer" ]; then
    echo "this release names no signer: only checksums were checked"
    return
  fi
  if ! has ssh-keygen; then
    [ -z "$demanded" ] || fail "--signer needs ssh-keygen, which is not installed"
    echo "ssh-keygen is not installed: the signature was not checked"
    return
  fi
  fetch SHA256SUMS.sig || fail "$from has no SHA256SUMS.sig: the release is not signed"
  echo "release $signer" >"$tmp/allowed_signers"
  said=$(ssh-keygen -q -Y verify -f "$tmp/allowed_signers" -I release -n wasmgate-release -s "$tmp/SHA256SUMS.sig" <"$tmp/SHA256SUMS" 2>&1) ||
    fail "the signature of SHA256SUMS does not hold (ssh-keygen: $said): nothing was installed"
  echo "the signature holds"
}

main() {
  dir=${HOME:-}/.local/bin from='' demanded=''
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value, or is unknown"
    case $1 in
    --dir) dir=$2 ;;
    --version) version=$2 ;;
    --from) from=${2%/} ;;
    --signer) demanded=$2 ;;
    *) fail "unknown option $1" ;;
    esac
    shift 2
  done
  [ -n "$version" ] || fail "name a release with --version, such as v0.1.0"
  case $version in *[!0-9A-Za-z.-]*) fail "$version is no version such as v0.1.0" ;; esac
  case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
  from=${from:-https://github.com/wasmgate/wasmgate/releases/download/$version}
  case $from in
  https://*) protocols='=https' ;;
  http://127.0.0.1[:/]* | http://localhost[:/]*) protocols='=http,https' ;;
  *) fail "--from must be an https URL, or http on this machine" ;;
  esac
  if [ -n "$demanded" ]; then
    signer=$(cut -d' ' -f1,2 "$demanded")
  fi

  case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) fail "there is no installation by script for $(uname -s): unpack an archive of $from by hand" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no release for $(uname -m)" ;;
  esac
  file=wasmgate-$version-$os-$arch.tar.gz

  tmp=$(mktemp -d)
  trap 'rm -rf "$tmp"' EXIT
  trap 'exit 1' HUP INT TERM
  fetch SHA256SUMS || fail "$from/SHA256SUMS cannot be fetched"
  verify
  want=$(awk -v file="$file" '$2 == file { print $1 }' "$tmp/SHA256SUMS")
  [ ${#want} = 64 ] || fail "SHA256SUMS has no line, or several, for $file"
  fetch "$file" || fail "$from/$file cannot be fetched"
  got=$(checksum "$tmp/$file")
  [ "$got" = "$want" ] || fail "$file has the checksum $got, not $want: nothing was installed"

  mkdir "$tmp/files"
  tar -xzf "$tmp/$file" -C "$tmp/files" ./wasmgate ./wasmgate-hook ./wasmgate.1
  mkdir -p "$dir"
  for program in wasmgate wasmgate-hook; do
    cp "$tmp/files/$program" "$dir/.$program.new"
    chmod 755 "$dir/.$program.new"
    mv -f "$dir/.$program.new" "$dir/$program" # at once, also while it runs
  done
  case $dir in
  */bin) # where man looks, once the folder is in PATH
    mkdir -p "${dir%/bin}/share/man/man1"
    cp "$tmp/files/wasmgate.1" "${dir%/bin}/share/man/man1/wasmgate.1"
    ;;
  esac
  echo "installed $("$dir/wasmgate" --version) in $dir"
  case :$PATH: in
  *:"$dir":*) ;;
  *) echo "add it to your PATH: export PATH=\"$dir:\$PATH\"" ;;
  esac
}

# The last line: a script that was cut short does nothing.
main "$@"
