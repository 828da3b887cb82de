#!/usr/bin/env bash
# Puts control plane programs into a folder. It downloads those that checksums.txt pins, if the network allows it, and builds the others.
# Programs that are newer than the go.mod and go.sum of their module are kept.
#
#   hack/controlplane.sh hack/controlplane bin etcd kube-apiserver
#
# DOWNLOADS=off builds all of them; DOWNLOADS=https://... names a mirror of dl.k8s.io and github.com.
set -euo pipefail
module=$1 bin=$2
shift 2

outdated=()
for program; do
  if ! [ "$bin/$program" -nt "$module/go.mod" ] || ! [ "$bin/$program" -nt "$module/go.sum" ]; then outdated+=("$program"); fi
done
if [ ${#outdated[@]} = 0 ]; then exit 0; fi
mkdir -p "$bin"
bin=$(cd "$bin" && pwd) # go -C would resolve it in the module

missing=${outdated[*]}
if [ "${DOWNLOADS:-}" != off ] && [ -f "$module/checksums.txt" ]; then
  missing=$(go run ./hack/download -pins "$module" -into "$bin" -mirror "${DOWNLOADS:-}" "${outdated[@]}")
fi
if [ -z "$missing" ]; then exit 0; fi

# How many minutes each takes with an empty build cache on two cores, once those above it are built.
packages=() minutes=0
for program in $missing; do
  case $program in
    etcd) packages+=(go.etcd.io/etcd/server/v3) minutes=$((minutes + 1)) ;;
    kube-apiserver) packages+=(k8s.io/kubernetes/cmd/kube-apiserver) minutes=$((minutes + 4)) ;;
    kube-controller-manager) packages+=(k8s.io/kubernetes/cmd/kube-controller-manager) minutes=$((minutes + 1)) ;;
    kubectl) packages+=(k8s.io/kubernetes/cmd/kubectl) minutes=$((minutes + 2)) ;;
    *)
      echo "there is no package for $program" >&2
      exit 1
      ;;
  esac
done
echo "building ${missing// /, } into ${bin#"$PWD/"}: about $minutes min the first time on two cores"

# A go.work around the checkout would replace the versions that the module pins.
export GOWORK=off
# Without version information, kubectl and Helm reject kube-apiserver, and kubectl considers every server too new or too old.
version=$(go -C "$module" list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
set=-X\ k8s.io/component-base/version.
# A killed build must not leave part of a program under the program's name. One build of all packages compiles shared code once and links
# the programs side by side.
part=$(mktemp -d "$bin/.build.XXXXXX")
trap 'rm -rf "$part"' EXIT
go -C "$module" build -ldflags "-s -w ${set}gitVersion=$version ${set}gitMajor=$major ${set}gitMinor=$minor" -o "$part/" "${packages[@]}"
if [ -f "$part/server" ]; then mv "$part/server" "$part/etcd"; fi # named after its package
for program in $missing; do mv "$part/$program" "$bin/$program"; done
