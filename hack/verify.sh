#!/usr/bin/env bash
# The recipe of `make verify`: compares generated files before and after running their generators. MAKE is the make that called it.
set -euo pipefail

# Generated files are those marked in .gitattributes, in whole or in part.
generated_files() {
  git ls-files --cached --others --exclude-standard -z -- ':(attr:linguist-generated)' ':(attr:generated-part)'
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
snapshot() {
  mkdir "$tmp/$1"
  generated_files | while IFS= read -r -d '' file; do
    if [ -f "$file" ]; then
      mkdir -p "$tmp/$1/$(dirname "$file")"
      cp "$file" "$tmp/$1/$file"
    fi
  done
}
snapshot before
"$MAKE" manifests
"$MAKE" generate
snapshot after
if ! (cd "$tmp" && diff -ruN before after); then
  echo
  echo "verify: the files above were not up to date. They are now: look at them and commit them with what they are made from."
  exit 1
fi
echo "verify: everything generated is up to date"
go run ./hack/prose -worst 0
