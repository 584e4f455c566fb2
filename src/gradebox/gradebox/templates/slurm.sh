#!/bin/bash
# Marks a class as a SLURM array: each task takes one shard, all write into
# one folder. Each has a node of its own (--exclusive): between two shards on
# one machine there is no order of the phases.
#   sbatch slurm.sh submissions.zip a1-k3f9.gradebox.zip results
# When the array has ended, once more by hand, without --shard: it writes
# grades.csv.
#   gradebox submissions.zip --assignment a1-k3f9.gradebox.zip --out results
#SBATCH --job-name=gradebox
#SBATCH --array=0-7
#SBATCH --exclusive
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=02:00:00
#SBATCH --output=gradebox-%A-%a.log
set -euo pipefail

submissions=${1:?which folder or export?}
package=${2:?which package?}
out=${3:?which folder for results?}

# SLURM counts from 0 or from what --array says; shards count from 1.
number=$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN + 1))
shard=$number/$SLURM_ARRAY_TASK_COUNT
exec gradebox "$submissions" --assignment "$package" --out "$out" \
  --jobs "${SLURM_CPUS_PER_TASK:-1}" --shard "$shard"
