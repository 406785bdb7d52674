#!/usr/bin/env bash
# Every patterns/*.mlir, and patterns of tests/data/device that reach a limit, compiled on the spot with the default
# configuration, launched and compared with the definition: short, odd and unequal lengths, head groups, both dtypes,
# both head dims; causal ones also not causal, and the other way round.
# HEDDLE_DEVICE_CONFIG, such as skeleton=portable_forward, changes the configuration.
# shellcheck disable=SC2154,SC2317 # run_command leaves its command there; functions are called by beside
. tests/device/long/cases.bash
seconds=60
shapes=( # batch seqlen_q seqlen_k heads kv_heads head_dim dtype
  "1 1 1 3 3 64 bf16"
  "2 257 257 6 3 64 bf16"
  "1 1000 1000 4 1 128 fp16"
  "1 300 1111 6 2 128 bf16"
  "1 2500 700 3 3 64 fp16"
  "1 8192 8192 8 8 64 bf16"
)

make_inputs() { # make_inputs <shape>
  local batch seqlen seqlen_k heads kv_heads head_dim dtype
  read -r batch seqlen seqlen_k heads kv_heads head_dim dtype <<<"$1"
  prepare "make inputs $1" "$seconds" "$HEDDLE" make-inputs --batch="$batch" --seqlen="$seqlen" --seqlen-k="$seqlen_k" \
    --heads="$heads" --kv-heads="$kv_heads" --head-dim="$head_dim" --dtype="$dtype" --seed=1 -o "$(inputs_of "$1")"
}

verify() { # verify <pattern file> <shape>
  local batch seqlen seqlen_k heads kv_heads head_dim dtype name command
  read -r batch seqlen seqlen_k heads kv_heads head_dim dtype <<<"$2"
  if grep -q 'attn\.bias' "$1" && [ "$seqlen" -gt 4096 ]; then return; fi # a tensor of 1 GiB
  name="$(basename "$1" .mlir) batch=$batch q=$seqlen k=$seqlen_k heads=$heads/$kv_heads d=$head_dim $dtype"
  if [ "$seqlen" != "$seqlen_k" ] && grep -qE 'attn\.documents .* at %[a-z_]+ ' "$1"; then
    ! begins "$name" || echo "skip $name: one tensor says where documents of queries and keys end"
    return
  fi
  begins "$name" "$1" --head-dim="$head_dim" --dtype="$dtype" --seqlen="$seqlen" ${HEDDLE_DEVICE_CONFIG:+--config="$HEDDLE_DEVICE_CONFIG"} ||
    return
  run_command "$1" "$(inputs_of "$2")" --make-operands ${HEDDLE_DEVICE_CONFIG:+--config="$HEDDLE_DEVICE_CONFIG"} --verify
  check "$name" "$seconds" "${command[@]}"
}

for shape in "${shapes[@]}"; do beside make_inputs "$shape"; done
wait
for pattern in patterns/*.mlir tests/data/device/*.mlir; do
  for shape in "${shapes[@]}"; do beside verify "$pattern" "$shape"; done
done
for pattern in $(grep -lE '= attn\.(full|causal)$' patterns/*.mlir); do # causal for full, and the other way round
  twin=$HEDDLE_SCRATCH/$(basename "$pattern" .mlir)_twin.mlir
  if grep -q '= attn\.full$' "$pattern"; then from=full to=causal; else from=causal to=full; fi
  sed "s/= attn\.$from\$/= attn.$to/" "$pattern" >"$twin"
  for shape in "${shapes[3]}" "${shapes[5]}"; do beside verify "$twin" "$shape"; done
done
finish
