#!/usr/bin/env bash
# Every patterns/*.mlir, and patterns of tests/data/device that reach a limit, compiled on the spot with the default
# configuration, launched and compared with the definition: short, odd and unequal lengths, head groups, both dtypes,
# both head dims.
# HEDDLE_DEVICE_CONFIG, such as skeleton=portable_forward, changes the configuration.
set -uo pipefail
shapes=( # batch seqlen_q seqlen_k heads kv_heads head_dim dtype
  "1 1 1 3 3 64 bf16"
  "2 257 257 6 3 64 bf16"
  "1 1000 1000 4 1 128 fp16"
  "1 300 1111 6 2 128 bf16"
  "1 2500 700 3 3 64 fp16"
  "1 8192 8192 8 8 64 bf16"
)
failed=0
for pattern in patterns/*.mlir tests/data/device/*.mlir; do
  for shape in "${shapes[@]}"; do
    read -r batch seqlen seqlen_k heads kv_heads head_dim dtype <<<"$shape"
    name="$(basename "$pattern" .mlir) batch=$batch q=$seqlen k=$seqlen_k heads=$heads/$kv_heads d=$head_dim $dtype"
    inputs=$HEDDLE_SCRATCH/inputs.safetensors
    if reason=$({ "$HEDDLE" make-inputs --batch="$batch" --seqlen="$seqlen" --seqlen-k="$seqlen_k" --heads="$heads" \
        --kv-heads="$kv_heads" --head-dim="$head_dim" --dtype="$dtype" --seed=1 -o "$inputs" &&
      "$HEDDLE" run "$pattern" --inputs="$inputs" --output="$HEDDLE_SCRATCH/outputs.safetensors" --target=cuda \
        --db="$HEDDLE_SCRATCH/none.db" ${HEDDLE_DEVICE_CONFIG:+--config="$HEDDLE_DEVICE_CONFIG"} --verify; } 2>&1 >/dev/null); then
      echo "ok $name"
    else
      echo "FAIL $name: $(tail -1 <<<"$reason")"
      failed=1
    fi
  done
done
exit $failed
