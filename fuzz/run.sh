#!/bin/sh
# Fuzzes one target with coverage on the stable compiler: run.sh TARGET [SECONDS]
#
# Starts from the kept corpus, collects in corpus-work/ and leaves what fails in artifacts/. To keep what a run has
# found: run.sh TARGET merge, which writes a small set of inputs with the same edges to corpus/TARGET.
set -eu
cd "$(dirname "$0")"
target=$1
seconds=${2:-60}
triple=$(rustc -vV | sed -n 's/^host: //p')
# What cargo-fuzz passes with a nightly compiler, without the sanitizers that need one.
export RUSTFLAGS="--cfg fuzzing -C passes=sancov-module \
-C llvm-args=-sanitizer-coverage-level=4 \
-C llvm-args=-sanitizer-coverage-inline-8bit-counters \
-C llvm-args=-sanitizer-coverage-pc-table \
-C llvm-args=-sanitizer-coverage-trace-compares"
# A target triple keeps the flags away from build scripts.
cargo build --quiet --release --target "$triple" --bin "$target"
binary=target/$triple/release/$target
mkdir -p "corpus/$target" "corpus-work/$target" artifacts
if [ "$seconds" = merge ]; then
    mkdir -p corpus-new
    rm -rf "corpus-new/$target" && mkdir "corpus-new/$target"
    "$binary" -set_cover_merge=1 -use_counters=0 -max_len=2048 "corpus-new/$target" "corpus/$target" "corpus-work/$target"
    rm -rf "corpus/$target" && mv "corpus-new/$target" "corpus/$target"
    rmdir corpus-new
else
    "$binary" -max_total_time="$seconds" -timeout=1 -rss_limit_mb=512 -max_len=4096 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target-" "corpus-work/$target" "corpus/$target"
fi
