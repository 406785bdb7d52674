#!/usr/bin/env bash
# Documents with query tiles of their own and packed: right, and the same bits in every launch. Documents are as many as the
# static tensors of a copy of the pattern say, of random lengths, with an empty one and one of one token; or as many as
# lengths give. Rows whose tile goes on into the next document must be written by that one alone.
# shellcheck disable=SC2154,SC2317 # run_command leaves its command there, functions are called by beside
. tests/device/long/cases.bash
seconds=60
launches=20
sm90=skeleton=sm90_forward
# pattern documents ("-": as lengths give) batch seqlen_q seqlen_k heads kv_heads head_dim dtype configuration
cases=(
  "document - 1 4096 4096 4 2 64 bf16 $sm90,document_tiles=1"
  "document - 1 4096 4096 4 2 64 bf16 skeleton=portable_forward,document_tiles=1"
  "document_window - 2 1111 2222 3 3 128 fp16 $sm90,document_tiles=1"
  "document_window - 2 1111 2222 4 1 128 fp16 skeleton=portable_forward,document_tiles=1"
)
for shape in "document 2 1 1000 1000" "document 200 1 5000 5000" "document 40 2 3333 3333" "document 700 1 701 701" \
  "document_window 2 1 300 1100" "document_window 60 2 2000 5003" "document_window 150 1 3001 999"; do
  for config in \
    "4 2 64 bf16 $sm90,grid=3,split_last=0" "3 3 128 bf16 $sm90,grid=1,split_last=1" "3 1 64 bf16 $sm90,grid=0,split_last=0,block_m=64,turn_taking=0" \
    "4 4 64 bf16 $sm90,softmax=1,grid=3,split_last=0,raster_reversed=0" "2 2 96 fp16 $sm90,softmax=0,grid=0,split_last=0,block_m=128" \
    "4 4 64 fp16 skeleton=portable_forward" "3 1 128 bf16 skeleton=portable_forward,block_m=64,raster_reversed=0"; do
    cases+=("$shape $config,document_tiles=1")
  done
done
for config in "$sm90,grid=3,split_last=0" "$sm90,grid=1,split_last=1" skeleton=portable_forward; do # packed
  cases+=("document 200 1 5000 5000 4 2 64 bf16 $config,document_tiles=0" "document_window 60 2 2000 5003 3 3 128 bf16 $config,document_tiles=0")
done
for long in "grid=3" "grid=1,softmax=1"; do # one document is long enough for parts that blocks share
  cases+=("document_full 3 1 6000 6000 6 2 64 bf16 $sm90,split_last=0,split_tiles=32,block_n=32,$long,document_tiles=1")
done

# pattern_of <pattern> <documents>: the file that a case reads. write_pattern writes it, once and before any case begins.
pattern_of() { [ "$2" = - ] && echo "patterns/$1.mlir" || echo "$HEDDLE_SCRATCH/$1_$2.mlir"; }

write_pattern() { # write_pattern <pattern> <documents>: with tensors of so many documents
  sed -e "s/\(used_k *: *\)memref<?xi32>/\1memref<$2xi32>/g" -e "s/memref<?xi32>/memref<$(($2 + 1))xi32>/g" \
    -e "$([ "$1" != document_full ] || echo 's/attn\.causal/attn.full/')" "patterns/${1/_full/}.mlir" >"$(pattern_of "$1" "$2")"
}

inputs_of() { echo "$HEDDLE_SCRATCH/$(tr ' /' '__' <<<"$*").safetensors"; }

make_inputs() { # make_inputs <batch> <seqlen_q> <seqlen_k> <heads> <kv_heads> <head_dim> <dtype>
  prepare "make inputs $*" "$seconds" "$HEDDLE" make-inputs --batch="$1" --seqlen="$2" --seqlen-k="$3" --heads="$4" --kv-heads="$5" \
    --head-dim="$6" --dtype="$7" --seed=5 -o "$(inputs_of "$@")"
}

try() { # try <case>
  local pattern documents shape config name log code=0 command seqlen head_dim dtype
  read -r pattern documents shape <<<"$1"
  config=${shape##* } shape=${shape% *}
  name="$pattern of $documents, $shape, $config"
  read -r _ seqlen _ _ _ head_dim dtype <<<"$shape"
  begins "$name" "$(pattern_of "$pattern" "$documents")" --head-dim="$head_dim" --dtype="$dtype" --seqlen="$seqlen" --config="$config" ||
    return
  log=$(mktemp -p "$HEDDLE_SCRATCH")
  # shellcheck disable=SC2086 # the words of the shape
  run_command "$(pattern_of "$pattern" "$documents")" "$(inputs_of $shape)" --make-operands --config="$config" --repeat="$launches" --verify
  limited "$seconds" "$log" "${command[@]}" || code=$?
  if [ "$code" != 0 ] && grep -qE "needs .* lacks|anchored: |: $refusal" "$log"; then
    echo "skip $name: $(grep -m1 -oE "needs .* lacks[^;]*|anchored: [^(]*|$refusal" "$log")"
  else
    report "$name" "$code" "$seconds" "$log"
  fi
}

for case in "${cases[@]}"; do
  read -r pattern documents shape <<<"$case"
  [ "$documents" = - ] || write_pattern "$pattern" "$documents"
  shape=${shape% *}
  # shellcheck disable=SC2086
  [ -s "$(inputs_of $shape)" ] || make_inputs $shape
done
for case in "${cases[@]}"; do beside try "$case"; done
wait
finish
