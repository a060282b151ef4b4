#!/usr/bin/env bash
# Train with two processes that share each batch; all words go to `glassformer train`:
#   examples/many_processes.sh demo/en-de/phrases/train.tsv --languages en de --out runs/two
# A machine with GPUs has one process for each of them, and --device cuda.
set -euo pipefail
torchrun --standalone --nproc-per-node "${PROCESSES:-2}" -m glassformer train "$@"
