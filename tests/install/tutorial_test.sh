#!/bin/bash
# tutorial_test.sh PAGE HEADROOM FOLDER: follows a page of docs/ in an empty FOLDER. Blocks marked sh are run; blocks marked
# cpp or toml are written to the file that their first line names; each line of a block marked text must be in what the
# last sh block said.
set -u
page=$1 headroom=$2 folder=$3

rm -rf "$folder"
mkdir -p "$folder"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$headroom" > "$folder/headroom"
chmod +x "$folder/headroom"
said="$folder.said"
: > "$said"

fail() {
  echo "$page, line $line: $1"
  tail -n 60 "$said"
  exit 1
}

follow() {
  case $1 in
    sh)
      (cd "$folder" && bash -eu) < "$folder.block" > "$said" 2>&1 || fail "the commands that end here failed"
      ran=$((ran + 1))
      ;;
    cpp | toml)
      local file
      file=$(head -n 1 "$folder.block" | sed -E 's,^(//|#) *,,')
      [ -d "$(dirname "$folder/$file")" ] || fail "a block of code names no file that can be written: '$file'"
      cp "$folder.block" "$folder/$file"
      ;;
    text)
      while IFS= read -r expected; do
        grep -qF -- "$expected" "$said" || fail "'$expected' was not said"
      done < "$folder.block"
      ;;
    *) fail "a block marked '$1', which nobody follows" ;;
  esac
}

block='' line=0 ran=0
while IFS= read -r text; do
  line=$((line + 1))
  if [[ $text == '```'* ]]; then
    if [ -z "$block" ]; then
      block=${text#'```'}
      block=${block:-unmarked}
      : > "$folder.block"
    else
      follow "$block"
      block=''
    fi
  elif [ -n "$block" ]; then
    printf '%s\n' "$text" >> "$folder.block"
  fi
done < "$page"
[ "$ran" -gt 0 ] || fail "the page has no commands"
rm -rf "$folder" "$said" "$folder.block"
