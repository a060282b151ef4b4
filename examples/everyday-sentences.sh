#!/usr/bin/env bash
# From nothing to a translator of everyday sentences; docs/how-to/everyday-sentences.md explains it.
#   examples/everyday-sentences.sh de en        with the pairs of the Tatoeba project, from OPUS
#   examples/everyday-sentences.sh de en COPY   with the files COPY.de and COPY.en, plain or .gz
# MINUTES bounds the training, and the folder OUT gets all files.
set -euo pipefail
stop() {
    echo "everyday-sentences: $1" >&2
    exit "${2:-1}"
}
[ $# = 2 ] || [ $# = 3 ] || stop "expected two codes of languages, as in: de en" 2
[ "$1" != "$2" ] || stop "$1 $2: expected two languages" 2
source=$1 target=$2 copy=${3:-}
minutes=${MINUTES:-20} out=${OUT:-everyday/$1-$2}
mkdir -p "$out"

if [ -z "$copy" ]; then # OpusTools downloads an archive, and writes a file for each language
    command -v opus_read >/dev/null || stop "opus_read is missing: pip install opustools"
    copy=$out/tatoeba log=$out/download.log
    if ! opus_read -d Tatoeba -s "$source" -t "$target" -p moses -wm moses -q -dl "$out/download" \
        -w "$copy.$source" "$copy.$target" >"$log" 2>&1; then
        rm -rf "$out/download"
        case $(cat "$log") in
        *Unable*) stop "no download: $(grep -om 1 'Unable.*' "$log")" ;;
        *FileNotFoundError*) stop "OPUS has no Tatoeba pairs of $source and $target:\
 'opus_get -d Tatoeba -s $source -ll --local_db' lists the languages that have pairs" ;;
        *) stop "the download was broken, and is deleted: $(tail -n 1 "$log")" ;;
        esac
    fi
fi

for side in "$source" "$target"; do
    file=$copy.$side program=cat
    [ -e "$file" ] || file=$file.gz program="gzip -dc"
    [ -e "$file" ] || stop "$copy.$side: no such file, with or without .gz"
    $program "$file" >"$out/all.$side" 2>/dev/null || stop "$file: it cannot be read, or is no gzip file"
    iconv -f UTF-8 -t UTF-8 "$out/all.$side" >/dev/null 2>&1 || stop "$file: no text in UTF-8"
    ! tab=$(grep -nm 1 $'\t' "$out/all.$side") ||
        stop "$file:${tab%%:*}: a tab, but Moses' form has one sentence in a line"
done
lines=$(($(wc -l <"$out/all.$source"))) others=$(($(wc -l <"$out/all.$target")))
[ $lines = $others ] || stop "$copy: $lines lines of $source and $others of $target, which are no pairs"

# Each pair once. Every n-th pair is for the test, about 2,000 in all. No sentence of the test, of
# either side, stands in the training: pairs with one of them are left out.
cd "$out"
paste "all.$source" "all.$target" | awk -F '\t' '$1 != "" && $2 != "" && !seen[$0]++' >pairs.tsv
pairs=$(($(wc -l <pairs.tsv))) each=$((pairs > 20000 ? pairs / 2000 : 10))
[ $pairs -ge $each ] || stop "$copy: $pairs different pairs, expected at least $each"
: >train.tsv
awk -F '\t' -v each=$each '
    NR == FNR && FNR % each == 0 { sources[$1]; targets[$2]; print >"test.tsv" }
    NR != FNR && FNR % each && !($1 in sources || $2 in targets) { print >"train.tsv" }
' pairs.tsv pairs.tsv
echo "$pairs pairs: $(($(wc -l <train.tsv))) for training, $(($(wc -l <test.tsv))) for the test"

glassformer doctor train.tsv --test test.tsv --minutes "$minutes"
glassformer train train.tsv --languages "$source" "$target" --minutes "$minutes" --out run
glassformer evaluate run test.tsv
awk -v each=$((pairs / each / 10)) '(!each || NR % each == 0) && n++ < 10' test.tsv >ten.tsv
cut -f 1 ten.tsv | glassformer translate run | paste ten.tsv - # source, reference, translation
glassformer look run --text "$(tail -n 1 ten.tsv | cut -f 1)" --out look.html
rm -f translate.html
glassformer export run translate.html --to page
echo "open $out/translate.html"
